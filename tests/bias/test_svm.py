"""The hard-margin SVM against hand-made slabs, scikit-learn and its own optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from polyrelu.bias import cosine_to_svm, svm_direction
from polyrelu.data import Dataset, OrthonormalMixture, SymmetricSeparable
from polyrelu.errors import InputError
from polyrelu.nets import LogisticRegression, PolyReLUNet

BIASES = [False, True, "counted"]


def cloud(n: int = 60, dim: int = 3, seed: int = 0, through: float = 0.0) -> Dataset:
    """Points with a gap of .4 around a hyperplane at distance ``through`` from the origin."""
    rng = torch.Generator().manual_seed(seed)
    X = torch.randn(n, dim, generator=rng, dtype=torch.float64)
    y = torch.where(X[:, 0] > 0, 1.0, -1.0).double()
    X[:, 0] += 0.2 * y + through
    turn = torch.linalg.qr(torch.randn(dim, dim, generator=rng, dtype=torch.float64)).Q
    return Dataset(X @ turn, y)


def test_two_points_by_hand():
    # Midpoint (2, 1), half the difference (1, 1): offset free, the slab is orthogonal to it, margin sqrt(2).
    data = Dataset(torch.tensor([[3.0, 2.0], [1.0, 0.0]], dtype=torch.float64), torch.tensor([1.0, -1.0]))
    svm = svm_direction(data, bias=True)
    assert svm.direction.tolist() == pytest.approx([0.5**0.5, 0.5**0.5], abs=1e-14)
    assert svm.margin == pytest.approx(2**0.5, rel=1e-14)
    assert svm.bias == pytest.approx(-3 / 2**0.5, rel=1e-14)
    assert svm.multipliers.tolist() == pytest.approx([0.25, 0.25], rel=1e-12)  # each half of 1/margin^2
    # Through the origin: w = l_1 (3, 2) - l_2 (1, 0) with margins 1 is (-1, 2), l = (1, 4).
    svm = svm_direction(data)
    assert (svm.direction / svm.margin).tolist() == pytest.approx([-1, 2], abs=1e-12)
    assert svm.multipliers.tolist() == pytest.approx([1, 4], rel=1e-12)


@pytest.mark.parametrize("extra", [0, 3, 5])
def test_the_known_direction_of_symmetric_data(extra):
    made = SymmetricSeparable(6, margin=0.7, extra=extra, rotate=3, dtype=torch.float64)
    svm = svm_direction(made.sample(60, seed=2))
    assert float(svm.direction @ made.direction) == pytest.approx(1, abs=1e-12)
    assert svm.margin == pytest.approx(made.linear_margin, rel=1e-10)
    assert svm.residual < 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_scikit_learn_agrees(seed):
    data = cloud(200, 5, seed, through=3.0)
    svm = svm_direction(data, bias=True)
    peer = SVC(kernel="linear", C=1e4, tol=1e-9).fit(data.X.numpy(), data.y.numpy())
    w = peer.coef_[0]
    assert svm.direction.numpy() == pytest.approx(w / np.linalg.norm(w), abs=1e-5)  # libsvm's own accuracy
    assert svm.margin == pytest.approx(1 / np.linalg.norm(w), rel=1e-5)
    assert svm.bias * np.linalg.norm(w) == pytest.approx(peer.intercept_[0], rel=1e-4)
    assert svm.support.tolist() == sorted(peer.support_.tolist())


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("dim, n, alpha", [(100, 1000, 0.1), (60, 200, 0.5), (200, 100, 1.0), (2, 40, None)])
def test_every_condition_holds(dim, n, alpha, bias):
    """Recomputed here from the rows: feasible, tight on the support, w and b from multipliers >= 0."""
    data = cloud(n, dim) if alpha is None else OrthonormalMixture(dim, 6, 4, alpha, dtype=torch.float64).sample(n, 0)
    svm = svm_direction(data, bias)
    y, X, S = data.y, data.X, svm.support
    margins = y * (X @ svm.direction + svm.bias) / svm.margin
    assert margins.min() > 1 - 1e-10
    assert margins[S] == pytest.approx(torch.ones(len(S)), abs=1e-10)
    assert (svm.multipliers > 0).all()
    w = (svm.multipliers * y[S]) @ X[S]
    assert float((w - svm.direction / svm.margin).norm()) <= 1e-10 / svm.margin
    offset = float(svm.multipliers @ y[S])
    assert offset == pytest.approx({False: offset, True: 0.0, "counted": svm.bias / svm.margin}[bias], abs=1e-8)
    assert float(svm.direction.square().sum()) + (svm.bias**2 if bias == "counted" else 0) == pytest.approx(1)
    assert svm.residual < 1e-10


@pytest.mark.parametrize("bias", BIASES)
def test_rows_in_any_order_rotated_and_scaled(bias):
    data = cloud(300, 8, seed=5)
    svm, order = svm_direction(data, bias), torch.randperm(300, generator=torch.Generator().manual_seed(1))
    turn = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)).Q
    scale = 1.0 if bias == "counted" else 1e-20
    again = svm_direction(Dataset(scale * data.X[order] @ turn, data.y[order]), bias)
    assert again.margin == pytest.approx(scale * svm.margin, rel=1e-9)
    assert float((again.direction - svm.direction @ turn).norm()) < 1e-9
    assert set(order[again.support].tolist()) == set(svm.support.tolist())


def test_a_free_bias_ignores_where_the_data_lie():
    data = cloud(100, 4)
    svm, moved = svm_direction(data, True), svm_direction(Dataset(data.X + 1e4, data.y), True)
    assert moved.margin == pytest.approx(svm.margin, rel=1e-9)
    assert float(moved.direction @ svm.direction) == pytest.approx(1, abs=1e-12)


def test_duplicates_and_more_rows_than_are_held():
    data = cloud(50, 4)
    many = Dataset(data.X.repeat(120, 1), data.y.repeat(120))
    assert svm_direction(many, True).margin == pytest.approx(svm_direction(data, True).margin, rel=1e-10)
    big = OrthonormalMixture(20, 1, 1, 0.3, dtype=torch.float64).sample(9000, 0)
    svm = svm_direction(big)
    assert (big.y * (big.X @ svm.direction)).min() == pytest.approx(svm.margin, rel=1e-10)
    assert svm.residual < 1e-10


def test_cosine_of_linear_models():
    data = cloud(40, 2)
    u = svm_direction(data).direction
    side = torch.stack([-u[1], u[0]])
    assert cosine_to_svm(7 * u, data) == pytest.approx(1, abs=1e-12)
    assert cosine_to_svm(u + side, data) == pytest.approx(0.5**0.5, abs=1e-9)
    plain = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    plain.weight.data.copy_(-u)
    assert cosine_to_svm(plain, data) == pytest.approx(-1, abs=1e-12)
    counted = svm_direction(data, "counted")
    model = LogisticRegression(2, dtype=torch.float64)
    model.weight.data.copy_(3 * counted.direction)
    model.bias.data.fill_(3 * counted.bias)
    assert cosine_to_svm(model, data) == pytest.approx(1, abs=1e-12)
    model.bias.data.add_(1.0)
    assert cosine_to_svm(model, data) < 0.999


def test_regularised_logistic_regression_tends_to_it():
    """Claim E12: lambda -> 0 turns L2-regularised logistic regression into the SVM, at the pace of 1/log(1/lambda)."""
    from sklearn.linear_model import LogisticRegression as Peer

    data, cosines = cloud(40, 2), []
    for strength in (1e-1, 1e-2, 1e-4, 1e-8):
        peer = Peer(C=1 / strength, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        peer.fit(data.X.numpy(), data.y.numpy())
        cosines.append(cosine_to_svm(torch.from_numpy(peer.coef_[0]), data))
    assert cosines == sorted(cosines)
    assert cosines[-1] > 0.999


def test_bad_input_is_refused_in_words():
    mixed = OrthonormalMixture(20, 3, 3, 20.0).sample(400, 0)
    for bias in BIASES:
        with pytest.raises(InputError, match="not linearly separable"):
            svm_direction(mixed, bias)
    shifted = cloud(60, 3, through=5.0)  # separable, but not through the origin
    with pytest.raises(InputError, match="through the origin; bias=True"):
        svm_direction(shifted)
    assert svm_direction(shifted, True).margin > 0.19
    digits = Dataset(torch.randn(6, 2), torch.tensor([0, 1, 2, 0, 1, 2]))
    with pytest.raises(InputError, match=r"3 classes 0\.\.2: expected two classes labelled"):
        svm_direction(digits)
    data = cloud(20, 2)
    for model, words in (
        (PolyReLUNet(2, 3), "expected LogisticRegression"),
        (LogisticRegression(2, 3), "one logit"),
        (torch.zeros(2), "not all zero"),
        (torch.ones(3), "one for each column"),
    ):
        with pytest.raises(InputError, match=words):
            cosine_to_svm(model, data)
    with pytest.raises(InputError, match="bias='free'"):
        svm_direction(data, "free")
