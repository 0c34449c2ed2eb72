r"""Lipschitz constants of a net in l2, and the radius they prove: R(x) >= q(x)/beta (claim E10).

For f(x) = sum_j a_j relu(<u_j, z>)^p, z = x - centre, |u_j| = 1, the gradient is p |z|^(p-1) g(z/|z|) with
g(e) = sum_j a_j t_j^(p-1) u_j, t_j = relu(<u_j, e>) in [0, 1]: on |z| <= R the constant is exactly
p R^(p-1) sup_{|e|=1} |g(e)|. The least of these bounds of the supremum is used (derived; M = sum_j |a_j| u_j u_j^T):

    any p     sqrt( sum_ij (a_i a_j <u_i, u_j>)_+ ), because the gates t^(p-1) lie in [0, 1]
    p >= 2    lmax(M), by Hoelder: |g| <= sup_e sum_j |a_j| |<u_j, e>|^p, here and below
    p < 2     (sum |a_j|)^(1-p/2) lmax(M)^(p/2)  and  |a|_{2/(2-p)} lmax(U U^T)^(p/2)
    p = 1     m |sum a_j u_j| + d sqrt(sum |a_j| lmax(M)) for gates m +- d: m, d = (1 +- slope)/2, slope 0 for ReLU

For orthonormal u_j they are attained: |a|_{2/(2-p)} for p < 2, max |a| for p >= 2. For p = 1 with few neurons, or with
neurons in a plane, all activation patterns are tried. Input normalisation makes f 1-homogeneous with
|grad f|^2 = p^2 |g|^2 - (p^2 - 1) <g, e>^2, hence the bound p sup |g| everywhere. Deep nets: the product of the layers'
norms. Several logits: the largest constant of all f_c - f_k. Everything is float64 and true up to rounding.
"""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from polyrelu.bias.margins import checked_margins
from polyrelu.checks import checked, checked_output
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import (
    MLP,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    PolyReLUNet,
    SmallCNN,
    TanhNet,
    as_polyrelu_net,
    unit_rows,
)

MAX_ENUMERATED = 8  # neurons up to which all activation patterns are tried
LARGEST_SLOPES = {"sigmoid": 0.25, "gelu": 1.1290}  # sup |phi'|, rounded up; 1 for every other activation
ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Softplus, nn.Sigmoid, nn.GELU, nn.Flatten, nn.Identity)


@final
@dataclass(frozen=True)
class Lipschitz:
    """|q(x) - q(x')| <= value |x - x'| for every margin q, on |x - centre| <= radius (None: everywhere).

    ``attained`` is the largest slope met at points that were tried (0 if none were): the true constant lies between.
    """

    value: float
    attained: float
    radius: float | None

    @property
    def kind(self) -> str:
        """``exact`` where the bound is attained (to 1e-9), else ``bound``."""
        met = self.value == self.attained or self.value - self.attained <= 1e-9 * self.value
        return "exact" if met else "bound"


@checked
def lipschitz(net: nn.Module, radius: float | None = None) -> Lipschitz:
    """l2 Lipschitz constant of the margin of ``net`` (bounds above): f for one logit, every f_c - f_k for several.

    Exact for linear models, one neuron, orthogonal neurons, and for p = 1 up to 8 neurons or neurons in a plane. Knows
    all nets of the package but Bayes and nearest centre, and ``nn.Sequential`` of plain layers. For p > 1 without input
    normalisation it is infinite unless a ``radius`` around the net's centre is given. O(h^2 D + D^3) for each margin.
    """
    require(radius is None or 0 < radius < math.inf, "radius", radius, "None (all of space) or a finite number > 0")
    layer = _hidden_layer(net)
    if layer is None:
        value, attained = product_of_norms(net)
        return Lipschitz(value, attained, radius)
    upper, lower = layer.steepest()
    factor = 1.0
    if layer.unbounded:
        factor = math.inf if radius is None else radius ** (layer.p - 1)
    if layer.gates == "biased" and radius is not None:
        lower = 0.0  # met far out only
    return Lipschitz(upper * factor if upper else 0.0, lower * factor if lower else 0.0, radius)


@checked
def lipschitz_radius(net: nn.Module, data: Dataset) -> Tensor:
    """R(x) >= q/beta for every row (Lyu & Li 2020), (n,) float64; 0 for misclassified rows.

    For p > 1 without input normalisation the slope p s |z|^(p-1), s = sup |g|, is followed outwards instead:
    R >= (|z|^p + q/s)^(1/p) - |z|. One forward pass in float64, O(n h D), and ``lipschitz``. The paper's number, not a
    proof: the margin is that of float64, without allowance for its rounding; `polyrelu.robust` has the certificates.
    """
    layer = _hidden_layer(net)
    p = layer.p if layer is not None and layer.unbounded else 1.0
    beta = lipschitz(net, 1.0 if p > 1 else None).value / p
    centre = getattr(net, "centre", None)
    exact = copy.deepcopy(net).double()
    radii = []
    for start, rows in data.blocks():
        with torch.no_grad():
            logits = checked_output(exact, rows.double(), "net")
        kind = "labels of another kind", "+1/-1 for one logit, 0..C-1 for several"
        require((logits.ndim == 1) == data.binary, "data", *kind)
        q = checked_margins(logits, data.y[start : start + len(rows)]).clamp(min=0) / beta
        z = (rows.double() if centre is None else rows.double() - centre.double()).norm(dim=1)
        out = z * torch.expm1(torch.log1p(q / z.pow(p)) / p)
        radii.append(torch.where(q > 0, torch.where(out.isfinite(), out, q.pow(1 / p)), 0.0))
    return torch.cat(radii)


class _HiddenLayer(NamedTuple):
    """f_c = sum_j A_cj phi(<u_j, z>) with phi = relu^p, or of slope in [low, 1].

    gates : "sign" where they depend on sign <u_j, z> only (p = 1) or on t^(p-1); "biased" with hidden biases; "smooth"
    """

    U: Tensor
    A: Tensor
    p: float = 1.0
    normalised: bool = False
    low: float = 0.0
    gates: str = "sign"

    @property
    def unbounded(self) -> bool:
        return self.p > 1 and not self.normalised

    def steepest(self) -> tuple[float, float]:
        """p sup |g| (for |z| = 1) over all margins: a bound, and the largest value met."""
        live = (self.A != 0).any(dim=0)
        if not bool(live.any()):
            return 0.0, 0.0
        size = float(self.A.abs().amax())  # taken out, so that squares neither vanish nor overflow
        net = self._replace(U=self.U[live], A=self.A[:, live] / size)
        patterns = net.patterns() if net.p == 1 and net.gates == "sign" else None
        gram = net.U @ net.U.T if patterns is None else net.U
        found = [_margin_slope(net, a, gram, patterns) for a in differences(net.A) if bool(a.any())] or [(0.0, 0.0)]
        return size * max(upper for upper, _ in found), size * max(lower for _, lower in found)

    def patterns(self) -> Tensor | None:
        """All gates (cells, h) that directions e reach, for few neurons or neurons in a plane; else None."""
        h = len(self.U)
        _, S, V = torch.linalg.svd(self.U, full_matrices=False)
        rank = int((S > 1e-12 * S[0]).sum())
        if rank <= 2:
            plane = self.U @ V[:2].T
            plane = plane if plane.shape[1] == 2 else torch.cat([plane, torch.zeros_like(plane)], dim=1)
            turn = torch.atan2(plane[:, 1], plane[:, 0])
            edges = torch.cat([turn + math.pi / 2, turn - math.pi / 2]).remainder(2 * math.pi).sort().values
            edges = torch.cat([edges, edges[:1] + 2 * math.pi])
            middle = ((edges[1:] + edges[:-1]) / 2)[edges.diff() > 1e-12]
            open_ = torch.stack([middle.cos(), middle.sin()], dim=1) @ plane.T > 0
        elif h <= MAX_ENUMERATED:
            every = torch.tensor(list(itertools.product([True, False], repeat=h)))
            open_ = every if rank == h else every[torch.tensor([_attainable(self.U, row) for row in every])]
        else:
            return None
        return self.low + (1 - self.low) * open_.double()


def _attainable(U: Tensor, row: Tensor) -> bool:
    """Is there an e with <u_j, e> > 0 exactly for the j in ``row``?"""
    from scipy.optimize import linprog

    sides = -(2 * row.double() - 1)[:, None] * U
    solved = linprog([0.0] * U.shape[1], sides.numpy(), [-1.0] * len(U), bounds=(None, None))
    return bool(solved.status == 0)


def _margin_slope(net: _HiddenLayer, a: Tensor, gram: Tensor, patterns: Tensor | None) -> tuple[float, float]:
    """p sup |g| of one margin: a bound, and the largest value met."""
    p, U, size = net.p, net.U, a.abs()
    if patterns is not None:
        exact = float(((patterns * a) @ U).norm(dim=1).amax())
        return exact, exact
    if net.normalised and len(U) == 1:  # the best angle has cos^2 = p/(p+1)
        exact = float(size) * (math.sqrt(p) * (p / (p + 1)) ** ((p - 1) / 2) if U.shape[1] > 1 else 1.0)
        return exact, exact
    top = _largest_eigenvalue(size.sqrt()[:, None] * U)
    bounds = [float((gram * torch.outer(a, a)).clamp(min=0).sum().sqrt())]
    if p >= 2:
        bounds.append(top)
    else:
        total = float(size.sum())
        mean = float((size / size.amax()).pow(2 / (2 - p)).sum()) ** (1 - p / 2) * float(size.amax())
        bounds += [total ** (1 - p / 2) * top ** (p / 2), mean * _largest_eigenvalue(U) ** (p / 2)]
        if p == 1:
            straight = float((a @ U).norm())
            bounds.append((1 + net.low) / 2 * straight + (1 - net.low) / 2 * math.sqrt(total * top))
    if net.gates == "smooth":
        return min(bounds), float((a @ U).norm())  # at the origin every gate is open
    return p * min(bounds), _largest_slope_met(net, a)


def _largest_slope_met(net: _HiddenLayer, a: Tensor) -> float:
    """The largest slope at directions worth a try: large neurons, their sums, random ones, and where g points."""
    p, U = net.p, net.U
    heavy = U[a.abs().topk(min(32, len(a))).indices]
    even = (a.abs() / a.abs().amax()).pow(1 / (2 - p) if p < 2 else 1.0)
    sums = torch.stack([even, even * (a > 0), even * (a < 0), a]) @ U
    noise = torch.randn(64 + len(heavy) + 8, U.shape[1], generator=torch.Generator().manual_seed(0), dtype=U.dtype)
    E = nn.functional.normalize(torch.cat([heavy, sums, -sums, noise[:64]]), eps=1e-300)
    if p == 1:  # off every kink, where gates are not those of any neighbour
        E[:-64] += 1e-7 * noise[64:]
    best = 0.0
    for _ in range(3):
        E = nn.functional.normalize(E, eps=1e-300)
        T = (E @ U.T).relu()
        gates = net.low + (1 - net.low) * (T > 0).double() if p == 1 else T.pow(p - 1)
        G = (gates * a) @ U
        slope = p * p * G.square().sum(dim=1)
        if net.normalised:
            slope -= (p * p - 1) * (G * E).sum(dim=1).square()
        best, E = max(best, float(slope.amax().clamp(min=0).sqrt())), G
    return best


def _largest_eigenvalue(M: Tensor) -> float:
    """lmax(M M^T)."""
    return float(torch.linalg.eigvalsh(M @ M.T if len(M) <= M.shape[1] else M.T @ M)[-1])


def _hidden_layer(net: nn.Module) -> _HiddenLayer | None:
    """The net as one hidden layer, or None."""
    net = as_polyrelu_net(net)
    if isinstance(net, PolyReLUNet):
        u, log_r = unit_rows(net.weight)
        rate = (log_r + 2 * net.log_scale).exp()
        return _HiddenLayer(u, net.output.detach().double().reshape(net.outputs, -1) * rate, net.p, net.normalise_input)
    if isinstance(net, GroupedNet):
        u, log_r = unit_rows(net.weight.flatten(0, 1))
        owner = torch.eye(net.outputs, dtype=torch.float64).repeat_interleave(net.weight.shape[1], dim=1)
        return _HiddenLayer(u, owner * log_r.exp() / net.weight.shape[1])
    if isinstance(net, FixedOutputNet):
        u, log_r = unit_rows(net.weight)
        return _HiddenLayer(u, (2 * net.signs.double() / len(net.signs) * log_r.exp())[None], gates="biased")
    if isinstance(net, PlainPolyNet | LeakyReLUNet | TanhNet):
        u, log_r = unit_rows(net.weight)
        p = net.p if isinstance(net, PlainPolyNet) else 1.0
        A = net.output.detach().double() * (p * log_r).exp()
        low = net.slope if isinstance(net, LeakyReLUNet) else 0.0
        return _HiddenLayer(u, A, p, False, low, "smooth" if isinstance(net, TanhNet) else "sign")
    return None


def product_of_norms(net: nn.Module) -> tuple[float, float]:
    """prod_l |W_l|_2 (times sup |phi'|), with |w_c - w_k| for the last layer; and what is attained: all or 0.

    One linear layer attains it. Max-pools of disjoint windows have constant 1. O(a b min(a, b)) for a layer (a, b).
    """
    factors: list[float] = []
    if isinstance(net, LogisticRegression | nn.Linear):
        last: Tensor = net.weight
    elif isinstance(net, MLP):
        *hidden, last = net.weights
        steep = LARGEST_SLOPES.get(net.settings["activation"], 1.0)
        factors = [steep * _norm(weight) for weight in hidden]
    elif isinstance(net, SmallCNN):
        first, second, third, last = net.weights
        factors = [filter_norm(first, net.side), filter_norm(second, -(-net.side // 2)), _norm(third)]
    elif isinstance(net, nn.Sequential) and len(net) and isinstance(net[-1], nn.Linear):
        factors = [_layer(name, module) for name, module in list(net.named_children())[:-1]]
        last = net[-1].weight
    else:
        allowed = "a net of this package with weights, or an nn.Sequential that ends in nn.Linear"
        raise InputError(f"net={type(net).__name__}: expected {allowed}.")
    value = float(differences(last.detach().double()).norm(dim=1).amax()) * math.prod(factors)
    return value, 0.0 if factors else value


def differences(A: Tensor) -> Tensor:
    """A_c - A_k for all pairs of rows; A itself if it has one."""
    if len(A) == 1:
        return A
    c, k = torch.triu_indices(len(A), len(A), 1)
    return A[c] - A[k]


def filter_norm(weight: Tensor, side: int) -> float:
    """A bound of the norm of a SAME convolution (out, in, k, k), stride 1, on side x side images; O(side^2 out in^2).

    It is a part of the circular convolution on side + k - 1 pixels, which the Fourier transform makes block-diagonal.
    """
    size = side + weight.shape[-1] - 1
    symbol = torch.fft.fft2(weight.detach().double(), s=(size, size)).permute(2, 3, 0, 1)
    return float(torch.linalg.matrix_norm(symbol, 2).amax())


def _layer(name: str, module: nn.Module) -> float:
    if type(module) in ELEMENTWISE:
        return LARGEST_SLOPES.get(type(module).__name__.lower(), 1.0)
    if isinstance(module, nn.LeakyReLU):
        return max(1.0, abs(module.negative_slope))
    if isinstance(module, nn.Linear):
        return _norm(module.weight)
    if isinstance(module, nn.Conv2d) and module.groups == 1 and module.padding_mode == "zeros":
        return math.sqrt(math.prod(module.kernel_size)) * _norm(module.weight.flatten(1))  # a pixel is in k k patches
    if isinstance(module, nn.MaxPool2d) and module.stride == module.kernel_size and module.dilation == 1:
        return 1.0
    what = f"layer {name}, {module}, has no Lipschitz bound here"
    raise InputError(f"net: {what}; expected layers such as Linear or ReLU.")


def _norm(weight: Tensor) -> float:
    return float(torch.linalg.matrix_norm(weight.detach().double(), 2))
