"""Arguments are what their annotations say: one check for every public function, so that none needs its own.

    @checked
    def alignment(net: PolyReLUNet, data: Dataset) -> Alignment: ...
    alignment(net, "mnist")   ->   InputError: data='mnist': expected a Dataset.

Numbers of other libraries become Python's, arrays and lists given for a tensor become one. Complex, sparse, quantised,
nested and meta tensors are refused wherever a tensor is taken. What a value means (a range, a shape, a sum) is checked
by the function itself. Sizes that no memory holds are bad input too. This module loads neither torch nor numpy.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from polyrelu.checks.tensors import check_module, plain_tensor, raise_if_memory
from polyrelu.checks.values import is_whole, value_text, whole_number
from polyrelu.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[Any], Any]  # the value as the function gets it; TypeError or ValueError if it is none of this type
LARGEST = 2**63


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which refuses arguments that are not what their annotations say, before anything is done."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        checks = _checks_of(function)
        for name, value in bound.arguments.items():
            if name in checks and value is not signature.parameters[name].default:
                bound.arguments[name] = _one(name, value, *checks[name])
        try:
            return function(*bound.args, **bound.kwargs)
        except (MemoryError, RuntimeError) as error:
            raise_if_memory(error, f"this {function.__name__}")
            raise

    return call


def check_fields(record: Any, least: int | None = None) -> None:
    """The same for the fields of a dataclass, in its ``__post_init__``; whole numbers are >= ``least`` if given."""
    kind: Any = type(record)
    checks = _checks_of(kind)
    for field in fields(record):
        given = getattr(record, field.name)
        if field.name in checks and given is not field.default:
            object.__setattr__(record, field.name, _one(field.name, given, *checks[field.name]))
        if least is not None and field.type in (int, "int"):
            whole_number(field.name, getattr(record, field.name), least)


def _one(name: str, value: Any, check: Check, expected: str) -> Any:
    try:
        return check(value)
    except InputError as error:
        raise InputError(re.sub(r"^(tensor|net)\b", name, str(error))) from None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(f"{name}={value_text(value)}: expected {expected}.") from None


@functools.cache
def _checks_of(thing: Any) -> Mapping[str, tuple[Check, str]]:
    """Check and words for every parameter or field whose annotation says something that can be checked."""
    found: dict[str, tuple[Check, str]] = {}
    for base in reversed(getattr(thing, "__bases__", ())):  # a dataclass has the fields of its bases
        found |= _checks_of(base)
    module = inspect.getmodule(thing)
    names = {**vars(typing), **(vars(module) if module else {}), **getattr(thing, "__globals__", {})}
    for name, annotation in inspect.get_annotations(thing).items():
        try:
            # the text of an annotation in this package's own source, never of a file
            kind = eval(annotation, names) if isinstance(annotation, str) else annotation
        except (NameError, TypeError):
            continue  # imported for type checkers only
        made = None if name == "return" else _check(kind)
        if made is not None:
            found[name] = (made, _words(kind))
    return found


def _check(kind: Any) -> Check | None:
    """The check of one annotation; None if anything is allowed."""
    if kind is Any:
        return None
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        if {str, Path} <= set(typing.get_args(kind)):
            kinds = [part for part in typing.get_args(kind) if part is not str]
            return _check(functools.reduce(operator.or_, kinds))
        parts = [made for part in typing.get_args(kind) if (made := _check(part)) is not None]
        return functools.partial(_any_of, parts) if len(parts) == len(typing.get_args(kind)) else None
    if typing.get_origin(kind) is typing.Literal:
        return functools.partial(_among, typing.get_args(kind))
    if kind in PLAIN:
        return PLAIN[kind][0]
    if typing.get_origin(kind) is Callable or kind is Callable:
        return functools.partial(_instance, Callable)
    if typing.get_origin(kind) in (Sequence, Iterable, list, tuple):
        return _items(typing.get_origin(kind), typing.get_args(kind))
    if typing.get_origin(kind) in (Mapping, dict):
        return functools.partial(_instance, Mapping)
    if inspect.isclass(kind) and getattr(kind, "_is_protocol", False):
        return functools.partial(_like, kind)
    if torch := sys.modules.get("torch"):  # else nothing of it is in an annotation
        if kind is torch.Tensor:
            return functools.partial(plain_tensor, "tensor")
        if inspect.isclass(kind) and issubclass(kind, torch.nn.Module):
            return functools.partial(_module, kind)
    return functools.partial(_instance, kind) if inspect.isclass(kind) and kind is not object else None


def _any_of(checks: Sequence[Check], value: Any) -> Any:
    reason: Exception = TypeError()
    for check in checks:
        try:
            return check(value)
        except InputError as error:  # it is of the type, and odd: that is said
            reason = error
        except (TypeError, ValueError, OverflowError, RuntimeError):
            continue
    raise reason


def _among(allowed: tuple[Any, ...], value: Any) -> Any:
    return allowed[[*allowed].index(_instance(str, value))]


def _real(value: Any) -> Any:
    """A real number; one that is no Python number, or has more digits than a float, as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    plain: Any = value
    return plain if type(plain) is float or (type(plain) is int and abs(plain) <= 2**53) else float(plain)


def _whole(value: Any) -> int:
    if not is_whole(value, -LARGEST) or int(value) >= LARGEST:
        raise TypeError
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):  # numpy's own
        raise TypeError
    return bool(value)


def _path(value: Any) -> Any:
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise TypeError
    os.fsencode(value)
    return value


def _items(origin: Any, kinds: tuple[Any, ...]) -> Check:
    each = [_check(kind) for kind in kinds if kind is not Ellipsis]
    alike = len(kinds) == 1 or (len(kinds) == 2 and kinds[1] is Ellipsis)
    check = _check(kinds[0]) if alike and inspect.isclass(kinds[0]) and not typing.get_args(kinds[0]) else None

    def items(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise TypeError
        several = value if isinstance(value, list | tuple) else list(value)
        if origin is tuple and not alike and len(several) != len(kinds):
            raise TypeError
        made = each if not alike else [check] * len(several)
        return type(several)(one if test is None else test(one) for test, one in zip(made, several, strict=True))

    return items


def _instance(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _module(kind: Any, value: Any) -> Any:
    return check_module(_instance(kind, value))


def _like(protocol: Any, value: Any) -> Any:
    members = [name for base in protocol.__mro__ for name in vars(base) if getattr(base, "_is_protocol", False)]
    named = [name for name in members if not name.startswith("_") or name in ("__call__", "__len__", "__getitem__")]
    plain = type(value).__module__ == "builtins" or isinstance(value, type)
    if plain or not all(hasattr(value, name) for name in named):
        raise TypeError
    return value


def _words(kind: Any) -> str:
    """An annotation as a person would say it."""
    several = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else ()
    if several:
        return " or ".join(_words(part) for part in several)
    if kind in PLAIN:
        return PLAIN[kind][1]
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(kind)))
    if typing.get_origin(kind) in (Sequence, Iterable, list, tuple):
        return "a list" + (f", each {_words(typing.get_args(kind)[0])}" if typing.get_args(kind) else "")
    name = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


NONE: tuple[Check, str] = (functools.partial(_instance, type(None)), "None")
PLAIN: dict[Any, tuple[Check, str]] = {  # the check of a plain type and what a person calls it
    None: NONE,
    type(None): NONE,
    float: (_real, "a number"),
    int: (_whole, "a whole number"),
    bool: (_flag, "True or False"),
    str: (functools.partial(_instance, str), "a text"),
    Path: (_path, "a path"),
}
