import fcntl
import json
import math
import os
import threading
import time

import pytest
import swept
from waiting import LIMIT

from polyrelu.errors import InputError
from polyrelu.progress import Progress
from polyrelu.sweep import Sweep, read_records, run_sweep, status
from polyrelu.threads import SPINS

SQUARES = Sweep.grid("swept:square", {"x": [3, 0.5, -2]})


class Calls(Progress):
    """Counts what a run tells of its progress."""

    def __init__(self):
        self.begun, self.started_keys, self.finished_keys, self.ticks = None, [], [], 0

    def stage(self, what, total, done, failed):
        self.begun = (total, done, failed)

    def started(self, key, settings):
        self.started_keys.append(key)

    def finished(self, record):
        self.finished_keys.append(record.key)

    def update(self):
        self.ticks += 1


def test_records_come_in_the_order_of_the_settings_each_with_its_file(tmp_path):
    records = run_sweep(SQUARES, tmp_path, workers=2)
    assert [record.settings for record in records] == list(SQUARES.settings)
    assert [record.result["square"] for record in records] == [9, 0.25, 4]
    for record in records:
        kept = json.loads((tmp_path / record.file).read_text())
        assert record.file == f"results/{record.key}.json" and not record.failed
        assert kept["result"] == record.result and kept["settings"] == record.settings and kept["key"] == record.key
        assert kept["function"] == "swept:square" and kept["version"].startswith("0+")
    assert not list(tmp_path.rglob(".*-*"))  # no temporary file is left


@pytest.mark.slow
def test_a_second_run_does_nothing_and_a_larger_one_only_the_rest(tmp_path):
    first, calls = run_sweep(SQUARES, tmp_path, workers=1), Calls()
    assert run_sweep(SQUARES, tmp_path, workers=1, progress=calls) == first
    assert calls.begun == (3, 3, 0) and not calls.started_keys
    calls = Calls()
    more = Sweep.grid("swept:square", {"x": [7, 3]})
    assert [record.result["square"] for record in run_sweep(more, tmp_path, workers=1, progress=calls)] == [49, 9]
    assert calls.begun == (2, 1, 0) and len(calls.started_keys) == len(calls.finished_keys) == 1
    assert status(tmp_path).total == 2 and status(tmp_path).others == 2 and len(read_records(tmp_path)) == 4


def test_the_same_setting_twice_is_run_once(tmp_path):
    calls = Calls()
    records = run_sweep(Sweep("swept:square", [{"x": 2}, {"x": 2}]), tmp_path, progress=calls)
    assert records[0] == records[1] and records[0].result["square"] == 4
    assert calls.begun == (1, 0, 0) and len(calls.started_keys) == 1


def test_no_settings_no_records(tmp_path):
    assert run_sweep(Sweep("swept:square", []), tmp_path) == []


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    settings = [{"x": x, "gate": "", "mark": str(tmp_path / "mark")} for x in range(12)]
    for workers in (1, 3):
        run_sweep(Sweep("swept:slow", settings), tmp_path / str(workers), workers=workers)
    assert swept.results(tmp_path / "1") == swept.results(tmp_path / "3") and len(swept.results(tmp_path / "1")) == 12


def test_what_a_function_prints_does_not_reach_the_answers(tmp_path):
    noise = '{"key": "x", "result": 1}\n' * 5000
    (record,) = run_sweep(Sweep("swept:square", [{"x": 2, "noise": noise}]), tmp_path)
    assert record.result["square"] == 4


@pytest.mark.slow
def test_odd_values_come_back_as_they_were(tmp_path):
    names = ["nan", "infinite", "array", "scalar", "tuple", "key", "object"]
    records = run_sweep(Sweep.grid("swept:odd", {"what": names}), tmp_path, workers=2)
    again = run_sweep(Sweep.grid("swept:odd", {"what": names}), tmp_path, workers=2)
    assert [repr(record.result) for record in records] == [repr(record.result) for record in again]
    nan, infinite, array, scalar, mixed, key, thing = records
    assert math.isnan(nan.result) and infinite.result == [math.inf, -math.inf, 0.0]
    assert math.copysign(1, infinite.result[2]) == -1
    assert array.result[0][0] == 1.5 and math.isnan(array.result[0][1]) and array.result[1] == [2.0, 3.0]
    assert scalar.result == 0.10000000149011612 and mixed.result == [1, True, None, "text"]
    assert key.error == "TypeError: result: expected text as keys, not 1"
    assert thing.error == "TypeError: result: expected numbers, text, lists or dictionaries, not object"
    for path in (tmp_path / "results").iterdir():
        json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.slow
def test_workers_have_one_thread_and_do_not_spin(tmp_path, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT")
    (record,) = run_sweep(Sweep("swept:threads", [{}]), tmp_path)
    assert record.result == [1, 1, SPINS]


def test_a_run_in_a_thread(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.extend(run_sweep(SQUARES, tmp_path, workers=1)))
    thread.start()
    thread.join(LIMIT)
    assert [record.result["square"] for record in found] == [9, 0.25, 4]


def test_whoever_only_looks_keeps_no_run_away(tmp_path, monkeypatch):
    (tmp_path / ".lock").touch()
    with (tmp_path / ".lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        slept = []

        def lets_go(seconds):
            slept.append(seconds)
            fcntl.flock(looking, fcntl.LOCK_UN)

        monkeypatch.setattr(time, "sleep", lets_go)
        assert len(run_sweep(SQUARES, tmp_path, workers=1)) == 3 and slept


@pytest.mark.slow
def test_a_failure_is_kept_not_retried_and_replaced_by_a_later_success(tmp_path, monkeypatch):
    function = tmp_path / "mended.py"
    function.write_text(
        "import os\nfrom polyrelu.sweep import sweepable\n@sweepable()\ndef f(x):\n"
        "    if x == 2 and os.environ.get('BROKEN'):\n        print('on the way')\n        raise OSError('broken')\n"
        "    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BROKEN", "yes")
    sweep, out, calls = Sweep.grid("mended:f", {"x": [1, 2, 3]}), tmp_path / "out", Calls()
    one, two, three = run_sweep(sweep, out, workers=1)
    assert (one.result, two.result, three.result) == (1, None, 3)
    assert two.error == "OSError: broken" and two.file == f"failures/{two.key}.json"
    kept = json.loads((out / two.file).read_text())
    assert kept["error"] == two.error and "Traceback" in kept["details"] and "on the way" in kept["details"]
    monkeypatch.delenv("BROKEN")
    assert run_sweep(sweep, out, workers=1, progress=calls)[1] == two and calls.begun == (3, 2, 1)
    assert run_sweep(sweep, out, workers=1, retry_failed=True)[1].result == 2
    assert not (out / two.file).exists() and status(out).done == 3


def damage_truncated(path):
    path.write_text(path.read_text()[:-30])


def damage_empty(path):
    path.write_text("")


def damage_digit(path):
    path.write_text(path.read_text().replace('"square": 9', '"square": 8'))


def damage_foreign(path):
    path.write_text('{"result": 7}')


def damage_other_setting(path):
    other = next(one for one in path.parent.iterdir() if one != path)
    path.write_text(other.read_text())


def damage_binary(path):
    path.write_bytes(bytes(range(256)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [damage_truncated, damage_empty, damage_digit, damage_foreign, damage_other_setting, damage_binary]
)
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    first = run_sweep(SQUARES, tmp_path, workers=1)
    before, calls = swept.results(tmp_path), Calls()
    damage(tmp_path / first[0].file)
    again = run_sweep(SQUARES, tmp_path, workers=1, progress=calls)
    assert calls.begun == (3, 2, 0) and calls.finished_keys == [first[0].key]
    assert [record.result for record in again] == [record.result for record in first]
    assert swept.results(tmp_path) == before


def test_folders_of_something_else_are_refused(tmp_path, monkeypatch):
    run_sweep(SQUARES, tmp_path / "out", workers=1)
    with pytest.raises(InputError, match=r"this function, swept:moody; it holds results of swept:square: .*--out"):
        run_sweep(Sweep("swept:moody", [{"x": 1}]), tmp_path / "out")
    monkeypatch.setattr("polyrelu.sweep.run.source_version", lambda function: "9+abc")
    with pytest.raises(InputError, match=r"this version, 9\+abc; it holds results of 0\+[0-9a-f]{12}: choose another"):
        run_sweep(SQUARES, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sweep.json").write_text('{"function": "swept:square", "grid": {"x": [1]}}')
    with pytest.raises(InputError, match=r"sweep\.json was not written by a sweep"):
        run_sweep(SQUARES, tmp_path / "mine")
    assert json.loads((tmp_path / "mine" / "sweep.json").read_text())["grid"] == {"x": [1]}  # and left alone
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder that can be written"):
        run_sweep(SQUARES, tmp_path / "file")


def test_sources_that_change_under_a_run_end_it(tmp_path, monkeypatch):
    from polyrelu.sweep import source_version

    monkeypatch.setattr("polyrelu.sweep.run.source_version", lambda function: source_version(function)[:-1] + "x")
    with pytest.raises(InputError, match=r"its source here is version .*, but this sweep is of .*x; finished settings"):
        run_sweep(SQUARES, tmp_path)


@pytest.mark.parametrize(
    "more, words",
    [
        ({"engine": "lokal"}, r"engine=lokal: expected local or ray \(did you mean local\?\)"),
        ({"workers": 0}, "workers=0: expected a whole number >= 1"),
        ({"address": "auto"}, "address=auto: expected none: only the engine ray"),
    ],
)
def test_bad_arguments(tmp_path, more, words):
    with pytest.raises(InputError, match=words):
        run_sweep(SQUARES, tmp_path, **more)


def test_workers_that_cannot_start_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("polyrelu.sweep.engines.local.START", "import os; os.write(2, b'no memory'); os._exit(3)")
    with pytest.raises(
        InputError, match=r"workers=2: worker processes die while they start \(exit code 3; no memory\)"
    ):
        run_sweep(SQUARES, tmp_path, workers=2)


@pytest.mark.slow
def test_a_full_disk_as_the_write_sees_it(tmp_path, monkeypatch):
    from polyrelu.files import write_atomically

    def full(path, write):
        if path.parent.name == "results" and len(list(path.parent.iterdir())) == 2:
            raise OSError(28, os.strerror(28))
        return write_atomically(path, write)

    with monkeypatch.context() as patch:
        patch.setattr("polyrelu.sweep.folder.write_atomically", full)
        words = (
            r"cannot be written \(No space left on device\); 2 of 3 settings are done and kept, free some space and run"
        )
        with pytest.raises(InputError, match=words):
            run_sweep(SQUARES, tmp_path, workers=1)
    calls = Calls()
    assert [record.result["square"] for record in run_sweep(SQUARES, tmp_path, progress=calls)] == [9, 0.25, 4]
    assert calls.begun == (3, 2, 0)
