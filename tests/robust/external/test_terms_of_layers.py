"""Leading affine layers as one map: products and values against rational arithmetic, sizes against those of |W|."""

from __future__ import annotations

import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.linalg import null_space
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from torch import Tensor, nn

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet
from polyrelu.robust.core.external_layers import Diagonal
from polyrelu.robust.external import as_module
from polyrelu.robust.external.affine_map import folded, growth, size_above
from polyrelu.robust.external.external_model import _hidden, _linear
from polyrelu.robust.external.readers import affine_layer

DIM = 4
KINDS = ["L", "D", "LL", "DL", "LD", "DD", "DDL", "LDL", "DLDL"]
Rows = list[list[Fraction]]


def layers(kinds: str, seed: int) -> list[nn.Module]:
    """L: a matrix whose rows nearly cancel those before; D: a diagonal."""
    draw, found = torch.Generator().manual_seed(seed), list[nn.Module]()

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    for kind in kinds:
        if kind == "D":
            found.append(Diagonal(normal(DIM), normal(DIM), normal(DIM)))
        else:
            layer = nn.Linear(DIM, DIM, dtype=torch.float64).requires_grad_(False)
            layer.weight.copy_(normal(DIM, 1) * torch.tensor([1.0, -1.0, 1.0, -1.0]) + 1e-3 * normal(DIM, DIM))
            layer.bias.copy_(normal(DIM))
            found.append(layer)
    return found


def matrix(layer: nn.Module) -> Rows:
    weight = layer.weight if isinstance(layer, nn.Linear) else torch.diag(layer.factor)
    return [[Fraction(value) for value in row] for row in weight.tolist()]


def times(left: Rows, right: Rows) -> Rows:
    return [[sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in zip(*right, strict=True)]
            for row in left]  # fmt: skip


def sizes(rows: Rows) -> Rows:
    return [[abs(value) for value in row] for row in rows]


def floats(rows: Rows) -> Tensor:
    return torch.tensor([[float(value) for value in row] for row in rows], dtype=torch.float64)


def apart(found: Tensor, exact: Rows) -> Tensor:
    pairs = zip(found.tolist(), exact, strict=True)
    return floats([[abs(Fraction(a) - b) for a, b in zip(*two, strict=True)] for two in pairs])


@pytest.mark.parametrize("kinds", KINDS)
def test_products_and_their_rounding(kinds: str) -> None:
    for seed in range(5):
        made = layers(kinds, seed)
        whole, beside = matrix(made[0]), sizes(matrix(made[0]))
        for layer in made[1:]:
            whole, beside = times(matrix(layer), whole), times(sizes(matrix(layer)), beside)
        affine_layer, rest = folded([*made, nn.ReLU()])
        assert affine_layer is not None and affine_layer.layers == tuple(made) and len(rest) == 1
        A, B = (torch.diag(part) if part.ndim == 1 else part for part in (affine_layer.A, affine_layer.B))
        torch.testing.assert_close(B, floats(beside), rtol=1e-14, atol=0.0)
        off = apart(A, whole)
        assert (off <= affine_layer.rounding * B).all()
        assert affine_layer.rounding == (0 if kinds == "L" else growth(terms(kinds)))
        norms = {1.0: torch.linalg.matrix_norm(A, 1), 2.0: torch.linalg.matrix_norm(A, 2),
                 torch.inf: torch.linalg.matrix_norm(A, torch.inf)}  # fmt: skip
        for norm, size in norms.items():
            most = torch.linalg.matrix_norm(B, "fro" if norm == 2 else norm)
            spare = affine_layer.rounding * (B.amax() if affine_layer.A.ndim == 1 else most)
            assert size + 0.99 * spare <= affine_layer.stretch(norm) <= (size + spare) * (1 + 1e-13)
            slopes = affine_layer.slopes(A, B, norm)
            wanted = torch.linalg.vector_norm(A, norm, dim=1) + affine_layer.rounding * torch.linalg.vector_norm(
                B, norm, dim=1
            )
            assert (wanted <= slopes).all() and (slopes <= wanted * (1 + 1e-13)).all()


def terms(kinds: str) -> int:
    """Of the sums: the columns of every matrix after another; 2 for other matrices, and for diagonals."""
    return sum(DIM if kind == "L" and "L" in kinds[:k] else 2 for k, kind in enumerate(kinds))


@pytest.mark.parametrize("kinds", KINDS)
def test_values_and_their_rounding(kinds: str) -> None:
    for seed in range(5):
        made = layers(kinds, seed)
        draw = torch.Generator().manual_seed(seed)
        X = 1e6 * torch.randn(6, DIM, generator=draw, dtype=torch.float64)
        affine_layer = folded(made)[0]
        assert affine_layer is not None
        values, wrong = affine_layer.values(X)
        Z = [[Fraction(value) for value in row] for row in X.tolist()]
        near, unit = torch.zeros_like(X), 2.0**-53
        for layer in made:
            W = matrix(layer)
            bias = layer.bias if isinstance(layer, nn.Linear) else layer.offset
            centre = torch.zeros(DIM) if isinstance(layer, nn.Linear) else layer.centre
            Z = [[z - Fraction(c) for z, c in zip(row, centre.tolist(), strict=True)] for row in Z]
            size = floats(sizes(Z)) @ floats(sizes(W)).T + bias.abs()
            near = near @ floats(sizes(W)).T + unit * size  # one rounding of each term is the least that may happen
            Z = times(Z, [list(column) for column in zip(*W, strict=True)])
            Z = [[z + Fraction(b) for z, b in zip(row, bias.tolist(), strict=True)] for row in Z]
        off = apart(values, Z)
        assert (off <= wrong).all()
        assert (16 * near <= wrong).all() and (wrong <= 100 * near).all()


@pytest.mark.parametrize("norm", [1.0, 2.0, torch.inf])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_sizes_are_rounded_up_wherever_they_can_be_told(norm: float, scale: float) -> None:
    rows = torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain = torch.linalg.vector_norm(rows, norm, dim=1) * scale
    found = size_above(rows * scale, norm)
    assert (found >= plain).all() and (found <= plain * (1 + 1e-13)).all()
    assert (found >= plain * (1 + 2.0**-48)).all()  # more than the sums themselves may be wrong
    assert size_above(torch.zeros(2, 3, dtype=torch.float64), norm).tolist() == [0.0, 0.0]


def test_machines_are_confirmed_in_columns_that_are_constant_too() -> None:
    # third column 1 in every support vector: weights that agree wherever it is 1 may have any slope along it
    source = np.random.default_rng(0)
    X = np.column_stack([source.normal(size=(30, 2)), np.ones(30)])
    model = SVC(kernel="linear").fit(X, X[:, 0] + 0.5 * source.normal(size=30) > 0)
    as_module(model)
    change = null_space(model.support_vectors_[:, :2].T).sum(axis=1)
    assert abs(change.sum()) > 0.1
    model.dual_coef_ = model.dual_coef_ + change
    model.intercept_ = model.intercept_ - change.sum()
    with pytest.raises(InputError, match="with other values"):
        as_module(model)


@pytest.mark.parametrize("norm", [1.0, 2.0, torch.inf])
@pytest.mark.parametrize("classes, own", [(1, 1.0), (3, 0.0), (3, -1.0)])
def test_hidden_layers_are_proven_with_what_rounding_may_take_to_spare(norm: float, classes: int, own: float) -> None:
    # own: weights of the first class in units of the next one's, which may gain what it loses
    joined, last = folded(layers("LL", 0))[0], nn.Linear(DIM, classes, dtype=torch.float64).requires_grad_(False)
    assert joined is not None
    last.weight.copy_(torch.linspace(-1, 1, DIM * classes).view(classes, DIM))
    last.weight[0] = own * last.weight[-1]
    last.bias.copy_(torch.linspace(-0.5, 0.5, classes))
    X = torch.randn(5, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = torch.ones(5, dtype=torch.float64) if classes == 1 else torch.zeros(5, dtype=torch.long)
    asked: list[Tensor] = []

    def prove(net: PolyReLUNet, Z: Tensor, y: Tensor) -> SimpleNamespace:
        assert net.bias is not None
        asked.append(last.bias - net.bias)
        return SimpleNamespace(lower=torch.zeros(len(Z), dtype=torch.float64))

    _hidden(joined, last, X, y, norm, prove)
    rivals = last.weight.abs() if classes == 1 else (last.weight[0] - last.weight[1:]).abs()
    reach = 10 * float(torch.linalg.vector_norm(X, norm, dim=1).amax())  # the first that is tried
    across = torch.linalg.vector_norm(joined.B, {1.0: torch.inf, 2.0: 2.0, torch.inf: 1.0}[norm], dim=1)
    taken = (joined.rounding * (X.abs() @ joined.B.T + reach * across) @ rivals.T).amax() * (1 - 1e-9) - 1e-16
    assert len(asked) == 1 and taken <= asked[0][0] <= 1e-9 and (asked[0][1:] == 0).all()
    alone = folded(layers("L", 0))[0]
    assert alone is not None
    _hidden(alone, last, X, y, norm, prove)
    assert len(asked) == 2 and (asked[1] == 0).all()  # one stored matrix: the same function exactly
    alone.layers[0].bias.fill_(1e-150)
    last.bias.zero_()
    _hidden(alone, last, 1e200 * X, y, norm, prove)  # a bias that underflows beside such rows is taken off whole
    assert len(asked) == 3 and (1e-150 * rivals.sum(dim=1)).amax() <= asked[2][0] <= 1e-149


@pytest.mark.parametrize("weight", [(2,), (3,), (2, 3, 1), (3, 2), ()], ids=str)
@pytest.mark.parametrize("bias", [None, (2,)], ids=str)
def test_weights_are_matrices_of_as_many_rows_as_there_are_logits(weight: tuple[int], bias: tuple[int] | None) -> None:
    given = None if bias is None else np.zeros(bias)
    assert affine_layer(np.zeros((2, 3)), given, 2).weight.shape == (2, 3)
    with pytest.raises(InputError, match="weights"):
        affine_layer(np.zeros(weight), given, 2)
    with pytest.raises(InputError, match="weights"):
        affine_layer(np.zeros((2, 3)), np.zeros(3), 2)


def test_perceptrons_have_as_many_outputs_as_their_classes_say() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPClassifier((4,), max_iter=2, random_state=0).fit(X, X[:, 0] > 0)
    as_module(model)
    model.coefs_[-1], model.intercepts_[-1] = np.zeros((4, 3)), np.zeros(3)
    with pytest.raises(InputError, match=r"expected \(1, D\) and \(1,\), as its classes_ say"):
        as_module(model)


@pytest.mark.parametrize("norm", [1.0, 2.0, torch.inf])
@pytest.mark.parametrize("label", [0, 1])
def test_linear_margins_are_less_the_rounding_of_both_logits(norm: float, label: int) -> None:
    # logits 1e8 (x_1 - x_2) and 0: the first may be wrong by half of what it is, the other is exact
    layer = nn.Linear(2, 3, dtype=torch.float64).requires_grad_(False)
    layer.weight.copy_((1 - 2 * label) * torch.tensor([[1e8, -1e8], [0.0, 0.0], [0.0, 0.0]]))
    layer.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
    X, y = torch.tensor([[1.0, 1 - 2.0**-46]], dtype=torch.float64), torch.tensor([label])
    single = folded([layer])[0]
    assert single is not None
    (logits,), (wrong,) = single.values(X)
    margin = abs(float(logits[0]))
    assert 0.3 * margin < float(wrong[0]) < 0.7 * margin and float(wrong[1]) < 1e-300
    slope = 1e8 * {1.0: 1.0, 2.0: 2**0.5, torch.inf: 2.0}[norm]
    left = (margin - float(wrong.sum() - wrong[2])) / slope
    assert 0.99 * left < float(_linear(single, X, y, norm)) <= left * (1 + 1e-15)


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight), dtype=torch.float64).requires_grad_(False)
    layer.weight.copy_(torch.tensor(weight, dtype=torch.float64))
    layer.bias.copy_(torch.tensor(bias, dtype=torch.float64))
    return layer


@pytest.mark.parametrize("norm", [1.0, 2.0, torch.inf])
def test_slopes_that_underflow_or_cancel_are_counted(norm: float) -> None:
    faint = folded([linear([[1e-170, 1e-170]], [0.0]), linear([[1e-165]], [0.0])])[0]
    assert faint is not None and (faint.A == 0).all() and (faint.slopes(faint.A, faint.B, norm) > 0).all()
    near = folded([linear([[1.0, 1.0], [1 - 1e-12, 1.0]], [0.0] * 2), linear([[1.0, -1.0], [-1.0, 1.0]], [1.0, 0.0])])[
        0
    ]
    assert near is not None
    other = {1.0: torch.inf, 2.0: 2.0, torch.inf: 1.0}[norm]
    sizes = [torch.linalg.vector_norm(part, other) for part in (near.A[0] - near.A[1], near.B[0] + near.B[1])]
    assert near.rounding * sizes[1] > 0.005 * sizes[0]
    X, y = torch.zeros(1, 2, dtype=torch.float64), torch.zeros(1, dtype=torch.long)
    wanted = 1 / (sizes[0] + near.rounding * sizes[1])
    assert 0.999 * wanted < _linear(near, X, y, norm)[0] <= wanted


@pytest.mark.parametrize("gone", ["coef_", "intercept_", "classes_"])
def test_what_is_no_model_is_told_so(gone: str) -> None:
    parts = {"coef_": np.ones((1, 2)), "intercept_": np.zeros(1), "classes_": np.array([0, 1])}
    as_module(SimpleNamespace(**parts))
    as_module(SimpleNamespace(**parts, dual_coef_=np.ones((1, 5))))  # without support vectors that is no machine
    del parts[gone]
    with pytest.raises(InputError, match="expected a fitted linear model"):
        as_module(SimpleNamespace(**parts))


@pytest.mark.parametrize("value, excused", [(1e-3, True), (1e-1, False)])
def test_only_margins_of_rounding_size_excuse_another_answer(value: float, excused: bool) -> None:
    # the largest logit is 1000; the row of this value is answered with the other class
    X = np.array([[1000.0, 0.0], [value, 0.0], [-1e-6, 0.0]])
    parts = {"coef_": np.array([[1.0, 0.0]]), "intercept_": np.zeros(1), "classes_": np.array([0, 1])}
    model = SimpleNamespace(**parts, predict=lambda rows: np.array([1, 0, 0]))
    if excused:
        as_module(model, X)
    else:
        with pytest.raises(InputError, match="disagree in row 1 of 3"):
            as_module(model, X)
