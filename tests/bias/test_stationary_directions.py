"""Attractors of the alignment field against independent solvers."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from polyrelu import Dataset, InputError, OrthonormalMixture
from polyrelu.bias import alignment_field, stationary_directions

F64 = torch.float64


def mixture(dim=20, n=200, positive=6, negative=4, alpha=0.1, seed=0, rotate=None):
    return OrthonormalMixture(dim, positive, negative, alpha, rotate=rotate, dtype=F64).sample(n, seed=seed)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_attractors_do_not_depend_on_the_units(scale, rough):
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
    ("options", "words"), [({"sign": 2}, "sign=2"), ({"starts": 0}, "starts=0")], ids=["sign", "starts"]
)
def test_bad_input(options, words):
    with pytest.raises(InputError, match=words):
        stationary_directions(mixture(), 1, **options)


def test_rows_as_seen_must_be_tensors(blobs):
    with pytest.raises(InputError, match=r"preprocess\(X\)=ndarray"):
        stationary_directions(blobs(), 3, preprocess=lambda X: X.numpy())
