"""A claim: one sentence of a paper, the experiment that tests it, and what must come out.

    verdict = reproduced       if every number lies where the source says
            = source artefact  if not, and the numbers in ``why`` show what made the source's
            = differs          otherwise

A number lies where it should when ``low <= value <= high`` for every seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import final

from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key
from polyrelu.errors import require


class Standing(Enum):
    """How well the source's number is known."""

    PRINTED = "printed"
    SECONDARY = "printed second-hand"
    READ_OFF = "read off a plot"
    DERIVED = "derived by us"
    UNKNOWN = "not published"


class Verdict(Enum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    ARTEFACT = "source artefact"
    MEASURED = "measured"  # the source gives no number to compare with
    NOT_RUN = "not run"


@final
@dataclass(frozen=True)
class Check:
    """``low <= quantity <= high``; ``published`` is what the source gives for this number, if it gives one."""

    quantity: Key
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None

    def __post_init__(self) -> None:
        require(self.low <= self.high, "low", self.low, f"a bound <= high={self.high} in the check of {self.quantity}")
        bounded = math.isfinite(self.low) or math.isfinite(self.high)
        require(bounded, "low", self.low, f"a finite bound, or the check of {self.quantity} cannot fail")

    def holds(self, value: float) -> bool:
        """Does the number lie where it should? NaN never does."""
        return self.low <= value <= self.high


def within(quantity: Key, value: float, tolerance: float, published: float | None = None) -> Check:
    """``|quantity - value| <= tolerance``; ``value`` is the published one unless another is given."""
    return Check(quantity, value - tolerance, value + tolerance, value if published is None else published)


def at_least(quantity: Key, bound: float, published: float | None = None) -> Check:
    """``quantity >= bound``."""
    return Check(quantity, low=bound, published=published)


def at_most(quantity: Key, bound: float, published: float | None = None) -> Check:
    """``quantity <= bound``."""
    return Check(quantity, high=bound, published=published)


@final
@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of a paper and its test.

    ``experiment``: the name of the one that measures its numbers, such as "mv25.phases.random_start"; "" where there is
    nothing to measure, ``reason`` saying why.
    ``published``: what the source gives, as text. ``settings``: in words, what is run. ``checks``: where the numbers
    must lie for the claim to be reproduced. ``why``: where they must lie to show that the source's number is an
    artefact. ``reason``: what we know about a claim that is not simply reproduced. ``expects``: the verdict we stand
    for; a worse one is a failure. ``shown``: the value that stands first (by default the first check's).
    Checks, settings, expects and reason may be one for both profiles or a mapping by profile.
    """

    id: str
    sentence: str
    paper: str
    where: str
    standing: Standing
    published: str
    settings: str | Mapping[Profile, str]
    experiment: str
    checks: tuple[Check, ...] | Mapping[Profile, tuple[Check, ...]]
    why: tuple[Check, ...] | Mapping[Profile, tuple[Check, ...]] = ()
    reason: str | Mapping[Profile, str] = ""
    expects: Verdict | Mapping[Profile, Verdict] = Verdict.REPRODUCED
    shown: Key = ""

    @property
    def group(self) -> str:
        """The letter of its id."""
        return self.id[0]
