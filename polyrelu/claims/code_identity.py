"""What code a kept result comes from: the module of the experiment and every module that it imports from the package.

The import graph is read from the sources: imports of either form, anywhere in a module, relative ones too; a name taken
from a subpackage leads through its ``__init__`` to the module that defines it. What is compared is the syntax tree
without docstrings, comments, layout and imports for type checkers, so that a result counts for as long as the code
that measured it does the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

ROOT = Path(__file__).parents[2]
NAMING = ("polyrelu", "polyrelu._version")  # the public names and the number of the release measure nothing


@final
@dataclass(frozen=True)
class _Module:
    """One source file."""

    is_package: bool
    digest: str
    imports: tuple[tuple[str, str], ...]  # (module, name), the name "" for the module as a whole
    bound: dict[str, tuple[str, str]]  # by the name they have here; with those of interfaces that load names when used


def code_identity(module: str, root: Path = ROOT) -> str:
    """12 hexadecimal digits that change with the code of ``module`` or of a module that it needs."""
    text = "".join(f"{name} {_read(root, name).digest}\n" for name in sorted(modules_of(module, root)))  # type: ignore[union-attr]
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def modules_of(module: str, root: Path = ROOT) -> set[str]:
    """The module, and those of the package that it imports, directly or not."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        source = None if name in found or name in NAMING else _read(root, name)
        if source is not None:
            found.add(name)
            waiting += [_defining(root, *one) for one in source.imports]
    return found


def _defining(root: Path, module: str, name: str) -> str:
    """The module that defines what ``from module import name`` gives; the module itself if it is no package."""
    source = _read(root, module)
    if source is None or not source.is_package or not name:
        return module
    if source.bound.get(name, (module, name)) != (module, name):  # an interface may take its own modules
        return _defining(root, *source.bound[name])
    return f"{module}.{name}" if _read(root, f"{module}.{name}") else module


@cache
def _read(root: Path, module: str) -> _Module | None:
    """None for a module that is not in this package."""
    path = root.joinpath(*module.split("."))
    is_package = (path / "__init__.py").is_file()
    file = path / "__init__.py" if is_package else path.with_suffix(".py")
    if not file.is_file():
        return None
    tree = ast.parse(file.read_text(encoding="utf-8"))
    package = module if is_package else module.rpartition(".")[0]
    digest = hashlib.sha256(repr(_tree(tree)).encode()).hexdigest()
    imports = tuple((source, name) for _, source, name in _imports(_nodes(tree), package))
    bound = {local: (source, name) for local, source, name in _imports(ast.walk(tree), package)}
    return _Module(is_package, digest, imports, bound)


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str, str]]:
    """(local name, module, name) of everything that these nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((one.asname or one.name, source, "" if one.name == "*" else one.name) for one in node.names)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and everything in it that is executed."""
    yield node
    for _, value in ast.iter_fields(node):
        for child in _executed(value) if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield from _nodes(child)


def _tree(value: Any) -> Any:
    """The syntax tree as nested tuples, without what is empty: the same in every version of Python."""
    if isinstance(value, list):
        return tuple(_tree(one) for one in _executed(value))
    if not isinstance(value, ast.AST):
        return value
    fields = ((name, _tree(one)) for name, one in ast.iter_fields(value) if name not in ("ctx", "kind", "type_comment"))
    return type(value).__name__, *(field for field in fields if field[1] not in (None, ()) or field[0] == "value")


def _executed(nodes: Iterable[Any]) -> Iterator[Any]:
    """Without docstrings and imports for type checkers."""
    for node in nodes:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if not (text or types):
            yield node
