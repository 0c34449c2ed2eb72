"""A sweep's folder trusts nothing: every file must be whole, and of this function, version and setting."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from polyrelu.errors import InputError
from polyrelu.sweep import digest, encode
from polyrelu.sweep.folder import FORMAT, Folder, is_running, locked_folder, stored_sweep
from polyrelu.sweep.record import EngineResult, FunctionVersion, canonical, decode, key_of

FUNCTION = FunctionVersion("package.module:function", "0+abc")
SETTINGS = {"x": 3, "part": {"y": [1.5, "text"]}}
KEY = key_of(FUNCTION.name, FUNCTION.version, SETTINGS)
RESULT = EngineResult(KEY, result={"a": 1.0}, seconds=2.0, versions={"torch": "2"})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, FUNCTION)


def content(folder: Folder, kind: str = "results") -> dict[str, object]:
    return json.loads((folder.path / kind / f"{KEY}.json").read_text())


def rewritten(folder: Folder, change: dict[str, object], kind: str = "results", check: bool = True) -> None:
    """The same file with other entries (None leaves one out), and a check that fits them."""
    found = {name: value for name, value in {**content(folder, kind), **change}.items() if value is not None}
    if check:
        found.pop("format", None), found.pop("check", None)
        found = {"format": change.get("format", FORMAT), **found, "check": digest(found)}
    (folder.path / kind / f"{KEY}.json").write_text(json.dumps(found))


def test_what_is_kept_is_read(folder):
    kept = folder.write_result(RESULT, SETTINGS)
    assert folder.read(KEY) == kept and kept.result == {"a": 1.0} and kept.settings == SETTINGS
    assert (kept.seconds, kept.versions, kept.error, kept.file) == (2.0, {"torch": "2"}, "", f"results/{KEY}.json")
    assert folder.key(SETTINGS) == KEY and not list(folder.path.rglob(".*"))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "polyrelu-sweep-0"},
        {"function": "package.module:other"},
        {"version": "0+abd"},
        {"settings": {"x": 4}},
        {"settings": None},
        {"function": None},
        {"version": None},
        {"key": "0" * 20},
        {"error": "it failed"},
    ],
    ids=str,
)
def test_a_file_of_something_else_does_not_count_although_its_check_fits(folder, change):
    folder.write_result(RESULT, SETTINGS)
    rewritten(folder, {"result": {"a": 1.0}})
    assert folder.read(KEY) is not None
    rewritten(folder, change)
    assert folder.read(KEY) is None


def test_a_file_without_a_result_or_an_error_does_not_count(folder):
    folder.write_result(RESULT, SETTINGS)
    found = content(folder)
    del found["result"], found["format"], found["check"]
    (folder.path / "results" / f"{KEY}.json").write_text(
        json.dumps({"format": FORMAT, **found, "check": digest(found)})
    )
    assert folder.read(KEY) is None


@pytest.mark.parametrize("change", [{"result": {"a": 2.0}}, {"seconds": 3.0}, {"check": "0" * 20}, {"check": None}])
def test_a_file_that_was_changed_does_not_count(folder, change):
    folder.write_result(RESULT, SETTINGS)
    rewritten(folder, change, check=False)
    assert folder.read(KEY) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "null", "[" * 100_000, "\ud800".encode("utf-16", "surrogatepass")]
)
def test_a_damaged_file_does_not_count(folder, text):
    folder.write_result(RESULT, SETTINGS)
    path = folder.path / "results" / f"{KEY}.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert folder.read(KEY) is None
    path.unlink()
    assert folder.read(KEY) is None


def test_a_file_under_another_name_does_not_count(folder):
    folder.write_result(RESULT, SETTINGS)
    other = key_of(FUNCTION.name, FUNCTION.version, {"x": 4})
    (folder.path / "results" / f"{KEY}.json").rename(folder.path / "results" / f"{other}.json")
    assert folder.read(other) is None and folder.read(KEY) is None and folder.other_records(set()) == []


def test_a_result_takes_the_place_of_a_failure_and_not_the_other_way_round(folder):
    failure = EngineResult(KEY, error="ValueError: no", details="a traceback", seconds=1.0)
    kept = folder.write_result(failure, SETTINGS)
    assert kept.failed and folder.read(KEY) == kept and kept.details == "a traceback"
    folder.write_result(RESULT, SETTINGS)
    assert folder.read(KEY).result == {"a": 1.0} and not list((folder.path / "failures").iterdir())
    folder.write_result(failure, SETTINGS)
    assert folder.read(KEY).result == {"a": 1.0}


def test_others_are_those_not_asked_for(folder):
    folder.write_result(RESULT, SETTINGS)
    more = key_of(FUNCTION.name, FUNCTION.version, {"x": 4})
    folder.write_result(EngineResult(more, error="no"), {"x": 4})
    (folder.path / "results" / "notes.json").write_text("{}")
    assert [one.key for one in folder.other_records({KEY})] == [more]
    assert [one.key for one in folder.other_records(set())] == sorted([KEY, more])


def test_a_folder_is_of_one_function_and_version(tmp_path):
    with locked_folder(tmp_path, FUNCTION) as folder:
        folder.write_sweep([SETTINGS, {"x": float("inf")}])
    assert stored_sweep(tmp_path)["settings"] == [SETTINGS, {"x": float("inf")}]
    with locked_folder(tmp_path, FUNCTION):
        pass
    for function in (
        FunctionVersion("package.module:other", FUNCTION.version),
        FunctionVersion(FUNCTION.name, "0+abd"),
    ):
        with pytest.raises(InputError, match="choose another --out"), locked_folder(tmp_path, function):
            pass


@pytest.mark.parametrize("name", ["function", "version", "settings"])
def test_a_sweep_that_does_not_say_what_it_is_is_refused(tmp_path, name):
    with locked_folder(tmp_path, FUNCTION) as folder:
        folder.write_sweep([SETTINGS])
    found = json.loads((tmp_path / "sweep.json").read_text())
    del found[name], found["format"], found["check"]
    (tmp_path / "sweep.json").write_text(json.dumps({"format": FORMAT, **found, "check": digest(found)}))
    with pytest.raises(InputError, match="damaged"):
        stored_sweep(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        stored_sweep(tmp_path)
    (tmp_path / "sweep.json").unlink()
    assert stored_sweep(tmp_path) is None


def test_one_run_at_a_time(tmp_path):
    assert not is_running(tmp_path)
    with locked_folder(tmp_path, FUNCTION):
        pass
    with locked_folder(tmp_path, FUNCTION):
        assert is_running(tmp_path) and (tmp_path / ".lock").read_text() == str(os.getpid())
        with (
            pytest.raises(InputError, match=r"another run \(process \d+\) is at work"),
            locked_folder(tmp_path, FUNCTION),
        ):
            pass
    assert not is_running(tmp_path)
    with (tmp_path / ".lock").open() as other:  # whoever only looks is no run
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not is_running(tmp_path)


def test_what_a_killed_run_left_half_written_is_removed(tmp_path):
    for kind in ("results", "failures"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f".{KEY}-abc.json").write_text("{")
        (tmp_path / kind / "kept.json").write_text("{")
    with locked_folder(tmp_path, FUNCTION):
        pass
    assert sorted(file.name for file in tmp_path.rglob("*.json")) == ["kept.json", "kept.json"]


# ------------------------------------------------------------------------------------------------------ keys

PLAIN = ("f", "v", {"a": 1, "b": {"c": [1, 2.5, None, True, "x"]}})
OTHERS = [
    ("g", "v", PLAIN[2]),
    ("f", "w", PLAIN[2]),
    ("f", "v", {"a": 2, "b": PLAIN[2]["b"]}),
    ("f", "v", {"a": 1}),
    ("f", "v", {"a": 1.5, "b": PLAIN[2]["b"]}),
    ("f", "v", {"a": 1, "b": {"c": [2.5, 1, None, True, "x"]}}),
    ("f", "v", {"a": 1, "b": {"d": [1, 2.5, None, True, "x"]}}),
    ("f", "v", {"a": 1, "b": {"c": [1, 2.5, None, False, "x"]}}),
    ("f", "v", {"a": float("nan"), "b": PLAIN[2]["b"]}),
    ("f", "v", {"a": float("inf"), "b": PLAIN[2]["b"]}),
    ("f", "v", {"a": "1", "b": PLAIN[2]["b"]}),
    ("f", "v", {"$a": 1, "b": PLAIN[2]["b"]}),
    ("v", "f", PLAIN[2]),
]


def test_a_key_changes_with_everything_it_is_of():
    keys = [key_of(*one) for one in (PLAIN, *OTHERS)]
    assert len(set(keys)) == len(keys)
    assert key_of("f", "v", dict(reversed(PLAIN[2].items()))) == keys[0]
    assert all(len(key) == 20 and int(key, 16) >= 0 for key in keys)


@pytest.mark.parametrize("value", [{"$float": "nan"}, {"$float": "1"}, {"$$x": 1}, {"$": 1}, {"a": {"$float": [1]}}])
def test_nobody_can_write_a_number_of_ours(value):
    assert decode(encode(value)) == value
    assert decode(json.loads(canonical(encode({"x": value})))) == {"x": value}


def test_numbers_that_json_does_not_have_are_never_written():
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON compliant"):
            canonical(number)
        assert "NaN" not in canonical(encode(number)) and "Infinity" not in canonical(encode(number))


def test_whoever_only_looks_is_waited_for(tmp_path, monkeypatch):
    with locked_folder(tmp_path, FUNCTION):
        pass
    with (tmp_path / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        monkeypatch.setattr(time, "sleep", lambda seconds: fcntl.flock(other, fcntl.LOCK_UN))
        with locked_folder(tmp_path, FUNCTION):
            pass
