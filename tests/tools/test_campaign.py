"""The campaign in short: every family, every certificate, fixed seeds; and that it would notice."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from waiting import ended

import polyrelu
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust.certify import CERTIFICATES as ROWS
from tools.campaign.certificates import CERTIFICATES, NO_CERTIFICATES, NORMS
from tools.campaign.chunk import Record, compare, run_chunk
from tools.campaign.exact import broken
from tools.campaign.families import FAMILIES
from tools.campaign.families.draw import build, drawn
from tools.campaign.names import definitions, located
from tools.campaign.reproduce import reproduce, stored_scores, write_cases
from tools.campaign.run import Plan
from tools.campaign.scores import Duels, Scores
from tools.campaign.search import Search, confirmed
from tools.campaign.store import Store
from tools.campaign.table import by_family, write_docs

# (chunk, net) in which a certificate was above a break once, or failed; of other families the first.
FOUND = {
    "common part": (0, 1),
    "near ties": (0, 0),
    "cancelling decades": (0, 2),
    "decades, extreme": (3, 1),
    "decades": (2, 1),
    "log scale": (2, 1),
}


def told(violation):
    return "{certificate} in l{norm:g} at point {point}: {proven:.6g} proven, {broken:.6g} broken".format(**violation)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_certificate_is_above_a_break(family):
    chunk, net = FOUND.get(family, (0, 0))
    record = run_chunk(family, seed=0, chunk=chunk, only=net, points=None if family in FOUND else 3)
    assert [told(violation) for violation in record.violations] == []
    assert record.errors == []
    assert record.comparisons > 0 or family == "huge points"


def test_every_certificate_is_in_the_table():
    for certificate in CERTIFICATES:
        located(certificate.name, *certificate.parameters)
    named = {name for name in definitions() if name.endswith("_radius")}
    known = {certificate.name for certificate in CERTIFICATES} | set(NO_CERTIFICATES)
    assert not named - known, f"add to tools/campaign/certificates.py: {sorted(named - known)}"
    assert not set(NO_CERTIFICATES) - named, f"gone from the package: {sorted(set(NO_CERTIFICATES) - named)}"


def held():
    """Names of the package's own table that the campaign holds against searches."""
    return {certificate.variant for certificate in CERTIFICATES if certificate.name == "certified_radius"}


def test_every_row_of_the_package_is_in_the_table(monkeypatch):
    assert held() == set(ROWS)
    monkeypatch.setitem(ROWS, "planted", ROWS["lipschitz"])
    assert held() != set(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_an_unsound_row_of_the_package_is_noticed(name, monkeypatch):
    plant(monkeypatch, "certified_radius", 20.0)
    some = [one for one in CERTIFICATES if (one.name, one.variant) == ("certified_radius", name)]
    family = "read-out" if name.startswith("sub-classes") else "ideal"
    found = [one for chunk in range(2) for one in run_chunk(family, 1, chunk, certificates=some, points=2).violations]
    assert {violation["certificate"] for violation in found} == {f"certified_radius ({name})"}


def test_a_certificate_that_vanished_is_named():
    with pytest.raises(LookupError, match="polyrelu has no function gone_radius"):
        located("gone_radius", "net")
    with pytest.raises(LookupError, match=r"root_lipschitz_radius.*certify\.lipschitz"):
        located("root_lipschitz_radius", "model")
    with pytest.raises(LookupError, match=r"PolyReLUClassifier\.prove"):
        located("PolyReLUClassifier.prove", "self")


def plant(monkeypatch, name, factor):
    """Multiply what a public function proves; of a head, whose replaced methods prove nothing, the bracket it calls."""
    head = name == "PolyReLUClassifier.certify"
    name, modules = ("bracket", ["polyrelu.estimator.robustness_mixin"]) if head else (name, definitions()[name])
    for module in modules:
        place = importlib.import_module(module)
        true = getattr(place, name)

        @functools.wraps(true)
        def unsound(*args, true=true, **kwargs):
            if "radius" in inspect.signature(true).parameters:
                return true(*args[:3], args[3] / factor)
            return _longer(true(*args, **kwargs), factor)

        monkeypatch.setattr(place, name, unsound)


def _longer(proven, factor):
    if proven is None:
        return None
    if isinstance(proven, torch.Tensor):
        return proven * factor
    if hasattr(proven, "_replace"):
        return proven._replace(lower=proven.lower * factor)
    return polyrelu.Bracket(**{**vars(proven), "lower": proven.lower * factor})


SHARP = {  # (family, seed, chunk, net) where a certificate proves nearly all there is, if that is not ("ideal", 1, 0)
    "average_radius": ("ideal", 0, 0, 0),
    "nearest_centre_radius": ("ideal", 1, 0, 2),
    "bounds_at_radius": ("ideal", 0, 0, 2),
    "proven_at_radius": ("ideal", 1, 1, 1),
    "certified": ("foreign", 0, 0, 0),
    "PolyReLUClassifier.certify": ("heads", 0, 0, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({one.name for one in CERTIFICATES} - {"certified_radius"}))
def test_a_planted_error_of_five_percent_is_noticed(name, monkeypatch):
    plant(monkeypatch, name, 1.05)
    some = [certificate for certificate in CERTIFICATES if certificate.name == name]
    family, seed, chunk, net = SHARP.get(name, ("ideal", 1, 0, None))
    broken_ = run_chunk(family, seed, chunk, certificates=some, only=net, points=4).violations
    assert {violation["certificate"] for violation in broken_} == {certificate.title for certificate in some}
    assert all(violation["proven"] < 1.0501 * violation["broken"] for violation in broken_)


@pytest.mark.parametrize("factor, noticed", [(1.0, False), (1 + 1e-7, True)])
def test_an_error_in_the_seventh_digit_of_an_exact_certificate_is_noticed(factor, noticed, monkeypatch):
    # One neuron active at x, p = 1, bias b: the margin is linear and linear_radius exact but for rounding.
    plant(monkeypatch, "linear_radius", factor)
    w, rng, record = np.array([3.0, -4.0]), np.random.default_rng(0), Record("half-space", 0, 0)
    case = drawn(rng, build(w[None], np.ones((1, 1)), 1.0, bias=np.array([-1.0])), np.array([w, 0.3 * w]))
    compare(record, case, rng, 0, [one for one in CERTIFICATES if one.name == "linear_radius"])
    assert record.comparisons == 6 and record.ratio == pytest.approx(factor, abs=1e-9)
    assert {violation["norm"] for violation in record.violations} == (set(NORMS) if noticed else set())


def shortest(net, x, label, norm=2.0):
    scores = Scores.of_net(net)
    found = Search.of(scores, label, np.asarray(x, dtype=np.float64), np.random.default_rng(0)).run({norm: []})
    length, step = found[norm]
    assert confirmed(scores, label, np.asarray(x), step, norm, math.inf) is not None
    return length


@pytest.mark.parametrize("positive, negative, dim", [(1, 1, 2), (2, 1, 3), (2, 2, 4), (3, 2, 6)])
def test_the_search_finds_the_closed_forms(positive, negative, dim):
    # At a centre F breaks at 1/sqrt(K); F^(p) at sqrt(2)/2 for p >= 2, else at 1/sqrt(1 + m^(2/p-1)), m all opposite.
    centres, labels = torch.eye(dim).double()[: positive + negative], torch.tensor([1.0] * positive + [-1.0] * negative)
    x = np.eye(dim)[0]
    average = shortest(AverageClassifier(centres, labels).as_polyrelu_net(), x, 1.0)
    assert average == pytest.approx(1 / math.sqrt(positive + negative), rel=1e-4)
    assert average >= 1 / math.sqrt(positive + negative) * (1 - 1e-12)
    for p, exact in ((3.0, math.sqrt(0.5)), (2.0, math.sqrt(0.5)), (1.5, 1 / math.sqrt(1 + negative ** (2 / 1.5 - 1)))):
        found = shortest(CentreClassifier(centres, labels, p=p).as_polyrelu_net(), x, 1.0)
        assert found == pytest.approx(exact, rel=2e-3)
        assert found >= exact * (1 - 1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
@pytest.mark.parametrize("norm", NORMS)
def test_the_search_finds_a_half_space(dim, norm):
    # One neuron active at x, p = 1, bias b: the margin <w, x> + b is linear, so r = margin/|w|_dual.
    rng = np.random.default_rng(dim)
    w = rng.standard_normal(dim)
    x = 3 * w / np.linalg.norm(w) + 0.1 * rng.standard_normal(dim)
    net = build(w[None], np.ones((1, 1)), 1.0, bias=np.array([-0.5 * float(w @ x)]))
    dual = {1.0: np.abs(w).max(), 2.0: np.linalg.norm(w), math.inf: np.abs(w).sum()}[norm]
    exact = 0.5 * float(w @ x) / dual
    assert shortest(net, x, 1.0, norm) == pytest.approx(exact, rel=1e-3)


def test_the_search_finds_a_break_that_is_one_point():
    # relu(t)^3 + relu(-t)^3 in each coordinate is 0 at the centre only.
    W, centre = np.concatenate([np.eye(2), -np.eye(2)]), np.array([1.0, 2.0])
    net = build(W, np.ones((1, 4)), 3.0, centre=centre)
    x = centre + np.array([0.375, -0.5])
    assert [shortest(net, x, 1.0, norm) for norm in NORMS] == [0.875, 0.625, 0.5]


def test_signs_are_those_of_exact_arithmetic():
    rng = np.random.default_rng(0)
    for family in ("plain", "bias and normalised", "read-out", "decades, extreme", "foreign"):
        for _ in range(3):
            drawn = FAMILIES[family](rng)
            label = drawn.scores.decision(drawn.X[0])
            X = drawn.X + 0.3 * rng.standard_normal(drawn.X.shape) * np.abs(drawn.X).max()
            values = Duels.of(drawn.scores, label).values(X)
            for x, value in zip(X, values, strict=True):
                if abs(value) > 1e-9 or value == 0:
                    assert broken(drawn.scores, label, x, np.zeros_like(x)) == (value <= 0)


def test_exact_arithmetic_sees_what_float64_does_not():
    one, two = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    x, still = np.array([1.0, 0.0]), np.zeros(2)
    tiny = Scores.of_net(build(one, np.ones((1, 1)), 50.0, log_scale=np.array([-3000.0])))
    assert not broken(tiny, 1.0, x, still)  # exp(-6000) > 0
    assert broken(tiny, -1.0, x, still)
    assert broken(tiny, 1.0, -x, still)  # inactive: exactly 0
    assert broken(Scores.of_net(build(two, np.array([[1e10, -1e10]]), 1.5)), 1.0, x, still)  # cancels to exactly 0
    last = np.array([[1.0, 0.0], [1.0, 2.0**-300]])
    net = Scores.of_net(build(last, np.array([[1e10, -1e10]]), 1.0))
    assert broken(net, 1.0, np.array([1.0, 1.0]), still)  # by 1e10 2^-300
    assert not broken(net, 1.0, np.array([1.0, -1.0]), still)
    assert not broken(net, 1.0, np.array([1.0, 1.0]), np.array([0.0, -1.0 - 2.0**-50]))


@pytest.mark.slow
def test_a_violation_can_be_made_again(tmp_path, monkeypatch, capsys):
    plant(monkeypatch, "root_lipschitz_radius", 1.5)
    record = run_chunk("ideal", 1, 0, nets=1)
    case = write_cases(tmp_path, [record])[0]
    assert reproduce(case) == 1
    assert "breaks the label" in capsys.readouterr().out
    kept = json.loads(case.read_text())
    assert kept["broken"] < kept["proven"]
    net = polyrelu.load(case.with_suffix(".safetensors"))
    x, step = np.array(kept["x"]), np.array(kept["step"])
    margins = kept["label"] * net(torch.as_tensor(np.stack([x, x + 1.000001 * step])))
    assert margins[0] > 0 >= margins[1]
    assert broken(stored_scores(kept), kept["label"], x, step)
    monkeypatch.undo()
    assert reproduce(case) == 0


def test_records_survive_a_cut_line_and_other_code(tmp_path):
    store = Store(tmp_path, "now")
    store.append(Record("plain", 0, 0, comparisons=3))
    with store.file.open("a") as stream:
        stream.write('{"source": "now", "family": "pl')  # killed while writing
    store.append(Record("plain", 0, 1, comparisons=4))
    store.append(Record("plain", 7, 0, comparisons=5))
    Store(tmp_path, "before").append(Record("plain", 0, 2, comparisons=6))
    records = store.records(0)
    assert [record.comparisons for record in records] == [3, 4]
    plan = Plan(["plain", "bias"], 8, records)
    assert plan.next([]) == ("bias", 0)
    assert plan.next(["bias"]) == ("plain", 2)
    assert plan.left == 1 + 8


def test_the_table_counts_violations(tmp_path):
    record = Record("plain", 0, 0, pairs=2, comparisons=6, uppers=4, beaten=1, missed=2, ratio=1.2)
    record.violations.append({"certificate": "root_lipschitz_radius"})
    assert by_family([record])[0] == ["plain", "2", "6", "1", "0", "0", "1.200000", "25.0 %", "0.0 %", "50.0 %"]
    write_docs(tmp_path / "page.md", [record], "python -m tools.campaign")
    assert "| plain | 2 | 6 | 1 |" in (tmp_path / "page.md").read_text()


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_ctrl_c_keeps_what_is_done(tmp_path):
    words = ["-m", "tools.campaign", "--family", "one neuron", "--out", str(tmp_path), "--workers", "1"]
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        file = tmp_path / "records.jsonl"
        while process.poll() is None and not (file.exists() and file.read_text().endswith("\n")):
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = ended(process)
    assert process.returncode == 130, err
    assert "Go on with: python -m tools.campaign" in err
    assert "Traceback" not in err
    assert "one neuron" in out
