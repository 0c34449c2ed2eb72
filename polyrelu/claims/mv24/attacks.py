"""What attacks report of the ideal classifiers, beside the truth.

relu(z)^p is flat at z = 0, so for p > 2 a search that begins at x does not see the other class: it walks to the origin,
at distance 1, past the true radius sqrt(2)/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.mv24.ideal import mixture_of
from polyrelu.claims.setups.mixture_nets import ideal
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, curve, lengths
from polyrelu.robust.attacks import (
    CROSS_ENTROPY,
    PGD,
    TARGETED,
    Anchor,
    AttackTask,
    MinimalAttack,
    OtherClassStart,
    PublishedPGD,
    RandomStart,
    ZeroStart,
)
from polyrelu.robust.theory import HALF_GAP, average_critical_radius

Array = NDArray[np.float64]
RADII = np.array([0.7, 0.71, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0])
JUDGED = (2, 4)  # .75 and .85: accuracies there are judged, the others drawn


def half_radius(radii: Array, accuracy: Array) -> float:
    """Where the accuracy falls to 1/2, between radii by a straight line; what broke at a radius is broken beyond."""
    falling = np.minimum.accumulate(accuracy)
    return float(np.interp(-0.5, -falling, radii))


@experiment(over={"p": sizes.CENTRE_POWERS})
def starts(profile: Profile, seed: int, p: int) -> Measured:
    """Accuracy of F (p = 1) or F^(p) as three attacks report it, by where they start, and as it is."""
    size = sizes.STARTS[profile]
    mixture = mixture_of(size.dim, 10, size.alpha)
    data = mixture.sample(size.points, seed=seed)
    net = ideal(mixture, p)
    radii = RADII * (1 if p > 1 else average_critical_radius(mixture.clusters) / HALF_GAP)
    attacks = {
        "published": PublishedPGD(steps=size.steps),
        "random starts": PGD(starts=(RandomStart(3),)),
        "data starts": PGD(starts=(OtherClassStart(),)),
    }
    truth = curve(bracket(net, data.rows(), data.y))
    judged = {k: float(f"{radii[k]:.3g}") for k in JUDGED}
    values: dict[Key, float] = {
        Quantity("r50", side="proven"): truth.median_radius.lower,
        Quantity("r50", side="attacked"): truth.median_radius.upper,
    }
    values |= {Quantity("true accuracy", radius=r): truth.attacked(float(radii[k])) for k, r in judged.items()}
    curves = {"radii": radii, "certified": truth.certified(radii), "attacked": truth.attacked(radii)}
    for name, attack in attacks.items():
        broken = [attack(net, data.rows(), data.y, radius=r, pool=data, seed=seed).success for r in radii.tolist()]
        curves[name] = np.array([1 - float(found.double().mean()) for found in broken])
        values[Quantity("r50", attack=name)] = half_radius(radii, curves[name])
        values |= {Quantity("accuracy", attack=name, radius=r): float(curves[name][k]) for k, r in judged.items()}
    return Measured(values, {"p": p, **curves})


@final
@dataclass(frozen=True)
class DeepFool(MinimalAttack):
    """z <- z + (1 + .02) |f_c - f_y|/|g_c|^2 g_c, g_c = grad(f_c - f_y), c the nearest class to first order.

    Moosavi-Dezfooli et al., CVPR 2016, from z = x until z is misclassified.
    """

    steps: int = 20

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """x itself."""
        return ZeroStart().anchors(task)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Steps to the nearest of the planes that stand for the other classes."""
        for _ in range(self.steps):
            away, step = torch.full_like(Z[:, 0], torch.inf), torch.zeros_like(Z)
            for c in range(task.classes):
                value, g = replace(task, target=torch.full_like(task.y, c)).slope(Z, TARGETED)
                far = torch.where(task.y == c, torch.inf, value.abs() / lengths(g, 2))
                step = torch.where((far < away)[:, None], -(value / lengths(g, 2).square())[:, None] * g, step)
                away = torch.minimum(far, away)
            Z = Z + torch.where((task.margin(Z) > 0)[:, None], 1.02 * step, 0.0)


@experiment()
def same_classifier(profile: Profile, seed: int) -> Measured:
    """Ten logits relu(x_j)^p: the decision, and so the radius (x_y - max_c x_c)/sqrt(2), is the same for every p."""
    mixture = mixture_of(64, 10, 0.05)
    data = mixture.sample(sizes.SAME_POINTS[profile], seed=seed)
    assert data.cluster is not None
    X, y = data.rows(), data.cluster
    logits = X @ mixture.directions.T
    exact = (logits.gather(1, y[:, None])[:, 0] - logits.scatter(1, y[:, None], -torch.inf).amax(dim=1)) / math.sqrt(2)
    of_entropy, of_margin = PGD(loss=CROSS_ENTROPY, starts=(ZeroStart(),)), PGD(starts=(OtherClassStart(0),))
    values: dict[Key, float] = {"median radius, exact": float(exact.median())}
    rows = []
    for p in sizes.CENTRE_POWERS:
        net = PolyReLUNet(64, 10, p, outputs=10, init="zeros", dtype=torch.float64)
        with torch.no_grad():
            net.weight.copy_(mixture.directions)
            net.output.copy_(torch.eye(10))
        found = bracket(net, X, y, tol=1e-4)
        tight = (found.lower > (1 - 2e-4) * exact).double().mean()
        share = [1 - float(of_entropy(net, X, y, radius=r).success.double().mean()) for r in RADII.tolist()]
        targeted = 1 - float(of_margin(net, X, y, radius=0.8).success.double().mean())
        row = {
            "DeepFool": float(DeepFool()(net, X, y).radius.median()),
            "PGD on cross-entropy": half_radius(RADII, np.array(share)),
            "lower": float(found.lower.median()),
            "upper": float(found.upper.median()),
        }
        values |= {
            Quantity("largest error of the attack in the bracket", p=p): float((found.upper / exact - 1).abs().amax()),
            Quantity("share proven to within 2e-4", p=p): float(tight),
            Quantity("accuracy at .8, PGD on cross-entropy", p=p): share[int(np.argmin(np.abs(RADII - 0.8)))],
            Quantity("accuracy at .8, PGD on margins from data", p=p): targeted,
            Quantity("median radius, DeepFool", p=p): row["DeepFool"],
        }
        rows.append(row | {"p": p})
    return Measured(values, {"reported": rows})
