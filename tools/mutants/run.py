"""One process for each mutant, in a copy of the repository, forked from one that has loaded all but the package."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from compileall import compile_dir
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

from tools.mutants.locate import PACKAGE, ROOT, TESTS, source

HEAVY = ("numpy", "torch", "torch.nn.functional", "scipy.linalg", "scipy.optimize", "scipy.special", "sklearn.base",
         "sklearn.utils.validation", "safetensors.torch", "pytest", "_pytest.assertion.rewrite", "hypothesis", "mpmath",
         "starlette.applications", "pyarrow.parquet", "jinja2", "typer", "rich.console", "matplotlib.figure",
         "pandas")  # fmt: skip
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "out", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
WAIT = 20  # times the limit, on the clock, after which a process is taken to wait for ever
LATE = "time limit"
MEMORY = 16 * 2**30  # bytes of address space; one that wants more has been noticed


@dataclass
class Job:
    """Test files to run, in this order, with ``content`` in place of ``file``; ``limit`` in seconds of processor time.

    So that a busy machine changes nothing; a process that waits for ever is ended after WAIT times as long.
    """

    name: Any
    tests: Sequence[str]
    limit: float
    file: str = ""
    content: bytes = b""
    began: float = 0.0
    slot: Path = field(default_factory=Path)


@dataclass(frozen=True)
class Result:
    """What came of a job: ``noticed`` by the test ``by``, in so many seconds of processor time."""

    job: Job
    noticed: bool
    by: str
    seconds: float


def preload() -> None:
    """Import what tests import, so that forked processes need not; the package itself is left out."""
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]  # tools load what sets the threads of torch
    gc.freeze()


def copies(folder: Path, count: int) -> list[Path]:
    """So many private copies of the repository, compiled by content, so that a changed file is never stale."""
    made = [folder / f"copy{number}" for number in range(count)]
    for copy in made:
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
        for part in (PACKAGE, TESTS):
            compile_dir(copy / part, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return made


def run(jobs: Callable[[], Job | None], slots: list[Path]) -> Iterator[Result]:
    """Results as they come; ``jobs()`` gives the next job, or None. Whoever stops early ends what is under way."""
    free, running = list(slots), dict[int, Job]()
    try:
        while True:
            while free and (job := jobs()) is not None:
                job.slot, job.began = free.pop(), time.monotonic()
                running[_start(job)] = job
            if not running:
                return
            for process, job in list(running.items()):
                number, status, used = os.wait4(process, os.WNOHANG)
                late = time.monotonic() - job.began > WAIT * job.limit
                if number == process or late:
                    del running[process]
                    _end(process, wait=number != process)
                    _restore(job)
                    free.append(job.slot)
                    spent = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
                    yield _result(job, spent or number != process, used.ru_utime + used.ru_stime)
            time.sleep(0.02)
    finally:
        for process in running:
            _end(process, wait=True)


def _start(job: Job) -> int:
    if job.file:
        (job.slot / job.file).write_bytes(job.content)
    (job.slot / "result.json").unlink(missing_ok=True)
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            _test(job)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    return process


def _restore(job: Job) -> None:
    if job.file:
        (job.slot / job.file).write_bytes(source(job.file))


def _end(process: int, *, wait: bool) -> None:
    """End the process and whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if wait:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def _result(job: Job, late: bool, seconds: float) -> Result:
    if late:
        return Result(job, True, LATE, seconds)
    try:
        found = json.loads((job.slot / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Result(job, True, "the process died", seconds)
    return Result(job, found["code"] != 0, found["by"] or f"pytest ended with {found['code']}", seconds)


class _First:
    """Remembers the first test that failed."""

    by = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.by:
            self.by = str(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.by:
            self.by = str(report.nodeid)


def _test(job: Job) -> None:
    """In the forked process: the tests, in the copy, with the copy first on every path."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(job.limit) + 1, resource.RLIM_INFINITY))
    said = os.open(job.slot / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    silent = os.open(os.devnull, os.O_RDONLY)
    for stream, target in ((silent, 0), (said, 1), (said, 2)):
        os.dup2(stream, target)
    os.chdir(job.slot)
    sys.path[:] = [str(job.slot), *(path for path in sys.path if path not in ("", str(ROOT)))]
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(job.slot), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    import pytest

    first = _First()
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are loaded before
    temporary = f"--basetemp={job.slot / 'tmp'}"
    code = int(pytest.main([*options, temporary, *job.tests], plugins=[first]))
    (job.slot / "result.json").write_text(json.dumps({"code": code, "by": first.by}), encoding="utf-8")
