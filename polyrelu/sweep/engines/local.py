"""The local engine: worker processes of one thread each; one that dies costs its setting another try, not the run."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from polyrelu.errors import InputError
from polyrelu.sweep.engines.invoke import ENVIRONMENT
from polyrelu.sweep.record import Answer, Job, Watcher, out_of_time

RETRIES = 2  # of a setting whose worker died
TAIL = 8000  # bytes of a worker's last output that are kept for the record of a failure
TURN = 0.2  # seconds between two looks at Ctrl-C and at workers that died without a word
# sys.path is handed over before anything is imported from it.
START = (
    "import sys; sys.path[:], sys.argv[1:] = sys.argv[1:], []; from polyrelu.sweep.engines.worker import main; main()"
)


class Worker:
    """One process, the setting it has (None: waiting for one) and what it said last."""

    def __init__(self, job: Job) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT}, start_new_session=True,
        )  # fmt: skip
        self.key: str | None = None
        self.began = 0.0
        self.ready = False
        self.unread = self.output = b""
        self.send({"function": job.function})

    def send(self, message: Mapping[str, Any]) -> None:
        """One line; if the worker is dead, that is seen where its answer is read."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message, allow_nan=False).encode() + b"\n")
            self.process.stdin.flush()

    def give(self, key: str, settings: Any) -> None:
        """The next setting."""
        self.key, self.output, self.began = key, b"", time.monotonic()
        self.send({"key": key, "settings": settings})

    def messages(self, content: bytes) -> list[dict[str, Any]]:
        """The whole lines there are by now."""
        *lines, self.unread = (self.unread + content).split(b"\n")
        return [json.loads(line) for line in lines]

    def hear(self, content: bytes) -> None:
        """Keep the last of what the function printed."""
        self.output = (self.output + content)[-TAIL:]

    def said(self) -> str:
        """The last of what the function printed, to the end."""
        for content in _rest(self.process.stderr):
            self.hear(content)
        return self.output.decode(errors="replace")

    def end(self) -> str:
        """Kill it with all it started; how it ended, in words."""
        died = self.process.poll()
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        return "killed" if died is None else f"signal {-died}" if died < 0 else f"exit code {died}"


class Crew:
    """The workers of one run and the settings that wait for them."""

    def __init__(
        self, job: Job, tasks: Mapping[str, Any], size: int, watcher: Watcher, time_limit: float | None = None
    ) -> None:
        self.job, self.tasks, self.size, self.watcher, self.limit = job, tasks, size, watcher, time_limit
        self.waiting = deque(tasks)
        self.deaths: Counter[str] = Counter()
        self.failed_starts = 0
        self.workers: list[Worker] = []
        self.selector = selectors.DefaultSelector()

    @property
    def busy(self) -> int:
        """How many settings are under way."""
        return sum(worker.key is not None for worker in self.workers)

    def hand_out(self) -> None:
        """A setting for every worker that has none, and a new worker for every setting that could have one."""
        for worker in self.workers:
            if worker.ready and worker.key is None and self.waiting:
                key = self.waiting.popleft()
                self.watcher.started(key, self.tasks[key])
                worker.give(key, self.tasks[key])
        while len(self.workers) < min(self.size, self.busy + len(self.waiting)):
            try:
                worker = Worker(self.job)
            except OSError as error:
                why = f"{len(self.workers) + 1} worker processes cannot be started ({error.strerror})"
                raise InputError(f"workers={self.size}: {why}; lower --workers.") from None
            self.workers.append(worker)
            for pipe, speaks in ((worker.process.stdout, True), (worker.process.stderr, False)):
                assert pipe
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, (worker, speaks))

    def listen(self) -> Iterator[Answer]:
        """Answers that arrive within a turn."""
        for event, _ in self.selector.select(TURN):
            worker, speaks = event.data
            try:
                content = os.read(event.fd, 1 << 20)
            except BlockingIOError:  # it was read with an answer just now
                continue
            if not content:
                self.selector.unregister(event.fileobj)
                if speaks:  # it will never answer
                    worker.process.kill()
            elif speaks:
                for message in worker.messages(content):
                    yield from self._heard(worker, message)
            else:
                worker.hear(content)
        for worker in [worker for worker in self.workers if worker.process.poll() is not None]:
            self.workers.remove(worker)
            for content in _rest(worker.process.stdout):
                for message in worker.messages(content):
                    yield from self._heard(worker, message)
            yield from self._lost(worker)
        yield from self._late()

    def _late(self) -> Iterator[Answer]:
        """Settings that took longer than the time limit: their workers are ended, others take their place."""
        now, limit = time.monotonic(), self.limit
        if limit is None:
            return
        for worker in [one for one in self.workers if one.key is not None and now - one.began > limit]:
            self.workers.remove(worker)
            self._forget(worker)
            key, said = worker.key, worker.said()
            worker.end()
            assert key is not None
            yield out_of_time(key, limit, said)

    def _heard(self, worker: Worker, message: dict[str, Any]) -> Iterator[Answer]:
        if "refused" in message:
            raise InputError(message["refused"])
        if "ready" in message:
            require_version(self.job, message["ready"], "here")
            worker.ready, self.failed_starts = True, 0
            return
        worker.key = None
        if "details" in message:
            said = worker.said()
            message["details"] += said and f"\nLast output:\n{said}"
        yield Answer(**message)

    def _lost(self, worker: Worker) -> Iterator[Answer]:
        """A worker died: its setting is tried again, at most twice."""
        self._forget(worker)
        said, how, key = worker.said(), worker.end(), worker.key
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts > RETRIES:
                last = said.strip().splitlines()[-1:] or ["nothing was said"]
                raise InputError(f"workers={self.size}: worker processes die while they start ({how}; {last[0]}); "
                                 "lower --workers if memory is short.")  # fmt: skip
        if key is None:
            return
        self.deaths[key] += 1
        if self.deaths[key] <= RETRIES:
            self.waiting.appendleft(key)
            return
        yield Answer(key, error=f"worker died ({how}), {self.deaths[key]} times", details=said)

    def _forget(self, worker: Worker) -> None:
        for pipe in (worker.process.stdout, worker.process.stderr):
            with contextlib.suppress(KeyError):
                self.selector.unregister(pipe)  # type: ignore[arg-type]


def work(
    job: Job,
    tasks: Mapping[str, Any],
    workers: int,
    watcher: Watcher,
    more: Callable[[], bool],
    time_limit: float | None = None,
) -> Iterator[Answer]:
    """Answers as they come, the next setting handed out before. ``more()``: may another one be handed out?

    time_limit : seconds a setting may take from when a worker has it; then that worker is killed
    """
    crew = Crew(job, tasks, workers, watcher, time_limit)
    try:
        while True:
            going = more()
            if going:
                crew.hand_out()
            if not crew.busy and not (going and crew.waiting):
                return
            for answer in crew.listen():
                if more():
                    crew.hand_out()
                yield answer
    finally:
        for worker in crew.workers:
            worker.end()
        crew.selector.close()


def _rest(pipe: Any) -> Iterator[bytes]:
    """What is in a pipe now, without waiting for more."""
    with contextlib.suppress(BlockingIOError):
        while content := os.read(pipe.fileno(), 1 << 20):
            yield content


def require_version(job: Job, found: str, where: str) -> None:
    """Results of two versions do not mix."""
    if found != job.version:
        raise InputError(
            f"function={job.function}: its source {where} is version {found}, but this sweep is of {job.version}; "
            "finished settings are kept. Use the same source everywhere and leave it alone while a sweep runs."
        )
