"""What attacks and certificates share: margins, norms, pools, arithmetic, the reduced net, results."""

from polyrelu.robust.core.arithmetic import EXECUTED, REAL, Arithmetic, arithmetic_of
from polyrelu.robust.core.attack_result import AttackResult, AttackStatus, recheck
from polyrelu.robust.core.external_layers import Opaque, SqueezeSingleLogit
from polyrelu.robust.core.integrity import GENUINE_NETS, altered, require_genuine
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.model_copy import check_initialised, copied
from polyrelu.robust.core.norms import (
    NORMS,
    check_norm,
    dual,
    lengths,
    linear_minimiser,
    project,
    steepest,
    to_hyperplane,
    unit,
)
from polyrelu.robust.core.pool import LabelledRows, PoolSource, check_pool
from polyrelu.robust.core.reduced_net import ReducedNet

__all__ = [
    "EXECUTED",
    "GENUINE_NETS",
    "NORMS",
    "REAL",
    "Arithmetic",
    "AttackResult",
    "AttackStatus",
    "LabelledRows",
    "Opaque",
    "PoolSource",
    "ReducedNet",
    "Score",
    "SqueezeSingleLogit",
    "altered",
    "arithmetic_of",
    "check_initialised",
    "check_norm",
    "check_points",
    "check_pool",
    "copied",
    "dual",
    "lengths",
    "linear_minimiser",
    "margin_of",
    "project",
    "recheck",
    "require_genuine",
    "steepest",
    "to_hyperplane",
    "unit",
]
