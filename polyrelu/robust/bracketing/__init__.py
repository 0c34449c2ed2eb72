"""Both sides of a robustness number: attack and certificate brought together, at one radius or for every radius."""

from polyrelu.robust.bracketing.at_radius import Held, cheaply_held, held, with_neurons
from polyrelu.robust.bracketing.bracket import (
    BoundsInconsistentError,
    Bracket,
    BracketStatus,
    bracket,
    check_sandwich,
)
from polyrelu.robust.bracketing.curve import Band, RadiusRange, RobustCurve, curve, relative_gaps
from polyrelu.robust.bracketing.strategies import FEW, WIDE

__all__ = [
    "FEW",
    "WIDE",
    "Band",
    "BoundsInconsistentError",
    "Bracket",
    "BracketStatus",
    "Held",
    "RadiusRange",
    "RobustCurve",
    "bracket",
    "cheaply_held",
    "check_sandwich",
    "curve",
    "held",
    "relative_gaps",
    "with_neurons",
]
