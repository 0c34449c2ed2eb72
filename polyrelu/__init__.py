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

# The subpackage that each public name is imported from when it is first used.
_SUBPACKAGES = {
    "Bracket": "robust",
    "Budget": "robust",
    "Dataset": "data",
    "InputError": "errors",
    "NearlyOrthogonalSphere": "data",
    "OrthonormalMixture": "data",
    "PolyReLUClassifier": "estimator",
    "PolyReLUNet": "nets",
    "RobustCurve": "robust",
    "RobustnessReport": "estimator",
    "Status": "train",
    "SymmetricSeparable": "data",
    "Trajectory": "train",
    "Until": "train",
    "bracket": "robust",
    "curve": "robust",
    "descend": "train",
    "dist": "robust",
    "flow": "train",
    "load": "nets",
    "load_reference": "nets",
    "save": "nets",
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
    if name in _SUBPACKAGES:
        value = getattr(importlib.import_module(f"polyrelu.{_SUBPACKAGES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'polyrelu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
