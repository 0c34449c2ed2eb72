"""The end of training: weights against their equation, steps against the early method, laws of the flow kept."""

import importlib
import math

import numpy as np
import pytest
import torch

import polyrelu
from polyrelu import Dataset, OrthonormalMixture, PolyReLUNet, Status, Until, flow
from polyrelu.bias import kkt, margin_history, margins
from polyrelu.nets import MLP, LogisticRegression, SmallCNN
from polyrelu.progress import Progress
from polyrelu.train.gradient_flow.separated_forces import end_forces

F64 = torch.float64
LEVELS = (-10.0, -15.0, -20.0, -120.0, -881.0)
flow_module = importlib.import_module("polyrelu.train.gradient_flow.flow")
late_phase = importlib.import_module("polyrelu.train.gradient_flow.separated_step")


@pytest.fixture(scope="module")
def data():
    return OrthonormalMixture(dim=30, positive=3, negative=2, alpha=0.1, dtype=F64).sample(150, seed=0)


def small(p, **more):
    return PolyReLUNet(30, 20, p, init="balanced", scale=1e-4, seed=0, dtype=F64, **more)


@pytest.fixture(scope="module", params=[1.0, 3.0])
def run(request, data):
    """Trained to 1e-1000, with the checkpoints of the published table."""
    return flow(small(request.param), data, until=Until(log10_loss=-1000), checkpoints=LEVELS)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e6])
def test_end_weights_solve_their_equation(scale):
    source = torch.Generator().manual_seed(0)
    J = torch.randn(60, 25, generator=source, dtype=F64)
    q, K = 30 * torch.rand(60, generator=source, dtype=F64), scale * J @ J.T
    p, _ = end_forces(q, K, torch.full((60,), 1 / 60, dtype=F64))
    assert float(p.sum()) == pytest.approx(1)
    active = p > 1e-8
    level = q + K @ p + p.clamp(min=1e-300).log()  # the same for every constraint with weight
    assert float(level[active].max() - level[active].min()) <= 1e-6 * max(1.0, scale)


def test_a_loss_of_1e_minus_1000_is_landed_on(run, data):
    assert run.status is Status.LOSS and -1000.01 <= run.log10_loss <= -1000
    assert margins(run.net, data).log10_loss == pytest.approx(run.log10_loss, abs=1e-6)
    assert run.counts["late_steps"] > 0


def test_checkpoints_have_their_losses_and_growing_margins(run, data):
    assert tuple(run.checkpoints) == LEVELS
    found = [margins(net, data) for net in run.checkpoints.values()]
    assert [one.log10_loss for one in found] == pytest.approx(LEVELS, abs=0.01)
    smoothed = [one.smoothed for one in found]
    assert smoothed == sorted(smoothed)


def test_the_smoothed_margin_never_falls_and_a_kkt_point_is_near(run, data):
    history = margin_history(run, tolerance=1e-11)
    late = run.history.log_loss + math.log(len(data)) < math.log(1e-3)
    assert late.sum() > 10 and np.diff(history.log_smoothed[late]).min() >= -1e-11
    found = kkt(run.net, data)
    nearest = found if found.free is None else found.free
    assert nearest.stationarity < 1e-2 and found.stationarity < 3e-2
    assert nearest.stationarity <= found.stationarity + 1e-9  # free gates can only help


def test_time_and_loss_obey_their_law(run):
    """L = Theta(1 / (t (log t)^(2 - 2/L))), degree L = 2 (Lyu & Li, Thm 4.3): log(1/(L t log t)) is bounded."""
    history = run.history
    end = history.log_loss < -100
    gap = -history.log_loss[end] - history.log_time[end] - np.log(history.log_time[end])
    assert np.ptp(gap) < 1.5 and end.sum() > 5


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["exp", "logistic"])
def test_the_same_flow_as_the_early_method(data, loss, monkeypatch):
    start = flow(small(3.0), data, loss=loss, until=Until(log10_loss=-5.5), rtol=1e-4)
    late = flow(start.net, data, loss=loss, until=Until(log10_loss=-12), rtol=1e-4, after=start)
    monkeypatch.setattr(flow_module, "ready", lambda *_: False)
    early = flow(start.net, data, loss=loss, until=Until(log10_loss=-12), rtol=1e-5, after=start)
    steps = [one.counts.get("late_steps", 0) for one in (start, early, late)]
    assert steps[0] == steps[1] < steps[2] - 3
    assert late.history.log_time[-1] == pytest.approx(early.history.log_time[-1], abs=2e-2)
    a, b = (one.net(data.rows()).detach() for one in (late, early))
    assert float((a - b).norm() / b.norm()) < 2e-3


@pytest.fixture(scope="module")
def separated(data):
    """Where the separated phase begins: the margins decide, and more than twenty constraints are near the least."""
    return flow(small(3.0), data, until=Until(log10_loss=-5.5), rtol=1e-4)


def test_constraints_left_out_of_a_step_pull_the_others(data, separated, monkeypatch):
    # By autograd: the pull of the rest is sum_l p_l grad q_l, and it moves q_k by <grad q_k, pull> in a unit of time.
    monkeypatch.setattr(late_phase, "MAX_CONSTRAINTS", {True: 20, False: 20})
    net, names = separated.net, ("weight", "output")
    margins_of_all = late_phase.all_margins(net, data)
    start = torch.softmax(-margins_of_all.flatten(), 0).view_as(margins_of_all)
    state = late_phase.SeparatedState(net, names, margins_of_all, "exp", 0.0, 0.0, start)
    method = late_phase.SeparatedStepper(data, 2.0)
    near = method.tangent(state, start)
    q = data.y.double() * net(data.rows())
    near_by = (q <= q.min() + late_phase.NEAR_MARGIN).nonzero()[:, 0]
    others = near_by[q[near_by].argsort()][20:]
    weights = torch.softmax(-q.detach(), 0)
    assert len(near.chosen) == 20 < len(near_by) and near.share == pytest.approx(float(weights[others].sum()), rel=1e-9)
    parameters = [dict(net.named_parameters())[name] for name in names]
    pull = torch.autograd.grad((weights * q)[others].sum(), parameters, retain_graph=True)
    drift = []
    for k in near.chosen.tolist():
        slopes = torch.autograd.grad(q[k], parameters, retain_graph=True)
        drift.append(sum(float((a * b).sum()) for a, b in zip(slopes, pull, strict=True)))
    torch.testing.assert_close(near.drift, torch.tensor(drift, dtype=F64), rtol=1e-4, atol=1e-6 * max(map(abs, drift)))
    # At the end of a step weights are those of the margins there: log p_k + q_k + dt (drift_k + G p) is one number.
    dt = 0.3 / float(near.drift.abs().max())
    p, _ = method.forces(near, dt)
    level = p.log() + near.q + dt * (torch.tensor(drift, dtype=F64) + near.G @ p)
    active = p > 1e-8 * p.max()
    assert active.sum() > 5 and float(level[active].max() - level[active].min()) < 1e-3


def test_the_same_flow_with_constraints_left_out(data, separated, monkeypatch):
    whole = flow(separated.net, data, until=Until(log10_loss=-12), rtol=1e-4, after=separated)
    monkeypatch.setattr(late_phase, "MAX_CONSTRAINTS", {True: 20, False: 20})
    monkeypatch.setattr(late_phase, "MAX_REST_WEIGHT", 1.0)
    fewer = flow(separated.net, data, until=Until(log10_loss=-12), rtol=1e-4, after=separated)
    monkeypatch.setattr(flow_module, "ready", lambda *_: False)
    early = flow(separated.net, data, until=Until(log10_loss=-12), rtol=1e-5, after=separated)
    a, b = (one.net(data.rows()).detach() for one in (fewer, early))
    assert float((a - b).norm() / b.norm()) < 2e-3
    assert fewer.history.log_time[-1] == pytest.approx(early.history.log_time[-1], abs=2e-2)
    assert 3 < fewer.counts["late_steps"] <= whole.counts["late_steps"] + 2  # without the drift a half more


@pytest.mark.slow
def test_more_accurate_with_a_smaller_tolerance(data):
    ends = [flow(small(3.0), data, until=Until(log10_loss=-60), rtol=rtol).net for rtol in (1e-2, 1e-3, 1e-5)]
    a, b, exact = (net(data.rows()).detach() for net in ends)
    far, near = (float((one - exact).norm() / exact.norm()) for one in (a, b))
    assert near < far < 1e-3


@pytest.mark.slow
def test_going_on_is_the_same_as_not_stopping(data):
    half = flow(small(3.0), data, until=Until(log10_loss=-30), rtol=1e-4)
    rest = flow(half.net, data, until=Until(log10_loss=-90), rtol=1e-4, after=half, checkpoints=(-20, -60))
    whole = flow(small(3.0), data, until=Until(log10_loss=-90), rtol=1e-4)
    assert list(rest.checkpoints) == [-60]  # -20 was behind it
    a, b = (one.net(data.rows()).detach() for one in (rest, whole))
    assert float((a - b).norm() / b.norm()) < 1e-3
    assert rest.evaluations > half.evaluations and (np.diff(rest.history.clock) > 0).all()


@pytest.mark.slow
def test_a_start_no_float_holds_and_snapshots_on_the_way(data):
    net = PolyReLUNet(30, 20, 3.0, init="balanced", scale=1e-300, seed=0)
    time = math.exp(200.0)
    out = flow(net, data.to(torch.float32), until=Until(log10_loss=-150), record=[time])
    assert out.status is Status.LOSS and out.net.dtype == torch.float32 and out.net.width == 20
    assert [math.log(t) for t in out.snapshots] == pytest.approx([200.0])
    loss = margins(out.snapshots[next(iter(out.snapshots))], data).log10_loss
    place = np.interp(200.0, out.history.log_time, out.history.log_loss / math.log(10))
    assert loss == pytest.approx(place, abs=1.0)


@pytest.mark.slow
def test_several_classes_a_bias_and_other_modules():
    source = torch.Generator().manual_seed(1)
    y = torch.arange(60) % 3
    X = torch.eye(8, dtype=F64)[y] + 0.1 * torch.randn(60, 8, generator=source, dtype=F64)
    data = Dataset(X, y)
    nets = [
        PolyReLUNet(8, 12, 2.0, 3, init="balanced", scale=0.1, dtype=F64),
        PolyReLUNet(8, 12, 3.0, 3, init="balanced", scale=0.1, bias=True, dtype=F64),
        MLP(8, 16, 3, 3, scale=0.7, dtype=F64),
        LogisticRegression(8, 3, dtype=F64),
    ]
    for net in nets:
        out = flow(net, data, loss="cross_entropy", until=Until(log10_loss=-200))
        assert out.status is Status.LOSS and out.accuracy == 1, type(net)
        with torch.no_grad():
            f = out.net(X)
        q = (f.gather(1, y[:, None]) - f).scatter(1, y[:, None], torch.inf)
        again = float((-q).flatten().logsumexp(0) - math.log(60)) / math.log(10)
        assert again == pytest.approx(out.log10_loss, abs=1e-6)


@pytest.mark.slow
def test_neurons_that_slide_along_gates_are_followed():
    """p = 1 and random labels: neurons rest on the planes of single samples, where no gate is right."""
    source = torch.Generator().manual_seed(0)
    X = torch.randn(20, 5, generator=source, dtype=F64)
    data = Dataset(X, torch.sign(torch.randn(20, generator=source, dtype=F64)))
    net = PolyReLUNet(5, 20, 1.0, init="balanced", scale=0.1, dtype=F64)
    out = flow(net, data, until=Until(log10_loss=-60), checkpoints=(-6,))
    assert out.status is Status.LOSS and out.counts["late_steps"] > out.counts["late_rejected"]
    first, last = (margins(one, data) for one in (out.checkpoints[-6], out.net))
    assert last.normalised > 1.05 * first.normalised
    found = kkt(out.net, data)
    assert found.free.stationarity < 0.15 < found.stationarity


class Stop(Progress):
    """Interrupts at the given step."""

    def __init__(self, at):
        self.left = at

    def update(self, **_):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_reached(data):
    whole = flow(small(3.0), data, until=Until(log10_loss=-500))
    early = sum(whole.counts[name] for name in ("steps",))
    out = flow(small(3.0), data, until=Until(log10_loss=-500), progress=Stop(int(early) + 6))
    assert out.status is Status.INTERRUPTED and -500 < out.log10_loss < -5
    assert margins(out.net, data).log10_loss == pytest.approx(out.log10_loss, abs=1e-6)


@pytest.mark.slow
def test_the_challenge_cnn_without_bias_reaches_the_published_thresholds_in_order():
    data = polyrelu.data.read("digits").subset(slice(0, 20))
    levels = (-10.0, -15.0, -20.0)
    net = SmallCNN(8, 10, hidden=8, bias="none", seed=0)
    out = flow(net, data, loss="cross_entropy", until=Until(log10_loss=-20), checkpoints=levels)
    assert out.status is Status.LOSS and tuple(out.checkpoints) == levels
    found = [margins(one, data, "cross_entropy") for one in out.checkpoints.values()]
    assert [one.log10_loss for one in found] == pytest.approx(levels, abs=0.02)
    product = [one.product for one in found]
    assert product == sorted(product) and margin_history(out).monotone.ok
