"""python -m tools.rounding --points 10000 --seed 0: a table by kind of head and dtype; exit status 1 if one flips."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context

from tools.rounding.kinds import KINDS
from tools.rounding.trial import EACH, Row, alone, certified, closed_form

SHOWN = 20  # flips that are listed


def main() -> int:
    """Draw heads, certify, search, print."""
    options = _options()
    trial = closed_form if options.closed_form else partial(certified, onnx=options.onnx)
    heads = math.ceil(options.points / EACH)
    print(f"seed {options.seed}: {heads} heads of {len(KINDS)} kinds, {EACH} points each", flush=True)
    rows: list[Row] = []
    with ProcessPoolExecutor(options.workers, get_context("spawn"), initializer=alone) as pool:
        for some in pool.map(trial, range(heads), [options.seed] * heads):
            rows += some
            if sys.stderr.isatty():
                print(f"\r{len(rows)} points, {sum(one.broken for one in rows)} flips", end="", file=sys.stderr)
    print(table(rows))
    for row in islice((row for row in rows if row.broken), SHOWN):
        print(f"flip: {row.kind}, {row.dtype}, {row.runtime}, {row.where}: {_depth(row)} of {row.lower:.6g}")
    return 1 if any(row.broken for row in rows) else 0


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
