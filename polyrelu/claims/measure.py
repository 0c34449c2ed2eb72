"""Claims through the sweep: a setting for each part and seed of an experiment, so they run in parallel and resume."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from polyrelu.claims.catalogue import experiments
from polyrelu.claims.claim import Claim, Experiment, Measured, Profile
from polyrelu.claims.judge import Judgement, Outcome, judge
from polyrelu.errors import require
from polyrelu.sweep import Record, Sweep, sweepable

ROOM = "polyrelu.claims"
ROOMS = ("data", "nets", "train", "bias", "robust")  # what the numbers come from, beside the experiments themselves


@sweepable(sources=tuple(f"polyrelu.{room}" for room in ROOMS))
def measure(experiment: str, profile: Profile, seed: int, part: Mapping[str, Any], code: str) -> dict[str, Any]:
    """Run one part of one experiment with one seed; ``code`` must be that of the experiment as it is here."""
    known = experiments()[experiment]
    require(code == code_of(known), "code", code, f"{code_of(known)}, another version of polyrelu runs here")
    found = known.run(profile, seed, **part)
    return {"values": dict(found.values), "data": dict(found.data), "note": found.note}


def settings_of(
    claims: Iterable[Claim], profile: Profile, seeds: int | None = None, first: int = 0
) -> list[dict[str, Any]]:
    """What must be run for these claims; an experiment that several share, only once."""
    needed = {claim.experiment.name: claim.experiment for claim in claims}
    return [
        {"experiment": name, "profile": profile, "seed": seed, "part": dict(part), "code": code_of(experiment)}
        for name, experiment in needed.items()
        if not experiment.needs(profile)
        for seed in range(first, first + (seeds or experiment.repeats[profile]))
        for part in experiment.parts(profile)
    ]


def sweep_of(claims: Iterable[Claim], profile: Profile, seeds: int | None = None, first: int = 0) -> Sweep:
    """The sweep that measures these claims."""
    return Sweep(f"{__name__}:measure", settings_of(claims, profile, seeds, first))


def outcomes(records: Iterable[Record]) -> dict[str, list[Outcome]]:
    """What was kept, by experiment."""
    found: dict[str, list[Outcome]] = {}
    for record in records:
        value, settings = record.result, record.settings
        measured = None if value is None else _measured(value, record.file)
        about = record.error, record.file, record.seconds, record.versions
        one = Outcome(settings["seed"], settings["part"], measured, *about)
        found.setdefault(settings["experiment"], []).append(one)
    return found


def _measured(value: Any, file: str) -> Measured:
    """What a result says, checked: files can be changed by anybody."""
    values = value.get("values") if isinstance(value, Mapping) else None
    numbers = isinstance(values, Mapping) and all(isinstance(one, int | float) for one in values.values())
    good = numbers and isinstance(value.get("data"), Mapping) and isinstance(value.get("note"), str)
    require(good, "out", file, "a measurement as polyrelu claims writes it; remove the file to measure again")
    return Measured(value["values"], value["data"], value["note"])


def judge_all(claims: Iterable[Claim], profile: Profile, kept: Mapping[str, list[Outcome]]) -> list[Judgement]:
    """A verdict for every claim."""
    return [judge(claim, profile, kept.get(claim.experiment.name, [])) for claim in claims]


def code_of(experiment: Experiment) -> str:
    """A hash of the experiment's file and of those of this room that it imports, up to where the claims begin.

    So a result never counts for other code, and a claim may be worded or judged anew without measuring again.
    """
    return _code(experiment.run.__module__)


@cache
def _code(module: str) -> str:
    digest, waiting, seen = hashlib.sha256(), [module], set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.origin is not None:  # else a name that the package itself defines
                source = Path(spec.origin).read_text(encoding="utf-8")
                digest.update(source.partition("\nCLAIMS")[0].encode())
                waiting += sorted(_imported(source), reverse=True)
    return digest.hexdigest()[:12]


def _imported(source: str) -> Iterator[str]:
    """Files of this room that a source imports, anywhere and in either form; names of the package may be among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == ROOM:
            names = [f"{ROOM}.{alias.name}" for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name for name in names if name.startswith(f"{ROOM}."))
