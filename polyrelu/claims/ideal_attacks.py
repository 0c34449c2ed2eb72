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

from polyrelu.claims.claim import Claim, Standing, Verdict, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.ideal import HALF_GAP, expected, mixture_of
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import ideal
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, curve, lengths
from polyrelu.robust.attacks import (
    CROSS_ENTROPY,
    PGD,
    TARGETED,
    Anchor,
    MinimalAttack,
    PublishedPGD,
    Random,
    Task,
    Towards,
    Zero,
)
from polyrelu.robust.theory import average_critical_radius

Array = NDArray[np.float64]
POWERS = (1, 2, 3, 4)
RADII = np.array([0.7, 0.71, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0])
TOLD = (2, 4)  # .75 and .85: accuracies there are told, the others drawn
STARTS = ("published", "random starts", "data starts")


def half_radius(radii: Array, accuracy: Array) -> float:
    """Where the accuracy falls to 1/2, between radii by a straight line; what broke at a radius is broken beyond."""
    falling = np.minimum.accumulate(accuracy)
    return float(np.interp(-0.5, -falling, radii))


def starts(profile: Profile, seed: int, p: int) -> Measured:
    """Accuracy of F (p = 1) or F^(p) as three attacks report it, by where they start, and as it is."""
    mixture = mixture_of(50, 10, 0.02) if profile == "quick" else mixture_of(1000, 10, 0.1)
    data = mixture.sample(40 if profile == "quick" else 100, seed=seed)
    net = ideal(mixture, p)
    radii = RADII * (1 if p > 1 else average_critical_radius(mixture.clusters) / HALF_GAP)
    attacks = (
        PublishedPGD(steps=300 if profile == "quick" else 2000),
        PGD(starts=(Random(3),)),
        PGD(starts=(Towards(),)),
    )
    truth = curve(bracket(net, data.rows(), data.y))
    values = {f"r50, p = {p}, proven": truth.median_radius.lower, f"r50, p = {p}, attacked": truth.median_radius.upper}
    values |= {f"true accuracy at {radii[k]:.3g}, p = {p}": truth.attacked(float(radii[k])) for k in TOLD}
    curves = {"radii": radii, "certified": truth.certified(radii), "attacked": truth.attacked(radii)}
    for name, attack in zip(STARTS, attacks, strict=True):
        broken = [attack(net, data.rows(), data.y, radius=r, pool=data, seed=seed).success for r in radii.tolist()]
        curves[name] = np.array([1 - float(found.double().mean()) for found in broken])
        values[f"r50, p = {p}, {name}"] = half_radius(radii, curves[name])
        values |= {f"accuracy at {radii[k]:.3g}, p = {p}, {name}": float(curves[name][k]) for k in TOLD}
    return Measured(values, {"p": p, **curves})


@final
@dataclass(frozen=True)
class DeepFool(MinimalAttack):
    """z <- z + (1 + .02) |f_c - f_y|/|g_c|^2 g_c, g_c = grad(f_c - f_y), c the nearest class to first order.

    Moosavi-Dezfooli et al., CVPR 2016, from z = x until z is misclassified.
    """

    steps: int = 20

    def anchors(self, task: Task) -> Iterator[Anchor]:
        """x itself."""
        return Zero().anchors(task)

    def search(self, task: Task, Z: Tensor) -> None:
        """Steps to the nearest of the planes that stand for the other classes."""
        for _ in range(self.steps):
            away, step = torch.full_like(Z[:, 0], torch.inf), torch.zeros_like(Z)
            for c in range(task.classes):
                value, g = replace(task, target=torch.full_like(task.y, c)).slope(Z, TARGETED)
                far = torch.where(task.y == c, torch.inf, value.abs() / lengths(g, 2))
                step = torch.where((far < away)[:, None], -(value / lengths(g, 2).square())[:, None] * g, step)
                away = torch.minimum(far, away)
            Z = Z + torch.where((task.margin(Z) > 0)[:, None], 1.02 * step, 0.0)


def same_classifier(profile: Profile, seed: int) -> Measured:
    """Ten logits relu(x_j)^p: the decision, and so the radius (x_y - max_c x_c)/sqrt(2), is the same for every p."""
    mixture = mixture_of(64, 10, 0.05)
    data = mixture.sample(64 if profile == "quick" else 512, seed=seed)
    assert data.cluster is not None
    X, y = data.rows(), data.cluster
    logits = X @ mixture.directions.T
    exact = (logits.gather(1, y[:, None])[:, 0] - logits.scatter(1, y[:, None], -torch.inf).amax(dim=1)) / math.sqrt(2)
    of_entropy, of_margin = PGD(loss=CROSS_ENTROPY, starts=(Zero(),)), PGD(starts=(Towards(0),))
    values, rows = {"median radius, exact": float(exact.median())}, []
    for p in POWERS:
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
            f"largest error of the attack in the bracket, p = {p}": float((found.upper / exact - 1).abs().amax()),
            f"share proven to within 2e-4, p = {p}": float(tight),
            f"accuracy at .8, PGD on cross-entropy, p = {p}": share[int(np.argmin(np.abs(RADII - 0.8)))],
            f"accuracy at .8, PGD on margins from data, p = {p}": targeted,
            f"median radius, DeepFool, p = {p}": row["DeepFool"],
        }
        rows.append(row | {"p": p})
    return Measured(values, {"reported": rows})


STARTING = Experiment(starts, parts=lambda profile: [{"p": p} for p in POWERS])
SAME = Experiment(same_classifier)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="A10",
        sentence="F^(3) keeps all of its accuracy to radius .85 and half of it to .92, as the published attack "
        "(projected gradient steps from x itself) reports for the net that learned it.",
        paper="MV24",
        where="Fig. 2e, code",
        standing=Standing.READ_OFF,
        published="p = 3: 1.0 to ≈.85, .80 at .90, .40 at .93",
        settings={
            "quick": "F (p = 1) and F^(p), p = 2, 3, 4; D = 50, 6+4 clusters, α = .02 (noise of each coordinate as at "
            "D = 1000, α = .1), 40 points; the published attack with 300 steps of .1",
            "paper": "F (p = 1) and F^(p), p = 2, 3, 4; D = 1000, 6+4 clusters, α = .1, 100 points; the published "
            "attack with 2000 steps of .1",
        },
        experiment=STARTING,
        checks=(
            at_least("true accuracy at 0.85, p = 3", 0.95, published=1.0),
            near("r50, p = 3, attacked", 0.92, 0.03),
        ),
        why=(
            near("r50, p = 3, published", 0.92, 0.06),  # .89 at α = .1, .96 at the code's α = .01: between them
            at_least("accuracy at 0.75, p = 3, published", 0.95, published=1.0),
            at_least("accuracy at 0.85, p = 3, published", 0.8, published=1.0),
            at_least("r50, p = 4, published", 0.93),
            expected("r50, p = 2, published", HALF_GAP, 0.03),
            *(expected(f"r50, p = 3, {how}", HALF_GAP, 0.02) for how in ("proven", "attacked", "data starts")),
            at_most("accuracy at 0.75, p = 3, data starts", 0.0),
        ),
        reason="The attack starts at x, where the slope of relu(z)³ towards every opposite centre is nearly zero, and "
        "walks to the origin instead. Started towards points of the other class, gradient steps break every point just "
        "beyond √2/2, and brackets prove that this is the radius.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="A13",
        sentence="Attacks report more robustness for larger p though the classifier is the same: ten logits "
        "relu(x_j)^p decide alike for every p.",
        paper="ours",
        where="ten logits in 64 dimensions",
        standing=Standing.DERIVED,
        published="truth .700; accuracy at .8: 0, by PGD on cross-entropy 1.00; DeepFool .714, .947, .984, .988",
        settings={
            "quick": "x = e_y + noise of .00625 per coordinate, 64 points, p = 1, 2, 3, 4",
            "paper": "x = e_y + noise of .00625 per coordinate, 512 points, p = 1, 2, 3, 4",
        },
        experiment=SAME,
        checks=(
            expected("median radius, exact", 0.7, 0.005),
            *(at_most(f"largest error of the attack in the bracket, p = {p}", 1e-6) for p in POWERS),
            # p = 2: the proof stops at x_y/√2 for the 1 in 500 points all of whose other coordinates are negative
            *(at_least(f"share proven to within 2e-4, p = {p}", 0.95) for p in POWERS),
            *(at_least(f"accuracy at .8, PGD on cross-entropy, p = {p}", 0.99) for p in POWERS),
            *(at_most(f"accuracy at .8, PGD on margins from data, p = {p}", 0.0) for p in POWERS),
            expected("median radius, DeepFool, p = 1", 0.707, 0.015),  # without the overshoot .700, with it .714
            expected("median radius, DeepFool, p = 2", 0.947, 0.015),
            expected("median radius, DeepFool, p = 3", 0.984, 0.015),
            expected("median radius, DeepFool, p = 4", 0.988, 0.015),
        ),
    ),
)
