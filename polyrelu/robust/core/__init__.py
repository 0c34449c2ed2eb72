"""What attacks and certificates share: margins, norms, pools, arithmetic, the reduced net, results."""

from polyrelu.robust.core.arithmetic import EXECUTED, REAL, Arithmetic, arithmetic_of
from polyrelu.robust.core.external_layers import Flat, Opaque
from polyrelu.robust.core.integrity import NETS, altered, require_genuine
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.model_copy import check_initialised, copied
from polyrelu.robust.core.norms import NORMS, check_norm, dual, lengths, lowest, project, steepest, to_hyperplane, unit
from polyrelu.robust.core.pool import LabelledRows, PoolSource, check_pool
from polyrelu.robust.core.reduced_net import ReducedNet, reduce
from polyrelu.robust.core.result import AttackResult, AttackStatus, recheck

__all__ = [
    "EXECUTED",
    "NETS",
    "NORMS",
    "REAL",
    "Arithmetic",
    "AttackResult",
    "AttackStatus",
    "Flat",
    "LabelledRows",
    "Opaque",
    "PoolSource",
    "ReducedNet",
    "Score",
    "altered",
    "arithmetic_of",
    "check_initialised",
    "check_norm",
    "check_points",
    "check_pool",
    "copied",
    "dual",
    "lengths",
    "lowest",
    "margin_of",
    "project",
    "recheck",
    "reduce",
    "require_genuine",
    "steepest",
    "to_hyperplane",
    "unit",
]
