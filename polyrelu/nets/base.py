"""What every net in this room shares: checked inputs, one logit as (n,), and a config that rebuilds it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.errors import InputError, require

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Net(nn.Module):
    """A scoring function of (n, dim) rows: (n,) when ``outputs == 1``, else (n, outputs).

    ``settings`` are the constructor arguments that, with the tensors, rebuild the net.
    """

    def __init__(self, dim: int, outputs: int, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.dim = count("dim", dim)
        self.outputs = count("outputs", outputs)
        require(isinstance(settings, Mapping), "settings", type(settings).__name__, "the arguments by name")
        self.settings = dict(settings)

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of the weights, hence of the inputs this net takes."""
        first: Tensor = next(iter(self.state_dict().values()))
        return first.dtype

    def check_settings(self) -> None:
        """An InputError if sizes were set, since the net was made, that no constructor accepts."""
        for name in ("dim", "outputs"):
            count(name, getattr(self, name))

    def check_shapes(self, **shapes: tuple[int, ...]) -> None:
        """An InputError if one of these tensors has another shape; there need not be a bias nor a centre."""
        for name, shape in shapes.items():
            tensor = getattr(self, name, None)
            found = tuple(tensor.shape) if isinstance(tensor, Tensor) else None
            fits = found == shape or (tensor is None and name in ("bias", "centre"))
            require(fits, f"net.{name}.shape", found, str(shape))

    def rows(self, X: Tensor) -> Tensor:
        """``X`` itself, after checking that it is (n, dim)."""
        plain = isinstance(X, Tensor) and not X.is_nested
        require(plain, "X", type(X).__name__, "a tensor (n, D); torch.as_tensor(X) makes one")
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError(f"X of shape {tuple(X.shape)}: expected (n, {self.dim}), one row per point.")
        return X

    def inputs(self, X: Tensor) -> Tensor:
        """The same, for the product with the weights: in their dtype and where they are."""
        return self.fitting(self.rows(X))

    def fitting(self, X: Tensor) -> Tensor:
        """``X`` itself, after checking that it is a dense tensor of the weights' dtype, where they are."""
        own = next(itertools.chain(self.parameters(), self.buffers()), X)
        fits = X.dtype == own.dtype and X.device == own.device and X.layout == torch.strided
        require(fits, "X", f"{X.dtype} {X.layout} on {X.device}", f"a dense {own.dtype} tensor on {own.device}")
        return X

    def answer(self, logits: Tensor) -> Tensor:
        """(n, 1) becomes (n,); several logits stay as they are."""
        return logits[:, 0] if self.outputs == 1 else logits

    def config(self) -> dict[str, Any]:
        """Hyper-parameters that JSON can hold; with the tensors they are the whole net."""
        return {**self.settings, "dtype": str(self.dtype).removeprefix("torch.")}

    @classmethod
    def restore(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Net:
        """The net that had this ``config()`` and these ``state_dict()`` tensors."""
        with no_larger_than(config, tensors):
            net = cls(**{**config, "dtype": dtype_named(config.get("dtype"))})
        net.fill(tensors)
        return net

    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy ``tensors`` in; every name, shape and type must be the net's own."""
        own = self.state_dict()
        require(tensors.keys() == own.keys(), "tensors", sorted(tensors), f"exactly {sorted(own)}")
        for name, tensor in own.items():
            given = tensors[name]
            fits = given.shape == tensor.shape and given.dtype == tensor.dtype
            require(fits, name, _describe(given), _describe(tensor))
            tensor.copy_(given)


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def count(argument: str, value: Any, least: int = 1) -> int:
    """``value`` as an int >= ``least``, or an InputError naming ``argument``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
    require(whole, argument, value, f"a whole number >= {least}")
    require(int(value) < 2**63, argument, value, "a whole number below 2^63")
    return int(value)


def flag(argument: str, value: Any) -> bool:
    """``value`` as True or False; 1 and 0 will do."""
    plain = isinstance(value, Integral | np.bool_) and value in (0, 1)
    require(plain, argument, value, "True or False")
    return bool(value)


def real(argument: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """``value`` as a finite float with ``value >= least`` and ``value > above``."""
    limit = f" >= {least:g}" if math.isfinite(least) else f" > {above:g}" if math.isfinite(above) else ""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number with more than 308 digits
        number = math.inf
    require(math.isfinite(number) and number >= least and number > above, argument, value, f"a finite number{limit}")
    return number


def check_power(p: Any) -> None:
    """An InputError unless ``p`` is a Python number >= 1, as `real` makes them."""
    require(isinstance(p, int | float) and real("p", p, least=1) == p, "p", p, "a finite number >= 1")


def counts(**values: Any) -> dict[str, Any]:
    """Every value as a whole number >= 1, under its own name."""
    return {name: count(name, value) for name, value in values.items()}


def start(scale: float, seed: int) -> dict[str, Any]:
    """A checked scale (>= 0) and seed, under those names."""
    return {"scale": real("scale", scale, least=0), "seed": count("seed", seed, least=0)}


def choice(argument: str, value: str, allowed: Mapping[str, Any]) -> str:
    """``value`` if it is a key of ``allowed``, or an InputError that lists them."""
    known = isinstance(value, str) and value in allowed
    require(known, argument, repr(value), " or ".join(repr(key) for key in allowed))
    return value


def floating(dtype: torch.dtype) -> torch.dtype:
    """float32 or float64; other types are refused by name."""
    known = isinstance(dtype, torch.dtype) and dtype in DTYPES.values()
    require(known, "dtype", dtype, "torch.float32 or torch.float64")
    return dtype


def dtype_named(name: Any) -> torch.dtype:
    """The torch type called ``name`` in a config."""
    return DTYPES[choice("dtype", name, DTYPES)]


def generator(seed: int) -> torch.Generator:
    """A CPU generator started from ``seed``; the same numbers on every machine type."""
    require(count("seed", seed, least=0) < 2**63, "seed", seed, "a whole number below 2^63")
    return torch.Generator().manual_seed(int(seed))


def normal(shape: tuple[int, ...], std: float, source: torch.Generator, dtype: torch.dtype) -> nn.Parameter:
    """A parameter with N(0, std^2) entries, drawn in float64 so that both types of one seed agree."""
    return nn.Parameter((drawn(torch.randn, shape, source) * float(std)).to(dtype))


_LEFT: ContextVar[list[int] | None] = ContextVar("numbers that a net being restored may still ask for", default=None)


@contextmanager
def no_larger_than(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """What is made inside holds no more numbers than twice those stored: a file cannot announce sizes it has not."""
    stored = sum(tensor.numel() for tensor in tensors.values())
    for name, size in config.items():
        fits = name == "seed" or not isinstance(size, int) or size <= stored
        require(fits, name, size, f"a size that the {stored} stored numbers have")
    token = _LEFT.set([2 * stored])
    try:
        yield
    finally:
        _LEFT.reset(token)


def afford(*shape: int) -> None:
    """Count the numbers of a tensor about to be made against those stored, inside `no_larger_than`."""
    left = _LEFT.get()
    if left is not None:
        left[0] -= math.prod(shape)
        require(left[0] >= 0, "sizes", " x ".join(map(str, shape)), "as many numbers as are stored")


def drawn(draw: Callable[..., Tensor], shape: tuple[int, ...], source: torch.Generator | None = None) -> Tensor:
    """``draw(shape)`` in float64 (torch.randn, rand or zeros), or an InputError if no memory holds so many numbers."""
    afford(*shape)
    more = {} if source is None else {"generator": source}
    try:
        return draw(shape, dtype=torch.float64, **more)
    except (RuntimeError, TypeError, OverflowError):
        asked = " x ".join(map(str, shape))
        raise InputError(f"not enough memory for {asked} numbers: expected smaller sizes.") from None
