"""How far theta is from a KKT point of margin maximisation (Lyu & Li, ICLR 2020, Thm 4.4 and A.9).

    min |theta|^2/2  s.t.  q_k(theta) >= 1      at  theta' = theta / q_min^(1/L):
    stationarity  |theta' - sum_k lambda_k grad q_k(theta')| / |theta'|,  lambda >= 0
    slackness     sum_k lambda_k (q_k(theta') - 1) * L / |theta'|^2

One constraint per sample, q = y f, or per sample and rival class, q = f_y - f_c. At a KKT point L sum_k lambda_k =
|theta'|^2, so both numbers are free of scale and 0 exactly there. Stationarity needs the multipliers, and two choices
are tried: non-negative least squares over the constraints near the margin, which is the best possible there, and the
multipliers of the training loss, proportional to exp(-q_k). All is computed at |theta| = 1 from log-norms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.bias import homogeneity
from polyrelu.bias.homogeneity import Groups, UnitNormNet
from polyrelu.bias.margins import logits
from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.train import class_margins
from polyrelu.train import margin_gradients as gradients

MAX_FREE_GATES = 1500  # gates near their kink that may be free
NEGLIGIBLE = 1e-12  # a multiplier this much below the largest is left out


@final
@dataclass(frozen=True, eq=False)
class KKTMultipliers:
    """Multipliers and what they prove.

    ``stationarity``, ``slackness`` as above; ``largest_slack`` = max_k lambda_k (q_k - 1). Per constraint with
    lambda > 0, largest lambda first: ``multipliers`` lambda_k, ``support`` the row of the data, ``rival`` the other
    class (-1 for labels +1/-1), ``excess`` = q_k(theta') - 1.
    """

    stationarity: float
    slackness: float
    largest_slack: float
    multipliers: Tensor
    support: Tensor
    rival: Tensor
    excess: Tensor


@final
@dataclass(frozen=True, eq=False)
class KKT:
    """The certificate ``best``, the one of ``least_squares`` and ``loss`` with the smaller stationarity residual.

    Both use autograd's gradients. ``free`` (p = 1, one logit, else None) is least squares with ``kinks`` gates free,
    those of candidates and neurons within ``widen`` of <x, w> = 0, where q has many gradients; ``kinks_left``: further
    such pairs, beyond MAX_FREE_GATES the nearest ones, that kept autograd's gate. ``candidates``: constraints with
    q_k <= (1 + active) q_min offered to least squares; ``left_out``: further ones there were, beyond the capacity.
    """

    least_squares: KKTMultipliers
    loss: KKTMultipliers
    free: KKTMultipliers | None
    degree: float
    candidates: int
    left_out: int
    kinks: int
    kinks_left: int

    @property
    def best(self) -> KKTMultipliers:
        """The certificate with the smaller stationarity residual."""
        return min(self.least_squares, self.loss, key=lambda one: one.stationarity)

    @property
    def stationarity(self) -> float:
        """Of the best certificate."""
        return self.best.stationarity

    @property
    def slackness(self) -> float:
        """Of the best certificate."""
        return self.best.slackness

    @property
    def multipliers(self) -> Tensor:
        """Of the best certificate."""
        return self.best.multipliers

    @property
    def support(self) -> Tensor:
        """Of the best certificate."""
        return self.best.support


@checked
def kkt(
    net: nn.Module,
    data: Dataset,
    active: float = 0.1,
    layers: Groups | None = None,
    most: int | None = None,
    widen: float = 1e-2,
) -> KKT:
    """KKT residual of theta / q_min^(1/L) with its multipliers (module docstring).

    A forward pass over the data and a gradient over the rows whose exp(-q) is above 1e-12 of the largest, O(n h D) for
    two layers; then m candidates: those with q_k <= (1 + ``active``) q_min, the
    nearest to the margin first, at most ``most`` (2000 for two-layer nets, for others as many as 8 blocks of 256 MB of
    gradients). Their Gram matrix costs O(m^2 (D + h)), the active-set solver about O(m^3).

    p = 1, one logit: in ``KKT.free`` a gate with |<x, w>| <= ``widen`` |x||w| is anything between shut and open, as at
    the kink itself, where q has all those gradients (a net this near to it has slid along it).
    """
    require(active >= 0, "active", active, "a number >= 0")
    require(most is None or most >= 1, "most", most, "a whole number >= 1")
    unit = homogeneity.unit_norm_net(net, data.rows(0, min(len(data), homogeneity.TRIAL_ROWS)), layers)
    q = torch.cat([class_margins(f, y) for _, f, y in logits(unit.net, data)])
    smallest = float(q.min())
    if smallest <= 0:
        sample = int(q.amin(dim=1).argmin())
        raise InputError(f"data={data.name}: not separated yet, the margin of row {sample} is <= 0; train on.")
    near = (q.flatten() <= (1 + active) * smallest).nonzero()[:, 0]
    near = near[q.flatten()[near].argsort(stable=True)]
    chosen = near[: gradients.capacity(unit) if most is None else most]
    rows, rival = chosen // q.shape[1], chosen % q.shape[1]
    X, E = gradients.constraints(data, chosen, q.shape[1])
    own = q[rows, rival]
    fitted = torch.zeros_like(q)
    fitted[rows, rival] = least_squares(gradients.gram(unit, X, E), unit.degree * own)
    found, kinks_left = _free_gates(unit, X, E, widen)
    free = None
    if found is not None:
        loose = torch.zeros_like(q)
        loose[rows, rival], forces = with_gates(gradients.gram_with_gates(unit, X, E, found), unit.degree * own, found)
        pull = _weighted_gradient(unit, data, loose)
        gradients.set_gate_forces(pull, unit, X, loose[rows, rival], found, forces)
        free = _certificate(unit, data, q, loose, pull)
    log_size = unit.degree * unit.log_rho
    by_loss = (-(q - smallest) * math.exp(min(log_size, 700))).exp()
    by_loss[(by_loss < NEGLIGIBLE) | q.isinf()] = 0
    pull = _weighted_gradient(unit, data, by_loss)
    along = unit.degree * float((by_loss * q.nan_to_num(posinf=0.0)).sum())  # <theta, sum_k weight_k grad q_k>
    best = along / sum(float(part.square().sum()) for part in pull.values())  # of all lengths of the pull
    return KKT(
        least_squares=_certificate(unit, data, q, fitted, _weighted_gradient(unit, data, fitted)),
        loss=_certificate(unit, data, q, best * by_loss, {name: best * part for name, part in pull.items()}),
        free=free,
        degree=unit.degree,
        candidates=len(chosen),
        left_out=len(near) - len(chosen),
        kinks=0 if found is None else len(found.row),
        kinks_left=kinks_left,
    )


def least_squares(gram: Tensor, along: Tensor) -> Tensor:
    """argmin_{mu >= 0} |theta - J^T mu| from ``gram`` = J J^T (m, m) and ``along`` = J theta (m,).

    Rows are scaled to unit length; with J J^T = V S V^T the problem is |S^(1/2) V^T mu - S^(-1/2) V^T along|, which
    Lawson and Hanson's active set solves exactly. About O(m^3): 2000 in seconds.
    """
    from scipy.optimize import nnls

    length = gram.diagonal().sqrt()
    values, vectors = torch.linalg.eigh(gram / (length[:, None] * length))
    kept = values > 1e-14 * len(values) * values[-1]
    root = values[kept].sqrt()
    A, b = root[:, None] * vectors[:, kept].T, vectors[:, kept].T @ (along / length) / root
    mu, _ = nnls(A.numpy(), b.numpy(), maxiter=30 * len(gram))
    return torch.from_numpy(np.asarray(mu)) / length


def with_gates(gram: Tensor, along: Tensor, found: gradients.Gates) -> tuple[Tensor, Tensor]:
    """mu (m,) and forces (g,) of the best theta ~ sum_k mu_k (grad q_k - sum_j g_kj a_kj grad t_kj), 0 <= g <= 1.

    The cone over all choices of gates is searched by column generation: least squares over some choices, then for each
    constraint the choice that the residual likes best is added, until none helps.
    """
    m, total = len(along), len(gram)
    ends = torch.cat(
        [along + torch.zeros_like(along).index_add(0, found.row, found.height * found.at.relu()), found.at]
    )
    pairs = torch.arange(m, total)

    def columns(owners: Tensor, open_: Tensor) -> Tensor:
        C = torch.zeros(m, total, dtype=gram.dtype)
        C.diagonal().fill_(1.0)
        C[found.row, pairs] = -found.height * open_
        return C[owners]

    C, owner = columns(torch.arange(m), (found.at > 0).double()), torch.arange(m)
    for _ in range(60):
        mu = least_squares(C @ gram @ C.T, C @ ends)
        left = ends - gram @ (C.T @ mu)
        gain = -found.height * left[m:]
        best = left[:m] + torch.zeros_like(along).index_add(0, found.row, gain.relu())
        scale = gram.diagonal()[:m].sqrt()
        helps = (best > 1e-7 * scale).nonzero()[:, 0]
        if not len(helps):
            break
        used = mu > 0
        C, owner, mu = C[used], owner[used], mu[used]
        helps = helps[(best / scale)[helps].argsort(descending=True)[:200]]
        C, owner = torch.cat([C, columns(helps, (gain > 0).double())]), torch.cat([owner, helps])
        mu = torch.cat([mu, torch.zeros(len(helps), dtype=mu.dtype)])
    return torch.zeros_like(along).index_add(0, owner, mu), -(C.T @ mu)[m:]


def _certificate(unit: UnitNormNet, data: Dataset, q: Tensor, mu: Tensor, pull: dict[str, Tensor]) -> KKTMultipliers:
    """What multipliers mu (n, C) at |theta| = 1 prove; ``pull`` = sum_k mu_k grad q_k, as a vector like theta."""
    weights, smallest = gradients.theta(unit), float(q.min())
    residual = math.sqrt(sum(float((weights[name] - pull[name]).square().sum()) for name in weights))
    rows, rival = mu.nonzero(as_tuple=True)
    order = mu[rows, rival].argsort(descending=True, stable=True)
    rows, rival = rows[order], rival[order]
    multipliers = mu[rows, rival] * smallest ** (1 - 2 / unit.degree)  # theta' = smallest^(-1/L) theta
    excess = q[rows, rival] / smallest - 1
    slack = multipliers * excess
    return KKTMultipliers(
        stationarity=residual,
        slackness=unit.degree * float(slack.sum()) * smallest ** (2 / unit.degree),
        largest_slack=float(slack.max()) if len(slack) else 0.0,
        multipliers=multipliers,
        support=rows,
        rival=torch.full_like(rival, -1) if data.binary else rival,
        excess=excess,
    )


def _weighted_gradient(unit: UnitNormNet, data: Dataset, mu: Tensor) -> dict[str, Tensor]:
    """sum_k mu_k grad q_k by parameter, streamed over the rows that have a multiplier."""
    total = {name: torch.zeros_like(value) for name, value in gradients.theta(unit).items()}
    for start, X in data.blocks():
        part = mu[start : start + len(X)]
        used = part.any(dim=1)
        if used.any():
            E = _logit_weights(data.y[start : start + len(X)][used], part[used])
            for name, value in gradients.total(unit, X[used].double(), E).items():
                total[name] += value
    return total


def _logit_weights(y: Tensor, mu: Tensor) -> Tensor:
    """e_i = sum_c mu_ic (e_y - e_c), or mu_i y_i for one logit; q = <e, f> is then linear in the multipliers."""
    if mu.shape[1] == 1:
        return y.double()[:, None] * mu
    return (-mu).scatter_add(1, y[:, None], mu.sum(dim=1, keepdim=True))


def _free_gates(unit: UnitNormNet, X: Tensor, E: Tensor, widen: float) -> tuple[gradients.Gates | None, int]:
    """Candidates and neurons so near to <x, w> = 0 that the gate may be anything, and how many are beyond the most."""
    if not gradients.has_free_gates(unit):
        return None, 0
    t, _, width = gradients.gate_planes(unit, X, E)
    angle = torch.where(width > 0, t.abs() / width, torch.inf)
    pairs = (angle <= max(widen, 1e-12)).nonzero()
    near = pairs[angle[pairs[:, 0], pairs[:, 1]].argsort(stable=True)[:MAX_FREE_GATES]]
    return (gradients.Gates.from_pairs(unit, X, E, near) if len(near) else None), len(pairs) - len(near)
