"""Numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def number_text(value: float) -> str:
    """Four significant digits: 0.3162, 1.2e-5, 20000; "no number" for NaN."""
    if math.isnan(value):
        return "no number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value)).replace("-", "−")
    digits = re.sub(r"e\+?(-?)0*(?=\d)", r"e\1", f"{abs(value):.4g}")
    return f"−{digits}" if value < 0 else digits


def range_text(values: Sequence[float]) -> str:
    """One number, or the median of several with their range."""
    if any(map(math.isnan, values)):
        return number_text(math.nan)
    ordered = sorted(values)
    middle = number_text(ordered[len(ordered) // 2])
    if number_text(ordered[0]) == number_text(ordered[-1]):
        return middle
    return f"{middle} ({number_text(ordered[0])} to {number_text(ordered[-1])})"
