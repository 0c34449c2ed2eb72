"""The gradient of a mean loss in the weights, relative to a frame: exp(-frame) / n sum_i c_i dl_i/dtheta.

With u_j = w_j / r_j, r_j = |w_j|, z_ij = relu(<x_i, u_j>), g_i = c_i dl_i/df and the weights c_i of the samples (1 if
none are given) a PolyReLUNet (Min & Vidal 2024) has

    A_j = sum_i z_ij^p g_i                 dL/dv_j = r_j A_j                                  dL/db = sum_i g_i
    G_j = sum_i <v_j, g_i> z_ij^(p-1) x_i   dL/dw_j = p G_j - (p-1) <v_j, A_j> u_j

so a batch costs two products, X U^T and (g Z^(p-1))^T X, and a few passes over Z; no graph is kept. Other modules are
left to autograd. Both take losses far below floating point: l_i is never formed but relative to ``frame``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from polyrelu.checks import answer
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.train.losses import log_add, pull

Parts = Iterable[tuple[Tensor, ...]]  # rows, labels and, where samples are weighted, the logs of their weights


class Gradient(Protocol):
    """Sets ``grad`` of every trained parameter."""

    def rows(self, X: Tensor) -> Tensor:
        """Inputs in the form in which ``parts`` hold them."""

    def __call__(self, parts: Parts, n: int, frame: float) -> float:
        """The gradient over ``parts`` of n rows in all; gives the log of their mean loss."""


def gradient_of(net: nn.Module, loss: str) -> Gradient:
    """By hand where the formula above holds, else by autograd."""
    return ByHand(net, loss) if isinstance(net, PolyReLUNet) and net.is_plain() else ByAutograd(net, loss)


class ByHand:
    """The formulas above, for a PolyReLUNet whose weights are its true ones."""

    def __init__(self, net: PolyReLUNet, loss: str) -> None:
        self.net, self.loss = net, loss
        self.memory = net.weight.new_empty(0)  # used again for every part

    def rows(self, X: Tensor) -> Tensor:
        """Centred and normalised."""
        return self.net.preprocess(X).detach()

    @torch.no_grad()
    def __call__(self, parts: Parts, n: int, frame: float) -> float:
        """One pass forwards and one backwards over each part."""
        net, p = self.net, self.net.p
        r = torch.linalg.vector_norm(net.weight, dim=1)
        u = net.weight / torch.where(r > 0, r, 1.0)[:, None]
        v, total = net.output, -math.inf
        G, A, b = torch.zeros_like(net.weight), torch.zeros_like(v), v.new_zeros(net.outputs)
        for x, y, *log_weight in parts:
            size = 3 * net.width * len(x)
            if size > len(self.memory):
                self.memory = u.new_empty(size)
            high, low, back = self.memory[:size].view(3, net.width, len(x))  # a neuron a row: the faster products
            relu_powers(torch.mm(u, x.T, out=high), p, low)
            f = ((v * r) @ high).T
            log_loss, log_size, direction = pull(self.loss, f if net.bias is None else f + net.bias, y)
            for log in log_weight:
                log_loss, log_size = log_loss + log, log_size + log
            total = log_add(total, float(log_loss.double().logsumexp(0)))
            g = (direction * (log_size - (frame + math.log(n))).exp()[:, None]).T.contiguous()
            A.addmm_(g, high.T)
            b += g.sum(1)
            low.mul_(g if net.outputs == 1 else torch.mm(v.T, g, out=back))
            G.addmm_(low, x)
        if net.outputs == 1:
            G *= v.T
        G.mul_(-p).addcmul_(u, ((p - 1) * (v * A).sum(0))[:, None])
        for parameter, grad in ((net.weight, G), (v, A.mul_(-r)), (net.bias, -b)):
            if parameter is not None and parameter.requires_grad:
                parameter.grad = grad
        return total - math.log(n)


def relu_powers(z: Tensor, p: float, low: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """relu(z)^p and relu(z)^(p-1), with 0^0 = 0: an inactive neuron does not move. Written to z and ``low``."""
    low = torch.empty_like(z) if low is None else low
    z.clamp_(min=0)
    if p == 1:
        return z, torch.gt(z, 0, out=low)
    if p == 2:
        low.copy_(z)
    elif p == 3:
        torch.mul(z, z, out=low)
    elif p == 4:
        torch.mul(z, z, out=low).mul_(z)
    else:
        torch.pow(z, p - 1, out=low)
    return z.mul_(low), low


class ByAutograd:
    """Any module that maps (n, D) to (n,) or (n, C)."""

    def __init__(self, net: nn.Module, loss: str) -> None:
        self.net, self.loss = net, loss

    def rows(self, X: Tensor) -> Tensor:
        """As they are."""
        return X

    def __call__(self, parts: Parts, n: int, frame: float) -> float:
        """One pass forwards and one backwards over each part."""
        self.net.zero_grad()
        total = -math.inf
        for x, y, *log_weight in parts:
            relative = relative_loss(self.loss, logits(self.net, x), y, frame, *log_weight)
            relative.div(n).backward()  # type: ignore[no-untyped-call]
            total = log_add(total, float(relative.detach().log()) + frame)
        return total - math.log(n)


def logits(net: nn.Module, x: Tensor) -> Tensor:
    """Outputs as (n, C), one logit as (n, 1)."""
    f: Tensor = net(x)
    return f[:, None] if f.ndim == 1 else f


def outputs_of(net: nn.Module, data: Dataset) -> int:
    """Number of logits of a module that can be trained on these data, or an InputError."""
    trained = [p for p in net.parameters() if p.requires_grad]
    require(bool(trained), "net", type(net).__name__, "a module with parameters to train")
    floats = all(p.is_floating_point() for p in trained)
    require(floats, "net", "weights that are no floating numbers", "a module in float32 or float64")
    f = answer(net, data.rows(0, 1).to(trained[0].dtype), "net")
    require(f.requires_grad, "net(X)", "no gradient", "logits that depend on the parameters")
    require(bool(f.isfinite().all()), "net(X)", "NaN or infinity", "finite logits")
    return 1 if f.ndim == 1 else f.shape[1]


def relative_loss(name: str, f: Tensor, y: Tensor, frame: float, log_weight: Tensor | None = None) -> Tensor:
    """``sum_i c_i l_i / exp(frame)``, differentiable also where a squared loss is exactly zero."""
    if name == "squared":
        squares = pull(name, f, y).direction.square().sum(1)
        return (squares if log_weight is None else squares * log_weight.exp()).sum() * (0.5 * math.exp(-frame))
    log_loss = pull(name, f, y).log_loss - frame
    return (log_loss if log_weight is None else log_loss + log_weight).exp().sum()
