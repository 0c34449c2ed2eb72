"""What people see of a flow: what it learns, where it stops, how it is interrupted, what it refuses."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet, Status, Trajectory, Until, flow
from polyrelu.nets import CentreClassifier
from polyrelu.progress import Progress
from polyrelu.train.losses import loss_slopes

F64 = torch.float64


@pytest.fixture(scope="module")
def q10():
    """The quick setting of the papers' experiment: D = 100, 6 + 4 clusters, n = 1000, alpha = .1."""
    return OrthonormalMixture(dim=100, positive=6, negative=4, alpha=0.1).sample(1000, seed=0)


@pytest.fixture(scope="module")
def runs(q10):
    return {p: flow(PolyReLUNet(100, 100, p, init="balanced", scale=1e-5, seed=0), q10, until=1e-2) for p in (1.0, 3.0)}


def carrying(net, share=0.99):
    """Neurons that carry ``share`` of the sum of contributions, largest first."""
    order = net.contributions().argsort(descending=True)
    total = net.contributions()[order].cumsum(0) / net.contributions().sum()
    return order[: int((total < share).sum()) + 1]


def test_p1_learns_class_averages(runs, q10):
    # B4: cosine to the class average at least .99 (median), hence 1/sqrt(6) or 1/sqrt(4) to its own centres.
    net = runs[1.0].net
    u = net.directions()[carrying(net)]
    averages = torch.stack([q10.centres[:6].sum(0) / 6**0.5, q10.centres[6:].sum(0) / 2])
    cosines = u @ averages.T
    assert float(cosines.amax(1).median()) >= 0.99
    positive = cosines.argmax(1) == 0
    own = u @ q10.centres.T
    assert float(own[positive][:, :6].mean()) == pytest.approx(6**-0.5, abs=0.02)
    assert float(own[~positive][:, 6:].mean()) == pytest.approx(0.5, abs=0.02)


def test_p3_learns_every_centre(runs, q10):
    # B5: cosine to one centre at least .99, all ten covered.
    net = runs[3.0].net
    cosines = net.directions()[carrying(net)] @ q10.centres.T
    assert float(cosines.amax(1).median()) >= 0.99
    assert set(cosines.argmax(1).tolist()) == set(range(10))


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_directions_come_first_and_norms_later(runs, p):
    # B13: the median neuron of those that will carry the net is aligned long before the loss has fallen by 10 %.
    out = runs[p]
    alignment = (out.history.cos_average if p == 1 else out.history.cos_centre)[:, carrying(out.net).numpy()]
    aligned = out.history.time[np.argmax(np.median(alignment, axis=1) > 0.9)]
    falling = out.history.time[np.argmax(out.history.log_loss < math.log(0.9))]
    assert aligned < 0.7 * falling


def test_history_is_whole(runs):
    for out in runs.values():
        history = out.history
        steps = len(history.clock)
        assert history.cos_centre.shape == history.log_contribution.shape == (steps, 100)
        assert np.all(np.diff(history.clock) > 0)
        assert np.all(np.diff(history.log_time[1:]) > 0)
        assert np.all(np.diff(history.log_loss) <= 1e-6)
        assert np.allclose(history.log_contribution[-1], out.net.log_contributions().numpy(), atol=1e-4)
        assert out.accuracy == 1


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 64])
@pytest.mark.parametrize("target", [0.5, 1e-2, 1e-12, 1e-200])
def test_run_to_a_loss_ends_just_below_it(q10, target, surrogate):
    net = PolyReLUNet(100, 30, 3.0, init="balanced", scale=1e-3, seed=0)
    out = flow(net, q10, until=target, surrogate=surrogate)
    assert out.status is Status.LOSS
    assert math.log(target) * 1.02 - 0.011 <= out.log_loss <= math.log(target)
    f = out.net.double()(q10.rows().double()).detach()
    exact = float((-q10.y.double() * f).logsumexp(0)) - math.log(1000)
    assert out.log_loss == pytest.approx(exact, abs=2e-4 * max(1, -exact))


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 64])
def test_snapshots_are_taken_at_their_times(q10, surrogate):
    net = PolyReLUNet(100, 30, 3.0, init="balanced", scale=1e-4, seed=0)
    out = flow(net, q10, until=Until(time=90.0), record=(10.0, 42.5), surrogate=surrogate, rtol=1e-3)
    assert list(out.snapshots) == pytest.approx([10.0, 42.5])
    assert out.time == pytest.approx(90, rel=1e-5)
    alone = flow(net, q10, until=Until(time=42.5), surrogate=surrogate, rtol=1e-3)
    u, v = out.snapshots[42.5].directions(), alone.net.directions()
    assert float((u - v).norm(dim=1).square().mean().sqrt()) < 1e-2


def test_other_ends(q10):
    net = PolyReLUNet(100, 30, 3.0, init="balanced", scale=1e-4, seed=0)
    out = flow(net, q10, until=Until(loss=1e-9, accurate=True))
    assert (out.status, out.accuracy) == (Status.ACCURATE, 1.0)
    assert out.log_loss > math.log(0.5)
    out = flow(net, q10, until=Until(loss=1e-9, alignment=0.9))
    assert out.status is Status.ALIGNED
    best = np.maximum(out.history.cos_centre[-1], out.history.cos_average[-1])
    assert np.median(best) >= 0.85
    out = flow(net, q10, until=1e-9, max_evaluations=5)
    assert out.status is Status.BUDGET


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 64])
def test_targets_already_met_end_the_run_at_once(q10, surrogate):
    net = PolyReLUNet(100, 20, 3.0, init="balanced", scale=1e-2, seed=0)
    out = flow(net, q10, until=2.0, surrogate=surrogate)
    assert (out.status, out.time) == (Status.LOSS, 0.0)
    assert torch.allclose(out.net.weight, net.weight)
    done = flow(net, q10, until=0.1, surrogate=surrogate)
    assert done.accuracy == 1
    for until in (Until(loss=0.5), Until(accurate=True), Until(time=done.time / 2)):
        again = flow(done.net, q10, until=until, surrogate=surrogate, after=done)
        assert again.time == done.time


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 1e4])
@pytest.mark.parametrize("p", [1.0, 3.0, 4.0])
def test_units_of_the_data_do_not_matter(q10, factor, p):
    # f is p-homogeneous in x: X -> c X with weights r s -> r s / c^p is the same flow in time t / c^p.
    plain = PolyReLUNet(100, 20, p, init="balanced", scale=1e-3, seed=0, dtype=F64)
    scaled = PolyReLUNet(100, 20, p, init="balanced", scale=1e-3 * factor ** (-p / 2), seed=0, dtype=F64)
    data = q10.to(F64)
    big = Dataset(data.rows() * factor, data.y)
    a, b = flow(plain, data, until=0.1), flow(scaled, big, until=0.1)
    assert b.status is Status.LOSS
    assert b.time == pytest.approx(a.time / factor**p, rel=1e-3)


@pytest.mark.slow
def test_a_loss_that_no_float_holds_can_be_asked_for(q10):
    net = PolyReLUNet(100, 20, 3.0, init="balanced", scale=1e-2, seed=0)
    out = flow(net, q10, until=Until(log10_loss=-881.5))
    assert out.status is Status.LOSS
    assert -890 < out.log10_loss <= -881.5
    f = out.net.double()(q10.rows().double()).detach()
    assert float((-q10.y.double() * f).logsumexp(0)) / math.log(10) - 3 == pytest.approx(out.log10_loss, rel=1e-4)


def test_a_squared_loss_at_its_floor_is_stalled():
    # One neuron, two opposite points: it fits one of them and can do nothing about the other; the floor is 1/4.
    X = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=F64)
    net = PolyReLUNet(2, 1, 2.0, init="zeros", dtype=F64)
    net.weight.data, net.output.data = torch.tensor([[0.3, 0.1]], dtype=F64), torch.tensor([[0.3]], dtype=F64)
    out = flow(net, Dataset(X, torch.tensor([1.0, -1.0])), loss="squared", until=1e-2)
    assert out.status is Status.STALLED
    assert out.log_loss == pytest.approx(math.log(0.25), abs=1e-3)
    assert out.evaluations < 1000


def test_a_network_that_nothing_moves_is_stalled():
    X = torch.tensor([[1.0, 0.0], [0.9, 0.1]])
    net = PolyReLUNet(2, 1, 3.0, init="zeros")
    net.weight.data, net.output.data = torch.tensor([[-1.0, -1.0]]), torch.tensor([[1.0]])
    assert flow(net, Dataset(X, torch.tensor([1.0, -1.0])), until=1e-2).status is Status.STALLED


class Stopper(Progress):
    """A person who presses Ctrl-C after so many steps."""

    def __init__(self, steps):
        self.left = steps

    def update(self, **_):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 64])
def test_interrupt_keeps_what_was_reached_and_the_run_goes_on(q10, surrogate, tmp_path):
    net = PolyReLUNet(100, 40, 3.0, init="balanced", scale=1e-5, seed=0)
    whole = flow(net, q10, until=1e-2, surrogate=surrogate, rtol=1e-3)
    part = flow(net, q10, until=1e-2, surrogate=surrogate, rtol=1e-3, progress=Stopper(2))
    assert part.status is Status.INTERRUPTED
    part.save(tmp_path / "trajectory")  # no suffix is added
    assert [path.name for path in tmp_path.iterdir()] == ["trajectory"]
    again = Trajectory.load(tmp_path / "trajectory", part.net)
    assert np.array_equal(again.history.log_loss, part.history.log_loss)
    rest = flow(again.net, q10, until=1e-2, surrogate=surrogate, rtol=1e-3, after=again)
    assert rest.status is Status.LOSS
    assert np.all(np.diff(rest.history.log_time[1:]) > 0)
    assert rest.time == pytest.approx(whole.time, rel=2e-2)
    f, g = (n(q10.rows()).detach() for n in (rest.net, whole.net))
    assert float((f - g).abs().max() / g.abs().max()) < 2e-2


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [0, 64])
def test_whoever_watches_is_told_every_moment_and_may_end_the_run(q10, surrogate):
    net = PolyReLUNet(100, 50, 3, init="balanced", scale=1e-5, seed=0)
    seen = []
    watched = flow(net, q10, until=1e-2, surrogate=surrogate, watch=lambda moment, state: seen.append((moment, state)))
    alone = flow(net, q10, until=1e-2, surrogate=surrogate)
    assert [moment["clock"] for moment, _ in seen] == alone.history.clock.tolist()
    assert torch.equal(watched.net.weight, alone.net.weight)
    torch.testing.assert_close(seen[-1][1].polar().u, alone.net.directions(), rtol=0, atol=1e-5)
    for i, (_, state) in enumerate(seen):
        best = (state.u @ q10.centres.T).amax(1)
        np.testing.assert_allclose(best, alone.history.cos_centre[i], atol=1e-5)

    def enough(moment, state):
        if moment["clock"] > 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        flow(net, q10, until=1e-2, surrogate=surrogate, watch=enough)


def test_flow_does_not_change_its_network(q10):
    net = PolyReLUNet(100, 10, 3.0, init="balanced", scale=1e-2, seed=0)
    before = net.weight.detach().clone()
    flow(net, q10, until=0.5)
    assert torch.equal(net.weight, before)


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_truncated_trajectory_is_refused_in_words(runs, tmp_path, cut):
    path = runs[3.0].save(tmp_path / "trajectory.npz")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="damaged or foreign"):
        Trajectory.load(path, runs[3.0].net)
    with pytest.raises(InputError, match="no such file"):
        Trajectory.load(tmp_path / "none.npz", runs[3.0].net)


@pytest.mark.slow
@given(
    n=st.integers(2, 40),
    dim=st.integers(2, 9),
    width=st.integers(1, 7),
    classes=st.integers(1, 4),
    p=st.sampled_from([1.0, 1.3, 2.0, 3.0, 5.0]),
    loss=st.sampled_from(["exp", "logistic", "cross_entropy", "squared"]),
    dtype=st.sampled_from([torch.float32, F64]),
    bias=st.booleans(),
)
def test_any_shape_and_dtype(n, dim, width, classes, p, loss, dtype, bias):
    generator = torch.Generator().manual_seed(n + dim)
    X = torch.randn(max(n, classes), dim, generator=generator, dtype=dtype)
    index = torch.arange(len(X))
    y = 1 - 2 * (index % 2) if classes == 1 else index % classes
    data = Dataset(X, y.to(dtype) if classes == 1 else y)
    net = PolyReLUNet(dim, width, p, outputs=classes, init="balanced", scale=0.1, seed=n, bias=bias, dtype=dtype)
    out = flow(net, data, loss=loss, until=Until(time=1.0), rtol=1e-2, max_evaluations=400)
    assert out.net.weight.dtype == dtype
    assert out.net.weight.shape == (width, dim)
    assert out.net.weight.isfinite().all()
    start, end = out.history.log_loss[[0, -1]]
    assert end <= start + 1e-6
    with torch.no_grad():
        f = out.net(data.rows()).reshape(len(X), -1)
    again = loss_slopes(loss, f, data.y).log_loss.double().logsumexp(0) - math.log(len(X))
    assert end == pytest.approx(float(again), abs=1e-3)


def test_bad_input_is_named(q10):
    net = PolyReLUNet(100, 10, 3.0, init="balanced", seed=0)
    narrow = OrthonormalMixture(dim=50, positive=2, negative=2, alpha=0.1).sample(10, seed=0)
    zero = PolyReLUNet(100, 10, 3.0, init="balanced", seed=0)
    zero.weight.data[4] = 0
    bad = [
        (lambda: flow(net, narrow), "data=50 columns: expected 100"),
        (lambda: flow(net, q10, loss="hinge"), "loss=hinge: expected one of exp"),
        (lambda: flow(net, q10, until=-1.0), "until.loss=-1.0: expected a positive number"),
        (lambda: flow(net, q10, until=math.nan), "until.loss=nan"),
        (lambda: flow(net, q10, until=Until(time=0.0)), "until.time=0.0"),
        (lambda: flow(net, q10, until=Until()), "until=nothing"),
        (lambda: flow(net, q10, rtol=0.0), "rtol=0.0: expected a number between"),
        (lambda: flow(net, q10, record=[-1.0]), "record=.*positive times"),
        (lambda: flow(CentreClassifier(q10.centres, q10.y[:10], 3), q10), "net=CentreClassifier: expected a module"),
        (lambda: flow(net, q10, checkpoints=[math.nan]), "checkpoints=.*log10 losses"),
        (lambda: flow(net, q10.rows()), "data=Tensor: expected a Dataset"),
        (lambda: flow(PolyReLUNet(100, 5, outputs=3), q10), "net.outputs=3: expected 1"),
        (lambda: flow(zero, q10), "neuron 4"),
        (lambda: flow(net, q10, surrogate=-5), "surrogate=-5"),
        (lambda: flow(net, q10, max_evaluations=math.nan), "max_evaluations=nan"),
    ]
    for call, message in bad:
        with pytest.raises(InputError, match=message):
            call()
