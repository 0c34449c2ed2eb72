"""Every function, class and method that people may call, found by walking the package: no list to keep in step.

A package that says what is public (``__all__``) is taken at its word, but for `INTERNAL`: what only other subpackages
call, with arguments that were checked before. In one that does not, a function or class of a module without a leading
underscore is public if all it needs is what people have: nets, data, tensors, numbers, texts.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, final

import polyrelu

SKIPPED = {"checks", "claims", "cli", "crosscheck", "descent", "explorer", "gradient_flow", "head_training", "pages",
           "paper_figures", "robustness_report", "workflows"}  # fmt: skip
FIRST = {"net", "score", "model", "f", "X", "data", "trajectory", "history", "bracket", "brackets", "centres", "W",
         "directions", "matrix", "values", "log_contributions"}  # fmt: skip
OWNED = {"Tensor", "Dataset", "nn.Module", "Module", "Net", "PolyReLUNet", "Score", "Trajectory", "History",
         "Bracket",
         "float", "int", "str", "bool", "None", "Path", "ArrayLike", "Any", "OrthonormalMixture", "Sequence",
         "ReducedNet",
         "Self", "Until", "torch.Tensor", "npt.NDArray", "slice", "torch.dtype", "PoolSource", "Array", "Mapping",
         "dict"}  # fmt: skip
INTERNAL = {"Arithmetic", "AttackResult", "AttackTask", "Band", "DecisionScore", "SqueezeSingleLogit", "LabelledRows",
            "LipschitzConstants", "Margins", "NeuronSum", "Opaque", "RadiusBounds", "RadiusRange", "ReducedNet",
            "ReferenceDirections", "Table.column", "Table.take", "alignment_index", "answer", "applicable",
            "as_float64", "boundary_attack", "by_class", "call_with_feature_names", "certificate", "certify.certify",
            "check_bounds", "check_finite", "check_initialised", "check_norm", "check_points", "check_pool",
            "class_indices", "class_margins", "class_numbers", "class_sums", "classes_from_json",
            "classes_to_json", "common_span", "copied", "decisions", "digest", "dominant_neurons", "dual",
            "error_summary", "exact_sums", "fill", "fitting", "flip_radii", "general_attack", "gradient_to_margin",
            "images", "inputs", "krylov_radius", "krylov_radius_against", "label_codes", "lengths", "load_image",
            "log_add", "log_softplus", "logits", "linear_minimiser", "margin_of", "number_text", "odd_map",
            "orthonormal_basis", "phi", "polar_form", "power_text", "predicted_labels", "probe_address", "project",
            "loss_slopes", "range_text", "read_rows", "recheck", "require_genuine", "restore", "steepest",
            "steps_to_classes", "sweep.encode", "tangent_part", "to_hyperplane", "unit",
            "unit_rows", "weighted_quantiles", "with_neurons"}  # fmt: skip


@final
@dataclass(frozen=True)
class Name:
    """A public name: ``polyrelu.data.read``, or a method ``polyrelu.data.Dataset.rows`` (``owner`` is its class)."""

    path: str
    thing: Callable[..., Any]
    owner: type | None = None

    @property
    def group(self) -> str:
        """The sub-package it is counted under."""
        words = self.path.split(".")
        return words[1] if len(words) > 2 and words[1].islower() else "polyrelu"


def internal(path: str) -> bool:
    """Is it a name that no person calls?"""
    *_, owner, name = path.split(".")
    return name in INTERNAL or f"{owner}.{name}" in INTERNAL or (owner[0].isupper() and owner in INTERNAL)


def public() -> dict[str, Name]:
    """Every public callable by the name people call it with, each object once."""
    found: dict[str, Name] = {}
    seen: set[int] = set()
    for path, thing in _things():
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if inspect.isfunction(thing):
            found[path] = Name(path, thing)
        elif inspect.isclass(thing) and not _only_a_type(thing):
            found[path] = Name(path, thing)
            found |= {name.path: name for name in _methods(path, thing)}
    return dict(sorted(found.items()))


def _things() -> Iterator[tuple[str, Any]]:
    for name in sorted(polyrelu.__all__):
        yield f"polyrelu.{name}", getattr(polyrelu, name)
    yield from _inside("polyrelu", polyrelu)


def _inside(path: str, package: ModuleType) -> Iterator[tuple[str, Any]]:
    """Names of the packages below; private modules and commands are left out."""
    for module in pkgutil.iter_modules(package.__path__):
        below = f"{path}.{module.name}"
        if module.name.startswith("_") or module.name in SKIPPED:
            continue
        if not module.ispkg and hasattr(package, "__all__"):
            continue
        said = importlib.import_module(below)
        if (told := getattr(said, "__all__", None)) is not None:
            for name in sorted(told):
                if not internal(f"{below}.{name}"):
                    yield f"{below}.{name}", getattr(said, name)
        elif not module.ispkg:
            yield from _defined(below, said)
        if module.ispkg:
            yield from _inside(below, said)


def _defined(path: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, thing in sorted(vars(module).items()):
        own = inspect.isfunction(thing) and thing.__module__ == module.__name__ and not name.startswith("_")
        if own and not internal(f"{path}.{name}") and _owned(thing, FIRST):
            yield f"{path}.{name}", thing


def _owned(function: Callable[..., Any], first: Collection[str] = ()) -> bool:
    """Does it need only what people have?"""
    parameters = list(inspect.signature(function).parameters.values())
    parameters = [one for one in parameters if one.name not in ("self", "cls")]
    needed = [one for one in parameters if one.default is one.empty]
    words = [word for one in needed for word in re.findall(r"[A-Za-z_][\w.]*", str(one.annotation))]
    return bool(parameters) and all(map(OWNED.__contains__, words)) and (not first or parameters[0].name in first)


def _methods(path: str, kind: type) -> Iterator[Name]:
    for name in dir(kind):
        given = inspect.getattr_static(kind, name)
        plain = given.__func__ if isinstance(given, classmethod | staticmethod) else given
        ours = inspect.isfunction(plain) and plain.__module__.startswith("polyrelu.")
        if not ours or (name.startswith("_") and name != "__call__") or internal(f"{path}.{name}"):
            continue
        if inspect.isfunction(given) and (_owned(plain) or name in ("__call__", "fit")):
            yield Name(f"{path}.{name}", plain, kind)
        elif not inspect.isfunction(given) and _owned(plain):
            yield Name(f"{path}.{name}", getattr(kind, name))


def _only_a_type(kind: type) -> bool:
    """Errors, enumerations, protocols and abstract classes: nobody makes one."""
    if issubclass(kind, BaseException) or inspect.isabstract(kind):
        return True
    return any(base.__module__ == "enum" for base in kind.__mro__) or bool(getattr(kind, "_is_protocol", False))
