"""Chunks on all cores, until every family has its comparisons; Ctrl-C keeps what is done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TextIO

from tools.campaign.chunk import Record, run_chunk
from tools.campaign.store import Store

EVERY = 30.0  # seconds between lines of progress where there is no terminal


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


class Plan:
    """Which chunk comes next: of the family that has the smallest part of its comparisons."""

    def __init__(self, families: list[str], target: int, records: list[Record]) -> None:
        self.target = target
        self.done = dict.fromkeys(families, 0)
        self.taken: dict[str, set[int]] = {name: set() for name in families}
        self.promised = dict.fromkeys(families, 0.0)
        self.sizes: dict[str, list[int]] = {name: [] for name in families}
        for record in records:
            if record.family in self.done:
                self.taken[record.family].add(record.chunk)
                self.count(record)

    def count(self, record: Record) -> None:
        """A chunk is done."""
        self.done[record.family] += record.comparisons
        self.sizes[record.family].append(record.comparisons)

    def usual(self, family: str) -> float:
        """Comparisons of a chunk of this family, about."""
        sizes = self.sizes[family]
        return max(1.0, sum(sizes) / len(sizes)) if sizes else 200.0

    def next(self, running: list[str]) -> tuple[str, int] | None:
        """Family and number of a chunk to begin while chunks of these families are ``running``."""
        ahead = {name: self.done[name] + running.count(name) * self.usual(name) for name in self.done}
        name = min(ahead, key=lambda one: ahead[one])
        if ahead[name] >= self.target:
            return None
        chunk = next(number for number in range(len(self.taken[name]) + 1) if number not in self.taken[name])
        self.taken[name].add(chunk)
        return name, chunk

    @property
    def left(self) -> float:
        """Comparisons still to make."""
        return float(sum(max(0, self.target - done) for done in self.done.values()))


class Progress:
    """One line: on a terminal over the last one, elsewhere a new one now and then."""

    def __init__(self, plan: Plan, stream: TextIO = sys.stderr) -> None:
        self.plan, self.stream, self.began, self.shown = plan, stream, time.monotonic(), -EVERY
        self.first = plan.left

    def show(self, violations: int) -> None:
        """Say how far it is."""
        now = time.monotonic() - self.began
        terminal = self.stream.isatty()
        if not terminal and now - self.shown < EVERY:
            return
        self.shown = now
        made = self.first - self.plan.left
        left = f"{_clock(now * self.plan.left / made)} left" if made > 0 else "time left unknown"
        total = sum(self.plan.done.values())
        text = f"{total} comparisons, {violations} violations, {_clock(now)} gone, {left}"
        self.stream.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
        self.stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def run(store: Store, families: list[str], target: int, seed: int, workers: int) -> bool:
    """Record chunks until every family has ``target`` comparisons; False if Ctrl-C ended it before."""
    records = store.records(seed)
    plan = Plan(families, target, records)
    violations = sum(len(record.violations) for record in records)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the workers, one a core
    progress = Progress(plan)
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    running: dict[Future[Record], str] = {}
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        while True:
            while len(running) < 2 * workers:
                following = plan.next(list(running.values()))
                if following is None:
                    break
                running[pool.submit(run_chunk, following[0], seed, following[1])] = following[0]
            if not running:
                return True
            progress.show(violations)
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                del running[future]
                record = future.result()
                store.append(record)
                plan.count(record)
                violations += len(record.violations)
    except KeyboardInterrupt:
        return False
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\n")
        signal.signal(signal.SIGTERM, before)
        processes = list(getattr(pool, "_processes", {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # what is under way is dropped; it is drawn again from its seed
            process.terminate()
