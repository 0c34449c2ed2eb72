"""Definitions and tests by name: the module that defines a subject, the test files that use it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.mutants.rules import Edit, plant
from tools.mutants.targets import Target

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, TESTS = "polyrelu", "tests"


@dataclass(frozen=True)
class Mutant:
    """An error planted in ``file`` (from the root of the repository); ``number`` tells equal places apart."""

    target: str
    file: str
    edit: Edit
    number: int

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What names it in the list of equivalent ones: target: function, rule, text before and after."""
        more = f" ({self.number + 1})" if self.number else ""
        return f"{self.target}: {self.edit.function}", self.edit.rule, self.edit.before + more, self.edit.after

    @property
    def key(self) -> str:
        """A short name that changes when the module does."""
        return hashlib.sha256("\n".join((*self.place, digest(self.file))).encode()).hexdigest()[:16]


@cache
def source(file: str) -> bytes:
    """A file's content when it was first asked for: a run is about one state of the repository."""
    return (ROOT / file).read_bytes()


@cache
def digest(file: str) -> str:
    """A hash of a file's content."""
    return hashlib.sha256(source(file)).hexdigest()


@cache
def defined() -> dict[str, list[str]]:
    """Files of the package by the functions and classes they define at their top."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    return found


def home(subject: str) -> str:
    """The one file that defines ``subject``."""
    files = defined().get(subject, [])
    if len(files) != 1:
        raise SystemExit(f"target {subject}: expected one definition in {PACKAGE}, found {files or 'none'}")
    return files[0]


@cache
def users() -> dict[str, frozenset[str]]:
    """Test files, and the names of the package each one uses."""
    return {
        str(path.relative_to(ROOT)): frozenset(_used(ast.parse(path.read_bytes())))
        for path in sorted((ROOT / TESTS).rglob("test_*.py"))
    }


def _used(tree: ast.AST) -> Iterator[str]:
    """Names imported from the package, and what is asked of those names and of the package itself."""
    imported = {PACKAGE}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            imported |= {alias.asname or alias.name for alias in node.names}
            yield from (alias.name for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield node.attr


def tests_of(target: Target) -> list[str]:
    """Test files that use one of the target's names, or are called as it says."""
    return [file for file, names in users().items() if names & set(target.names) or Path(file).stem in target.files]


@cache
def mutants_of(target: Target) -> list[Mutant]:
    """All that can be planted in a target."""
    file = home(target.subject)
    edits = plant(source(file), target.kinds)
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str, str], int] = {}
    for edit in edits:
        if not _wanted(edit.function, target.only, True) or _wanted(edit.function, target.search, False):
            continue
        same = (edit.function, edit.rule, edit.before, edit.after)
        seen[same] = seen.get(same, -1) + 1
        found.append(Mutant(target.subject, file, edit, seen[same]))
    return found


def _wanted(function: str, names: Iterable[str], otherwise: bool) -> bool:
    names = tuple(names)
    return any(function == name or function.startswith(f"{name}.") for name in names) if names else otherwise
