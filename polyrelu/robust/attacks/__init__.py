"""Attacks: at a given radius, or of minimal norm. All give upper bounds on the radius, never a proof."""

from polyrelu.robust.attacks.apgd import APGD, SparseAPGD
from polyrelu.robust.attacks.boundary_walk import BoundaryWalk
from polyrelu.robust.attacks.carlini_wagner import CarliniWagner
from polyrelu.robust.attacks.centre_directions import CentreToCentre, UniversalDirection
from polyrelu.robust.attacks.combined import MinimalFromRadius, RadiusFromMinimal, strongest
from polyrelu.robust.attacks.contract import Attack, MinimalAttack, RadiusAttack
from polyrelu.robust.attacks.convex_concave import ConvexConcave
from polyrelu.robust.attacks.decision_based import DecisionScore, decision_attack
from polyrelu.robust.attacks.pgd import PGD, FrankWolfe, PublishedPGD
from polyrelu.robust.attacks.starts import (
    Anchor,
    LikeliestRivalsStart,
    NearestRivalStart,
    OtherClassStart,
    RandomStart,
    Start,
    ZeroStart,
)
from polyrelu.robust.attacks.table import ATTACKS, STRONGEST
from polyrelu.robust.attacks.task import CROSS_ENTROPY, EXPONENTIAL, MARGIN, TARGETED, AttackTask, Loss

__all__ = [
    "APGD",
    "ATTACKS",
    "CROSS_ENTROPY",
    "EXPONENTIAL",
    "MARGIN",
    "PGD",
    "STRONGEST",
    "TARGETED",
    "Anchor",
    "Attack",
    "AttackTask",
    "BoundaryWalk",
    "CarliniWagner",
    "CentreToCentre",
    "ConvexConcave",
    "DecisionScore",
    "FrankWolfe",
    "LikeliestRivalsStart",
    "Loss",
    "MinimalAttack",
    "MinimalFromRadius",
    "NearestRivalStart",
    "OtherClassStart",
    "PublishedPGD",
    "RadiusAttack",
    "RadiusFromMinimal",
    "RandomStart",
    "SparseAPGD",
    "Start",
    "UniversalDirection",
    "ZeroStart",
    "decision_attack",
    "strongest",
]
