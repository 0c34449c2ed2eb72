"""Attacks of other libraries on models whose radius is known."""

import importlib.util
import logging
import math
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import AttackStatus, BoundsInconsistentError, Bracket, BracketStatus, lengths, margin_of
from polyrelu.robust.core import dual
from polyrelu.robust.crosscheck import PEERS, cross_check
from polyrelu.robust.crosscheck.rescaled_points import RescaledPoints

ABSENT = [name for name in ("foolbox", "pyautoattack") if importlib.util.find_spec(name) is None]
needs_peers = pytest.mark.skipif(bool(ABSENT), reason=f'not installed: {ABSENT}; pip install "polyrelu[crosscheck]"')

# Fewer steps than a person would take: these models are easy, and the suite is run often.
LESS = {"ddn": {"steps": 100}, "fmn": {"steps": 60}, "fab": {"steps": 30}}
KNOWN = [(name, norm) for name in PEERS for norm in PEERS[name].norms]


def attack(name, score, X, y, norm=2.0, **options):
    return PEERS[name].function(score, X, y, norm=norm, **LESS.get(name, {}), **options)


def linear(low, high, dtype, rows=6, dim=12, seed=0):
    """z = <w, x> + b with a boundary through the middle of the data, and its exact radius |z| / |w|_dual.

    The radius comes with the share of it that rounding z in the dtype of X can account for.
    """
    source = torch.Generator().manual_seed(seed)
    w = torch.randn(dim, generator=source, dtype=torch.float64).to(dtype)
    X = (low + (high - low) * torch.rand(rows, dim, generator=source, dtype=torch.float64)).to(dtype)
    b = -(w * (low + high) / 2).sum() + 0.1 * (high - low)
    z = X.double() @ w.double() + b.double()

    def exact(norm):
        terms = X.double().abs() @ w.double().abs() + b.double().abs()
        rounding = (dim + 2) * torch.finfo(dtype).eps * terms / z.abs()
        return z.abs() / lengths(w.double()[None], dual(norm)), rounding

    return lambda x: x @ w + b, X, z.sign().to(dtype), exact


def exact_to(result, exact, below=1e-6, above=0.05):
    if isinstance(exact, tuple):
        exact, below = exact
    assert all(status is AttackStatus.BROKEN for status in result.status)
    ratio = result.radius / exact
    assert (ratio >= 1 - below).all() and (ratio <= 1 + above).all(), ratio


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("box", [(-3.0, -1.0), (-2e-4, 2e-4)], ids=str)
def test_linear_radius_in_any_range(name, box):
    # Clamped to [0, 1], a point of [-3, -1]^12 would be moved by more than 3, and called broken or safe at random.
    score, X, y, exact = linear(*box, torch.float32)
    result = attack(name, score, X, y)
    exact_to(result, exact(2.0))
    assert result.perturbation.dtype == torch.float32 and result.radius.dtype == torch.float64
    assert (margin_of(score(X + result.perturbation), y) <= 0).all()


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name, norm", KNOWN)
def test_linear_radius_in_every_norm_far_from_the_origin_in_float64(name, norm):
    score, X, y, exact = linear(1000.0, 1001.0, torch.float64, rows=3)
    exact_to(attack(name, score, X, y, norm), exact(norm))


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("classes", [3, 5])
def test_several_linear_classes(name, classes):
    # The nearest of the C - 1 planes f_y = f_c. Those that try one class after the other find it; the loss of all
    # classes together leads to another one now and then.
    source = torch.Generator().manual_seed(classes)
    W = torch.randn(classes, 10, generator=source, dtype=torch.float64)
    X = torch.randn(5, 10, generator=source, dtype=torch.float64)
    logits = X @ W.T
    y = logits.argmax(dim=1)
    away = torch.linalg.vector_norm(W[y][:, None] - W, dim=2)
    exact = ((logits.gather(1, y[:, None]) - logits) / away).masked_fill(away == 0, torch.inf).amin(dim=1)
    each = name in ("deepfool", "fab")
    exact_to(attack(name, lambda x: x @ W.T, X, y), exact, above=0.05 if each else 0.3)


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
def test_one_point_and_points_already_wrong(name):
    score, X, y, exact = linear(-1.0, 1.0, torch.float32, rows=3)
    exact_to(attack(name, score, X[:1], y[:1]), exact(2.0)[0][:1])
    y[0] = -y[0]
    mixed = attack(name, score, X[:2], y[:2])
    assert mixed.status == (AttackStatus.ALREADY_WRONG, AttackStatus.BROKEN)
    assert mixed.radius[0] == 0 and not mixed.perturbation[0].any()
    wrong = attack(name, score, X, -torch.sign(score(X)))
    assert not wrong.radius.any() and wrong.success.all()


@needs_peers
@pytest.mark.parametrize("name", PEERS)
def test_confident_logits_change_nothing(name):
    # exp(-1e4) is 0 in float32: a softmax of the logits as they are has no gradient left.
    score, X, y, _ = linear(0.0, 1.0, torch.float64, rows=2)
    plain, loud = (attack(name, lambda x, k=k: k * score(x), X, y).radius for k in (1.0, 1e5))
    torch.testing.assert_close(loud, plain, rtol=1e-3, atol=0)


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
def test_a_margin_of_zero_is_broken_for_both_labels(name):
    # y relu(<w, x>) never changes sign, but is 0 beyond <w, x> = 0 (where DDN, without a gradient, walks at random).
    w = torch.tensor([3.0, 4.0], dtype=torch.float64)
    X, y = torch.tensor([[1.0, 0.5]], dtype=torch.float64), torch.ones(1)
    for label in (1.0, -1.0):
        exact_to(attack(name, lambda x, s=label: s * (x @ w).relu(), X, label * y), torch.ones(1), above=0.1)


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_constant_score_is_held(name, outputs):
    row = torch.tensor([1.0, 0.0, -1.0])
    score = (lambda x: 0 * x.sum(1) + 1) if outputs == 1 else (lambda x: 0 * x.sum(1, keepdim=True) + row)
    X, y = torch.randn(2, 4), torch.ones(2) if outputs == 1 else torch.zeros(2, dtype=torch.int64)
    result = attack(name, score, X, y)
    assert result.status == (AttackStatus.UNBROKEN,) * 2
    assert result.radius.isinf().all() and not result.success.any() and not result.perturbation.any()


def test_a_success_that_does_not_flip_is_held():
    score, X, y, exact = linear(0.0, 1.0, torch.float64, rows=3)
    points = RescaledPoints(score, X, y, 2)
    away = torch.autograd.functional.jacobian(lambda x: (y * score(x)).sum(), X)
    away = -away / lengths(away, 2.0)[:, None] * exact(2.0)[0][:, None]
    result = points.result(away * torch.tensor([1.001, 0.999, torch.nan], dtype=torch.float64)[:, None])
    assert result.status == (AttackStatus.BROKEN, AttackStatus.UNBROKEN, AttackStatus.UNBROKEN)
    assert result.radius[0] == lengths((X + result.perturbation) - X, 2.0)[0]


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("name", PEERS)
def test_nothing_outside_is_touched(name):
    net = PolyReLUNet(6, 8, p=2, seed=0)
    X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    y = net(X).detach().sign()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate(), len(logging.root.handlers)
    with torch.no_grad():
        first = attack(name, net, X, y)
    again = attack(name, net, X, y)
    assert torch.equal(torch.get_rng_state(), before[0]) and (np.random.get_state()[1] == before[1]).all()
    assert random.getstate() == before[2] and len(logging.root.handlers) == before[3]
    assert net.training and all(parameter.grad is None for parameter in net.parameters())
    assert torch.equal(first.radius, again.radius)
    assert first.evaluations == again.evaluations > 0


def ideal(p, dim=50, positive=6, negative=4):
    """F^(p) and its centres, whose radius is 1/sqrt(1 + m^(2/p - 1)) for the best number m of opposite centres."""
    centres = torch.linalg.qr(torch.randn(dim, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0]
    centres = centres[: positive + negative]
    y = torch.tensor([1.0] * positive + [-1.0] * negative, dtype=torch.float64)
    opposite = torch.where(y > 0, negative, positive)
    exact = 1 / torch.sqrt(1 + opposite.double() ** (2 / p - 1)) if p < 2 else torch.full_like(y, math.sqrt(0.5))
    return CentreClassifier(centres, y, p=p), centres, y, exact


@needs_peers
def test_minimal_peers_are_not_fooled_at_this_dimension():
    # DDN and FMN scale every gradient to the same length, so that even a faint slope towards another centre counts; at
    # a centre itself there is none. With noise alpha = .1 the radius is .70 +- .02.
    net, X, y, _ = ideal(4)
    X = X + 0.1 / math.sqrt(50) * torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=X.dtype)
    assert attack("ddn", net, X, y).radius.median() < 0.72
    assert attack("fmn", net, X, y).radius.median() < 0.72


@needs_peers
def test_fmn_projects_as_published():
    # foolbox's own keeps its first jump, one unit: anything between 1 and 2 times the radius, or more.
    score, X, y, exact = linear(0.0, 1.0, torch.float64)
    exact_to(attack("fmn", score, X, y), exact(2.0), above=1e-3)


def bracket_of(lower, upper, norm=2.0):
    n = len(lower)
    return Bracket(
        lower, upper, torch.zeros(n, 1), (BracketStatus.CLOSED,) * n, norm, torch.zeros(n, dtype=torch.int64)
    )


@pytest.fixture
def halfspace():
    """A net that is <w, x> on the rows given, and its exact radii."""
    X = torch.rand(7, 5, generator=torch.Generator().manual_seed(1))
    net = PolyReLUNet(5, 1, p=1, init="zeros")
    with torch.no_grad():
        net.weight.fill_(1.0)
        net.output.fill_(1.0)
    return net, X, torch.ones(7), X.double().sum(dim=1) / math.sqrt(5)


@pytest.mark.slow
@needs_peers
def test_cross_check_holds_peers_against_a_bracket(halfspace):
    net, X, y, exact = halfspace
    for check in cross_check(net, X, y, bracket_of(exact, exact)):
        assert check.smaller == 0 and PEERS[check.name].library == check.library
        assert check.median_radius == pytest.approx(float(exact.median()), rel=0.05) and check.seconds > 0
        assert check.note == "7 of 7 points, 0 wrong without any attack, 0 not broken"
    (check,) = cross_check(net, X, y, bracket_of(0.9 * exact, 1.1 * exact), attacks="deepfool", points=3)
    assert check.smaller == 3 and check.note.startswith("3 of 7 points")
    (check,) = cross_check(net, X, y, bracket_of(0 * exact, exact / 0), attacks=["ddn"])
    assert check.smaller == 7
    y = torch.tensor([-1.0] * 6 + [1.0])
    (check,) = cross_check(net, X, y, bracket_of(0 * exact, exact), attacks=["ddn"])
    assert check.note == "7 of 7 points, 6 wrong without any attack, 0 not broken"
    assert check.median_radius == pytest.approx(float(exact[-1]), rel=0.05)


@pytest.mark.slow
@needs_peers
def test_cross_check_raises_where_a_peer_beats_a_certificate(halfspace):
    net, X, y, exact = halfspace
    too_high = torch.where(torch.arange(7) == 4, 1.05 * exact, exact)
    with pytest.raises(BoundsInconsistentError, match=r"foolbox's fmn .* at row 4 .*1 such points"):
        cross_check(net, X, y, bracket_of(too_high, too_high), attacks="fmn")


@pytest.mark.slow
@needs_peers
def test_cross_check_in_another_norm(halfspace):
    net, X, y, _ = halfspace
    exact = X.double().sum(dim=1) / 5
    found = cross_check(net, X[:2], y[:2], bracket_of(exact[:2], exact[:2], math.inf), norm="inf", attacks="all")
    assert [check.name for check in found] == [name for name in PEERS if math.inf in PEERS[name].norms]
    assert all(check.median_radius == pytest.approx(float(exact[:2].max()), rel=0.05) for check in found)


def test_cross_check_says_what_it_cannot_do(halfspace):
    net, X, y, exact = halfspace
    box = bracket_of(exact, exact)
    with pytest.raises(InputError, match="attacks=nosuch: expected 'all' or names out of ddn"):
        cross_check(net, X, y, box, attacks="nosuch")
    with pytest.raises(InputError, match="attacks=ddn: expected attacks that know the norm inf: fmn"):
        cross_check(net, X, y, bracket_of(exact, exact, math.inf), norm="inf", attacks=["ddn"])
    with pytest.raises(InputError, match="norm=inf: expected 2, the norm of the bracket"):
        cross_check(net, X, y, box, norm=math.inf)
    with pytest.raises(InputError, match=r"len\(bracket\)=7: expected 2"):
        cross_check(net, X[:2], y[:2], box)
    with pytest.raises(InputError, match="unless the net is a torch"):
        cross_check(lambda x: x.sum(1), X, y, box)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_refuses_the_norms_it_does_not_know(name):
    score, X, y, _ = linear(0.0, 1.0, torch.float32, rows=1)
    for norm in {1.0, 2.0, math.inf} - set(PEERS[name].norms):
        with pytest.raises(InputError, match="for this attack"):
            attack(name, score, X, y, norm)


@pytest.mark.parametrize("name", ["ddn", "fab"])
def test_what_to_install_when_a_package_is_missing(name, monkeypatch):
    for module in [key for key in sys.modules if key.split(".")[0] in ("foolbox", "pyautoattack")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("foolbox", "pyautoattack"):
        monkeypatch.setitem(sys.modules, module, None)
    score, X, y, _ = linear(0.0, 1.0, torch.float32, rows=1)
    with pytest.raises(InputError, match=r'pip install "polyrelu\[crosscheck\]"'):
        attack(name, score, X, y)


@pytest.mark.slow
def test_importing_the_subpackage_imports_no_peer():
    code = (
        "import sys, polyrelu.robust.crosscheck; assert not {'foolbox', 'eagerpy', 'pyautoattack'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
