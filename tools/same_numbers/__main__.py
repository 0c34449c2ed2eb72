"""python -m tools.same_numbers TREE: the same seeds here and in the tree of another commit, compared bit by bit.

    git worktree add ../before COMMIT
    python -m tools.same_numbers ../before
    python -m tools.same_numbers ../before flow bracket --threads 2

Every job runs in a process of its own with the package of its tree. Exit status 1 if a number differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.same_numbers.jobs import JOBS

HERE = Path(__file__).parents[2]
LONG = "all_claims"  # runs only if it is named
SHOWN = 5  # differences of a job that are printed


def run(job: str, tree: Path, threads: int) -> Any:
    """What one job gives with the package in ``tree``."""
    with tempfile.TemporaryDirectory() as folder:  # empty: nothing in it is imported instead
        known = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": str(threads)}
        words = [sys.executable, str(Path(__file__).with_name("jobs.py")), job, str(threads)]
        done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{job} failed in {tree}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Where two results differ, and how."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key), after.get(key), f"{place}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}/{index}")
    elif before != after:
        yield f"{place}: {str(before)[:100]} before, {str(after)[:100]} here"


def count(result: Any) -> int:
    """How many values a result has."""
    if isinstance(result, dict | list):
        return sum(count(one) for one in (result.values() if isinstance(result, dict) else result))
    return 1


def main() -> int:
    """Compare job by job."""
    parser = argparse.ArgumentParser(prog="python -m tools.same_numbers", description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path, help="a folder with the package of another commit")
    parser.add_argument(
        "jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)}; all but the last if none is named"
    )
    parser.add_argument("--threads", type=int, default=1, help="of both (1)")
    arguments = parser.parse_args()
    if not (arguments.tree / "polyrelu" / "__init__.py").is_file():
        parser.error(f"tree={arguments.tree}: expected a folder with polyrelu/__init__.py")
    if unknown := set(arguments.jobs) - set(JOBS):
        parser.error(f"job={', '.join(sorted(unknown))}: expected {', '.join(JOBS)}")
    differ = 0
    for job in arguments.jobs or [job for job in JOBS if job != LONG]:
        before, after = (run(job, tree, arguments.threads) for tree in (arguments.tree, HERE))
        found = list(differences(before, after))
        differ += bool(found)
        print(f"{job}: {count(after)} values, " + (f"{len(found)} differ" if found else "all the same"), flush=True)
        for line in found[:SHOWN]:
            print(f"  {line}")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())
