"""Single values, checked: whole numbers, finite numbers with bounds, flags, choices, seeds, dtypes.

Every function gives the value as Python's own type, or raises an `InputError` that names the argument, what came and
what is allowed. Numbers of numpy are numbers; booleans are not. Loads neither torch nor numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from polyrelu.errors import require

if TYPE_CHECKING:
    import torch


def is_whole(value: object, least: float = -math.inf) -> bool:
    """Is it a whole number >= ``least`` (Python's or numpy's, not a bool)?"""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_number(value: object, *, least: float = -math.inf, above: float = -math.inf, below: float = math.inf) -> bool:
    """Is it a real number that a float holds, finite, with value >= ``least``, > ``above`` and < ``below``?"""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        number = float(value)
    except OverflowError:  # a whole number with more than 308 digits
        return False
    return math.isfinite(number) and least <= number < below and number > above


def whole_number(argument: str, value: Any, least: int = 1, *, any_size: bool = False) -> int:
    """``value`` as an int >= ``least`` that fits in 63 bits, or is of any size."""
    require(is_whole(value, least), argument, _quoted(value), f"a whole number >= {least}")
    require(any_size or int(value) < 2**63, argument, value, "a whole number that fits in 63 bits")
    return int(value)


def whole_numbers(least: int = 1, **values: Any) -> dict[str, int]:
    """Every value as a whole number >= ``least``, under its own name."""
    return {name: whole_number(name, value, least) for name, value in values.items()}


def finite_number(argument: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """``value`` as a finite float with value >= ``least`` and value > ``above``."""
    limit = f" >= {least:g}" if math.isfinite(least) else f" > {above:g}" if math.isfinite(above) else ""
    require(is_number(value, least=least, above=above), argument, _quoted(value), f"a finite number{limit}")
    return float(value)


def positive_numbers(**values: Any) -> dict[str, float]:
    """Every value as a finite number > 0, under its own name."""
    return {name: finite_number(name, value, above=0) for name, value in values.items()}


def check_power(p: Any) -> None:
    """An InputError unless ``p`` is a Python number >= 1, as `finite_number` makes them."""
    require(isinstance(p, int | float) and finite_number("p", p, least=1) == p, "p", p, "a finite number >= 1")


def flag(argument: str, value: Any) -> bool:
    """``value`` as True or False; numpy's, 1 and 0 will do."""
    plain = (isinstance(value, Integral) or type(value).__name__ in ("bool_", "bool")) and value in (0, 1)
    require(plain, argument, value, "True or False")
    return bool(value)


def choice(argument: str, value: Any, allowed: Mapping[str, Any]) -> str:
    """``value`` if it is a key of ``allowed``, or an InputError that lists them."""
    known = isinstance(value, str) and value in allowed
    require(known, argument, repr(value), " or ".join(repr(key) for key in allowed))
    return str(value)


def seed_number(argument: str, value: Any) -> int:
    """A whole number >= 0 of any size, as numpy's random streams take them; `whole_number` for those of torch."""
    return whole_number(argument, value, 0, any_size=True)


def floating_dtype(dtype: Any) -> torch.dtype:
    """torch.float32 or torch.float64."""
    import torch

    known = isinstance(dtype, torch.dtype) and dtype in (torch.float32, torch.float64)
    require(known, "dtype", dtype, "torch.float32 or torch.float64")
    return dtype  # type: ignore[no-any-return]


def dtype_named(name: Any) -> torch.dtype:
    """The dtype that a text calls ``float32`` or ``float64``."""
    import torch

    dtypes = {"float32": torch.float32, "float64": torch.float64}
    require(isinstance(name, str) and name in dtypes, "dtype", name, "float32 or float64")
    return dtypes[name]


def _quoted(value: Any) -> Any:
    """A text in quotation marks, so that "3" is not taken for 3."""
    return repr(value) if isinstance(value, str) else value


def value_text(value: Any) -> str:
    """A value in a message: short, on one line, and whatever it is."""
    try:
        text = repr(value)
    except Exception:  # an object that cannot be shown is named
        text = ""
    plain = text.encode("utf-8", "replace").decode()
    return plain if 0 < len(plain) <= 60 and plain.isprintable() else type(value).__name__
