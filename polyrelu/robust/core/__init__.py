"""What attacks and certificates share: margins, norms, pools, arithmetic, the reduced net, results."""

from polyrelu.robust.core.arithmetic import EXECUTED, REAL, Arithmetic, arithmetic_of
from polyrelu.robust.core.external_layers import ACTIVATIONS, Diagonal, Flat, Kernel, OneVersusOne, Opaque, UnitRows
from polyrelu.robust.core.integrity import NETS, altered, require_genuine
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.model_copy import QUERY, check_initialised, copied
from polyrelu.robust.core.norms import NORMS, check_norm, dual, lengths, lowest, project, steepest, to_hyperplane, unit
from polyrelu.robust.core.pool import Labelled, Own, Pool, check_pool, pool_of, spread_out
from polyrelu.robust.core.reduced_net import Ray, Rows, Shallow, reduce
from polyrelu.robust.core.relaxation import Relaxation, solve
from polyrelu.robust.core.result import AttackResult, AttackStatus, settled
from polyrelu.robust.core.scaled_net import DUST, UNIT, Neurons
from polyrelu.robust.core.single_thread import single_threaded

__all__ = [
    "ACTIVATIONS",
    "DUST",
    "EXECUTED",
    "NETS",
    "NORMS",
    "QUERY",
    "REAL",
    "UNIT",
    "Arithmetic",
    "AttackResult",
    "AttackStatus",
    "Diagonal",
    "Flat",
    "Kernel",
    "Labelled",
    "Neurons",
    "OneVersusOne",
    "Opaque",
    "Own",
    "Pool",
    "Ray",
    "Relaxation",
    "Rows",
    "Score",
    "Shallow",
    "UnitRows",
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
    "pool_of",
    "project",
    "reduce",
    "require_genuine",
    "settled",
    "single_threaded",
    "solve",
    "spread_out",
    "steepest",
    "to_hyperplane",
    "unit",
]
