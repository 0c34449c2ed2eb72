"""All claims, in the order of their ids, and how to name some of them."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from functools import cache

from polyrelu.claims.claim import Claim
from polyrelu.claims.experiment import Experiment, load_experiment
from polyrelu.errors import InputError

FOLDERS = ("mmv24", "mv24", "mv25", "ll20", "llwa21", "lpll25", "fvbs23", "vys22", "errata")


@cache
def catalogue() -> dict[str, Claim]:
    """Claim by id."""
    found: list[Claim] = []
    for folder in FOLDERS:  # none of these modules imports an experiment
        found += importlib.import_module(f"polyrelu.claims.{folder}.claims").CLAIMS
    claims = {claim.id: claim for claim in sorted(found, key=lambda claim: (claim.group, int(claim.id[1:])))}
    assert len(claims) == len(found), "two claims share an id"
    return claims


def experiments() -> dict[str, Experiment]:
    """Experiment by name; all of their modules are imported."""
    found = (load_experiment(claim.experiment) for claim in catalogue().values() if claim.experiment)
    return {one.name: one for one in found}


def select(names: Iterable[str]) -> list[Claim]:
    """Claims by id (A3) or group (A), in their order; nothing named means all of them."""
    claims, wanted = catalogue(), set()
    for name in names:
        found = [claim.id for claim in claims.values() if name.upper() in (claim.id, claim.group)]
        if not found:
            known = [*claims, *sorted({claim.group for claim in claims.values()})]
            near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0)
            raise InputError(
                f"claim={name}: expected an id such as A3 or a group such as B; the nearest is {near[0]}. "
                "All of them: polyrelu claims list"
            )
        wanted.update(found)
    return [claim for claim in claims.values() if not wanted or claim.id in wanted]
