"""Is a classifier what its class says? Proofs are read from weights, so they hold only where nothing else computes.

The class *is* the known one (the same object, not one of that name nor a subclass), its methods are the ones its
library wrote for it, the instance replaces none of them, and no hook, parametrisation or compiled call stands in
between; the same of everything inside. Known classes are looked up in ``sys.modules``: nothing is imported for it.

A method is that of its class if its code is the code that the file of the class's module has under that class and name
(``nn.ReLU.forward = nn.SELU.forward`` is not, nor is a function of any other place), or if a function of a known
library wraps such a method and no other function. Files are read by the loader that imported them, once a module; one
that has changed since no longer tells what runs, and then its methods count as replaced.

What this cannot see: functions replaced inside the module of a library (``torch.nn.functional.linear = ...``), and
code that is exchanged on purpose to look untouched.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Iterator
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, ReadOut
from polyrelu.robust.core.external_layers import (
    ACTIVATIONS,
    Diagonal,
    Kernel,
    OneVersusOne,
    SqueezeSingleLogit,
    UnitRows,
)

GENUINE_NETS = (PolyReLUNet, ReadOut, AverageClassifier, CentreClassifier)
LAYERS = frozenset({nn.Linear, nn.Identity, nn.Dropout, nn.Flatten, nn.Sequential, *ACTIVATIONS.values(), *GENUINE_NETS,
                    SqueezeSingleLogit, Diagonal, UnitRows, Kernel, OneVersusOne})  # fmt: skip
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
    "sklearn.preprocessing": (
        "StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "LabelBinarizer",
    ),
    "sklearn.decomposition": ("PCA", "IncrementalPCA", "TruncatedSVD"),
    "polyrelu.estimator.classifier": ("PolyReLUClassifier",),
}  # fmt: skip
CLASS_NAMES_ATTRIBUTE = "_label_binarizer"  # where scikit-learn keeps the classes that scores stand for; none is public
WHY_UNKNOWN = "a subclass, or another class of the same name, may compute something else"  # end of two messages
LIBRARIES = ("sklearn", "torch", "polyrelu")
WRITTEN_UNDER = {
    ("torch.nn.modules.module", "Module.forward"): "_forward_unimplemented",
    ("torch.nn.modules.module", "Module.__call__"): "Module._wrapped_call_impl",
    ("sklearn.base", "BaseEstimator._html_repr"): "estimator_html_repr",
}  # module and name in a class: the name in the module's file of the function that stands there
DEPRECATED_NEW = "deprecated._decorate_class.<locals>.wrapped"  # name of __new__ in classes sklearn will remove
PLAIN = (dict, OrderedDict)  # of parameters, buffers, layers and hooks; a subclass may answer anything


def altered(model: Any) -> str:
    """Why the class of a classifier does not tell what it computes, as a clause; "" where it does."""
    if isinstance(model, nn.Module):
        return _altered_module(model)
    kind = type(model)
    if not known(kind):
        return f"{_name(kind)} is not one of the classes that are known; {WHY_UNKNOWN}"
    said = _altered_class(kind) or _replaced(model, "it") or _renamed(model)
    if said:
        return said
    inside = [step for _, step in getattr(model, "steps", ())]
    inside += [
        getattr(model, name) for name in ("best_estimator_", "net_", CLASS_NAMES_ATTRIBUTE) if hasattr(model, name)
    ]
    plain = (step for step in inside if step is not None and not isinstance(step, str))
    return next((said for said in map(altered, plain) if said), "")


def require_genuine(net: nn.Module) -> None:
    """An InputError if ``net`` is not what its class says: nothing can be proven from its weights then."""
    said = altered(net)
    require(not said, "net", type(net).__name__, f"a net of polyrelu as it was written, since {said}")


def known(kind: type) -> bool:
    """Is this class one whose weights tell what it computes?"""
    named = ((sys.modules.get(module), name) for module, names in ESTIMATORS.items() for name in names)
    return _layer(kind) or any(module is not None and vars(module).get(name) is kind for module, name in named)


def _layer(kind: type) -> bool:
    """Is it one of LAYERS itself? A class may say that it equals another."""
    return any(kind is layer for layer in LAYERS)


def _altered_module(model: nn.Module) -> str:
    """A torch module and all layers in it."""
    if _hooked(vars(torch.nn.modules.module)):
        return "hooks are registered for all modules of torch"
    for name, layer in _layers(model, "", set()):
        kind, where = type(layer), f"its layer {name}" if name else "it"
        if not _layer(kind):
            return f"{where} is a {_name(kind)}, which is not one of the classes that are known; {WHY_UNKNOWN}"
        hooks = f"{where} has hooks" if _hooked(vars(layer)) else ""
        said = hooks or _altered_class(kind) or _strange(layer, where) or _replaced(layer, where) or _odd(layer, where)
        if said:
            return said
    return ""


def _layers(layer: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The module and all that is in it, once each, whatever it is: torch runs a function among the layers, too."""
    if id(layer) not in seen:
        seen.add(id(layer))
        yield name, layer
        inside = vars(layer).get("_modules", {}) if isinstance(layer, nn.Module) else {}
        for key, part in inside.items():
            if part is not None:
                yield from _layers(part, f"{name}.{key}" if name else key, seen)


def _strange(layer: nn.Module, where: str) -> str:
    """Attributes, parameters, buffers or layers in a dictionary of another class."""
    own = vars(layer)
    held = {name: own.get(name) for name in ("_parameters", "_buffers", "_modules")} | {"__dict__": own}
    for name, value in held.items():
        if type(value) not in PLAIN:
            return f"{name} of {where} is a {_name(type(value))}, which may answer anything"
    return ""


def _hooked(names: dict[str, Any]) -> bool:
    """Does a dictionary of hooks hold one, but for those of files? Torch has no public way to ask for them."""
    hooks = (value for name, value in names.items() if "hook" in name and "state_dict" not in name)
    return any(isinstance(value, dict) and (value or type(value) not in PLAIN) for value in hooks)


def _replaced(model: Any, where: str) -> str:
    """An attribute of the instance that hides a method, a compiled call, or a parameter of the same name.

    Names such as ``__deepcopy__`` count, whether or not the class has them: Python asks for some of them.
    """
    kind, own = type(model), vars(model)
    held = {name for name, _ in _tensors(model)} if isinstance(model, nn.Module) else set()
    for name, value in own.items():
        method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), "")
        hides = callable(method) or hasattr(type(method), "__get__") or (method is None and value is not None)
        if hides or name in held or is_special(name):
            return f"{where} has an attribute {name} of its own in place of the one of {_name(kind)}"
    hidden = next((name for name in held for base in kind.__mro__ if name in vars(base)), "")
    return f"{hidden} of {where} is hidden by an attribute of its class" if hidden else ""


def is_special(name: Any) -> bool:
    """Is this a name that Python itself looks up, like ``__deepcopy__``?"""
    return isinstance(name, str) and name.startswith("__") and name.endswith("__")


def _renamed(model: Any) -> str:
    """Scores of a perceptron or a ridge classifier that become other classes than the largest score's."""
    names = getattr(model, CLASS_NAMES_ATTRIBUTE, None)
    if names is None or not known(type(names)):
        return ""  # there is none, or one that `altered` refuses itself
    own = vars(names)
    listed = type(own.get("classes_")) is np.ndarray and np.array_equal(own["classes_"], model.classes_)
    kind = listed and own.get("y_type_") == ("binary" if len(own["classes_"]) == 2 else "multiclass")
    ends = [own.get("neg_label"), own.get("pos_label")]  # a perceptron's score of .5 must be half-way
    half = type(model).__name__ != "MLPClassifier" or ([type(end) for end in ends] == [int, int] and ends == [0, 1])
    plain = kind and half and own.get("sparse_input_") is False
    return "" if plain else f"its {CLASS_NAMES_ATTRIBUTE} names other classes than its scores do"


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
    """A method of the class, or of one it inherits from, that its library did not write for it."""
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "abc", "typing"):
            continue
        for name, value in vars(base).items():
            if not _written(value, base, name):
                return f"{name} of the class {_name(base)} was replaced"
    return ""


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
    other = DEPRECATED_NEW if name == "__new__" else WRITTEN_UNDER.get((base.__module__, here), "")
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


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
