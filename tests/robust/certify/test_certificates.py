"""Every certificate against exact answers: half-spaces in all norms, sub-classes, and the ideal classifiers."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, Net, PolyReLUNet, ReadOut
from polyrelu.robust import (
    CERTIFICATES,
    Budget,
    Certificate,
    average_radius,
    bracket,
    centre_radius,
    certified_radius,
)
from polyrelu.robust.certify import Scope, Tier, applicable
from polyrelu.robust.certify.contract import WITHOUT_BRANCHING, Job

MIX = OrthonormalMixture(dim=6, positive=3, negative=2, alpha=0.1, rotate=7, dtype=torch.float64)
NOISY = MIX.sample(5, seed=2)
ALL = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class Row:
    """Where a certificate applies, and the relative gap to the exact radius on one neuron and on ideal classifiers.

    neuron : on f = relu(<w, x>)^p / |w|^(p-1) - b, or for ``sub_classes`` on a read-out of coordinates, whose radii
        are known in every norm
    ideal : on F (p = 1) and F^(p), at noisy samples; None where it does not apply
    """

    name: str
    norms: tuple[float, ...] = ALL
    powers: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
    executed: bool = True
    neuron: float | None = 1e-9
    average: float | None = 1.0
    ideal: float | None = 1.0
    sub_classes: bool = False


TABLE = [
    Row("lipschitz", average=0.15),
    Row("linear", neuron=0.1),
    Row("linear-or-lipschitz", average=0.15),
    Row("quadratic", norms=(2.0,), powers=(1.0, 2.0, 3.0), neuron=0.2),
    Row("krylov", norms=(2.0,), powers=(1.0, 2.0, 3.0), neuron=0.5),
    Row("branch-and-bound", norms=(2.0,), neuron=2e-3, average=2e-3, ideal=0.02),
    Row("average-closed-form", norms=(2.0,), powers=(), executed=False, neuron=None, average=1e-12, ideal=None),
    Row("centre-closed-form", norms=(2.0,), powers=(), executed=False, neuron=None, average=None, ideal=1e-12),
    Row("sub-classes-linear-or-lipschitz", neuron=0.3, average=None, ideal=None, sub_classes=True),
    Row("sub-classes-quadratic", (2.0,), (1.0, 2.0, 3.0), neuron=0.2, average=None, ideal=None, sub_classes=True),
    Row("sub-classes-krylov", (2.0,), (1.0, 2.0, 3.0), neuron=0.5, average=None, ideal=None, sub_classes=True),
    Row("sub-classes-branch-and-bound", (2.0,), neuron=2e-3, average=None, ideal=None, sub_classes=True),
]
ROWS = pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])


def test_every_registered_certificate_stands_in_the_table() -> None:
    assert {row.name for row in TABLE} == set(CERTIFICATES)
    assert all(isinstance(one, Certificate) for one in CERTIFICATES.values())


def neuron(p: float) -> tuple[PolyReLUNet, torch.Tensor, torch.Tensor]:
    """relu(<w, x>)^p / |w|^(p-1) - |w| (1/2)^p: right with +1 where <w, x>/|w| > 1/2."""
    w = torch.tensor([3.0, 0.0, -4.0], dtype=torch.float64)
    net = PolyReLUNet(3, 1, p, 1, bias=True, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(w[None])
    net.output.fill_(1.0)
    net.bias.fill_(-5.0 * 0.5**p)
    X = torch.stack([w / 5, 0.3 * w, torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)])
    return net, X, torch.ones(3, dtype=torch.float64)


def coordinates(p: float) -> tuple[ReadOut, torch.Tensor, torch.Tensor]:
    """f_s = relu(x_s)^p, sub-classes 0 and 1 in one class: right with 0 where max(x_0, x_1) > x_2."""
    net = PolyReLUNet(3, 3, p, 3, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(torch.eye(3))
    net.output.copy_(torch.eye(3))
    X = torch.tensor([[5.0, 1.0, 4.0], [1.0, 5.0, 3.0], [3.0, 0.1, 2.8]], dtype=torch.float64)
    return ReadOut(net, [0, 0, 1]), X, torch.zeros(3, dtype=torch.int64)


def known(row: Row, p: float) -> tuple[Net, torch.Tensor, torch.Tensor]:
    """The net of the row whose radii are known, points that it is right about, and their labels."""
    return coordinates(p) if row.sub_classes else neuron(p)


def covered(row: Row) -> tuple[Net, torch.Tensor, torch.Tensor]:
    """A net that the row says its certificate is for, points that it is right about, and their labels."""
    if row.powers:
        return known(row, row.powers[0])
    average, centre = AverageClassifier(MIX.centres, MIX.labels), CentreClassifier(MIX.centres, MIX.labels, 3.0)
    return (centre if row.average is None else average), NOISY.rows(), NOISY.y


def exact_radius(net: Net, X: torch.Tensor, norm: float) -> torch.Tensor:
    """How far a half-space is, or where two coordinates meet."""
    dual = {1.0: math.inf, 2.0: 2, math.inf: 1}[norm]
    steep = torch.tensor([1.0, -1.0], dtype=torch.float64) if isinstance(net, ReadOut) else net.weight[0] / 5
    gap = X[:, :2].amax(dim=1) - X[:, 2] if isinstance(net, ReadOut) else X @ steep - 0.5
    return gap / torch.linalg.vector_norm(steep, ord=dual)


def check(found: torch.Tensor, exact: torch.Tensor, gap: float) -> None:
    """Never above the exact radius, but for its own rounding, and at most ``gap`` below it."""
    assert (found <= exact * (1 + 1e-12)).all(), found / exact
    assert (found >= exact * (1 - gap)).all(), found / exact


@pytest.mark.slow
@ROWS
def test_one_neuron_has_the_radius_of_a_half_space_and_two_meet_between_them(row: Row) -> None:
    certificate = CERTIFICATES[row.name]
    for p in row.powers if row.neuron is not None else ():
        net, X, y = known(row, p)
        for norm in row.norms:
            assert certificate.applies(net, norm)
            check(certificate(net, X, y, norm=norm), exact_radius(net, X, norm), row.neuron or 0.0)


@pytest.mark.slow
@ROWS
def test_ideal_classifiers_have_closed_forms(row: Row) -> None:
    certificate = CERTIFICATES[row.name]
    X, y = NOISY.rows(), NOISY.y
    if row.average is not None:
        average = AverageClassifier(MIX.centres, MIX.labels)
        net = average if certificate.applies(average, 2.0) else average.as_polyrelu_net()
        check(certificate(net, X, y), average_radius(X, y, MIX.centres, MIX.labels), row.average)
    for p in (row.powers or (1.0, 2.0, 3.0)) if row.ideal is not None else ():
        centre = CentreClassifier(MIX.centres, MIX.labels, p)
        net = centre if certificate.applies(centre, 2.0) else centre.as_polyrelu_net()
        found = certificate(net, X, y)
        check(found, centre_radius(X, y, MIX.centres, MIX.labels, p), row.ideal)
        assert (found > 0).all()


@ROWS
def test_where_a_certificate_applies_is_said_and_kept_to(row: Row) -> None:
    certificate = CERTIFICATES[row.name]
    assert not certificate.applies(torch.nn.Linear(3, 2), 2.0)
    with pytest.raises(InputError, match="net="):
        certificate(torch.nn.Linear(3, 2), torch.ones(1, 3), torch.zeros(1, dtype=torch.int64))
    for p, (make, sub_classes) in itertools.product((1.0, 1.5, 2.0, 3.0), ((neuron, False), (coordinates, True))):
        net, X, y = make(p)
        for norm in ALL:
            good = p in row.powers and norm in row.norms and row.sub_classes == sub_classes
            assert certificate.applies(net, norm) == good
            if not good:
                with pytest.raises(InputError, match=r"norm=|net\.p=|net="):
                    certificate(net, X, y, norm=norm)


@ROWS
def test_wrong_points_have_radius_0_and_the_name_is_a_method(row: Row) -> None:
    net, X, y = covered(row)
    y = 1 - y if row.sub_classes else -y
    assert (certified_radius(net, X, y, method=row.name) == 0).all()
    with pytest.raises(InputError, match="method='none'"):
        certified_radius(net, X, y, method="none")


@pytest.mark.slow
@ROWS
def test_executed_nets_prove_less_or_are_refused(row: Row) -> None:
    if not row.executed:
        net, X, y = covered(row)
        assert CERTIFICATES[row.name].applies(net, row.norms[0])
        with pytest.raises(InputError, match="arithmetic=float32"):
            CERTIFICATES[row.name](net, X, y, norm=row.norms[0], arithmetic="float32")
        return
    for p in row.powers:
        net, X, y = known(row, p)
        real, labels = CERTIFICATES[row.name](net, X, y), y if row.sub_classes else y.float()
        executed = CERTIFICATES[row.name](net.float(), X.float(), labels, arithmetic="float32")
        assert (executed <= real * (1 + 1e-6)).all() and (executed > 0).all()


def test_the_tightest_without_branching_follows_the_power_and_the_norm() -> None:
    for p, norm, name in ((1.0, 2.0, "krylov"), (1.5, 2.0, "linear-or-lipschitz"), (3.0, 1.0, "linear-or-lipschitz")):
        assert applicable(WITHOUT_BRANCHING, neuron(p)[0], norm) is CERTIFICATES[name]
        assert applicable(WITHOUT_BRANCHING, coordinates(p)[0], norm) is CERTIFICATES[f"sub-classes-{name}"]
    assert applicable(WITHOUT_BRANCHING, torch.nn.Linear(2, 2), 2.0) is None


@pytest.mark.parametrize("make, prefix", [(neuron, ""), (coordinates, "sub-classes-")])
def test_the_table_is_asked_by_tier(make: Callable[[float], Any], prefix: str) -> None:
    names = {
        Tier.BRANCHING: "branch-and-bound",
        Tier.ONE_BALL: "krylov",
        Tier.QUADRATIC: "quadratic",
        Tier.EVERY_NORM: "linear-or-lipschitz",
    }
    assert set(names) == set(Tier)
    for tier, name in names.items():
        assert applicable([tier], make(2.0)[0], 2.0) is CERTIFICATES[prefix + name]
        one_norm = CERTIFICATES[prefix + name] if tier is Tier.EVERY_NORM else None
        assert applicable([tier], make(2.0)[0], 1.0) is one_norm


def test_a_new_certificate_of_a_tier_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half(Certificate):
        scope = Scope(Tier.ONE_BALL, powers="1.5")

        def takes_power(self, p: float) -> bool:
            return p == 1.5

        def radius(self, job: Job) -> torch.Tensor:
            return torch.full((len(job),), 1e-3, dtype=torch.float64)

    monkeypatch.setitem(CERTIFICATES, "half", Half())
    net, X, y = neuron(1.5)
    assert (bracket(net, X, y, norm=1).lower == 1e-3).all()
    assert (bracket(neuron(2.0)[0], X, y, norm=1).lower > 1e-2).all()


def test_any_sub_class_of_the_own_class_proves_the_class_where_it_wins() -> None:
    # x_0 = 5 and x_1 = 4.5 against x_2 = 1: the second sub-class alone proves (4.5 - 1)/sqrt(2), the winner 4/sqrt(2).
    net, X, y = coordinates(2.0)[0], torch.tensor([[5.0, 4.5, 1.0]]).double(), torch.zeros(1, dtype=torch.int64)
    certificate = CERTIFICATES["sub-classes-branch-and-bound"]
    for own, gap in ((None, 4.0), (torch.tensor([0]), 4.0), (torch.tensor([1]), 3.5)):
        found = certificate.radius(Job(net, X, y, own=own))
        check(found, torch.tensor([gap / 2**0.5], dtype=torch.float64), 2e-3)


def test_a_job_keeps_what_it_knows_of_the_points_asked_for() -> None:
    net, X, y = neuron(2.0)
    rivals, own = torch.eye(3, dtype=torch.bool), torch.arange(3)
    job = Job(net, X, y, budget=Budget(nodes=3), rivals=rivals, own=own)
    some = job.at(torch.tensor([2, 0]), X[:2])
    assert len(job) == 3 and len(some) == 2 and some.budget == Budget(nodes=3)
    assert torch.equal(some.X, X[[2, 0]]) and torch.equal(some.rivals, rivals[[2, 0]])
    assert torch.equal(some.own, own[[2, 0]])
    assert torch.equal(some.perturbation, X[:2]) and job.at(torch.tensor([1])).perturbation is None
    assert torch.equal(job.pool_or_points.rows(), X)
