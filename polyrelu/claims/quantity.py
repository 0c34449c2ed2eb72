"""What a measured number is a number of: a name alone, or a name and where it was measured.

    values = Values({"stable rank": 1.2, Quantity("robust accuracy", p=3, radius=0.6): 0.97})
    values["stable rank"], values[Quantity("robust accuracy", radius=0.6, p=3)]
    values.along("radius", "robust accuracy", p=3)   ->   {0.6: 0.97}

Text is made from a quantity for people to read, and never read again.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from polyrelu.errors import require

Scalar: TypeAlias = str | int | float  # bool being int
SYMBOLS = {"alpha": "α", "dim": "D"}  # in texts


@final
@dataclass(frozen=True, init=False)
class Quantity:
    """``name`` at the places ``where``, in the order of their names; a quantity without a place is its name alone."""

    name: str
    where: tuple[tuple[str, Scalar], ...]

    def __init__(self, name: str, /, **where: Scalar) -> None:
        """As Quantity("robust accuracy", p=3, radius=0.6)."""
        require(len(where) > 0, "where", "nothing", f"where {name!r} is measured, or the name alone as the quantity")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "where", tuple(sorted(where.items())))

    def __str__(self) -> str:
        return ", ".join([self.name, *(_place(key, value) for key, value in self.where)])


Key: TypeAlias = str | Quantity


def _place(key: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return key if value else f"not {key}"
    return value if isinstance(value, str) else f"{SYMBOLS.get(key, key)} = {value:g}"


def located(key: Key, part: Mapping[str, Scalar]) -> Key:
    """The quantity in one part of an experiment."""
    if not part:
        return key
    return Quantity(key, **part) if isinstance(key, str) else Quantity(key.name, **part, **dict(key.where))


@final
class Values(dict[Key, float]):
    """Measured numbers by quantity; one that was not measured is an error that names the nearest."""

    def __missing__(self, key: Key) -> float:
        raise KeyError(self.missing(key))

    def missing(self, key: Key) -> str:
        """What to say about a quantity that was not measured."""
        near = difflib.get_close_matches(str(key), list(map(str, self)), n=1, cutoff=0)
        return f"{str(key)!r} was not measured" + (f"; the nearest is {near[0]!r}" if near else "")

    def along(self, axis: str, name: str, **where: Scalar) -> dict[Any, float]:
        """The numbers of one quantity by their place on ``axis``, the others being ``where``, in the measured order."""
        found = {}
        for key, value in self.items():
            if isinstance(key, Quantity) and key.name == name:
                places = dict(key.where)
                if axis in places and {axis: places[axis], **where} == places:
                    found[places[axis]] = value
        if not found:
            raise KeyError(self.missing(Quantity(name, **where, **{axis: "..."})))
        return found

    def record(self) -> list[dict[str, Any]]:
        """As plain values."""
        return [
            {"quantity": key, "value": value}
            if isinstance(key, str)
            else {"quantity": key.name, "where": dict(key.where), "value": value}
            for key, value in self.items()
        ]

    @classmethod
    def from_record(cls, record: Any) -> Values:
        """Read again; ValueError for anything else."""
        if not isinstance(record, Sequence):
            raise ValueError("values: expected a list")
        return cls(_item(one) for one in record)


def _item(one: Any) -> tuple[Key, float]:
    match one:
        case {"quantity": str(name), "value": int() | float() as value, **rest} if not rest:
            return name, value
        case {"quantity": str(name), "where": dict(where), "value": int() | float() as value, **rest} if not rest:
            if where and all(isinstance(place, Scalar) for place in where.values()):
                return Quantity(name, **where), value
    raise ValueError(f"values: expected a quantity, where it is measured and its value, not {one!r}")
