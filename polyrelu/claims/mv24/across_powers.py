"""What only the nets of all p = 1, 2, 3, 4 together can tell."""

from __future__ import annotations

from itertools import pairwise

from polyrelu.claims import Key, Quantity, Values
from polyrelu.claims.mv24.sizes import HEAD_POWERS
from polyrelu.claims.quantity import located


def by_power(values: Values) -> dict[Key, list[float]]:
    """Of each quantity that was measured for every p, the numbers in the order of p."""
    rows: dict[Key, list[float]] = {}
    for key, value in values.items():
        assert isinstance(key, Quantity)
        elsewhere = {place: at for place, at in key.where if place != "p"}
        rows.setdefault(located(key.name, elsewhere), []).append(value)
    return {key: row for key, row in rows.items() if len(row) == len(HEAD_POWERS)}


def named(key: Key, what: str) -> Key:
    """The quantity "accuracy, ``what``" of "accuracy", at the same place."""
    return f"{key}, {what}" if isinstance(key, str) else located(f"{key.name}, {what}", dict(key.where))


def changes(values: Values) -> dict[Key, float]:
    """How much each quantity grows with p."""
    rows = by_power(values)
    steps = {named(key, "smallest step in p"): min(b - a for a, b in pairwise(row)) for key, row in rows.items()}
    return steps | {named(key, "p = 4 minus p = 1"): row[-1] - row[0] for key, row in rows.items()}


def overstated(values: Values) -> dict[str, float]:
    """By norm, the most by which APGD-CE leaves more than the strongest attack."""
    worst: dict[str, float] = {}
    for key, left in values.items():
        assert isinstance(key, Quantity)
        where = dict(key.where)
        strongest = Quantity(key.name, **{**where, "side": "strongest attack"})
        if where.get("side") == "APGD-CE" and strongest in values:
            norm = str(where["norm"])
            worst[norm] = max(worst.get(norm, 0.0), left - values[strongest])
    return worst
