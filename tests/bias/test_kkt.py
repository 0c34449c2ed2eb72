"""KKT points built by hand have residual 0, perturbed ones have not; kernels against autograd, solver against scipy."""

import importlib
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, nnls
from torch.func import functional_call

from polyrelu.bias import kkt, unit_norm_net
from polyrelu.bias.kkt import least_squares
from polyrelu.data import Dataset
from polyrelu.errors import InputError
from polyrelu.nets import (
    MLP,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    PolyReLUNet,
    SmallCNN,
)
from polyrelu.train import Until, flow
from polyrelu.train import margin_gradients as gradients

F64 = torch.float64


def linear(weight, bias=None):
    weight = torch.as_tensor(weight, dtype=F64)
    net = LogisticRegression(weight.shape[1], outputs=len(weight), bias=bias is not None, dtype=F64)
    net.weight.data.copy_(weight)
    if bias is not None:
        net.bias.data.copy_(torch.as_tensor(bias))
    return net


def orthogonal(p, w=(1.0, 1.0, 1.0), v=(1.0, 1.0, 1.0), x=(1.0, 1.0, 1.0)):
    """One neuron per sample: x_i e_i, w_i e_i, y_i v_i."""
    y = torch.tensor([1.0, -1.0, 1.0], dtype=F64)
    net = PolyReLUNet(3, 3, p=p, dtype=F64)
    net.weight.data.copy_(torch.diag(torch.tensor(w)))
    net.output.data.copy_((y * torch.tensor(v))[None])
    return net, Dataset(torch.diag(torch.tensor(x, dtype=F64)), y)


def test_two_points_by_hand():
    # min |w|^2/2: <w,(1,2)> >= 1, <w,(-1,0)> >= 1 at (-1, 1) = .5 (1,2) + 1.5 (-1,0); any multiple is the same
    data = Dataset(torch.tensor([[1.0, 2.0], [1.0, 0.0]], dtype=F64), torch.tensor([1.0, -1.0]))
    found = kkt(linear([[-7.0, 7.0]]), data)
    assert found.stationarity < 1e-14 and found.slackness < 1e-14
    assert found.support.tolist() == [1, 0] and found.multipliers.tolist() == pytest.approx([1.5, 0.5])
    # the loss pulls with both alike, (1,2) + (-1,0) = (0,2), 45 degrees off
    assert found.loss.stationarity == pytest.approx(math.sqrt(0.5))
    turned = kkt(
        linear([[-1.0, 1.2]]), data
    ).least_squares  # q = (1.4, 1): only the second is active, and (-1,0) is not w
    assert turned.stationarity == pytest.approx(1.2 / math.hypot(1, 1.2)) and turned.support.tolist() == [1]


@pytest.mark.parametrize("bias", [False, True])
def test_hard_margin_svm_is_a_kkt_point(bias):
    generator = torch.Generator().manual_seed(5)
    y = torch.sign(torch.randn(30, generator=generator, dtype=F64))
    X = torch.randn(30, 4, generator=generator, dtype=F64) + 2.0 * y[:, None]
    Z = (torch.cat([X, torch.ones(30, 1)], 1) if bias else X) * y[:, None]
    svm = minimize(
        lambda w: w @ w / 2, np.ones(Z.shape[1]), jac=lambda w: w, method="SLSQP", options={"ftol": 1e-15},
        constraints={"type": "ineq", "fun": lambda w: Z.numpy() @ w - 1, "jac": lambda w: Z.numpy()},
    )  # fmt: skip
    w = svm.x[:4]
    found = kkt(linear(3 * w[None], 3 * svm.x[4:] if bias else None), Dataset(X, y), active=1e-6)
    assert found.stationarity < 1e-6 and found.slackness < 1e-6
    assert float(found.multipliers.sum()) == pytest.approx(float(svm.x @ svm.x), rel=1e-5)
    worse = kkt(linear((w + 0.1 * np.array([1, -1, 1, -1]))[None], svm.x[4:] if bias else None), Dataset(X, y))
    assert worse.stationarity > 1e-2


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("scale", [1.0, 3.0, 1e-3])
def test_one_neuron_per_orthogonal_sample_is_a_kkt_point(p, scale):
    # |w| = |v|, x = e_i: grad q_i = (e_i, y_i) = theta_i, so lambda = 1 (at q = 1), whatever p
    found = kkt(*orthogonal(p, (scale,) * 3, (scale,) * 3))
    for one in (found.least_squares, found.loss):
        assert one.stationarity < 1e-13 and one.slackness < 1e-13
        assert one.multipliers.tolist() == pytest.approx([1, 1, 1])
    assert (found.candidates, found.left_out, found.degree) == (3, 0, 2)


def test_unbalanced_neurons_are_not():
    # per neuron (w, v) = (.5, 2) against lambda (2, .5): |residual|^2/|theta|^2 = 1 - (2 w v)^2/(w^2 + v^2)^2
    found = kkt(*orthogonal(3.0, (0.5,) * 3, (2.0,) * 3))
    assert found.stationarity == pytest.approx(math.sqrt(1 - (2 / 4.25) ** 2))


def test_slackness_and_the_active_set():
    # x_3 = 1.05 e_3: q = (1, 1, 1.05), lambda = (1, 1, 1/1.05), |theta|^2 = 6, L = 2
    net, data = orthogonal(1.0, x=(1.0, 1.0, 1.05))
    found = kkt(net, data).least_squares
    assert found.stationarity < 1e-13
    assert found.multipliers.tolist() == pytest.approx([1, 1, 1 / 1.05])
    assert found.excess.tolist() == pytest.approx([0, 0, 0.05], abs=1e-14)
    assert found.largest_slack == pytest.approx(0.05 / 1.05) and found.slackness == pytest.approx(2 * 0.05 / 1.05 / 6)
    narrow = kkt(net, data, active=0.01).least_squares  # neuron 3 is left without a constraint
    assert narrow.stationarity == pytest.approx(math.sqrt(2 / 6)) and narrow.support.tolist() == [0, 1]
    assert kkt(net, data, most=1).left_out == 2
    assert kkt(net, data).kinks == 6  # every sample is orthogonal to the two other neurons


def test_loss_weights_are_the_softmax_of_minus_q():
    net, data = orthogonal(1.0, x=(1.0, 1.0, 1.05))
    found = kkt(net, data).loss
    weight = {int(i): float(m) for i, m in zip(found.support, found.multipliers, strict=True)}
    assert weight[0] == pytest.approx(weight[1]) and weight[2] / weight[0] == pytest.approx(math.exp(-0.05))
    # pull of neuron 3 is c e^-.05 1.05 theta_3, of the others c theta_i; the best length c leaves sin of the angle
    a = np.array([1, 1, 1.05 * math.exp(-0.05)])
    assert found.stationarity == pytest.approx(math.sqrt(1 - a.sum() ** 2 / 3 / (a @ a)), abs=1e-9)


def test_classes_by_hand():
    # w_0 = e/2, w_1 = -e/2, samples +-e: both constraints have gradient (e, -e) = 2 theta
    data = Dataset(torch.tensor([[1.0], [-1.0]], dtype=F64), torch.tensor([0, 1]))
    found = kkt(linear([[2.0], [-2.0]]), data)
    assert found.stationarity < 1e-14 and float(found.multipliers.sum()) == pytest.approx(0.5)
    assert {(int(i), int(c)) for i, c in zip(found.loss.support, found.loss.rival, strict=True)} == {(0, 1), (1, 0)}
    shifted = kkt(linear([[3.0], [-1.0]]), data)  # same logit differences, but a longer theta
    assert shifted.stationarity == pytest.approx(math.sqrt(1 - 8 / 10))


def jacobian(one, X, E):
    weights = {name: value.detach() for name, value in one.net.named_parameters() if name in one.names}
    rows = []
    for x, e in zip(X, E, strict=True):
        leaves = {name: value.clone().requires_grad_() for name, value in weights.items()}
        q = (functional_call(one.net, leaves, (x[None],)).reshape(-1) * e).sum()
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(q, [leaves[n] for n in one.names])]))
    return torch.stack(rows)


CENTRE = torch.tensor([0.3, -0.2, 0.1, 0.5])
ONLY = [["weight"], ["output"]]
NETS = [
    *((PolyReLUNet(4, 7, p=p, outputs=c, dtype=F64), None) for p in (1.0, 1.5, 2.0, 3.0) for c in (1, 3)),
    *((PolyReLUNet(4, 7, p=p, centre=CENTRE, normalise_input=True, dtype=F64), None) for p in (1.0, 2.0, 3.0)),
    (PolyReLUNet(4, 7, p=3.0, outputs=3, bias=True, centre=CENTRE, dtype=F64), ONLY),
    (PolyReLUNet(4, 7, p=3.0, dtype=F64), [["weight"]]),
    (PolyReLUNet(4, 7, p=3.0, dtype=F64), [["output"]]),
    (PlainPolyNet(4, 7, p=2.5, outputs=3, dtype=F64), None),
    (LeakyReLUNet(4, 7, slope=0.3, dtype=F64), None),
    (MLP(4, 5, depth=3, outputs=3, dtype=F64), None),
    (FixedOutputNet(4, 5, dtype=F64), None),
    (GroupedNet(4, 3, 2, dtype=F64), None),
    (SmallCNN(2, 3, hidden=4, bias="first", dtype=F64), None),
    (LogisticRegression(4, scale=1.0, dtype=F64), None),
]


@pytest.mark.parametrize(("net", "groups"), NETS, ids=lambda value: type(value).__name__)
def test_gram_and_sums_are_those_of_autograd(net, groups, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    X, outputs = torch.randn(9, 4, generator=generator, dtype=F64), net.outputs
    E = torch.randn(9, outputs, generator=generator, dtype=F64)
    one = unit_norm_net(net, X, groups)
    J = jacobian(one, X, E)
    theta = torch.cat([gradients.theta(one)[name].flatten() for name in one.names])
    monkeypatch.setattr(gradients, "ENTRIES", 4 * theta.numel())  # blocks of four rows
    assert torch.allclose(gradients.gram(one, X, E), J @ J.T, rtol=1e-10, atol=1e-13)
    total = gradients.total(one, X, E)
    assert torch.allclose(torch.cat([total[name].flatten() for name in one.names]), J.sum(0), rtol=1e-10, atol=1e-13)
    assert float(theta.norm()) == pytest.approx(1, abs=1e-12)
    with torch.no_grad():  # Euler: <theta, grad q> = L q
        assert torch.allclose(J @ theta, one.degree * (one.net(X).reshape(9, -1) * E).sum(1), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("m", "P"), [(5, 30), (40, 60), (60, 12), (200, 3)])
def test_least_squares_is_scipys(m, P):
    rng = np.random.default_rng(m)
    J = rng.standard_normal((m, P)) * rng.uniform(0.1, 10, m)[:, None] + 0.3
    J[-1] = J[0]  # repeated samples
    theta = J.T @ np.maximum(rng.standard_normal(m), 0) + 0.3 * rng.standard_normal(P)
    theta /= np.linalg.norm(theta)
    mu = least_squares(torch.from_numpy(J @ J.T), torch.from_numpy(J @ theta)).numpy()
    _, residual = nnls(J.T, theta)
    assert (mu >= 0).all()
    assert np.linalg.norm(theta - J.T @ mu) == pytest.approx(residual, abs=1e-7 if residual < 1e-9 else 1e-10)
    pull = J @ (theta - J.T @ mu) / np.linalg.norm(J, axis=1)
    assert (pull < 1e-7).all() and np.abs(pull[mu > 1e-9]).max() < 1e-7


def mixture():
    generator = torch.Generator().manual_seed(2)
    y = torch.tensor([1.0, -1.0], dtype=F64).repeat(10)
    X = torch.eye(5, dtype=F64).repeat(4, 1) * y[:, None] + 0.1 * torch.randn(20, 5, generator=generator, dtype=F64)
    return Dataset(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_training_nears_a_kkt_point(p):
    data, net = mixture(), PolyReLUNet(5, 20, p=p, init="balanced", scale=0.1, dtype=F64)
    runs = [flow(net, data, until=Until(log10_loss=log10), rtol=1e-3) for log10 in (-1, -30)]
    early, late = (kkt(run.net, data) for run in runs)
    found, before = (one.stationarity if one.free is None else one.free.stationarity for one in (late, early))
    assert found < before / 3 and found < 0.08
    assert late.slackness < 0.02 < early.slackness
    # rotation of the data with the weights, order of neurons and of rows
    turn = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(3), dtype=F64))[0]
    polar = runs[1].net.polar()
    order = torch.arange(polar.width - 1, -1, -1)
    other = polar.neurons(order)
    moved = PolyReLUNet.from_polar(type(other)(other.u @ turn, other.q, other.log_r, other.log_s), like=runs[1].net)
    same = kkt(moved, Dataset((data.X @ turn).flip(0), data.y.flip(0)))
    assert same.least_squares.stationarity == pytest.approx(late.least_squares.stationarity, abs=1e-8)
    assert sorted((19 - same.support).tolist()) == sorted(late.support.tolist())


def test_weights_no_float_holds_give_the_same_point():
    net, data = orthogonal(3.0, x=(1.0, 1.0, 1.05))
    tiny = PolyReLUNet.from_polar(net.polar().shifted(-690.0), like=net)
    found, plain = (kkt(one, data, active=0.2).least_squares for one in (tiny, net))
    assert found.stationarity < 1e-12
    assert found.multipliers.tolist() == pytest.approx(plain.multipliers.tolist())


def test_bad_input_is_answered_in_words():
    net, data = orthogonal(1.0)
    for wrong, words in (({"active": -1.0}, "active=-1"), ({"most": 0}, "most=0")):
        with pytest.raises(InputError, match=words):
            kkt(net, data, **wrong)
    net.output.data.neg_()
    with pytest.raises(InputError, match="not separated yet"):
        kkt(net, data)
    with pytest.raises(InputError, match="bias of layer 2"):
        kkt(PolyReLUNet(3, 3, bias=True), data)


def test_constraints_beyond_the_first_block_have_their_own_labels():
    # the two points by hand, 1198 rows apart and of different class, between rows far beyond the margin
    X, y = torch.tensor([[0.0, 9.0]], dtype=F64).repeat(1200, 1), torch.ones(1200, dtype=F64)
    X[0], X[-1], y[-1] = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]), -1.0
    found = kkt(linear([[-7.0, 7.0]]), Dataset(X, y)).least_squares
    assert found.support.tolist() == [1199, 0] and found.multipliers.tolist() == pytest.approx([1.5, 0.5])
    assert found.stationarity < 1e-12


def test_gates_beyond_the_most_keep_theirs_and_are_counted(monkeypatch, blobs):
    room = importlib.import_module("polyrelu.bias.kkt")
    data = blobs(40, 30)
    net = flow(PolyReLUNet(30, 10, 1.0, init="balanced", scale=0.1, dtype=F64), data, until=1e-6).net
    whole = kkt(net, data, widen=0.1, active=1.0)
    monkeypatch.setattr(room, "MAX_FREE_GATES", 3)
    few = kkt(net, data, widen=0.1, active=1.0)
    assert whole.kinks > 3 == few.kinks and few.kinks_left == whole.kinks - 3 and whole.kinks_left == 0
    assert whole.free.stationarity <= few.free.stationarity + 1e-9 <= whole.least_squares.stationarity + 2e-9
    assert whole.least_squares.stationarity == few.least_squares.stationarity
