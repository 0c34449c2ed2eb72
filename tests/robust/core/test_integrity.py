"""A proof is given only for classes that are what they are called; every trick here gets an attack and no proof."""

from __future__ import annotations

import copy
import functools
import importlib
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch
from sklearn import linear_model
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.nn.utils import weight_norm as old_weight_norm

from polyrelu.errors import InputError
from polyrelu.estimator import PolyReLUClassifier, RobustnessReport
from polyrelu.estimator.robustness_report import as_target, measure_radii
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, ReadOut
from polyrelu.robust import altered
from polyrelu.robust.core import integrity as genuine
from polyrelu.robust.external import as_module, certified, label_codes, provable

RANDOM = np.random.default_rng(3)
X = np.concatenate([RANDOM.standard_normal((40, 3)) + 2, RANDOM.standard_normal((40, 3)) - 2])
Y = np.repeat(["ash", "birch"], 40)
ROWS, SIGNS = torch.from_numpy(X), torch.from_numpy(np.where(Y == "birch", 1.0, -1.0))


def module(*, classes=1):
    """A linear module that is right about nearly all rows."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, classes))
    with torch.no_grad():
        net[0].weight.copy_(-torch.ones(1, 3) if classes == 1 else torch.eye(classes, 3))
    return net


def shallow():
    return PolyReLUNet(3, 8, 2.0, seed=1, dtype=torch.float64)


def logistic(**settings):
    return LogisticRegression(**settings).fit(X, Y)


def piped():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def proven(model):
    """The radii, of the labels that the plain models were fitted to."""
    return certified(model, ROWS, SIGNS)


def measured(model, y=Y):
    target = as_target(model, ROWS, y)
    return target, measure_radii(target, ROWS, y, np.arange(0, 80, 8), (ROWS, y), radii=np.array([0.1]), seed=0)


def refused(model, words, y=Y):
    """Nothing proven, in words; an attack all the same, and what it found is decided otherwise."""
    assert words in altered(model), altered(model)
    assert certified(model, ROWS, SIGNS) is None
    target, found = measured(model, y)
    assert words in target.altered and found.proof == "nothing is proven"
    assert (found.bracket.lower == 0).all() and found.bracket.upper.isfinite().any()


class Linear(nn.Linear):
    """Called like the known one; another function where no row is."""

    def forward(self, Z):
        return super().forward(Z) * torch.where(Z.norm(dim=1, keepdim=True) > 30, -1, 1)


class Quiet(nn.Linear):
    pass


Linear.__module__, Linear.__qualname__ = nn.Linear.__module__, "Linear"


def far(out, given):
    """Logits that change their sign far from all rows."""
    return torch.where(given.norm(dim=1, keepdim=True) > 30, -out, out)


def with_forward(net):
    plain = net[0].forward
    net[0].forward = lambda Z: far(plain(Z), Z)
    return net


def with_child(child):
    net = module()
    child.load_state_dict(net[0].state_dict())
    return nn.Sequential(nn.Sequential(child), nn.Identity())


def hooked(way):
    net = module()
    if way == "forward":
        net[0].register_forward_hook(lambda layer, given, out: far(out, given[0]))
    elif way == "with keywords":
        net.register_forward_hook(lambda layer, given, words, out: far(out, given[0]), with_kwargs=True)
    elif way == "before":
        net[0].register_forward_pre_hook(lambda layer, given: (given[0].clamp(-9, 9),))
    elif way == "backward":
        net[0].register_full_backward_hook(lambda layer, before, after: None)
    else:
        net.register_full_backward_pre_hook(lambda layer, after: None)
    return net


def test_plain_ones_are_proven():
    for model in (module(), logistic(), piped(), SVC(kernel="linear").fit(X, Y), GridSearchCV(
            piped(), {"logisticregression__C": [1.0]}, cv=2).fit(X, Y)):  # fmt: skip
        assert altered(model) == "" and (proven(model) > 0).sum() > 70
    assert measured(piped())[1].proof == "exact"


@pytest.mark.parametrize("kind", [Linear, Quiet])
def test_a_class_of_that_name_or_a_subclass_is_another_class(kind):
    refused(with_child(kind(3, 1)), "which is not one of the classes that are known")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["forward", "with keywords", "before", "backward", "before backward"])
def test_hooks(way):
    refused(hooked(way), "has hooks")
    refused(nn.Sequential(hooked(way)), "has hooks")


def test_hooks_of_files_do_not_compute():
    net = module()
    net.register_state_dict_post_hook(lambda *given: None)
    assert altered(net) == "" and proven(net) is not None


@pytest.mark.parametrize(
    "register",
    [
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
        nn.modules.module.register_module_full_backward_hook,
    ],
)
def test_hooks_for_all_modules(register):
    handle = register(lambda *given: None)
    try:
        assert "for all modules" in altered(module()) and proven(module()) is None
    finally:
        handle.remove()
    assert proven(module()) is not None


def test_a_forward_of_the_instance():
    refused(with_forward(module()), "has an attribute forward of its own")


@pytest.mark.parametrize("name", ["_call_impl", "eval", "double", "_apply"])
def test_other_methods_of_the_instance(name):
    net = module()
    setattr(net[0], name, getattr(net[0], name))
    assert f"attribute {name} of its own" in altered(net)


def test_an_attribute_in_place_of_a_parameter():
    net = module()
    net[0].__dict__["weight"] = -net[0].weight.detach()
    assert "attribute weight of its own" in altered(net) and proven(net) is None


def test_a_compiled_call():
    net = module()
    net[0].__dict__["_compiled_call_impl"] = net[0].forward  # what nn.Module.compile leaves behind
    assert "_compiled_call_impl of its own" in altered(net)


@pytest.mark.parametrize("name", ["forward", "__call__", "_call_impl", "__getattr__"])
@pytest.mark.parametrize("kind", [nn.Linear, nn.Module])
def test_a_method_replaced_in_the_class(monkeypatch, kind, name):
    plain = getattr(kind, name)

    def mine(self, *given):
        return plain(self, *given)

    monkeypatch.setattr(kind, name, mine)
    assert f"{name} of the class {kind.__module__}" in altered(module()) and proven(module()) is None


@pytest.mark.parametrize("way", ["partial", "decorated", "code"])
def test_other_ways_to_replace_a_method(monkeypatch, way):
    model, plain = logistic(), LogisticRegression.decision_function

    def mine(self, Z):
        return -Z[:, 0]

    if way == "code":
        monkeypatch.setattr(plain, "__code__", mine.__code__)
    else:
        monkeypatch.setattr(
            LogisticRegression,
            "decision_function",
            functools.partialmethod(mine) if way == "partial" else functools.wraps(plain)(mine),
        )
    assert (model.decision_function(X) == -X[:, 0]).all()
    assert "decision_function of the class" in altered(model) and "was replaced" in altered(model)


@pytest.mark.parametrize(
    "change",
    [parametrizations.weight_norm, parametrizations.spectral_norm, parametrizations.orthogonal],
    ids=lambda change: change.__name__,
)
def test_parametrisations(change):
    net = module()
    change(net[0])
    assert "Parametrized" in altered(net) and proven(net) is None
    nn.utils.parametrize.remove_parametrizations(net[0], "weight")
    assert altered(net) == "" and proven(net) is not None


def test_older_parametrisations_and_pruning_are_hooks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for change in (
            old_weight_norm,
            nn.utils.spectral_norm,
            lambda layer: prune.l1_unstructured(layer, "weight", 1),
        ):
            net = module()
            net(ROWS.float())
            change(net[0])
            net.train()(ROWS.float())
            assert proven(net) is None
            refused(net, "has hooks")


class Strange(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (nn.Parameter(torch.ones(1, 3).as_subclass(Strange)), "Strange, which may compute anything"),
        (nn.Parameter(torch.full((1, 3), torch.nan)), "holds NaN or infinity"),
        (nn.Parameter(torch.tensor([[1.0, torch.inf, 0]])), "holds NaN or infinity"),
        (nn.Parameter(torch.ones(1, 3, dtype=torch.complex64)), "not a dense tensor of real numbers"),
        (nn.Parameter(torch.ones(3)), "is not a matrix"),
    ],
    ids=["subclass", "nan", "inf", "complex", "vector"],
)
def test_odd_weights(weight, words):
    net = module()
    net[0].weight = weight
    assert words in altered(net)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_every_precision_are_what_is_stored(dtype):
    net = module().to(dtype)
    torch.testing.assert_close(proven(net), proven(module()), rtol=1e-2, atol=0)
    exact = (net[0].weight.double() @ ROWS.T)[0] + net[0].bias.double()
    exact = (exact * SIGNS / net[0].weight.double().norm()).clamp(min=0)
    torch.testing.assert_close(proven(net), exact.detach(), rtol=1e-12, atol=0)


def test_shared_layers_count_twice():
    layer = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.diag(torch.tensor([2.0, 1.0, 1.0])))
    Z = torch.tensor([[1.0, 0.0, 0.0]]).double()
    both = nn.Sequential(layer, layer)
    alone = 4 / (16 + 1) ** 0.5  # f_0 - f_1 = 4 x_0 - x_1
    assert certified(both, Z, torch.tensor([0])).item() == pytest.approx(alone, rel=1e-12)


def test_flattening_rows_does_nothing_and_flattening_the_batch_does():
    net = module()
    torch.testing.assert_close(proven(nn.Sequential(nn.Flatten(), net)), proven(net))
    assert certified(nn.Sequential(nn.Flatten(0), nn.Linear(3, 1)), ROWS[:1], SIGNS[:1]) is None


def test_traced_modules_are_attacked():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        refused(torch.jit.trace(module(), ROWS.float()), "known")


def test_lazy_modules_have_no_weights_yet():
    net = nn.Sequential(nn.LazyLinear(1))
    with pytest.raises(InputError, match=r"no numbers in '0\.weight' yet"):
        as_module(net)
    with pytest.raises(InputError, match="lazy parameter"):
        as_target(net, ROWS, Y)
    net(ROWS.float())
    assert type(net[0]) is nn.Linear and proven(net) is not None


def test_what_cannot_be_copied_is_asked():
    net = nn.Sequential(module(), nn.Dropout(0.9))
    net.lock = threading.Lock()
    net.train()
    target, found = measured(net)
    assert target.module is None and "cannot be copied" in target.why and net.training and net[1].training
    plain = measured(module())[1].bracket
    assert (found.bracket.lower == 0).all()
    ratio = (found.bracket.upper / plain.upper)[plain.upper > 0]
    assert ((ratio > 1 - 1e-6) & (ratio < 1.05)).all()


class Bent(PolyReLUNet):
    def forward(self, Z):
        return far(super().forward(Z)[:, None], Z)[:, 0]


@pytest.mark.parametrize("way", ["subclass", "hook", "instance", "inside"])
def test_heads_of_ours_must_be_themselves(way):
    net = shallow() if way != "subclass" else Bent(3, 8, 2.0, seed=1, dtype=torch.float64)
    y = np.where((net(ROWS) > 0).numpy(), "birch", "ash")
    if way == "hook":
        net.register_forward_hook(lambda layer, given, out: far(out[:, None], given[0])[:, 0])
    elif way == "instance":
        plain = net.forward
        net.forward = lambda Z: far(plain(Z)[:, None], Z)[:, 0]
    elif way == "inside":
        net = nn.Sequential(nn.Identity(), Bent(3, 8, 2.0, seed=1, dtype=torch.float64))
    assert not provable(net) and certified(net, ROWS, SIGNS) is None
    found = measured(net, y)[1]
    assert found.proof == "nothing is proven" and (found.bracket.lower == 0).all()


def test_heads_of_ours_are_proven():
    net = PolyReLUNet(3, 8, 2.0, 4, seed=1)
    hooked = ReadOut(PolyReLUNet(3, 8, 2.0, 4, seed=1), [0, 0, 1, 1])
    hooked.net.register_forward_pre_hook(lambda layer, given: None)
    centres, labels = torch.eye(3), torch.tensor([1.0, -1.0, 1.0])
    for known in (
        net,
        ReadOut(net, [0, 0, 1, 1]),
        AverageClassifier(centres, labels),
        CentreClassifier(centres, labels),
    ):
        assert provable(known)
    assert not provable(hooked) and not provable(nn.Linear(3, 1))


def test_the_estimator_of_ours():
    head = PolyReLUClassifier(p=2, width=8, epochs=5, random_state=0).fit(X, Y)
    assert altered(head) == "" and measured(head)[1].proof == "proven"
    mine = type("PolyReLUClassifier", (PolyReLUClassifier,), {})
    refused(mine(p=2, width=8, epochs=5, random_state=0).fit(X, Y), "is not one of the classes that are known")
    head.net_.register_forward_hook(lambda layer, given, out: None)
    refused(head, "has hooks")


# --- scikit-learn ---------------------------------------------------------------------------------------------------


class Contrary(LogisticRegression):
    """Decides like its parent on all rows that are looked at, and the other way round beyond."""

    def predict(self, Z):
        said = super().predict(Z)
        return np.where(np.linalg.norm(Z, axis=1) > 30, self.classes_[0], said)


class Twin(ClassifierMixin, BaseEstimator):
    """Another class with the same attributes."""

    def fit(self, Z, y):
        inner = LogisticRegression().fit(Z, y)
        self.coef_, self.intercept_, self.classes_ = inner.coef_, inner.intercept_, inner.classes_
        return self

    def predict(self, Z):
        side = (np.asarray(Z) @ self.coef_[0] + self.intercept_ > 0) & (np.linalg.norm(Z, axis=1) < 30)
        return self.classes_[side.astype(int)]


Twin.__name__ = Twin.__qualname__ = "LogisticRegression"
Twin.__module__ = LogisticRegression.__module__


@pytest.mark.parametrize("kind", [Contrary, Twin])
def test_estimators_of_that_name_and_subclasses(kind):
    refused(kind().fit(X, Y), "is not one of the classes that are known")
    refused(make_pipeline(StandardScaler(), kind()).fit(X, Y), "is not one of the classes that are known")
    refused(GridSearchCV(kind(), {}, cv=2).fit(X, Y), "is not one of the classes that are known")


def test_a_class_put_in_the_place_of_the_known_one(monkeypatch):
    plain = logistic()
    monkeypatch.setattr(linear_model, "LogisticRegression", Contrary)
    model = Contrary().fit(X, Y)
    assert "predict of the class" in altered(model) and proven(model) is None
    assert "not one of the classes" in altered(plain)  # the true one is not where it was


@pytest.mark.parametrize("name", ["predict", "decision_function", "get_params"])
def test_methods_of_the_instance(name):
    model = logistic()
    plain = getattr(model, name)
    setattr(model, name, lambda *given: plain(*given))
    refused(model, f"an attribute {name} of its own")


def test_a_scaler_with_a_method_of_its_own_within_a_pipeline():
    model = piped()
    plain = model[0].transform
    model[0].transform = lambda Z: np.where(abs(Z) > 30, -1, 1) * plain(Z)
    refused(model, "an attribute transform of its own")
    search = GridSearchCV(piped(), {}, cv=2).fit(X, Y)
    search.best_estimator_[1].decision_function = lambda Z: -Z[:, 0]
    assert "decision_function of its own" in altered(search) and proven(search) is None
    nested = Pipeline([("outer", StandardScaler()), ("inner", model)])
    assert "an attribute transform of its own" in altered(nested)


def test_methods_replaced_in_a_parent_class(monkeypatch):
    model, mixin = piped(), linear_model._base.LinearClassifierMixin
    plain = mixin.predict
    monkeypatch.setattr(mixin, "predict", lambda self, Z: plain(self, Z))
    refused(model, "predict of the class sklearn.linear_model")
    monkeypatch.undo()
    assert altered(model) == ""
    monkeypatch.setattr(StandardScaler, "transform", lambda self, Z: np.asarray(Z))
    assert "transform of the class sklearn.preprocessing" in altered(model)


def test_properties_and_static_methods_replaced_in_a_class(monkeypatch):
    model = piped()
    for value in (property(lambda self: ["birch", "ash"]), staticmethod(lambda: 0), classmethod(lambda cls: 0)):
        monkeypatch.setattr(Pipeline, "classes_", value)
        assert "classes_ of the class sklearn.pipeline.Pipeline was replaced" in altered(model)
    monkeypatch.undo()
    checked = available_if(lambda self: True)(lambda self, Z: Z[:, 0])
    monkeypatch.setattr(Pipeline, "predict", checked)  # a decorator of theirs around a function of mine
    assert "predict of the class sklearn.pipeline.Pipeline was replaced" in altered(model)


def test_pipelines_with_memory_are_plain_and_functions_are_not(tmp_path):
    model = Pipeline([("scale", StandardScaler()), ("last", LogisticRegression())], memory=str(tmp_path))
    torch.testing.assert_close(proven(model.fit(X, Y)), proven(piped()))
    bent = make_pipeline(FunctionTransformer(lambda Z: np.where(abs(Z) > 30, -Z, Z)), LogisticRegression()).fit(X, Y)
    target, found = measured(bent)
    assert "FunctionTransformer" in target.why and found.proof == "nothing is proven"
    assert found.bracket.upper.isfinite().all()


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("with_std", [False, True])
def test_switches_of_a_scaler_count_when_it_predicts(with_mean, with_std):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(5 + 3 * X, Y)
    model[0].set_params(with_mean=with_mean, with_std=with_std)
    w, m, s = model[1].coef_[0], model[0].mean_ * with_mean, model[0].scale_ if with_std else np.ones(3)
    Z = 5 + 3 * X
    margin = ((Z - m) / s @ w + model[1].intercept_) * SIGNS.numpy()
    exact = np.maximum(margin, 0) / np.linalg.norm(w / s)
    np.testing.assert_allclose(certified(model, torch.from_numpy(Z), SIGNS).numpy(), exact, rtol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1e-300, np.nan, np.inf])
def test_a_scale_without_an_inverse_is_only_asked(scale):
    model = piped()
    model[0].scale_ = model[0].scale_.copy()
    model[0].scale_[1] = scale
    with pytest.raises(InputError, match="predict function"):
        as_module(model)


class Loud(np.ndarray):
    pass


@pytest.mark.parametrize(
    "change",
    [
        lambda coef: np.where([True, False, False], np.nan, coef),
        lambda coef: coef.astype(np.complex128),
        lambda coef: coef.astype(np.longdouble),
        lambda coef: coef.astype(object),
        lambda coef: coef.view(Loud),
        lambda coef: np.ma.masked_array(coef, mask=coef > 0),
        lambda coef: np.concatenate([coef, coef]),
        lambda coef: coef[0],
    ],
    ids=["nan", "complex", "long double", "objects", "subclass", "masked", "two rows", "one row flat"],
)
def test_weights_that_are_no_plain_numbers(change):
    model = logistic()
    model.coef_ = change(model.coef_)
    if model.coef_.ndim == 1:
        assert (proven(model) > 0).sum() > 70  # scikit-learn takes it as one row, too
        return
    with pytest.raises(InputError, match="predict function"):
        proven(model)


def test_sparse_weights_are_the_same_weights():
    torch.testing.assert_close(proven(logistic().sparsify()), proven(logistic()))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("classes", [2, 3])
def test_machines_that_were_changed_after_fitting(kernel, classes):
    # predict uses copies that fit made: what is set afterwards changes nothing in it.
    names = np.array(["a", "b", "c"])
    y = names[(np.arange(80) % 3)] if classes == 3 else Y
    for gamma in ("scale", "auto", 0.3):
        model = SVC(kernel=kernel, gamma=gamma, coef0=0.1).fit(X, y)
        logits = as_module(model)(ROWS)
        said = (logits > 0).long() if logits.ndim == 1 else logits.argmax(dim=1)
        assert (model.classes_[said.numpy()] == model.predict(X)).all()
        if kernel == "rbf" and classes == 2:
            np.testing.assert_allclose(logits.detach().numpy(), model.decision_function(X), rtol=1e-9, atol=1e-9)
    model.intercept_ = model.intercept_ + 1e-3
    with pytest.raises(InputError, match="that give its decision_function"):
        as_module(model)
    assert measured(model, y)[1].proof == "nothing is proven"
    model.intercept_ = model.intercept_ - 1e-3
    model.dual_coef_ = model.dual_coef_ * (1 + 1e-4)
    with pytest.raises(InputError, match="that give its decision_function"):
        as_module(model)


def test_gamma_set_after_fitting_is_not_what_predicts():
    model = SVC(gamma=0.2).fit(X, Y)
    before = as_module(model)(ROWS)
    model.set_params(gamma=5.0)
    torch.testing.assert_close(as_module(model)(ROWS), before)


@pytest.mark.slow
def test_perceptrons_that_say_other_names_than_their_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((4,), random_state=0, max_iter=20).fit(X, Y)
    assert proven(model) is not None
    other = copy.deepcopy(model)
    other.classes_ = model.classes_[::-1].copy()  # predict has names of its own
    assert certified(other, ROWS, label_codes(Y, other.classes_, 1)) is None
    other = copy.deepcopy(model)
    other.out_activation_ = "identity"  # a threshold of .5 on the logit
    with pytest.raises(InputError, match="one label a row"):
        as_module(other)


def test_several_labels_a_row_are_no_classes():
    labels = np.stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0], axis=1).astype(int)
    model = RidgeClassifier().fit(X, labels)
    assert certified(model, ROWS, torch.from_numpy(labels.argmax(axis=1))) is None


def test_classes_keep_their_order():
    y = np.where(Y == "ash", 7, -2)
    model = LogisticRegression().fit(X, y)
    radius = certified(model, ROWS, label_codes(y, model.classes_, 1))
    torch.testing.assert_close(radius, proven(logistic()), rtol=1e-6, atol=1e-9)
    model.classes_ = model.classes_[::-1].copy()  # predict goes by them: now it is wrong about nearly all
    assert (certified(model, ROWS, label_codes(y, model.classes_, 1)) == 0).sum() > 70


def test_rows_stay_what_they_are():
    rows, model = ROWS.clone(), make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(X.copy(), Y)
    certified(model, rows, SIGNS)
    report = RobustnessReport.measure(model, rows, Y, compare=False, points=3)
    assert torch.equal(rows, ROWS) and torch.equal(report.X, ROWS)


def test_a_report_says_why_nothing_is_proven():
    bent, said = with_forward(module()), "has an attribute forward of its own"
    report = RobustnessReport.measure(
        bent, X, Y, compare=False, points=6, beside={"other": Contrary().fit(X, Y)}, name="net"
    )
    assert any(note.startswith("Nothing is proven of the net: its layer 0 ") and said in note for note in report.notes)
    assert any(note.startswith("Nothing is proven of the other: ") for note in report.notes)
    assert said in report.summary() and report.proven_to == 0 < report.broken_at


@pytest.mark.slow
def test_nothing_is_imported_to_compare_with():
    code = (
        "import sys; from torch import nn; from polyrelu.robust.core.integrity import altered\n"
        "before = {name for name in sys.modules if name.startswith('sklearn')}\n"
        "assert altered(object()) and not altered(nn.Linear(2, 1))\n"
        "assert {name for name in sys.modules if name.startswith('sklearn')} == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_known_name_exists():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    for where, names in genuine.ESTIMATORS.items():
        for name in names:
            kind = getattr(importlib.import_module(where), name)
            assert genuine.known(kind) and genuine._altered_class(kind) == ""
    for kind in genuine.LAYERS:
        assert genuine._altered_class(kind) == ""
