"""polyrelu: what did gradient training make a classifier learn, and how far can it be trusted?

    mix = polyrelu.OrthonormalMixture(dim=1000, positive=6, negative=4, alpha=0.1)
    train = mix.sample(20_000, seed=0)
    net = polyrelu.PolyReLUNet(dim=1000, width=2000, p=3, init="balanced", scale=1e-7, seed=0)
    out = polyrelu.flow(net, train, loss="exp", until=1e-2)

Names and subpackages (``polyrelu.data``, ``polyrelu.robust``, ...) are imported when first used, so that
``import polyrelu`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyrelu._version import __version__
from polyrelu.lazy import lazy_names

if TYPE_CHECKING:
    from polyrelu import bias as bias
    from polyrelu import claims as claims
    from polyrelu import data as data
    from polyrelu import estimator as estimator
    from polyrelu import nets as nets
    from polyrelu import report as report
    from polyrelu import robust as robust
    from polyrelu import sweep as sweep
    from polyrelu import train as train
    from polyrelu.data import Dataset, NearlyOrthogonalSphere, OrthonormalMixture, SymmetricSeparable
    from polyrelu.errors import InputError
    from polyrelu.estimator import PolyReLUClassifier, RobustnessReport
    from polyrelu.nets import PolyReLUNet, load, load_reference, save
    from polyrelu.robust import Bracket, Budget, RobustCurve, bracket, curve, dist
    from polyrelu.train import Status, Trajectory, Until, descend, flow

_SUBPACKAGES = {  # each with the names that stand here as well
    "bias": (),
    "claims": (),
    "data": ("Dataset", "NearlyOrthogonalSphere", "OrthonormalMixture", "SymmetricSeparable"),
    "errors": ("InputError",),
    "estimator": ("PolyReLUClassifier", "RobustnessReport"),
    "nets": ("PolyReLUNet", "load", "load_reference", "save"),
    "report": (),
    "robust": ("Bracket", "Budget", "RobustCurve", "bracket", "curve", "dist"),
    "sweep": (),
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


__getattr__ = lazy_names(__name__, _SUBPACKAGES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
