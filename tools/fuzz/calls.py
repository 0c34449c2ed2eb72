"""One call with bad values: a public name, good arguments, one or two of them replaced."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.fuzz import goods
from tools.fuzz.bads import bad
from tools.fuzz.names import Name, public

WORK = goods.LIMITS | {"starts", "samples", "count", "most", "others", "tol", "seconds", "patience", "batch", "until",
                       "rtol", "time", "record", "checkpoints", "widest", "log10_loss", "limit", "restarts",
                       "surrogate",
                       "last", "blocks"}  # fmt: skip
VARIANTS: dict[str, tuple[Any, ...]] = {  # other good values, which lead elsewhere
    "method": ("gd", "sgd", "adam"), "loss": ("exp", "logistic", "cross_entropy", "squared"),
    "solver": ("adam", "flow"),
    "norm": (1, 2, 1.0, 2.0, float("inf"), "inf", "1"), "p": (1.0, 1.5, 2.0, 3.0, 4.0, 1, 2, 3),
    "readout": ("max", "sum"),
    "init": ("gaussian", "balanced", "kaiming", "zeros", "rows", "random"), "rule": ("sum", "max"),
    "c": ("best", "published"),
    **dict.fromkeys(("loss_based", "bias", "normalise_input", "early_stopping", "balanced", "lazy", "attacked",
                     "merge",
                     "drop", "offset", "centre", "compare", "call"), (True, False)),
}  # fmt: skip
PLANS = (1, 1, 1, 1, 1, 1, 1, 2, 2, 0)  # how many of the arguments are bad


@cache
def names() -> dict[str, Name]:
    """All public names."""
    return public()


def prepared(path: str, source: np.random.Generator, folder: Path) -> tuple[str, Callable[[], Any]]:
    """What is called, in words, and the call itself."""
    name = names()[path]
    goods.write_files(folder)
    tail = ".".join(path.split(".")[-2 if name.owner or path.split(".")[-2][0].isupper() else -1 :])
    given, said = _arguments(tail, inspect.signature(name.thing), source)
    if name.owner is not None:
        given.pop("self", None)
        fresh = name.owner.__name__ == "PolyReLUClassifier" and source.random() < 0.2
        owner = name.owner() if fresh else copy.deepcopy(goods.instance(name.owner))
        return f"{path}({said})", lambda: _settled(getattr(owner, path.split(".")[-1])(**given))
    return f"{path}({said})", lambda: _used(name.thing, name.thing(**given))


def _arguments(tail: str, signature: inspect.Signature, source: np.random.Generator) -> tuple[dict[str, Any], str]:
    listed = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD and one.name != "self"]
    given = {one.name: copy.deepcopy(goods.good(one.name, tail)) for one in listed if goods.needed(one)}
    for one in listed:
        options = [value for value in VARIANTS.get(one.name, ()) if type(value) is type(one.default)]
        if options and source.random() < 0.3:
            given[one.name] = options[source.integers(len(options))]
    count = min(PLANS[source.integers(len(PLANS))], len(listed))
    words = []
    for place in source.permutation(len(listed))[:count].tolist():
        one = listed[place]
        like = given.get(one.name, one.default)
        given[one.name] = bad(like, source, one.name not in WORK)
        words.append(f"{one.name}={shown(given[one.name])}")
    return {key: value for key, value in given.items() if value is not goods.MISSING}, ", ".join(words)


def _used(thing: Callable[..., Any], made: Any) -> Any:
    """What was made is also used: an object that was accepted with bad settings must still answer."""
    rows = goods.world()["data"]
    X, y = rows.rows(0, 6).clone(), rows.y[:6].clone()
    if not inspect.isclass(thing):
        return _settled(made)
    if hasattr(made, "fit") and hasattr(made, "predict"):
        return made.fit(rows.rows().numpy(), rows.y.numpy()).predict(X.numpy())
    if hasattr(made, "sample"):
        return made.sample(8, 0)
    if isinstance(made, torch.nn.Module):
        whole = type(made).forward is not torch.nn.Module.forward
        return made(X) if whole and getattr(made, "dim", None) == X.shape[1] else None
    if callable(made) and "score" in inspect.signature(made).parameters:
        radius = {"radius": 0.1} if "radius" in inspect.signature(made).parameters else {}
        return made(goods.world()["net"], X, y, **radius)
    return None


def _settled(result: Any) -> Any:
    """Iterators are read through."""
    return [one for _, one in zip(range(50), result, strict=False)] if isinstance(result, Iterator) else result


def shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, torch.Tensor) and not value.is_nested:
        return f"{value.layout} {value.dtype} {tuple(value.shape)} {value.device}".replace("torch.", "")
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape}"
    try:
        return f"{type(value).__name__} {value!r:.80}".replace("\n", " ")
    except Exception:  # what cannot be shown is still called with
        return type(value).__name__
