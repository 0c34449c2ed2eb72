"""A command beside busy processes, and the tests beside 0, 2, 4 and 8 of them.

python -m tools.busy 8 -- python -m pytest -q -m waits      one command; its wall time, its exit code
python -m tools.busy --table [--rounds 10] [--workers 2]    all tests once beside 0, 2, 4 and 8, then those that wait
                                                            for something ten times beside 8; goes on where it stopped
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from tools import PREPARED

SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(10**6): pass\n"
BESIDE, MOST = (0, 2, 4, 8), 8
OUT = Path("out")


@contextlib.contextmanager
def beside(count: int) -> Iterator[None]:
    """``count`` processes that do nothing but compute, as long as the block lasts; they end with this one too."""
    busy = [subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def plain() -> dict[str, str]:
    """The environment as this program was given it."""
    return {name: value for name, value in os.environ.items() if name not in PREPARED}


@final
@dataclass(frozen=True)
class Row:
    """One run of the tests beside ``busy`` processes."""

    what: str
    busy: int
    round: int
    code: int
    seconds: float
    said: str
    failed: tuple[str, ...] = ()


def table(rounds: int, workers: int) -> int:
    """Run what is missing, print the table; 1 if any run was not green."""
    OUT.mkdir(exist_ok=True)
    kept, commit = OUT / "busy.json", _commit()
    before = json.loads(kept.read_text()) if kept.exists() else {}
    rows = [Row(**row) for row in before.get("rows", [])] if before.get("commit") == commit else []
    wanted = [("all", busy, 1) for busy in BESIDE] + [("waits", MOST, k + 1) for k in range(rounds)]
    for what, busy, number in wanted:
        if any((row.what, row.busy, row.round) == (what, busy, number) for row in rows):
            continue
        print(f"{what} beside {busy}, round {number} ...", flush=True)
        rows.append(_run(what, busy, number, workers))
        kept.write_text(json.dumps({"commit": commit, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
        print(f"  {rows[-1].said}", flush=True)
    print(f"\ncommit {commit}, {workers} workers, {os.cpu_count()} cores; logs in {OUT / 'busy'}")
    print("| tests | busy processes beside | round | seconds | outcome |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.busy} | {row.round} | {row.seconds:.0f} | {row.said} |")
    for name in sorted({name for row in rows for name in row.failed}):
        print(f"failed: {name}")
    return int(any(row.code for row in rows))


def _run(what: str, busy: int, number: int, workers: int) -> Row:
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(workers),
        "--dist",
        "loadfile",
        "--max-worker-restart",
        "0",
    ]
    words += [] if what == "all" else ["-m", what]
    log = OUT / "busy" / f"{what}-{busy}-{number}.log"
    log.parent.mkdir(exist_ok=True)
    with beside(busy), log.open("w") as stream:
        began = time.perf_counter()
        code = subprocess.run(words, stdout=stream, stderr=subprocess.STDOUT, env=plain(), check=False).returncode
        seconds = time.perf_counter() - began
    lines = log.read_text().splitlines()
    failed = tuple(match[1] for line in lines if (match := re.match(r"(?:FAILED|ERROR) (\S+)", line)))
    return Row(what, busy, number, code, seconds, lines[-1] if lines else "nothing was said", failed)


def _commit() -> str:
    """What the tests are of: a commit, and whether it was changed since."""
    asked = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain"]]
    commit, changed = (subprocess.run(words, capture_output=True, text=True, check=True).stdout for words in asked)
    return commit.strip() + (" and changes" if changed else "")


def main(words: Sequence[str]) -> int:
    """The command line."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=0, help="busy processes beside the command after --")
    parser.add_argument("--table", action="store_true", help="the tests beside 0, 2, 4 and 8")
    parser.add_argument("--rounds", type=int, default=10, help="of the tests that wait, beside 8")
    parser.add_argument("--workers", type=int, default=2, help="parallel tests")
    asked, command = parser.parse_args(words[:cut]), words[cut + 1 :]
    if asked.table:
        return table(asked.rounds, asked.workers)
    if not command:
        parser.error("give a command after --, or --table")
    with beside(asked.count):
        began = time.perf_counter()
        code = subprocess.run(command, env=plain(), check=False).returncode
        seconds = time.perf_counter() - began
    print(f"{seconds:.2f} s beside {asked.count} busy processes, exit code {code}")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
