"""From measured numbers to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from polyrelu.claims.claim import Check, Claim, Measured, Profile, Standing, Verdict, at

GOOD = (Verdict.REPRODUCED, Verdict.ARTEFACT, Verdict.MEASURED)


@final
@dataclass(frozen=True)
class Outcome:
    """One run of an experiment as it was kept: which part and seed, what it gave or why it failed, and its file."""

    seed: int
    part: Mapping[str, Any]
    measured: Measured | None
    error: str = ""
    file: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Number:
    """A measured number, one value for each seed, beside where it should lie; ``holds`` is None without a check."""

    name: str
    values: tuple[float, ...]
    check: Check | None
    holds: bool | None

    @property
    def middle(self) -> float:
        """The median over the seeds (the upper one of two)."""
        return sorted(self.values)[len(self.values) // 2]


@final
@dataclass(frozen=True)
class Judgement:
    """A claim, what was measured and what follows. ``numbers``: the checked ones first, then ``why``, then the rest."""

    claim: Claim
    profile: Profile
    verdict: Verdict
    reason: str
    numbers: tuple[Number, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def seconds(self) -> float:
        """Time spent on its experiment."""
        return sum(outcome.seconds for outcome in self.outcomes)

    @property
    def as_expected(self) -> bool:
        """False when we stand for this claim and it did not come out. What was not run is neither."""
        expected = at(self.claim.expects, self.profile)
        return self.verdict in (expected, Verdict.NOT_RUN, Verdict.MEASURED) or (
            expected not in GOOD and self.verdict in GOOD
        )

    @property
    def shown(self) -> Number | None:
        """The number that stands first."""
        named = [number for number in self.numbers if number.name == self.claim.shown]
        return next(iter(named or self.numbers), None)


def judge(claim: Claim, profile: Profile, outcomes: Sequence[Outcome]) -> Judgement:
    """Compare; a claim none of whose experiment ran is "not run", one of which a part failed differs."""
    blocked = claim.experiment.needs(profile)
    if blocked or not outcomes:
        return Judgement(claim, profile, Verdict.NOT_RUN, blocked or "It was not measured.", (), ())
    failed = [outcome.error for outcome in outcomes if outcome.measured is None]
    if failed:
        return Judgement(claim, profile, Verdict.DIFFERS, f"The measurement failed: {failed[0]}", (), tuple(outcomes))
    values = _by_seed(claim, outcomes)
    checks, why = at(claim.checks, profile), at(claim.why, profile)
    reproduced = all(_holds(check, values) for check in checks)
    explained = bool(why) and all(_holds(check, values) for check in why)
    if reproduced:
        verdict = Verdict.MEASURED if claim.standing is Standing.UNKNOWN else Verdict.REPRODUCED
    else:
        verdict = Verdict.ARTEFACT if explained else Verdict.DIFFERS
    numbers = [Number(check.name, _of(check.name, values), check, _holds(check, values)) for check in (*checks, *why)]
    named = {number.name for number in numbers}
    rest = [name for name in values[0] if name not in named]
    numbers += [Number(name, _of(name, values), None, None) for name in rest]
    return Judgement(claim, profile, verdict, at(claim.reason, profile), tuple(numbers), tuple(outcomes))


def _by_seed(claim: Claim, outcomes: Sequence[Outcome]) -> list[dict[str, float]]:
    """All values of each seed, the parts put together."""
    seeds: dict[int, dict[str, float]] = {}
    for outcome in outcomes:
        if outcome.measured is not None:
            seeds.setdefault(outcome.seed, {}).update(outcome.measured.values)
    return [{**values, **claim.experiment.combine(values)} for values in seeds.values()]


def _of(name: str, values: Sequence[Mapping[str, float]]) -> tuple[float, ...]:
    return tuple(float(one.get(name, float("nan"))) for one in values)


def _holds(check: Check, values: Sequence[Mapping[str, float]]) -> bool:
    return all(check.holds(value) for value in _of(check.name, values))
