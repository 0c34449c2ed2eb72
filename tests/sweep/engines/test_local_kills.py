"""Real processes, really killed: nothing finished is lost, nothing is half-written, and the rest is the same bits."""

import json
import os
import signal
import subprocess
import time

import pytest
from swept import alive, begun, launch, open_gate, results
from waiting import ended, wait_for

from polyrelu.errors import InputError
from polyrelu.progress import Progress
from polyrelu.sweep import Sweep, run_sweep, status

pytestmark = pytest.mark.waits


def settings(tmp_path, count=8, gate=True):
    where, mark = str(tmp_path / "gate") if gate else "", str(tmp_path / "mark")
    return [{"x": x, "gate": where, "mark": mark} for x in range(count)]


def check_whole(out):
    """Every file that is there is a whole one."""
    for path in out.rglob("*.json"):
        json.loads(path.read_text())
    assert not list(out.rglob(".*-*"))


def check_resumed(tmp_path, wanted):
    """Going on runs only what is missing, and ends with the bits of an undisturbed run."""
    out, mark = tmp_path / "out", tmp_path / "mark"
    kept, before = set(results(out)), len(begun(mark))
    open_gate(tmp_path / "gate", "all")
    records = run_sweep(Sweep("swept:slow", wanted), out, workers=2)
    check_whole(out)
    assert len(begun(mark)) - before == len(wanted) - len(kept) and not any(record.failed for record in records)
    run_sweep(Sweep("swept:slow", wanted), tmp_path / "calm", workers=1)
    assert results(out) == results(tmp_path / "calm")
    return kept


class Killer(Progress):
    """Kills the worker that has the setting x, as often as told, then lets it go on."""

    def __init__(self, mark, gate, x, times):
        self.mark, self.gate, self.x, self.times, self.killed = mark, gate, x, times, []

    def update(self):
        for x, process in begun(self.mark):
            if x == self.x and process not in self.killed and len(self.killed) < self.times:
                os.kill(process, signal.SIGKILL)
                self.killed.append(process)
        if len(self.killed) == self.times:
            open_gate(self.gate, self.x)


@pytest.mark.parametrize("times", [1, 2])
def test_a_killed_worker_costs_one_try_of_one_setting(tmp_path, times):
    wanted, killer = settings(tmp_path), Killer(tmp_path / "mark", tmp_path / "gate", 3, times)
    open_gate(tmp_path / "gate", 0, 1, 2, 4, 5, 6, 7)
    records = run_sweep(Sweep("swept:slow", wanted), tmp_path / "out", workers=2, progress=killer)
    assert len(killer.killed) == times and not any(record.failed for record in records)
    tries = [x for x, _ in begun(tmp_path / "mark")]
    assert tries.count(3) == 1 + times and len(tries) == len(wanted) + times
    assert len(check_resumed(tmp_path, wanted)) == len(wanted)


def test_a_setting_whose_worker_always_dies_is_a_failure_and_the_rest_is_done(tmp_path):
    moods = ["fine", "leaves", "dies", "raises", "exits", "fine"]
    sweep = Sweep("swept:moody", [{"x": x, "mood": mood} for x, mood in enumerate(moods)])
    first, left, died, raised, exited, last = run_sweep(sweep, tmp_path / "two", workers=2)
    assert first.result == 1.0 and last.result == 2.042727070266142
    assert left.error == "worker died (exit code 7), 3 times" and "farewell" in left.details
    assert died.error == "worker died (signal 9), 3 times"
    assert raised.error == "ValueError: 3 is not a good number" and "Traceback" in raised.details
    assert exited.error == "SystemExit: 3"
    run_sweep(sweep, tmp_path / "one", workers=1)
    assert results(tmp_path / "one") == results(tmp_path / "two")


def test_the_record_of_a_crash_says_where_it_was(tmp_path):
    (record,) = run_sweep(Sweep("swept:moody", [{"x": 1, "mood": "crashes"}]), tmp_path)
    assert record.error == "worker died (signal 11), 3 times"
    assert "Segmentation fault" in record.details and "in moody" in record.details


def test_the_parent_is_killed_its_workers_vanish_and_the_next_run_goes_on(tmp_path):
    wanted, out, mark = settings(tmp_path), tmp_path / "out", tmp_path / "mark"
    open_gate(tmp_path / "gate", 0, 1, 2)
    parent = launch("swept:slow", wanted, out, workers=2)
    wait_for(lambda: len(list((out / "results").glob("[0-9a-f]*"))) == 3 and len(begun(mark)) == 5)
    assert status(out).at_work
    with pytest.raises(InputError, match=rf"another run \(process {parent.pid}\) is at work in this folder"):
        run_sweep(Sweep("swept:slow", wanted), out)
    parent.kill()
    parent.wait()
    parent.stderr.close()
    (out / "results" / ".0123-half.json").write_text('{"format"')  # killed while it wrote
    wait_for(lambda: not any(alive(process) for _, process in begun(mark)))
    assert not status(out).at_work
    assert len(check_resumed(tmp_path, wanted)) == 3


def test_a_worker_that_hears_nothing_vanishes_with_its_parent_too(tmp_path):
    mark = tmp_path / "mark"
    parent = launch("swept:deaf", [{"mark": str(mark)}], tmp_path / "out", workers=1)
    wait_for(lambda: begun(mark))
    parent.kill()
    parent.wait()
    parent.stderr.close()
    wait_for(lambda: not alive(begun(mark)[0][1]))


def test_ctrl_c_keeps_what_is_under_way_and_begins_nothing_more(tmp_path):
    wanted, out, mark = settings(tmp_path), tmp_path / "out", tmp_path / "mark"
    open_gate(tmp_path / "gate", 0)
    parent = launch("swept:slow", wanted, out, workers=2)
    wait_for(lambda: len(begun(mark)) == 3)
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
    open_gate(tmp_path / "gate", "all")
    _, message = ended(parent)
    assert parent.returncode == -signal.SIGINT and message.rstrip().endswith("KeyboardInterrupt")
    assert len(results(out)) == len(begun(mark)) == 3
    check_resumed(tmp_path, wanted)


def test_ctrl_c_again_and_again_ends_it_though_settings_are_under_way(tmp_path):
    mark = tmp_path / "mark"
    parent = launch("swept:slow", settings(tmp_path), tmp_path / "out", workers=2)
    wait_for(lambda: len(begun(mark)) == 2)

    def gone():
        parent.send_signal(signal.SIGINT)
        return parent.poll() is not None

    wait_for(gone)
    ended(parent)
    wait_for(lambda: not any(alive(process) for _, process in begun(mark)))
    assert len(begun(mark)) == 2 and not results(tmp_path / "out")


class Fingers(Progress):
    """Presses Ctrl-C when the first setting is done: once, again after .9 s, and after 1.1 s."""

    def __init__(self, clock):
        self.clock, self.pressed = clock, 0

    def finished(self, record):
        for now in (0.0, 0.9, 1.1):
            self.clock.setattr(time, "monotonic", lambda now=now: now)
            self.pressed += 1
            signal.raise_signal(signal.SIGINT)


def test_a_second_ctrl_c_a_second_later_ends_it_at_once_and_one_before_is_a_nervous_finger(tmp_path, monkeypatch):
    mark, fingers = tmp_path / "mark", Fingers(monkeypatch)
    open_gate(tmp_path / "gate", 0)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(Sweep("swept:slow", settings(tmp_path)), tmp_path / "out", workers=2, progress=fingers)
    monkeypatch.undo()
    assert fingers.pressed == 3 and len(results(tmp_path / "out")) == 1
    assert not any(alive(process) for _, process in begun(mark))


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_is_done(tmp_path):
    disk, mark = tmp_path / "disk", tmp_path / "mark"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        wanted, out = settings(tmp_path, count=16, gate=False), disk / "out"
        (disk / "ballast").write_bytes(bytes(48 * 1024))
        words = (
            r"cannot be written \(No space left on device\); (\d+) of 16 settings are done and kept, free some space"
        )
        with pytest.raises(InputError, match=words) as caught:
            run_sweep(Sweep("swept:slow", wanted), out, workers=2)
        wait_for(lambda: not any(alive(process) for _, process in begun(mark)))
        check_whole(out)
        assert f"; {len(results(out))} of 16" in str(caught.value) and 0 < len(results(out)) < 16
        (disk / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        before = len(begun(mark))
        kept = len(results(out))
        run_sweep(Sweep("swept:slow", wanted), out, workers=2)
        assert len(begun(mark)) - before == 16 - kept
        run_sweep(Sweep("swept:slow", wanted), tmp_path / "calm", workers=1)
        assert results(out) == results(tmp_path / "calm")
    finally:
        subprocess.run(["umount", disk], check=True)
