"""Cases in processes that are used again and again; one that hangs or dies costs one case, and is a finding."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, final

from tools.fuzz.judge import MOST, Outcome

LIMIT = 120.0  # seconds for a case; a case that takes longer is run again alone
ALONE = 600.0  # seconds for a case that is run again with nothing beside it
STARTUP = 300.0  # seconds until a worker is ready


def work(connection: Connection, seeds: str) -> None:
    """What a worker does: a case comes in, its outcome goes out."""
    os.setsid()  # so that whatever it starts ends with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    warnings.simplefilter("ignore")
    import torch

    from tools.fuzz import cases, judge

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    os.environ["POLYRELU_DATA"] = str(folder / "data")  # nobody's own files are touched
    try:
        judge.install()
        _warm(folder / "case", Path(seeds))
        limit = judge.virtual() + 2 * MOST  # what is announced and never used may not be asked for either
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        connection.send(None)
        while (case := connection.recv()) is not None:
            connection.send(cases.judge(case, folder / "case", Path(seeds)))
    except EOFError:
        return
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _warm(folder: Path, seeds: Path) -> None:
    """Load what commands load when they are first run, so that it is not counted as a case's memory."""
    from tools.fuzz import cases, goods

    goods.world()
    shutil.copytree(seeds / "head", folder)
    shutil.copytree(seeds / "run", folder, dirs_exist_ok=True)
    os.chdir(folder)
    for case in ("parquet:0", "run:1", "head:2", "evaluation:3", "images:4"):
        cases.judge(case, folder, seeds)


@final
@dataclass
class Worker:
    """A process at work: what it was given, and when it must be done."""

    seeds: str
    process: Any = field(init=False)
    connection: Connection = field(init=False)
    case: str | None = None
    until: float = field(init=False)
    ready: bool = False

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.seeds), daemon=False)
        self.process.start()
        theirs.close()
        self.until = time.monotonic() + STARTUP

    def give(self, case: str, limit: float) -> None:
        """Let it work on a case."""
        self.connection.send(case)
        self.case, self.until = case, time.monotonic() + limit

    def end(self) -> None:
        """End it and whatever it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(cases: Sequence[str], seeds: Path, workers: int) -> Iterator[Outcome]:
    """Outcomes as they come. Cases that took too long are run again, alone, before they are called a hang."""
    slow: list[str] = []
    yield from _run(cases, seeds, workers, LIMIT, slow)
    again, slow = slow, []
    yield from _run(again, seeds, 1, ALONE, slow)
    yield from (Outcome(case, "hang", "no answer", f"none in {ALONE:.0f} s, alone") for case in slow)


def _run(cases: Sequence[str], seeds: Path, workers: int, limit: float, slow: list[str]) -> Iterator[Outcome]:
    left = list(reversed(cases))
    crew = [Worker(str(seeds)) for _ in range(min(workers, len(cases)))]
    try:
        while crew:
            ready = wait([one.connection for one in crew], timeout=1.0)
            for place, one in reversed(list(enumerate(crew))):
                outcome, over = _look(one, one.connection in ready, slow)
                if outcome is not None:
                    yield outcome
                if over:
                    one.end()
                    crew[place] = one = Worker(str(seeds))
                if one.ready and one.case is None:
                    if left:
                        one.give(left.pop(), limit)
                    else:
                        one.end()
                        del crew[place]
    finally:
        for one in crew:
            one.end()


def _look(one: Worker, told: bool, slow: list[str]) -> tuple[Outcome | None, bool]:
    """What a worker says, and whether it must be replaced."""
    if told:
        try:
            answer = one.connection.recv()
        except (EOFError, OSError):
            if one.case is None:
                raise RuntimeError("a worker ended before its first case; run with --workers 1 and look") from None
            return Outcome(one.case, "dead", "the worker died", f"exit status {one.process.exitcode}"), True
        one.ready, one.case = True, None
        return answer, False
    if time.monotonic() > one.until:
        if one.case is None:
            raise RuntimeError(f"a worker was not ready in {STARTUP:.0f} s")
        slow.append(one.case)
        return None, True
    return None, False
