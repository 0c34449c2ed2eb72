"""Sweeps beside process pools that keep no files: overhead of a setting, gain of a second worker, 200 settings on Ray.

    python benchmarks/sweep.py                       # a minute or two
    python benchmarks/sweep.py --sections overhead   # or scaling, ray

Overhead is the time from the first answer to the last one, so no worker start is in it, over the settings between.
Peers: concurrent.futures (spawned processes) and joblib, which keep nothing and end with a worker.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import tempfile
import time

from polyrelu.progress import Progress
from polyrelu.sweep import Sweep, run_sweep, sweepable


@sweepable()
def nothing(x):
    return x


@sweepable()
def busy(x, rounds):
    """CPU-bound: the logistic map."""
    value = 0.3
    for _ in range(rounds):
        value = 3.9 * value * (1 - value)
    return value


class Clock(Progress):
    """When the first and the last answer were on disk."""

    def __init__(self):
        self.times = []

    def finished(self, record):
        self.times.append(time.perf_counter())


def ours(name, settings, workers, engine="local"):
    """(seconds in all, seconds from the first answer to the last)."""
    clock, began = Clock(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        records = run_sweep(Sweep(f"sweep:{name}", settings), folder, workers=workers, engine=engine, progress=clock)
    assert not any(record.failed for record in records)
    return time.perf_counter() - began, clock.times[-1] - clock.times[0]


def futures(call, settings, workers):
    began, times = time.perf_counter(), []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        for _ in concurrent.futures.as_completed([pool.submit(call, **one) for one in settings]):
            times.append(time.perf_counter())
    return time.perf_counter() - began, times[-1] - times[0]


def joblib(call, settings, workers):
    from joblib import Parallel, delayed

    began, times = time.perf_counter(), []
    for _ in Parallel(workers, return_as="generator_unordered", batch_size=1)(delayed(call)(**one) for one in settings):
        times.append(time.perf_counter())
    return time.perf_counter() - began, times[-1] - times[0]


def peers():
    yield "concurrent.futures", futures
    try:
        import joblib as _  # noqa: F401
    except ImportError:
        print("joblib is not installed", flush=True)
    else:
        yield "joblib", joblib


def overhead(count=200, workers=2):
    settings = [{"x": x} for x in range(count)]
    print(f"\n## Overhead: {count} settings that do nothing, {workers} workers", flush=True)
    cpu = time.process_time()
    whole, between = ours("nothing", settings, workers)
    cpu = time.process_time() - cpu
    mine = 1e3 * between / (count - 1)
    print(
        f"{'ours':20} {mine:6.2f} ms a setting (limit 20), {1e3 * cpu / count:.2f} ms of CPU here; {whole:.2f} s in all"
    )
    for name, peer in peers():
        whole, between = peer(nothing, settings, workers)
        each = 1e3 * between / (count - 1)
        print(f"{name:20} {each:6.2f} ms a setting, without files; ours is {mine / each:.1f}x; {whole:.2f} s in all")


def scaling(count=24, seconds=0.5):
    rounds = 100_000
    began = time.process_time()
    busy(0, rounds)
    rounds = round(rounds * seconds / (time.process_time() - began))
    settings = [{"x": x, "rounds": rounds} for x in range(count)]
    print(f"\n## Scaling: {count} settings of {seconds:g} s of CPU, one worker beside two", flush=True)
    doors = [("ours", lambda call, some, workers: ours("busy", some, workers)), *peers()]
    for name, run in doors:
        one, two = (run(busy, settings, workers)[0] for workers in (1, 2))
        limit = " (at least 1.7)" if name == "ours" else ""
        print(f"{name:20} {one:6.2f} s, {two:6.2f} s: {one / two:.2f}x{limit}", flush=True)


def ray(count=200, workers=2):
    settings = [{"x": x} for x in range(count)]
    print(f"\n## Ray: {count} settings that do nothing, {workers} workers, a local Ray started for it", flush=True)
    whole, between = ours("nothing", settings, workers, "ray")
    print(f"{'ours':20} {whole:6.1f} s with the start (limit 60); {1e3 * between / (count - 1):.1f} ms a setting")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="*", default=["overhead", "scaling", "ray"])
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start")
    for section in options.sections:
        {"overhead": overhead, "scaling": scaling, "ray": ray}[section]()


if __name__ == "__main__":
    main()
