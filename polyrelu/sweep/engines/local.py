"""The local engine: worker processes of one thread each; one that dies costs its setting another try, not the run.

Workers are fresh interpreters, not children of `multiprocessing`, which would run the caller's script again in each.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Pipe, wait
from typing import Any

from polyrelu.errors import InputError
from polyrelu.progress import Progress
from polyrelu.sweep.engines.worker import ENVIRONMENT
from polyrelu.sweep.record import EngineResult, FunctionVersion, out_of_time

RETRIES = 2  # of a setting whose worker died
OUTPUT_TAIL = 8000  # bytes of a worker's last output that are kept for the record of a failure
POLL_SECONDS = 0.2  # between two looks at Ctrl-C and at workers that died without a word
# sys.path is handed over before anything is imported from it.
START = (
    "import sys; descriptor, function, *sys.path[:] = sys.argv[1:]; sys.argv[1:] = []; "
    "from polyrelu.sweep.engines.worker import main; main(int(descriptor), function)"
)


class Worker:
    """One process, the setting it has (None: it waits for one), and the file that holds what it printed."""

    def __init__(self, function: str) -> None:
        self.connection, other = Pipe()
        self.output = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by `end`
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, str(other.fileno()), function, *map(str, sys.path)],
                stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, pass_fds=[other.fileno()],
                env={**os.environ, **ENVIRONMENT}, start_new_session=True,
            )  # fmt: skip
        self.key: str | None = None
        self.began = 0.0
        self.ready = False

    def give(self, key: str, settings: Any) -> None:
        """The next setting; if the worker is dead, that is seen where its answer is read."""
        self.key, self.began = key, time.monotonic()
        self.output.truncate(0)
        with contextlib.suppress(OSError):
            self.connection.send({"key": key, "settings": settings})

    def messages(self) -> Iterator[dict[str, Any]]:
        """What it has sent by now."""
        try:
            while self.connection.poll():
                yield self.connection.recv()
        except (EOFError, OSError):  # it will never answer
            self.process.kill()

    def last_output(self) -> str:
        """The last of what the function printed."""
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - OUTPUT_TAIL))
        return self.output.read().decode(errors="replace")

    def end(self) -> tuple[str, str]:
        """Kill it with all it started; how it ended, in words, and the last of what it printed."""
        died, output = self.process.poll(), self.last_output()
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()
        self.output.close()
        how = "killed" if died is None else f"signal {-died}" if died < 0 else f"exit code {died}"
        return how, output


class WorkerPool:
    """The workers of one run and the settings that wait for them."""

    def __init__(
        self, function: FunctionVersion, tasks: Mapping[str, Any], size: int, progress: Progress, limit: float | None
    ) -> None:
        self.function, self.tasks, self.size, self.progress, self.limit = function, tasks, size, progress, limit
        self.waiting = deque(tasks)
        self.deaths: Counter[str] = Counter()
        self.failed_starts = 0
        self.workers: list[Worker] = []

    @property
    def busy(self) -> int:
        """How many settings are under way."""
        return sum(worker.key is not None for worker in self.workers)

    def hand_out(self) -> None:
        """A setting for every worker that has none, and a new worker for every setting that could have one."""
        for worker in self.workers:
            if worker.ready and worker.key is None and self.waiting:
                key = self.waiting.popleft()
                self.progress.started(key, self.tasks[key])
                worker.give(key, self.tasks[key])
        while len(self.workers) < min(self.size, self.busy + len(self.waiting)):
            try:
                self.workers.append(Worker(self.function.name))
            except OSError as error:
                why = f"{len(self.workers) + 1} worker processes cannot be started ({error.strerror})"
                raise InputError(f"workers={self.size}: {why}; lower --workers.") from None

    def results(self) -> Iterator[EngineResult]:
        """What arrives within ``POLL_SECONDS``; workers that died or took too long are replaced."""
        wait([worker.connection for worker in self.workers], POLL_SECONDS)
        for worker in list(self.workers):
            dead = worker.process.poll() is not None  # asked before its last messages are read
            for message in worker.messages():
                yield from self._received(worker, message)
            if dead:
                yield from self._lost(worker)
            elif self.limit is not None and worker.key is not None and time.monotonic() - worker.began > self.limit:
                self.workers.remove(worker)
                yield out_of_time(worker.key, self.limit, worker.end()[1])

    def _received(self, worker: Worker, message: dict[str, Any]) -> Iterator[EngineResult]:
        if "refused" in message:
            raise InputError(message["refused"])
        if "ready" in message:
            require_version(self.function, message["ready"], "here")
            worker.ready, self.failed_starts = True, 0
            return
        worker.key = None
        if "details" in message:
            output = worker.last_output()
            message["details"] += output and f"\nLast output:\n{output}"
        yield EngineResult(**message)

    def _lost(self, worker: Worker) -> Iterator[EngineResult]:
        """A worker died: its setting is tried again, at most twice."""
        self.workers.remove(worker)
        key, (how, output) = worker.key, worker.end()
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts > RETRIES:
                last = output.strip().splitlines()[-1:] or ["nothing was said"]
                raise InputError(f"workers={self.size}: worker processes die while they start ({how}; {last[0]}); "
                                 "lower --workers if memory is short.")  # fmt: skip
        if key is None:
            return
        self.deaths[key] += 1
        if self.deaths[key] <= RETRIES:
            self.waiting.appendleft(key)
            return
        yield EngineResult(key, error=f"worker died ({how}), {self.deaths[key]} times", details=output)


def work(
    function: FunctionVersion,
    tasks: Mapping[str, Any],
    workers: int,
    progress: Progress,
    more: Callable[[], bool],
    time_limit: float | None = None,
) -> Iterator[EngineResult]:
    """Results as they come, the next setting handed out before. ``more()``: may another one be handed out?

    time_limit : seconds a setting may take from when a worker has it; then that worker is killed
    """
    pool = WorkerPool(function, tasks, workers, progress, time_limit)
    try:
        while True:
            going = more()
            if going:
                pool.hand_out()
            if not pool.busy and not (going and pool.waiting):
                return
            for result in pool.results():
                if more():
                    pool.hand_out()
                yield result
    finally:
        for worker in pool.workers:
            worker.end()


def require_version(function: FunctionVersion, found: str, where: str) -> None:
    """Results of two versions do not mix."""
    if found != function.version:
        raise InputError(
            f"function={function.name}: its source {where} is version {found}, but this sweep is of "
            f"{function.version}; finished settings are kept. Use the same source everywhere and leave it alone while "
            "a sweep runs."
        )
