"""The flow against exact answers: independent solvers, closed forms, conserved quantities, symmetries."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expi

from polyrelu import Dataset, OrthonormalMixture, PolyReLUNet, Status, Until, descend, flow

F64 = torch.float64


def logits(net, data):
    with torch.no_grad():
        return net(data.rows()).numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "loss", "init", "time"),
    [
        (1.0, "exp", "balanced", 12.0),
        (1.5, "exp", "balanced", 12.0),
        (2.0, "logistic", "gaussian", 20.0),
        (3.0, "exp", "gaussian", 12.0),
        (3.0, "squared", "balanced", 12.0),
        (4.2, "logistic", "balanced", 15.0),
    ],
)
def test_agrees_with_an_independent_solver_on_raw_weights(raw_flow, small, p, loss, init, time):
    # For p = 1 the field jumps at gates, where no solver has an order: wider tolerances.
    net = PolyReLUNet(12, 8, p, init=init, scale=0.05, seed=4, dtype=F64)
    truth, W, _ = raw_flow(net, small, loss, time)
    out = flow(net, small, loss=loss, until=Until(time=time), rtol=1e-4 if p == 1 else 1e-6)
    assert out.status is Status.TIME
    assert out.time == pytest.approx(time, rel=2e-6)
    tolerance = 1e-3 if p == 1 else 2e-5
    assert np.abs(logits(out.net, small) - truth[:, 0]).max() <= tolerance * np.abs(truth).max()
    assert np.abs(truth).max() > 0.3  # the norms have grown: not only alignment is compared
    assert np.allclose(out.net.weight.detach().numpy(), W, atol=10 * tolerance * np.abs(W).max())


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
@pytest.mark.parametrize("bias", [False, True])
def test_agrees_with_an_independent_solver_on_three_classes(raw_flow, three_classes, loss, bias):
    net = PolyReLUNet(10, 9, 2.5, outputs=3, init="gaussian", scale=0.1, seed=5, bias=bias, dtype=F64)
    if bias:
        net.bias.data.zero_()
    truth, _, _ = raw_flow(net, three_classes, loss, 25.0, biased=bias)
    out = flow(net, three_classes, loss=loss, until=Until(time=25.0), rtol=1e-6)
    assert np.abs(logits(out.net, three_classes) - truth).max() <= 3e-5 * np.abs(truth).max()
    assert np.abs(truth).max() > 0.3


@pytest.mark.slow
def test_centre_and_input_normalisation_agree_with_an_independent_solver(raw_flow, small):
    net = PolyReLUNet(
        12, 8, 3.0, init="balanced", scale=0.1, seed=4, centre=small.rows().mean(0), normalise_input=True, dtype=F64
    )
    truth, _, _ = raw_flow(net, small, "exp", 8.0)
    out = flow(net, small, until=Until(time=8.0), rtol=1e-6)
    assert np.abs(logits(out.net, small) - truth[:, 0]).max() <= 2e-5 * np.abs(truth).max()


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_small_steps_of_gradient_descent_approach_the_flow(small, p):
    # Explicit Euler: halving the step halves the distance to the flow in f.
    net = PolyReLUNet(12, 8, p, init="balanced", scale=0.1, seed=6, dtype=F64)
    exact = logits(flow(net, small, until=Until(time=8.0), rtol=1e-5).net, small)
    gaps = []
    for rate in (0.04, 0.02, 0.01):
        out = descend(net, small, method="gd", rate=rate, until=Until(time=8.0), every=round(8.0 / rate))
        gaps.append(np.abs(logits(out.net, small) - exact).max() / np.abs(exact).max())
    assert gaps[2] < 0.02
    assert gaps[0] / gaps[2] == pytest.approx(4, rel=0.25)


def two_points(dim=2):
    """x = e1 with y = +1, and its mirror image with y = -1, which a neuron on the e1 side never sees."""
    X = torch.zeros(2, dim, dtype=F64)
    X[0, 0], X[1, 0] = 1, -1
    return Dataset(X, torch.tensor([1.0, -1.0]), name="two points")


def one_neuron(angle, p, norm):
    net = PolyReLUNet(2, 1, p, init="zeros", dtype=F64)
    net.weight.data = norm * torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=F64)
    net.output.data = torch.tensor([[norm]], dtype=F64)
    return net


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_norm_of_one_neuron_follows_the_logistic_curve(p):
    # u = e1: f(e1) = c = r s for every p, and with (1/2)(y - f)^2 averaged over two points c' = c (1 - c), hence
    # c(t) = 1 / (1 + (1/c0 - 1) e^-t).
    out = flow(one_neuron(0, p, 0.1), two_points(), loss="squared", until=Until(time=6.0), rtol=1e-7)
    exact = 1 / (1 + (1 / 0.01 - 1) * math.exp(-6.0))
    assert float(out.net.contributions()[0]) == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_direction_of_one_tiny_neuron_follows_its_closed_form(p):
    # f = 0, so the pull on e1 is 1/2: theta' = -(p/2) cos^(p-1) theta sin theta. For p = 1 tan(theta/2) decays as
    # e^(-t/2), for p = 2 tan theta decays as e^-t.
    angle, t = 1.2, 3.0
    out = flow(one_neuron(angle, p, 1e-9), two_points(), loss="exp", until=Until(time=t), rtol=1e-7)
    u = out.net.directions()[0]
    found = math.atan2(float(u[1]), float(u[0]))
    exact = (
        2 * math.atan(math.tan(angle / 2) * math.exp(-t / 2)) if p == 1 else math.atan(math.tan(angle) * math.exp(-t))
    )
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
def test_exponential_loss_in_closed_form_down_to_a_loss_no_float_holds():
    # u = e1, c = r s: c' = 2 c g, g = e^-c / 2. In loss time L = (e^-c + 1)/2 would stop at 1/2, so let both points be
    # active: one neuron of each sign gives L = e^-c and d tau = L dt, c' (tau) = c, hence c = c0 e^tau exactly.
    net = PolyReLUNet(2, 2, 3.0, init="zeros", dtype=F64)
    net.weight.data = 0.1 * torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=F64)
    net.output.data = 0.1 * torch.tensor([[1.0, -1.0]], dtype=F64)
    out = flow(net, two_points(), loss="exp", until=Until(loss=1e-300), rtol=1e-6)
    c = 0.01 * np.exp(out.history.clock)
    assert np.allclose(-out.history.log_loss, c, rtol=1e-5)
    # flow time: dt = e^c d tau = e^c dc / c, the exponential integral; to 2 % after 300 decades in a few dozen steps
    t = expi(c[1:]) - expi(0.01)
    assert np.allclose(out.history.log_time[1:], np.log(t), atol=2e-2)
    assert out.log10_loss <= -300


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 128])
@pytest.mark.parametrize("init", ["balanced", "gaussian"])
def test_balance_is_conserved_and_signs_of_balanced_neurons_too(large, surrogate, init):
    net = PolyReLUNet(60, 30, 3.0, init=init, scale=1e-3, seed=7, dtype=F64)
    out = flow(net, large, until=1e-1, surrogate=surrogate)
    assert out.status is Status.LOSS

    def difference(n):
        polar = n.polar()
        return (2 * polar.log_s).exp() - (2 * polar.log_r).exp()

    before, after = difference(net), difference(out.net)
    rounding = 1e-14 * (2 * out.net.polar().log_r).exp()
    assert ((after - before).abs() <= 1e-9 * before.abs() + rounding).all()
    if init == "balanced":
        assert torch.equal(out.net.polar().q, net.polar().q)


@pytest.mark.slow
def test_a_neuron_with_small_v_may_change_sign(raw_flow):
    # |v| << |w| and v > 0 where both points want v < 0: v goes through zero, as on raw weights.
    data = Dataset(torch.tensor([[1.0, 0.0], [-1.0, 0.3]], dtype=F64), torch.tensor([-1.0, 1.0]))
    net = one_neuron(0.3, 3.0, 0.5)
    net.output.data.fill_(0.05)
    truth, W, V = raw_flow(net, data, "exp", 4.0)
    out = flow(net, data, until=Until(time=4.0), rtol=1e-7)
    assert V[0, 0] < -0.1
    assert np.allclose(out.net.weight.detach(), W, rtol=1e-4)
    assert float(out.net.output.detach()) == pytest.approx(V[0, 0], rel=1e-5)
    assert np.allclose(logits(out.net, data), truth[:, 0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 128])
def test_rotating_the_data_and_the_network_rotates_the_flow(large, surrogate):
    Q = torch.linalg.qr(torch.randn(60, 60, generator=torch.Generator().manual_seed(8), dtype=F64))[0]
    net = PolyReLUNet(60, 30, 3.0, init="balanced", scale=1e-6, seed=7, dtype=F64)
    turned = PolyReLUNet(60, 30, 3.0, init="balanced", scale=1e-6, seed=7, dtype=F64)
    turned.weight.data = net.weight.data @ Q
    rotated = Dataset(large.rows() @ Q, large.y)
    out = flow(net, large, until=1e-1, surrogate=surrogate)
    other = flow(turned, rotated, until=1e-1, surrogate=surrogate)
    assert np.allclose(logits(out.net, large), logits(other.net, rotated), rtol=1e-6, atol=1e-8)
    assert torch.allclose(out.net.weight @ Q, other.net.weight, atol=1e-6)


@pytest.mark.slow
def test_permuting_neurons_permutes_the_flow(large):
    order = torch.randperm(30, generator=torch.Generator().manual_seed(9))
    net = PolyReLUNet(60, 30, 1.0, init="balanced", scale=1e-6, seed=7, dtype=F64)
    other = PolyReLUNet(60, 30, 1.0, init="balanced", scale=1e-6, seed=7, dtype=F64)
    other.weight.data, other.output.data = net.weight.data[order], net.output.data[:, order]
    a, b = (flow(n, large, until=1e-1).net for n in (net, other))
    assert torch.allclose(a.weight[order], b.weight, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_float32_agrees_with_float64(large, p):
    nets = [PolyReLUNet(60, 40, p, init="balanced", scale=1e-7, seed=7, dtype=d) for d in (torch.float32, F64)]
    data = [large.to(torch.float32), large]
    single, double = (flow(n, d, until=1e-2) for n, d in zip(nets, data, strict=True))
    a, b = logits(single.net, data[0]), logits(double.net, data[1])
    assert np.abs(a - b).max() <= 5e-3 * np.abs(b).max()


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_two_level_steps_agree_with_steps_on_the_data(large, p):
    # The same flow by two routes, one of which never steps on the surrogate.
    net = PolyReLUNet(60, 40, p, init="balanced", scale=1e-6, seed=7, dtype=F64)
    until = Until(time={1.0: 52.0, 2.0: 150.0, 3.0: 140.0}[p])
    plain = flow(net, large, until=until, rtol=1e-4, surrogate=0, merge=False, drop=False)
    two = flow(net, large, until=until, rtol=1e-3)
    a, b = logits(two.net, large), logits(plain.net, large)
    assert np.abs(b).max() > 0.5
    assert np.abs(a - b).max() <= 1e-2 * np.abs(b).max()
    assert two.evaluations < plain.evaluations / 3


@pytest.mark.slow
@pytest.mark.parametrize("init", ["balanced", "gaussian"])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_two_level_steps_agree_on_three_classes_with_bias(loss, init):
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(1200) % 3
    X = 0.2 * torch.randn(1200, 30, generator=generator, dtype=F64)
    X[torch.arange(1200), y] += 1
    data = Dataset(X, y)
    net = PolyReLUNet(30, 20, 2.5, outputs=3, init=init, scale=1e-2, seed=5, bias=True, dtype=F64)
    plain = flow(net, data, loss=loss, until=Until(time=60.0), rtol=1e-5, surrogate=0, merge=False, drop=False)
    two = flow(net, data, loss=loss, until=Until(time=60.0), rtol=1e-3, surrogate=64)
    a, b = logits(two.net, data), logits(plain.net, data)
    assert np.abs(b).max() > 0.5
    assert np.abs(a - b).max() <= 1e-2 * np.abs(b).max()


@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_a_start_far_from_balanced_is_taken_as_it_is(small, factor):
    net = PolyReLUNet(12, 8, 3.0, init="balanced", scale=1e-12, seed=4, dtype=F64)
    net.weight.data *= factor
    out = flow(net, small, until=Until(time=1e-40))
    assert torch.allclose(out.net.log_contributions(), net.log_contributions(), atol=1e-9)
    assert torch.allclose(out.net.polar().log_r, net.polar().log_r, atol=1e-9)


@pytest.mark.slow
def test_initial_scale_only_shifts_time():
    # While f = 0 nothing but log norms depends on the scale: smaller by e^-k takes k/a longer, a the growth rate.
    data = OrthonormalMixture(dim=40, positive=2, negative=2, alpha=0.05).sample(400, seed=0)
    out = {
        scale: flow(PolyReLUNet(40, 50, 3.0, init="balanced", scale=scale, seed=1), data, until=1e-2)
        for scale in (1e-7, 1e-30, 1e-300)
    }
    for run in out.values():
        assert run.status is Status.LOSS
        assert run.net.weight.isfinite().all()
        assert run.accuracy == 1
    rate = 1 / 4  # a centre neuron sees one of four clusters: a = 1/K
    for small, tiny in ((1e-7, 1e-30), (1e-30, 1e-300)):
        wait = math.log(small / tiny) / rate
        assert out[tiny].time - out[small].time == pytest.approx(wait, rel=0.02)
    u, v = out[1e-30].net.directions(), out[1e-300].net.directions()
    carrying = out[1e-300].net.contributions() > 1e-3
    assert float((u * v).sum(1)[carrying].min()) > 0.9999


@pytest.mark.slow
def test_lazy_rows_give_bitwise_the_same_flow_as_rows_in_memory():
    mix = OrthonormalMixture(dim=30, positive=2, negative=2, alpha=0.1)
    net = PolyReLUNet(30, 20, 3.0, init="balanced", scale=1e-5, seed=1)
    held, lazy = (flow(net, mix.sample(2500, seed=3, lazy=lazy), until=1e-1) for lazy in (False, True))
    assert torch.equal(held.net.weight, lazy.net.weight)
    assert np.array_equal(held.history.log_loss, lazy.history.log_loss)


@pytest.mark.slow
def test_memory_mapped_rows_give_bitwise_the_same_flow(tmp_path):
    data = OrthonormalMixture(dim=30, positive=2, negative=2, alpha=0.1).sample(2500, seed=3)
    np.save(tmp_path / "x.npy", data.rows().numpy())
    mapped = Dataset(np.load(tmp_path / "x.npy", mmap_mode="r"), data.y)
    net = PolyReLUNet(30, 20, 1.0, init="balanced", scale=1e-5, seed=1)
    assert torch.equal(flow(net, data, until=1e-1).net.weight, flow(net, mapped, until=1e-1).net.weight)
