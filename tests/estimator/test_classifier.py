"""PolyReLUClassifier as scikit-learn wants it: its own checks, its tools, labels and inputs of every kind."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyrelu import InputError, PolyReLUClassifier
from polyrelu.progress import Progress

FAST = {"width": 20, "epochs": 60, "rate": 0.02}


def rings(n=90, classes=2, dim=3, seed=0, dtype=np.float64):
    """Noisy classes, each of two opposite blobs: no linear rule tells them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    sign = np.where(np.arange(n) // classes % 2, 1.0, -1.0)
    X = 0.2 * rng.normal(size=(n, dim)) + 5
    X[np.arange(n), y % dim] += sign
    return X.astype(dtype), y


@pytest.mark.slow
@parametrize_with_checks([PolyReLUClassifier(**FAST)])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns_what_no_linear_rule_can(classes):
    X, y = rings(classes=classes)
    head = PolyReLUClassifier(**FAST, random_state=0).fit(X, y)
    assert head.score(*rings(classes=classes, seed=1)) > 0.95
    assert head.net_.outputs == (1 if classes == 2 else 3)
    scores, chances = head.decision_function(X), head.predict_proba(X)
    with torch.no_grad():
        f = head.net_(torch.from_numpy(X)).numpy()
    assert np.array_equal(scores, f)
    expected = np.stack([1 / (1 + np.exp(f)), 1 / (1 + np.exp(-f))], 1) if classes == 2 else np.exp(f)
    np.testing.assert_allclose(chances, expected / expected.sum(1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(np.exp(head.predict_log_proba(X)), chances)


@pytest.mark.parametrize(
    "names",
    [["no", "yes"], [7, -3], [0.5, 2.5], [False, True], np.array(["b", "a"], dtype=object), np.array([1, 9], np.uint8)],
    ids=["text", "int", "float", "bool", "object", "uint8"],
)
def test_labels_of_every_kind_come_back_and_are_kept_in_files(names, tmp_path):
    X, y = rings()
    labels = np.asarray(names)[y]
    if labels.dtype == float:
        labels = labels * 2  # whole numbers: scikit-learn takes others for a regression target
    head = PolyReLUClassifier(**FAST, random_state=0).fit(X, labels)
    assert head.score(X, labels) == 1 and head.predict(X).dtype == labels.dtype
    read = PolyReLUClassifier.load(head.save(tmp_path / "head.safetensors"))
    for method in ("predict", "decision_function", "predict_proba"):
        mine, theirs = getattr(head, method)(X), getattr(read, method)(X)
        assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype
    assert read.get_params() == head.get_params() and read.n_iter_ == head.n_iter_


def test_pipelines_searches_clones_and_pickles(tmp_path):
    X, y = rings()
    pipe = make_pipeline(StandardScaler(), PolyReLUClassifier(**FAST, random_state=0))
    search = GridSearchCV(pipe, {"polyreluclassifier__p": [1, 3]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    head = clone(PolyReLUClassifier(2.5, **FAST, random_state=3)).fit(X, y)
    robust = cross_val_score(head, X, y, scoring=lambda head, X, y: head.robust_score(X, y, 0.2), cv=3)
    assert (robust > 0.5).all()
    joblib.dump(head, tmp_path / "head.joblib")
    for copied in (pickle.loads(pickle.dumps(head)), joblib.load(tmp_path / "head.joblib")):
        assert np.array_equal(copied.predict_proba(X), head.predict_proba(X)) and copied.p_ == 2.5
    pipe.fit(X, y, polyreluclassifier__fine_labels=[f"{c}{s}" for c, s in zip(y, X[:, 0] > 5, strict=True)])
    assert len(pipe[-1].fine_classes_) == 4


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_data_frames_and_their_column_names(frames, tmp_path):
    library = pytest.importorskip(frames)
    X, y = rings()
    table = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    head = PolyReLUClassifier(**FAST, random_state=0).fit(table, library.Series(y))
    assert head.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(head.predict(table), PolyReLUClassifier(**FAST, random_state=0).fit(X, y).predict(X))
    read = PolyReLUClassifier.load(head.save(tmp_path / "head.safetensors"))
    assert read.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        read.predict(table.rename(columns={"a": "z"}) if frames == "pandas" else table.rename({"a": "z"}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_go_in_and_arrays_come_out(dtype):
    X, y = rings()
    tensor = torch.from_numpy(X).to(dtype)
    head = PolyReLUClassifier(**FAST, random_state=0).fit(tensor, torch.from_numpy(y))
    same = PolyReLUClassifier(**FAST, random_state=0).fit(tensor.numpy(), y)
    assert head.net_.dtype == dtype and isinstance(head.predict(tensor), np.ndarray)
    assert np.array_equal(head.decision_function(tensor), same.decision_function(tensor.numpy()))
    assert head.score(tensor, torch.from_numpy(y)) == 1
    with pytest.raises(ValueError, match="X has 2 features, but PolyReLUClassifier is expecting 3"):
        head.predict(tensor[:, :2])
    with pytest.raises(InputError, match=r"X\[4, 1\]=nan"):
        head.predict(torch.where(torch.arange(15).view(5, 3) == 13, torch.nan, tensor[:5]))


def test_runs_repeat_with_a_seed_and_differ_without():
    X, y = rings()
    first, second, other = (PolyReLUClassifier(**FAST, random_state=s).fit(X, y) for s in (5, 5, 6))
    assert np.array_equal(first.decision_function(X), second.decision_function(X))
    assert not np.array_equal(first.decision_function(X), other.decision_function(X))
    rng = np.random.RandomState(5)
    drawn = [PolyReLUClassifier(**FAST, random_state=rng).fit(X, y).decision_function(X) for _ in range(2)]
    assert np.array_equal(drawn[0], first.decision_function(X)) and not np.array_equal(*drawn)
    np.random.seed(0)
    drawn = [PolyReLUClassifier(**FAST).fit(X, y).decision_function(X) for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_the_unit_of_length_changes_nothing_but_the_unit_of_the_radii():
    X, y = rings()
    small, large = (PolyReLUClassifier(**FAST, random_state=0).fit(X * s, y) for s in (1, 1024))
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(1024 * X), rtol=1e-9)
    radii = [head.certify(s * X[:5], tol=0.1).lower.numpy() for head, s in ((small, 1), (large, 1024))]
    np.testing.assert_allclose(1024 * radii[0], radii[1], rtol=1e-3)


def test_bad_input_is_named():
    X, y = rings()
    head = PolyReLUClassifier(**FAST, random_state=0).fit(X, y)
    for params, message in [
        ({"p": 0.5}, "p=0.5: expected a number >= 1 or 'auto'"),
        ({"width": 0}, "width=0: expected a whole number >= 1 or 'auto'"),
        ({"epochs": "many"}, "epochs='many': expected a whole number >= 1 or 'auto'"),
        ({"batch": "auto"}, "batch='auto': expected a whole number >= 1"),
        ({"rate": -1.0}, "rate=-1.0: expected a number > 0"),
        ({"solver": "sgd"}, "solver='sgd': expected 'adam' or 'flow'"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0: expected a number between 0 and 1"),
        ({"solver": "flow", "early_stopping": True}, "early_stopping=True: expected False with solver='flow'"),
    ]:
        with pytest.raises(InputError, match=message):
            PolyReLUClassifier(**FAST).set_params(**params).fit(X, y)
    for call, kind, message in [
        (lambda: PolyReLUClassifier().predict(X), NotFittedError, "not fitted"),
        (lambda: PolyReLUClassifier().save("head.safetensors"), NotFittedError, "not fitted"),
        (lambda: head.fit(csr_array(X), y), TypeError, "Sparse data was passed"),
        (lambda: head.fit(X, np.zeros(len(X))), ValueError, "y=one class only, 0.0"),
        (lambda: head.fit(X, y[:-1]), ValueError, "y=89 labels: expected 90"),
        (lambda: head.fit(X, y, sample_weight=-np.ones(90)), ValueError, "sample_weight=-1.0: expected weights >= 0"),
        (lambda: head.set_params(solver="flow").fit(X, y, np.ones(90)), InputError, "sample_weight=given"),
        (lambda: head.certify(X, y + 5), InputError, "y=5: expected one of the classes 0, 1"),
        (lambda: head.certify(X, np.full(90, "a")), InputError, "y='a': expected one of the classes 0, 1"),
        (lambda: head.robust_score(X, y, -1), InputError, "radius=-1.0: expected a number >= 0"),
    ]:
        with pytest.raises(kind, match=message.replace("(", r"\(")):
            call()


def test_a_run_that_diverges_or_is_interrupted_says_so():
    X, y = rings()
    with pytest.warns(ConvergenceWarning, match="no longer finite"):
        PolyReLUClassifier(4, width=5, epochs=300, rate=1e35, normalise_input=False, random_state=0).fit(
            X.astype(np.float32), y
        )

    class Impatient(Progress):
        def update(self, **told):
            raise KeyboardInterrupt

    head = PolyReLUClassifier(**FAST)
    with pytest.raises(KeyboardInterrupt):
        head.fit(X, y, progress=Impatient())
    assert not hasattr(head, "net_")


@pytest.mark.slow
def test_importing_the_package_stays_light_and_the_estimator_needs_no_extras():
    code = (
        "import sys, polyrelu; assert not {'torch', 'sklearn', 'numpy'} & set(sys.modules)\n"
        "sys.modules |= dict.fromkeys(['ray', 'foolbox', 'pyautoattack', 'efficientnet_lite_pytorch', 'pyarrow'])\n"
        "polyrelu.PolyReLUClassifier"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
