"""Extreme families: nets and points at the ends of what floats can hold."""

from __future__ import annotations

import numpy as np
import torch

from polyrelu.nets import ReadOut
from tools.campaign.families.draw import (
    POINTS,
    Drawn,
    Random,
    build,
    drawn,
    family,
    normal,
    power,
    scattered,
    signs,
    sizes,
    spread,
    unit,
    unseen,
)
from tools.campaign.scores import Scores


@family("p near 1 and 2")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    p = max(1.0, float(rng.choice([1.0, 2.0])) + float(rng.choice([-1.0, 1.0])) * 10 ** -float(rng.uniform(1, 15)))
    bias = rng.standard_normal(S) if rng.random() < 0.3 else None
    return drawn(rng, build(normal(rng, h, D), signs(rng, S, h), p, bias=bias, normalise=bool(rng.random() < 0.3)))


@family("tiny points")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    bias = rng.standard_normal(S) * 10 ** -rng.uniform(0, 300) if rng.random() < 0.4 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.3))
    return drawn(rng, net, scattered(rng, Scores.of_net(net), 10 ** -rng.uniform(20, 150)))


@family("squares that underflow")
def _(rng: Random) -> Drawn:
    D, h, S = int(rng.choice([2, 2, 3, 3, 8])), int(rng.integers(1, 5)), int(rng.choice([1, 1, 3]))
    size = 10 ** -rng.uniform(150, 165)
    bias = rng.standard_normal(S) * size * rng.uniform(0.1, 1)
    net = build(normal(rng, h, D), signs(rng, S, h), max(power(rng), 1.2), bias=bias, normalise=True)
    return drawn(rng, net, scattered(rng, Scores.of_net(net), size))


@family("ties of large logarithms")
def _(rng: Random) -> Drawn:
    p, (a, w, b) = float(rng.choice([1.0, 2.0, 2.5, 3.0, 4.0])), 10 ** rng.uniform(-140, 140, 3)
    log = float(rng.choice([0.0, np.log(b) - np.log(a) - np.log(w)]))
    b = b if log else a * w * rng.uniform(0.5, 2)  # the tie is at (b / a |w| e^log)^(1/p)
    net = build(np.array([[w]]), np.array([[a]]), p, bias=np.array([-b]), log_scale=np.array([log / 2]))
    tie = np.exp((np.log(b) - np.log(a) - np.log(w) - log) / p)
    return drawn(rng, net, tie * (1 + rng.choice([-1, 1], (POINTS, 1)) * 10 ** -rng.uniform(9, 15.5, (POINTS, 1))))


@family("huge points")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    bias = rng.standard_normal(S) if rng.random() < 0.4 else None
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.4))
    return drawn(rng, net, scattered(rng, Scores.of_net(net), 10 ** rng.uniform(20, 150)))


@family("one neuron")
def _(rng: Random) -> Drawn:
    D, _, S = sizes(rng)
    bias = rng.standard_normal(S) if rng.random() < 0.7 else None
    net = build(normal(rng, 1, D), rng.standard_normal((S, 1)), power(rng), bias=bias, normalise=bool(rng.integers(2)))
    return drawn(rng, net)


@family("dead neurons")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    W, V = normal(rng, h, D), signs(rng, S, h)
    W[rng.random(h) < 0.4] = 0
    V[:, rng.random(h) < 0.3] = 0
    if rng.random() < 0.2:
        V[:] = 0
    log_scale = rng.choice([0.0, 0.0, -300.0, 200.0], h) * ~W.any(axis=1)
    bias = rng.standard_normal(S) if rng.random() < 0.6 else None
    return drawn(rng, build(W, V, power(rng), bias=bias, log_scale=log_scale))


@family("opposite duplicates")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    W, V = normal(rng, h, D), signs(rng, S, h)
    some = int(rng.integers(1, h + 1))
    size = 10 ** rng.uniform(0, 12)
    V[:, :some] *= size
    W = np.concatenate([W, W[:some] * rng.choice([1.0, 1 + 2.0**-52])])
    V = np.concatenate([V, -V[:, :some]], axis=1)
    W, V = np.concatenate([W, normal(rng, 2, D)]), np.concatenate([V, signs(rng, S, 2)], axis=1)
    return drawn(rng, build(W, V, power(rng)))


@family("bias dominates")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    bias = rng.standard_normal(S) * 10 ** rng.uniform(2, 200)
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.4))
    return drawn(rng, net)


@family("far centre")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    centre = rng.standard_normal(D) * 10 ** rng.uniform(2, 12)
    net = build(normal(rng, h, D), signs(rng, S, h), power(rng), centre=centre, normalise=bool(rng.random() < 0.5))
    X = scattered(rng, Scores.of_net(net))
    X[:2] = rng.standard_normal((2, D))
    return drawn(rng, net, X)


@family("near ties")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    S = int(rng.integers(2, 5))
    V = signs(rng, 1, h) + 10 ** -rng.uniform(3, 16) * rng.standard_normal((S, h))
    bias = None if rng.random() < 0.7 else 1 + 10 ** -rng.uniform(3, 16) * rng.standard_normal(S)
    return drawn(rng, build(normal(rng, h, D), V, power(rng), bias=bias))


@family("float32, an ulp apart")
def _(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    S = int(rng.integers(2, 4))
    V = rng.uniform(1, 2, (1, h)).astype(np.float32) + 2.0**-23 * rng.integers(-2, 3, (S, h))
    W = normal(rng, h if rng.random() < 0.5 else 1, D) * np.ones((h, 1))
    log_scale = rng.uniform(-5, 5) + rng.uniform(-0.1, 0.1, h)
    bias = 10 ** rng.uniform(-9, -6) * rng.standard_normal(S) * np.exp(2 * log_scale[0]) if rng.random() < 0.7 else None
    net = build(W, V, power(rng), log_scale=log_scale, bias=bias, dtype=torch.float32)
    return drawn(rng, net)


@family("nearly parallel")
def _(rng: Random) -> Drawn:
    D, h, S = sizes(rng)
    W = unit(normal(rng, 1, D)) * rng.choice([-1.0, 1.0], (h, 1)) + 10 ** -rng.uniform(2, 14) * normal(rng, h, D)
    return drawn(rng, build(W, signs(rng, S, h), power(rng)))


@family("ill-conditioned")
def _(rng: Random) -> Drawn:
    D, h, S = int(rng.integers(2, 8)), int(rng.integers(3, 12)), int(rng.choice([1, 2, 3]))
    stretch = 10.0 ** -np.linspace(0, float(rng.uniform(4, 16)), D)
    W = normal(rng, h, D) * stretch @ np.linalg.qr(rng.standard_normal((D, D)))[0]
    return drawn(rng, build(W, signs(rng, S, h), power(rng)))


@family("cancelling decades")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.uniform(5, 290)), S=int(rng.integers(2, 4)))
    with_common = net.output.detach().numpy()
    with_common += rng.standard_normal(with_common.shape[1]) * (rng.random(with_common.shape[1]) < 0.5)
    return drawn(rng, net, unseen(rng, net))


@family("read-out, decades")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.choice([30, 100, 280, 600])), S=4)
    return drawn(rng, ReadOut(net, [0, 1, 0, int(rng.integers(1, 3))]), unseen(rng, net))
