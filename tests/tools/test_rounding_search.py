"""Rounding flips no decision inside a radius of `certify`; the search that says so finds flips where there are any."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from tools.rounding.__main__ import table
from tools.rounding.exact import inside, length, linear_radius
from tools.rounding.executed import of_head
from tools.rounding.kinds import KINDS, linear_head, points_of
from tools.rounding.search import Search
from tools.rounding.trial import certified, closed_form

EVERY = range(2 * len(KINDS))  # every kind in float32 and float64


def test_lengths_are_those_of_the_stored_numbers():
    row, ulp = np.ones(2), 2.0**-52
    changed = row + np.array([3, -4]) * ulp
    for norm, exact in ((2, 5 * ulp), (1, 7 * ulp), (math.inf, 4 * ulp)):
        assert length(changed, row, norm) == pytest.approx(exact, rel=1e-15)
        assert not inside(changed, row, exact, norm)
        assert inside(changed, row, math.nextafter(exact, 1), norm)
    assert inside(np.array([1e-300]), np.array([1.0], dtype=np.float32), 1.0, 2)  # float64 gives 1 - 1e-300 = 1
    assert inside(changed, row, math.inf, 2)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_closed_form_is_the_largest_float_below_the_real_radius(norm):
    source = np.random.default_rng(0)
    for _ in range(20):
        weight, row, bias = source.standard_normal(5), source.standard_normal(5).astype(np.float32), source.normal()
        value = abs(sum(Fraction(w) * Fraction(float(x)) for w, x in zip(weight, row, strict=True)) + Fraction(bias))
        entries = [abs(Fraction(w)) for w in weight]
        size = {1: max(entries) ** 2, 2: sum(w * w for w in entries), math.inf: sum(entries) ** 2}[norm]
        radius = linear_radius(weight, bias, row, norm)
        assert Fraction(radius) ** 2 * size <= value**2 < Fraction(math.nextafter(radius, math.inf)) ** 2 * size


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, 0.6), (torch.float64, 0.4)])
def test_the_search_finds_flips_inside_exact_radii_of_real_arithmetic(dtype, share):
    rows = [row for number in range(4) for row in closed_form(number, 0, dtype, each=4)]
    assert sum(row.broken for row in rows) >= share * len(rows)


def exactly(weight, row):
    return sum((Fraction(w) * Fraction(x) for w, x in zip(weight.tolist(), row.tolist(), strict=True)), Fraction(0))


@pytest.mark.slow
def test_a_flip_lies_nearer_than_the_radius_where_real_arithmetic_has_not_changed_its_mind():
    source = np.random.default_rng(1)
    head = linear_head(source, torch.float32, 300)
    weight = head.net_.weight[0].detach().double().numpy()
    for row in points_of(head, source, 3):
        label = int(head.predict(row[None])[0])
        radius = linear_radius(weight, 0.0, row, 2)
        out = Search(of_head(head), row, label, radius, 2.0, source).run(np.zeros((1, 300)))
        assert out.broken
        step = [Fraction(a) - Fraction(b) for a, b in zip(out.flip.tolist(), row.tolist(), strict=True)]
        assert sum(d * d for d in step) < Fraction(radius) ** 2
        assert out.ratio == pytest.approx(math.sqrt(sum(d * d for d in step)) / radius, rel=1e-12)
        assert (exactly(weight, out.flip) > 0) == (label == 1)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_the_search_finds_nothing_where_decisions_are_exact(norm):
    source = np.random.default_rng(2)
    head = linear_head(source, torch.float32, 8)
    weight = head.net_.weight[0].detach().double().numpy()
    runs = replace(
        of_head(head),
        scores=lambda rows: np.array([float(exactly(weight, row)) for row in rows]),
        decide=lambda rows: np.array([int(exactly(weight, row) > 0) for row in rows]),
    )
    for row in points_of(head, source, 3):
        radius = linear_radius(weight, 0.0, row, norm)
        out = Search(runs, row, int(exactly(weight, row) > 0), radius, norm, source).run(np.zeros((1, 8)))
        assert out.flip is not None
        assert not out.broken
        assert out.ratio < 1 + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("number", EVERY)
def test_rounding_flips_no_decision_inside_a_certified_radius(number):
    rows = certified(number, 2, each=2)
    assert not any(row.broken for row in rows), table(rows)


@pytest.mark.slow
@pytest.mark.parametrize("number", EVERY)
def test_rounding_flips_no_decision_of_an_exported_head(number):
    pytest.importorskip("onnxruntime")
    rows = certified(number, 3, onnx=True, each=1)
    assert not any(row.broken for row in rows), table(rows)
