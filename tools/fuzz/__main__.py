"""The command: draw cases, run them, show a table, keep the findings."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Damaged files and bad arguments.")
    parser.add_argument("--files", type=int, default=10_000, help="damaged files (10 000)")
    parser.add_argument("--calls", type=int, default=10_000, help="calls with bad values (10 000)")
    parser.add_argument("--seed", type=int, default=0, help="other cases for another seed")
    parser.add_argument("--only", action="append", help="a kind of file, or the beginning of a public name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where findings are kept")
    parser.add_argument("--case", help="run one case, KIND:SEED, and show all of it")
    return parser.parse_args(words)


def draw(files: int, calls: int, seed: int, only: Sequence[str] | None) -> list[str]:
    """Names of so many cases: kinds of files by their weights, public names in turn."""
    from tools.fuzz.calls import names
    from tools.fuzz.cases import file_kinds

    kinds = {name: kind.weight for name, kind in file_kinds().items() if only is None or name in only}
    paths = [path for path in names() if only is None or any(path.startswith(one) for one in only)]
    source = np.random.default_rng(seed)
    weights = np.array([*kinds.values()])
    drawn = source.choice([*kinds], size=files, p=weights / weights.sum()).tolist() if kinds else []
    called = [paths[place] for place in source.permutation(calls) % len(paths)] if paths else []
    first = seed * 10**6
    cases = [f"{kind}:{first + number}" for number, kind in enumerate([*drawn, *called])]
    return [cases[place] for place in source.permutation(len(cases))]


def needed(cases: Sequence[str]) -> set[str]:
    """Which whole files these cases damage."""
    from tools.fuzz.cases import file_kinds

    kinds = {case.rpartition(":")[0] for case in cases}
    return {kind.seed for name, kind in file_kinds().items() if name in kinds}


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 if nothing was found, 1 if something was, 130 after Ctrl-C."""
    asked = arguments(words)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread a worker
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    from tools.fuzz import pool
    from tools.fuzz.seeds import make
    from tools.fuzz.table import Tally

    cases = [asked.case] if asked.case else draw(asked.files, asked.calls, asked.seed, asked.only)
    asked.out.mkdir(parents=True, exist_ok=True)
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="fuzz-seeds-") as folder:
        seeds = Path(folder)
        print("making whole files ...", file=sys.stderr)
        make(seeds, {"head", "run", "evaluation", "images", *needed(cases)})  # workers warm up with the first four
        tally, began = Tally(len(cases)), time.monotonic()
        with (asked.out / "findings.jsonl").open("w", encoding="utf-8") as kept:
            try:
                for outcome in pool.run(cases, seeds, 1 if asked.case else asked.workers):
                    tally.add(outcome)
                    if outcome.what:
                        kept.write(json.dumps(asdict(outcome)) + "\n")
                        kept.flush()
                        tally.show(outcome, whole=bool(asked.case))
                    tally.progress(time.monotonic() - began)
            except KeyboardInterrupt:
                interrupted = True
    print(tally.table(time.monotonic() - began))
    if tally.findings:
        print(
            f"kept in {asked.out / 'findings.jsonl'}; one again: python -m tools.fuzz --case '{tally.findings[0].case}'"
        )
    if interrupted:
        print(f"interrupted after {tally.done} of {len(cases)} cases; what was found is above", file=sys.stderr)
        return 130
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
