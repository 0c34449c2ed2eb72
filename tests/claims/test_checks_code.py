"""The code of an experiment changes with its file and every file it imports, and with no claim."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from polyrelu.claims import measure
from polyrelu.claims.measure import code_of, settings_of
from polyrelu.errors import InputError

FILES = {
    "polyrelu.claims.one": """from polyrelu.claims.two import x
from polyrelu.claims.three import y
RUN = 1
CLAIMS = 1
""",
    "polyrelu.claims.two": "from polyrelu.claims.four import z\nX = 1\n",
    "polyrelu.claims.three": "from polyrelu.claims.one import a\nY = 1\n",  # a circle does no harm
    "polyrelu.claims.four": "Z = 1\n",
    "polyrelu.claims.five": "W = 1\n",
}


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """code(**changes): the code of module one where these modules have other text."""

    def of(**changes: str) -> str:
        files = {**FILES, **{f"polyrelu.claims.{name}": text for name, text in changes.items()}}

        def find(name: str) -> SimpleNamespace:
            path = tmp_path / f"{name}.py"
            path.write_text(files[name], encoding="utf-8")
            return SimpleNamespace(origin=str(path))

        with monkeypatch.context() as patch:
            patch.setattr(importlib.util, "find_spec", find)
            measure._code.cache_clear()
            found = code_of(SimpleNamespace(run=SimpleNamespace(__module__="polyrelu.claims.one")))
        measure._code.cache_clear()
        return found

    return of


def test_the_code_changes_with_every_file_that_is_imported(code):
    plain = code()
    assert code() == plain and len(plain) == 12
    for name in ("one", "two", "three", "four"):
        text = FILES[f"polyrelu.claims.{name}"]
        assert code(**{name: "# another\n" + text}) != plain, name
        assert code(**{name: text.replace("= 1", "= 2", 1)}) != plain, name
    assert code(five="W = 2\n") == plain  # nobody imports it
    assert code(two=FILES["polyrelu.claims.two"] + "from polyrelu.claims.five import w\n") != plain


@pytest.mark.parametrize(
    "line",
    [
        "from polyrelu.claims import five",
        "from polyrelu.claims import (\n    four,\n    five as w,\n)",
        "from polyrelu.claims.five import (\n    w,\n)",
        "import polyrelu.claims.five",
        "def late():\n    from polyrelu.claims import five",
    ],
)
def test_every_form_of_import_is_followed(code, line):
    two = f"{FILES['polyrelu.claims.two']}{line}\n"
    assert code(two=two, five="W = 2\n") != code(two=two)


def test_claims_may_be_worded_anew(code):
    assert code(one=FILES["polyrelu.claims.one"].replace("CLAIMS = 1", "CLAIMS = 2")) == code()


def test_files_do_not_change_places(code):
    two, three = FILES["polyrelu.claims.two"], FILES["polyrelu.claims.three"]
    assert code(two=two.replace("X", "Y"), three=three.replace("Y", "X")) != code()


def fake(name: str, repeats: int, needs: str = "") -> SimpleNamespace:
    def run(profile: str, seed: int, **part: int) -> SimpleNamespace:
        return SimpleNamespace(values={"x": seed}, data={}, note="")

    parts = [{"k": 1}, {"k": 2}]
    experiment = SimpleNamespace(name=name, run=run, repeats={"quick": repeats}, needs=lambda profile: needs)
    experiment.parts = lambda profile: parts
    return SimpleNamespace(experiment=experiment)


def test_settings_name_all_that_decides_a_result(monkeypatch):
    monkeypatch.setattr(measure, "code_of", lambda experiment: f"code of {experiment.name}")
    claims = [fake("a", 2), fake("a", 2), fake("b", 1), fake("c", 1, "needs MNIST")]
    found = settings_of(claims, "quick")
    assert len(found) == 2 * 2 + 1 * 2
    first = {"experiment": "a", "profile": "quick", "seed": 0, "part": {"k": 1}, "code": "code of a"}
    assert found[0] == first
    assert {one["seed"] for one in found if one["experiment"] == "a"} == {0, 1}
    assert {one["experiment"] for one in found} == {"a", "b"}  # nothing is run for want of data
    assert [one["seed"] for one in settings_of(claims[:1], "quick", 3, 5)] == [5, 5, 6, 6, 7, 7]


def test_results_of_other_code_are_not_measured(monkeypatch):
    one = fake("a", 1).experiment
    monkeypatch.setattr(measure, "experiments", lambda: {"a": one})
    monkeypatch.setattr(measure, "code_of", lambda experiment: "now")
    found = measure.measure("a", "quick", 3, {"k": 1}, "now")
    assert found == {"values": {"x": 3}, "data": {}, "note": ""}
    with pytest.raises(InputError, match="another version of polyrelu"):
        measure.measure("a", "quick", 3, {"k": 1}, "before")
