"""A sweep's folder that anybody may have touched: records are refused or counted as missing, never half believed."""

import json
import os

import pytest

from polyrelu import InputError
from polyrelu.sweep import Sweep, digest, export, read_records, run_sweep, status
from polyrelu.sweep.record import decode


@pytest.fixture
def done(tmp_path):
    """A folder with one result, and the file of it."""
    run_sweep(Sweep("swept:square", [{"x": 3}]), tmp_path / "out", workers=1)
    (file,) = (tmp_path / "out/results").glob("*.json")
    return tmp_path / "out", file


def rewrite(file, change):
    """Change what a file says, with the checksum of what it then says."""
    content = {name: value for name, value in json.loads(file.read_text()).items() if name not in ("format", "check")}
    change(content)
    file.write_text(json.dumps({"format": "polyrelu-sweep-1", **content, "check": digest(content)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("seconds"), lambda content: content.update(seconds="long"),
        lambda content: content.update(versions=5),
        lambda content: content.pop("key"), lambda content: content.update(result={"$float": "x"}),
        lambda content: content.update(result={"$float": []}),
        lambda content: content.update(details=5, error="e") or content.pop("result"),
        lambda content: content.update(error=5) or content.pop("result"),
        lambda content: content.update(function=None),
    ],
)  # fmt: skip
def test_a_record_that_is_none_counts_as_missing(done, change):
    folder, file = done
    assert status(folder).done == 1
    rewrite(file, change)
    assert status(folder).missing == 1 and read_records(folder) == []


@pytest.mark.parametrize("change", [lambda c: c.update(settings=5), lambda c: c.update(settings=[5]),
                                    lambda c: c.update(function=None),
                                    lambda c: c.update(version=[]), lambda c: c.pop("settings"),
                                    lambda c: c.update(settings={}),
                                    lambda c: c.update(settings={"a": 1})])  # fmt: skip
def test_a_sweep_that_is_none_is_refused(done, change):
    folder, _ = done
    rewrite(folder / "sweep.json", change)
    for look in (status, read_records, lambda path: export(path, folder / "t.csv")):
        with pytest.raises(InputError, match=r"^out="):
            look(folder)


def test_files_that_are_none(done):
    folder, file = done
    file.unlink()
    os.mkfifo(file)
    assert status(folder).missing == 1
    rewrite(folder / "sweep.json", lambda content: content.update(settings=[{"x": {"$float": "[]"}}]))
    with pytest.raises(InputError, match=r"sweep\.json"):
        status(folder)
    (folder / "sweep.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"sweep\.json"):
        status(folder)
    (folder / "sweep.json").unlink()
    (folder / "sweep.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"sweep\.json"):
        status(folder)
    with pytest.raises(InputError):
        status("x" * 5000)


def test_texts_that_are_none_are_still_written(done):
    folder, file = done
    rewrite(file, lambda content: content.update(result="\ud800"))
    for name in ("t.csv", "t.jsonl"):
        assert export(folder, folder / name) == 1 and (folder / name).read_bytes().isascii()


def test_a_sweep_file_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "a.toml")
    with pytest.raises(InputError, match="can be read"):
        Sweep.read(tmp_path / "a.toml")


def test_numbers_that_are_none():
    with pytest.raises(ValueError):
        decode({"$float": ["nan"]})
