"""The functions a sweep may call: marked, found by name, and with a version that changes when their source does.

version = "<version of the distribution>+<first 12 hex digits of sha256(sources)>"
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from polyrelu._version import __version__
from polyrelu.checks import checked
from polyrelu.errors import InputError, nearest, require

F = TypeVar("F", bound=Callable[..., Any])
ATTRIBUTE, VERSION = "__sweepable_sources__", "__sweepable_version__"


@checked
def sweepable(sources: tuple[str, ...] = (), version: str = "") -> Callable[[F], F]:
    """Mark ``f(**settings) -> plain value`` as one that sweeps may call; no other function can be named in a sweep.

    sources : modules or packages whose source its results depend on; the function's own module always counts
    version : instead of a hash of sources, for a function whose settings name the code that its results depend on
    """

    def mark(function: F) -> F:
        setattr(function, ATTRIBUTE, tuple(sources))
        setattr(function, VERSION, version)
        return function

    return mark


@checked
def find_function(name: str) -> Callable[..., Any]:
    """The marked function called "package.module:name"."""
    module_name, _, attribute = name.partition(":")
    require(
        re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*", name) is not None,
        "function", name, "a name such as package.module:function",
    )  # fmt: skip
    require(module_name != "__main__", "function", name, "a module that can be imported: move it out of the script")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(f"function={name}: there is no module {error.name} to import.") from None
        raise InputError(
            f"function={name}: importing {module_name} failed ({type(error).__name__}: {error})."
        ) from None
    function: Callable[..., Any] | None = getattr(module, attribute, None)
    if function is None or not hasattr(function, ATTRIBUTE):
        marked = [key for key, value in vars(module).items() if hasattr(value, ATTRIBUTE)]
        there = "is not marked with @polyrelu.sweep.sweepable()" if function is not None else "does not exist"
        hint = nearest(attribute, marked) or (f"; it has {', '.join(marked)}" if marked else "")
        raise InputError(f"function={name}: expected a function of {module_name} that sweeps may call; "
                         f"{attribute} {there}{hint}.")  # fmt: skip
    return function


def check_settings(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse settings that the function does not take, and the lack of those it needs."""
    parameters = inspect.signature(function).parameters.values()
    known = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    anything = any(one.kind is one.VAR_KEYWORD for one in parameters)
    for key in settings:
        if key not in known and not anything:
            takes = f"a setting of {name}, which takes {', '.join(known) or 'none'}{nearest(key, known)}"
            raise InputError(f"{key}={settings[key]}: expected {takes}.")
    needed = [one.name for one in parameters if one.name in known and one.default is one.empty]
    missing = [key for key in needed if key not in settings]
    require(not missing, "settings", dict(settings), f"{' and '.join(missing)} as well, {name} needs it")


@checked
def source_version(function: Callable[..., Any]) -> str:
    """Version of the function's distribution and a hash of every source file its results depend on.

    Or the version that it was marked with.
    """
    if marked := getattr(function, VERSION, ""):
        return str(marked)
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    written = package in sys.modules and hasattr(sys.modules[package], "__file__")
    require(written, "function", getattr(function, "__name__", function), "a function of a module in a file")
    files: dict[str, Path] = {}
    for name in (function.__module__, *getattr(function, ATTRIBUTE, ())):
        files.update(_files(name))
    content = hashlib.sha256()
    for path in sorted(files):
        source = files[path].read_bytes()
        content.update(f"{path} {len(source)}\n".encode() + source)
    return f"{_release(package)}+{content.hexdigest()[:12]}"


def _release(package: str) -> str:
    if package == "polyrelu":
        return __version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "0"


def _files(name: str) -> dict[str, Path]:
    """The .py files of a module or package by their path from where packages are imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise InputError(f"sources={name}: expected a module or package that can be imported.")
    path = name.replace(".", "/")
    if spec.submodule_search_locations is None:
        return {f"{path}.py": Path(str(spec.origin))}
    return {
        f"{path}/{file.relative_to(folder).as_posix()}": file
        for folder in map(Path, spec.submodule_search_locations)
        for file in folder.rglob("*.py")
    }
