"""Experiments are found by their full names, measured by part, and kept as they are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

from polyrelu.claims import Measured, Quantity, Verdict, catalogue, experiment, load_experiment, outcomes, settings_of
from polyrelu.claims.experiment import Experiment, together
from polyrelu.errors import InputError

measure = importlib.import_module("polyrelu.claims.measure")


def made(name: str, repeats: int = 1, needs: str = "", over=None) -> Experiment:
    def run(profile, seed, **part) -> Measured:
        return Measured({"x": seed, Quantity("y", radius=0.5): 2.0}, {"drawn": [1]})

    run.__name__ = name
    return experiment(over=over or {}, repeats={"quick": repeats}, needs=lambda profile: needs)(run)


def test_every_claim_names_an_experiment():
    for claim in catalogue().values():
        if not claim.experiment:
            assert claim.expects is Verdict.NOT_RUN and claim.reason and not claim.checks
            continue
        assert load_experiment(claim.experiment).name == claim.experiment


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mv25.phases.random_stat", "has.*random_start"),
        ("mv25.phase.random_start", "mv25.phase"),
        ("nothing", "expected"),
    ],
)
def test_a_name_that_is_none_is_refused(name, message):
    with pytest.raises(InputError, match=message):
        load_experiment(name)


def test_two_experiments_of_one_name_are_refused():
    one = made("twice")
    assert one.name.endswith(".twice")
    with pytest.raises(ValueError, match="twice"):
        made("twice")


def test_parts_are_all_combinations_the_last_changing_fastest():
    one = made("combined", over={"p": (1.0, 3.0), "k": {"quick": (4, 8), "paper": ()}})
    assert one.parts("quick") == [{"p": p, "k": k} for p in (1.0, 3.0) for k in (4, 8)]
    assert one.parts("paper") == []
    assert made("whole").parts("quick") == [{}]


def test_values_say_in_which_part_they_were_measured():
    one = made("located", over={"p": (1, 3)})
    assert one("quick", 4, p=3).values == {Quantity("x", p=3): 4, Quantity("y", p=3, radius=0.5): 2}
    assert one("quick", 4).values == {"x": 4, Quantity("y", radius=0.5): 2}
    values = together(one, [one("quick", 0, **part) for part in one.parts("quick")])
    assert values.along("p", "x") == {1: 0, 3: 0}


def test_settings_name_all_that_decides_a_result(monkeypatch):
    monkeypatch.setattr(measure, "code_identity", lambda module: f"code of {module}")
    k = {"k": (1, 2)}
    a, b, c = made("a", 2, over=k), made("b", over=k), made("c", needs="needs MNIST", over=k)
    claims = [SimpleNamespace(experiment=one.name) for one in (a, a, b, c)]
    found = settings_of(claims, "quick")
    assert len(found) == 2 * 2 + 1 * 2
    first = {"experiment": a.name, "profile": "quick", "seed": 0, "part": {"k": 1}, "code": f"code of {a.module}"}
    assert found[0] == first
    assert {one["seed"] for one in found if one["experiment"] == a.name} == {0, 1}
    assert {one["experiment"] for one in found} == {a.name, b.name}  # nothing is run for want of data
    assert [one["seed"] for one in settings_of(claims[:1], "quick", 3, 5)] == [5, 5, 6, 6, 7, 7]


def test_results_of_other_code_are_not_measured(monkeypatch):
    one = made("measured", over={"k": (1,)})
    monkeypatch.setattr(measure, "load_experiment", lambda name: one)
    monkeypatch.setattr(measure, "code_identity", lambda module: "now")
    found = measure.measure(one.name, "quick", 3, {"k": 1}, "now")
    assert found["values"][0] == {"quantity": "x", "where": {"k": 1}, "value": 3}
    assert found["data"] == {"drawn": [1]} and found["note"] == ""
    with pytest.raises(InputError, match="another version of polyrelu"):
        measure.measure(one.name, "quick", 3, {"k": 1}, "before")


def record(result):
    settings = {"experiment": "a", "seed": 0, "part": {"k": 1}}
    return SimpleNamespace(result=result, settings=settings, file="f.json", error="", seconds=1.0, versions={})


def test_files_that_were_changed_are_refused():
    good = {"values": [{"quantity": "x", "value": 1.0}], "data": {}, "note": ""}
    assert outcomes([record(good)])["a"][0].measured == Measured({"x": 1.0})
    assert outcomes([record(None)])["a"][0].measured is None
    for name, wrong in (("values", {"x": 1.0}), ("values", [{"quantity": "x"}]), ("data", []), ("note", None)):
        with pytest.raises(InputError, match="remove the file to measure again"):
            outcomes([record({**good, name: wrong})])
    for wrong in ([], "x", {}):
        with pytest.raises(InputError, match="remove the file to measure again"):
            outcomes([record(wrong)])


def test_claims_of_a_paper_are_read_without_torch_or_matplotlib():
    code = (
        "import sys, polyrelu.claims.mv25; print([m for m in ('torch', 'matplotlib', 'sklearn') if m in sys.modules], "
        "'polyrelu.claims.mv25.phases' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"
