"""One classifier on one set of points: how far each point was found to break, and how far it is proven to hold (l2).

    lower_i <= min |d| : decision(x_i + d) != y_i <= upper_i

Modules (`polyrelu.robust.external`) are attacked through their gradients, anything else by queries of its
predict function alone. Every perturbation counted was decided otherwise by the classifier itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyrelu.estimator.robustness_report.target_model import TargetModel
from polyrelu.robust import (
    QUICK_DIRECTIONS,
    Bracket,
    BracketStatus,
    Budget,
    LabelledRows,
    RobustCurve,
    bracket,
    check_bounds,
    curve,
    recheck,
)
from polyrelu.robust.attacks import decision_attack, strongest
from polyrelu.robust.external import certified, is_linear, provable

EFFORT = Budget(nodes=0)  # the root of branch and bound proves nearly all there is, in a tenth of the time
QUERIES = 1000  # decisions a point where there is no gradient
EXACT, PROVEN, UNPROVEN = "exact", "proven", "nothing is proven"  # what stands behind lower bounds
Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class MeasuredRadii:
    """A classifier's radii on some points, l2, in the unit of X.

    clean : accuracy on all rows given, not only on those attacked
    bracket : lower, upper and the perturbation behind upper, for each point attacked
    proof : "exact", "proven" (a lower bound), or "nothing is proven": then all lower are 0
    how : what attacked it, in words
    """

    name: str
    clean: float
    bracket: Bracket
    proof: str
    how: str

    @property
    def curve(self) -> RobustCurve:
        """Accuracy against the radius."""
        return curve(self.bracket)

    @property
    def broken_at(self) -> float:
        """The radius at which half of the points were found to break."""
        return self.curve.median_radius.upper

    @property
    def proven_to(self) -> float:
        """The radius up to which half of the points are proven to hold; 0 where nothing is proven."""
        return self.curve.median_radius.lower


def measure_radii(
    target: TargetModel, X: Tensor, y: Array, points: Array, pool: tuple[Tensor, Array], *, radii: Array, seed: int
) -> MeasuredRadii:
    """Attack and certify the rows ``points`` of X; accuracy is over all of X.

    pool : rows and labels that attacks walk towards, best those trained on
    radii : where the strongest attack at a radius is tried besides, on what the minimal one left
    """
    clean = float((target.decide(X) == y).mean())
    rows, said = X[torch.from_numpy(points)], y[points]
    known = np.isin(pool[1], target.classes)
    near, names = pool[0][torch.from_numpy(known)], pool[1][known]
    labels = target.labels(said)
    if target.module is None and target.predict is not None:
        found = decision_attack(
            target.predict, rows, said, classes=target.classes, pool=near, queries=QUERIES, seed=seed
        )
        lower, upper, step = torch.zeros(len(rows)).double(), found.radius, found.perturbation
        how, proof = f"about {found.evaluations // len(rows)} decisions a point", UNPROVEN
    else:
        assert target.module is not None
        own = LabelledRows(near, target.labels(names))
        both = bracket(target.module, rows, labels, budget=EFFORT, widest=QUICK_DIRECTIONS, pool=own, seed=seed)
        lower, upper, step = both.lower, both.upper, both.perturbation
        proof, how = PROVEN, "its gradients"
        if not provable(target.module):
            more = certified(target.model, rows, labels, budget=EFFORT)
            proof = UNPROVEN if more is None else EXACT if is_linear(target.module) else PROVEN
            lower = lower if more is None else torch.maximum(lower, more)
            if proof != EXACT:
                upper, step = _strongest(target.module, rows, labels, upper, step, pool=own, radii=radii, seed=seed)
    upper, step = recheck(lambda some, Z: torch.from_numpy(target.decide(Z) != said[some.numpy()]), rows, upper, step)
    lower = torch.where(upper > 0, lower, 0.0)  # its own predict may round a margin of 0 to the other side
    check_bounds(lower, upper)
    status = tuple(_status(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True))
    nodes = torch.zeros(len(rows), dtype=torch.long)
    return MeasuredRadii(target.name, clean, Bracket(lower, upper, step, status, 2.0, nodes), proof, how)


def _strongest(
    module: nn.Module, X: Tensor, y: Tensor, upper: Tensor, step: Tensor, *, pool: LabelledRows, radii: Array, seed: int
) -> tuple[Tensor, Tensor]:
    """The strongest attack at each radius on the points that the minimal one left, from the smallest radius on."""
    for radius in sorted(radii.tolist()):
        left = (upper > radius).nonzero()[:, 0]
        if len(left) and radius > 0:
            found = strongest(module, X[left], y[left], radius, pool=pool, seed=seed)
            good = left[found.success]
            upper[good], step[good] = found.radius[found.success], found.perturbation[found.success]
    return upper, step


def _status(lower: float, upper: float) -> BracketStatus:
    if upper == 0:
        return BracketStatus.WRONG
    if upper == float("inf"):
        return BracketStatus.UNBREAKABLE if lower == upper else BracketStatus.UNBROKEN
    return BracketStatus.CLOSED if upper <= lower * 1.001 else BracketStatus.UNPROVEN
