"""The table of certificates, and one call for all of them."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, ReadOut
from polyrelu.robust.certify.branch_and_bound import BranchAndBound
from polyrelu.robust.certify.closed_form import AverageClosedForm, CentreClosedForm
from polyrelu.robust.certify.contract import Certificate, Tier
from polyrelu.robust.certify.krylov import Krylov
from polyrelu.robust.certify.linear import Linear, LinearOrLipschitz
from polyrelu.robust.certify.lipschitz import RootLipschitz
from polyrelu.robust.certify.quadratic import Quadratic
from polyrelu.robust.certify.sub_classes import SubClasses
from polyrelu.robust.core.arithmetic import REAL, Arithmetic

CERTIFICATES: dict[str, Certificate] = {
    "lipschitz": RootLipschitz(),
    "linear": Linear(),
    "linear-or-lipschitz": LinearOrLipschitz(),
    "quadratic": Quadratic(),
    "krylov": Krylov(),
    "branch-and-bound": BranchAndBound(),
    "average-closed-form": AverageClosedForm(),
    "centre-closed-form": CentreClosedForm(),
    "sub-classes-linear-or-lipschitz": SubClasses(LinearOrLipschitz()),
    "sub-classes-quadratic": SubClasses(Quadratic()),
    "sub-classes-krylov": SubClasses(Krylov()),
    "sub-classes-branch-and-bound": SubClasses(BranchAndBound()),
}


def applicable(tiers: Iterable[Tier], net: nn.Module, norm: float) -> Certificate | None:
    """The first certificate that applies to the net in this norm: of the first of these ``tiers`` that has one."""
    rows = (one for tier in tiers for one in CERTIFICATES.values() if one.scope.tier is tier)
    return next((one for one in rows if one.applies(net, norm)), None)


@checked
def certified_radius(
    net: PolyReLUNet | ReadOut | AverageClassifier | CentreClassifier,
    X: Tensor,
    y: Tensor,
    norm: float | str = 2,
    *,
    method: str = "linear-or-lipschitz",
    arithmetic: Arithmetic | str = REAL,
) -> Tensor:
    """A proven radius of each point, (n,) float64; 0 for misclassified ones.

    Parameters
    ----------
    net, X, y, norm, arithmetic : as in `Certificate`
    method : a name of `CERTIFICATES`; the larger of "linear" and "lipschitz" holds for any PolyReLUNet in every norm
    """
    require(method in CERTIFICATES, "method", repr(method), " or ".join(map(repr, CERTIFICATES)))
    return CERTIFICATES[method](net, X, y, norm=norm, arithmetic=arithmetic)
