"""The table of attacks, and which of them are tried together at one radius."""

from __future__ import annotations

import math

from polyrelu.robust.attacks.apgd import APGD, SparseAPGD
from polyrelu.robust.attacks.boundary_walk import BoundaryWalk
from polyrelu.robust.attacks.carlini_wagner import CarliniWagner
from polyrelu.robust.attacks.centre_directions import CentreToCentre, UniversalDirection
from polyrelu.robust.attacks.contract import Attack
from polyrelu.robust.attacks.convex_concave import ConvexConcave
from polyrelu.robust.attacks.pgd import PGD, FrankWolfe, PublishedPGD
from polyrelu.robust.attacks.starts import LikeliestRivalsStart, NearestRivalStart, OtherClassStart, ZeroStart
from polyrelu.robust.attacks.task import CROSS_ENTROPY, MARGIN, TARGETED
from polyrelu.robust.core.norms import NORMS

ATTACKS: dict[str, Attack] = {
    "pgd": PGD(),
    "apgd-ce": APGD(loss=CROSS_ENTROPY),
    "apgd-margin": APGD(loss=MARGIN),
    "apgd-targeted": APGD(loss=TARGETED),
    "apgd-rivals": APGD(starts=(LikeliestRivalsStart(3),)),
    "apgd-sparse": SparseAPGD(),
    "frank-wolfe": FrankWolfe(),
    "frank-wolfe-rival": FrankWolfe(steps=4, starts=(LikeliestRivalsStart(1),)),
    "frank-wolfe-zero": FrankWolfe(steps=6, starts=(ZeroStart(),)),
    "frank-wolfe-nearest": FrankWolfe(starts=(NearestRivalStart(),)),
    "frank-wolfe-rivals": FrankWolfe(steps=40, starts=(LikeliestRivalsStart(3),)),
    "frank-wolfe-towards": FrankWolfe(steps=6, starts=(OtherClassStart(4),)),
    "boundary": BoundaryWalk(),
    "carlini-wagner": CarliniWagner(starts=(ZeroStart(), OtherClassStart())),
    "universal": UniversalDirection(),
    "centre": CentreToCentre(),
    "convex-concave": ConvexConcave(),
    "published": PublishedPGD(),
}

# What `strongest` tries, one after the other, and in which norms. Cheap searches first; Auto-PGD late, as the better
# one at kinks, but not for l1, where it moves single pixels. On two-layer nets trained on MNIST the first search, four
# steps towards one rival, finds all but a few of the points that APGD-CE, APGD-T and FAB-T find together; the others
# are there for those few, and for nets with more bends. Two of them begin at data of the other classes: where neurons
# are silent at x, as those of the other centres are for p > 2, the gradient at x knows nothing of them.
STRONGEST: dict[str, tuple[float, ...]] = {
    "frank-wolfe-rival": NORMS,
    "frank-wolfe-zero": NORMS,
    "frank-wolfe-nearest": NORMS,
    "frank-wolfe-rivals": (1.0,),
    "apgd-rivals": (2.0, math.inf),
    "frank-wolfe-towards": NORMS,
}
