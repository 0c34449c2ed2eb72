"""A setting that takes too long is ended and said; the others are done; more time is another try."""

import json
import math
import time
from dataclasses import replace

import pytest
from timed import SENTENCE, Clock, check_ended, limited, sweep_of, tries
from typer.testing import CliRunner

from polyrelu.cli.application import app
from polyrelu.errors import InputError
from polyrelu.sweep import Record, Sweep, run_sweep
from polyrelu.sweep.engines import local

pytestmark = pytest.mark.waits


def test_a_setting_that_takes_too_long_is_ended_and_the_rest_is_done(tmp_path, monkeypatch):
    check_ended(tmp_path, limited(tmp_path, monkeypatch, workers=1, time_limit=500))


def test_another_worker_takes_the_place_of_the_one_that_was_ended(tmp_path, monkeypatch):
    clock = Clock(tmp_path / "mark", others=0)
    monkeypatch.setattr(local, "time", clock)
    clock.finished = lambda record: setattr(clock, "left", 1)  # put forward only while x = 1 is at work
    records = run_sweep(sweep_of(tmp_path, (1, 2, 3)), tmp_path / "out", workers=1, time_limit=500, progress=clock)
    assert [record.result for record in records] == [None, 4, 9] and records[0].error == SENTENCE


def test_a_setting_is_not_charged_for_those_its_worker_had_before(tmp_path, monkeypatch):
    class Steps(Clock):
        """The first two take 300 seconds each; while x = 1 is at work, every tick is 50."""

        def monotonic(self):
            return 1.0 + self.ahead

        def started(self, key, settings):
            self.began = self.monotonic()

        def finished(self, record):
            self.ahead += 300 * (record.settings["x"] != 1)
            super().finished(record)

        def tick(self):
            assert time.monotonic() < self.until, "it did not end"
            self.ahead += 50 * (not self.left)

    clock = Steps(tmp_path / "mark", others=2)
    monkeypatch.setattr(local, "time", clock)
    records = run_sweep(sweep_of(tmp_path), tmp_path / "out", workers=1, time_limit=500, progress=clock)
    assert [record.error for record in records] == ["", "", SENTENCE]
    assert clock.monotonic() - clock.began > 500


def test_it_is_tried_again_with_more_time_or_when_asked_and_not_otherwise(tmp_path, monkeypatch):
    limited(tmp_path, monkeypatch, workers=1, time_limit=500)
    monkeypatch.undo()
    (tmp_path / "mark.go").touch()  # from here on it would end
    for limit in (500, 499.5):
        records = run_sweep(sweep_of(tmp_path), tmp_path / "out", workers=1, time_limit=limit)
        assert records[2].error == SENTENCE and tries(tmp_path).count(1) == 1
    failure = (tmp_path / "out" / records[2].file).read_bytes()
    for more in ({"time_limit": 501}, {"time_limit": None}, {"time_limit": 500, "retry_failed": True}):
        (tmp_path / "out" / records[2].file).write_bytes(failure)
        for done in (tmp_path / "out" / "results").glob(f"{records[2].key}*"):
            done.unlink()
        before = tries(tmp_path)
        again = run_sweep(sweep_of(tmp_path), tmp_path / "out", workers=1, **more)
        assert [record.result for record in again] == [0, 4, 1] and tries(tmp_path) == [*before, 1]
        assert not (tmp_path / "out" / records[2].file).exists()


def test_the_file_of_a_sweep_may_hold_the_limit_and_an_argument_goes_before_it(tmp_path, monkeypatch):
    text = f'function = "timed:stuck"\ntime_limit = 2.5\ngrid.x = [0, 2, 1]\nfixed.mark = "{tmp_path / "mark"}"\n'
    (tmp_path / "sweep.toml").write_text(text)
    sweep = Sweep.read(tmp_path / "sweep.toml", call=True)
    assert sweep.time_limit == 2.5 and Sweep.grid("timed:stuck", {"x": [1]}).time_limit is None
    given = []
    monkeypatch.setattr(local, "work", lambda *words: given.append(words[-1]) or (one for one in ()))
    for more in ({}, {"time_limit": 9}):
        with pytest.raises(InputError, match="3 settings were not run"):
            run_sweep(sweep, tmp_path / "out", **more)
    assert given == [2.5, 9]


@pytest.mark.parametrize("limit", [0, -1, math.inf, math.nan, "soon", True])
def test_limits_that_are_none(tmp_path, limit):
    with pytest.raises(InputError, match=r"time_limit=.*: expected a number of seconds > 0"):
        sweep_of(tmp_path, time_limit=limit)
    with pytest.raises(InputError, match=r"time_limit=.*: expected a number (of seconds > 0|or None)"):
        run_sweep(sweep_of(tmp_path), tmp_path / "out", time_limit=limit)
    (tmp_path / "sweep.json").write_text(
        json.dumps({"function": "timed:stuck", "time_limit": limit, "grid": {"x": [1]}})
    )
    with pytest.raises(InputError, match=r"time_limit=.*: expected a number of seconds > 0"):
        Sweep.read(tmp_path / "sweep.json")


def test_the_command_takes_a_limit_and_says_what_it_ended(tmp_path, monkeypatch):
    from polyrelu.cli.terminal import TerminalProgress

    clock = Clock(tmp_path / "mark", others=2)
    monkeypatch.setattr(local, "time", clock)
    monkeypatch.setattr(TerminalProgress, "update", lambda self: clock.update())
    finished = TerminalProgress.finished
    monkeypatch.setattr(
        TerminalProgress, "finished", lambda self, record: (clock.finished(record), finished(self, record))
    )
    text = f'function = "timed:stuck"\ngrid.x = [0, 2, 1]\nfixed.mark = "{tmp_path / "mark"}"\n'
    (tmp_path / "sweep.toml").write_text(text)
    words = ["sweep", str(tmp_path / "sweep.toml"), "--workers", "1", "--time-limit", "500", "--out", "out"]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words, prog_name="polyrelu")
    assert result.exit_code == 1
    assert result.stdout == "2 of 3 settings done, 1 failed\n"
    assert f": {SENTENCE} (failures/" in result.stderr


def test_a_setting_that_failed_without_a_limit_is_not_tried_again():
    failed = Record("key", {}, None, "an error", "failures/key.json", 1.0)
    assert not failed.worth_another_try(None) and not failed.worth_another_try(10.0)
    ended = replace(failed, time_limit=5.0)
    assert ended.worth_another_try(None) and ended.worth_another_try(10.0) and not ended.worth_another_try(5.0)
