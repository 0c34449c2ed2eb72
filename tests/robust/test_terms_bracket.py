"""Brackets, branch and bound included, between the truth and a floor, where each term counts."""

from __future__ import annotations

import pytest

from polyrelu.robust.bracket import bracket
from polyrelu.robust.certify.branch import Budget


@pytest.mark.parametrize("kind", ["plain", "bias", "normalised", "classes", "one side"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 7.5])
def test_lower_bounds_are_between_the_truth_and_a_floor(sandwiched, kind: str, p: float) -> None:
    def lower(net, X, y, norm):
        return bracket(net, X[:4], y[:4], norm=norm, budget=Budget(nodes=40)).lower

    sandwiched("bracket", lower, kind, [p], [2.0], [2, 12])
