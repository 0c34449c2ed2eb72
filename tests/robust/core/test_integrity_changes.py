"""What was changed after it was made, in ways that a look at names and types misses: no proof, or an InputError."""

from __future__ import annotations

import copy
import functools
import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import LabelBinarizer
from torch import nn
from torch.ao.nn import qat as quantised
from torch.nn import functional

from polyrelu import PolyReLUClassifier, PolyReLUNet, bracket
from polyrelu.checks import check_module, checked
from polyrelu.errors import InputError
from polyrelu.estimator import RobustnessReport
from polyrelu.nets import AverageClassifier, CentreClassifier, ReadOut
from polyrelu.robust import (
    BracketStatus,
    altered,
    bounds_at_radius,
    certified_radius,
    linear_radius,
    quadratic_radius,
    root_lipschitz_radius,
)
from polyrelu.robust.core import integrity as genuine
from polyrelu.robust.external import certified

RANDOM = np.random.default_rng(4)
X = np.concatenate([RANDOM.standard_normal((40, 4)) + 2, RANDOM.standard_normal((40, 4)) - 2])
Y = np.repeat(["ash", "birch"], 40)
ROWS, SIGNS = torch.from_numpy(X), torch.from_numpy(np.where(Y == "birch", 1.0, -1.0))


def relu():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)).double()


def net(**settings):
    return PolyReLUNet(4, 3, 2.0, seed=1, dtype=torch.float64, **settings)


def unproven(model):
    return certified(model, ROWS, SIGNS) is None


# --- methods --------------------------------------------------------------------------------------------------------


def test_a_method_swapped_for_another_of_the_same_library(monkeypatch):
    assert certified(relu(), ROWS, SIGNS) is not None
    for other in (nn.SELU.forward, nn.ReLU.extra_repr, functional.relu, nn.SELU(), nn.SELU, checked(nn.SELU.forward)):
        monkeypatch.setattr(nn.ReLU, "forward", other)
        assert "forward of the class torch.nn.modules.activation.ReLU was replaced" in altered(relu())
        assert unproven(relu())
    monkeypatch.undo()
    assert altered(relu()) == ""


def test_a_method_of_a_parent_swapped_within_one_module(monkeypatch):
    model = LogisticRegression().fit(X, Y)
    monkeypatch.setattr(LogisticRegression, "predict", LogisticRegression.predict_proba)
    assert "predict of the class" in altered(model)
    monkeypatch.undo()
    monkeypatch.setattr(nn.Module, "__call__", nn.Module.extra_repr)
    assert "__call__ of the class torch.nn.modules.module.Module was replaced" in altered(relu())


@pytest.mark.parametrize("name", ["forward", "preprocess", "_polar"])
def test_methods_of_our_nets_swapped(monkeypatch, name):
    monkeypatch.setattr(PolyReLUNet, name, CentreClassifier.forward)
    assert f"{name} of the class" in altered(net())


def test_code_swapped_for_that_of_another_method(monkeypatch):
    monkeypatch.setattr(nn.ReLU.forward, "__code__", nn.ReLU.extra_repr.__code__)
    assert "forward of the class" in altered(relu())


def test_a_decorator_of_ours_around_another_function(monkeypatch):
    plain = nn.ReLU.forward
    wrapped = checked(nn.SELU.forward)
    wrapped.__wrapped__ = plain  # what it calls is still the other one
    monkeypatch.setattr(nn.ReLU, "forward", wrapped)
    assert "forward of the class" in altered(relu())
    monkeypatch.setattr(nn.ReLU, "forward", functools.partialmethod(plain))
    assert "forward of the class" in altered(relu())


def test_a_parameter_hidden_by_the_class(monkeypatch):
    model = relu()
    monkeypatch.setattr(nn.Linear, "weight", torch.ones(5, 4), raising=False)
    assert "weight of its layer 0 is hidden by an attribute of its class" in altered(model)


# --- what an instance holds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["__deepcopy__", "__copy__", "__reduce_ex__", "__getstate__", "__setstate__"])
def test_a_way_to_copy_of_its_own(name):
    model, other = net(), net(scale=3.0)
    object.__setattr__(model, name, lambda *given: other)
    assert f"an attribute {name} of its own" in altered(model)
    with pytest.raises(InputError, match=f"with a {name} of its own"):
        bracket(model, ROWS[:2], torch.ones(2))
    with pytest.raises(InputError, match="as it was written"):
        linear_radius(model, ROWS[:2], torch.ones(2))
    estimator = LogisticRegression().fit(X, Y)
    object.__setattr__(estimator, name, lambda *given: other)
    assert f"an attribute {name} of its own" in altered(estimator)


class Other(dict):
    def __getitem__(self, name):
        return -super().__getitem__(name) if name == "weight" else super().__getitem__(name)


@pytest.mark.parametrize("name", ["_parameters", "_buffers", "_modules"])
def test_containers_of_another_class(name):
    model = relu()
    model[0].__dict__[name] = Other(model[0].__dict__[name])
    assert f"{name} of its layer 0 is a" in altered(model) and unproven(model)
    model = net()
    model.__dict__[name] = Other(model.__dict__[name])
    assert f"{name} of it is a" in altered(model)


def test_a_function_among_the_layers():
    model = relu()
    model._modules["1"] = functional.silu
    assert "its layer 1 is a builtins.function, which is not one of the classes that are known" in altered(model)
    assert unproven(model)
    for ask in (
        lambda: bracket(model, ROWS[:2], torch.ones(2)),
        lambda: RobustnessReport.measure(model, X, Y, compare=False),
    ):
        with pytest.raises(InputError, match="modules for layers"):
            ask()


PROOFS = [
    bracket,
    root_lipschitz_radius,
    linear_radius,
    certified_radius,
    quadratic_radius,
    lambda *args: bounds_at_radius(*args, 0.1),
]


@pytest.mark.parametrize("prove", PROOFS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("p", 0.5), ("p", 0.0), ("p", float("nan")), ("p", "a"), ("p", True), ("p", np.float32(2)), ("p", torch.tensor(2)),
     ("dim", 3), ("width", 2), ("width", 0), ("outputs", 2), ("outputs", None), ("normalise_input", "no")],
)  # fmt: skip
def test_settings_that_no_constructor_takes(prove, name, value):
    model = net()
    setattr(model, name, value)
    with pytest.raises(InputError, match=rf"^(net\.\w+\.shape|{name})="):
        prove(model, ROWS[:2], torch.ones(2))


@pytest.mark.parametrize("prove", PROOFS)
@pytest.mark.parametrize("name", ["log_scale", "log_balance", "centre", "bias", "weight"])
def test_shapes_that_no_constructor_makes(prove, name):
    model = net(centre=torch.zeros(4), bias=True)
    bounds_at_radius = getattr(model, name)
    setattr(
        model,
        name,
        nn.Parameter(bounds_at_radius.detach()[None])
        if isinstance(bounds_at_radius, nn.Parameter)
        else bounds_at_radius[:, None],
    )
    with pytest.raises(InputError, match=rf"^net\.{name}\.shape=.*: expected \("):
        prove(model, ROWS[:2], torch.ones(2))


def test_settings_of_other_nets():
    centres, labels = torch.eye(4).double(), torch.tensor([1.0, -1.0, 1.0, -1.0]).double()
    ideal, average = CentreClassifier(centres, labels), AverageClassifier(centres, labels)
    read, inner = (ReadOut(PolyReLUNet(4, 8, 2.0, 4, seed=1, dtype=torch.float64), [0, 0, 1, 1]) for _ in range(2))
    ideal.p, average.labels, read.class_of, inner.net.p = 0.5, labels[:3], torch.tensor([0, 0, 1, 2]), 0.25
    for model, said in ((ideal, "p=0.5"), (average, "centres.shape"), (read, "class_of="), (inner, "p=0.25")):
        y = torch.zeros(2, dtype=torch.long) if isinstance(model, ReadOut) else torch.ones(2)
        with pytest.raises(InputError, match=said):
            bracket(model, ROWS[:2], y)


def test_what_is_said_of_nan_is_what_is_looked_for():
    model = nn.Linear(2, 1)
    model.weight.data[0, 1] = torch.inf
    assert check_module(model) is model
    model.weight.data[0, 0] = torch.nan
    with pytest.raises(InputError, match=r"net\.weight=NaN: expected numbers"):
        check_module(model)


# --- names of classes -----------------------------------------------------------------------------------------------


def perceptron(y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MLPClassifier((4,), random_state=0, max_iter=30).fit(X, y)


class Names(LabelBinarizer):
    pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("pos_label", 1.9), ("pos_label", 1 + 1e-9), ("neg_label", -0.5), ("classes_", np.array(["birch", "ash"])),
     ("y_type_", "multiclass"), ("y_type_", "multilabel-indicator"), ("sparse_input_", True),
     ("inverse_transform", lambda scores: scores)],
)  # fmt: skip
def test_how_a_perceptron_names_its_scores(name, value):
    model = perceptron()
    assert altered(model) == "" and (certified(model, ROWS, SIGNS) > 0).any()
    setattr(model._label_binarizer, name, value)
    assert "_label_binarizer" in altered(model) or "inverse_transform of its own" in altered(model)
    assert unproven(model)


def test_names_from_elsewhere():
    for model in (perceptron(), RidgeClassifier().fit(X, Y)):
        assert altered(model) == "" and certified(model, ROWS, SIGNS) is not None
        model._label_binarizer = Names().fit(Y)
        assert "is not one of the classes that are known" in altered(model) and unproven(model)
        model._label_binarizer = object()
        assert unproven(model)
    model = RidgeClassifier().fit(X, Y)
    model._label_binarizer.y_type_ = "multilabel-indicator"
    assert unproven(model)
    three = np.array(["a", "b", "c"])[np.arange(80) % 3]
    assert altered(perceptron(three)) == "" and altered(RidgeClassifier().fit(X, three)) == ""


# --- reports --------------------------------------------------------------------------------------------------------


def raising(rows):
    raise KeyError("no such row")


@pytest.mark.parametrize(
    ("model", "rows", "said"),
    [
        (LogisticRegression().fit(X, Y), X[:, :3], "3 features"),
        (lambda rows: np.zeros((len(rows), 2)), X, r"predict\(X\)\.shape=\(80, 2\)"),
        (lambda rows: Y[:3], X, r"predict\(X\)\.shape=\(3,\)"),
        (raising, X, "raises KeyError: 'no such row'"),
        (lambda rows: [None] * len(rows), X, "that have an order"),
    ],
    ids=["columns", "table", "few", "raises", "none"],
)
def test_reports_refuse_in_words(model, rows, said):
    with pytest.raises(InputError, match=said):
        RobustnessReport.measure(model, rows, Y, compare=False, points=4)


def test_weights_that_are_a_tensor():
    model = LogisticRegression().fit(X, Y)
    model.coef_ = torch.from_numpy(model.coef_)
    try:
        report = RobustnessReport.measure(model, X, Y, compare=False, points=4)
    except InputError as error:
        assert "TypeError" in str(error) and isinstance(error.__cause__, TypeError)
    else:
        assert report.clean > 0.9


def test_the_error_of_a_predict_function_is_kept():
    with pytest.raises(InputError) as caught:
        RobustnessReport.measure(raising, X, Y, compare=False)
    assert isinstance(caught.value.__cause__, KeyError)


# --- heads ----------------------------------------------------------------------------------------------------------


class Fixed(PolyReLUClassifier):
    """Never changes its mind."""

    def predict(self, Z):
        return np.full(len(Z), self.classes_[0])


def head(kind=PolyReLUClassifier):
    return kind(p=2, width=8, epochs=5, random_state=0).fit(X, Y)


@pytest.mark.slow
def test_the_attacked_share_is_that_of_predict():
    assert head().robust_score(X, Y, 100.0, attacked=True) == (0.0, 0.0)
    assert head(Fixed).robust_score(X, Y, 100.0, attacked=True) == (0.0, 0.5)  # half of the rows are of its class
    found = head(Fixed).certify(X, Y)
    assert (found.upper == torch.where(SIGNS > 0, 0.0, torch.inf)).all() and not found.perturbation.any()
    assert "is not one of the classes that are known" in found.why
    with pytest.raises(InputError, match="radius=-1"):
        head(Fixed).robust_score(X, Y, -1.0)


@pytest.mark.slow
def test_certify_and_robust_score_agree_about_hooks():
    model = head()
    assert model.certify(X[:3]).why == ""
    model.net_.register_forward_hook(lambda layer, given, out: out)
    found = model.certify(X, Y)
    assert found.why == "it has hooks" and (found.lower == 0).all() and BracketStatus.UNPROVEN in found.status
    radius = float(found.upper[found.upper.isfinite()].median())
    share = float((found.upper > radius).double().mean())
    assert model.robust_score(X, Y, radius, attacked=True) == (0.0, share) and 0 < share < 1
    assert bracket(model.net_, ROWS[:2], torch.ones(2)).why == "it has hooks"


@pytest.mark.parametrize(
    "other",
    [nn.Linear(4, 1), nn.ReLU(), PolyReLUNet(3, 8, 2.0), PolyReLUNet(4, 8, 2.0, 3)],
    ids=["linear", "relu", "columns", "classes"],
)
def test_a_net_that_does_not_fit_the_head(other):
    model = head()
    model.net_ = other
    for ask in (model.certify, model.attack, lambda rows: model.robust_score(rows, Y, 0.1, attacked=True)):
        with pytest.raises(InputError, match="net_="):
            ask(X)


@pytest.mark.slow
def test_copies_are_what_they_copy():
    model = head()
    again = copy.deepcopy(model)
    assert altered(again) == "" and torch.equal(again.certify(X[:3]).lower, model.certify(X[:3]).lower)


def test_a_class_that_says_it_equals_a_known_one():
    class Same(type):
        def __eq__(cls, other):
            return other in (nn.ReLU, nn.Linear) or other is cls

        def __hash__(cls):
            return hash(nn.ReLU)

    class Other(nn.ReLU, metaclass=Same):
        pass

    assert "which is not one of the classes that are known; a subclass" in altered(
        nn.Sequential(nn.Linear(2, 3), Other(), nn.Linear(3, 1))
    )
    assert not genuine.known(Other)


@pytest.mark.filterwarnings("ignore")
def test_quantised_weights_are_none():
    model = nn.Linear(3, 1)
    model.weight = nn.Parameter(torch.quantize_per_tensor(torch.ones(1, 3), 0.1, 0, torch.qint8), requires_grad=False)
    assert "weight of it is not a dense tensor of real numbers" in altered(model)


def test_a_module_that_takes_one_row_only_is_refused_in_words():
    model = nn.Sequential(nn.Flatten(0), nn.Linear(6, 1, dtype=torch.float64))
    rows, labels = torch.ones(3, 6, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    with pytest.raises(InputError, match="expected what the net takes"):
        bracket(model, rows, labels)
    assert certified(model, rows, labels, 2) is None


def test_a_method_of_a_class_of_the_same_name_in_another_file_is_none_of_its_own(monkeypatch):
    monkeypatch.setattr(nn.Linear, "forward", quantised.Linear.forward)
    assert "forward of the class torch.nn.modules.linear.Linear was replaced" in altered(nn.Linear(2, 2))
