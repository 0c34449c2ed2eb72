"""What PolyReLUClassifier can learn from: sub-classes, a choice of p, the flow, held-out rows, portions, files."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from polyrelu import InputError, OrthonormalMixture, PolyReLUClassifier, PolyReLUNet
from polyrelu.data import Dataset
from polyrelu.data.rows import MappedRows
from polyrelu.estimator.head_training import head_data
from polyrelu.estimator.head_training import head_settings as settings
from polyrelu.estimator.head_training.adam import held_out_loss
from polyrelu.nets import ReadOut

FAST = {"width": 30, "epochs": 80, "rate": 0.01}
MIXTURE = OrthonormalMixture(dim=20, positive=4, negative=3, alpha=0.2)


def mixture(n=400, seed=0):
    """Rows, two classes and seven sub-classes, far apart."""
    data = MIXTURE.sample(n, seed=seed)
    return data.rows().numpy().astype(np.float64), np.where(data.y > 0, "plus", "minus"), data.cluster.numpy()


def test_given_sub_classes_each_get_a_logit_and_the_largest_decides(tmp_path):
    X, y, fine = mixture()
    names = np.array([f"group {k}" for k in fine])
    head = PolyReLUClassifier(**FAST, random_state=0).fit(X, y, fine_labels=names)
    assert isinstance(head.net_, ReadOut) and head.fine_classes_.tolist() == [f"group {k}" for k in range(7)]
    assert dict(zip(names, y, strict=True)) == dict(zip(head.fine_classes_, head.fine_of_, strict=True))
    test, truth, _ = mixture(seed=1)
    assert head.score(test, truth) == 1
    with torch.no_grad():
        f = head.net_.net(torch.from_numpy(test).to(head.net_.dtype)).double().numpy()
    best = {name: f[:, head.fine_of_ == name].max(1) for name in head.classes_}
    np.testing.assert_allclose(head.decision_function(test), best["plus"] - best["minus"], rtol=1e-5, atol=1e-6)
    both = np.exp(np.stack([best["minus"], best["plus"]], 1))
    np.testing.assert_allclose(head.predict_proba(test), both / both.sum(1, keepdims=True), rtol=1e-5)
    read = PolyReLUClassifier.load(head.save(tmp_path / "head.safetensors"))
    assert np.array_equal(read.predict_proba(test), head.predict_proba(test))
    assert read.fine_classes_.tolist() == head.fine_classes_.tolist()
    assert read.fine_of_.tolist() == head.fine_of_.tolist()
    with pytest.raises(InputError, match="partial_fit=a head with sub-classes"):
        head.partial_fit(X, y)
    assert not hasattr(head.fit(X, y), "fine_of_") and isinstance(head.net_, PolyReLUNet)


@pytest.mark.slow
def test_sub_classes_are_discovered():
    X, y, fine = mixture()
    head = PolyReLUClassifier(**FAST, random_state=0).fit(X, y, fine_labels="discover")
    assert sorted(head.fine_of_) == ["minus"] * 3 + ["plus"] * 4
    with torch.no_grad():
        found = head.net_.net(torch.from_numpy(X).to(head.net_.dtype)).argmax(1).numpy()
    assert len(set(zip(found, fine, strict=True))) == 7  # one to one


def test_sub_classes_that_cross_classes_are_refused_and_as_many_as_classes_are_the_classes():
    X, y, fine = mixture()
    with pytest.raises(InputError, match=r"fine_labels=\d: .* rows of 'minus', 'plus'.*'class/number'"):
        PolyReLUClassifier(**FAST).fit(X, y, fine_labels=fine % 4)
    with pytest.raises(InputError, match="fine_labels='find': expected one label for each row, or 'discover'"):
        PolyReLUClassifier(**FAST).fit(X, y, fine_labels="find")
    plain, same = (PolyReLUClassifier(**FAST, random_state=0).fit(X, y, fine_labels=f) for f in (None, y))
    assert np.array_equal(plain.decision_function(X), same.decision_function(X))


@pytest.mark.parametrize("name", ["only without weight", "of another class than all others of its name"])
def test_rows_without_weight_have_no_say_in_the_sub_classes(name):
    X, y, fine = mixture(60)
    names = np.array([f"group {k}" for k in fine])
    more = np.concatenate([X, X[:1]]), np.concatenate([y, y[y != y[0]][:1]])
    weights, labels = np.r_[np.ones(60), 0.0], [*names, name if name.startswith("only") else names[0]]
    head = PolyReLUClassifier(**FAST, random_state=0)
    head.fit(*more, sample_weight=weights, fine_labels=labels)
    assert head.fine_classes_.tolist() == sorted(set(names)) and head.net_.net.outputs == len(set(names))
    assert dict(zip(names, y, strict=True)) == dict(zip(head.fine_classes_, head.fine_of_, strict=True))


@pytest.mark.slow
def test_p_is_chosen_by_what_is_proven():
    # Averages hold to 1/sqrt(7) = .38, single centres to .7 (Min & Vidal 2024): at .5 of the length p = 1 is broken.
    X, y, _ = mixture(150)
    head = PolyReLUClassifier("auto", width=30, epochs=40, rate=0.01, radius=0.5, random_state=0).fit(X, y)
    found = head.cv_results_
    assert head.p_ > 1 and head.net_.p == head.p_ and found["param_p"].tolist() == [1, 2, 3, 4]
    assert found["mean_test_certified"][int(head.p_) - 1] == found["mean_test_certified"].max() > 0.9
    assert found["mean_test_certified"][0] < 0.5 and (found["mean_test_accuracy"] > 0.95).all()
    assert found["rank_test_certified"][int(head.p_) - 1] == 1
    assert head.radius_ == pytest.approx(0.5 * np.median(np.linalg.norm(X - X.mean(0), axis=1)), rel=1e-3)
    certified = np.mean([found[f"split{k}_test_certified"] for k in range(3)], axis=0)
    np.testing.assert_allclose(certified, found["mean_test_certified"])


@pytest.mark.slow
def test_rows_without_weight_have_no_say_in_the_choice_of_p_and_too_few_rows_are_refused():
    X, y, _ = mixture(60)
    how = {"width": 10, "epochs": 5, "random_state": 0}
    more = np.concatenate([X, 100 + X[:20]]), np.concatenate([y, y[:20]])
    weights = np.r_[np.ones(60), np.zeros(20)]
    ones, zeros = PolyReLUClassifier("auto", **how).fit(X, y), PolyReLUClassifier("auto", **how).fit(*more, weights)
    assert zeros.radius_ == ones.radius_
    with pytest.raises(InputError, match="p='auto': expected a number, or 3 rows at least in some class"):
        PolyReLUClassifier("auto", **how).fit(X[:4], ["a", "a", "b", "b"])


@pytest.mark.slow
def test_the_flow_reaches_its_loss_and_learns_centres():
    X, y, fine = mixture(200)
    head = PolyReLUClassifier(3, width=40, solver="flow", until=0.05, random_state=0).fit(X, y)
    f = head.decision_function(X) * np.where(y == "plus", 1, -1)
    assert np.log1p(np.exp(-f)).mean() <= 0.0501 and head.n_iter_ >= 1
    centres = MIXTURE.sample(10, seed=0).centres.double() - torch.from_numpy(X.mean(0))
    cosines = (head.net_.directions().double() @ torch.nn.functional.normalize(centres, dim=1).T).amax(1)
    carriers = head.net_.contributions() > 0.1 * head.net_.contributions().max()
    assert cosines[carriers].median() > 0.95
    several = PolyReLUClassifier(3, width=40, solver="flow", until=0.05, random_state=0).fit(X, fine % 3)
    assert several.net_.outputs == 3 and several.score(X, fine % 3) == 1
    with pytest.warns(ConvergenceWarning, match="budget spent"):
        PolyReLUClassifier(3, width=40, solver="flow", epochs=1, random_state=0).fit(X, y)


@pytest.mark.slow
def test_early_stopping_keeps_the_weights_that_did_best_on_rows_set_aside():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 10)), rng.integers(0, 2, 120)  # nothing to learn: it can only get worse
    long = PolyReLUClassifier(1, width=30, epochs=400, rate=0.01, random_state=0)
    head = PolyReLUClassifier(1, width=30, epochs=400, rate=0.01, early_stopping=True, patience=3, random_state=0)
    assert head.fit(X, y).n_iter_ < 100 and long.fit(X, y).n_iter_ == 400
    test, truth = rng.normal(size=(500, 10)), rng.integers(0, 2, 500)
    losses = [-clf.predict_log_proba(test)[np.arange(500), truth].mean() for clf in (head, long)]
    assert losses[0] < 0.8 < losses[1]
    again = PolyReLUClassifier(1, width=30, epochs=400, rate=0.01, early_stopping=True, patience=3, random_state=0)
    assert np.array_equal(again.fit(X, y).predict_proba(test), head.predict_proba(test))


def test_rows_set_aside_count_by_their_weights():
    X, y, _ = mixture(40)
    rows, weights = Dataset(torch.from_numpy(X), torch.from_numpy(np.where(y == "plus", 1.0, -1.0))), torch.ones(40)
    net = PolyReLUNet(X.shape[1], 5, 2, dtype=torch.float64, seed=0)
    twice = rows.subset(torch.cat([torch.arange(40), torch.arange(10)]))
    weights[:10] = 2
    assert held_out_loss(net, rows, weights) == pytest.approx(held_out_loss(net, twice, torch.ones(50)), rel=1e-12)
    with pytest.raises(InputError, match="early_stopping=True: expected two rows at least in two classes"):
        PolyReLUClassifier(3, early_stopping=True).fit(X[:11], ["a"] * 10 + ["b"])


@pytest.mark.slow
def test_rows_set_aside_keep_their_weights(monkeypatch):
    X, y, _ = mixture(60)
    given, weights = {}, np.random.default_rng(0).uniform(1, 9, 60)
    plain = settings.adam_epochs

    def seen(net, data, **options):
        given.update(options)
        return plain(net, data, **options)

    monkeypatch.setattr(settings, "adam_epochs", seen)
    more = {"epochs": 300, "early_stopping": True, "random_state": 0}
    PolyReLUClassifier(**{**FAST, **more}).fit(X, y, sample_weight=weights)
    assert given["each_epoch"].every == 3 and given["each_epoch"].patience == 20  # a hundred looks
    rows = given["each_epoch"].data.rows().double().numpy()
    aside = [int(np.abs(X - row).sum(1).argmin()) for row in rows]
    assert 2 <= len(set(aside)) == len(aside) < 60
    ratio = given["each_epoch"].weights.double().numpy() / weights[aside]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    used = given["weights"].double().numpy()
    others = np.setdiff1d(np.arange(60), aside)
    assert (used[aside] == 0).all()
    np.testing.assert_allclose(used[others] / weights[others], ratio[0], rtol=1e-5)


def test_portions_are_one_run_of_adam():
    X, y, _ = mixture(300)
    whole = PolyReLUClassifier(**FAST, batch=1000, random_state=0)
    for _ in range(40):
        whole.partial_fit(X, y, classes=["minus", "plus"])
    assert whole.n_iter_ == 40 and whole.score(X, y) > 0.95
    # the same updates by PyTorch's own Adam: full batches, float32, moments kept from call to call
    start = PolyReLUClassifier(**{**FAST, "rate": 1e-30}, batch=1000, random_state=0).partial_fit(
        X, y, ["minus", "plus"]
    )
    W, v = (t.detach().clone().requires_grad_() for t in (start.net_.weight, start.net_.output))
    rows = torch.from_numpy(X).float() - start.net_.centre
    unit = float(np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean()))
    adam = torch.optim.Adam([{"params": [W]}, {"params": [v], "lr": 0.01 / unit, "eps": 1e-8 * unit}], lr=0.01)
    sign = torch.from_numpy(np.where(y == "plus", 1.0, -1.0)).float()
    for _ in range(3):
        hidden = (rows @ W.T).relu() ** 3 / (W.norm(dim=1) * rows.norm(dim=1, keepdim=True)) ** 2
        loss = torch.nn.functional.softplus(-sign * (hidden @ v[0])).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    portions = PolyReLUClassifier(**FAST, batch=1000, random_state=0)
    for _ in range(3):
        portions.partial_fit(X, y, classes=["minus", "plus"])
    torch.testing.assert_close(portions.net_.weight, W, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(portions.net_.output, v, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_portions_need_not_hold_every_class_and_go_on_after_fit_and_load(tmp_path):
    X, y, fine = mixture(300)
    head = PolyReLUClassifier(**FAST, random_state=0)
    for _ in range(60):
        for label in ("plus", "minus"):
            head.partial_fit(X[y == label], y[y == label], classes=["minus", "plus"])
    assert head.score(X, y) > 0.9
    centre = head.net_.centre.clone()
    torch.testing.assert_close(centre, torch.from_numpy(X[y == "plus"].mean(0)).float())
    for fitted in (
        PolyReLUClassifier(**FAST).fit(X, fine),
        PolyReLUClassifier.load(head.save(tmp_path / "h.safetensors")),
    ):
        before = fitted.decision_function(X)
        fitted.partial_fit(X, fine if len(fitted.classes_) > 2 else y, sample_weight=np.ones(300))
        assert 0 < np.abs(fitted.decision_function(X) - before).max() < np.abs(before).max()
    for call, message in [
        (lambda: PolyReLUClassifier().partial_fit(X, y), "classes=None: expected all classes, in the first call"),
        (lambda: PolyReLUClassifier("auto").partial_fit(X, y, ["minus", "plus"]), "p='auto': expected a number"),
        (lambda: head.partial_fit(X, y, classes=["a", "b"]), "expected those of the first call"),
        (lambda: head.partial_fit(X, np.full(300, "other")), "y='other': expected one of the classes"),
    ]:
        with pytest.raises(InputError, match=message):
            call()


def test_the_centre_of_portions_is_that_of_the_rows_with_weight():
    X, y, _ = mixture(60)
    X[0] = 1e4
    weights = np.r_[0.0, np.ones(39), np.full(20, 2.0)]
    head = PolyReLUClassifier(**FAST, random_state=0).partial_fit(X, y, ["minus", "plus"], sample_weight=weights)
    twice = np.concatenate([X[1:], X[40:]])
    np.testing.assert_allclose(head.net_.centre, twice.mean(0), rtol=1e-5, atol=1e-6)
    unit = np.sqrt(((twice - twice.mean(0)) ** 2).sum(1).mean())
    assert head._adam_state.unit == pytest.approx(unit, rel=1e-9)


def test_weights_count_in_the_updates_of_portions():
    X, y, _ = mixture(60)

    def after(weights, X=X, y=y):
        head = PolyReLUClassifier(**FAST, batch=1000, random_state=0).partial_fit(*mixture(60)[:2], ["minus", "plus"])
        return head.partial_fit(X, y, sample_weight=weights).net_.weight.detach()

    ones, others = np.ones(60), np.r_[0.0, np.ones(59)]
    another_row, another_label = np.concatenate([3 - X[:1], X[1:]]), np.concatenate([y[y != y[0]][:1], y[1:]])
    assert not torch.equal(after(ones), after(ones, another_row, another_label))
    torch.testing.assert_close(after(others), after(others, another_row, another_label), rtol=1e-6, atol=1e-8)
    assert not torch.allclose(after(ones), after(others), rtol=1e-4)
    assert not torch.allclose(after(ones), after(ones + others), rtol=1e-4)


def test_every_portion_has_an_order_of_its_own(monkeypatch):
    X, y, _ = mixture(300)
    plain, orders = torch.randperm, []

    def drawn(n, **more):
        orders.append(plain(n, **more))
        return orders[-1]

    head = PolyReLUClassifier(**FAST, batch=50, random_state=0)
    monkeypatch.setattr(torch, "randperm", drawn)
    for _ in range(3):
        head.partial_fit(X, y, classes=["minus", "plus"])
    assert len(orders) == 3 and all(sorted(order.tolist()) == list(range(300)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 5])
def test_fit_forgets_what_portions_left_behind(before):
    X, y, _ = mixture(300)

    def after(*calls):
        head = PolyReLUClassifier(**FAST, random_state=0)
        for call in calls:
            head.fit(X, y) if call == "fit" else head.partial_fit(X[::2], y[::2], classes=["minus", "plus"])
        return head

    plain, again = after("fit", "portion"), after(*["portion"] * before, "fit", "portion")
    assert all(torch.equal(a, b) for a, b in zip(plain.net_.parameters(), again.net_.parameters(), strict=True))
    assert not torch.equal(plain.net_.weight, after("fit").net_.weight)  # a portion does something
    assert not torch.equal(plain.net_.weight, after("fit", "portion", "portion").net_.weight)


@pytest.mark.slow
def test_a_mapped_file_is_never_read_as_a_whole(tmp_path, monkeypatch):
    X, y, _ = mixture(6000)
    order = np.argsort(y, kind="stable")  # all rows of one class first, as files often are
    X, y = X[order].astype(np.float32), y[order]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    slices = []
    read = MappedRows.__getitem__
    monkeypatch.setattr(MappedRows, "__getitem__", lambda self, rows: slices.append(rows) or read(self, rows))
    head = PolyReLUClassifier(width=30, epochs=6, batch=200, rate=0.01, random_state=0).fit(mapped, y)
    assert head.score(mapped, y) > 0.95
    assert slices and max(rows.stop - rows.start for rows in slices) <= 4096
    assert np.array_equal(head.decision_function(mapped), head.decision_function(X))
    assert head.net_.dtype == torch.float32
    stopped = PolyReLUClassifier(width=30, epochs=6, batch=200, rate=0.01, early_stopping=True, random_state=0)
    assert stopped.fit(mapped, y, fine_labels="discover").score(mapped, y) > 0.95
    damaged = np.load(tmp_path / "X.npy", mmap_mode="c")
    damaged[5000, 3] = np.inf
    for call in (lambda: head.fit(damaged, y), lambda: head.predict(damaged)):
        with pytest.raises(InputError, match=r"X\[5000, 3\]=inf"):
            call()


def test_a_sub_class_that_was_found_empty_does_not_shift_the_classes_of_the_others(monkeypatch):
    targets = head_data.Targets.from_labels(np.array([0, 0, 1, 1]), 4)
    found = SimpleNamespace(cluster=torch.tensor([0, 2, 3, 3]), labels=torch.tensor([0, 1, 0, 1]))
    monkeypatch.setattr(head_data, "estimate_subclasses", lambda data, **_: found)
    fine = head_data.subclass_labels("discover", torch.eye(4), targets, 0)
    assert fine.codes.tolist() == [0, 1, 2, 2] and fine.class_of.tolist() == [0, 0, 1]


def test_a_head_fitted_again_without_sub_classes_has_none(tmp_path):
    X, y, fine = mixture(60)
    head = PolyReLUClassifier(p=2, width=8, epochs=2, random_state=0).fit(X, y, fine_labels=fine).fit(X, y)
    assert not hasattr(head, "fine_classes_") and not hasattr(head, "fine_of_")
    read = PolyReLUClassifier.load(head.save(tmp_path / "head.safetensors"))
    assert np.array_equal(read.predict(X), head.predict(X))
