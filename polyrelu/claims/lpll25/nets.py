r"""The two nets of the feature-averaging paper, trained as published, and how far they hold (Li et al. 2025).

    data        x = mu_j + N(0, I), |mu_j| = sqrt(d), orthogonal; y = +1 for half of the k clusters
    averaged    (1/m) sum_r relu(<w_+r, x> + b_+r) - (1/m) sum_r relu(<w_-r, x> + b_-r), logistic loss on y
    decoupled   one neuron a cluster, cross-entropy on the cluster; read out as R_{J+} f_i - R_{J-} f_i, R = sum or max

Both, and the hand-built robust net, are f = R_+ relu(w_j x + b_j) - R_- relu(w_j x + b_j). R relu is the largest of
finitely many affine functions (R = sum: the sums over subsets; R = max: the single neurons and 0), so that y f = P - N
with P = max_A A(x), N = max_B B(x), and no point breaks before some B has crossed every A:

    radius(x) >= min_B max_A (A(x) - B(x))_+ / |A - B|                                                      (derived)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.claims import Profile
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.sizes import AVERAGED, LARGEST, NEVER, SUMMED, Recipe
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import READOUTS, FixedOutputNet, GroupedNet, PolyReLUNet
from polyrelu.robust import Budget, bracket
from polyrelu.robust.attacks import strongest
from polyrelu.train import descend

WIDTH = 5  # m
FEW = 6  # neurons whose subsets are all tried for A; any A gives a proof
CLOSE = (1.001, 1.01, 1.1)  # a point is attacked at these multiples of what is proven, until it breaks


@final
class TwoSidedNet(nn.Module):
    """f(x) = R_{s_j = +1} relu(<w_j, x> + b_j) - R_{s_j = -1} relu(<w_j, x> + b_j), R = ``rule`` ("sum" or "max")."""

    def __init__(self, weight: Tensor, bias: Tensor, signs: Tensor, rule: str) -> None:
        super().__init__()
        self.weight, self.bias, self.signs, self.rule = nn.Parameter(weight.detach().clone()), bias, signs, rule

    def hidden(self, X: Tensor) -> Tensor:
        """relu(<w_j, x> + b_j), (n, h): the logits of the clusters where each has one neuron."""
        return nn.functional.linear(X, self.weight, self.bias).relu()

    def forward(self, X: Tensor) -> Tensor:
        """One logit for each row."""
        hidden, readout = self.hidden(X), READOUTS[self.rule]
        return readout(hidden[:, self.signs > 0]) - readout(hidden[:, self.signs < 0])

    def pieces(self, side: float, some: bool = False) -> tuple[Tensor, Tensor]:
        """The affine functions whose maximum is R_{s_j = side} relu, or ``some`` of them; the first one is 0.

        Slopes (a, D) and offsets (a,).
        """
        W, b = self.weight.detach()[self.signs == side], self.bias[self.signs == side]
        if self.rule == "sum" and not (some and len(W) > FEW):
            gates = torch.tensor(list(itertools.product((0.0, 1.0), repeat=len(W)))).to(W)
        else:
            gates = torch.cat([W.new_zeros(1, len(W)), torch.eye(len(W)).to(W)])
        return gates @ W, gates @ b

    def proven(self, X: Tensor, y: Tensor, *, strictly: bool = False) -> Tensor:
        """Radii (n,) within which y f > 0 (or, ``strictly``, y f >= 0: N = 0 breaks nothing); see the head.

        Infinite where A - B is constant and > 0.
        """
        radius = torch.zeros_like(y)
        for side in (1.0, -1.0):
            Z, (slope, offset) = X[y == side], self.pieces(side, some=True)
            other, level = (part[1:] if strictly else part for part in self.pieces(-side))
            value = (Z @ slope.T + offset)[:, :, None] - (Z @ other.T + level)[:, None]
            size = torch.cdist(slope, other, compute_mode="donot_use_mm_for_euclid_dist")
            radius[y == side] = torch.where(value > 0, value / size, 0.0).amax(dim=1).amin(dim=1)
        return radius

    def inside(self) -> tuple[TwoSidedNet, Tensor]:
        """The same net in coordinates X Q' of the span of its neurons, and Q (q, D): no attack gains by leaving it."""
        Q = torch.linalg.qr(self.weight.detach().T).Q.T
        return TwoSidedNet(self.weight.detach() @ Q.T, self.bias, self.signs, self.rule), Q


@final
@dataclass(frozen=True)
class Pair:
    """Two nets of the same data: from class labels and from cluster labels; and as they were before training."""

    mixture: OrthonormalMixture
    train: Dataset
    averaged: FixedOutputNet
    decoupled: GroupedNet
    starts: tuple[FixedOutputNet, GroupedNet]

    def test(self, n: int) -> Dataset:
        """Fresh points of the same mixture."""
        return self.mixture.sample(n, seed=TEST_SEED)

    def nets(self) -> dict[str, TwoSidedNet]:
        """The averaged net, and the decoupled one with either binary read-out."""
        one, weight = self.averaged, self.decoupled.weight.detach()[:, 0]
        none = weight.new_zeros(len(weight))
        return {
            AVERAGED: TwoSidedNet(one.weight.detach() / WIDTH, one.bias.detach() / WIDTH, one.signs, "sum"),
            SUMMED: TwoSidedNet(weight, none, self.mixture.labels, "sum"),
            LARGEST: TwoSidedNet(weight, none, self.mixture.labels, "max"),
        }


@lru_cache(maxsize=2)
def trained_pair(
    profile: Profile, seed: int, k: int = 10, recipe: Recipe | None = None, dtype: torch.dtype = torch.float64
) -> Pair:
    """Both nets by full-batch descent from a start of deviation 1e-5; as published unless a ``recipe`` is given."""
    dim, samples, rate, steps = recipe or sizes.RECIPES[profile]
    mixture = OrthonormalMixture(dim, k // 2, k - k // 2, 1.0, scale="sqrt_dim", dtype=dtype)
    data = mixture.sample(samples, seed=seed)
    assert data.cluster is not None
    by_cluster = Dataset(data.rows(), data.cluster, data.cluster, data.centres)
    averaged = FixedOutputNet(dim, WIDTH, scale=1e-5, seed=seed, dtype=dtype)
    decoupled = GroupedNet(dim, k, 1, scale=1e-5, seed=seed, dtype=dtype)
    how = {"rate": rate, "steps": steps, "every": steps, "until": NEVER}
    one = descend(averaged, data, loss="logistic", **how).net  # type: ignore[arg-type]
    two = descend(decoupled, by_cluster, loss="cross_entropy", **how).net  # type: ignore[arg-type]
    assert isinstance(one, FixedOutputNet) and isinstance(two, GroupedNet)
    return Pair(mixture, data, one, two, (averaged, decoupled))


def radii(net: TwoSidedNet, test: Dataset, train: Dataset, seed: int = 0) -> tuple[Tensor, Tensor]:
    """How far each point holds in l2, (n,): proven, and broken, infinite where no attack succeeded.

    The strongest attack is tried at the proven radius and a little more. A summed read-out without biases is a
    PolyReLUNet, whose bracket branch and bound closes to 1 % as a rule.
    """
    small, Q = net.inside()
    X, y = test.rows() @ Q.T, test.y
    if net.rule == "sum" and not net.bias.any():
        weight = small.weight.detach()
        same = PolyReLUNet(weight.shape[1], len(weight), 1, init="zeros", dtype=weight.dtype)
        same.weight.data, same.output.data = weight, net.signs.to(weight)[None]
        both = bracket(same, X, y, tol=1e-2, budget=Budget(nodes=60))
        return both.lower, both.upper
    lower, pool = small.proven(X, y), Dataset(train.rows() @ Q.T, train.y)
    upper = torch.full_like(lower, torch.inf)
    for more in CLOSE:
        left = upper.isinf()
        if bool(left.any()):
            upper[left] = strongest(small, X[left], y[left], more * lower[left], pool=pool, seed=seed).radius
    return lower, upper


def right(f: Tensor, y: Tensor) -> float:
    """Share of points with y f > 0."""
    return float((y * f > 0).double().mean())
