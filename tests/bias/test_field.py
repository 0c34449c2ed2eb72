"""The alignment field against loops, autograd and steps of descent; its attractors against independent solvers."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.nn.functional import normalize

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet
from polyrelu.bias import alignment_field, alignment_speed, stationary_directions

F64 = torch.float64


def mixture(dim=20, n=200, positive=6, negative=4, alpha=0.1, seed=0, rotate=None):
    return OrthonormalMixture(dim, positive, negative, alpha, rotate=rotate, dtype=F64).sample(n, seed=seed)


def rough(classes=2, n=60, dim=8):
    """Rows of very unequal length, so that cos and <x, u> differ."""
    source = torch.Generator().manual_seed(3)
    X = torch.randn(n, dim, generator=source, dtype=F64) * torch.linspace(0.2, 3, n, dtype=F64)[:, None]
    y = torch.arange(n) % classes
    return Dataset(X, (2.0 * y - 1).to(F64) if classes == 2 else y)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 4.2])
def test_the_field_is_the_printed_sum(p):
    data, W = rough(), torch.randn(5, 8, dtype=F64, generator=torch.Generator().manual_seed(0))
    field = alignment_field(data, W, p)
    for w, found in zip(W, field, strict=True):
        wanted = torch.zeros(8, dtype=F64)
        for x, y in zip(data.X, data.y, strict=True):
            cosine = x @ w / x.norm() / w.norm()
            if cosine > 0:
                wanted += y * p * cosine ** (p - 1) * x
        assert torch.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert torch.allclose(alignment_field(data, 1e-200 * W, p), field, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_the_speed_is_that_of_the_true_gradient(p, normalise, classes):
    # A net of size 1e-12 has f = 0 to twelve digits: its loss gradient is the alignment field times |v|/|w|.
    data, outputs = rough(classes), 1 if classes == 2 else 3
    settings = {"centre": torch.full((8,), 0.3), "normalise_input": normalise, "scale": 1e-6, "dtype": F64}
    net = PolyReLUNet(8, 30, p, outputs, **settings)
    f = net(data.X)
    loss = (-data.y * f).exp().sum() if classes == 2 else torch.nn.functional.cross_entropy(f, data.y, reduction="sum")
    loss.backward()
    W, v = net.weight.detach(), net.output.detach().T
    r, u = W.norm(dim=1, keepdim=True), normalize(W)
    pull = -net.weight.grad
    turn = (pull - (pull * u).sum(1, keepdim=True) * u) / r
    speed = alignment_speed(net, data) * v.norm(dim=1, keepdim=True) / r
    assert classes > 2 or {-1.0, 1.0} == set(v[:, 0].sign().tolist())
    assert torch.allclose(speed, turn, rtol=1e-7, atol=1e-7 * float(turn.abs().max()))
    assert float(torch.cosine_similarity(speed, turn).min()) >= 0.9999


def test_a_step_of_descent_turns_neurons_along_the_printed_field():
    # B27: D = 20, start 1e-8, finite difference of directions; without sign(v) the negative ones go the wrong way.
    data = mixture()
    for p in (1.0, 3.0):
        net = PolyReLUNet(20, 40, p, init="balanced", scale=1e-8, dtype=F64)
        before = net.directions()
        (-data.y * net(data.X)).exp().sum().backward()
        with torch.no_grad():
            net.weight -= 1e-6 * net.weight.grad
        moved = (net.directions() - before) / 1e-6
        printed = alignment_field(data, before, p)
        across = printed - (printed * before).sum(1, keepdim=True) * before
        cosines = torch.cosine_similarity(moved, across)
        sign = net.output.detach()[0].sign()
        assert float((sign * cosines).min()) >= 0.999
        assert float(cosines[sign < 0].max()) <= -0.999
        assert float(torch.cosine_similarity(moved, alignment_speed(net, data)).min()) >= 0.9999


def test_classes_pull_with_their_share():
    # 1[y=1] - 1/3 = (y' + 1/3)/2 with y' = +1 for class 1 and -1 for the others, so twice the field of class 1 is
    # that of y' plus a third of that of all rows, counted +1 (the last one is the origin, which pulls nowhere).
    data, W = rough(3), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    fields = [alignment_field(data, W, 2, target=c) for c in range(3)]
    assert torch.allclose(sum(fields), torch.zeros(4, 8, dtype=F64), atol=1e-12)
    one = Dataset(data.X, torch.where(data.y == 1, 1.0, -1.0).to(F64))
    signs = torch.ones(61, dtype=F64)
    signs[-1] = -1
    every = Dataset(torch.cat([data.X, torch.zeros(1, 8, dtype=F64)]), signs)
    assert torch.allclose(2 * fields[1], alignment_field(one, W, 2) + alignment_field(every, W, 2) / 3, atol=1e-10)


def test_the_field_turns_with_the_data():
    data, W = rough(), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    Q = torch.linalg.qr(torch.randn(8, 8, dtype=F64, generator=torch.Generator().manual_seed(2)))[0]
    turned = alignment_field(Dataset(data.X @ Q, data.y), W @ Q, 2.5)
    assert torch.allclose(turned, alignment_field(data, W, 2.5) @ Q, atol=1e-10)


@pytest.mark.parametrize("sign", [1, -1])
def test_p3_is_attracted_by_single_centres(sign):
    # B28. Every centre of the class, nothing else.
    data = mixture(n=500, rotate=1)
    found = stationary_directions(data, 3, sign=sign)
    own = data.centres[:6] if sign > 0 else data.centres[6:]
    cosines = found.directions @ own.T
    assert sorted(cosines.argmax(1).tolist()) == list(range(len(own)))
    assert float(cosines.amax(1).min()) >= 0.999
    assert int(found.counts.sum()) + found.dead == 500
    assert found.dead < 20
    assert bool(found.stable.all())
    assert float(found.residual.max()) <= 1e-6
    field = sign * alignment_field(data, found.directions, 3)
    assert float(torch.cosine_similarity(field, found.directions).min()) >= 1 - 1e-10


@pytest.mark.parametrize("sign", [1, -1])
def test_p1_is_attracted_by_the_class_average(sign):
    # B28. One direction: the average, less what it has on rows of the other class that noise activates.
    data = mixture(n=500)
    found = stationary_directions(data, 1, sign=sign)
    average = data.class_means()[0 if sign > 0 else 1]
    assert len(found.counts) == 1
    assert float(torch.cosine_similarity(found.directions, average[None])) >= 0.99
    assert int(found.counts[0]) >= 480
    assert float(found.residual[0]) <= 1e-4
    assert found.growth.tolist() == [pytest.approx(-1)]


def test_p1_end_point_is_the_maximum_of_the_potential():
    # G(u) = sum y relu<x, u> on the sphere by an independent solver: SLSQP on the epigraph of the kinks.
    data = mixture(dim=5, n=40, positive=2, negative=2, alpha=0.5)
    found = stationary_directions(data, 1, starts=50)
    u = found.directions[0]
    X, y = data.X.numpy(), data.y.numpy()
    own, other = X[y > 0], X[y < 0]
    own = own[own @ u.numpy() > 0]
    m = len(other)
    result = minimize(
        lambda s: s[5:].sum() - (own @ s[:5]).sum(),
        np.concatenate([u.numpy(), np.maximum(other @ u.numpy(), 0)]),
        jac=lambda s: np.concatenate([-own.sum(0), np.ones(m)]),
        method="SLSQP",
        bounds=[(None, None)] * 5 + [(0, None)] * m,
        constraints=[
            {"type": "ineq", "fun": lambda s: s[5:] - other @ s[:5]},
            {"type": "ineq", "fun": lambda s: 1 - s[:5] @ s[:5]},
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert result.success
    assert torch.allclose(torch.as_tensor(result.x[:5]), u, atol=1e-5)


def test_p2_ends_at_eigenvectors():
    # Mirrored rows, all +1: G = <u, C u>, C = sum over half of them; the top eigenvector and its mirror.
    source = torch.Generator().manual_seed(0)
    half = torch.randn(30, 6, generator=source, dtype=F64) * torch.tensor([3.0, 2, 1, 1, 1, 1])
    X = torch.cat([half, -half, torch.zeros(1, 6, dtype=F64)])
    y = torch.ones(61, dtype=F64)
    y[-1] = -1
    found = stationary_directions(Dataset(X, y), 2, starts=100, preprocess=lambda rows: rows)
    values, vectors = torch.linalg.eigh(half.T @ half)
    assert len(found.counts) == 2
    assert int(found.counts.sum()) == 100
    assert torch.allclose((found.directions @ vectors[:, -1]).abs(), torch.ones(2, dtype=F64), atol=1e-8)
    # P 2 C P - 2 c1 on the tangent space, over 2 c1 = <u, field>: c2/c1 - 1.
    assert found.growth.tolist() == pytest.approx([float(values[-2] / values[-1]) - 1] * 2, abs=1e-8)


def test_starts_that_lose_every_row_are_dead():
    # Rows e1 (+1) and (-1, -1) (-1): nothing is active between 90 and 135 degrees, and starts up to 225 degrees are
    # driven in there by the negative row; all others reach e1. 135/360 of 1000 starts, four standard deviations.
    X = torch.tensor([[1.0, 0.0], [-1.0, -1.0]], dtype=F64)
    found = stationary_directions(Dataset(X, torch.tensor([1.0, -1.0], dtype=F64)), 1, starts=1000)
    assert found.directions.tolist() == [[pytest.approx(1), pytest.approx(0, abs=1e-6)]]
    assert found.dead == 1000 - int(found.counts[0])
    assert abs(found.dead - 375) < 4 * math.sqrt(1000 * 0.375 * 0.625)


@pytest.mark.parametrize("p", [1, 1.5])
def test_without_noise_partial_averages_rest_but_are_not_stable(p):
    # Rows e1, e2 (+1), e3 (-1): a start with u_1 > 0 > u_2 never sees e2. G = u_1^p + u_2^p - u_3^p, so e1 and e2
    # rest on the kink of the other row, which throws them off, and (1, 1, 0)/sqrt(2) is the only attractor (p < 2).
    data = Dataset(torch.eye(3, dtype=F64), torch.tensor([1.0, 1, -1], dtype=F64))
    found = stationary_directions(data, p, starts=200)
    wanted = torch.tensor([[0.5**0.5, 0.5**0.5, 0], [1, 0, 0], [0, 1, 0]], dtype=F64)
    places = (found.directions @ wanted.T).argmax(1)
    assert sorted(places.tolist()) == [0, 1, 2]
    assert torch.allclose(found.directions, wanted[places], atol=1e-5)
    assert found.stable.tolist() == (places == 0).tolist()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_attractors_do_not_depend_on_the_units(scale):
    # p = 6 in float32: powers of such rows leave the type.
    data = rough()
    one = stationary_directions(data, 6, starts=60)
    other = stationary_directions(Dataset((scale * data.X).float(), data.y.float()), 6, starts=60)
    assert len(one.counts) == len(other.counts) > 2
    assert bool(one.stable.all())
    assert float((one.directions @ other.directions.T).amax(1).min()) > 1 - 1e-9
    assert float(other.residual.max()) < 1e-6


def test_attractors_of_a_class():
    data = mixture(n=300, positive=3, negative=3)
    classes = Dataset(data.X, data.cluster // 2)  # 3 classes of two centres each
    found = stationary_directions(classes, 3, starts=100, target=2)
    cosines = found.directions @ data.centres.T
    assert sorted(cosines.argmax(1).tolist()) == [4, 5]
    assert float(cosines.amax(1).min()) > 0.99


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda data: alignment_field(data, torch.ones(3, 7), 1), "one row per neuron"),
        (lambda data: alignment_field(data, torch.ones(3, 8), 0.5), "p=0.5"),
        (lambda data: alignment_field(data, torch.ones(3, 8), 1, target=0), "None for labels"),
        (lambda data: alignment_field(rough(3), torch.ones(3, 8), 1), "a class 0..2"),
        (lambda data: alignment_speed(PolyReLUNet(8, 3, 1, 3), data), "net.outputs=3"),
        (lambda data: stationary_directions(data, 1, sign=2), "sign=2"),
        (lambda data: stationary_directions(data, 1, starts=0), "starts=0"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call(rough())
