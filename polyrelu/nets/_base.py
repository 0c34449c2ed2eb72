"""What every net in this room shares: checked inputs, one logit as (n,), and a config that rebuilds it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

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
        self.settings = dict(settings)

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of the weights, hence of the inputs this net takes."""
        first: Tensor = next(iter(self.state_dict().values()))
        return first.dtype

    def rows(self, X: Tensor) -> Tensor:
        """``X`` itself, after checking that it is (n, dim)."""
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError(f"X of shape {tuple(X.shape)}: expected (n, {self.dim}), one row per point.")
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
    return int(value)


def real(argument: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """``value`` as a finite float with ``value >= least`` and ``value > above``."""
    limit = f" >= {least:g}" if math.isfinite(least) else f" > {above:g}" if math.isfinite(above) else ""
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    require(number and float(value) >= least and float(value) > above, argument, value, f"a finite number{limit}")
    return float(value)


def counts(**values: Any) -> dict[str, Any]:
    """Every value as a whole number >= 1, under its own name."""
    return {name: count(name, value) for name, value in values.items()}


def start(scale: float, seed: int) -> dict[str, Any]:
    """A checked scale (>= 0) and seed, under those names."""
    return {"scale": real("scale", scale, least=0), "seed": count("seed", seed, least=0)}


def choice(argument: str, value: str, allowed: Mapping[str, Any]) -> str:
    """``value`` if it is a key of ``allowed``, or an InputError that lists them."""
    require(value in allowed, argument, repr(value), " or ".join(repr(key) for key in allowed))
    return value


def floating(dtype: torch.dtype) -> torch.dtype:
    """float32 or float64; other types are refused by name."""
    require(dtype in DTYPES.values(), "dtype", dtype, "torch.float32 or torch.float64")
    return dtype


def dtype_named(name: Any) -> torch.dtype:
    """The torch type called ``name`` in a config."""
    return DTYPES[choice("dtype", name, DTYPES)]


def generator(seed: int) -> torch.Generator:
    """A CPU generator started from ``seed``; the same numbers on every machine type."""
    return torch.Generator().manual_seed(count("seed", seed, least=0))


def normal(shape: tuple[int, ...], std: float, source: torch.Generator, dtype: torch.dtype) -> nn.Parameter:
    """A parameter with N(0, std^2) entries, drawn in float64 so that both types of one seed agree."""
    return nn.Parameter((torch.randn(shape, generator=source, dtype=torch.float64) * std).to(dtype))
