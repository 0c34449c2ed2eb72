r"""The hard-margin support vector machine, exactly: where linear models trained to the end point (E11, E12, E15).

    min |w|^2/2  s.t.  y_i (<w, x_i> + b) >= 1
    w = sum_i lambda_i y_i x_i,   lambda >= 0,   lambda_i (y_i (<w, x_i> + b) - 1) = 0   [, sum_i lambda_i y_i = 0]

Its dual is a nearest-point problem: w is along the point of conv{y_i x_i} nearest to the origin or, with a free bias,
along the shortest segment between the hulls of the two classes. An active-set method (Wolfe 1976, here with many points
added at a time) finds the face of that point; a QR factorisation of the face gives w and lambda to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import LogisticRegression

EXTRA_ROWS = 2000  # rows kept beside the face between two passes over the data
TOUCHING = 1e-9  # a hull nearer to the origin than this, relative to the length of its rows, counts as touching it
MAX_PASSES, MAX_STEPS = 200, 10_000  # never reached; against endless loops by rounding


@final
@dataclass(frozen=True, eq=False)
class SVM:
    """The widest slab between two classes: y_i (<direction, x_i> + bias) >= margin, equal on the support.

    direction : (D,) float64, of norm 1; with a counted bias the pair (direction, bias) has norm 1
    bias : 0 for a separator through the origin
    margin : > 0
    support : row numbers, increasing; multipliers : their lambda > 0, w = direction/margin = sum lambda_i y_i x_i
    residual : the largest violation of the conditions above over all rows, each relative to its size
    """

    direction: Tensor
    bias: float
    margin: float
    support: Tensor
    multipliers: Tensor
    residual: float


@checked
def svm_direction(data: Dataset, bias: bool | str = False, tol: float = 1e-10) -> SVM:
    """The hard-margin SVM of linearly separable +1/-1 data (formula above); refuses data no such separator divides.

    A few passes over the data, O(n D) each, and some tens of factorisations, O(s^2 D) each for s support vectors; the
    support and 2000 more rows are kept in memory. A margin below 1e-9 of the rows' length counts as none.

    Parameters
    ----------
    bias : False, a separator through the origin: the limit of gradient descent on <w, x>; True, a free offset: the
        usual SVM; "counted", an offset that costs as much as a weight, min |w|^2 + b^2: the limit of gradient descent
        on <w, x> + b, and the SVM through the origin of the rows (x, 1)
    tol : how far below 1 a margin y_i (<w, x_i> + b) may stay; the residual ends near it
    """
    require(data.binary, "data", f"{data.classes} classes 0..{data.classes - 1}", "two classes labelled +1 and -1")
    require(isinstance(bias, bool) or bias == "counted", "bias", repr(bias), "False, True or 'counted'")
    require(0 < tol < 1, "tol", tol, "a number between 0 and 1")
    points, free = _Points(data, bias), bias is True
    working = points.lowest_margin(points.middle, torch.zeros(2, dtype=torch.float64))
    face, share = torch.empty(0, dtype=torch.int64), working.Z.new_empty(0)
    for _ in range(MAX_PASSES):
        face, share = _nearest(working, face, share, tol)
        support = working.take(face)
        p, level = _levels(support, share)
        if float(p.norm()) <= TOUCHING * float(support.Z.norm(dim=1).amax()):
            where = "" if bias else " through the origin; bias=True allows an offset"
            raise InputError(f"data={data.name}: not linearly separable{where}. No separator, hence no margin, exists.")
        found = points.lowest_margin(p, level)
        beyond = ~torch.isin(found.number, support.number)
        if not bool((found.deficit[beyond] > tol * p.square().sum()).any()):
            break
        working, face = _Rows.joined([support, found.take(beyond)]), torch.arange(len(face))
    support = support.take(support.number.argsort())
    w, b, multipliers = _on_face(support, free)
    residual = points.residual(support, w, b, multipliers)
    size = float(w.norm())
    w, b = (w[:-1], float(w[-1])) if bias == "counted" else (w, b - float(w @ points.shift))
    return SVM(w / size, b / size, 1 / size, support.number, multipliers, residual)


@checked
def cosine_to_svm(model: nn.Module | Tensor, data: Dataset, tol: float = 1e-10) -> float:
    """cos(w, w_svm) of a linear rule: what gradient descent on separable data drives to 1 (claim E11).

    ``model`` is a LogisticRegression, an ``nn.Linear`` of one output, or a vector (D,). A trained bias belongs to the
    parameters, so (w, b) is compared with the SVM whose bias is counted. Cost: that of ``svm_direction``.
    """
    bias: Tensor | None = None
    if isinstance(model, Tensor):
        w = model
    elif isinstance(model, LogisticRegression | nn.Linear):
        w, bias = model.weight, model.bias
        require(len(w) == 1, "model", f"{len(w)} logits", "a model of one logit")
    else:
        raise InputError(f"model={type(model).__name__}: expected LogisticRegression, nn.Linear or a vector (D,).")
    w = w.detach().double().flatten()
    require(tuple(w.shape) == (data.dim,), "model", f"{len(w)} weights", f"{data.dim}, one for each column of the data")
    require(bool(w.isfinite().all()) and bool(w.any()), "model", "zero, NaN or inf", "finite weights, not all zero")
    if bias is None:
        return float(w @ svm_direction(data, False, tol).direction / w.norm())
    svm = svm_direction(data, "counted", tol)
    b = float(bias.detach())
    return (float(w @ svm.direction) + b * svm.bias) / math.hypot(float(w.norm()), b)


class _Rows(NamedTuple):
    """Some z_i = y_i x_i: their rows, hulls (0 or 1), numbers in the data, and level - <z_i, p>."""

    Z: Tensor
    hull: Tensor
    number: Tensor
    deficit: Tensor

    def take(self, index: Tensor) -> _Rows:
        """Those at these places, or where a mask is true."""
        return _Rows(*(field[index] for field in self))

    @classmethod
    def joined(cls, parts: list[_Rows]) -> _Rows:
        """One after another."""
        return cls(*(torch.cat(fields) for fields in zip(*parts, strict=True)))


class _Points:
    """z_i = y_i x_i of a data set, block by block; shifted to the middle for a free bias, (x, 1) for a counted one."""

    def __init__(self, data: Dataset, bias: bool | str) -> None:
        self.data, self.counted, self.free = data, bias == "counted", bias is True
        means = data.class_means().double().cpu()
        self.shift = means.mean(dim=0) if self.free else torch.zeros_like(means[0])
        self.middle = self.signed(means, torch.tensor([1.0, -1.0], dtype=torch.float64)).sum(dim=0)

    def signed(self, rows: Tensor, y: Tensor) -> Tensor:
        rows = rows.double().cpu() - self.shift
        rows = torch.cat([rows, torch.ones(len(rows), 1)], dim=1) if self.counted else rows
        return y[:, None] * rows

    def lowest_margin(self, p: Tensor, level: Tensor) -> _Rows:
        """The EXTRA_ROWS rows of largest level - <z_i, p>, as many of each hull."""
        best: list[_Rows] = []
        hulls = 2 if self.free else 1
        for start, rows in self.data.blocks():
            y = self.data.y[start : start + len(rows)].double().cpu()
            hull = (y < 0).long() * self.free
            Z = self.signed(rows, y)
            block = _Rows(Z, hull, torch.arange(start, start + len(rows)), level[hull] - Z @ p)
            for h in range(hulls):
                rows_of_hull = _Rows.joined([*best[h : h + 1], block.take(hull == h)])
                most = min(EXTRA_ROWS // hulls, len(rows_of_hull.deficit))
                best[h : h + 1] = [rows_of_hull.take(rows_of_hull.deficit.topk(most).indices)]
        return _Rows.joined(best)

    def residual(self, face: _Rows, w: Tensor, b: float, multipliers: Tensor) -> float:
        """The largest relative violation of the KKT conditions at (w, b, lambda), over all rows of the data."""
        signs = 1 - 2 * face.hull.double()
        parts = [
            float((face.Z.T @ multipliers - w).norm() / w.norm()),
            float((face.Z @ w + signs * b - 1).abs().amax()),
            -float(multipliers.amin() / multipliers.amax()),
            abs(float(multipliers @ signs / multipliers.sum())) if self.free else 0.0,
            float(self.lowest_margin(w, torch.tensor([1 - b, 1 + b], dtype=torch.float64)).deficit.amax()),
        ]
        return max(parts)


def _levels(face: _Rows, share: Tensor) -> tuple[Tensor, Tensor]:
    """p = sum_i share_i z_i, and the mean of <z_i, p> over each hull."""
    p = share @ face.Z
    return p, torch.zeros(2, dtype=torch.float64).index_add_(0, face.hull, share * (face.Z @ p))


def _nearest(rows: _Rows, face: Tensor, share: Tensor, tol: float) -> tuple[Tensor, Tensor]:
    """min |sum_i s_i z_i| over s >= 0 that add up to 1 in each hull: the rows with s_i > 0, and s there."""
    Z, hull = rows.Z, rows.hull
    if not len(face):  # the shortest row of each hull
        lengths = Z.norm(dim=1)
        face = torch.stack([torch.where(hull == h, lengths, torch.inf).argmin() for h in sorted(set(hull.tolist()))])
        share = torch.ones(len(face), dtype=torch.float64)
    batch, length = 0, math.inf
    for _ in range(MAX_STEPS):
        p, level = _levels(rows.take(face), share)
        deficit = level[hull] - Z @ p
        deficit[face] = -torch.inf
        now = float(p.norm())
        stalled = now >= length * (1 - 1e-14)
        if (stalled and batch == 1) or now <= TOUCHING / 10 * float(Z[face].norm(dim=1).amax()):
            break
        batch, length = 1 if stalled else len(face) // 3 + 8, now  # many may block each other, one cannot
        new = deficit.topk(min(batch, len(deficit))).indices
        new = new[deficit[new] > tol * now**2]
        if not len(new):
            break
        face, share = _project_on_face(Z, hull, torch.cat([face, new]), torch.cat([share, share.new_zeros(len(new))]))
    return face, share


def _project_on_face(Z: Tensor, hull: Tensor, face: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Towards the nearest point of the face's affine hull; rows that would get a share below 0 leave the face."""
    while True:
        projected, independent = _affine(Z[face], hull[face])
        if not bool(independent.all()):
            face, share = face[independent], share[independent]
        elif bool((projected > 0).all()):
            return face, projected
        elif bool(((share == 0) & (projected <= 0)).any()):
            keep = (share > 0) | (projected > 0)
            face, share = face[keep], share[keep]
        else:
            step = torch.where(projected > 0, torch.inf, share / (share - projected))
            share = torch.where(step == step.amin(), 0.0, share + step.amin() * (projected - share))
            face, share = face[share > 0], share[share > 0]


def _affine(Z: Tensor, hull: Tensor) -> tuple[Tensor, Tensor]:
    """argmin |sum_i s_i z_i| over s adding up to 1 in each hull, and which rows are independent of those before."""
    size = Z.norm(dim=1).mean().clamp(min=1e-300)
    member = nn.functional.one_hot(hull, int(hull.amax()) + 1).double()
    R = torch.linalg.qr(torch.cat([Z / size, member], dim=1).T, mode="r").R
    diagonal = torch.zeros(len(Z), dtype=torch.float64)
    diagonal[: len(R)] = R.diagonal().abs()
    independent = diagonal > 1e-11
    if not bool(independent.all()):
        return diagonal, independent
    K = torch.linalg.solve_triangular(R, torch.linalg.solve_triangular(R.T, member, upper=False), upper=True)
    return K @ torch.linalg.solve(member.T @ K, torch.ones(member.shape[1], dtype=torch.float64)), independent


def _on_face(face: _Rows, free: bool) -> tuple[Tensor, float, Tensor]:
    """The least w with <z_i, w> + y_i b = 1 on every row of the face, b (0 unless free), and its multipliers."""
    if not free:
        Q, R = torch.linalg.qr(face.Z.T)
        inner = torch.linalg.solve_triangular(R.T, R.new_ones(len(R), 1), upper=False)
        return (Q @ inner)[:, 0], 0.0, torch.linalg.solve_triangular(R, inner, upper=True)[:, 0]
    y = 1 - 2 * face.hull.double()
    X = y[:, None] * face.Z
    Q, R = torch.linalg.qr((X[1:] - X[0]).T)  # <x_i - x_0, w> = y_i - y_0
    inner = torch.linalg.solve_triangular(R.T, (y[1:] - y[0])[:, None], upper=False)
    rest = torch.linalg.solve_triangular(R, inner, upper=True)[:, 0]
    w = (Q @ inner)[:, 0]
    return w, float(y[0] - X[0] @ w), y * torch.cat([-rest.sum()[None], rest])
