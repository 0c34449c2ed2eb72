"""A function of which one setting does not end, and a clock that is put forward once that has been seen."""

import json
import os
import time
from pathlib import Path
from typing import Any

from swept import alive, begun
from waiting import wait_for

from polyrelu.progress import Progress
from polyrelu.sweep import Sweep, run_sweep, sweepable


@sweepable()
def stuck(x: int, mark: str) -> int:
    """Of x = 1 nothing is heard again, not even by its own threads, unless there is a file MARK.go."""
    with Path(mark).open("a") as stream:
        stream.write(f"{x} {os.getpid()}\n")
    return sum(range(10**12)) if x == 1 and not Path(f"{mark}.go").exists() else x * x


class Clock(Progress):
    """Time as it is, until all but x = 1 are done and that has begun: then a thousand seconds more at every tick."""

    def __init__(self, mark: Path, others: int) -> None:
        self.mark, self.left, self.ahead = mark, others, 0.0
        self.until = time.monotonic() + 300  # against hanging only

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def finished(self, record: Any) -> None:
        self.left -= record.settings["x"] != 1

    def update(self) -> None:
        assert time.monotonic() < self.until, "it did not end"
        begun = self.mark.read_text().splitlines() if self.mark.exists() else []
        if not self.left and any(line.startswith("1 ") for line in begun):
            self.ahead += 1000.0


SENTENCE = "time limit: not done after 500 s, ended; more time is another try"


def sweep_of(tmp_path, xs=(0, 2, 1), **more):
    return Sweep("timed:stuck", [{"x": x, "mark": str(tmp_path / "mark")} for x in xs], **more)


def tries(tmp_path):
    return [x for x, _ in begun(tmp_path / "mark")]


def limited(tmp_path, monkeypatch, engine="local", **more):
    """Ended by the limit, with a clock that is put forward when the other two are done."""
    clock = Clock(tmp_path / "mark", others=2)
    where = "polyrelu.sweep.engines.local.time" if engine == "local" else "polyrelu.sweep.engines.ray_engine.time"
    monkeypatch.setattr(where, clock)
    return run_sweep(sweep_of(tmp_path), tmp_path / "out", engine=engine, progress=clock, **more)


def check_ended(tmp_path, records):
    first, second, ended = records
    assert (first.result, second.result, ended.result) == (0, 4, None)
    assert ended.error == SENTENCE and ended.time_limit == 500 and ended.failed and ended.seconds == 500
    assert json.loads((tmp_path / "out" / ended.file).read_text())["time_limit"] == 500
    assert ended.file.startswith("failures/") and tries(tmp_path).count(1) == 1  # not tried again like a dead worker
    wait_for(lambda: not any(alive(process) for x, process in begun(tmp_path / "mark") if x == 1))
