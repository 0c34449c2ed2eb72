"""Functions of the package by their public names, wherever they are defined."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

PACKAGE = "polyrelu"


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package: name and source file; nothing but packages is imported."""
    package = importlib.import_module(PACKAGE)
    for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        spec = importlib.util.find_spec(found.name)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            yield found.name, Path(spec.origin)


@cache
def definitions() -> dict[str, tuple[str, ...]]:
    """Public functions at the top of a module -> the modules that define one of this name."""
    found: dict[str, tuple[str, ...]] = {}
    for module, source in modules():
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name] = (*found.get(node.name, ()), module)
    return found


def located(name: str, *parameters: str) -> Callable[..., Any]:
    """The function called ``name`` whose first parameters are called ``parameters``; Class.method of a public class."""
    owner, _, method = name.rpartition(".")
    places = definitions().get(name, ()) if not owner else (PACKAGE,) * hasattr(importlib.import_module(PACKAGE), owner)
    for module in places:
        place = importlib.import_module(module)
        function: Any = getattr(getattr(place, owner) if owner else place, method, None)
        if function is not None and tuple(inspect.signature(function).parameters)[: len(parameters)] == parameters:
            return cast("Callable[..., Any]", function)
    where = ", ".join(definitions().get(name, ())) or "nowhere"
    raise LookupError(
        f"{PACKAGE} has no function {name}({', '.join((*parameters, '...'))}); one of that name is defined: {where}. "
        "If the certificate was renamed, say so in tools/campaign/certificates.py."
    )
