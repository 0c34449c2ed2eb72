"""Gradients in theta of q_k = <e_k, f(x_k)>: their Gram matrix and their weighted sums.

Two-layer nets have both in closed form, without a gradient ever being stored. With z = relu(<x, u_j>), r_j = |w_j|,
d_kj = <e_k, v_j>, a PolyReLUNet has

    dq_k/dv_j = r_j z^p e_k          dq_k/dw_j = d_kj (p z^(p-1) x_k - (p-1) z^p u_j)
    Gram = (E E^T) o (A A^T) + (X X^T) o (B B^T) - (p^2 - 1) C C^T,   A = r z^p,  B = d p z^(p-1),  C = d z^p

since <x_k, u_j> = z wherever B is not 0. At a kink (p = 1, z = 0) the derivative is autograd's, 0, or that of `Gates`
which are anything between open and shut. Everything float64.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from polyrelu.data import BLOCK, Dataset
from polyrelu.nets import Polar, PolyReLUNet, TwoLayer, relu_power, unit_rows

ENTRIES = 1 << 25  # numbers in a block of gradients: 256 MB


class Weights(Protocol):
    """A net, the parameters that make up theta, and the neurons if it is a PolyReLUNet."""

    @property
    def net(self) -> nn.Module:
        """The net, in float64."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that make up theta."""

    @property
    def polar(self) -> Polar | None:
        """The true neurons of a PolyReLUNet."""


def neurons(net: nn.Module) -> Polar | None:
    """Polar form in float64 of a PolyReLUNet's true weights; a zero neuron has a zero direction and log-norm -inf."""
    if not isinstance(net, PolyReLUNet):
        return None
    (u, log_r), (q, log_s) = unit_rows(net.weight.detach()), unit_rows(net.output.detach().T)
    return Polar(u, q, log_r + net.log_scale + net.log_balance, log_s + net.log_scale - net.log_balance)


def closed_form(net: nn.Module) -> bool:
    """Whether a Gram matrix needs no stored gradient."""
    return isinstance(net, (PolyReLUNet, TwoLayer))


def capacity(at: Weights) -> int:
    """How many gradients a Gram matrix can be made of in seconds (closed form) or eight blocks (autograd)."""
    return 2000 if closed_form(at.net) else min(2000, 8 * _block(at))


def chunk(net: nn.Module) -> int:
    """Rows to hand over at once: two-layer nets like large products, deep ones small activations."""
    return BLOCK if closed_form(net) else 64


def constraints(data: Dataset, chosen: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """X and E of the constraints numbered ``chosen`` in the flat q (n, C) of `losses.class_margins`, C = ``classes``.

    q_k = <e_k, f(x_k)>: e is y for one logit, else 1 at the own class and -1 at the rival.
    """
    rows, rival = chosen // classes, chosen % classes
    X, y = data.gather(rows).double(), data.y[rows]
    if classes == 1:
        return X, y.double()[:, None]
    E = torch.zeros(len(rows), classes, dtype=torch.float64)
    return X, E.scatter(1, rival[:, None], -1.0).scatter(1, y[:, None], 1.0)


def theta(at: Weights) -> dict[str, Tensor]:
    """The weights by name; true ones, whatever a PolyReLUNet holds in its logs."""
    weights = {name: value.detach() for name, value in at.net.named_parameters() if name in at.names}
    if at.polar is not None:
        polar = at.polar
        true = {"weight": polar.u * polar.log_r.exp()[:, None], "output": (polar.q * polar.log_s.exp()[:, None]).T}
        weights |= {name: value for name, value in true.items() if name in weights}
    return weights


def gram(at: Weights, X: Tensor, E: Tensor) -> Tensor:
    """<grad q_k, grad q_l>, (m, m). O(m^2 (D + h)) for two-layer nets, O(m^2 parameters) for others."""
    if not closed_form(at.net):
        return _gram_of_rows(at, X, E)
    X, A, B, C = shallow(at, X, E)
    G = X.new_zeros(len(X), len(X))
    if "output" in at.names:
        G += (E @ E.T) * (A @ A.T)
    if "weight" in at.names:
        G += (X @ X.T) * (B @ B.T)
        if isinstance(at.net, PolyReLUNet) and at.net.p > 1:
            G -= (at.net.p**2 - 1) * (C @ C.T)
    if "bias" in at.names:
        G += E @ E.T
    return G


def total(at: Weights, X: Tensor, E: Tensor) -> dict[str, Tensor]:
    """sum_k grad q_k by parameter; put weights into E. One forward and one backward pass."""
    if closed_form(at.net):
        X, A, B, C = shallow(at, X, E)
        sums = {"weight": B.T @ X, "output": E.T @ A, "bias": E.sum(dim=0)}
        if isinstance(at.net, PolyReLUNet) and at.polar is not None:
            sums["weight"] -= (at.net.p - 1) * C.sum(dim=0)[:, None] * at.polar.u
        return {name: sums[name] for name in at.names}
    sums = {name: torch.zeros_like(value) for name, value in theta(at).items()}
    size = chunk(at.net)
    for x, e in zip(torch.split(X, size), torch.split(E, size), strict=True):
        for name, part in zip(at.names, _gradient(at, x, e), strict=True):
            sums[name] += part
    return sums


def shallow(at: Weights, X: Tensor, E: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs as the first layer sees them, and A, B, C of the module docstring."""
    net, polar = at.net, at.polar
    if isinstance(net, PolyReLUNet) and polar is not None:
        X = net.preprocess(X)
        z, d = (X @ polar.u.T).relu(), E @ (polar.q * polar.log_s.exp()[:, None]).T
        power = relu_power(z, net.p)
        slope = (z > 0).double() if net.p == 1 else net.p * relu_power(z, net.p - 1)
        return X, polar.log_r.exp() * power, d * slope, d * power
    assert isinstance(net, TwoLayer)
    z = (X @ net.weight.detach().T).requires_grad_()
    phi = net.phi(z)
    (slope,) = torch.autograd.grad(phi.sum(), z)
    return X, phi.detach(), (E @ net.output.detach()) * slope, phi.detach()


class Gates(NamedTuple):
    """Pairs of a constraint (``row`` of the chosen) and a ``neuron``: a = |<e, v>|, t at the start, and |w||x|."""

    row: Tensor
    neuron: Tensor
    height: Tensor
    at: Tensor
    width: Tensor

    @staticmethod
    def from_pairs(at: Weights, X: Tensor, E: Tensor, pairs: Tensor) -> Gates:
        """The pairs (g, 2) of constraints and neurons."""
        row, neuron = pairs.unbind(dim=1)
        t, d, width = gate_planes(at, X, E)
        return Gates(row, neuron, -d[row, neuron], t[row, neuron], width[row, neuron])


def gate_planes(at: Weights, X: Tensor, E: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """t = <x_k, w_j>, d = <e_k, v_j> and |w_j||x_k| of a PolyReLUNet with p = 1."""
    polar = at.polar
    assert polar is not None
    X = at.net.preprocess(X)  # type: ignore[operator]
    r = polar.log_r.exp()
    length = torch.linalg.vector_norm(X, dim=1)[:, None]
    return (X @ polar.u.T) * r, E @ (polar.q * polar.log_s.exp()[:, None]).T, length * r


def gram_with_gates(at: Weights, X: Tensor, E: Tensor, gates: Gates) -> Tensor:
    """Gram matrix of the gradients of the q_k without the pairs, and of the t_kj of the pairs."""
    seen, A, B, _ = shallow(at, X, E)
    B = B.clone()
    B[gates.row, gates.neuron] = 0
    XX = seen @ seen.T
    G = (E @ E.T) * (A @ A.T) + XX * (B @ B.T)
    cross = B[:, gates.neuron] * XX[:, gates.row]
    among = (gates.neuron[:, None] == gates.neuron) * XX[gates.row][:, gates.row]
    return torch.cat([torch.cat([G, cross], dim=1), torch.cat([cross.T, among], dim=1)])


def set_gate_forces(
    velocity: dict[str, Tensor], at: Weights, X: Tensor, weights: Tensor, gates: Gates, forces: Tensor
) -> None:
    """Replace in ``velocity`` = sum_k weights_k grad q_k the gradients through the gates of the pairs by ``forces``."""
    back = weights[gates.row] * gates.height * (gates.at > 0) - forces
    velocity["weight"].index_add_(0, gates.neuron, back[:, None] * at.net.preprocess(X)[gates.row])  # type: ignore[operator]


def has_free_gates(at: Weights) -> bool:
    """Whether gates at a kink are searched for: one logit, p = 1, both layers trained."""
    net = at.net
    return isinstance(net, PolyReLUNet) and net.p == 1 and net.outputs == 1 and {"weight", "output"} == set(at.names)


def _block(at: Weights) -> int:
    sizes = sum(value.numel() for name, value in at.net.named_parameters() if name in at.names)
    return max(1, ENTRIES // sizes)


def _gram_of_rows(at: Weights, X: Tensor, E: Tensor) -> Tensor:
    """Per-sample gradients block against block; never more than two blocks are held."""
    parts = torch.split(torch.arange(len(X)), _block(at))
    G = X.new_zeros(len(X), len(X))
    for i, rows in enumerate(parts):
        J = _rows(at, X[rows], E[rows])
        for columns in parts[: i + 1]:
            K = J if columns is rows else _rows(at, X[columns], E[columns])
            G[rows[:, None], columns] = J @ K.T
            G[columns[:, None], rows] = K @ J.T
    return G


def _rows(at: Weights, X: Tensor, E: Tensor) -> Tensor:
    each = (_gradient(at, X[k : k + 1], E[k : k + 1]) for k in range(len(X)))
    return torch.stack([torch.cat([part.flatten() for part in parts]) for parts in each])


def _gradient(at: Weights, X: Tensor, E: Tensor) -> tuple[Tensor, ...]:
    """Autograd's gradient of sum_k <e_k, f(x_k)>, in the order of ``names``."""
    own = dict(at.net.named_parameters())
    weights = [own[name].detach().requires_grad_() for name in at.names]
    f = functional_call(at.net, dict(zip(at.names, weights, strict=True)), (X,))
    return torch.autograd.grad((f.reshape(E.shape) * E).sum(), weights)
