"""A short run of the fuzzing, and that it notices whatever it is there to notice."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import polyrelu
from polyrelu import InputError, data
from tools.fuzz import arrays, calls, cases, damage, judge, names, pool
from tools.fuzz.__main__ import draw, main
from tools.fuzz.judge import Outcome, canary, judged
from tools.fuzz.seeds import tables
from tools.fuzz.table import Tally

QUICK = ("npz", "npy", "csv", "parquet", "safetensors", "mapping", "head", "run", "predictions", "recipe")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A case's folder; the working folder is put back afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case").mkdir()
    return tmp_path / "case"


@pytest.mark.slow
def test_a_short_run_finds_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(Path(__file__).parents[2])
    only = [word for kind in (*QUICK, "polyrelu.") for word in ("--only", kind)]
    found = main(["--files", "60", "--calls", "240", "--seed", "7", "--out", str(tmp_path), *only])
    shown = capsys.readouterr().out
    assert (found, (tmp_path / "findings.jsonl").read_text()) == (0, ""), shown
    assert "0 findings in 300 cases" in shown


def test_every_public_name_is_called():
    found = names.public()
    for name in polyrelu.__all__:
        thing = getattr(polyrelu, name)
        if callable(thing) and name not in ("InputError", "Status"):
            assert f"polyrelu.{name}" in found, name
    for path in (
        "polyrelu.PolyReLUClassifier.certify", "polyrelu.PolyReLUClassifier.load", "polyrelu.Dataset.subset",
        "polyrelu.data.read",
        "polyrelu.nets.MLP.forward", "polyrelu.robust.attacks.PGD.__call__", "polyrelu.sweep.run_sweep",
    ):  # fmt: skip
        assert path in found, path
    tails = {path.rpartition(".")[2] for path in found}
    assert {
        "kkt",
        "margins",
        "root_lipschitz_radius",
        "linear_radius",
        "quadratic_radius",
        "average_critical_radius",
    } <= tails
    assert not any("._" in path.replace(".__call__", "") for path in found)


def test_names_left_out_exist_and_the_top_level_leaves_out_none():
    names.public()
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("polyrelu.")]
    classes = [vars(thing) for module in modules for thing in module.values() if isinstance(thing, type)]
    known = set().union(*modules, *classes)
    assert [name for name in sorted(names.INTERNAL) if name.rpartition(".")[2] not in known] == []
    assert names.INTERNAL.isdisjoint(polyrelu.__all__)


def test_cases_are_drawn_by_their_seed():
    first = draw(50, 50, 3, None)
    assert first == draw(50, 50, 3, None) != draw(50, 50, 4, None)
    assert sum(case.startswith("polyrelu.") for case in first) == 50
    assert all(case.startswith("npz:") for case in draw(5, 0, 0, ["npz"]))


def test_the_same_case_is_the_same_damage(folder):
    tables(folder)
    for name in ("data.npz", "data.csv", "X.npy", "data.parquet", "groups.json", "data.safetensors"):
        whole = (folder / name).read_bytes()
        seen = []
        for _ in range(2):
            (folder / name).write_bytes(whole)
            source = np.random.default_rng(5)
            cases.FORMATS[Path(name).suffix](folder / name, source, "pass")
            seen.append((folder / name).read_bytes())
        assert name == "data.npz" or seen[0] == seen[1], name  # an archive holds the time


def test_a_result_and_an_input_error_are_fine(folder):
    def refuse():
        raise InputError("x=1: expected 2.")

    assert judged("a:1", "", lambda: 5, folder).what == ""
    refused = judged("a:1", "", refuse, folder)
    assert (refused.what, refused.refused) == ("", True)


def test_a_planted_traceback_is_found(folder, monkeypatch):
    def broken(text, **more):
        raise KeyError("X")

    monkeypatch.setattr(data, "read", broken)
    found = cases.judge("recipe:1", folder, folder)
    assert found.what == "traceback" and "KeyError: 'X'" in found.details


def test_a_planted_traceback_in_a_call_is_found(folder, monkeypatch):
    def subset(self, index: "slice"):
        return [].pop()

    subset.__module__ = "polyrelu.data"
    monkeypatch.setattr(polyrelu.Dataset, "subset", subset)
    calls.names.cache_clear()
    try:
        found = cases.judge("polyrelu.Dataset.subset:3", folder, folder)
    finally:
        calls.names.cache_clear()
    assert found.what == "traceback" and "IndexError" in found.details


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (lambda: warnings.warn("of nobody", RuntimeWarning, stacklevel=1), "warning"),
        (lambda: sys.stderr.write("Traceback (most recent call last):\n"), "text"),
        (lambda: np.ones(2**23).sum(), "memory"),
        (lambda: open(judge.CANARY, "w").close(), "code"),  # noqa: PTH123
        (lambda: sys.exit(1), "traceback"),
        (lambda: [][0], "traceback"),
    ],
)
def test_whatever_is_not_allowed_is_found(folder, monkeypatch, action, what):
    os.chdir(folder)
    monkeypatch.setattr(judge, "MOST", 2**25)
    if what == "memory" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured on Linux")
    assert judged("a:1", "", action, folder).what == what


def test_memory_that_is_refused_is_found_too_where_a_file_asked_for_it(folder):
    def refuse():
        raise InputError("not enough memory for these sizes; lower --dim.")

    assert judged("a:1", "", refuse, folder, sized=True).what == "memory"
    assert judged("a:1", "", refuse, folder, sized=False).what == ""


def test_a_poisoned_array_would_run_its_code(folder):
    """The canary is a good one: where pickles are allowed, it sings."""
    (folder / "y.npy").write_bytes(arrays.poisoned(np.arange(4), canary(folder)))
    np.load(folder / "y.npy", allow_pickle=True)
    assert (folder / judge.CANARY).exists()


def test_what_stands_in_a_files_place_is_removed_again(folder):
    for seed in range(30):
        (folder / "a").write_bytes(b"x")
        damage.damage_place(folder / "a", np.random.default_rng(seed))
        cases._empty(folder)
        assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_worker_that_dies_or_hangs_costs_one_case(monkeypatch, tmp_path):
    """With workers that do as a case's name says, in place of the real ones."""
    monkeypatch.setattr(pool, "Worker", Puppet)
    monkeypatch.setattr(pool, "LIMIT", 0.0)
    monkeypatch.setattr(pool, "ALONE", 0.0)
    found = {one.case: one.what for one in pool.run(["ok:1", "die:2", "ok:3", "hang:4", "ok:5"], tmp_path, 2)}
    assert found == {"ok:1": "", "die:2": "dead", "ok:3": "", "hang:4": "hang", "ok:5": ""}


class Puppet:
    """A worker without a process."""

    def __init__(self, seeds):
        self.connection, self.theirs = pool.multiprocessing.Pipe()
        self.process, self.case, self.ready, self.until = type("P", (), {"exitcode": -9}), None, True, float("inf")

    def give(self, case, limit):
        self.case, kind = case, case.partition(":")[0]
        if kind == "ok":
            self.theirs.send(Outcome(case, "", ""))
        elif kind == "die":
            self.theirs.close()
        else:
            self.until = -1.0

    def end(self):
        self.connection.close()


def test_findings_are_counted_by_kind_and_can_be_run_again(capsys):
    tally = Tally(3)
    for outcome in (
        Outcome("npz:1", "", "", refused=True),
        Outcome("polyrelu.data.read:2", "traceback", "read(text=5)", "KeyError: 5"),
        Outcome("npz:3", "memory", "bomb", "2000 MiB", grown=2**31),
    ):
        tally.add(outcome)
    lines = tally.table(1.0).splitlines()
    assert lines[1].split() == ["npz", "2", "0", "1", *["0"] * 4, "1", "0", "0", "0"]
    assert lines[2].split() == ["calls:", "data", "1", "0", "0", "1", *["0"] * 7]
    assert "2 findings in 3 cases" in lines[-1] and "2048 MiB" in lines[-1]
    tally.show(tally.findings[0], whole=False)
    assert "polyrelu.data.read:2" in capsys.readouterr().out
    json.dumps([vars(one) for one in tally.findings])
