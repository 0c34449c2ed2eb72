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

from polyrelu.nets import PolyReLUNet, ReadOut
from tools.campaign.scores import Array, Duels, Scores

Random = np.random.Generator
POINTS = 6


@dataclass
class Drawn:
    """A net with points X (n, D); ``only`` are the certificates asked, None for all that apply."""

    net: Any
    X: Array
    scores: Scores
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
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def scattered(rng: Random, scores: Scores, size: float = 1.0, n: int = POINTS) -> Array:
    """Around the centre: at random, near neurons, near a boundary, between neurons."""
    D = scores.weight.shape[1]
    U = scores.weight / np.maximum(np.abs(scores.weight).max(axis=1, keepdims=True), 1e-300)
    rows = [rng.standard_normal(D), U[rng.integers(len(U))] + 0.1 * rng.standard_normal(D)]
    rows += [U[rng.integers(len(U))] + U[rng.integers(len(U))] + 0.01 * rng.standard_normal(D)]
    while len(rows) < n:
        a, b = rng.standard_normal((2, D))
        rows.append(a if rng.random() < 0.5 else a + rng.random() * (b - a))
    X = size * np.array(rows[:n]) + scores.centre
    near = _near_boundary(rng, scores, X)
    return X if near is None else np.concatenate([X[:-1], near[None]])


def _near_boundary(rng: Random, scores: Scores, X: Array) -> Array | None:
    """A point just inside, where the segment between two points of different classes changes class."""
    label = scores.decision(X[0])
    value = Duels.of(scores, label).values
    others = np.nonzero(value(X) <= 0)[0]
    if not len(others) or value(X[:1])[0] <= 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        inside = value((X[0] + middle * (X[others[0]] - X[0]))[None])[0] > 0
        low, high = (middle, high) if inside else (low, middle)
    at: Array = X[0] + low * (1 - 10.0 ** -rng.uniform(0.5, 6)) * (X[others[0]] - X[0])
    return at


def drawn(rng: Random, net: Any, X: Array | None = None, **extra: Any) -> Drawn:
    """The net with these points, or scattered ones, as its dtype holds them."""
    scores = Scores.of_net(net)
    X = scattered(rng, scores) if X is None else X
    dtype = next(net.parameters()).dtype
    X = torch.as_tensor(X).to(dtype).double().numpy()
    return Drawn(net, X[np.isfinite(X).all(axis=1)], scores, extra)


@family("plain")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    return drawn(rng, build(normal(rng, h, D), rng.standard_normal((1, h)), power(rng)))


@family("multi-class")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    return drawn(rng, build(normal(rng, h, D), signs(rng, int(rng.integers(2, 6)), h), power(rng)))


@family("bias")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=rng.standard_normal(S))
    return drawn(rng, net)


@family("normalised")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    centre = rng.standard_normal(D) if rng.random() < 0.5 else None
    return drawn(rng, build(normal(rng, h, D), signs(rng, S, h), power(rng), centre=centre, normalise=True))


@family("bias and normalised")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    centre = rng.standard_normal(D) if rng.random() < 0.5 else None
    bias = rng.standard_normal(S) * 10 ** rng.uniform(-2, 1)
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), centre=centre, normalise=True, bias=bias)
    return drawn(rng, net)


@family("read-out")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    S = int(rng.integers(3, 7))
    of = [0, 1, *rng.integers(0, 2 + (S > 4), S - 2).tolist()]
    of = np.unique(of, return_inverse=True)[1].reshape(-1).tolist()
    bias = rng.standard_normal(S) if rng.random() < 0.4 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.4))
    return drawn(rng, ReadOut(net, of))


@family("collinear")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    few = unit(normal(rng, int(rng.integers(1, 4)), D))
    W = few[rng.integers(0, len(few), h)] * rng.choice([-1.0, 1.0, 1.0, 0.3, 5.0], h)[:, None]
    return drawn(rng, build(W, signs(rng, S, h), power(rng)))


@family("scales 1e-8..1e8")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    W = normal(rng, h, D) * 10 ** rng.uniform(-8, 8, (h, 1))
    V = signs(rng, S, h) * 10 ** rng.uniform(-8, 8)
    bias = rng.standard_normal(S) * 10 ** rng.uniform(-8, 8) if rng.random() < 0.3 else None
    net = build(W, V, power(rng), bias=bias)
    return drawn(rng, net, scattered(rng, Scores.of_net(net), 10 ** rng.uniform(-8, 8)))


@family("far points")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    bias = rng.standard_normal(S) if rng.random() < 0.5 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.3))
    return drawn(rng, net, scattered(rng, Scores.of_net(net), 10 ** rng.uniform(3, 9)))


@family("float32")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    bias = rng.standard_normal(S) if rng.random() < 0.5 else None
    W = normal(rng, h, D) * 10 ** rng.uniform(-6, 4)
    net = build(
        W, signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.4), dtype=torch.float32
    )
    return drawn(rng, net)


@family("log scale")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    log_scale = rng.uniform(-400, 0) + rng.uniform(-20, 0, h)
    bias = rng.standard_normal(S) * 10 ** rng.uniform(-100, 0) if rng.random() < 0.3 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), log_scale=log_scale, bias=bias)
    return drawn(rng, net)


@family("mid")
def _(rng: Random) -> Drawn:
    D, h, S = int(rng.integers(5, 11)), int(rng.integers(3, 30)), int(rng.choice([1, 2, 3]))
    bias = 0.3 * rng.standard_normal(S) if rng.random() < 0.3 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.3))
    return drawn(rng, net)


@family("wide")
def _(rng: Random) -> Drawn:
    D, h, S = int(rng.integers(2, 9)), int(rng.integers(70, 240)), int(rng.choice([1, 1, 2, 3]))
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), normalise=bool(rng.random() < 0.3))
    return drawn(rng, net, scattered(rng, Scores.of_net(net), n=3))


@family("orthonormal")
def _(rng: Random) -> Drawn:
    D = int(rng.integers(2, 7))
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    V = np.where(rng.random((1, D)) < 0.5, 1.0, -1.0) * (1.0 if rng.random() < 0.5 else rng.uniform(0.2, 3, (1, D)))
    V[0, :2] = 1, -1
    X = np.concatenate([Q[:3], Q[:3] + 0.2 * rng.standard_normal((min(3, D), D))])
    return drawn(rng, build(Q, V, power(rng)), X)


@family("large p")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    p = float(rng.choice([20.0, 49.5, 50.0, 51.0, round(float(rng.uniform(10, 80)), 2)]))
    bias = rng.standard_normal(S) if rng.random() < 0.3 else None
    return drawn(rng, build(normal(rng, h, D), signs(rng, S, h), p, bias=bias, normalise=bool(rng.random() < 0.3)))


@family("clustered")
def _(rng: Random) -> Drawn:
    D, h, S = small(rng), int(rng.integers(6, 30)), int(rng.choice([1, 2, 3]))
    few = unit(normal(rng, int(rng.integers(2, 5)), D))
    W = few[rng.integers(0, len(few), h)] + 10 ** rng.uniform(-12, -2) * rng.standard_normal((h, D))
    return drawn(rng, build(W * rng.uniform(0.1, 2, (h, 1)), signs(rng, S, h), power(rng)))


@family("equal outputs")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    V = signs(rng, 3, h)
    V[2] = V[1]
    V[:, : h // 2] = V[0, : h // 2]
    return drawn(rng, build(normal(rng, h, D), V, power(rng), bias=rng.choice([0.0, 1.0], 3)))


@family("special points")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    p = float(rng.choice([1.0, 2.0, 3.0, 48.0, 50.0, 50.5, 52.0]))
    centre = rng.standard_normal(D) if rng.random() < 0.5 else None
    bias = rng.standard_normal(S) if rng.random() < 0.5 else None
    W = normal(rng, h, D)
    W[-1] = -W[0]
    net = build(W, signs(rng, S, h), p, bias=bias, centre=centre, normalise=bool(rng.random() < 0.4))
    U, at = unit(W), np.zeros(D) if centre is None else centre
    X = np.stack([np.zeros(D), at, at + 10.0 ** -rng.uniform(3, 20) * U[0], at + U[0] + U[1], at + U[0], at - U[1]])
    return drawn(rng, net, X)


@family("common part")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    S = int(rng.integers(2, 5))
    common = rng.standard_normal(h) * 10 ** rng.uniform(2, 15)
    V = signs(rng, S, h) + common
    bias = rng.standard_normal(S) + 10 ** rng.uniform(2, 15) if rng.random() < 0.4 else None
    return drawn(rng, build(normal(rng, h, D), V, power(rng), bias=bias, normalise=bool(rng.random() < 0.2)))


def _unseen(rng: Random, net: PolyReLUNet, size: float = 1.0) -> Array:
    """Points, about half of which the strongest neurons do not see."""
    scores = Scores.of_net(net)
    X = scattered(rng, scores, size) - scores.centre
    duels = Duels.of(scores, 1.0 if scores.single else 0.0)
    order = np.argsort(-duels.log.max(axis=0))
    for row in X[: POINTS // 2 + 1]:
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


@family("decades")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.uniform(5, 60)))
    return drawn(rng, net, _unseen(rng, net))


@family("decades, extreme")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.choice([100, 200, 280, 320, 600])))
    return drawn(rng, net, _unseen(rng, net, 10 ** rng.uniform(-2, 2)))
