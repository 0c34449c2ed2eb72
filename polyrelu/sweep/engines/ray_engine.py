"""The Ray engine: one task for each setting on a cluster, results sent back and written here.

A local Ray is started where no address is given. Ray retries a task whose worker died; errors of the function are
caught inside the task.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from polyrelu.errors import InputError, require
from polyrelu.interrupt import listen_again, undone
from polyrelu.progress import Progress
from polyrelu.sweep.engines.local import POLL_SECONDS, RETRIES, require_version
from polyrelu.sweep.engines.ray_address import check_address, last_line
from polyrelu.sweep.engines.worker import ENVIRONMENT, call
from polyrelu.sweep.function import find_function, source_version
from polyrelu.sweep.record import EngineResult, FunctionVersion, out_of_time
from polyrelu.threads import prepare

TASKS_PER_CORE = 2  # tasks in flight for each core, so that none waits for the next
OBJECT_STORE_BYTES = 512 * 2**20  # bytes of memory for results on their way; more goes to disk
# What Ray would print here about every worker that died; it comes back as the outcome of the task.
SKIPPED_LOGS = "A worker died or was killed|retries remaining, so the task will be retried"


def work(
    function: FunctionVersion,
    tasks: Mapping[str, Any],
    workers: int | None,
    address: str | None,
    progress: Progress,
    more: Callable[[], bool],
    time_limit: float | None = None,
) -> Iterator[EngineResult]:
    """Results as they come. ``more()``: may another setting be handed out?"""
    ray = load()
    with connected(ray, address, workers) as local_ray:
        clock = None if time_limit is None else TaskClock(ray, time_limit)
        task = remote_task(ray, function, local_ray, clock and clock.begun)
        waiting, in_flight = deque(tasks), dict[Any, str]()
        try:
            while True:
                if more():
                    cores = int(ray.cluster_resources().get("CPU", 1))
                    most = workers if workers and address else TASKS_PER_CORE * cores
                    while waiting and len(in_flight) < max(1, most):
                        key = waiting.popleft()
                        progress.started(key, tasks[key])
                        in_flight[task.remote(key, tasks[key])] = key
                if not in_flight:
                    return
                for one in ray.wait(list(in_flight), timeout=POLL_SECONDS)[0]:
                    yield result_of(ray, function, in_flight.pop(one), one)
                for one in clock.late(in_flight) if clock else ():
                    ray.cancel(one, force=True)
                    yield out_of_time(in_flight.pop(one), clock.limit)  # type: ignore[union-attr]
        finally:
            for one in in_flight:
                with contextlib.suppress(Exception):
                    ray.cancel(one, force=True)


class TaskClock:
    """How long tasks have been running: every task reports its beginning, which comes later than handing it out.

    ``begun`` is an actor that counts the beginnings for each key; more than one where a worker died.
    """

    def __init__(self, ray: Any, limit: float) -> None:
        class Begun:
            def __init__(self) -> None:
                self.count: dict[str, int] = {}

            def note(self, key: str) -> None:
                self.count[key] = self.count.get(key, 0) + 1

            def counts(self) -> dict[str, int]:
                return self.count

        self.ray, self.limit = ray, limit
        self.begun = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Begun).remote()
        self.since: dict[tuple[str, int], float] = {}

    def late(self, in_flight: Mapping[Any, str]) -> list[Any]:
        """The tasks that have been running for longer than the limit."""
        now, counts = time.monotonic(), self.ray.get(self.begun.counts.remote())
        return [
            one for one, key in in_flight.items()
            if key in counts and now - self.since.setdefault((key, counts[key]), now) > self.limit
        ]  # fmt: skip


def remote_task(ray: Any, function: FunctionVersion, local_ray: bool, begun: Any = None) -> Any:
    """The task, serialised by value, so that a worker finds polyrelu by the paths in it."""
    path = [str(entry) for entry in sys.path]
    name, wanted = function.name, function.version

    def task(key: str, settings: Any) -> dict[str, Any]:
        import sys

        sys.path.extend(entry for entry in path if entry not in sys.path)
        if begun is not None:
            begun.note.remote(key)
        from polyrelu.sweep.engines.ray_engine import run_task

        return run_task(name, wanted, key, settings)

    environment = {} if local_ray else {"runtime_env": {"env_vars": ENVIRONMENT}}
    return ray.remote(max_retries=RETRIES, num_cpus=1, **environment)(task)


def run_task(name: str, wanted: str, key: str, settings: Any) -> dict[str, Any]:
    """On a worker: refuse another version of the function, else call it."""
    try:
        function, found = _found(name)
    except InputError as error:
        return {"refused": str(error)}
    return call(function, key, settings) if found == wanted else {"version": found}


@cache
def _found(name: str) -> tuple[Callable[..., Any], str]:
    prepare()
    function = find_function(name)
    return function, source_version(function)


def result_of(ray: Any, function: FunctionVersion, key: str, one: Any) -> EngineResult:
    """What a task brought back; a worker that died again and again is a failure of the setting, the rest is Ray's."""
    errors = ray.exceptions
    died = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError)
    try:
        message = ray.get(one)
    except died as error:
        return EngineResult(key, error=f"worker died ({type(error).__name__}), {RETRIES + 1} times", details=str(error))
    except errors.RayError as error:
        raise InputError(
            f"engine=ray: Ray could not run {function.name} ({last_line(error)}); finished settings are kept. "
            "polyrelu and the function must be installed on every node."
        ) from None
    if "refused" in message:
        raise InputError(f"{message['refused'].rstrip('.')} on the Ray cluster; install it on every node.")
    if "version" in message:
        require_version(function, message["version"], "on the Ray cluster")
    return EngineResult(**message)


def load() -> Any:
    """The package ray, or one line that says how to get it."""
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", SKIPPED_LOGS)
    try:
        import ray
    except ImportError:
        raise InputError('engine=ray: Ray is not installed; pip install "polyrelu[ray]", or use local.') from None
    return ray


@contextlib.contextmanager
def connected(ray: Any, address: str | None, workers: int | None) -> Iterator[bool]:
    """A cluster as long as the block lasts: the one at the address, the one this process is in, or a local one.

    On Linux Ray listens on every interface, whatever its settings; what protects it is its token (`RAY_AUTH_MODE`).
    """
    if ray.is_initialized():
        require(address is None, "address", address, "none: this process is already connected to a Ray")
        yield False
        return
    about: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        about |= {"address": "local", "num_cpus": workers}
        about |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        what = "engine=ray: a local Ray could not be started"
    else:
        check_address(address)
        about["address"] = address
        what = f"address={address}: no connection to a Ray cluster"
    with undone(kill_descendants) if address is None else contextlib.nullcontext():
        try:
            with _environment(address is None):
                ray.init(**about)
            listen_again()  # Ray takes SIGTERM for itself
        except Exception as error:
            raise InputError(f"{what} ({last_line(error)}).") from None
        try:
            yield address is None
        finally:
            ray.shutdown()


def kill_descendants() -> None:
    """Kill all that this process started, and what that started: some of a Ray's processes outlive the others."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone meanwhile
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    ahead = [os.getpid()]
    while ahead:
        found = children.get(ahead.pop(), [])
        ahead += found
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def _environment(local_ray: bool) -> Iterator[None]:
    """A Ray that is started here hands this environment on to its workers."""
    before = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if local_ray:
        os.environ.update(ENVIRONMENT, RAY_USAGE_STATS_ENABLED="0")
    try:
        yield
    finally:
        for name in ENVIRONMENT.keys() - before.keys():
            os.environ.pop(name, None)
        os.environ.update(before)
