"""python -m tools.rounding --points 10000 --seed 0: a table by kind of head and dtype; exit status 1 if one flips."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context

from tools.rounding.kinds import KINDS
from tools.rounding.trial import EACH, Row, alone, certified, closed_form

SHOWN = 20  # flips that are listed
EVERY = 10  # heads between lines of progress where there is no terminal


def main() -> int:
    """Draw heads, certify, search, print."""
    options = _options()
    trial = closed_form if options.closed_form else partial(certified, onnx=options.onnx)
    heads = range(options.first, options.first + math.ceil(options.points / EACH))
    print(f"seed {options.seed}: {len(heads)} heads of {len(KINDS)} kinds, {EACH} points each", flush=True)
    rows: list[Row] = []
    began, following = time.monotonic(), heads.start
    pool = ProcessPoolExecutor(options.workers, get_context("spawn"), initializer=alone)
    try:
        for some in pool.map(trial, heads, [options.seed] * len(heads)):
            rows, following = rows + some, following + 1
            if sys.stderr.isatty() or following % EVERY == 0:
                _progress(rows, following - heads.start, len(heads), time.monotonic() - began)
    except KeyboardInterrupt:
        print(f"\nEnded by Ctrl-C. The rest: --first {following} --points {(heads.stop - following) * EACH}")
    finally:
        processes = list(getattr(pool, "_processes", {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # what is under way is dropped; it is drawn again from its seed
            process.terminate()
    print(table(rows))
    for row in islice((row for row in rows if row.broken), SHOWN):
        print(f"flip: {row.kind}, {row.dtype}, {row.runtime}, {row.where}: {_depth(row)} of {row.lower:.6g}")
    if following < heads.stop:
        return 130
    return 1 if any(row.broken for row in rows) else 0


def _progress(rows: list[Row], done: int, heads: int, seconds: float) -> None:
    left = seconds / done * (heads - done) / 60
    text = f"{len(rows)} points, {sum(one.broken for one in rows)} flips, {left:.0f} minutes left"
    terminal = sys.stderr.isatty()
    print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def table(rows: Iterable[Row]) -> str:
    """Points, those with a radius > 0, rows run, flips inside, and where the flip nearest to the point lies."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.kind, row.dtype, row.runtime), []).append(row)
    lines = [
        "| head | dtype | run by | points | proven > 0 | tries | flips | nearest flip |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (kind, dtype, runtime), some in sorted(groups.items()):
        proven, nearest = sum(one.lower > 0 for one in some), min(some, key=lambda one: one.ratio)
        tries, flips = sum(one.tries for one in some), sum(one.broken for one in some)
        lines.append(
            f"| {kind} | {dtype} | {runtime} | {len(some)} | {proven} | {tries} | {flips} | {_depth(nearest)} |"
        )
    every = [one for some in groups.values() for one in some]
    proven, tries = sum(one.lower > 0 for one in every), sum(one.tries for one in every)
    lines.append(f"| all | | | {len(every)} | {proven} | {tries} | {sum(one.broken for one in every)} | |")
    return "\n".join(lines)


def _depth(row: Row) -> str:
    """Relative to the radius: how far inside or beyond it."""
    if math.isinf(row.lower):
        return "at any radius" if row.broken else "none"
    if math.isinf(row.ratio):
        return "none"
    return f"{abs(1 - row.ratio):.1e} {'inside' if row.broken else 'beyond'}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.rounding", description=__doc__)
    parser.add_argument("--points", type=int, default=10_000, help=f"rounded up to whole heads of {EACH}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="HEAD", help="number of the first head (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--onnx", action="store_true", help="heads as exported, run by onnxruntime")
    parser.add_argument(
        "--closed-form",
        action="store_true",
        help="linear heads with radii of real arithmetic: the search must find flips",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
