r"""Where the two nets of the feature-averaging paper break (C4, C5).

    averaged    at sqrt(d/k)
    decoupled   read out as a sum it is F^(1): sqrt(d/(1 + |J_opp|)) at a centre, of order sqrt(d/k)
                read out as a maximum: sqrt(d/2), half-way to the nearest opposite centre

(Li et al., ICLR 2025, Fig. 3 left.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from polyrelu.claims.averaging import AVERAGED, DATA, POINTS, RULES, nets, right, rounded
from polyrelu.claims.claim import Claim, Standing, Verdict, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.averaging_nets import Pair, TwoSided, accuracy, pgd, radii, trained_pair
from polyrelu.data import Dataset

PAPER = math.sqrt(3072)
FA = {12: 1.0, 14: 0.90, 16: 0.31, 18: 0.02, 20: 0.0}  # published robust accuracy by l2 radius, d = 3072
FD = {34: 1.0, 36: 0.86, 38: 0.35, 40: 0.15, 42: 0.04, 44: 0.0}
PUBLISHED = {AVERAGED: FA} | dict.fromkeys(RULES.values(), FD)


def share(radius: float) -> str:
    """A published radius as a multiple of sqrt(d): ".613√d"."""
    return f"{radius / math.sqrt(3072):.3f}√d".lstrip("0")


def curves(profile: Profile, seed: int) -> Measured:
    """Where both nets break: proven, under the strongest attack, and under PGD on the own loss or on the read-out."""
    pair = trained_pair(profile, seed)
    test, scale = pair.test(POINTS[profile]), math.sqrt(pair.mixture.dim)
    values: dict[str, float] = {}
    data: dict[str, Any] = {"dim": pair.mixture.dim, "clusters": pair.mixture.clusters, "points": len(test)}
    for name, net in nets(pair).items():
        lower, upper = radii(net, test, pair.train, seed)
        what, unit = ("√(d/k)", scale / math.sqrt(pair.mixture.clusters)) if name == AVERAGED else ("√d", scale)
        values[f"{name}: median radius over {what}, proven"] = float(lower.median()) / unit
        values[f"{name}: median radius over {what}, broken"] = float(upper.median()) / unit
        for radius in PUBLISHED[name]:
            values[f"{name}: proven at {share(radius)}"] = accuracy(lower, radius / PAPER * scale)
            values[f"{name}: attacked at {share(radius)}"] = accuracy(upper, radius / PAPER * scale)
        values[f"{name}: attacked at √(d/k)"] = accuracy(upper, scale / math.sqrt(pair.mixture.clusters))
        left = left_by_pgd(net, name, test)
        values |= {f"{name}: {how} at {share(r)}": one for how, line in left.items() for r, one in line.items()}
        sides = {"lower": lower, "upper": upper}
        data[name] = {side: rounded(found[found.isfinite()].sort().values) for side, found in sides.items()}
        data[name] |= {how: [[r / PAPER * scale, one] for r, one in line.items()] for how, line in left.items()}
    return Measured(values | along_centres(pair, test), data)


def left_by_pgd(net: TwoSided, name: str, test: Dataset) -> dict[str, dict[int, float]]:
    """Accuracy at the published radii under PGD down the binary read-out, and up the cross-entropy of the clusters.

    For the averaged net the first is PGD on its own loss: with normalised steps the logistic loss gives the same ones.
    """
    small, Q = net.inside()
    X, y, cluster, scale = test.rows() @ Q.T, test.y, test.cluster, math.sqrt(test.dim)
    assert cluster is not None
    losses: dict[str, Callable[[Tensor], Tensor]] = {"PGD on the read-out": lambda Z: -y * small(Z)}
    if name != AVERAGED:
        losses["PGD on the own loss"] = lambda Z: cross_entropy(small.hidden(Z), cluster, reduction="none")
    found: dict[str, dict[int, float]] = {}
    for how, loss in losses.items():
        ends = {radius: pgd(loss, X, radius / PAPER * scale) for radius in PUBLISHED[name]}
        found[how] = {radius: right(small(Z), y) for radius, Z in ends.items()}
    return found


@torch.no_grad()
def along_centres(pair: Pair, test: Dataset) -> dict[str, float]:
    """Accuracy at x + .5 sqrt(d) (sum_opp mu - mu_own)/|.| (sum), and at x + .7 sqrt(d) (mu_opp - mu_own)/|.| (max)."""
    assert test.cluster is not None
    X, y, mu, scale = test.rows(), test.y, pair.mixture.directions, math.sqrt(pair.mixture.dim)
    opposite = y[:, None] != pair.mixture.labels
    every = normalize(opposite.to(mu) @ mu - mu[test.cluster])
    one = normalize(mu[opposite.double().argmax(dim=1)] - mu[test.cluster])
    summed, largest = pair.readout("sum"), pair.readout("max")
    return {
        "summed read-out at .5√d, towards all opposite centres": right(summed(X + 0.5 * scale * every), y),
        "largest-logit read-out at .7√d, towards one opposite centre": right(largest(X + 0.7 * scale * one), y),
    }


CURVES = Experiment(curves, repeats={"quick": 1, "paper": 5})
ATTACKED = {
    profile: f"{words}; {POINTS[profile]} fresh points: proven, broken by our strongest attack, and PGD of 40 steps."
    for profile, words in DATA.items()
}
ALONG = (
    near("summed read-out at .5√d, towards all opposite centres", 0.46, 0.15),
    near("largest-logit read-out at .7√d, towards one opposite centre", 0.48, 0.15),
)
TRUTH = (
    at_most("summed read-out: median radius over √d, broken", 0.52),
    at_most(f"summed read-out: attacked at {share(34)}", 0.02),
    at_least(f"summed read-out: PGD on the own loss at {share(34)}", 0.9, 1.0),
    at_least(f"summed read-out: PGD on the read-out at {share(34)}", 0.3),
    near("largest-logit read-out: median radius over √d, proven", 0.68, 0.03, published=0.677),
    near("largest-logit read-out: median radius over √d, broken", 0.68, 0.03, published=0.677),
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C4",
        sentence="The net trained on class labels breaks at a radius of about √(d/k).",
        paper="LPLL25",
        where="Theorem 4.5, Fig. 3 left",
        standing=Standing.READ_OFF,
        published="d = 3072, √(d/k) = 17.5: 100 % at 12, 90 % at 14, 31 % at 16, 2 % at 18 (±2 %)",
        settings=ATTACKED,
        experiment=CURVES,
        checks=(
            near("averaged: median radius over √(d/k), broken", 1.0, 0.05, published=0.875),
            near("averaged: median radius over √(d/k), proven", 1.0, 0.05, published=0.875),
            near("averaged: attacked at √(d/k)", 0.5, 0.12),
        ),
        reason="Of d = 3072, half of the points break at 17.4. The plotted curve lies 12 % to the left: 31 % at 16, "
        "where 92 % of our points are proven to hold, so that no attack explains it. Clusters of unequal size, 7+3 or "
        "9+1 clusters, 200 points, ten times the steps or the rate leave the median between 17.0 and 17.5. A "
        "third-party rerun, with 98 % at 15, is on our side.",
    ),
    Claim(
        id="C5",
        sentence="The net trained on cluster labels, read out as a sum over the clusters of each class, survives to "
        "about √(d/2).",
        paper="LPLL25",
        where="Theorem 4.7, Fig. 3 left",
        standing=Standing.READ_OFF,
        published="d = 3072, √(d/2) = 39.2: 100 % at 34, 86 % at 36, 35 % at 38, 15 % at 40, 4 % at 42 (±2 %)",
        settings=ATTACKED,
        experiment=CURVES,
        checks=tuple(near(f"summed read-out: attacked at {share(r)}", FD[r], 0.1) for r in (34, 36, 38)),
        why={"quick": (*TRUTH, *ALONG), "paper": TRUTH},
        reason="Read out as a sum the net is F^(1). Of d = 3072, half of the points break at 25 (.453√d, proven and "
        "attacked), and none is left at 34, where the figure has 100 %. At x the opposite neurons are switched off, "
        "and PGD from x hardly finds them: on the net's own loss it leaves 100 % at 34 and 96 % at 38, on the summed "
        "read-out 76 % and 45 %. The plotted curve (half at 37.5) is close to that of the largest logit of each class "
        "(half at 38.2, proven).",
        expects=Verdict.ARTEFACT,
        shown="summed read-out: median radius over √d, broken",
    ),
)
