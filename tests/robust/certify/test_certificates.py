"""Every certificate against exact answers: half-spaces in all norms, balls of neurons, and the ideal classifiers."""

import math
from dataclasses import dataclass

import pytest
import torch

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
from polyrelu.robust import CERTIFICATES, Budget, Certificate, average_radius, centre_radius, certified_radius
from polyrelu.robust.certify import without_branching
from polyrelu.robust.certify.contract import Job

MIX = OrthonormalMixture(dim=6, positive=3, negative=2, alpha=0.1, rotate=7, dtype=torch.float64)
NOISY = MIX.sample(5, seed=2)
ALL = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class Row:
    """Where a certificate applies, and the relative gap to the exact radius on one neuron and on ideal classifiers.

    neuron : on f = relu(<w, x>)^p / |w|^(p-1) - b, whose radius is known in every norm
    ideal : on F (p = 1) and F^(p), at noisy samples; None where it does not apply
    """

    name: str
    norms: tuple[float, ...] = ALL
    powers: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
    executed: bool = True
    neuron: float | None = 1e-9
    average: float | None = 1.0
    ideal: float | None = 1.0


TABLE = [
    Row("lipschitz", average=0.15),
    Row("linear", neuron=0.1),
    Row("linear-or-lipschitz", average=0.15),
    Row("quadratic", norms=(2.0,), powers=(1.0, 2.0, 3.0), neuron=0.2),
    Row("krylov", norms=(2.0,), powers=(1.0, 2.0, 3.0), neuron=0.5),
    Row("branch-and-bound", norms=(2.0,), neuron=2e-3, average=2e-3, ideal=0.02),
    Row("average-closed-form", norms=(2.0,), powers=(), executed=False, neuron=None, average=1e-12, ideal=None),
    Row("centre-closed-form", norms=(2.0,), powers=(), executed=False, neuron=None, average=None, ideal=1e-12),
]
ROWS = pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])


def test_every_registered_certificate_stands_in_the_table() -> None:
    assert [row.name for row in TABLE] == list(CERTIFICATES)
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


def check(found: torch.Tensor, exact: torch.Tensor, gap: float) -> None:
    """Never above the exact radius, but for its own rounding, and at most ``gap`` below it."""
    assert (found <= exact * (1 + 1e-12)).all(), found / exact
    assert (found >= exact * (1 - gap)).all(), found / exact


@ROWS
def test_one_neuron_has_the_radius_of_a_half_space(row: Row) -> None:
    certificate = CERTIFICATES[row.name]
    for p in row.powers if row.neuron is not None else ():
        net, X, y = neuron(p)
        steep = net.weight[0] / 5
        for norm in row.norms:
            assert certificate.applies(net, norm)
            dual = torch.linalg.vector_norm(steep, ord={1.0: math.inf, 2.0: 2, math.inf: 1}[norm])
            check(certificate(net, X, y, norm=norm), (X @ steep - 0.5) / dual, row.neuron or 0.0)


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
    for p in (1.0, 1.5, 2.0, 3.0):
        net, X, y = neuron(p)
        for norm in ALL:
            good = p in row.powers and norm in row.norms
            assert certificate.applies(net, norm) == good
            if not good:
                with pytest.raises(InputError, match=r"norm=|net\.p=|net="):
                    certificate(net, X, y, norm=norm)


@ROWS
def test_wrong_points_have_radius_0_and_the_name_is_a_method(row: Row) -> None:
    if not row.powers:
        net = AverageClassifier(MIX.centres, MIX.labels)
        if not CERTIFICATES[row.name].applies(net, 2.0):
            net = CentreClassifier(MIX.centres, MIX.labels, 3.0)
        X, y = NOISY.rows(), -NOISY.y
    else:
        net, X, y = neuron(row.powers[0])
        y = -y
    assert (certified_radius(net, X, y, method=row.name) == 0).all()
    with pytest.raises(InputError, match="method='none'"):
        certified_radius(net, X, y, method="none")


@ROWS
def test_executed_nets_prove_less_or_are_refused(row: Row) -> None:
    if not row.executed:
        with pytest.raises(InputError, match="arithmetic=float32"):
            net = AverageClassifier(MIX.centres, MIX.labels)
            net = net if CERTIFICATES[row.name].applies(net, 2.0) else CentreClassifier(MIX.centres, MIX.labels)
            CERTIFICATES[row.name](net, NOISY.rows(), NOISY.y, arithmetic="float32")
        return
    for p in row.powers:
        net, X, y = neuron(p)
        real = CERTIFICATES[row.name](net, X, y)
        executed = CERTIFICATES[row.name](net.float(), X.float(), y.float(), arithmetic="float32")
        assert (executed <= real * (1 + 1e-6)).all() and (executed > 0).all()


def test_the_tightest_without_branching_follows_the_power_and_the_norm() -> None:
    for p, norm, name in ((1.0, 2.0, "krylov"), (1.5, 2.0, "linear-or-lipschitz"), (3.0, 1.0, "linear-or-lipschitz")):
        assert without_branching(neuron(p)[0], norm) is CERTIFICATES[name]
    assert without_branching(torch.nn.Linear(2, 2), 2.0) is None


def test_a_job_keeps_what_it_knows_of_the_points_asked_for() -> None:
    net, X, y = neuron(2.0)
    rivals = torch.eye(3, dtype=torch.bool)
    job = Job(net, X, y, budget=Budget(nodes=3), rivals=rivals)
    some = job.at(torch.tensor([2, 0]), X[:2])
    assert len(job) == 3 and len(some) == 2 and some.budget == Budget(nodes=3)
    assert torch.equal(some.X, X[[2, 0]]) and torch.equal(some.rivals, rivals[[2, 0]])
    assert torch.equal(some.perturbation, X[:2]) and job.at(torch.tensor([1])).perturbation is None
    assert torch.equal(job.pool_or_points.rows(), X)
