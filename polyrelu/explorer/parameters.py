"""Every number a page may ask for, with its least, most and usual value, one table for server and sliders; presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import final

from polyrelu.errors import InputError, require

MOST_WORK = 10**9  # samples x dim x width: a pass over the data then takes about a second
CHOICES = {"start": ("balanced", "gaussian"), "labels": ("coarse", "fine"), "data": ("mixture", "digits")}


def _short(value: object) -> str:
    """A value in a sentence, however long it came."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@final
@dataclass(frozen=True)
class Parameter:
    """``least <= value <= most``; ``step`` is what a slider moves by, 0 where any real number will do."""

    name: str
    least: float
    most: float
    usual: float
    step: float
    whole: bool
    meaning: str

    def check(self, value: object) -> float | int:
        """The value as the number it is, or a sentence why not."""
        kind = "a whole number" if self.whole else "a number"
        allowed = f"{kind} from {self.least:.15g} to {self.most:.15g}, for the page; polyrelu flow takes larger ones"
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not self.least <= value <= self.most:
            raise InputError(f"{self.name}={_short(value)}: expected {allowed}.")  # NaN too
        require(not self.whole or float(value).is_integer(), self.name, value, allowed)
        return int(value) if self.whole else float(value)


PARAMETERS = (
    Parameter("p", 1, 5, 1, 0.05, False, "power p of the ReLU"),
    Parameter("positive", 1, 10, 3, 1, True, "sub-classes of the class +1"),
    Parameter("negative", 1, 10, 3, 1, True, "sub-classes of the class −1"),
    Parameter("alpha", 0, 1, 0.1, 0.01, False, "noise α"),
    Parameter("dim", 2, 1000, 50, 1, True, "dimension D"),
    Parameter("samples", 20, 5000, 500, 10, True, "training points n"),
    Parameter("width", 2, 1000, 100, 1, True, "neurons h"),
    Parameter("log10_scale", -300, 0, -7, 0.1, False, "initial scale, log10"),
    Parameter("seed", 0, 2**31 - 1, 0, 1, True, "seed"),
)


@final
@dataclass(frozen=True)
class Setting:
    """What one picture is of. ``labels="fine"`` trains on sub-classes; ``data="digits"`` on even and odd digits."""

    p: float = 1.0
    positive: int = 3
    negative: int = 3
    alpha: float = 0.1
    dim: int = 50
    samples: int = 500
    width: int = 100
    log10_scale: float = -7.0
    seed: int = 0
    start: str = "balanced"
    labels: str = "coarse"
    data: str = "mixture"

    def __post_init__(self) -> None:
        """Refuse what is too much for a page, or what there is not."""
        for limit in PARAMETERS:
            object.__setattr__(self, limit.name, limit.check(getattr(self, limit.name)))
        for name, words in CHOICES.items():
            require(getattr(self, name) in words, name, _short(getattr(self, name)), f"one of {', '.join(words)}")
        clusters = self.positive + self.negative
        enough = f"at least {clusters}, one direction for each of {self.positive}+{self.negative} sub-classes"
        require(self.dim >= clusters or self.data == "digits", "dim", self.dim, enough)
        work = self.samples * self.dim * self.width
        allowed = f"at most {MOST_WORK:g}, for the page; lower one of them, or use polyrelu flow"
        require(work <= MOST_WORK, "samples x dim x width", f"{work:g}", allowed)

    @property
    def scale(self) -> float:
        """What both layers are multiplied by at the start."""
        return float(10**self.log10_scale)

    @classmethod
    def from_json(cls, given: object) -> Setting:
        """From what a page sent; unknown names are refused, missing ones are as usual."""
        if not isinstance(given, Mapping):
            raise InputError("setting: expected names and numbers.")
        known = [part.name for part in fields(cls)]
        for name in given:
            require(name in known, "setting", _short(name), f"names among {', '.join(known)}")
        return cls(**given)


@final
@dataclass(frozen=True)
class Preset:
    """A setting under a name; ``pgd`` is the radius of the published attack (0: none)."""

    id: str
    name: str
    setting: Setting
    pgd: float = 0.0


PRESETS = (  # words.js has the sentences that go with them
    Preset("averages", "ReLU averages", Setting(p=1)),
    Preset("decouples", "polynomial ReLU decouples", Setting(p=3)),
    Preset("large", "large initialisation", Setting(p=3, log10_scale=-0.3, start="gaussian")),
    Preset("fooled", "why PGD is fooled", Setting(p=3), pgd=0.85),
    Preset("fine", "fine labels", Setting(p=1, labels="fine")),
    Preset("digits", "a ReLU head on digits", Setting(p=1, data="digits", log10_scale=-3)),
)
