"""Nets of every family, and points where they are hard, drawn from a seed.

A family is a function of a random generator that returns a `Drawn`: a net and its points. Labels are the net's own
decisions, so that there is something to prove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from polyrelu.nets import PolyReLUNet
from tools.campaign.scores import Array, Duels, Scores

Random = np.random.Generator
POINTS = 12  # a net


@dataclass
class Drawn:
    """A classifier, points X (n, D) that its ``dtype`` holds, its stored numbers, and what closed forms need."""

    net: Any
    X: Array
    scores: Scores
    dtype: torch.dtype = torch.float64
    extra: dict[str, Any] = field(default_factory=dict)


Family = Callable[[Random], Drawn]
FAMILIES: dict[str, Family] = {}


def family(name: str) -> Callable[[Family], Family]:
    """Add a family to the table."""

    def add(draw: Family) -> Family:
        FAMILIES[name] = draw
        return draw

    return add


def power(rng: Random) -> float:
    """A power p >= 1: the common ones, and any."""
    return float(rng.choice([1.0, 1.5, 2.0, 3.0, 4.0, round(float(rng.uniform(1, 6)), 3)]))


def small(rng: Random) -> int:
    """Mostly 2 or 3 dimensions, where grids see everything."""
    return int(rng.choice([1, 2, 2, 2, 2, 3, 3, 4, 5]))


def build(
    W: Array,
    V: Array,
    p: float,
    *,
    log_scale: Array | None = None,
    bias: Array | None = None,
    centre: Array | None = None,
    normalise: bool = False,
    dtype: torch.dtype = torch.float64,
) -> PolyReLUNet:
    """A net with exactly these stored numbers: W (h, D), V (S, h)."""
    (h, D), S = W.shape, len(V)
    net = PolyReLUNet(
        D,
        h,
        p,
        S,
        init="zeros",
        bias=bias is not None,
        centre=None if centre is None else torch.as_tensor(centre),
        normalise_input=normalise,
        dtype=dtype,
    )
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(W))
        net.output.copy_(torch.as_tensor(V))
        if bias is not None and net.bias is not None:
            net.bias.copy_(torch.as_tensor(bias))
        if log_scale is not None:
            net.log_scale.copy_(torch.as_tensor(log_scale))
    return net


def sizes(rng: Random, most: int = 10) -> tuple[int, int, int]:
    """Dimension, width, outputs."""
    return small(rng), int(rng.integers(2, most)), int(rng.choice([1, 1, 2, 3]))


def signs(rng: Random, S: int, h: int) -> Array:
    """Output weights of both signs for one logit; mostly one class a neuron for several."""
    V = rng.standard_normal((S, h))
    if S > 1 and rng.random() < 0.5:
        V *= rng.integers(0, S, h) == np.arange(S)[:, None]
    return V


def normal(rng: Random, h: int, D: int, size: float = 1.0) -> Array:
    """Gaussian rows."""
    return size * rng.standard_normal((h, D))


def unit(rows: Array) -> Array:
    """Rows of length 1."""
    units: Array = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return units


def scattered(rng: Random, scores: Scores, size: float = 1.0, n: int = POINTS) -> Array:
    """Around the centre, in turn: at random, near a neuron, between two neurons, near a boundary."""
    D = scores.weight.shape[1]
    U = scores.weight / np.maximum(np.abs(scores.weight).max(axis=1, keepdims=True), 1e-300)

    def near(spread: float) -> Array:
        row: Array = U[rng.integers(len(U))] + spread * rng.standard_normal(D)
        return row

    kinds = (lambda: rng.standard_normal(D), lambda: near(0.1), lambda: near(0.01) + near(0.01))
    X = size * np.array([kinds[i % len(kinds)]() for i in range(n)]) + scores.centre
    for i in range(3, n, 4):
        X[i] = _near_boundary(rng, scores, X[i], X)
    return X


def _near_boundary(rng: Random, scores: Scores, x: Array, others: Array) -> Array:
    """A point just inside, where the segment to a point of another class changes class; else ``x`` itself."""
    value = Duels.of(scores, scores.decision(x)).values
    there = others[value(others) <= 0]
    if not len(there) or value(x[None])[0] <= 0:
        return x
    towards = there[rng.integers(len(there))] - x
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        inside = value((x + middle * towards)[None])[0] > 0
        low, high = (middle, high) if inside else (low, middle)
    at: Array = x + low * (1 - 10.0 ** -rng.uniform(0.5, 6)) * towards
    return at


def drawn(rng: Random, net: Any, X: Array | None = None, **extra: Any) -> Drawn:
    """The net with these points, or scattered ones, as its dtype holds them."""
    scores = Scores.of_net(net)
    X = scattered(rng, scores) if X is None else X
    dtype = next(net.parameters()).dtype
    X = torch.as_tensor(X).to(dtype).double().numpy()
    return Drawn(net, X[np.isfinite(X).all(axis=1)], scores, dtype, extra)


def unseen(rng: Random, net: PolyReLUNet, size: float = 1.0) -> Array:
    """Points, about half of which the strongest neurons do not see."""
    scores = Scores.of_net(net)
    X = scattered(rng, scores, size) - scores.centre
    duels = Duels.of(scores, 1.0 if scores.single else 0.0)
    order = np.argsort(-duels.log.max(axis=0))
    for row in X[: len(X) // 2 + 1]:
        for j in order[: int(rng.integers(1, len(order) + 1))]:
            row -= (1 + rng.random()) * max(0.0, float(row @ duels.U[j])) * duels.U[j]
    found: Array = X + scores.centre
    return found


def spread(rng: Random, decades: float, S: int | None = None) -> PolyReLUNet:
    """Contributions over so many decades, in the weights, the outputs or log_scale."""
    D, h, outputs = sizes(rng)
    S = outputs if S is None else S
    W, V = normal(rng, h, D), signs(rng, S, h)
    how = rng.choice(["log", "output", "weight", "classes"])
    depth = rng.uniform(0, decades, h) * rng.choice([0, 1], h, p=[0.3, 0.7])
    log_scale = np.zeros(h)
    if how == "log":
        log_scale = -depth * math.log(10) / 2 - rng.choice([0.0, rng.uniform(0, 700)])
    elif how == "weight":
        W = W * 10.0 ** -np.minimum(depth, 290)[:, None]
    elif how == "output":
        V = V * 10.0 ** -np.minimum(depth, 290)
    else:
        V = V * 10.0 ** -np.minimum(rng.uniform(0, decades, V.shape), 290)
    bias = rng.standard_normal(S) * 10.0 ** -rng.uniform(0, min(decades, 280)) if rng.random() < 0.2 else None
    centre = rng.standard_normal(D) if rng.random() < 0.2 else None
    normalise = bool(rng.random() < 0.2)
    return build(W, V, power(rng), log_scale=log_scale, bias=bias, centre=centre, normalise=normalise)
