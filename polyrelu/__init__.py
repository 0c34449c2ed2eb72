"""polyrelu: what did gradient training make a classifier learn, and how far can it be trusted?

    mix = polyrelu.OrthonormalMixture(dim=1000, positive=6, negative=4, alpha=0.1)
    train = mix.sample(20_000, seed=0)
    net = polyrelu.PolyReLUNet(dim=1000, width=2000, p=3, init="balanced", scale=1e-7, seed=0)
    out = polyrelu.flow(net, train, loss="exp", until=1e-2)

Names are imported when first used, so that ``import polyrelu`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from polyrelu._version import __version__

if TYPE_CHECKING:
    from polyrelu.data import Dataset, NearlyOrthogonalSphere, OrthonormalMixture, SymmetricSeparable
    from polyrelu.errors import InputError
    from polyrelu.estimator import PolyReLUClassifier, RobustnessReport
    from polyrelu.nets import PolyReLUNet, load, load_reference, save
    from polyrelu.robust import Bracket, Budget, RobustCurve, bracket, curve, dist
    from polyrelu.train import Status, Trajectory, Until, descend, flow

_SUBPACKAGES = {  # the public names that are imported from each subpackage when they are first used
    "data": ("Dataset", "NearlyOrthogonalSphere", "OrthonormalMixture", "SymmetricSeparable"),
    "errors": ("InputError",),
    "estimator": ("PolyReLUClassifier", "RobustnessReport"),
    "nets": ("PolyReLUNet", "load", "load_reference", "save"),
    "robust": ("Bracket", "Budget", "RobustCurve", "bracket", "curve", "dist"),
    "train": ("Status", "Trajectory", "Until", "descend", "flow"),
}

__all__ = [
    "Bracket",
    "Budget",
    "Dataset",
    "InputError",
    "NearlyOrthogonalSphere",
    "OrthonormalMixture",
    "PolyReLUClassifier",
    "PolyReLUNet",
    "RobustCurve",
    "RobustnessReport",
    "Status",
    "SymmetricSeparable",
    "Trajectory",
    "Until",
    "__version__",
    "bracket",
    "curve",
    "descend",
    "dist",
    "flow",
    "load",
    "load_reference",
    "save",
]


def __getattr__(name: str) -> Any:
    for subpackage, names in _SUBPACKAGES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"polyrelu.{subpackage}"), name)
            return value
    raise AttributeError(f"module 'polyrelu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
