"""What measures the numbers that claims are about. An experiment is a function of the profile, the seed and its part:

    @experiment(over={"p": (1.0, 3.0)}, repeats={"quick": 1, "paper": 5})
    def robust_accuracy(profile: Profile, seed: int, p: float) -> Measured: ...

Its name is that of the function after its module, from this subpackage on: "mv24.robust_accuracy.robust_accuracy".
Claims refer to it by that name, and its module is imported only to run it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from polyrelu.claims.profile import Profile, for_profile
from polyrelu.claims.quantity import Values, located
from polyrelu.errors import InputError

SUBPACKAGE = __name__.rpartition(".")[0]
Parts = Callable[[Profile], Sequence[Mapping[str, Any]]]
Combine = Callable[[Any], Mapping[Any, float]]


@final
@dataclass(frozen=True)
class Measured:
    """What one run of an experiment gave: ``values`` are judged, ``data`` are drawn, ``note`` is read.

    Everything is plain: numbers, text, and lists and dictionaries of them (NumPy arrays and tensors become lists).
    """

    values: Mapping[Any, float]
    data: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Values(self.values))


@final
@dataclass(frozen=True)
class Experiment:
    """``run(profile, seed, **part) -> Measured``, for every part and every seed; several claims may be about one.

    Calling the experiment does the same, and every value is located in its part: "median radius" of the part p = 3 is
    Quantity("median radius", p=3). ``combine`` adds what only all parts together show (a slope, an order).
    ``needs(profile)`` says why it cannot run there, or "".
    """

    run: Callable[..., Measured]
    parts: Parts
    repeats: Mapping[Profile, int]
    combine: Combine
    needs: Callable[[Profile], str]

    @property
    def module(self) -> str:
        """Where its code is."""
        return self.run.__module__

    @property
    def name(self) -> str:
        """Where results, claims and figures find it."""
        return f"{self.module.removeprefix(SUBPACKAGE + '.')}.{self.run.__name__}"

    def __call__(self, profile: Profile, seed: int, **part: Any) -> Measured:
        """Measure one part with one seed."""
        found = self.run(profile, seed, **part)
        return Measured({located(key, part): value for key, value in found.values.items()}, found.data, found.note)


_REGISTERED: dict[str, Experiment] = {}


def together(experiment: Experiment, parts: Iterable[Measured]) -> Values:
    """The values of all parts of one seed, and what follows from them."""
    values = Values(item for one in parts for item in one.values.items())
    return Values({**values, **experiment.combine(values)})


def experiment(
    *,
    over: Mapping[str, Sequence[Any] | Mapping[Profile, Sequence[Any]]] = {},
    parts: Parts | None = None,
    repeats: Mapping[Profile, int] = {"quick": 2, "paper": 1},
    combine: Combine = lambda values: {},
    needs: Callable[[Profile], str] = lambda profile: "",
) -> Callable[[Callable[..., Measured]], Experiment]:
    """Make an experiment of a function and register it under its name.

    over : the values of each argument, for both profiles or by profile; its parts are all combinations, the last
        argument changing fastest
    parts : instead of ``over``, the arguments of each part
    """

    def combinations(profile: Profile) -> list[dict[str, Any]]:
        lists = [for_profile(values, profile) for values in over.values()]
        return [dict(zip(over, row, strict=True)) for row in itertools.product(*lists)]

    def register(run: Callable[..., Measured]) -> Experiment:
        made = Experiment(run, parts or combinations, repeats, combine, needs)
        if made.name in _REGISTERED:
            raise ValueError(f"two experiments are named {made.name}")
        _REGISTERED[made.name] = made
        return made

    return register


def load_experiment(name: str) -> Experiment:
    """The experiment of this name; its module is imported now."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    module, _, function = name.rpartition(".")
    try:
        importlib.import_module(f"{SUBPACKAGE}.{module}")
        return _REGISTERED[name]
    except (KeyError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and not f"{SUBPACKAGE}.{module}".startswith(str(error.name)):
            raise  # a library that the experiment needs
        known = [one.rpartition(".")[2] for one in _REGISTERED if one.rpartition(".")[0] == module]
        has = f"an experiment of polyrelu.claims.{module}, which has {', '.join(known) or 'none'}"
        raise InputError(f"experiment={name}: expected {has}; {function or name!r} is none.") from None
