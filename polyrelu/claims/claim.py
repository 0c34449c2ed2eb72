"""A claim: one sentence of a paper, the experiment that tests it, and what must come out.

    verdict = reproduced       if every number lies where the source says
            = source artefact  if not, and the numbers in ``why`` show what made the source's
            = differs          otherwise

A number lies where it should when ``low <= value <= high`` for every seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeVar, final

from polyrelu.errors import require

Profile = Literal["quick", "paper"]
PROFILES: tuple[Profile, ...] = ("quick", "paper")
T = TypeVar("T")


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
    """``low <= number <= high``; ``published`` is what the source gives for this number, if it gives one."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None

    def __post_init__(self) -> None:
        require(self.low <= self.high, "low", self.low, f"a bound <= high={self.high} in the check of {self.name}")
        bounded = math.isfinite(self.low) or math.isfinite(self.high)
        require(bounded, "low", self.low, f"a finite bound, or the check of {self.name} cannot fail")

    def holds(self, value: float) -> bool:
        """Does the number lie where it should? NaN never does."""
        return self.low <= value <= self.high


def near(name: str, value: float, tolerance: float, published: float | None = None) -> Check:
    """``|number - value| <= tolerance``; ``value`` is the published one unless another is given."""
    return Check(name, value - tolerance, value + tolerance, value if published is None else published)


def at_least(name: str, bound: float, published: float | None = None) -> Check:
    """``number >= bound``."""
    return Check(name, low=bound, published=published)


def at_most(name: str, bound: float, published: float | None = None) -> Check:
    """``number <= bound``."""
    return Check(name, high=bound, published=published)


@final
@dataclass(frozen=True)
class Measured:
    """What one run of an experiment gave: ``values`` are judged, ``data`` are drawn, ``note`` is read.

    Everything is plain: numbers, text, and lists and dictionaries of them (NumPy arrays and tensors become lists).
    """

    values: Mapping[str, float]
    data: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@final
@dataclass(frozen=True)
class Experiment:
    """``run(profile, seed, **part) -> Measured``, for every part and every seed; claims may share one.

    The values of all parts are put together, so their names must differ; ``combine`` adds what only all parts can tell
    (a slope, an order). ``needs(profile)`` says why it cannot run there, or "".
    """

    run: Callable[..., Measured]
    parts: Callable[[Profile], Sequence[Mapping[str, Any]]] = lambda profile: ({},)
    repeats: Mapping[Profile, int] = field(default_factory=lambda: {"quick": 2, "paper": 1})
    combine: Callable[[Mapping[str, float]], Mapping[str, float]] = lambda values: {}
    needs: Callable[[Profile], str] = lambda profile: ""

    @property
    def name(self) -> str:
        """As "module.function"; where results and figures find it."""
        return f"{self.run.__module__.rpartition('.')[2]}.{self.run.__name__}"


@final
@dataclass(frozen=True)
class Claim:
    """One sentence of a paper and its test.

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
    experiment: Experiment
    checks: tuple[Check, ...] | Mapping[Profile, tuple[Check, ...]]
    why: tuple[Check, ...] | Mapping[Profile, tuple[Check, ...]] = ()
    reason: str | Mapping[Profile, str] = ""
    expects: Verdict | Mapping[Profile, Verdict] = Verdict.REPRODUCED
    shown: str = ""

    @property
    def group(self) -> str:
        """The letter of its id."""
        return self.id[0]


def at(choice: T | Mapping[Profile, T], profile: Profile) -> T:
    """The one for this profile."""
    return choice[profile] if isinstance(choice, Mapping) else choice
