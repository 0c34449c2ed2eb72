"""Is a classifier what its class says? Proofs are read from weights, so they hold only where nothing else computes.

The class *is* the known one (the same object, not one of that name nor a subclass), its methods are the ones its
library wrote, the instance replaces none of them, and no hook, parametrisation or compiled call stands in between;
the same of everything inside. Known classes are looked up in ``sys.modules``: nothing is imported to compare with.

What this cannot see: functions replaced inside the module of a library (``torch.nn.functional.linear = ...``), and
code that is exchanged on purpose to look untouched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, ReadOut
from polyrelu.robust._foreign_layers import ACTIVATIONS, Diagonal, Duels, Flat, Kernel, UnitRows

NETS = (PolyReLUNet, ReadOut, AverageClassifier, CentreClassifier)
LAYERS = frozenset({nn.Linear, nn.Identity, nn.Dropout, nn.Flatten, nn.Sequential, *ACTIVATIONS.values(), *NETS,
                    Flat, Diagonal, UnitRows, Kernel, Duels})  # fmt: skip
ESTIMATORS = {
    "sklearn.linear_model": (
        "LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier",
        "Perceptron", "PassiveAggressiveClassifier",
    ),
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis",),
    "sklearn.svm": ("LinearSVC", "SVC", "NuSVC"),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.model_selection": (
        "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
    ),
    "sklearn.preprocessing": ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer"),
    "sklearn.decomposition": ("PCA", "IncrementalPCA", "TruncatedSVD"),
    "polyrelu.estimator": ("PolyReLUClassifier",),
}  # fmt: skip
LIBRARIES = ("sklearn", "torch", "polyrelu")
BETWEEN = (*LIBRARIES, "contextlib", "functools", "typing_extensions", "warnings")  # where their decorators come from


def altered(model: Any) -> str:
    """Why the class of a classifier does not tell what it computes, as a clause; "" where it does."""
    if isinstance(model, nn.Module):
        return _altered_module(model)
    kind = type(model)
    if not known(kind):
        return f"{_name(kind)} is not one of the classes that are known, by identity and not by name"
    said = _altered_class(kind) or _replaced(model, "it")
    if said:
        return said
    inside = [step for _, step in getattr(model, "steps", ())]
    inside += [getattr(model, name) for name in ("best_estimator_", "net_") if hasattr(model, name)]
    plain = (step for step in inside if step is not None and not isinstance(step, str))
    return next((said for said in map(altered, plain) if said), "")


def require_genuine(net: nn.Module) -> None:
    """An InputError if ``net`` is not what its class says: nothing can be proven from its weights then."""
    said = altered(net)
    require(not said, "net", type(net).__name__, f"a net of polyrelu as it was written, since {said}")


def known(kind: type) -> bool:
    """Is this class one whose weights tell what it computes?"""
    named = ((sys.modules.get(module), name) for module, names in ESTIMATORS.items() for name in names)
    return kind in LAYERS or any(module is not None and vars(module).get(name) is kind for module, name in named)


def _altered_module(model: nn.Module) -> str:
    """A torch module and all layers in it."""
    if _hooked(vars(torch.nn.modules.module)):
        return "hooks are registered for all modules of torch"
    for name, layer in model.named_modules():
        kind, where = type(layer), f"its layer {name}" if name else "it"
        if kind not in LAYERS:
            return f"{where} is a {_name(kind)}, which is not one of the classes that are known, by identity"
        hooks = f"{where} has hooks" if _hooked(vars(layer)) else ""
        said = hooks or _altered_class(kind) or _replaced(layer, where) or _odd(layer, where)
        if said:
            return said
    return ""


def _hooked(names: dict[str, Any]) -> bool:
    """Does a dictionary of hooks hold one, but for those of files? Torch has no public way to ask for them."""
    hooks = (value for name, value in names.items() if "hook" in name and "state_dict" not in name)
    return any(isinstance(value, dict) and value for value in hooks)


def _replaced(model: Any, where: str) -> str:
    """An attribute of the instance that hides a method, a compiled call, or a parameter of the same name."""
    kind, own = type(model), vars(model)
    held = {name for name, _ in _tensors(model)} if isinstance(model, nn.Module) else set()
    for name, value in own.items():
        method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), "")
        hides = callable(method) or hasattr(type(method), "__get__") or (method is None and value is not None)
        if hides or name in held:
            return f"{where} has an attribute {name} of its own in place of the one of {_name(kind)}"
    return ""


def _tensors(layer: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers of the layer itself, as they are registered."""
    yield from layer.named_parameters(recurse=False, remove_duplicate=False)
    yield from layer.named_buffers(recurse=False, remove_duplicate=False)


def _odd(layer: nn.Module, where: str) -> str:
    """Weights that are no plain finite real numbers."""
    for name, tensor in _tensors(layer):
        if type(tensor) not in (Tensor, nn.Parameter):
            return f"{name} of {where} is a {_name(type(tensor))}, which may compute anything"
        if tensor.is_meta or tensor.layout != torch.strided or tensor.is_complex() or tensor.is_quantized:
            return f"{name} of {where} is not a dense tensor of real numbers"
        if not bool(tensor.isfinite().all()):
            return f"{name} of {where} holds NaN or infinity"
    shapes = [tensor.ndim for name, tensor in _tensors(layer) if name == "weight"]
    return f"weight of {where} is not a matrix" if type(layer) is nn.Linear and shapes != [2] else ""


def _altered_class(kind: type) -> str:
    """A method of the class, or of one it inherits from, that its library did not write."""
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "abc", "typing"):
            continue
        for name, value in vars(base).items():
            if not _theirs(value):
                return f"{name} of the class {_name(base)} was replaced"
    return ""


def _theirs(value: Any) -> bool:
    """Does what stands in a class come from a library known here, and all that it wraps? Plain data does."""
    if isinstance(value, property):
        return all(_theirs(part) for part in (value.fget, value.fset, value.fdel) if part is not None)
    if isinstance(value, staticmethod | classmethod):
        return _theirs(value.__func__)
    if isinstance(value, FunctionType):
        space, wrapped = value.__globals__, getattr(value, "__wrapped__", None)
        name = str(space.get("__name__"))
        module = sys.modules.get(name)
        files = (value.__code__.co_filename, str(space.get("__file__")))
        written = module is not None and vars(module) is space and len({PurePath(file).stem for file in files}) == 1
        allowed = BETWEEN if wrapped is not None else LIBRARIES
        return written and name.split(".")[0] in allowed and (wrapped is None or _theirs(wrapped))
    if isinstance(value, GetSetDescriptorType | MemberDescriptorType):
        return True
    if callable(value) or hasattr(type(value), "__get__"):
        wrapped = getattr(value, "__wrapped__", None)
        return type(value).__module__.split(".")[0] in LIBRARIES and (wrapped is None or _theirs(wrapped))
    return True


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
