"""Attacks, one file each: at a given radius, or of minimal norm. All give upper bounds on the radius, never a proof."""

from polyrelu.robust.attacks.adapters import AtRadius, Minimal
from polyrelu.robust.attacks.apgd import APGD
from polyrelu.robust.attacks.boundary import BoundaryWalk
from polyrelu.robust.attacks.carlini_wagner import CarliniWagner
from polyrelu.robust.attacks.centre_to_centre import CentreToCentre
from polyrelu.robust.attacks.contract import Attack, MinimalAttack, RadiusAttack
from polyrelu.robust.attacks.convex_concave import ConvexConcave
from polyrelu.robust.attacks.frank_wolfe import FrankWolfe
from polyrelu.robust.attacks.losses import CROSS_ENTROPY, EXPONENTIAL, MARGIN, TARGETED, Loss
from polyrelu.robust.attacks.pgd import PGD
from polyrelu.robust.attacks.published_pgd import PublishedPGD
from polyrelu.robust.attacks.starts import Nearest, Random, Rivals, Start, Towards, Zero
from polyrelu.robust.attacks.strongest import strongest
from polyrelu.robust.attacks.universal import UniversalDirection

ATTACKS: dict[str, Attack] = {
    "pgd": PGD(),
    "apgd-ce": APGD(loss=CROSS_ENTROPY),
    "apgd-margin": APGD(loss=MARGIN),
    "apgd-targeted": APGD(loss=TARGETED),
    "frank-wolfe": FrankWolfe(),
    "boundary": BoundaryWalk(),
    "carlini-wagner": CarliniWagner(starts=(Zero(), Towards())),
    "universal": UniversalDirection(),
    "centre": CentreToCentre(),
    "convex-concave": ConvexConcave(),
    "published": PublishedPGD(),
}

__all__ = [
    "APGD",
    "ATTACKS",
    "CROSS_ENTROPY",
    "EXPONENTIAL",
    "MARGIN",
    "PGD",
    "TARGETED",
    "AtRadius",
    "Attack",
    "BoundaryWalk",
    "CarliniWagner",
    "CentreToCentre",
    "ConvexConcave",
    "FrankWolfe",
    "Loss",
    "Minimal",
    "MinimalAttack",
    "Nearest",
    "PublishedPGD",
    "RadiusAttack",
    "Random",
    "Rivals",
    "Start",
    "Towards",
    "UniversalDirection",
    "Zero",
    "strongest",
]
