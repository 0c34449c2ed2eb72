"""Are the methods of a class the ones its library wrote for it?

A method is that of its class if its code is the code that the file of the class's module has under that class and name
(``nn.ReLU.forward = nn.SELU.forward`` is not, nor is a function of any other place), or if a function of a known
library wraps such a method and no other function. Files are read by the loader that imported them, once a module; one
that has changed since no longer tells what runs, and then its methods count as replaced.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

LIBRARIES = ("sklearn", "torch", "polyrelu")
ELSEWHERE = {
    ("torch.nn.modules.module", "Module.forward"): "_forward_unimplemented",
    ("torch.nn.modules.module", "Module.__call__"): "Module._wrapped_call_impl",
    ("sklearn.base", "BaseEstimator._html_repr"): "estimator_html_repr",
}  # what stands in a class under another name than it was written under
NEW = "deprecated._decorate_class.<locals>.wrapped"  # the __new__ of a class that scikit-learn is going to remove


def replaced_method(kind: type) -> tuple[type, str] | None:
    """A class that ``kind`` inherits from, or itself, and the name of a method in it that its library did not write."""
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "abc", "typing"):
            continue
        for name, value in vars(base).items():
            if not _written(value, base, name):
                return base, name
    return None


def _written(value: Any, base: type, name: str) -> bool:
    """Is what stands in a class under this name what its library wrote there? Plain data is."""
    if isinstance(value, GetSetDescriptorType | MemberDescriptorType):
        return True
    if isinstance(value, property):
        parts = [part for part in (value.fget, value.fset, value.fdel) if part is not None]
        return type(value) is property and all(_written(part, base, name) for part in parts)
    if isinstance(value, staticmethod | classmethod):
        return _written(value.__func__, base, name)
    if isinstance(value, FunctionType):
        return _written_function(value, base, name)
    if callable(value) or hasattr(type(value), "__get__"):
        made = type(value).__module__.split(".")[0] == "sklearn"
        if made and type(value).__name__ == "RequestMethod":
            return name.startswith("set_") and name.endswith("_request")
        inside = [part for key, part in vars(value).items() if key in ("fn", "__wrapped__")] if made else []
        return len(inside) > 0 and all(_written(part, base, name) for part in inside)
    return True


def _written_function(value: FunctionType, base: type, name: str) -> bool:
    """The same of a function: its code is in the file under the class and the name, or it wraps one whose code is."""
    module = sys.modules.get(str(value.__globals__.get("__name__")))
    if module is None or vars(module) is not value.__globals__ or module.__name__.split(".")[0] not in LIBRARIES:
        return False
    code, here = _codes(module.__name__), f"{base.__qualname__}.{name}"
    inside = [cell for cell in map(_content, value.__closure__ or ()) if isinstance(cell, FunctionType)]
    inside += [value.__wrapped__] if hasattr(value, "__wrapped__") else []
    if inside:
        known = any(value.__code__ in several for where, several in code.items() if "<locals>" in where)
        return known and all(_written(part, base, name) for part in inside)
    home = here if module.__name__ == base.__module__ else ""
    other = NEW if name == "__new__" else ELSEWHERE.get((base.__module__, here), "")
    return any(value.__code__ in code.get(place, ()) for place in (home, other))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.cache
def _codes(module: str) -> dict[str, frozenset[CodeType]]:
    """What a module's file compiles to, by qualified name; nothing where its loader cannot say."""
    loader: Any = getattr(getattr(sys.modules[module], "__spec__", None), "loader", None)
    whole = loader.get_code(module) if hasattr(loader, "get_code") else None
    found: dict[str, frozenset[CodeType]] = {}
    for name, code in _inside(whole, "") if whole is not None else ():
        found[name] = found.get(name, frozenset()) | {code}
    return found


def _inside(code: CodeType, prefix: str) -> Iterator[tuple[str, CodeType]]:
    """Code that is made within code, with names as ``__qualname__`` gives them."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            name = prefix + part.co_name
            yield name, part
            function = part.co_flags & 1  # CO_OPTIMIZED: the body of a class has it not
            yield from _inside(part, f"{name}.<locals>." if function else f"{name}.")
