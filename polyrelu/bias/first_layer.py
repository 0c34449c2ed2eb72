"""The first layer of any shallow net in one form: directions, log-norms, contributions, the class of each neuron."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import (
    FixedOutputNet,
    GroupedNet,
    PlainPolyNet,
    PolyReLUNet,
    TwoLayer,
    as_polyrelu_net,
    orthonormal_basis,
    unit_rows,
)


@final
@dataclass(frozen=True, eq=False)
class Neurons:
    """w_j = exp(log_norm_j) directions_j, float64.

    log_contribution (h,) : log |v_j| |w_j| (|v_j| |w_j|^p without weight normalisation, |w_j| for bare weights)
    owner (h,) : the class a neuron votes for: sign of v_j, argmax_c v_cj, or the number of its group; None if unknown
    grouped : is ``owner`` the number of a group (one for each sub-class, or one for each class)?
    preprocess : raw rows -> what the neurons are multiplied with
    keeps_initial_part : do weights keep a multiple of their start other than 1? (p > 1 with weight normalisation)
    """

    directions: Tensor
    log_norm: Tensor
    log_contribution: Tensor
    owner: Tensor | None
    preprocess: Callable[[Tensor], Tensor]
    grouped: bool = False
    keeps_initial_part: bool = False


def neurons_of(net: torch.nn.Module | Tensor | Neurons) -> Neurons:
    """The neurons of a net of one hidden layer, of an ideal classifier or of a bare matrix (h, D); O(h D)."""
    if isinstance(net, Neurons):
        return net
    if isinstance(net, Tensor):
        require(net.ndim == 2 and net.numel() > 0, "W.shape", tuple(net.shape), "(h, D), one row per neuron")
        require(bool(net.isfinite().all()), "W", "NaN or infinity", "finite weights")
        u, log_r = unit_rows(net)
        return Neurons(u, log_r, log_r, None, Tensor.double)
    net = as_polyrelu_net(net)
    if isinstance(net, PolyReLUNet):
        u, log_r = unit_rows(net.weight)
        log_r = log_r + net.log_scale + net.log_balance
        size, votes = net.log_contributions(), _voted(net.output)
        return Neurons(u, log_r, size, votes, lambda X: net.preprocess(X.double()), keeps_initial_part=net.p > 1)
    if isinstance(net, TwoLayer):
        u, log_r = unit_rows(net.weight)
        log_v, p = net.output.detach().double().norm(dim=0).log(), net.p if isinstance(net, PlainPolyNet) else 1
        return Neurons(u, log_r, log_v + p * log_r, _voted(net.output), Tensor.double)
    if isinstance(net, FixedOutputNet):
        u, log_r = unit_rows(net.weight)
        return Neurons(u, log_r, log_r, net.signs.double(), Tensor.double)
    if isinstance(net, GroupedNet):
        u, log_r = unit_rows(net.weight.flatten(0, 1))
        group = torch.arange(net.outputs, device=u.device).repeat_interleave(net.weight.shape[1])
        return Neurons(u, log_r, log_r, group, Tensor.double, grouped=True)
    raise InputError(
        f"net={type(net).__name__}: expected a net of one hidden layer (PolyReLUNet, FixedOutputNet, GroupedNet, "
        "PlainPolyNet, TanhNet, LeakyReLUNet), F, F^(p), or a matrix (h, D) of weights."
    )


def _voted(output: Tensor) -> Tensor:
    """The class each column of ``output`` (h,), (1, h) or (C, h) votes for."""
    rows = output.detach().reshape(-1, output.shape[-1])
    return rows[0].double().sign() if len(rows) == 1 else rows.argmax(dim=0)


def own_class_mask(neurons: Neurons, labels: Tensor | None, owners: Tensor | None, K: int) -> Tensor | None:
    """Whether centre k is of neuron j's class."""
    owner = neurons.owner if owners is None else torch.as_tensor(owners)
    if labels is None or owner is None:
        return None
    labels = torch.as_tensor(labels).to(owner.device)
    require(tuple(labels.shape) == (K,), "labels.shape", tuple(labels.shape), f"({K},), one for each centre")
    require(len(owner) == len(neurons.log_norm), "owners", f"{len(owner)}", f"{len(neurons.log_norm)}, one per neuron")
    if neurons.grouped and int(owner.max()) + 1 == K:
        owner = labels[owner]
    own = owner[:, None] == labels
    voting = neurons.log_contribution > -torch.inf
    classes = sorted(set(labels.tolist())), sorted(set(owner[voting].tolist()))
    require(bool(own[voting].any(dim=1).all()), "labels", classes[0], f"every class a neuron votes for, {classes[1]}")
    return own


def displacement(now: Neurons, start: Neurons) -> tuple[Tensor, Tensor]:
    """Direction and log-length of w_j - w_j(0), for norms of any size."""
    top = torch.maximum(now.log_norm, start.log_norm)
    top = torch.where(top > -torch.inf, top, 0.0)
    before = start.directions * (start.log_norm - top).exp()[:, None]
    rows, log = unit_rows(now.directions * (now.log_norm - top).exp()[:, None] - before)
    return rows, log + top


def sample_coefficients(
    rows: Tensor, X: Dataset | Tensor, neurons: Neurons, start: Neurons | None
) -> tuple[Tensor, Tensor | None]:
    """Length of each row outside span{x_i}, and its coefficients where they are unique; the span by QR of blocks."""
    blocks = [X] if isinstance(X, Tensor) else (block for _, block in X.blocks(4096))
    n, R = 0, rows[:0]
    for block in blocks:
        fits = block.ndim == 2 and block.shape[1] == rows.shape[1]
        require(fits, "X.shape", tuple(block.shape), f"(n, {rows.shape[1]})")
        n += len(block)
        R = torch.linalg.qr(torch.cat([R, neurons.preprocess(block)]), mode="r").R
    basis = orthonormal_basis(R, max(R.shape) * torch.finfo(torch.float64).eps)
    rest = rows - (rows @ basis.T) @ basis
    if start is not None and neurons.keeps_initial_part:
        kept = start.directions - (start.directions @ basis.T) @ basis
        kept, _ = unit_rows(kept)
        rest = rest - (rest * kept).sum(dim=1, keepdim=True) * kept
    outside = torch.linalg.vector_norm(rest, dim=1)
    if len(basis) < n:
        return outside, None
    preprocess = neurons.preprocess(X if isinstance(X, Tensor) else X.rows())
    return outside, torch.linalg.lstsq(preprocess.T, rows.T).solution.T
