"""Files and functions of polyrelu that one call passes through, counted with a profiler hook in every thread.

    python -m tools.call_paths          prints the table and the files of each path, in the order they are entered
    python -m tools.call_paths --docs   writes the table into docs/ARCHITECTURE.md
    python -m tools.call_paths --tree DIR   counts in the tree of another commit

The second of two calls is counted, so that what runs once at imports is left out. Functions and methods count, bodies
of modules and classes, lambdas and comprehensions do not; reproducing is counted in the process that judges and draws,
without its workers.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "ARCHITECTURE.md"
BEGIN, END = "<!-- call paths -->", "<!-- end of call paths -->"
NAMES = ("flow", "fit", "certify", "reproduce")
SMALL = ["--dim", "30", "--clusters", "3+2", "--samples", "100", "--width", "40", "--p", "3", "--until-loss", "1e-2"]


def command(*words: str) -> Callable[[], object]:
    """A command, as somebody types it."""
    from polyrelu.cli import main

    def run() -> None:
        sys.argv = ["polyrelu", *words]
        try:
            main()
        except SystemExit as end:
            if end.code not in (0, 1, None):
                raise

    return run


def head() -> tuple[Any, Any, Any]:
    """A head of a hundred rows, not yet trained, and what it is trained on."""
    import polyrelu

    data = polyrelu.OrthonormalMixture(dim=20, positive=3, negative=2, alpha=0.1).sample(100, seed=0)
    return polyrelu.PolyReLUClassifier(width=20, epochs=5, random_state=0), data.rows().numpy(), data.y.numpy()


def fit() -> Callable[[], object]:
    """`PolyReLUClassifier.fit`."""
    model, X, y = head()
    return lambda: model.fit(X, y)


def certify() -> Callable[[], object]:
    """`PolyReLUClassifier.certify` of five rows."""
    model, X, y = head()
    model.fit(X, y)
    return lambda: model.certify(X[:5])


def calls(folder: str) -> dict[str, Callable[[], Callable[[], object]]]:
    """What is counted: each prepares and returns the call itself."""
    return {
        "flow": lambda: command("flow", *SMALL, "--out", f"{folder}/flow", "--quiet"),
        "fit": fit,
        "certify": certify,
        "reproduce": lambda: command("reproduce", "--only", "B7", "--seeds", "1", "--out", f"{folder}/all", "--quiet"),
    }


def passed(call: Callable[[], object], package: Path) -> list[tuple[str, str]]:
    """(file, function) of everything entered, in the order of the first time."""
    found: dict[tuple[str, str], None] = {}
    seen: set[Any] = set()

    def entered(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            path = Path(code.co_filename)
            name = code.co_qualname if hasattr(code, "co_qualname") else f"{code.co_name} {code.co_firstlineno}"
            is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
            if path.is_relative_to(package) and is_function:
                found[str(path.relative_to(package)), name] = None

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def count(name: str) -> list[tuple[str, str]]:
    """One path, in this process."""
    import polyrelu

    package = Path(str(polyrelu.__file__)).parent
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        calls(first)[name]()()
        return passed(calls(second)[name](), package)


def table(paths: dict[str, list[tuple[str, str]]]) -> str:
    """Markdown."""
    rows = ["| call path | files | functions |", "| --- | --- | --- |"]
    for name, path in paths.items():
        rows.append(f"| `{name}` | {len({file for file, _ in path})} | {len(path)} |")
    return "\n".join(rows)


def main() -> None:
    """Count every path in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tools.call_paths", description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write the table into docs/ARCHITECTURE.md")
    parser.add_argument("--tree", type=Path, default=ROOT, help="where the package is; this tree if it is not given")
    parser.add_argument("--one", choices=NAMES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        Path(os.environ["CALL_PATH"]).write_text(json.dumps(count(arguments.one)))
        return
    paths = {}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "path.json"
            known = {**os.environ, "CALL_PATH": str(out), "PYTHONPATH": str(arguments.tree.resolve())}
            subprocess.run([sys.executable, __file__, "--one", name], env=known, check=True, capture_output=True)
            paths[name] = [(file, function) for file, function in json.loads(out.read_text())]
    print(table(paths))
    if arguments.docs:
        text = DOCS.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}\n\n{table(paths)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
        return
    for name, path in paths.items():
        print(f"\n{name}: " + ", ".join(dict.fromkeys(file for file, _ in path)))


if __name__ == "__main__":
    main()
