"""Certified rows kept beside a table: only what is whole, of these rows and of this head counts."""

from __future__ import annotations

import fcntl
import json

import numpy as np
import pytest

from polyrelu.errors import InputError
from polyrelu.workflows.predict.certified_rows import CertifiedRows, file_hash

IDENTITY = {"head": "abc", "version": "1"}
X = np.arange(12.0).reshape(4, 3)
DECIDED = (np.array([0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.1, 0.0, 0.2, 0.3]))


def kept(path, identity=IDENTITY, classes=2):
    return CertifiedRows(path / "table.csv", identity, classes)


def written(path, chunks=2):
    rows = kept(path)
    for number in range(chunks):
        rows.add(4 * number, X + number, DECIDED)
    assert rows.rows == 4 * chunks and rows.before == 0
    rows.close(done=False)
    return path / "table.csv.partial"


def same(found):
    return found is not None and all(np.array_equal(one, other) for one, other in zip(found, DECIDED, strict=True))


def test_what_is_kept_is_taken_in_order_and_more_is_added(tmp_path):
    written(tmp_path)
    rows = kept(tmp_path)
    assert same(rows.take(0, X)) and same(rows.take(4, X + 1)) and rows.before == rows.rows == 8 and not rows.said
    assert rows.take(8, X + 2) is None and not rows.said  # the end of the file is no damage
    rows.add(8, X + 2, DECIDED)
    rows.close(done=False)
    again = kept(tmp_path)
    assert all(same(again.take(4 * k, X + k)) for k in range(3)) and again.rows == 12
    again.close(done=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "other",
    [X + 1, X.astype(np.float32), X.view(np.int64), X.reshape(3, 4), X[:3], np.where(X == 11, 11.5, X)],
    ids=["numbers", "type", "the same bytes of another type", "shape", "fewer", "one number"],
)
def test_other_rows_are_computed(tmp_path, other):
    path = written(tmp_path)
    rows = kept(tmp_path)
    assert rows.take(0, other) is None and "of other rows, from row 0 on" in rows.said[0]
    assert rows.take(0, X) is None  # nothing behind it is taken either
    rows.close(done=False)
    assert len(path.read_bytes().splitlines()) == 1


def test_rows_of_another_number_are_computed(tmp_path):
    written(tmp_path)
    rows = kept(tmp_path)
    assert rows.take(4, X) is None and rows.before == 0
    rows.close(done=False)


def changed(path, **change):
    """The first chunk with other entries, and a check that fits them (or the one given)."""
    first, line, *rest = path.read_bytes().splitlines(keepends=True)
    content = {key: value for key, value in {**json.loads(line), **change}.items() if value is not None}
    given = content.pop("check") if "check" in change else None
    content.pop("check", None)
    from polyrelu.workflows.predict import certified_rows as kept_rows

    made = kept_rows._line(content) if given is None else json.dumps({**content, "check": given}).encode() + b"\n"
    path.write_bytes(b"".join([first, made, *rest]))


@pytest.mark.parametrize(
    "change",
    [
        {"class": [0, 1, 1]},
        {"class": [0, 1, 1, 2]},
        {"class": [0, 1, 1, -1]},
        {"class": [[0, 1, 1, 0]]},
        {"class": ["a", 1, 1, 0]},
        {"class": None},
        {"class": [2**70, 1, 1, 0]},
        {"probability": [0.5] * 3},
        {"probability": None},
        {"probability": "x"},
        {"radius": [0.1] * 5},
        {"radius": [0.1, 0.2, -0.1, 0.1]},
        {"radius": [0.1, 0.2, float("nan"), 0.1]},
        {"radius": None},
        {"radius": {}},
        {"start": 1},
        {"rows": "abc"},
        {"check": "0" * 20},
    ],
    ids=str,
)
def test_chunks_that_do_not_fit_are_computed_again(tmp_path, change):
    path = written(tmp_path)
    changed(path)
    rows = kept(tmp_path)
    assert same(rows.take(0, X))
    rows.close(done=False)
    changed(path, **change)
    rows = kept(tmp_path)
    assert rows.take(0, X) is None and rows.said
    rows.close(done=False)


@pytest.mark.parametrize("text", [b"{", b"[]\n", b"null\n", b"\xff\n", b"[" * 10**5 + b"\n", b"{}\n"])
def test_damaged_lines_are_computed_again_and_cut_off(tmp_path, text):
    path = written(tmp_path, 1)
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first + text)
    rows = kept(tmp_path)
    assert rows.take(0, X) is None and bool(rows.said) == text.endswith(b"\n")
    rows.add(0, X, DECIDED)
    rows.close(done=False)
    again = kept(tmp_path)
    assert same(again.take(0, X))
    again.close(done=False)


def test_another_head_begins_anew_and_says_so(tmp_path):
    written(tmp_path)
    rows = kept(tmp_path, {**IDENTITY, "head": "abd"})
    assert rows.take(0, X) is None and "another head" in rows.said[0]
    rows.add(0, X, DECIDED)
    rows.close(done=False)
    again = kept(tmp_path, {**IDENTITY, "head": "abd"})
    assert same(again.take(0, X))
    again.close(done=False)


@pytest.mark.parametrize("text", [b"", b"my own notes\n", b"{}\n", b'{"format": "other"}\n'])
def test_what_is_none_of_ours_is_left_alone(tmp_path, text):
    path = tmp_path / "table.csv.partial"
    path.write_bytes(text)
    rows = kept(tmp_path)
    assert "none of ours" in rows.said[0] and rows.take(0, X) is None
    rows.add(0, X, DECIDED)
    rows.close(done=True)
    assert path.read_bytes() == text
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert "none of ours" in kept(tmp_path).said[0]


def test_one_run_at_a_time(tmp_path):
    path = written(tmp_path)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(InputError, match="another run is at work"):
            kept(tmp_path)
    rows = kept(tmp_path)
    with pytest.raises(InputError, match="another run is at work"):
        kept(tmp_path)
    rows.close(done=False)


def test_the_hash_of_a_file_is_of_all_of_it(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * (2**20 + 5))
    plain = file_hash(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"x" * (2**20 + 4) + b"y")
    assert file_hash(tmp_path / "a") != plain and len(plain) == 64


def test_a_second_run_that_comes_while_the_first_writes_is_refused(tmp_path):
    first = kept(tmp_path)
    first.add(0, X, DECIDED)
    with pytest.raises(InputError, match="another run is at work on it"):
        kept(tmp_path).take(0, X)
    first.close(done=False)
