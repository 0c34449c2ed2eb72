"""Claims through the sweep: a setting for each part and seed of an experiment, so they run in parallel and resume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from polyrelu.claims.claim import Claim
from polyrelu.claims.code_identity import code_identity
from polyrelu.claims.experiment import Measured, load_experiment
from polyrelu.claims.judge import Outcome
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Values
from polyrelu.errors import require
from polyrelu.sweep import Record, Sweep, sweepable


@sweepable(version="claims-2")  # of the form of a result; what it comes from is in the settings, as ``code``
def measure(experiment: str, profile: Profile, seed: int, part: Mapping[str, Any], code: str) -> dict[str, Any]:
    """Run one part of one experiment with one seed; ``code`` must be that of the experiment as it is here."""
    known = load_experiment(experiment)
    here = code_identity(known.module)
    require(code == here, "code", code, f"{here}, another version of polyrelu runs here")
    found = known(profile, seed, **part)
    return {"values": Values(found.values).record(), "data": dict(found.data), "note": found.note}


def settings_of(
    claims: Iterable[Claim], profile: Profile, seeds: int | None = None, first: int = 0
) -> list[dict[str, Any]]:
    """What must be run for these claims; an experiment that several share, only once."""
    needed = {one.name: one for one in (load_experiment(claim.experiment) for claim in claims if claim.experiment)}
    return [
        {
            "experiment": name,
            "profile": profile,
            "seed": seed,
            "part": dict(part),
            "code": code_identity(experiment.module),
        }
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
    try:
        values = Values.from_record(value["values"])
        good = isinstance(value["data"], Mapping) and isinstance(value["note"], str)
    except (KeyError, TypeError, ValueError):
        good = False
    require(good, "out", file, "a measurement as polyrelu claims writes it; remove the file to measure again")
    return Measured(values, value["data"], value["note"])
