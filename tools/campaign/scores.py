r"""The margin, evaluated from the stored numbers alone: no code of the package under test runs here.

    f_s(x) = sum_j V_sj exp(2 l_j) relu(<w_j, z> + o_j)^p / |w_j|^(p-1)  [ / |z|^(p-1) ]  + b_s,     z = M (x - c) / q

A point of class y breaks where no logit of y exceeds all logits of other classes; with one logit, where y f <= 0. Every
pair of an own logit s and a rival t is a duel, sum_j (V_sj - V_tj) ... + b_s - b_t, and only its sign counts: terms are
summed as exponentials of logarithms, relative to the largest of them, so that nothing under- or overflows. `exact`
decides the same sign in mpmath.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """The stored numbers of one classifier, float64 and exact.

    weight (h, D), offset (h,), output (S, h), log_scale (h,), bias (S,), centre (D,), divisor (D,), of (S,) the class
    of each logit, matrix M or None for the identity. ``single``: one logit, labels +1 and -1.
    ``duelling``: logits are the duels themselves, and a class of ``of`` holds where all of its logits are positive.
    """

    p: float
    weight: Array
    offset: Array
    output: Array
    log_scale: Array
    bias: Array
    centre: Array
    divisor: Array
    of: NDArray[np.int64]
    normalised: bool = False
    single: bool = False
    matrix: Array | None = None
    duelling: bool = False

    @staticmethod
    def of_net(net: Any) -> Scores:
        """Read a PolyReLUNet, or a ReadOut of one."""
        inner = getattr(net, "net", net)

        def numbers(tensor: Any) -> Array:
            return np.array(tensor.detach().cpu().double().numpy(), dtype=np.float64)

        weight, output = numbers(inner.weight), numbers(inner.output)
        S, (h, D) = len(output), weight.shape
        return Scores(
            p=float(inner.p),
            weight=weight,
            offset=np.zeros(h),
            output=output,
            log_scale=numbers(inner.log_scale),
            bias=np.zeros(S) if inner.bias is None else numbers(inner.bias),
            centre=np.zeros(D) if inner.centre is None else numbers(inner.centre),
            divisor=np.ones(D),
            of=np.array(net.class_of.tolist() if net is not inner else range(S), dtype=np.int64),
            normalised=bool(inner.normalise_input) and inner.p > 1,
            single=S == 1,
        )

    @staticmethod
    def perceptron(W: Array, b: Array, V: Array, c: Array, **rest: Any) -> Scores:
        """Logits V relu(W z + b) + c."""
        D = W.shape[1] if rest.get("matrix") is None else rest["matrix"].shape[1]
        plain = {"centre": np.zeros(D), "divisor": np.ones(D), "of": np.arange(len(V)), "single": len(V) == 1}
        return Scores(1.0, W, b, V, np.zeros(len(W)), c, **{**plain, **rest})

    @staticmethod
    def affine(A: Array, a: Array, **rest: Any) -> Scores:
        """Logits A z + a: every one is the difference of two neurons, relu(t) - relu(-t)."""
        eye = np.eye(len(A))
        V = np.concatenate([eye, -eye], axis=1)
        return Scores.perceptron(np.concatenate([A, -A]), np.concatenate([a, -a]), V, np.zeros(len(A)), **rest)

    def pairs(self, label: float) -> list[tuple[int, int, int]]:
        """(own logit, minuend, subtrahend) of every duel; -1 for the number 0."""
        if self.single:
            return [(0, 0, -1)]
        mine = [s for s, c in enumerate(self.of) if c == label]
        if self.duelling:
            return [(0, s, -1) for s in mine]
        return [(s, s, t) for s in mine for t, c in enumerate(self.of) if c != label]

    def decision(self, x: Array) -> float:
        """The class of ``x``: a label that does not break there, or any one where all do."""
        labels = (1.0, -1.0) if self.single else tuple(float(c) for c in sorted(set(self.of.tolist())))
        return max(labels, key=lambda label: float(Duels.of(self, label).values(x[None])[0]))


@final
@dataclass(frozen=True, eq=False)
class Duels:
    """All duels of one label, ready for many points: unit neurons U (h, D), logs and signs of coefficients (R, h).

    ``own`` (R,) numbers the own logit of each duel: the label holds where one of them wins all of its duels.
    """

    p: float
    U: Array
    offset: Array
    log: Array
    sign: Array
    log_beta: Array
    sign_beta: Array
    own: NDArray[np.int64]
    centre: Array
    divisor: Array
    normalised: bool
    matrix: Array | None

    @staticmethod
    def of(scores: Scores, label: float) -> Duels:
        """The duels of ``label``."""
        largest = np.abs(scores.weight).max(axis=1)
        largest = np.where(largest > 0, largest, 1.0)
        unit = scores.weight / largest[:, None]
        norm = np.sqrt((unit**2).sum(axis=1))
        norm = np.where(norm > 0, norm, 1.0)
        pairs = scores.pairs(label)
        own = np.array([one for one, _, _ in pairs])
        difference = np.stack([_less(scores.output, s, t) for _, s, t in pairs])  # first: exact up to its last digit
        beta = np.array([_less(scores.bias, s, t) for _, s, t in pairs])
        if scores.single:
            difference, beta = label * difference, label * beta
        dead = ~np.any(scores.weight, axis=1) & (scores.offset == 0)
        with np.errstate(divide="ignore"):
            rate = np.log(largest) + np.log(norm) + 2 * scores.log_scale
            log = np.where(dead, -np.inf, np.log(np.abs(difference)) + rate)
            log_beta = np.log(np.abs(beta))
        return Duels(
            p=scores.p,
            U=unit / norm[:, None],
            offset=scores.offset / (largest * norm),
            log=log,
            sign=np.sign(difference),
            log_beta=log_beta,
            sign_beta=np.sign(beta),
            own=np.unique(own, return_inverse=True)[1].reshape(-1),
            centre=scores.centre,
            divisor=scores.divisor,
            normalised=scores.normalised,
            matrix=scores.matrix,
        )

    def place(self, X: Array) -> Array:
        """z = M (x - c) / q."""
        return self.turn(X - self.centre)

    def turn(self, D: Array) -> Array:
        """M d / q."""
        turned: Array = D / self.divisor
        return turned if self.matrix is None else turned @ self.matrix.T

    def each(self, T: Array, Z_log: Array) -> Array:
        """Every duel (..., R) from pre-activations T (..., h) and log |z| (...), between about -h and h."""
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = self.p * np.log(np.maximum(T, 0.0))
        duels = []
        for log, sign, log_beta, sign_beta in zip(self.log, self.sign, self.log_beta, self.sign_beta, strict=True):
            terms = powers + log
            constant = np.full(T.shape[:-1], log_beta)
            if self.normalised and np.isfinite(log_beta):  # the duel times |z|^(p-1); at z = 0 only the bias is left
                constant = constant + np.where(Z_log > -np.inf, (self.p - 1) * np.maximum(Z_log, -1e300), 0.0)
            top = np.maximum(terms.max(axis=-1), constant)
            top = np.where(top > -np.inf, top, 0.0)
            total = (np.exp(terms - top[..., None]) * sign).sum(axis=-1) + sign_beta * np.exp(constant - top)
            duels.append(total)
        return np.stack(duels, axis=-1)

    def worst(self, each: Array) -> Array:
        """The most over own logits of the least over rivals: <= 0 exactly where the label breaks."""
        least = [each[..., self.own == s].min(axis=-1) for s in range(int(self.own.max()) + 1)]
        found: Array = np.stack(least, axis=-1).max(axis=-1)
        return found

    def log_length(self, Z: Array) -> Array:
        """log |z| (...), where the input is normalised; nothing is needed of it otherwise."""
        if not self.normalised:
            return np.zeros(Z.shape[:-1])
        largest = np.abs(Z).max(axis=-1)
        inner = Z / np.where(largest > 0, largest, 1.0)[..., None]
        with np.errstate(divide="ignore"):
            logs: Array = np.log(largest) + 0.5 * np.log((inner**2).sum(axis=-1))
        return logs

    def values(self, X: Array) -> Array:
        """The sign that decides, for points X (..., D)."""
        Z = self.place(X)
        return self.worst(self.each(Z @ self.U.T + self.offset, self.log_length(Z)))

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """`values` at X (m, D), and the gradient of the duel that decides there, up to a positive factor."""
        Z = self.place(X)
        T, lengths = Z @ self.U.T + self.offset, self.log_length(Z)
        each = self.each(T, lengths)
        value = self.worst(each)
        row = np.abs(each - value[:, None]).argmin(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = np.where(T > 0, (self.p - 1) * np.log(np.maximum(T, 1e-320)) + self.log[row], -np.inf)
        top, lengths = logs.max(axis=1), np.maximum(lengths, -700.0)
        constant = self.log_beta[row] + (self.p - 2) * lengths if self.normalised else np.full_like(top, -np.inf)
        top = np.maximum(top, constant)
        top = np.where(top > -np.inf, top, 0.0)
        slope = (np.exp(logs - top[:, None]) * self.sign[row] * self.p) @ self.U
        if self.normalised:  # the bias counts |z|^(p-1) times
            rise = np.exp(constant - top) * self.sign_beta[row] * (self.p - 1)
            slope = slope + rise[:, None] * (Z / np.exp(lengths)[:, None])
        return value, (slope if self.matrix is None else slope @ self.matrix) / self.divisor


def _less(rows: Array, s: int, t: int) -> Any:
    return rows[s] if t < 0 else rows[s] - rows[t]
