"""The sandwich: proven <= true <= found, on nets small enough to see the truth and on nets whose truth is known."""

import math

import pytest
import torch

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.robust import (
    BoundsInconsistentError,
    BracketStatus,
    Budget,
    average_radius,
    bracket,
    centre_radius,
    check_bounds,
    lengths,
    margin_of,
)
from polyrelu.robust.attacks.convex_concave import lifted_perturbations
from polyrelu.robust.attacks.nearest_boundary import nearest_boundary_points
from polyrelu.robust.certify import certify
from polyrelu.robust.core import ReducedNet

POWERS = (1, 1.3, 1.7, 2, 2.2, 2.5, 3, 4, 6)
QUICK = Budget(nodes=4)


def random_net(p, seed, points=2):
    """A small net of some kind, and points it is right about."""
    draw = torch.Generator().manual_seed(100 * seed + int(10 * p))

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    def one_of(*choices):
        return choices[int(torch.randint(len(choices), (1,), generator=draw))]

    dim, width, outputs = one_of(2, 3), one_of(2, 3, 5, 8), one_of(1, 1, 2, 3, 5)
    centre = one_of(None, 0.3 * normal(dim))
    given = {"bias": one_of(False, False, True), "normalise_input": one_of(False, True), "dtype": torch.float64}
    net = PolyReLUNet(dim, width, p=p, outputs=outputs, centre=centre, **given)
    W, V = normal(width, dim), normal(outputs, width)
    kind = one_of("plain", "cone", "twins", "mirrored", "own", "scaled")
    if kind == "cone":  # opposite terms that lead in turn
        W[width // 2 :] = normal(dim) + 0.4 * normal(width - width // 2, dim)
    if kind == "twins":
        W[width // 2 :] = W[: width - width // 2].clone()
        W[0] = 0
    if kind == "mirrored":
        W[width // 2 :] = -W[: width - width // 2].clone()
    if kind == "own":
        V = V.abs() * torch.linspace(1, 0.5, outputs, dtype=torch.float64)[:, None]
    scale = 10 ** one_of(-3.0, 3.0) if kind == "scaled" else 1.0
    with torch.no_grad():
        net.weight.copy_(W)
        net.output.copy_(scale * V)
        if net.bias is not None:
            net.bias.copy_(0.3 * scale * normal(outputs))
    X = normal(12, dim)
    y = labels(net, X)
    with torch.no_grad():
        right = (margin_of(net(X), y) > 0).nonzero()[:points, 0]
    return net, X[right], y[right]


def labels(net, X):
    with torch.no_grad():
        f = net(X)
    return torch.where(f > 0, 1.0, -1.0).double() if f.ndim == 1 else f.argmax(1)


def directions(dim, count):
    """Unit vectors all around: equal angles, or a Fibonacci sphere."""
    i = torch.arange(count, dtype=torch.float64)
    if dim == 2:
        angle = 2 * math.pi * i / count
        return torch.stack([angle.cos(), angle.sin()], dim=1)
    height, angle = 1 - (2 * i + 1) / count, math.pi * (1 + 5**0.5) * i
    flat = (1 - height**2).sqrt()
    return torch.stack([flat * angle.cos(), flat * angle.sin(), height], dim=1)


def nobody_inside(net, x, label, radius, norm=2.0, also=None):
    """No point of a grid inside the ball breaks the net; ``also`` (D,) is one more direction worth a look."""
    U = directions(len(x), 360 if len(x) == 2 else 700)
    if also is not None:
        U = torch.cat([U, also[None]])
    length = lengths(U, norm)[:, None]
    U = U / torch.where(length > 0, length, 1.0)
    shells = torch.cat([torch.linspace(0.05, 1, 24, dtype=torch.float64), torch.tensor([0.98]).double()])
    Z = x + (shells[:, None, None] * radius * (1 - 1e-9) * U).view(-1, len(x))
    with torch.no_grad():
        return bool((margin_of(net(Z), label.expand(len(Z))) > 0).all())


def honest(net, X, y, found, norm=2.0):
    """What every bracket promises, looked at from outside."""
    with torch.no_grad():
        margin = margin_of(net(X), y)
        moved = margin_of(net(X + found.perturbation), y)
    finite = found.upper.isfinite()
    assert (moved[finite] <= 0).all()
    torch.testing.assert_close(lengths(found.perturbation, norm)[finite], found.upper[finite], rtol=1e-12, atol=0)
    assert (found.perturbation[~finite] == 0).all()
    assert (found.lower >= 0).all() and (found.lower <= found.upper).all()
    assert (found.lower.dtype, found.upper.dtype, found.perturbation.dtype) == (torch.float64,) * 3
    wrong = margin <= 0
    assert (found.upper[wrong] == 0).all() and (found.lower[wrong] == 0).all()
    assert [status is BracketStatus.WRONG for status in found.status] == wrong.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("nodes, seeds", [(0, range(12)), (2, range(20, 22)), (8, range(22, 23))], ids=("0", "2", "8"))
@pytest.mark.parametrize("p", POWERS)
def test_sandwich_on_random_nets(p, nodes, seeds):
    total = 0
    for seed in seeds:
        net, X, y = random_net(p, seed)
        if not len(X):
            continue
        found = bracket(net, X, y, budget=Budget(nodes=nodes))
        honest(net, X, y, found)
        for i in range(len(X)):
            reach = min(found.lower[i], 10 * X[i].norm())  # a constant sign has no radius
            assert nobody_inside(net, X[i], y[i], reach, also=found.perturbation[i]), (seed, i)
        total += len(X)
    assert total >= 2 * len(seeds) - 6


@pytest.mark.slow
@pytest.mark.parametrize("p", POWERS)
def test_nothing_is_proven_beyond_a_known_breaking_point(p):
    # Given a ball far larger than the radius the proof must stop by itself: nothing found by the attack can help it.
    for seed in range(30, 34):
        net, X, y = random_net(p, seed)
        shallow = ReducedNet.from_net(net)
        if not len(X) or not shallow.groups:
            continue
        rows = shallow.rows(X, y)
        known = lifted_perturbations(net, shallow, X, y, rows, nearest_boundary_points(shallow, rows)).radius.repeat(2)
        X, y = X.repeat(2, 1), y.repeat(2)
        rows, wider = shallow.rows(X, y), torch.tensor([1.03, 1.5], dtype=torch.float64).repeat_interleave(len(X) // 2)
        ball = torch.where(known.isfinite(), wider * known, 1.0)
        proven = certify(shallow, X, y, rows, rows.s, ball, tol=1e-3, budget=Budget(nodes=2)).lower
        assert (proven <= known * (1 + 1e-12)).all(), (seed, proven / known)


def perturbed_ideal(p, copies=3, off=0.03):
    """F^(p) with several neurons a centre, each a little off: what training leaves behind."""
    mix = OrthonormalMixture(dim=50, positive=6, negative=4, alpha=0.1, rotate=3, dtype=torch.float64)
    draw = torch.Generator().manual_seed(int(10 * p))
    noise = torch.randn(10 * copies, 50, generator=draw, dtype=torch.float64)
    net = PolyReLUNet(50, 10 * copies, p=p, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(mix.centres.repeat(copies, 1) + off * noise / 50**0.5)
        net.output.copy_((mix.labels.repeat(copies) * (1 + 0.2 * noise[:, 0].clamp(-1, 1)))[None])
    data = mix.sample(25, seed=4)
    return net, data.rows(), data.y


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3])
def test_ten_thousand_attempts_against_certified_balls(p):
    net, X, y = perturbed_ideal(p)
    found = bracket(net, X, y, budget=Budget(nodes=4))
    honest(net, X, y, found)
    assert (found.lower[found.upper > 0] > 0.1).all()
    each = 10_000 // len(X)
    R = (found.lower * (1 - 1e-12)).repeat_interleave(each)[:, None]
    Z, y_all = X.repeat_interleave(each, dim=0), y.repeat_interleave(each)
    draw = torch.Generator().manual_seed(1)
    D = torch.randn(Z.shape, generator=draw, dtype=torch.float64)
    other = X[torch.randint(len(X), (len(Z),), generator=draw)] - Z
    third = torch.arange(len(Z)) % 3
    D = torch.where((third == 0)[:, None], D, torch.where((third == 1)[:, None], other, other + D / 10))
    D = torch.where((torch.arange(len(Z)) % each == 0)[:, None], found.perturbation.repeat_interleave(each, dim=0), D)
    D = D / D.norm(dim=1, keepdim=True).clamp(min=1e-300) * R
    tried = found.lower.repeat_interleave(each) > 0
    for _ in range(12):  # steps along the gradient, on the sphere
        at = (Z + D).requires_grad_()
        margin = margin_of(net(at), y_all)
        assert (margin.detach() > 0)[tried].all()
        slope = torch.autograd.grad(margin.sum(), at)[0]
        D = D - 0.2 * R * slope / slope.norm(dim=1, keepdim=True).clamp(min=1e-300)
        D = D / D.norm(dim=1, keepdim=True).clamp(min=1e-300) * R
    assert tried.sum() >= 9000


MIX = OrthonormalMixture(dim=50, positive=6, negative=4, alpha=0.1, rotate=5, dtype=torch.float64)
NOISY = MIX.sample(8, seed=1)


IDEAL = [1, 1.3, 1.5, 2, 2.2, 2.5, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("p", IDEAL)
def test_ideal_classifiers_lie_inside_their_brackets(p):
    net, X, y = CentreClassifier(MIX.centres, MIX.labels, p), NOISY.rows(), NOISY.y
    exact = centre_radius(X, y, MIX.centres, MIX.labels, p)
    found = bracket(net, X, y, budget=Budget(nodes=20))
    honest(net, X, y, found)
    assert (found.lower <= exact * (1 + 1e-9)).all() and (found.upper >= exact * (1 - 1e-9)).all()
    assert (found.lower >= 0.7 * exact).all() and (found.upper <= 1.03 * exact).all()


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2.5, 3, 4])
def test_brackets_of_ideal_classifiers_close(p):
    found = bracket(CentreClassifier(MIX.centres, MIX.labels, p), NOISY.rows(), NOISY.y)
    assert (found.upper <= found.lower * (1 + 1.001e-3)).all()
    assert set(found.status) == {BracketStatus.CLOSED}


def test_brackets_of_the_quadratic_ideal_nearly_close():
    """p = 2: where every opposite pre-activation is negative the dual keeps a gap of their size."""
    found = bracket(CentreClassifier(MIX.centres, MIX.labels, 2), NOISY.rows(), NOISY.y)
    assert (found.upper <= found.lower * 1.005).all()
    assert list(found.status).count(BracketStatus.CLOSED) >= 7


def test_the_averaging_classifier_is_bracketed_tightly():
    X, y = NOISY.rows(), NOISY.y
    exact = average_radius(X, y, MIX.centres, MIX.labels)
    found = bracket(AverageClassifier(MIX.centres, MIX.labels), X, y)
    assert (found.lower <= exact * (1 + 1e-9)).all() and (found.upper >= exact * (1 - 1e-9)).all()
    assert (found.upper <= found.lower * (1 + 1.001e-3)).all()


def cubic():
    net, X, y = perturbed_ideal(3, copies=2)
    return net, X[:4], y[:4]


def same(found, other, rtol=1e-3, factor=1.0):
    """The same answer, up to where each search stopped: both bounds, within the tolerance asked for."""
    torch.testing.assert_close(found.lower * factor, other.lower, rtol=rtol, atol=0)
    torch.testing.assert_close(found.upper * factor, other.upper, rtol=rtol, atol=0)


def test_single_precision_in_double_precision_out():
    net, X, y = cubic()
    single = PolyReLUNet(50, net.width, p=3, dtype=torch.float32)
    with torch.no_grad():
        single.weight.copy_(net.weight)
        single.output.copy_(net.output)
    X = X.float()
    low = bracket(single, X, y.float(), budget=QUICK)
    high = bracket(single.double(), X.double(), y, budget=QUICK)
    same(low, high, rtol=1e-6)
    assert low.lower.dtype == low.perturbation.dtype == torch.float64


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_the_logits_changes_nothing(scale):
    for net, X, y in (cubic(), perturbed_ideal(1, copies=2)):
        plain = bracket(net, X[:4], y[:4], budget=QUICK)
        with torch.no_grad():
            net.output.mul_(scale)
        same(bracket(net, X[:4], y[:4], budget=QUICK), plain)


def test_the_scale_of_the_points_is_the_scale_of_the_radii():
    net, X, y = cubic()
    same(bracket(net, 100 * X, y, budget=QUICK), bracket(net, X, y, budget=QUICK), factor=0.01)


def test_rotation_and_the_order_of_neurons_change_nothing():
    net, X, y = cubic()
    plain = bracket(net, X, y, budget=QUICK)
    draw = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(50, 50, generator=draw, dtype=torch.float64)).Q
    order = torch.randperm(net.width, generator=draw)
    with torch.no_grad():
        net.weight.copy_(net.weight[order] @ turn)
        net.output.copy_(net.output[:, order])
    same(bracket(net, X @ turn, y, budget=QUICK), plain)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 3])
def test_a_point_alone_and_among_others(p):
    net, X, y = perturbed_ideal(p, copies=2)
    together = bracket(net, X[:5], y[:5], budget=QUICK)
    for i in range(0, 5, 2):
        alone = bracket(net, X[i : i + 1], y[i : i + 1], budget=QUICK)
        torch.testing.assert_close(alone.lower[0], together.lower[i], rtol=1e-3, atol=0)
        torch.testing.assert_close(alone.upper[0], together.upper[i], rtol=1e-6, atol=0)
        honest(net, X[i : i + 1], y[i : i + 1], alone)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, "inf"])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_other_norms(norm, p):
    for seed in range(40, 46):
        net, X, y = random_net(p, seed)
        if not len(X) or net.dim != 2:
            continue
        found = bracket(net, X, y, norm=norm)
        honest(net, X, y, found, found.norm)
        assert found.norm == float(norm)
        for i in range(len(X)):
            reach = min(found.lower[i], 10 * X[i].norm())
            assert nobody_inside(net, X[i], y[i], reach, found.norm, found.perturbation[i]), (seed, i)


def test_any_module_gets_an_attack_and_no_proof():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    X = torch.randn(6, 4, dtype=torch.float64)
    y = labels(net, X)
    found = bracket(net, X, y)
    honest(net, X, y, found)
    assert (found.lower == 0).all() and set(found.status) <= {BracketStatus.UNPROVEN, BracketStatus.UNBROKEN}


def test_no_budget_still_gives_both_bounds():
    net, X, y = cubic()
    found = bracket(net, X, y, budget=Budget(nodes=0))
    honest(net, X, y, found)
    assert (found.lower > 0).all() and found.upper.isfinite().all()
    assert (bracket(net, X, y, budget=Budget(seconds=0)).lower > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 300])
def test_faint_neurons_beside_a_huge_one_are_attacked(others):
    """200 t^3 >= 1e-5 s^3 is a wedge t >= c s, c^3 = 5e-8: distance c/sqrt(1+c^2) of the point s = 1, t = 0."""
    net = PolyReLUNet(400, 3 + others, 3.0, init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.eye(3 + others, 400, dtype=torch.float64))
        net.output.copy_(torch.tensor([200.0, -1e-5, *[1e-9] * (1 + others)], dtype=torch.float64))
    X = torch.zeros(2, 400, dtype=torch.float64)
    X[0, 1] = X[1, 0] = 1
    found = bracket(net, X, torch.tensor([-1.0, 1.0], dtype=torch.float64), budget=Budget(nodes=0))
    c = 5e-8 ** (1 / 3)
    assert float(found.upper[0]) == pytest.approx(c / math.sqrt(1 + c * c), rel=1e-3)
    assert float(found.upper[1]) == pytest.approx(1 / math.sqrt(1 + c * c), rel=1e-3)


def plain_net(outputs=1, **given):
    """x_1 against x_2, p = 3."""
    net = PolyReLUNet(2, 2, p=3, outputs=outputs, dtype=torch.float64, **given)
    with torch.no_grad():
        net.weight.copy_(torch.eye(2))
        net.output.copy_(torch.tensor([[1.0, -1.0]]) if outputs == 1 else torch.eye(outputs, 2))
    return net


@pytest.mark.parametrize("outputs", [1, 2])
def test_wrong_points_and_the_origin_have_radius_zero(outputs):
    # f = 0 at the origin counts as wrong; (1, 0) has the radius sqrt(2)/2 of x_1 = x_2.
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, -1.0]]).double()
    y = torch.ones(4).double() if outputs == 1 else torch.zeros(4, dtype=torch.long)
    found = bracket(plain_net(outputs), X, y)
    honest(plain_net(outputs), X, y, found)
    assert found.upper[0] == pytest.approx(0.5**0.5, rel=1e-9) and found.lower[0] >= 0.5**0.5 / 1.0011
    assert found.upper[1:].tolist() == [0, 0, 0] and (found.perturbation[1:] == 0).all()
    assert found.status == (BracketStatus.CLOSED, *[BracketStatus.WRONG] * 3)


def test_a_constant_net_cannot_be_broken():
    net = PolyReLUNet(2, 3, p=3, bias=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight.zero_(), net.output.zero_(), net.bias.fill_(1.0)
    X, y = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.ones(3).double()
    found = bracket(net, X, y)
    assert found.lower.isinf().all() and found.upper.isinf().all() and (found.perturbation == 0).all()
    assert set(found.status) == {BracketStatus.UNBREAKABLE}
    assert set(bracket(net, X, -y).status) == {BracketStatus.WRONG}


def test_a_net_that_is_zero_everywhere_is_wrong_everywhere():
    net = PolyReLUNet(2, 3, p=2, init="zeros", dtype=torch.float64)
    found = bracket(net, torch.eye(2).double(), torch.tensor([1.0, -1.0]).double())
    assert (found.upper == 0).all() and set(found.status) == {BracketStatus.WRONG}


def test_a_net_that_never_changes_its_mind_is_held_by_its_bias():
    # f = relu(x_1)^3 + 1 > 0: nothing breaks it, and a ball around the point is proven.
    net = PolyReLUNet(2, 1, p=3, bias=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.eye(1, 2)), net.output.fill_(1.0), net.bias.fill_(1.0)
    found = bracket(net, torch.eye(2).double(), torch.ones(2).double(), budget=QUICK)
    assert found.upper.isinf().all() and (found.lower >= 2).all()
    assert set(found.status) == {BracketStatus.UNBROKEN}


def test_points_of_one_class_only():
    # x_1 < x_2 is reached at (x_1 - x_2)/sqrt(2), though no point of the other class shows the way.
    X = torch.tensor([[1.0, 0.0], [2.0, 1.0]]).double()
    found = bracket(plain_net(), X, torch.ones(2).double())
    torch.testing.assert_close(found.upper, torch.full((2,), 0.5**0.5).double(), rtol=1e-6, atol=0)
    assert (found.lower >= found.upper / 1.0011).all()


@pytest.mark.slow
def test_points_next_to_the_boundary():
    # x_1 = x_2 (1 + tiny): the radius is tiny x_2 / sqrt(2), far below the rounding of logits but not of the points.
    gap = torch.tensor([1e-3, 1e-6, 1e-9, 1e-12]).double()
    X = torch.stack([1 + gap, torch.ones(4).double()], dim=1)
    exact = (X[:, 0] - X[:, 1]) / 2**0.5
    found = bracket(plain_net(), X, torch.ones(4).double())
    assert (found.lower <= exact * (1 + 1e-9)).all()
    assert (found.upper >= exact * (1 - 1e-3)).all()
    torch.testing.assert_close(found.lower[:3], exact[:3], rtol=2e-3, atol=0)


def test_bad_input_is_named():
    net, X, y = plain_net(), torch.eye(2).double(), torch.tensor([1.0, -1.0]).double()
    several = plain_net(2)
    cases = [
        ("X", lambda: bracket(net, X * torch.nan, y)),
        ("X", lambda: bracket(net, X * torch.inf, y)),
        ("X", lambda: bracket(net, torch.ones(2, 3).double(), y)),
        ("X.shape", lambda: bracket(net, X[:0], y[:0])),
        ("X.shape", lambda: bracket(net, X[0], y)),
        ("X.dtype", lambda: bracket(net, X.long(), y)),
        ("y.shape", lambda: bracket(net, X, y[:1])),
        ("y", lambda: bracket(net, X, torch.tensor([0.0, 1.0]).double())),
        ("y", lambda: bracket(several, X, y)),
        ("y", lambda: bracket(several, X, torch.tensor([0, 2]))),
        ("norm", lambda: bracket(net, X, y, norm=3)),
        ("norm", lambda: bracket(net, X, y, norm="l3")),
        ("tol", lambda: bracket(net, X, y, tol=0)),
        ("tol", lambda: bracket(net, X, y, tol=-1e-3)),
        ("tol", lambda: bracket(net, X, y, tol=1.0)),
        ("budget.nodes", lambda: Budget(nodes=-1)),
        ("budget.seconds", lambda: Budget(seconds=-1.0)),
    ]
    for number, (name, call) in enumerate(cases):
        with pytest.raises(InputError, match=rf"^{name}\b"):
            call()
            pytest.fail(f"case {number} was taken")


def test_the_callers_net_and_points_are_not_touched():
    net, X, y = cubic()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    X.requires_grad_()
    found = bracket(net, X, y, budget=Budget(nodes=0))
    assert not found.lower.requires_grad and X.grad is None
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_progress_is_told():
    class Heard(Progress):
        done = 0

        def update(self, *, done):
            assert done >= self.done
            self.done = done

    net, X, y = cubic()
    heard = Heard()
    bracket(net, X, y, budget=Budget(nodes=0), progress=heard)
    assert heard.done == len(X)


def test_a_broken_sandwich_is_a_bug_of_ours():
    ok = torch.tensor([0.0, 1.0, torch.inf]).double()
    check_bounds(ok, ok)
    with pytest.raises(BoundsInconsistentError, match=r"Point 1 .*bug in polyrelu"):
        check_bounds(torch.tensor([0.0, 1.0 + 1e-15], dtype=torch.float64), torch.tensor([0.0, 1.0]).double())


def test_the_published_attack_is_fooled_and_the_bracket_is_not():
    # F^(3) breaks at sqrt(2)/2 from a centre; a zero start sees no slope towards the other class even at .75
    # (that half is in test_attacks).
    X, y, net = NOISY.rows(), NOISY.y, CentreClassifier(MIX.centres, MIX.labels, 3)
    found = bracket(net, X, y, budget=Budget(nodes=0))
    exact = centre_radius(X, y, MIX.centres, MIX.labels, 3)
    assert (exact < 0.75).all() and (found.upper <= exact * (1 + 1e-6)).all()


def test_neurons_that_did_not_collapse_are_bracketed_without_a_search():
    """300 directions, ten classes: both bounds hold, and are near each other, without branch and bound."""
    net = PolyReLUNet(40, 300, 3.0, 10, init="kaiming", seed=3, bias=True, normalise_input=True, dtype=torch.float64)
    X = torch.randn(6, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = net(X).argmax(dim=1)
    found = bracket(net, X, y)
    honest(net, X, y, found)
    assert set(found.status) == {BracketStatus.UNPROVEN} and not found.nodes.any()
    assert (found.lower > 0.5 * found.upper).all()
