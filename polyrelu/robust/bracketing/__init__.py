"""Both sides of a robustness number: attack and certificate brought together, at one radius or for every radius."""

from polyrelu.robust.bracketing.at_radius import RadiusBounds, bounds_at_radius, proven_at_radius, with_neurons
from polyrelu.robust.bracketing.bracket import (
    BoundsInconsistentError,
    Bracket,
    BracketStatus,
    bracket,
    check_bounds,
)
from polyrelu.robust.bracketing.curve import Band, RadiusRange, RobustCurve, curve, relative_gaps
from polyrelu.robust.bracketing.strategies import MOST_DIRECTIONS, QUICK_DIRECTIONS

__all__ = [
    "MOST_DIRECTIONS",
    "QUICK_DIRECTIONS",
    "Band",
    "BoundsInconsistentError",
    "Bracket",
    "BracketStatus",
    "RadiusBounds",
    "RadiusRange",
    "RobustCurve",
    "bounds_at_radius",
    "bracket",
    "check_bounds",
    "curve",
    "proven_at_radius",
    "relative_gaps",
    "with_neurons",
]
