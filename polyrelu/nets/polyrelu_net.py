r"""The network of both papers, in a form that starts at any scale.

f(x) = sum_j v_j relu(<x - c, w_j>)^p / |w_j|^(p-1)  [ / |x - c|^(p-1) ]  + b
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import (
    check_power,
    choice,
    dtype_named,
    finite_number,
    flag,
    floating_dtype,
    plain_tensor,
    whole_number,
)
from polyrelu.errors import require
from polyrelu.nets.base import Net, generator, relu_power, sizes_limited_by
from polyrelu.nets.initialisation import INITIALISATIONS, Plan
from polyrelu.nets.polar import Polar, ScaledWeights, polar_form, scaled_weights

M = TypeVar("M", bound=nn.Module)


class PolyReLUNet(Net):
    r"""f(x) = sum_j v_j relu(<x - c, w_j>)^p / |w_j|^(p-1) + b  (Min & Vidal, ICML 2024).

    With ``normalise_input`` also divided by |x - c|^(p-1), the published choice for real data. Degree 2 in (W, v)
    for every p; degree p in x - c, or 1 with ``normalise_input``. p = 1 is the two-layer ReLU net.

    Computed as r_j relu(<x, w_j>/r_j)^p, r_j = |w_j|, so that nothing underflows where f does not. The true weights
    are exp(log_scale_j) * weight_j and exp(log_scale_j) * output_j: ``log_scale`` is 0 where both norms are
    above 1e-12 in float32 (1e-140 in float64) and holds them otherwise, so ``scale=1e-300`` exists in
    float32. ``log_balance``, zero unless |w_j| and |v_j| are more than 1e24 apart, is added to the first exponent
    and taken from the second. A step on ``weight`` is a step on w_j only where ``is_plain()``.

    Parameters
    ----------
    dim, width, outputs : number of inputs, neurons and logits; one logit comes back as (n,), more as (n, outputs)
    p : real, >= 1
    init : "gaussian", "balanced", "nudged", "kaiming" or "zeros"; see `polyrelu.nets.initialisation`
    scale, seed : what both layers of the drawn start are multiplied by, and what it is drawn from
    centre : Tensor [dim] subtracted from x, or None
    bias : whether an output bias is trained
    centres, nudge : for init="nudged" only, centres [K, dim] and the fraction moved towards one of them

    Examples
    --------
    >>> net = PolyReLUNet(1000, 200, p=3.0, init="balanced", scale=1e-300)
    >>> net.polar().log_r.mean()                       # log(1e-300 sqrt(1000)) = -687.3
    """

    weight: nn.Parameter
    output: nn.Parameter
    bias: nn.Parameter | None
    centre: Tensor | None
    log_scale: Tensor
    log_balance: Tensor

    def __init__(
        self,
        dim: int,
        width: int,
        p: float = 3.0,
        outputs: int = 1,
        *,
        init: str = "gaussian",
        scale: float = 1.0,
        seed: int = 0,
        centre: Tensor | None = None,
        bias: bool = False,
        normalise_input: bool = False,
        centres: Tensor | None = None,
        nudge: float = 0.05,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(dim, outputs, {})
        self.width = whole_number("width", width)
        self.p = finite_number("p", p, least=1)
        self.normalise_input = flag("normalise_input", normalise_input)
        self.start: dict[str, Any] = {
            "init": choice("init", init, INITIALISATIONS),
            "scale": finite_number("scale", scale, above=0),
            "seed": whole_number("seed", seed, least=0),
            "nudge": finite_number("nudge", nudge),
        }
        plan = Plan(self.dim, self.width, self.outputs, generator(seed), centres, self.start["nudge"])
        shape = INITIALISATIONS[init](plan)
        scaled = scaled_weights(
            polar_form(shape.W, shape.V).shifted(math.log(self.start["scale"])), floating_dtype(dtype)
        )
        self.weight = nn.Parameter(scaled.weight)
        self.output = nn.Parameter(scaled.output)
        drawn = (self.start["scale"] * shape.bias).to(dtype)
        self.register_parameter("bias", nn.Parameter(drawn) if flag("bias", bias) else None)
        self.register_buffer("centre", None if centre is None else _centre(centre, self.dim, dtype))
        self.register_buffer("log_scale", scaled.log_scale)
        self.register_buffer("log_balance", scaled.log_balance)

    def check_settings(self) -> None:
        """An InputError if settings or shapes were changed, since the net was made, to what no constructor accepts."""
        super().check_settings()
        check_power(self.p)
        h, plain = whole_number("width", self.width), isinstance(self.normalise_input, bool)
        require(plain, "normalise_input", self.normalise_input, "True or False")
        self.check_shapes(
            weight=(h, self.dim), output=(self.outputs, h), bias=(self.outputs,), centre=(self.dim,), log_scale=(h,),
            log_balance=(h,),
        )  # fmt: skip

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the rows of ``X`` [n, dim], in the weights' dtype and on their device."""
        X = self.inputs(X)
        if self.centre is not None:
            X = X - self.centre
        length = None
        if self.normalise_input and self.p > 1:  # |x| relu(<x, u>/|x|)^p
            length = _norms(X)[:, None]
            X = X / torch.where(length > 0, length, 1.0)
        r = _norms(self.weight)
        hidden = relu_power(functional.linear(X, self.weight) / torch.where(r > 0, r, 1.0), self.p)
        coefficients = (self.output.double() * r.double() * (2 * self.log_scale).exp()).to(self.output.dtype)
        logits = functional.linear(hidden, coefficients)
        if length is not None:
            logits = logits * length
        return self.answer(logits if self.bias is None else logits + self.bias)

    def preprocess(self, X: Tensor) -> Tensor:
        """x~ = (x - c) |x - c|^(-(p-1)/p), so that f(x) = sum_j v_j r_j relu(<x~, u_j>)^p + b.

        Without ``normalise_input`` only the centre is subtracted; x = c gives 0.
        """
        X = self.rows(X)
        if self.centre is not None:
            X = X - self.centre
        if not self.normalise_input or self.p == 1:
            return X
        length = _norms(X)[:, None]
        return X * torch.where(length > 0, length, 1.0).pow(1 / self.p - 1)

    def polar(self) -> Polar:
        """Directions in the net's dtype and float64 log-norms of the true w_j, v_j; refuses a zero neuron."""
        exact = self._polar().require_finite().require_nonzero()
        return Polar(exact.u.to(self.dtype), exact.q.to(self.dtype), exact.log_r, exact.log_s)

    def directions(self) -> Tensor:
        """u_j = w_j / |w_j| as rows, in the net's dtype; a zero neuron gives a zero row."""
        return self._polar().u.to(self.dtype)

    def log_contributions(self) -> Tensor:
        """log |v_j| |w_j|, float64; -inf for a zero neuron."""
        return self._polar().log_contributions

    def contributions(self) -> Tensor:
        """|v_j| |w_j|, float64."""
        return self.log_contributions().exp()

    def is_plain(self) -> bool:
        """Whether every ``weight`` and ``output`` is the true weight, so that ordinary optimisers step truly."""
        return not bool(self.log_scale.any() or self.log_balance.any())

    @classmethod
    def from_polar(cls, polar: Polar, *, like: PolyReLUNet) -> PolyReLUNet:
        """The net with these neurons (any number of them) and everything else of ``like``.

        Directions need not be exactly unit (only their direction counts); a log-norm of -inf is a zero norm.
        """
        for name, given, wanted in (("u", polar.u.shape[1], like.dim), ("q", polar.outputs, like.outputs)):
            require(given == wanted, f"polar.{name}.shape[1]", given, str(wanted))
        config = {**like.config(), "width": polar.width}
        net = cls._empty(config).to(like.weight.device)
        net._take(scaled_weights(polar.require_finite(), net.dtype))
        with torch.no_grad():
            if net.bias is not None and like.bias is not None:
                net.bias.copy_(like.bias)
            if net.centre is not None and like.centre is not None:
                net.centre.copy_(like.centre)
        return net

    def config(self) -> dict[str, Any]:
        """All hyper-parameters, JSON-able; "bias" and "centre" say whether there is one."""
        return {
            "dim": self.dim,
            "width": self.width,
            "p": self.p,
            "outputs": self.outputs,
            "bias": self.bias is not None,
            "centre": self.centre is not None,
            "normalise_input": self.normalise_input,
            "dtype": str(self.dtype).removeprefix("torch."),
            **self.start,
        }

    @classmethod
    def restore(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> PolyReLUNet:
        """The net that had this ``config()`` and these ``state_dict()`` tensors."""
        with sizes_limited_by(config, tensors):
            net = cls._empty(config)
        net.fill(tensors)
        return net

    @classmethod
    def _empty(cls, config: Mapping[str, Any]) -> PolyReLUNet:
        sizes = {key: config[key] for key in ("dim", "width", "p", "outputs", "bias", "normalise_input")}
        centre = torch.zeros(config["dim"]) if config["centre"] else None
        net = cls(**sizes, init="zeros", centre=centre, dtype=dtype_named(config["dtype"]))
        net.start = {key: config[key] for key in net.start}
        return net

    def _polar(self) -> Polar:
        plain = polar_form(self.weight, self.output.T)
        up, down = self.log_scale + self.log_balance, self.log_scale - self.log_balance
        return Polar(plain.u, plain.q, plain.log_r + up, plain.log_s + down)

    def _take(self, scaled: ScaledWeights) -> None:
        self.weight.data, self.output.data = scaled.weight, scaled.output
        self.log_scale, self.log_balance = scaled.log_scale, scaled.log_balance

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PolyReLUNet:
        """``.to``, ``.float``, ``.double``: the logs stay float64, and neurons the new dtype cannot hold move there."""
        dtype = floating_dtype(fn(torch.empty(0, dtype=self.dtype, device=self.weight.device)).dtype)
        scaled = scaled_weights(self._polar(), dtype) if dtype != self.dtype else None
        logs = self.log_scale, self.log_balance
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.weight.device
        self.log_scale, self.log_balance = (log.to(device) for log in logs)
        if scaled is not None:
            scaled = ScaledWeights(*(tensor.to(device) for tensor in scaled))
            same = (scaled.log_scale == self.log_scale) & (scaled.log_balance == self.log_balance)
            weight = torch.where(same[:, None], self.weight.detach(), scaled.weight)
            self._take(scaled._replace(weight=weight, output=torch.where(same, self.output.detach(), scaled.output)))
        return self

    def extra_repr(self) -> str:
        """What ``print(net)`` shows: the config."""
        return ", ".join(f"{key}={value}" for key, value in self.config().items())


def as_float64(module: M) -> M:
    """``module`` itself in float64 with every number as it is, for proofs.

    ``.double()`` also moves neurons from the logs to plain weights where float64 holds these, and rounds each class on
    its own: classes that differ in their last digits then differ by other numbers.
    """
    nets = [net for net in module.modules() if isinstance(net, PolyReLUNet)]
    exact = [
        ScaledWeights(net.weight.detach().double(), net.output.detach().double(), net.log_scale, net.log_balance)
        for net in nets
    ]
    module.double()
    for net, numbers in zip(nets, exact, strict=True):
        net._take(numbers)
    return module


def _norms(rows: Tensor) -> Tensor:
    """|row|, summed in float64: one rounding in the rows' own dtype, whatever the number of columns.

    Rows that are float64 themselves are divided by their largest entry first, so that no square under- or overflows.
    """
    if rows.dtype != torch.float64 or not rows.shape[1]:
        plain: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
        return plain.to(rows.dtype)
    largest = rows.detach().abs().amax(dim=1)
    largest = torch.where(largest > 0, largest, 1.0)
    scaled: Tensor = torch.linalg.vector_norm(rows / largest[:, None], dim=1)
    return scaled * largest


def _centre(centre: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    centre = plain_tensor("centre", centre).to(dtype, copy=True)
    require(tuple(centre.shape) == (dim,), "centre.shape", tuple(centre.shape), f"({dim},)")
    require(bool(centre.isfinite().all()), "centre", "NaN or inf", "finite numbers")
    return centre
