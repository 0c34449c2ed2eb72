"""Proofs of PolyReLUClassifier: no perturbation within a certified radius changes a decision; files run no code."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from polyrelu import Budget, InputError, OrthonormalMixture, PolyReLUClassifier, PolyReLUNet, load, save
from polyrelu.nets import load_about

QUICK = Budget(nodes=2)
KINDS = ["two classes", "three classes", "sub-classes", "ReLU"]


@pytest.fixture(scope="module", params=KINDS)
def scene(request):
    """A head of some kind, points and their labels, and the shortest attack on each."""
    data = OrthonormalMixture(dim=6, positive=3, negative=3, alpha=0.3).sample(60, seed=1)
    X, fine = data.rows().double().numpy() * 7 + 1, data.cluster.numpy()
    y = fine % 3 if request.param == "three classes" else fine // 3
    head = PolyReLUClassifier(1 if request.param == "ReLU" else 3, width=12, epochs=100, rate=0.02, random_state=0)
    head.fit(X, y, fine_labels=fine if request.param == "sub-classes" else None)
    return head, X[:5], y[:5]


@pytest.mark.slow
def test_ten_thousand_perturbations_within_the_certified_radius_change_nothing(scene):
    head, X, y = scene
    bounds, told = head.certify(X, pool=(X, y), tol=0.05, budget=QUICK), head.predict(X)
    assert (bounds.lower > 0).all() and (bounds.lower <= bounds.upper).all()
    radius = bounds.lower.numpy()[:, None] * (1 - 1e-9)
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(2000, *X.shape))
    steps *= radius / np.linalg.norm(steps, axis=2, keepdims=True)
    assert (head.predict((X + steps).reshape(-1, 6)).reshape(2000, -1) == told).all()
    towards = bounds.perturbation.numpy().copy()  # where the attacks went, and no farther than is proven
    towards *= radius / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-300)
    for centre in (X + towards, *(X + towards + 0.01 * radius * rng.normal(size=X.shape) for _ in range(10))):
        step = centre - X
        step *= np.minimum(1, radius / np.linalg.norm(step, axis=1, keepdims=True))
        assert (head.predict(X + step) == told).all()
    for i in range(0, 5, 2):
        assert not head.attack(X[i : i + 1], radius=float(radius[i, 0])).success.any()
    found = head.predict(X + bounds.perturbation.numpy() * (1 + 1e-6))
    assert (found != told).mean() > 0.9  # and just beyond what was found they do


@pytest.mark.slow
def test_robust_scores_lie_where_the_bracket_says(scene):
    head, X, y = scene
    bounds = head.certify(X, y, tol=0.05, budget=QUICK)
    for radius in (0.0, 2.0):
        certified, attacked = head.robust_score(X, y, radius, attacked=True)
        assert certified == head.robust_score(X, y, radius) <= attacked
        assert (
            certified <= (bounds.upper > radius).double().mean() and attacked >= (bounds.lower > radius).double().mean()
        )
    assert head.robust_score(X, y, 0) == head.score(X, y)
    wrong = head.predict(X) != y
    assert (bounds.upper[torch.from_numpy(wrong)] == 0).all()


@pytest.mark.slow
def test_attacks_change_decisions_also_where_all_points_are_of_one_class(scene):
    head, X, _ = scene
    told = head.predict(X)
    one = X[told == told[0]]
    found = head.attack(one)
    assert found.success.all() and (head.predict(one + found.perturbation.numpy() * (1 + 1e-6)) != told[0]).mean() > 0.9
    radius = 1.01 * float(found.radius.max())
    assert head.attack(one, radius=radius).success.all()
    lower = head.certify(one, tol=0.05, budget=QUICK).lower
    assert (lower <= found.radius * (1 + 1e-9)).all()


@pytest.mark.slow
def test_attacks_are_checked_with_the_head_as_it_predicts():
    data = OrthonormalMixture(dim=20, positive=3, negative=3, alpha=0.3).sample(300, seed=0)
    X, y = data.rows().numpy(), data.cluster.numpy() // 3
    head = PolyReLUClassifier(3, width=20, batch=50, random_state=0).fit(X, y)
    assert head.net_.dtype == torch.float32
    found = head.attack(X[:40])
    assert found.success.all() and (head.predict(X[:40] + found.perturbation.numpy()) != head.predict(X[:40])).all()


@pytest.mark.slow
def test_rows_far_from_zero_are_proven_and_predicted_alike():
    data = OrthonormalMixture(dim=8, positive=2, negative=2, alpha=0.3, dtype=torch.float64).sample(300, seed=0)
    X, y = 2 * data.rows().numpy() + 1e8, data.cluster.numpy() // 2
    head = PolyReLUClassifier(3, width=30, batch=50, random_state=0).fit(X, y)
    near = PolyReLUClassifier(3, width=30, batch=50, random_state=0).fit(X - 1e8, y)
    assert head.net_.dtype == torch.float64 and near.net_.dtype == torch.float32
    assert head.score(X, y) >= near.score(X - 1e8, y) - 0.01
    points, told = X[:20], head.predict(X[:20])
    radius = head.certify(points, tol=0.05, budget=QUICK).lower.numpy()
    assert (radius > 0.1).mean() > 0.8
    steps = np.random.default_rng(0).normal(size=(500, *points.shape))
    steps *= 0.95 * radius[:, None] / np.linalg.norm(steps, axis=2, keepdims=True)
    assert (head.predict((points + steps).reshape(-1, 8)).reshape(500, -1) == told).all()


def test_a_head_is_a_net_with_something_about_it(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    head = PolyReLUClassifier(np.float64(3), width=8, epochs=50, rate=np.float32(0.02), random_state=0).fit(X, y)
    path = head.save(tmp_path / "head.safetensors")
    told = load_about(path)
    assert told["head"] == 1 and told["classes"] == ["left", "right"] and told["classes_kind"] == "str"
    assert told["features"] is None and told["params"]["width"] == 8 and told["params"]["random_state"] == 0
    net = load(path)
    assert isinstance(net, PolyReLUNet)
    with torch.no_grad():
        assert np.array_equal(net(torch.from_numpy(X)).numpy(), head.decision_function(X))
    bare = save(net, tmp_path / "net.safetensors")
    assert load_about(bare) == {}
    with pytest.raises(InputError, match=r"expected a head saved by PolyReLUClassifier\.save"):
        PolyReLUClassifier.load(bare)


def test_damaged_and_foreign_heads_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    path = PolyReLUClassifier(width=4, epochs=2).fit(X, X[:, 0] > 0).save(tmp_path / "head.safetensors")
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    for change, message in [
        ({"head": 2}, "a head of version 1, not 2; upgrade polyrelu"),
        ({"classes": [False]}, "2 classes, it names 1"),
        ({"classes": None}, "this file names no classes"),
        ({"classes_dtype": "|O"}, "the file says bool in |O"),
        ({"classes": [{}, []]}, "classes that are whole numbers"),
        ({"params": {"danger": 1}}, "danger"),
    ]:
        said = json.dumps(json.loads(metadata["about"]) | change)
        save_file(tensors, tmp_path / "bad.safetensors", metadata | {"about": said})
        with pytest.raises(InputError, match=message.replace("|", r"\|")):
            PolyReLUClassifier.load(tmp_path / "bad.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(path.read_bytes()[:200])
    (tmp_path / "pickle.safetensors").write_bytes(pickle.dumps(PolyReLUClassifier()))
    for name in ("cut", "pickle", "none"):
        with pytest.raises(InputError, match=name):
            PolyReLUClassifier.load(tmp_path / f"{name}.safetensors")
    labels = np.array([b"a", b"b"])[(X[:, 0] > 0).astype(int)]
    with pytest.raises((InputError, TypeError, ValueError)):
        PolyReLUClassifier(width=4, epochs=2).fit(X, labels).save(tmp_path / "bytes.safetensors")
