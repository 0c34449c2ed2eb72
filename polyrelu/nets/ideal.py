"""Classifiers written down from the centres mu_k and labels y_k, with exact values to test everything else on.

Exact values are for K = K1 + K2 orthonormal centres (K1 positive), "own" and "opposite" as seen from a centre.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.checks import check_power, finite_number, floating_dtype, plain_tensor
from polyrelu.errors import require
from polyrelu.nets.base import Net, relu_power
from polyrelu.nets.polyrelu_net import PolyReLUNet

EXACT = Context(prec=40)
SPLIT = 2.0**27 + 1  # Dekker 1971: halves of a float64 whose products are exact


class Ideal(Net, ABC):
    """One logit from ``centres`` [K, dim] and ``labels`` [K] of +1 and -1; nothing is trained.

    The dtype is that of ``centres``.
    """

    centres: Tensor
    labels: Tensor

    def __init__(self, centres: Tensor, labels: Tensor, **settings: float) -> None:
        centres, labels = plain_tensor("centres", centres), plain_tensor("labels", labels)
        require(centres.ndim == 2 and len(centres) > 0, "centres.shape", tuple(centres.shape), "(K, dim)")
        require(bool(centres.isfinite().all()), "centres", "NaN or inf", "finite numbers")
        require(labels.shape == centres.shape[:1], "labels.shape", tuple(labels.shape), f"({len(centres)},)")
        require(set(labels.tolist()) == {1, -1}, "labels", sorted(set(labels.tolist())), "+1 and -1, both present")
        super().__init__(centres.shape[1], 1, settings)
        self.register_buffer("centres", centres.to(floating_dtype(centres.dtype), copy=True))
        self.register_buffer("labels", labels.to(centres.dtype, copy=True))

    def check_settings(self) -> None:
        """An InputError if settings or shapes were changed, since this was made, to what no constructor accepts."""
        super().check_settings()
        require(self.outputs == 1, "outputs", self.outputs, "1")
        self.check_shapes(centres=(len(self.labels), self.dim), labels=(len(self.labels),))

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """One logit for each row of ``X`` [n, dim]."""

    def by_class(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Scores [n, K] with the other class at -inf, for the positive and for the negative class."""
        return scores.masked_fill(self.labels < 0, -torch.inf), scores.masked_fill(self.labels > 0, -torch.inf)

    def half_squares(self) -> Tensor:
        """(|mu_k|^2 - mean)/2: what unequal norms add to a distance; 0 for centres of one norm."""
        squares = self.centres.square().sum(dim=1)
        return (squares - squares.mean()) / 2

    @classmethod
    def restore(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Ideal:
        """The classifier that had this ``config()`` and these tensors."""
        require(tensors.keys() == {"centres", "labels"}, "tensors", sorted(tensors), "exactly ['centres', 'labels']")
        settings = {key: value for key, value in config.items() if key != "dtype"}
        net = cls(tensors["centres"], tensors["labels"], **settings)
        net.fill(tensors)
        return net


@final
class AverageClassifier(Ideal):
    """F(x) = relu<x, mu_+> - relu<x, mu_->, mu_+- = sums of the class's centres (Min & Vidal 2024).

    What p = 1 learns. sup |F| on the unit sphere is sqrt(max(K1, K2)), reached at the larger class's average.
    F = y at a centre, and its radius there is 1/sqrt(K), along sum_k y_k mu_k whatever the centre.
    """

    def sums(self) -> Tensor:
        """mu_+ and mu_- as two rows."""
        return torch.stack([self.labels, -self.labels]).clamp(min=0) @ self.centres

    def forward(self, X: Tensor) -> Tensor:
        """F of each row of ``X`` [n, dim]."""
        positive, negative = (self.inputs(X) @ self.sums().T).relu().unbind(dim=1)
        return positive - negative

    def as_polyrelu_net(self) -> PolyReLUNet:
        """The same function as a net of two neurons, p = 1; its weights are the sums of the stored centres, rounded."""
        return _as_net(exact_sums(self.centres, self.labels), torch.tensor([1.0, -1.0]), 1.0)


@final
class CentreClassifier(Ideal):
    """F^(p)(x) = sum_k y_k relu(<x, mu_k>)^p (Min & Vidal 2024).

    What p > 2 learns. sup |F^(p)| on the unit sphere is 1 for p >= 2 (and max(K1, K2)^(1 - p/2) below), F^(p) = y
    at a centre. Radius there against m opposite centres: 1/sqrt(1 + m^(2/p-1)); the smallest over m is sqrt(2)/2 for
    p >= 2 and is at m = all of them for p < 2.
    """

    def __init__(self, centres: Tensor, labels: Tensor, p: float = 3.0) -> None:
        self.p = finite_number("p", p, least=1)
        super().__init__(centres, labels, p=self.p)

    def check_settings(self) -> None:
        """The same, and the power."""
        super().check_settings()
        check_power(self.p)

    def forward(self, X: Tensor) -> Tensor:
        """F^(p) of each row of ``X`` [n, dim]."""
        return relu_power(self.inputs(X) @ self.centres.T, self.p) @ self.labels

    def as_polyrelu_net(self) -> PolyReLUNet:
        """The same function as a net of K neurons: w_k = mu_k, v_k = y_k |mu_k|^(p-1).

        Where the dtype does not hold |mu_k|^(p-1), v_k = y_k and ``log_scale`` holds its logarithm.
        """
        logs = [EXACT.multiply(Decimal(self.p - 1), _log_norm(row)) for row in self.centres]
        limit = math.log(torch.finfo(self.centres.dtype).max) - 10
        sizes = [float(EXACT.exp(log)) if abs(log) < limit else 1.0 for log in logs]
        net = _as_net(self.centres, self.labels * self.labels.new_tensor(sizes), self.p)
        net.log_scale += net.log_scale.new_tensor([0.0 if abs(log) < limit else float(log) / 2 for log in logs])
        return net


@final
class BayesClassifier(Ideal):
    """log sum_{y=+1} exp(D <x,mu_k>/alpha^2) - log sum_{y=-1} exp(D <x,mu_k>/alpha^2): the log-odds.

    Same sign as f* of Min & Vidal 2025, Prop. 2, which is the difference of the two sums and overflows.
    Optimal for x = mu_k + (alpha/sqrt(D)) N(0, I), all k equally likely; for centres of unequal norm the term
    -D |mu_k|^2/(2 alpha^2) is added, as it must be. At a positive centre the value is
    log(exp(D/alpha^2) + K1 - 1) - log K2; for K1 = K2 = 1 the radius there is sqrt(2)/2, otherwise within
    O((alpha^2/D) log K) of it.
    """

    def __init__(self, centres: Tensor, labels: Tensor, alpha: float = 0.1) -> None:
        self.alpha = finite_number("alpha", alpha, above=0)
        require(1e-100 < self.alpha < 1e100, "alpha", alpha, "a number whose square is one too")
        super().__init__(centres, labels, alpha=self.alpha)

    def forward(self, X: Tensor) -> Tensor:
        """Log-odds of each row of ``X`` [n, dim]."""
        scores = (self.inputs(X) @ self.centres.T - self.half_squares()) * (self.dim / self.alpha**2)
        positive, negative = self.by_class(scores)
        return positive.logsumexp(dim=1) - negative.logsumexp(dim=1)


@final
class NearestCentre(Ideal):
    """(d_-^2 - d_+^2)/2, d_+- the distance to the nearest centre of each class: the alpha -> 0 limit of Bayes.

    It is y at a centre, where its radius is sqrt(2)/2, the largest any classifier can have there (Min & Vidal 2025).
    """

    def forward(self, X: Tensor) -> Tensor:
        """Half the difference of squared distances, for each row of ``X`` [n, dim]."""
        positive, negative = self.by_class(self.inputs(X) @ self.centres.T - self.half_squares())
        return positive.amax(dim=1) - negative.amax(dim=1)


@final
class RobustClassifier(Ideal):
    """f(x) = sum_k y_k relu(4 <mu_k, x>/|mu_k|^2 - 2) (Frei et al. 2023, Thm 4.1, there |mu_k|^2 = d).

    For orthogonal centres of norm sqrt(d): f = 2 y at a centre, it first reaches 0 at distance sqrt(d)/2 (towards
    the origin), and changes sign at sqrt(d/2), half-way to an opposite centre.
    """

    def forward(self, X: Tensor) -> Tensor:
        """The hand-built net on each row of ``X`` [n, dim]."""
        squares = self.centres.square().sum(dim=1)
        return (4 * (self.inputs(X) @ self.centres.T) / squares - 2).relu() @ self.labels


def exact_sums(centres: Tensor, labels: Tensor) -> Tensor:
    """mu_+ and mu_-, the sums of each class (2, D), rounded once whatever cancels; infinite where they overflow."""
    return centres.new_tensor([[_sum(column) for column in centres[labels == side].T.tolist()] for side in (1, -1)])


def _sum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


def _log_norm(row: Tensor) -> Decimal:
    """log |row| to some thirty digits, so that powers of |row| are as exact as float64 holds them; 0 for a zero row."""
    row = row.double()
    largest = float(row.abs().amax())
    if not largest:
        return Decimal(0)
    exponent = math.frexp(largest)[1]
    scaled = torch.from_numpy(np.ldexp(row.cpu().numpy(), -exponent))
    square, high = scaled * scaled, scaled * SPLIT
    high = high - (high - scaled)
    low = scaled - high
    parts = [*square.tolist(), *(((high * high - square) + 2 * high * low) + low * low).tolist()]
    total = math.fsum(parts)
    exact = EXACT.add(Decimal(total), Decimal(math.fsum([*parts, -total])))
    return EXACT.add(EXACT.ln(exact) / 2, EXACT.multiply(exponent, EXACT.ln(2)))


def as_polyrelu_net(net: nn.Module) -> nn.Module:
    """An ideal classifier that is a PolyReLUNet as such; any other module as it is."""
    return net.as_polyrelu_net() if isinstance(net, AverageClassifier | CentreClassifier) else net


def _as_net(W: Tensor, v: Tensor, p: float) -> PolyReLUNet:
    net = PolyReLUNet(W.shape[1], len(W), p, init="zeros", dtype=W.dtype).to(W.device)
    with torch.no_grad():
        net.weight.copy_(W)
        net.output.copy_(v)
    return net
