"""What every net shares: checked inputs, one logit as (n,), a config that rebuilds it; and the polynomial ReLU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from polyrelu.checks import dtype_named, enough_memory, finite_number, whole_number
from polyrelu.errors import InputError, require


class Net(nn.Module):
    """A scoring function of (n, dim) rows: (n,) when ``outputs == 1``, else (n, outputs).

    ``settings`` are the constructor arguments that, with the tensors, rebuild the net.
    """

    def __init__(self, dim: int, outputs: int, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.dim = whole_number("dim", dim)
        self.outputs = whole_number("outputs", outputs)
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
            whole_number(name, getattr(self, name))

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
        with sizes_limited_by(config, tensors):
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


class ConvolutionalNet(Net):
    """A net of images of ``shape`` (channels, height, width), flat in rows, plane after plane, or not."""

    shape: tuple[int, int, int]

    def images(self, X: Tensor) -> Tensor:
        """Images (n, channels, height, width), from those or from flat rows."""
        require(isinstance(X, Tensor) and not X.is_nested, "X", type(X).__name__, "a tensor of images")
        if tuple(X.shape[1:]) not in ((self.dim,), self.shape):
            raise InputError(f"X of shape {tuple(X.shape)}: expected (n, {self.dim}) or (n, {str(self.shape)[1:]}.")
        return self.fitting(X).reshape(len(X), *self.shape)


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def scale_and_seed(scale: float, seed: int) -> dict[str, Any]:
    """A checked scale (>= 0) and seed, under those names."""
    return {"scale": finite_number("scale", scale, least=0), "seed": whole_number("seed", seed, least=0)}


def generator(seed: int) -> torch.Generator:
    """A CPU generator started from ``seed``; the same numbers on every machine type."""
    return torch.Generator().manual_seed(whole_number("seed", seed, least=0))


def normal(shape: tuple[int, ...], std: float, source: torch.Generator, dtype: torch.dtype) -> nn.Parameter:
    """A parameter with N(0, std^2) entries, drawn in float64 so that both types of one seed agree."""
    return nn.Parameter((draw(torch.randn, shape, source) * float(std)).to(dtype))


_LEFT: ContextVar[list[int] | None] = ContextVar("numbers that a net being restored may still ask for", default=None)


@contextmanager
def sizes_limited_by(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Iterator[None]:
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


def count_numbers(*shape: int) -> None:
    """Count the numbers of a tensor about to be made against those stored, inside `sizes_limited_by`."""
    left = _LEFT.get()
    if left is not None:
        left[0] -= math.prod(shape)
        require(left[0] >= 0, "sizes", " x ".join(map(str, shape)), "as many numbers as are stored")


def draw(sampler: Callable[..., Tensor], shape: tuple[int, ...], source: torch.Generator | None = None) -> Tensor:
    """``sampler(shape)`` in float64 (torch.randn, rand or zeros); an InputError if no memory holds so many numbers."""
    count_numbers(*shape)
    more = {} if source is None else {"generator": source}
    with enough_memory(f"{' x '.join(map(str, shape))} numbers"):
        return sampler(shape, dtype=torch.float64, **more)


def relu_power(z: Tensor, p: float) -> Tensor:
    """relu(z)^p for real p >= 1 (Min & Vidal, ICML 2024, eq. of the model).

    Derivatives of every order stay finite at z <= 0, where they are 0: the power is never taken of 0.
    """
    good = isinstance(z, Tensor) and z.dtype in (torch.float32, torch.float64) and z.layout == torch.strided
    good = good and not z.is_nested
    require(good, "z", getattr(z, "dtype", type(z).__name__), "a dense tensor in float32 or float64")
    require(isinstance(p, int | float) and 0 <= p < 2**63, "p", p, "a number >= 0")
    if p == 1:
        return z.relu()
    if p == 2:
        return z.relu().square()
    if p == 3:
        z = z.relu()
        return z * z.square()
    if p == 4:
        return z.relu().square().square()
    on = z > 0
    return torch.where(on, torch.where(on, z, 1.0).pow(p), 0.0)
