"""Basic families: nets of every kind and size, in which most mistakes of a certificate show."""

from __future__ import annotations

import numpy as np
import torch

from polyrelu.nets import ReadOut
from tools.campaign.families.draw import (
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
    small,
    spread,
    unit,
    unseen,
)
from tools.campaign.scores import Scores


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
    net = build(W, signs(rng, S, h), power(rng), bias=bias, normalise=bool(rng.random() < 0.4), dtype=torch.float32)
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
    return drawn(rng, net, scattered(rng, Scores.of_net(net), n=6))


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


@family("decades")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.uniform(5, 60)))
    return drawn(rng, net, unseen(rng, net))


@family("decades, extreme")
def _(rng: Random) -> Drawn:
    net = spread(rng, float(rng.choice([100, 200, 280, 320, 600])))
    return drawn(rng, net, unseen(rng, net, 10 ** rng.uniform(-2, 2)))
