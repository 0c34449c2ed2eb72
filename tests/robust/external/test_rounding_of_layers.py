"""What rounding does to the layers of other people's models, held against rational numbers."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import NORMS
from polyrelu.robust.core import dual
from polyrelu.robust.core.external_layers import Diagonal
from polyrelu.robust.external import certified, label_codes
from polyrelu.robust.external import external_model as foreign
from polyrelu.robust.external.affine_map import folded

RANDOM = np.random.default_rng(0)
NAMES = np.array(["ash", "birch"])


def blobs(classes, dim=5, n=240):
    X, y = make_blobs(n, dim, centers=2 * classes, cluster_std=2.5, random_state=0)
    return X * np.geomspace(0.5, 4, dim) + 3, NAMES[y % classes]


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def linear(weight, bias):
    layer = nn.Linear(len(weight[0]), len(weight), dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(weight))
        layer.bias.copy_(torch.as_tensor(bias))
    return layer


def exact(numbers):
    """A tensor or array as rational numbers, in lists."""
    return [exact(row) for row in numbers] if getattr(numbers, "ndim", 0) else Fraction(float(numbers))


def matrix(layer):
    """Weight rows and bias of a layer, in rational numbers."""
    if isinstance(layer, Diagonal):
        centre, factor, offset = (exact(one) for one in (layer.centre, layer.factor, layer.offset))
        rows = [[f if i == j else Fraction(0) for j in range(len(factor))] for i, f in enumerate(factor)]
        return rows, [o - c * f for c, f, o in zip(centre, factor, offset, strict=True)]
    return exact(layer.weight.detach()), exact(layer.bias.detach())


def times(rows, x):
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]


def composed(layers):
    """A and a of the layers together, in rational numbers."""
    A, a = matrix(layers[0])
    for layer in layers[1:]:
        rows, bias = matrix(layer)
        columns = [times(rows, column) for column in zip(*A, strict=True)]
        A, a = (
            [list(row) for row in zip(*columns, strict=True)],
            [s + b for s, b in zip(times(rows, a), bias, strict=True)],
        )
    return A, a


def cancelling(seed, dim=3, inner=40, outputs=2):
    """W_1 and W_2 whose product is nothing but rounding, up to a few parts: every row of W_2 is normal to W_1."""
    source = np.random.default_rng(seed)
    first = source.standard_normal((inner, dim))
    second = source.standard_normal((outputs, inner))
    second -= second @ first @ np.linalg.pinv(first)
    return linear(first, 1e-17 * source.standard_normal(inner)), linear(second, 1e-17 * source.standard_normal(outputs))


def columns(seed, size, spread=1.0):
    source = np.random.default_rng(seed)
    return Diagonal(*(torch.from_numpy(spread * source.standard_normal(size)) for _ in range(3)))


def flat(seed, size):
    """A diagonal that leaves sizes as they are: errors from before must go through it."""
    return Diagonal(torch.zeros(size).double(), 1 + columns(seed, size).factor.abs(), torch.zeros(size).double())


STACKS = {
    "one": lambda seed: [linear(np.random.default_rng(seed).standard_normal((2, 60)), [0.1, 0.2])],
    "scaled": lambda seed: [columns(seed, 3), *cancelling(seed)[:1]],
    "two": lambda seed: [*cancelling(seed)],
    "then scaled": lambda seed: [*cancelling(seed), flat(seed, 2)],
    "then another": lambda seed: [*cancelling(seed), linear([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0])],
    "scalers": lambda seed: [columns(seed, 3), columns(seed + 99, 3), flat(seed, 3)],
}


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_errors_of_values_are_within_their_bound_and_the_bound_is_not_wild(stack):
    for seed in range(8):
        layers = STACKS[stack](seed)
        A, a = composed(layers)
        affine, rest = folded(layers)
        X = torch.from_numpy(np.random.default_rng(seed).standard_normal((3, len(A[0]))))
        Z, E = affine.values(X)
        assert rest == [] and (E > 0).all() and (E < 1e-10).all()
        for x, z, e in zip(exact(X), exact(Z), exact(E), strict=True):
            true = [s + b for s, b in zip(times(A, x), a, strict=True)]
            assert all(abs(one - value) <= bound for one, value, bound in zip(true, z, e, strict=True))


def least_size(row, norm):
    """|row|, a little below, from rational numbers."""
    size = {1.0: lambda: sum(row), 2.0: lambda: math.sqrt(sum(one * one for one in row)), math.inf: lambda: max(row)}
    row = [abs(one) for one in row]
    return float(size[norm]()) * (1 - 1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("stack", STACKS)
def test_slopes_and_stretches_are_at_least_the_true_ones(stack, norm):
    for seed in range(8):
        layers = STACKS[stack](seed)
        A, _ = composed(layers)
        affine, _ = folded(layers)
        rows = torch.tensor([[float(one) for one in row] for row in A], dtype=torch.float64)
        stretch = float(torch.linalg.matrix_norm(rows, ord=norm))
        assert stretch * (1 - 1e-14) <= affine.stretch(norm) <= stretch * (1 + 1e-9) + 1e-11
        if affine.A.ndim == 2:
            found = affine.slopes(affine.A, affine.B, dual(norm)).tolist()
            assert all(least_size(row, dual(norm)) <= slope for row, slope in zip(A, found, strict=True))
            difference = affine.slopes(affine.A[0] - affine.A, affine.B[0] + affine.B, dual(norm)).tolist()
            for row, slope in zip(A, difference, strict=True):
                assert least_size([a - b for a, b in zip(A[0], row, strict=True)], dual(norm)) <= slope


def neuron(kind):
    """relu(z) - 1e-18, as layers of torch or as a head of ours."""
    if kind == "relu":
        return [nn.ReLU(), linear([[1.0]], [-1e-18])]
    net = PolyReLUNet(1, 1, 1.0, init="zeros", bias=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight.fill_(1.0)
        net.output.fill_(1.0)
        net.bias.fill_(-1e-18)
    return [net]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["relu", "head", "linear"])
def test_radii_behind_layers_that_cancel_are_below_the_true_ones(kind):
    # relu(z) - t > 0 exactly where z = A x + a > t: the radius is |z - t| / |A|, z and A in rational numbers. Values
    # of rounding's size allow no proof; farther off there is one.
    proven = 0
    for seed in range(10):
        first, second = cancelling(seed, outputs=1)
        rows = np.random.default_rng(seed).standard_normal((4, 3))
        for above in (0.0, 1e-15, 1e-12, 1e-9, 1e-6):
            second.bias.data += above
            (A,), (a,) = composed([first, second])
            t = 0 if kind == "linear" else Fraction(1e-18)
            module = nn.Sequential(first, second, *([] if kind == "linear" else neuron(kind)))
            for sign in (1, -1):
                radius = certified(module, torch.from_numpy(rows), torch.full((len(rows),), float(sign)))
                for r, x in zip(radius.tolist(), exact(rows), strict=True):
                    margin = sign * (times([A], x)[0] + a - t)
                    assert radius_is_at_most(r, margin, sum(one * one for one in A))
                    proven += r > 0
    assert proven > 50


@pytest.mark.slow
def test_what_rounding_changes_in_a_slope_counts_away_from_the_row():
    # At x = 0 the value is a whatever A is: relu(A x + a) > 1e-30 up to a/|A|, and A is nothing but rounding.
    for seed in range(20):
        layers = cancelling(seed, outputs=1)
        (A,), _ = composed(layers)
        slope = sum(one * one for one in A)
        with torch.no_grad():
            layers[0].bias.zero_()
            layers[1].bias.fill_(0.3 * math.sqrt(slope))
        module = nn.Sequential(*layers, nn.ReLU(), linear([[1.0]], [-1e-30]))
        radius = certified(module, torch.zeros(1, 3).double(), torch.ones(1)).item()
        assert radius_is_at_most(radius, Fraction(layers[1].bias.item()) - Fraction(1e-30), slope)


def test_radii_end_where_the_bound_on_rounding_was_taken(monkeypatch):
    # x/2 + 1 > 0 at x = 1: 3 is the radius, which is more than the bound speaks of.
    half = Diagonal(*(torch.tensor([number]).double() for number in (0.0, 0.5, 0.0)))
    module = nn.Sequential(half, linear([[1.0]], [1.0]), nn.ReLU(), linear([[1.0]], [-1e-9]))
    one = torch.ones(1, 1).double()
    assert certified(module, one, torch.ones(1)).item() == pytest.approx(3, rel=1e-2)
    monkeypatch.setattr(foreign, "REACHES", (0.01, 0.1))
    assert certified(module, one, torch.ones(1)).item() == pytest.approx(0.1, rel=1e-9)


@pytest.mark.slow
def test_far_radii_behind_a_scaler():
    # f(x) = relu(x/2) - 3 at 1e-3: the boundary is at 6, far from the row in its own units; one that never decides
    # otherwise is proven as far as is tried.
    near = torch.tensor([[1e-3]]).double()
    half = Diagonal(*(torch.tensor([number]).double() for number in (0.0, 0.5, 0.0)))
    module = nn.Sequential(half, linear([[1.0]], [0.0]), nn.ReLU(), linear([[1.0]], [-3.0]))
    assert certified(module, near, -torch.ones(1)).item() == pytest.approx(5.999, rel=1e-2)
    module[3].weight.data.neg_()
    assert certified(module, near, -torch.ones(1)).item() >= 1e5


def radius_is_at_most(radius, margin, slope_squared):
    """radius <= margin/sqrt(slope_squared), decided in rational numbers."""
    return radius == 0 or (margin > 0 and Fraction(radius) ** 2 * slope_squared <= margin**2)


@pytest.mark.parametrize("middle", [0.0, 1e6, 1e12, 1e15])
def test_rounding_of_a_scaled_linear_model_is_taken_off_its_radius(middle):
    # Exact: f(x) = sum_j w_j (x_j - m_j)/s_j + b in rational numbers. Far from 0 the products cancel.
    X, y = blobs(2, n=40)
    X = X + middle
    model = fitted(make_pipeline(StandardScaler(), LogisticRegression()), X, y)
    model[1].coef_ = RANDOM.standard_normal((1, 5)) * np.geomspace(1e-8, 1e8, 5)
    X = X + 1e-14 * RANDOM.standard_normal(X.shape)  # rows between two numbers as well
    labels = label_codes(model.predict(X), model.classes_, 1)
    radius = certified(model, torch.from_numpy(X), labels)
    w, m, s = ([Fraction(number) for number in row] for row in (model[1].coef_[0], model[0].mean_, model[0].scale_))
    b = Fraction(float(model[1].intercept_[0]))
    slope = sum((wj / sj) ** 2 for wj, sj in zip(w, s, strict=True))
    ratios = []
    for x, label, r in zip(X.tolist(), labels.tolist(), radius.tolist(), strict=True):
        terms = [wj * (Fraction(xj) - mj) / sj for wj, xj, mj, sj in zip(w, x, m, s, strict=True)]
        margin = int(label) * (sum(terms) + b)
        assert radius_is_at_most(r, margin, slope)
        ratios.append(r / (float(margin) / math.sqrt(slope)) if margin > 0 else 0)
    assert np.median(ratios) > 1 - 1e-9  # and hardly anything is lost


def test_rounding_of_a_linear_machine_is_taken_off_its_radius():
    # Exact: f(x) = sum_i a_i <s_i, x> + b. With large C and near duplicates the products with s_i cancel.
    X, y = blobs(2, n=60)
    X = np.concatenate([X, X + 1e-9])
    model = fitted(SVC(kernel="linear", C=1e4), X, np.concatenate([y, y]))
    rows = torch.from_numpy(X[:20])
    labels = label_codes(model.predict(X[:20]), model.classes_, 1)
    radius = certified(model, rows, labels)
    a = [Fraction(number) for number in model.dual_coef_[0]]
    vectors = [[Fraction(number) for number in row] for row in model.support_vectors_]
    w = [sum(ai * row[j] for ai, row in zip(a, vectors, strict=True)) for j in range(5)]
    for x, label, r in zip(X[:20].tolist(), labels.tolist(), radius.tolist(), strict=True):
        value = sum(wj * Fraction(xj) for wj, xj in zip(w, x, strict=True)) + Fraction(float(model.intercept_[0]))
        assert r > 0 and radius_is_at_most(r, int(label) * value, sum(wj**2 for wj in w))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-160, 1.0, 1e150])
def test_weights_of_every_size_have_the_same_radius(norm, size):
    # f = size (3 x_1 + 4 x_2) at (1, 1): 7 over the dual norm of (3, 4).
    model = fitted(LogisticRegression(), *blobs(2, dim=2))
    model.coef_, model.intercept_ = size * np.array([[3.0, 4.0]]), np.zeros(1)
    exact = 7 / {1.0: 4, 2.0: 5, math.inf: 7}[norm]
    found = certified(model, torch.ones(1, 2).double(), torch.ones(1), norm).item()
    assert found <= exact and found == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("middle", [0.0, 1e3, 1e12])
def test_rounding_of_a_scaled_hidden_layer_is_taken_off_its_radius(middle):
    # One neuron, f(x) = v relu(w (x - m)/s + b) + c > 0 exactly for x > x_0 = m + s ((-c/v - b)/w).
    X, y = (RANDOM.standard_normal((60, 1)) + middle) * 0.7, NAMES[np.arange(60) % 2]
    model = fitted(make_pipeline(StandardScaler(), MLPClassifier((1,), max_iter=5, random_state=0)), X, y)
    w, b, v, c = 1.7, 0.3, 2.1, -1.3
    net = model[1]
    net.coefs_, net.intercepts_ = [np.array([[w]]), np.array([[v]])], [np.array([b]), np.array([c])]
    w, b, v, c, m, s = map(Fraction, (w, b, v, c, float(model[0].mean_[0]), float(model[0].scale_[0])))
    edge = m + s * ((-c / v - b) / w)
    Z = float(edge) + 0.5 * np.concatenate([np.linspace(-1, 1, 30), np.geomspace(1e-16, 1e-3, 30)])[:, None]
    labels = torch.tensor([1.0 if Fraction(z) > edge else -1.0 for z in Z[:, 0].tolist()])
    radius = certified(model, torch.from_numpy(Z), labels)
    exact = [abs(Fraction(z) - edge) for z in Z[:, 0].tolist()]
    assert all(Fraction(r) <= true for r, true in zip(radius.tolist(), exact, strict=True))
    if middle < 1e6:
        assert (radius > 0.9 * torch.tensor([float(true) for true in exact])).double().mean() > 0.5


def stacked(*layers):
    """Linear layers with these weights and biases (None: without), then a net if one is given."""
    parts = []
    for weight, bias in layers:
        weight = torch.as_tensor(weight, dtype=torch.float64)
        parts.append(nn.Linear(weight.shape[1], len(weight), bias=bias is not None, dtype=torch.float64))
        with torch.no_grad():
            parts[-1].weight.copy_(weight)
            if bias is not None:
                parts[-1].bias.copy_(torch.as_tensor(bias, dtype=torch.float64))
    return parts


def relu_net(weight, output):
    net = PolyReLUNet(len(weight[0]), len(weight), 1, len(output), init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(weight))
        net.output.copy_(torch.tensor(output))
    return net


def test_rounding_of_small_products_is_not_lost_in_their_squares():
    # W2 W1 = c (b - a) s^2 with b = a less an ulp: computed as 0, truly c 2^-52 s^2; |x| = 1/sqrt(2) reaches the bias
    s, ulp = 2.0**-300, 2.0**-52
    a = np.array([1 + 11 * ulp, 1 + 11 * ulp])
    W1, W2 = np.stack([a, a - ulp]) * s, np.array([[-1.0, 1.0], [-1.0, 1.0]]) * (1 + 2.0**-30) * s
    slope = float(Fraction(W2[0, 0]) * Fraction(W1[0, 0]) + Fraction(W2[0, 1]) * Fraction(W1[1, 0]))
    module = nn.Sequential(
        *stacked((W1, None), (W2, [-slope, 0.0])), relu_net([[1.0, 0.0], [-1.0, 0.0]], [[1.0, -1.0]])
    )
    found = certified(module, torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, dtype=torch.float64), 2)
    assert found <= 0.5**0.5


def test_products_that_underflow_and_come_back():
    # 1e-200 1e-200 1e300 x - 1e-100 is negative up to x = 1, though the first product is 0 in float64
    module = nn.Sequential(*stacked(([[1e-200]], None), ([[1e-200]], None), ([[1e300]], None), ([[1.0]], [-1e-100])))
    found = certified(module, torch.zeros(1, 1, dtype=torch.float64), -torch.ones(1, dtype=torch.float64), 2)
    assert found <= 1


@pytest.mark.slow
def test_a_radius_that_overflows_is_finite():
    module = nn.Sequential(*stacked(([[1e-300]], [1e10])), relu_net([[1.0]], [[1.0]]))
    found = certified(module, torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64), 2)
    assert 1e307 < found < math.inf
