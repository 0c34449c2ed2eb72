"""The tables of files in docs/architecture, made of the first sentence of every module.

    make tables     writes them again (python -m tools.file_tables); a test says when they are old

A page DOCS/NAME.md lists the modules of polyrelu/NAME between its two marks; shared.md those beside the subpackages.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, PAGES = ROOT / "polyrelu", ROOT / "docs" / "architecture"
BEGIN, END = "<!-- files -->", "<!-- end of files -->"
SHARED = (
    "errors.py",
    "_version.py",
    "lazy.py",
    "interrupt.py",
    "progress.py",
    "threads.py",
    "checks",
    "files.py",
    "arrays.py",
)


def modules(page: str) -> list[Path]:
    """The files that a page lists; interfaces of folders only where they hold more than names."""
    tops = [PACKAGE / name for name in SHARED] if page == "shared" else [PACKAGE / page]
    found = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))]
    return [path for path in found if path.name != "__init__.py"]


def first_sentence(path: Path) -> str:
    """Of the docstring of a module, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    found = re.match(r"((?:\([^)]*\)|[^(])*?[.:!?])(?= [A-Z`]|$)", paragraph)  # what is in brackets stays whole
    return (found[1] if found else paragraph).rstrip(".:").replace("``", "`").replace("|", r"\|")


def table(page: str) -> str:
    """Markdown."""
    base = PACKAGE if page == "shared" else PACKAGE / page
    rows = [f"| `{path.relative_to(base)}` | {first_sentence(path)} |" for path in modules(page)]
    return "\n".join(["| file | what it holds |", "| --- | --- |", *rows])


def renewed(text: str, page: str) -> str:
    """A page with its table as it is now."""
    before, mark, rest = text.partition(BEGIN)
    assert mark and END in rest, f"{page}: no marks for the table of files"
    return f"{before}{BEGIN}\n{table(page)}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write every page again."""
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(renewed(path.read_text(encoding="utf-8"), path.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
