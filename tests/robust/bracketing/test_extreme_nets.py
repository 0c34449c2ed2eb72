"""Proofs hold where contributions spread over hundreds of decades, where classes cancel, and where powers underflow."""

import importlib
import math

import mpmath
import numpy as np
import pytest
import torch

import polyrelu
from polyrelu import Budget, bracket
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, as_float64
from polyrelu.robust import (
    BracketStatus,
    average_radius,
    bounds_at_radius,
    linear_radius,
    quadratic_radius,
    root_lipschitz_radius,
)
from polyrelu.robust.certify.root_relaxation import Ball
from polyrelu.robust.core import ReducedNet
from polyrelu.robust.core.scaled_net import ScaledNet, gamma
from polyrelu.robust.external import certified

NORMS = (1.0, 2.0, math.inf)
CERTIFICATES = [pytest.param(root_lipschitz_radius, id="cheap"), pytest.param(linear_radius, id="linear")]


def bracketed(net, X, y, norm):
    return bracket(net, X, y, norm=norm, budget=polyrelu.Budget(nodes=20)).lower


WITH_BRACKET = [*CERTIFICATES, pytest.param(bracketed, id="bracket")]


def net_of(p, weight, output, log=None, **more):
    """Neurons with these rows and outputs, contributions multiplied by e^log."""
    weight, output = torch.tensor(weight, dtype=torch.float64), torch.tensor(output, dtype=torch.float64)
    net = PolyReLUNet(weight.shape[1], len(weight), p, len(output), init="zeros", dtype=torch.float64, **more)
    with torch.no_grad():
        net.weight.copy_(weight)
        net.output.copy_(output)
        if log is not None:
            net.log_scale.copy_(torch.tensor(log, dtype=torch.float64) / 2)
    return net


def rows(*points):
    return torch.tensor(points, dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("prove", CERTIFICATES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("p", [1, 2, 3, 50])
@pytest.mark.parametrize("decades", [20, 100, 200, 280, 400])
def test_a_heavy_rival_that_is_silent_at_the_point(prove, norm, p, decades):
    # f = 10^-decades relu(x_1)^p - relu(x_2)^p: broken where x_1 <= 0, or x_2 > 0 beyond any 10^(-decades/p)
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]], [-decades * math.log(10), 0.0])
    X = rows([0.9, -0.3], [0.2, -0.7], [1e-3, -1e-4])
    nearest = torch.minimum(X[:, 0], -X[:, 1] + X[:, 0] * 10 ** (-decades / p))
    assert (prove(net, X, torch.ones(3, dtype=torch.float64), norm) <= nearest).all()


@pytest.mark.parametrize("decades", [20, 100, 200, 280])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_faint_neurons_are_proven_as_far_as_they_decide(p, decades):
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]], [-decades * math.log(10), 0.0])
    X, y = rows([0.9, -0.3], [0.2, -0.7]), torch.ones(2, dtype=torch.float64)
    torch.testing.assert_close(linear_radius(net, X, y), rows([0.3, 0.2])[0], rtol=0.05, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("prove", WITH_BRACKET)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("log", [-150.0, -900.0, 900.0])
def test_the_unit_of_the_net_does_not_matter(prove, norm, log):
    weight = [[1.0, 0.2, 0.0], [0.3, 1.0, 0.1], [0.0, -0.5, 1.0], [-1.0, 0.4, 0.3]]
    output = [[1.0, -0.5, 0.7, -1.0]]
    X, y = rows([1.0, -0.1, 0.4], [0.8, -0.6, 0.2]), torch.ones(2, dtype=torch.float64)
    plain, other = net_of(3, weight, output), net_of(3, weight, output, [log] * 4)
    wanted = prove(plain, X, y, norm)
    assert (wanted > 0.05).all()
    if (
        prove is root_lipschitz_radius or abs(log) < 200
    ):  # beyond, float64 cannot run the net, and the attack breaks it at once
        rtol = 1e-3 if prove is bracketed else 1e-9  # a bracket ends within its tol
        torch.testing.assert_close(prove(other, X, y, norm), wanted, rtol=rtol, atol=0)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_the_unit_of_the_points_does_not_matter(scale):
    weight, output = [[1.0, 0.2], [0.3, 1.0], [-1.0, 0.4]], [[1.0, -0.5, -1.0]]
    X, y = rows([1.0, -0.1], [0.8, -0.6]), torch.ones(2, dtype=torch.float64)
    net = net_of(2, weight, output)
    for prove in (root_lipschitz_radius, linear_radius, quadratic_radius):
        torch.testing.assert_close(prove(net, scale * X, y), scale * prove(net, X, y), rtol=1e-6, atol=0)


@pytest.mark.parametrize("prove", CERTIFICATES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("decades", [6, 9, 12, 200])
def test_classes_with_a_large_common_part(prove, norm, p, decades):
    # Logits differ by 10^-decades (relu(x_1)^p, relu(x_2)^p), beside 1e3 relu(x_1 + x_2)^p of all classes
    small = 10.0**-decades
    weight = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    output = [[1e3, small, 0, 0], [1e3, 0, small, 0], [1e3, 0, 0, small]]
    net = net_of(p, weight, output)
    X = rows([1.0, 0.4, -0.5], [0.7, 0.1, 0.2])
    share = {1.0: 1.0, 2.0: math.sqrt(0.5), math.inf: 0.5}[norm]  # min |d| with d_2 - d_1 = 1
    nearest = torch.minimum(X[:, 0], share * (X[:, 0] - X[:, 1:].amax(dim=1)))
    assert (prove(net, X, torch.zeros(2, dtype=torch.long), norm) <= nearest).all()


@pytest.mark.parametrize("prove", WITH_BRACKET)
@pytest.mark.parametrize("norm", NORMS)
def test_light_neurons_that_underflow_beside_lighter_ones_that_differ(prove, norm):
    # Both classes share a neuron of weight 1; they differ by e^-600 relu(x_1) and e^-800 relu(x_2), below any float64
    net = net_of(1, [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [[1, 1, 0], [1, 0, 1]], [0.0, -600.0, -800.0])
    X = rows([1.0, 0.5])
    assert prove(net, X, torch.zeros(1, dtype=torch.long), norm) <= 1.0
    assert prove(net, rows([-1.0, 0.5]), torch.zeros(1, dtype=torch.long), norm) == 0


@pytest.mark.parametrize("prove", CERTIFICATES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("p", [40, 50, 64.5])
def test_powers_that_underflow(prove, norm, p):
    # f = relu(x_1)^p - relu(x_2)^p, x nearly orthogonal to both: values of 1e-200 and less
    net = net_of(p, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, -1.0]])
    X = rows([1e-4, 5e-5, 1.0], [1e-6, 0.0, 1.0], [0.3, 0.3, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    share = {1.0: 1.0, 2.0: math.sqrt(0.5), math.inf: 0.5}[norm]
    nearest = share * (X[:, 0] - X[:, 1])
    assert (prove(net, X, torch.ones(5, dtype=torch.float64), norm) <= nearest * (1 + 1e-12)).all()


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_what_float64_cannot_say_is_said(p):
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]], [-680.0, 0.0])
    found = bracket(net, rows([0.9, -0.3]), torch.ones(1, dtype=torch.float64))
    assert found.lower[0] == 0 and found.status == (BracketStatus.FAINT,)
    assert "Nothing proven" in BracketStatus.FAINT.value


def test_a_radius_too_small_to_tell_from_zero_is_zero():
    net = net_of(1, [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]])
    X, y = rows([1e-305, 0.0], [1e-290, 0.0]), torch.ones(2, dtype=torch.float64)
    for prove in (root_lipschitz_radius, linear_radius, quadratic_radius):
        found = prove(net, X, y)
        assert found[0] == 0 and 0 < found[1] <= 1e-290


@pytest.mark.slow
@pytest.mark.parametrize("decades", [100, 280])
@pytest.mark.parametrize("p", [1, 3, 50])
def test_the_bracket_beside_a_heavy_rival_that_is_silent(p, decades):
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]], [-decades * math.log(10), 0.0])
    X = rows([0.9, -0.3], [0.2, -0.7])
    found = bracketed(net, X, torch.ones(2, dtype=torch.float64), 2)
    assert (found <= torch.minimum(X[:, 0], -X[:, 1] + X[:, 0] * 10 ** (-decades / p))).all()


@pytest.mark.slow
@pytest.mark.parametrize("p, decades", [(1, 9), (2, 200), (3, 12)])
def test_the_bracket_of_classes_with_a_large_common_part(p, decades):
    small = 10.0**-decades
    weight = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    net = net_of(p, weight, [[1e3, small, 0, 0], [1e3, 0, small, 0], [1e3, 0, 0, small]])
    X = rows([1.0, 0.4, -0.5], [0.7, 0.1, 0.2])
    nearest = torch.minimum(X[:, 0], math.sqrt(0.5) * (X[:, 0] - X[:, 1:].amax(dim=1)))
    assert (bracketed(net, X, torch.zeros(2, dtype=torch.long), 2) <= nearest).all()


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("prove", WITH_BRACKET)
@pytest.mark.parametrize("part", [1.0, 3.7, 1e6])
def test_outputs_and_biases_that_nearly_cancel(prove, norm, part):
    # f_0 - f_1 = a relu(x_1) - a relu(x_2) + b, a and b the last digits of numbers of size ``part``, exactly
    a, b = 3 * math.ulp(part), math.ulp(part)
    net = net_of(1, [[1.0, 0.0], [0.0, 1.0]], [[part + a, part], [part, part + a]], bias=True)
    with torch.no_grad():
        net.bias.copy_(torch.tensor([part + b, part], dtype=torch.float64))
    X = rows([1.0, 0.5], [0.75, 0.7])
    share = {1.0: 1.0, 2.0: math.sqrt(0.5), math.inf: 0.5}[norm]
    nearest = share * (X[:, 0] - X[:, 1] + b / a)
    found = prove(net, X, torch.zeros(2, dtype=torch.long), norm)
    assert (found <= nearest * (1 + 1e-15)).all()
    if prove is not bracketed:  # the attack sees float64, where these logits are noise
        assert (found >= 0.5 * nearest).all()


@pytest.mark.slow
@pytest.mark.parametrize(("p", "far"), [(50, 1e9), (30, 1e12), (7, 1e50)])
def test_far_rows_of_a_normalised_net_with_a_bias_overflow_no_attack(p, far):
    """|x|^(p-1) beside the bias is beyond any float, f itself is not."""
    draw = torch.Generator().manual_seed(1)
    net = PolyReLUNet(5, 8, float(p), bias=True, normalise_input=True, dtype=torch.float64, seed=3)
    with torch.no_grad():
        net.weight.copy_(torch.randn(8, 5, generator=draw, dtype=torch.float64))
        net.output.copy_(torch.randn(1, 8, generator=draw, dtype=torch.float64))
        net.bias.fill_(0.25)
    X = torch.randn(6, 5, generator=draw, dtype=torch.float64)
    y = net(far * X).sign()
    found = bracket(net, far * X, y, budget=Budget(nodes=40))
    assert ((found.lower > 0) & (found.lower <= found.upper) & found.upper.isfinite()).all()
    assert (net(far * X + found.perturbation).sign() != y).all()


def exactly(net):
    """v_j |w_j| of one logit and the bias, in 60 digits."""
    weight, output = net.weight.tolist(), net.output[0].tolist()
    rates = [mpmath.mpf(v) * mpmath.norm(mpmath.matrix(w)) for v, w in zip(output, weight, strict=True)]
    rates = [a * mpmath.exp(2 * mpmath.mpf(log)) for a, log in zip(rates, net.log_scale.tolist(), strict=True)]
    return rates, mpmath.mpf(0 if net.bias is None else float(net.bias.detach()))


def test_what_logarithms_round_off_coefficients_and_biases_is_counted():
    source = np.random.default_rng(0)
    with mpmath.workdps(60):
        for _ in range(40):
            size, angle = 10 ** source.uniform(100, 150, (2, 2)), source.uniform(0.3, 1.2, 2) * [1, -1]
            weight = np.stack([np.cos(angle), np.sin(angle)], axis=1) * size[0, :, None]
            net = net_of(2, weight.tolist(), [[size[1, 0], -size[1, 1]]], (-np.log(size).sum(0)).tolist(), bias=True)
            with torch.no_grad():
                net.bias.fill_(10 ** source.uniform(-150, 150))
            reduced, X, y = ReducedNet.from_net(net, 1e-3), rows([1.0, 0.0]), torch.ones(1, dtype=torch.float64)
            table = reduced.rows(X, y)
            (own, other), bias = exactly(net)
            unit = mpmath.exp(mpmath.mpf(reduced.whole.log_unit))
            moved = [abs(a / unit - mpmath.mpf(v)) for a, v in zip((own, other), reduced.V[0].tolist(), strict=True)]
            moved = sum(mpmath.mpf(t) ** 2 * a for t, a in zip(table.pre[0].tolist(), moved, strict=True))
            assert float(reduced.slack(y, table, torch.zeros(1))) >= moved
            for label, part in ((1.0, "own_constant"), (-1.0, "opposite_constant")):
                y = torch.full((1,), label, dtype=torch.float64)
                ball = Ball(reduced, y, torch.ones(1).double(), reduced.rows(X, y), table.s)
                constant = mpmath.mpf(float(getattr(ball.part, part)))
                assert (constant <= bias / unit) if label > 0 else (constant >= bias / unit)


@pytest.mark.slow
def test_nearest_breaks_of_nets_whose_coefficients_come_out_of_logarithms():
    one = net_of(3, [[8.576701163826325e-142]], [[1.589981338123713e-132]], bias=True)
    weight = [[4.675631877981334e132, 2.933003621582603e132], [8.578741209604139e127, -8.186594798507627e127]]
    logs = [2 * -283.76767858270387, 2 * -282.23412699755215]
    two = net_of(2, weight, [[5.4397648578822294e113, -1.1787776295324146e117]], logs)
    with torch.no_grad():
        one.bias.fill_(-1.4467318830796227e-273)
    with mpmath.workdps(60):
        (own,), bias = exactly(one)
        tie = (-bias / own) ** (mpmath.mpf(1) / 3)  # v w relu(x)^3 + b = 0
        lower = bracketed(one, rows([1.0199023264308364]), torch.ones(1, dtype=torch.float64), 2)
        assert float(lower) <= mpmath.mpf(1.0199023264308364) - tie
        units = [mpmath.matrix(w) / mpmath.norm(mpmath.matrix(w)) for w in weight]
        roots = [mpmath.sqrt(abs(a)) for a in exactly(two)[0]]
        normal = roots[1] * units[1] - roots[0] * units[0]  # the tie is the line <normal, x> = 0
        x = [0.9949157409236069, -0.10071081601511492]
        lower = bracketed(two, rows(x), -torch.ones(1, dtype=torch.float64), 2)
        assert float(lower) <= mpmath.fdot(normal, x) / mpmath.norm(normal)


@pytest.mark.slow
@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("share", [0.8, 0.99])
def test_points_whose_squares_underflow(p, share):
    # f(x) = relu(x_1)^p / |x|^(p-1) - b with 399 more entries: broken before x_1 falls to b, or they grow
    x = np.full(400, 2.6e-162)
    x[0] = 4e-161
    with mpmath.workdps(60):
        length = mpmath.norm(mpmath.matrix(x.tolist()))
        bias = float(mpmath.mpf(x[0]) ** p / length ** (p - 1) * share)
        net = net_of(p, [[1.0] + [0.0] * 399], [[1.0]], bias=True, normalise_input=True)
        with torch.no_grad():
            net.bias.fill_(-bias)
        X, y = torch.from_numpy(x)[None], torch.ones(1, dtype=torch.float64)
        found = bracket(net, X, y, budget=Budget(nodes=10))
        lower, rest = mpmath.mpf(float(found.lower)), mpmath.sqrt(399) * mpmath.mpf(x[1])
        for angle in np.linspace(0, 2 * math.pi, 180):  # in the plane of x_1 and the others
            a, c = mpmath.mpf(x[0]) + lower * mpmath.cos(angle), rest + lower * mpmath.sin(angle)
            assert a**p / mpmath.sqrt(a * a + c * c) ** (p - 1) >= bias
        assert 0 < found.lower <= found.upper < 1e-160
        executed = bracket(net, X, y, budget=Budget(nodes=10), arithmetic="float64").lower
        further = X + torch.cat([torch.zeros(1), torch.full((399,), float(executed) / math.sqrt(399.1))]).double()
        assert float(executed) > 0 and bool(net(further) > 0)


@pytest.mark.parametrize("decades", [30, 120, 250, 400])
def test_classes_that_differ_in_faint_neurons_only(decades):
    # a huge neuron common to both classes, and x_1 against x_2 below it: the radius is (x_1 - x_2)/sqrt(2)
    net = net_of(2, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [0.0, 0.0, decades * 2.3])
    lower = root_lipschitz_radius(net, rows([0.9, 0.3]), torch.zeros(1, dtype=torch.int64))
    torch.testing.assert_close(lower, rows([0.6 / math.sqrt(2)])[0], rtol=1e-6, atol=0)


@pytest.mark.parametrize("weight, output, bias", [(1e300, 1e-300, 0.0), (1e-300, 1e300, 0.0), (1.0, 1.0, 1e-300)])
def test_every_logarithm_counts_by_its_size_where_they_cancel_too(weight, output, bias):
    net = net_of(2, [[weight, 0.0]], [[output]], bias=True)
    with torch.no_grad():
        net.bias.fill_(bias)
    assert ScaledNet.from_net(net).eps >= gamma(32 * 300 * math.log(10))


# f_1 - f_2 = a relu(x_2)^p - b relu(x_1)^p, and class 0 is far below both; from (-1e-3, 1) the boundary is nearest
# along x_1, at least 1e-3 away and at most 1e-3 + (a/b)^(1/p)
FAR_BELOW = [
    pytest.param(-1.0, 1e-280, 1e-270, id="differences that exp cannot scale"),
    pytest.param(-1.0, 1e-310, 1e-300, id="subnormal differences"),
    pytest.param(-1e300, 1e-30, 1e-25, id="columns that underflow"),
    pytest.param(-1e200, 1e-130, 1e-125, id="columns that underflow elsewhere"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "prove", [*WITH_BRACKET, pytest.param(lambda net, X, y, norm: quadratic_radius(net, X, y), id="quadratic")]
)
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize(("below", "a", "b"), FAR_BELOW)
def test_classes_that_differ_far_below_a_third(prove, p, below, a, b):
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[below, 0.0], [0.0, a], [b, 0.0]], bias=True)
    with torch.no_grad():
        net.bias[0] = below
    assert prove(net, rows([-1e-3, 1.0]), torch.tensor([1]), 2.0) <= 1e-3 + (a / b) ** (1 / p)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize(("below", "a", "b"), FAR_BELOW)
def test_the_same_as_it_runs(p, below, a, b):
    net = net_of(p, [[1.0, 0.0], [0.0, 1.0]], [[below, 0.0], [0.0, a], [b, 0.0]], bias=True)
    with torch.no_grad():
        net.bias[0] = below
    X, y = rows([-1e-3, 1.0]), torch.tensor([1])
    assert linear_radius(net, X, y, 2.0, arithmetic="float64") <= 1e-3 + (a / b) ** (1 / p)
    assert bracket(net, X, y, arithmetic="float64").lower <= 1e-3 + (a / b) ** (1 / p)


def test_faint_classes_are_proven_nearly_to_their_boundary():
    # p = 1: x_2 = 1e10 x_1 up to what moving x_2 saves
    net = net_of(1, [[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1e-310], [1e-300, 0.0]], bias=True)
    with torch.no_grad():
        net.bias[0] = -1.0
    assert linear_radius(net, rows([-1e-3, 1.0]), torch.tensor([1]), 2.0) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.slow
def test_a_large_logit_that_decides_nothing_excuses_no_proof(monkeypatch):
    # rounding of class 0 is 1e-16, the margin between the others 1e-277: a false proof there must not be cut in silence
    net = net_of(3, [[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1e-280], [1e-270, 0.0]], bias=True)
    with torch.no_grad():
        net.bias[0] = -1.0
    X, y = rows([-1e-3, 1.0]), torch.tensor([1])
    found = bracket(net, X, y)
    assert found.upper < 0.01
    bracket_module = importlib.import_module("polyrelu.robust.bracketing.bracket")
    real = bracket_module.branching_bounds

    def too_long(*given):
        bounds = real(*given)
        for part in (bounds.perturbation, bounds.upper):
            part.mul_(1.5)  # well beyond the boundary
        bounds.lower.mul_(100)
        return bounds

    monkeypatch.setattr(bracket_module, "branching_bounds", too_long)
    with pytest.raises(bracket_module.BoundsInconsistentError):
        bracket(net, X, y)


@pytest.mark.slow
def test_products_that_underflow_before_they_are_scaled_up():
    # as it runs, v |w| underflows to a subnormal number and e^690 makes its error large: 1.4 becomes 1
    small = 1.4 * (2.0**-1074 / 1e-145)
    net = net_of(1, [[1e-145]], [[small]], [690.0], bias=True)
    with torch.no_grad():
        net.bias.fill_(float(-mpmath.mpf(small) * mpmath.mpf(1e-145) * mpmath.exp(690)))
    assert net(rows([1.3])) < 0
    assert bracket(net, rows([2.0]), torch.ones(1, dtype=torch.float64), arithmetic="float64").lower <= 0.7


@pytest.mark.slow
def test_subnormal_coefficients_as_they_run():
    small = 1.4 * (2.0**-1074 / 1e-145)
    net = net_of(1, [[1e-145]], [[small]], bias=True)
    with torch.no_grad():
        net.bias.fill_(-7 * 2.0**-1074)
    assert net(rows([7.0])) <= 0
    assert bracket(net, rows([20.0]), torch.ones(1, dtype=torch.float64), arithmetic="float64").lower <= 13


def test_class_sums_that_cancel():
    # the stored centres add up to (3, 1) and (0, -1): the boundary 3 x_1 + x_2 = 0 is 1/sqrt(10) from (0, 1)
    centres, labels = rows([1e17, 0.0], [3.0, 1.0], [-1e17, 0.0], [0.0, -1.0]), torch.tensor([1.0, 1, 1, -1]).double()
    X, y = rows([0.0, 1.0]), torch.ones(1, dtype=torch.float64)
    assert bracket(AverageClassifier(centres, labels), X, y).lower <= 10**-0.5
    torch.testing.assert_close(average_radius(X, y, centres, labels), rows(10**-0.5), rtol=1e-14, atol=0)


@pytest.mark.parametrize("size", [1e-170, 1e-162, 1.0, 1e160])
def test_centres_whose_squares_underflow(size):
    # F > 0 where <x, mu_1> > <x, mu_2>: a half-space
    centres = torch.diag(torch.tensor([2.987171175686864, 2.646834345851655], dtype=torch.float64)) * size
    net = CentreClassifier(centres, torch.tensor([1.0, -1.0], dtype=torch.float64), p=1.7)
    a, b = centres.diag() / size
    true = (2 * a - b) / torch.hypot(a, b)
    found = bracket(net, rows([2.0, 1.0]), torch.ones(1, dtype=torch.float64))
    assert 0.99 * true <= found.lower <= true


@pytest.mark.parametrize("size", [1e-120, 1.0, 1e120])
def test_powers_of_norms_that_float64_does_not_hold(size):
    # |mu|^(p-1) = 1e-600 and 1e600: the logits do not exist, but their ratio does
    net = CentreClassifier(size * torch.eye(2).double(), torch.tensor([1.0, -1.0], dtype=torch.float64), p=6.0)
    plain = net.as_polyrelu_net()
    assert plain.log_contributions().tolist() == pytest.approx([6 * math.log(size)] * 2, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("p", [1.5, 3.0, 100.0, 1e4])
def test_powers_of_norms_are_rounded_once(p):
    centres = torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    net = CentreClassifier(centres, torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64), p=p).as_polyrelu_net()
    for row, log in zip(centres.tolist(), net.log_contributions().tolist(), strict=True):
        exact = mpmath.log(mpmath.sqrt(mpmath.fsum(mpmath.mpf(one) ** 2 for one in row))) * p
        assert log == pytest.approx(float(exact), rel=4e-16, abs=4e-16)


def nearly_equal_classes(draw):
    """Collinear float32 neurons, classes an ulp or two apart whose differences cancel but for 1e-8; the break at 1."""
    net = PolyReLUNet(1, 2, 1.0, 2, init="zeros", bias=True)
    low, ulps = draw.uniform(1, 2, 2).astype(np.float32), draw.integers(1, 3, 2)
    high = (low.astype(np.float64) + ulps * 2.0**-23).astype(np.float32)  # between 1 and 2 an ulp is 2^-23
    log = draw.uniform(1, 5)
    with torch.no_grad():
        net.weight.fill_(1.0)
        net.output.copy_(torch.from_numpy(np.array([[high[0], low[1]], [low[0], high[1]]])))
        net.log_scale.copy_(rows(log, log + 0.5 * math.log(ulps[0] / ulps[1]) - 1e-8))
    scales = [mpmath.exp(2 * mpmath.mpf(one)) for one in net.log_scale.tolist()]
    slope = (int(ulps[0]) * scales[0] - int(ulps[1]) * scales[1]) * mpmath.mpf(2) ** -23
    with torch.no_grad():
        net.bias.copy_(torch.tensor([0.0, 0.9 * float(slope)]))
    return net, float(1 - mpmath.mpf(net.bias[1].item()) / slope)


@pytest.mark.slow
def test_float32_classes_an_ulp_apart_with_logs_are_proven_as_stored():
    X, y, draw = torch.tensor([[1.0]]), torch.tensor([0]), np.random.default_rng(1)
    for _ in range(6):
        net, true = nearly_equal_classes(draw)
        assert linear_radius(net, X, y, 2.0) <= true
        assert bracket(net, X, y, budget=Budget(nodes=20)).lower <= true
        assert bracket(net, X, y, norm="inf", budget=Budget(nodes=20)).lower <= true
        assert certified(net, X.double(), y) <= true
        assert not bounds_at_radius(net, X, y, 1.001 * true)[0]


def test_doubled_changes_no_number():
    net = PolyReLUNet(3, 5, 3.0, 2, scale=1e-20, seed=0)
    known = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert net.log_scale.any()
    for name, tensor in as_float64(net).state_dict().items():
        assert tensor.dtype == torch.float64 and torch.equal(tensor, known[name].double())
