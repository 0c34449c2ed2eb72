"""From measured numbers to a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from polyrelu.claims.claim import Check, Claim, Standing, Verdict
from polyrelu.claims.experiment import Measured, load_experiment, together
from polyrelu.claims.profile import Profile, for_profile
from polyrelu.claims.quantity import Key, Values

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

    quantity: Key
    values: tuple[float, ...]
    check: Check | None
    holds: bool | None

    @property
    def name(self) -> str:
        """Its label."""
        return str(self.quantity)

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
        expected = for_profile(self.claim.expects, self.profile)
        return self.verdict in (expected, Verdict.NOT_RUN, Verdict.MEASURED) or (
            expected not in GOOD and self.verdict in GOOD
        )

    @property
    def shown(self) -> Number | None:
        """The number that stands first."""
        named = [number for number in self.numbers if number.quantity == self.claim.shown]
        return next(iter(named or self.numbers), None)


def judge(claim: Claim, profile: Profile, outcomes: Sequence[Outcome]) -> Judgement:
    """Compare; a claim none of whose experiment ran is "not run", one of which a part failed differs."""
    if not claim.experiment:
        return Judgement(claim, profile, Verdict.NOT_RUN, for_profile(claim.reason, profile), (), ())
    experiment = load_experiment(claim.experiment)
    blocked = experiment.needs(profile)
    if blocked or not outcomes:
        return Judgement(claim, profile, Verdict.NOT_RUN, blocked or "It was not measured.", (), ())
    runs: dict[int, list[Measured]] = {}
    for outcome in outcomes:
        if outcome.measured is None:
            reason = f"The measurement failed: {outcome.error}"
            return Judgement(claim, profile, Verdict.DIFFERS, reason, (), tuple(outcomes))
        runs.setdefault(outcome.seed, []).append(outcome.measured)
    values = [together(experiment, parts) for parts in runs.values()]
    checks, why = for_profile(claim.checks, profile), for_profile(claim.why, profile)
    checked = [_number(check.quantity, values, check) for check in (*checks, *why)]
    reproduced = all(number.holds for number in checked[: len(checks)])
    explained = bool(why) and all(number.holds for number in checked[len(checks) :])
    if reproduced:
        verdict = Verdict.MEASURED if claim.standing is Standing.UNKNOWN else Verdict.REPRODUCED
    else:
        verdict = Verdict.ARTEFACT if explained else Verdict.DIFFERS
    named = {number.quantity for number in checked}
    rest = [_number(quantity, values) for quantity in values[0] if quantity not in named]
    missing = [values[0].missing(quantity) for quantity in named if quantity not in values[0]]
    reason = f"Of its numbers, {missing[0]}." if missing else for_profile(claim.reason, profile)
    return Judgement(claim, profile, verdict, reason, (*checked, *rest), tuple(outcomes))


def judge_all(claims: Sequence[Claim], profile: Profile, kept: Mapping[str, Sequence[Outcome]]) -> list[Judgement]:
    """A verdict for every claim; ``kept``: what was measured, by experiment."""
    return [judge(claim, profile, kept.get(claim.experiment, ())) for claim in claims]


def _number(quantity: Key, values: Sequence[Values], check: Check | None = None) -> Number:
    """The values of each seed, beside the check; NaN, for which no check holds, where it was not measured."""
    found = tuple(float(one.get(quantity, math.nan)) for one in values)
    return Number(quantity, found, check, None if check is None else all(map(check.holds, found)))
