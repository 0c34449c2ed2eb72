r"""What a neuron is made of, and whether that is its class's average or one centre.

    w_j [- w_j(0)] = |w_j| (sum_k lambda_jk mu_k / m + rest_j),   m = sqrt(mean_k |mu_k|^2)

(Li et al., ICLR 2025.) Of every neuron only its direction counts, and lengths are in units of the centres'
common length m: lambda is the same for unit centres and for centres of length sqrt(d), and for orthogonal centres of
equal length it is the cosine of neuron and centre. The papers' lambda is exp(log_size_j) lambda_jk / m.

Averaging or decoupling is read from the clipped own coefficients l_k = max(lambda_jk, 0), k in the neuron's class:

    PR_j = (sum_k l_k)^2 / sum_k l_k^2,     score_j = (K_own - PR_j)/(K_own - 1)

Coefficients, not responses <w_j, mu_k>: the class's sum has equal ones and a centre has one, whatever the norms and
angles, so both ends are exact for correlated centres too. PR has no threshold and counts the centres in use: m equal
ones score (K_own - m)/(K_own - 1). Undefined for K_own = 1, where the average is the centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.bias.first_layer import Neurons, displacement, neurons_of, own_class_mask, sample_coefficients
from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require

CLASS_AVERAGES, SINGLE_CENTRES, MIXTURE = "class averages", "single centres", "a mixture of both"
ONE_SUBCLASS = "undefined: every class has one sub-class, whose centre is its average"
NO_OWN_COEFFICIENT = "nothing: no neuron has a positive coefficient on a centre of its own class"
OUTSIDE_SPAN = "neither: most of the weights lies outside the span of the centres"


@final
@dataclass(frozen=True)
class LearnedStructure:
    """What the neurons learned, each counting by its contribution |v_j||w_j|; nan where undefined.

    score : decoupling score, 0 for class averages, 1 for single centres
    low, high : its range; equal to the score unless centres were estimated (see `polyrelu.bias.decoupling`)
    spread : its standard deviation over neurons
    averaging_ratio : smallest over largest own coefficient, negative ones clipped to 0
    other_ratio, other_largest : mean and largest |coefficient| on the other classes' centres, over the mean own one;
        the theorem bounds every one of them, C8 says "other/own" (k = 32 of its quick setting: mean .19, largest .28)
    effective : number of own centres in use, the mean participation ratio
    explained : share of |w_j|^2 in the span of the centres
    verdict : "class averages" (score <= 1/4), "single centres" (score >= 3/4 and effective <= 3/2), "a mixture of
        both", or why it is none of these (e.g. explained < 1/2 (1 + K/D), half-way from a random direction)
    """

    score: float
    low: float
    high: float
    spread: float
    averaging_ratio: float
    other_ratio: float
    other_largest: float
    effective: float
    explained: float
    verdict: str


@final
@dataclass(frozen=True, eq=False)
class Decomposition:
    """Coefficients of h neurons on K centres, float64.

    coefficients (h, K) : lambda of the module docstring
    log_size (h,) : log |w_j|, or log |w_j - w_j(0)|
    share (h,) : contribution |v_j||w_j| of each neuron, summing to 1
    residual (h,) : |rest_j|, in [0, 1]
    own (h, K) : is centre k of neuron j's class? None where the classes of centres or neurons are unknown
    condition : largest over smallest singular value of the centres that was used; ``rank`` of them were
    outside (h,) : length of the part outside span{x_i}, over |w_j|; None without samples
    samples (h, n) : w_j [- w_j(0)] = |w_j| sum_i samples_ji x_i; None unless the x_i are independent, hence n <= D
    weights (K,) : what own coefficients are divided by before they are compared
    """

    coefficients: Tensor
    log_size: Tensor
    share: Tensor
    residual: Tensor
    own: Tensor | None
    condition: float
    rank: int
    outside: Tensor | None
    samples: Tensor | None
    weights: Tensor
    dim: int

    def own_mask(self) -> Tensor:
        """Which coefficients belong to the neuron's own class, (h, K); InputError where the classes are unknown."""
        if self.own is None:
            raise InputError(
                "own class of the neurons unknown: give labels of the centres, and owners of bare weights."
            )
        return self.own

    def own_coefficients(self) -> Tensor:
        """max(lambda_jk, 0)/weight_k on own centres, 0 elsewhere and for rounding (1e-12 of the largest), (h, K)."""
        tiny = 1e-12 * self.coefficients.abs().amax(dim=1, keepdim=True)
        return (self.coefficients / self.weights).masked_fill(~self.own_mask() | (self.coefficients <= tiny), 0.0)

    def effective(self) -> Tensor:
        """Participation ratio of each neuron (h,), 1..K_own; nan for one that has no own coefficient > 0."""
        own = self.own_coefficients()
        own = own / own.amax(dim=1, keepdim=True)
        return own.sum(dim=1).square() / own.square().sum(dim=1)

    def decoupling_scores(self) -> Tensor:
        """(K_own - PR)/(K_own - 1) of each neuron (h,); nan where K_own < 2 or no own coefficient is > 0."""
        among = self.own_mask().sum(dim=1).double()
        score = (among - self.effective()) / (among - 1)
        return torch.where(among > 1, score.clamp(0, 1), torch.nan)

    def averaging_ratios(self) -> Tensor:
        """min/max own coefficient of each neuron (h,), negative ones clipped to 0: 1 = class average; nan as above."""
        own = self.own_coefficients()
        least = own.masked_fill(~self.own_mask(), torch.inf).amin(dim=1)
        return torch.where(self.own_mask().sum(dim=1) > 1, least / own.amax(dim=1), torch.nan)

    def other_and_own(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and largest |coefficient| on the other classes' centres, and mean own one, of each neuron (h,)."""
        own_mask = self.own_mask()
        other = self.coefficients.abs().masked_fill(own_mask, 0.0)
        own = self.coefficients.masked_fill(~own_mask, 0.0).sum(dim=1) / own_mask.sum(dim=1).clamp(min=1)
        return other.sum(dim=1) / (~own_mask).sum(dim=1).clamp(min=1), other.amax(dim=1), own

    def learned(self) -> LearnedStructure:
        """Contribution-weighted means over the neurons where each is defined, and the verdict; O(h K)."""
        scores = self.decoupling_scores()
        score, effective = self._mean(scores), self._mean(self.effective())
        explained = self._mean(1 - self.residual.square())
        spread = math.sqrt(max(0.0, self._mean((scores - score).square())))
        if bool((self.own_mask().sum(dim=1) < 2).all()):
            verdict = ONE_SUBCLASS
        elif math.isnan(score):
            verdict = NO_OWN_COEFFICIENT
        elif explained < (1 + self.coefficients.shape[1] / self.dim) / 2:
            verdict = OUTSIDE_SPAN
        elif score <= 0.25:
            verdict = CLASS_AVERAGES
        else:
            verdict = SINGLE_CENTRES if score >= 0.75 and effective <= 1.5 else MIXTURE
        other, largest, own = map(self._mean, self.other_and_own())
        ratios = (other / own, largest / own) if own > 0 else (math.nan, math.nan)
        averaging = self._mean(self.averaging_ratios())
        return LearnedStructure(score, score, score, spread, averaging, *ratios, effective, explained, verdict)

    def _mean(self, values: Tensor) -> float:
        good = values.isfinite() & (self.share > 0)
        return float((self.share * values)[good].sum() / self.share[good].sum()) if bool(good.any()) else math.nan


@checked
def decompose(
    net: torch.nn.Module | Tensor | Neurons,
    centres: Tensor,
    labels: Tensor | None = None,
    start: torch.nn.Module | Tensor | None = None,
    X: Dataset | Tensor | None = None,
    *,
    owners: Tensor | None = None,
    weights: Tensor | None = None,
    rtol: float = 0.02,
) -> Decomposition:
    """lambda = W M^+, M (K, D) the preprocessed centres (Li et al. 2025); exact for w_j in their span.

    O(h D K), and O(n D^2) when samples are given: they are read block by block.

    Parameters
    ----------
    net : PolyReLUNet, FixedOutputNet, GroupedNet, another net of one hidden layer, F, F^(p), or bare weights (h, D)
    centres, labels : (K, D) in raw coordinates, and their classes (K,), +1/-1 or 0..C-1
        A GroupedNet has one group for each centre, which is of that centre's class, or one for each class.
    start : the same net before training; its weights are subtracted
    X : the samples, to measure what lies outside their span (C15: nothing, for gradient descent). With p > 1 a
        PolyReLUNet's weights also keep a multiple of w_j(0), which is not counted.
    owners : (h,) the class of each neuron, for bare weights
    weights : (K,) positive, e.g. the sizes of the sub-classes: score 0 is then their weighted average. Default: equal.
    rtol : singular values of M below ``rtol`` times the largest count as 0. Centres minus their mean, say, are
        dependent, and coefficients are not unique: the smallest on the other classes' centres are taken
    """
    neurons = neurons_of(net)
    raw = torch.as_tensor(centres)
    h, dim = neurons.directions.shape
    good = raw.ndim == 2 and len(raw) > 0 and raw.shape[1] == dim
    require(good, "centres.shape", tuple(raw.shape), f"(K, {dim}), as many columns as the weights")
    M = neurons.preprocess(raw)
    m = float(M.square().sum(dim=1).mean().sqrt())
    require(math.isfinite(m) and m > 0, "centres", f"length {m:g}", "finite centres that are not all 0")
    rows, log_size = neurons.directions, neurons.log_norm
    first = None if start is None else neurons_of(start)
    if first is not None:
        same = first.directions.shape == rows.shape
        require(same, "start", f"weights of shape {tuple(first.directions.shape)}", f"{(h, dim)}, as in the net")
        rows, log_size = displacement(neurons, first)
    own = own_class_mask(neurons, labels, owners, len(M))
    left, sizes, right = torch.linalg.svd(M / m, full_matrices=len(M) > dim)
    rank = int((sizes > rtol * sizes[0]).sum())
    coefficients = (rows @ right[:rank].T / sizes[:rank]) @ left[:, :rank].T
    if own is not None and rank < len(M):
        coefficients = _minimise_on_other_classes(coefficients, own, left[:, rank:])
    residual = torch.linalg.vector_norm(rows - coefficients @ (M / m), dim=1)
    share = neurons.log_contribution.softmax(dim=0)
    require(bool(share.isfinite().all()), "net", "all neurons are 0", "a neuron that is not 0")
    outside, samples = (None, None) if X is None else sample_coefficients(rows, X, neurons, first)
    even = torch.ones(len(M)).double() if weights is None else torch.as_tensor(weights).double()
    good = tuple(even.shape) == (len(M),) and bool((even > 0).all())
    require(good, "weights", even.tolist(), f"{len(M)} numbers > 0")
    return Decomposition(
        coefficients,
        log_size,
        share,
        residual.clamp(max=1),
        own,
        float(sizes[0] / sizes[rank - 1]),
        rank,
        outside,
        samples,
        (even / even.mean()).to(M.device),
        dim,
    )


def _minimise_on_other_classes(coefficients: Tensor, own: Tensor, null: Tensor) -> Tensor:
    """Coefficients (h, K) moved along ``null`` (K, q), which changes no weight, to be least on other classes.

    Directions of ``null`` that hardly touch those (under .1 of a unit vector), as of two centres that coincide, stay.
    """
    moved = coefficients.clone()
    for row in set(map(tuple, own.tolist())):
        here, other = (own == own.new_tensor(row)).all(dim=1), ~own.new_tensor(row)
        moved[here] -= coefficients[here][:, other] @ torch.linalg.pinv(null[other], atol=0.1, rtol=0).T @ null.T
    return moved
