r"""What decides the margin of a PolyReLUNet, in few coordinates.

    margin(x) = sum_j a_j relu(<u_j, x>)^p + beta,   a_j = (V_yj - V_cj) |w_j|,   |u_j| = 1,  one row per rival class c

Trained neurons collapse: thousands of u_j are a handful of directions, up to 1e-5. They are grouped, and written in a
basis Q of the groups' span, u_j = Q^T C_g + e_j. Within distance R of x the mistake is at most

    |sum_j a_j (relu(u_j z)^p - relu(c_j z)^p)| <= sum_j |a_j| p hi_j^(p-1) ( |<e_j, x>| + |e_j| R )  =: slack,

hi_j the largest pre-activation in the ball. V_yj - V_cj may cancel, so the rounding of coefficients, made by class and
then subtracted, is counted in units of |V_yj| + |V_cj|; neurons lighter than DUST beside the heaviest are left out, and
counted as if they had that size. What is proven for "P - slack <= N" is proven for the net, and with what `whole.run`
adds to the slack for the net as executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.nets import PolyReLUNet, relu_power
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.margin import margin_of
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.scaled_net import DUST, HUGE, UNIT, ScaledNet

COMPARED = 256  # neurons held against all others at a time


@final
@dataclass(frozen=True, eq=False)
class ReducedRows:
    """One row per (point, rival class): everything in the k coordinates of the net's own span.

    point, rival : (R,) which point, against which class (0 for one logit)
    s (R, k) : the point; coefficient (R, m) : a_j of the groups, positive for the own class
    beta (R,) : b_y - b_c; length (R,) : |x - centre|
    pre (n, h) : <u_j, x - centre> of every neuron, by point
    scale (R,) : by what the point was divided, size (R,) : by what the margin was; 1 but in `scaled` rows
    """

    point: Tensor
    rival: Tensor
    s: Tensor
    coefficient: Tensor
    beta: Tensor
    length: Tensor
    pre: Tensor
    scale: Tensor
    size: Tensor

    def at_points(self, points: Tensor) -> tuple[Tensor, ReducedRows]:
        """The numbers of the rows of these ``points`` (in rising order), and those rows as if there were no others."""
        mine = torch.isin(self.point, points).nonzero()[:, 0]
        place = torch.searchsorted(points, self.point[mine])
        return mine, replace(self.only(mine), point=place, pre=self.pre[points])

    def only(self, mine: Tensor) -> ReducedRows:
        """These rows, of the same points."""
        names = ("point", "rival", "s", "coefficient", "beta", "length", "scale", "size")
        return replace(self, **{name: getattr(self, name)[mine] for name in names})

    @property
    def first(self) -> Tensor:
        """(n,): the first row of each point."""
        return self.point.diff(prepend=self.point.new_full((1,), -1)).nonzero()[:, 0]

    def scaled(self, net: ReducedNet) -> ReducedRows:
        """The same rows with points of length 1 (a bias has a length too) and the largest coefficient 1."""
        scale, power = self.length, 1.0
        if not (net.normalised and net.p > 1):
            power = net.p
            scale = scale.clamp(min=2 * float(net.bias.abs().amax()) ** (1 / net.p))
        scale = torch.where(scale > 0, scale, 1.0)
        size = self.coefficient.abs().amax(dim=1)
        size = torch.where(size > DUST, size, 1.0)
        return replace(
            self,
            s=self.s / scale[:, None],
            coefficient=self.coefficient / size[:, None],
            beta=self.beta / scale.pow(power) / size,
            length=self.length / scale,
            pre=self.pre / scale[self.first, None],
            scale=scale,
            size=size,
        )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.point)


@final
@dataclass(frozen=True, eq=False)
class ReducedNet:
    """A PolyReLUNet reduced to the directions that matter; all tensors float64.

    U (h, D) unit directions and V (C, h) coefficients v_j |w_j| of the net itself, the largest made 1, and the bias to
    match; basis Q (k, D), groups C (m, k) and their coefficients (C, m); group (h,), residual (h, D) = u_j - Q^T C_g.
    ``normalised`` says that f is divided by |x|^(p-1), which matters only beside a bias: otherwise signs are the same.
    ``stretch`` >= |Q|: a step d in the original space is one of at most stretch |d| here (1, but for the rounding in
    the rows of Q). ``whole`` is all of the net, before any was left out.
    """

    whole: ScaledNet
    p: float
    U: Tensor
    V: Tensor
    bias: Tensor
    centre: Tensor
    normalised: bool
    Q: Tensor
    C: Tensor
    coefficients: Tensor
    group: Tensor
    residual: Tensor
    stretch: float

    @staticmethod
    @checked
    def from_net(net: PolyReLUNet, tol: float = 1e-3, arithmetic: Arithmetic = REAL) -> ReducedNet:
        """Group the neurons of ``net`` so that the mistake moves radii by well under ``tol`` (and is accounted for)."""
        whole = ScaledNet.from_net(net, arithmetic)
        V = whole.output * whole.rate
        weight = V.abs().amax(dim=0)
        keep = weight > DUST
        bias = whole.in_units(whole.bias)
        if not bool((bias.abs() < HUGE).all()):  # beside such a bias no neuron counts: nothing to reduce
            keep = torch.zeros_like(keep)
        U, V, weight = whole.U[keep], V[:, keep], weight[keep]
        group = _groups(U, weight, tol / 40)
        m = int(group.max()) + 1 if len(group) else 0
        total = torch.zeros(m, dtype=torch.float64).index_add_(0, group, weight)
        G = torch.zeros(m, U.shape[1], dtype=torch.float64).index_add_(0, group, weight[:, None] * U) / total[:, None]
        Q = _basis(G, total, tol / 40)
        C = G @ Q.T
        skew = torch.linalg.matrix_norm(Q @ Q.T - torch.eye(len(Q), dtype=torch.float64))  # 0 if Q were orthonormal
        return ReducedNet(
            whole=whole,
            p=net.p,
            U=U,
            V=V,
            bias=bias,
            centre=whole.centre,
            normalised=net.normalise_input,
            Q=Q,
            C=C,
            coefficients=torch.zeros(len(V), m, dtype=torch.float64).index_add_(1, group, V),
            group=group,
            residual=U - (C @ Q)[group],
            stretch=1 + float(skew) + 2 * len(Q) * (net.dim + 8) * UNIT,
        )

    @property
    def groups(self) -> int:
        """m, the number of directions kept."""
        return len(self.C)

    def rows(self, X: Tensor, y: Tensor, neurons: bool = True) -> ReducedRows:
        """Rows for every point of ``X`` (n, D) against every rival of its label; without ``neurons`` no ``pre``.

        The products with X are made in its dtype, everything after them in float64.
        """
        Z = X - self.centre.to(X.dtype)
        n, classes = len(X), len(self.V)
        if classes == 1:
            point, rival = torch.arange(n), torch.zeros(n, dtype=torch.long)
            sign = y.double()[:, None]
            coefficient, difference = sign * self.coefficients, sign[:, 0] * self.whole.bias
        else:
            others = torch.arange(classes).expand(n, -1)
            rival = others[others != y[:, None]]
            point = torch.arange(n).repeat_interleave(classes - 1)
            own = y[point]
            coefficient = self.coefficients[own] - self.coefficients[rival]
            difference = self.whole.bias[own] - self.whole.bias[rival]
        length = lengths(Z, 2.0).double()
        s = (Z @ self.Q.to(X.dtype).T).double()
        pre = (Z @ self.U.to(X.dtype).T).double() if neurons else s.new_empty(n, 0)
        beta = self.whole.in_units(difference)
        one = torch.ones_like(beta)
        return ReducedRows(point, rival, s[point], coefficient, beta, length[point], pre, one, one)

    def slack(self, y: Tensor, rows: ReducedRows, R: Tensor) -> Tensor:
        """The mistake of the reduction for each row, anywhere within ``R`` (n,) of its point; rounding included.

        Rounding is that of this package and, if ``whole.run`` says so, that of the executed net.
        """
        n, first, run = len(rows.pre), rows.first, self.whole.run
        off = rows.pre - (rows.s[first] @ self.C.T)[:, self.group]  # <e_j, x>
        size = lengths(self.residual, 2.0)
        length, R, scale = rows.length[first].view(n, 1), R.view(n, 1), rows.scale[first].view(n, 1)
        rounding = (8 * (self.U.shape[1] + 8) * UNIT + run.blur) * (length + R) + run.shifted / scale
        high = (torch.maximum(rows.pre, rows.pre - off) + ((1 + size) * R + rounding)).clamp(min=0)
        moved = off.abs() + (size * R + rounding)
        steep = relu_power(high, self.p - 1) if self.p > 1 else torch.ones_like(high)
        wrong = steep * moved * self.p
        terms = torch.bincount(self.group, minlength=self.groups)[self.group] + 16.0  # roundings of a coefficient
        unsure = terms * UNIT + self.whole.log_eps + run.relative
        blurred = (wrong + steep * high) * unsure @ self.V.abs().T  # (n, classes)
        blurred = (
            blurred + self._constant(length + R, scale) + 2 * run.coefficient * (steep * high).sum(1, keepdim=True)
        )
        if len(self.V) == 1:
            slack: Tensor = (wrong @ self.V[0].abs() + blurred[:, 0])[rows.point]
        else:
            own = y[rows.point]
            slack = blurred[rows.point, own] + blurred[rows.point, rows.rival]
            for label in torch.unique(own):
                here = own == label
                by_rival = wrong @ (self.V[label] - self.V).abs().T
                slack[here] += by_rival[rows.point[here], rows.rival[here]]
        return slack / rows.size * (1 + 4 * (len(self.U) + 16) * UNIT)

    def _constant(self, far: Tensor, scale: Tensor) -> Tensor:
        """(n, classes): light neurons that were left out, and what biases and underflow add in the executed net.

        ``far`` (n, 1) : the largest |z|
        """
        run, p = self.whole.run, self.p
        dust = len(self.whole.U) * DUST * far.clamp(min=1).pow(p)
        if self.normalised and p > 1:
            return dust + (run.relative * self.bias.abs() / scale + run.spare * (4 + 1 / scale)) * far.pow(p - 1)
        return dust + (run.relative * self.bias.abs() + run.spare) / scale.pow(p)

    def ray(self, X: Tensor, y: Tensor, rows: ReducedRows, step: Tensor) -> Ray:
        """The rays x_i + c Q^T step_i, ``step`` (n, k)."""
        Z = X - self.centre
        lengths = Z.square().sum(1), (Z @ self.Q.T * step).sum(1), step.square().sum(1)
        return Ray(self, rows.pre, step @ (self.Q @ self.U.T), torch.stack(lengths, dim=1), y)


@final
@dataclass(frozen=True, eq=False)
class Ray:
    """Straight lines from points, by their pre-activations (n, h): start, change, |x|^2 <x,d> |d|^2, labels."""

    net: ReducedNet
    start: Tensor
    change: Tensor
    squares: Tensor
    y: Tensor

    def __len__(self) -> int:
        """Number of points."""
        return len(self.start)

    def __getitem__(self, keep: Tensor) -> Ray:
        """The rays named by ``keep``."""
        return Ray(self.net, self.start[keep], self.change[keep], self.squares[keep], self.y[keep])

    def margin(self, c: Tensor) -> Tensor:
        """margin(x_i + c_i d_i), c (n,), with the true neurons."""
        net = self.net
        logits = relu_power(torch.addcmul(self.start, c[:, None], self.change), net.p) @ net.V.T
        if net.normalised and net.p > 1:
            inner, ahead, far = self.squares.unbind(dim=1)
            length = (inner + 2 * c * ahead + c * c * far).clamp(min=0).sqrt()
            logits = logits / torch.where(length > 0, length, 1.0).pow(net.p - 1)[:, None]
        logits = logits + net.bias
        return margin_of(logits[:, 0] if len(net.V) == 1 else logits, self.y)


def _groups(U: Tensor, weight: Tensor, tol: float) -> Tensor:
    """Group numbers: the heaviest neuron left takes all that are near enough, light ones from further away."""
    group = torch.full((len(U),), -1)
    if not len(U):
        return group
    near = tol * (weight.mean() / weight).clamp(min=1)
    order, count = weight.argsort(descending=True), 0
    while len(order):
        block = order[:COMPARED]
        close = (2 - 2 * (U[block] @ U.T)).clamp(min=0).sqrt() <= near
        for j, mine in zip(block.tolist(), close, strict=True):
            if group[j] < 0:
                taken = (group < 0) & mine
                taken[j] = True
                group[taken] = count
                count += 1
        order = order[group[order] < 0]
    return group


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run a function, or what stands inside, with one torch thread, and leave torch as it was.

    In few coordinates an operation takes microseconds; where another program uses a core, a second thread made a
    certificate ten times slower.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@single_threaded()
def _basis(G: Tensor, weight: Tensor, tol: float) -> Tensor:
    """Orthonormal rows spanning the groups up to a weighted mean distance ``tol``."""
    if not len(G):
        return G.new_zeros(0, G.shape[1])
    rows = weight.sqrt()[:, None] * G
    if len(G) < G.shape[1]:  # through the Gram matrix, several times faster; QR makes the rows orthonormal again
        values, left = torch.linalg.eigh(rows @ rows.T)
        strong = values.flip(0) > 1e-14 * values[-1].clamp(min=1e-290)
        basis: Tensor = torch.linalg.qr((left.flip(1)[:, strong].T @ rows).T).Q.T
    else:
        basis = torch.linalg.svd(rows, full_matrices=False).Vh
    beyond = (G @ basis.T).square().flip(1).cumsum(1).flip(1).clamp(min=0).sqrt()
    missed = (weight[:, None] * beyond).sum(0) / weight.sum()
    return basis[: max(1, int((missed > tol).sum()))]
