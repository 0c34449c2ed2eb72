"""The report on any classifier: numbers that are known exactly, honest words, and one page."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
from base64 import b64encode

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import nn

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.estimator import PolyReLUClassifier, RobustnessReport
from polyrelu.estimator.robustness_report import as_target, measure_radii
from polyrelu.estimator.robustness_report.cross_fitting import halves
from polyrelu.estimator.robustness_report.report import findings, fraction
from polyrelu.estimator.robustness_report.structure import averaging_of, structure_of
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust.external import certified, label_codes

MIX = OrthonormalMixture(dim=16, positive=3, negative=3, alpha=0.05, dtype=torch.float64)
NAMES = np.array(["no", "yes"])


HEAD = PolyReLUClassifier(p=3, width=24, epochs=80, random_state=0)


def rows(n=90, seed=0):
    """Rows, labels by name and the known sub-classes."""
    data = MIX.sample(n, seed)
    return data.rows().numpy(), NAMES[(data.y > 0).long().numpy()], data.cluster.numpy()


def report(model, X, y, **options):
    return RobustnessReport.measure(model, X, y, **{"compare": False, "points": 30, **options})


def test_a_linear_model_has_its_exact_radii():
    X, y, fine = rows()
    model = LogisticRegression(C=10).fit(X, y)
    found = report(model, X, y, fine=fine)
    exact = certified(model, torch.from_numpy(X[found.points]), label_codes(y[found.points], model.classes_, 1)).numpy()
    middle = np.sort(exact)[(len(exact) - 1) // 2]
    assert found.proven_to == pytest.approx(middle, rel=1e-9) and found.broken_at == pytest.approx(middle, rel=1e-6)
    assert found.model.measured.proof == "exact" and found.clean == model.score(X, y)
    typical = np.median(np.linalg.norm(X - X.mean(0), axis=1))
    assert found.typical == pytest.approx(typical, rel=0.05)  # torch takes the lower of two middle numbers
    np.testing.assert_allclose(found.radii, found.typical * np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(found.attacked, [(exact > r).mean() for r in found.radii])
    np.testing.assert_allclose(found.certified, found.attacked)


def test_averages_score_one_and_centres_zero():
    # F breaks along the difference of the class sums at every centre, F^(3) from one centre to another.
    X, labels = MIX.centres, MIX.labels
    y = NAMES[(labels > 0).long().numpy()]
    structure = structure_of(X, y, np.arange(len(y)), 0)
    scores = []
    for ideal in (AverageClassifier(X, labels), CentreClassifier(X, labels)):
        target = as_target(ideal, X, y)
        found = measure_radii(target, X, y, np.arange(len(y)), (X, y), radii=np.array([0.1]), seed=0)
        scores.append(averaging_of(found, y, structure))
    assert scores[0].score > 0.999 and scores[0].to_averages == pytest.approx(1, abs=1e-6)
    assert scores[0].to_centres == pytest.approx(math.sqrt(1 / 3), abs=1e-3)  # <S, mu_t - mu_s>/(sqrt(6) sqrt(2))
    assert scores[1].score < 0.05 and scores[1].to_centres > 0.99


def test_one_direction_breaks_every_point_of_a_linear_model_where_it_breaks():
    # A linear model's shortest perturbations are all parallel: the one direction is as good as the best attack.
    X, y, fine = rows()
    found = report(LogisticRegression(C=10).fit(X, y), X, y, fine=fine)
    radius, upper = found.model.direction.radius, found.model.measured.bracket.upper
    np.testing.assert_allclose(radius.numpy(), upper.numpy(), rtol=1e-4)
    middle = found.broken_at
    assert found.model.direction.broken(1.001 * middle) >= 0.5 > found.model.direction.broken(0.5 * middle)


def test_subclasses_are_found_and_said():
    X, y, _ = rows(300)
    found = report(LogisticRegression().fit(X, y), X, y)
    assert found.subclasses == (3, 3) and not found.structure.given
    assert findings(found)[0] == "Your 2 classes have 6 hidden sub-classes (3 + 3)."
    assert "averages them (score" in found.summary() and found.averaging > 0.8


def test_without_subclasses_there_is_no_score():
    X = np.concatenate([np.eye(2)[[0]] * s + np.eye(2)[[1]] * t for s in (1, 1.2) for t in (0.1, 0.2)] * 2)
    X[4:] *= -1
    y = np.repeat(NAMES, 4)
    found = report(LogisticRegression().fit(X, y), X, y, fine=y)
    assert math.isnan(found.averaging) and found.summary().startswith("No sub-classes were found")
    json.dumps(found.record(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_any_kind_of_classifier(classes):
    X, y, fine = rows(90)
    y = y if classes == 2 else fine // 2
    module = nn.Linear(16, 1 if classes == 2 else 3)
    with torch.no_grad():
        means = torch.stack([torch.from_numpy(X[y == name].mean(0)) for name in np.unique(y)]).float()
        module.weight.copy_(means[1:] - means[:1] if classes == 2 else means)
        module.bias.zero_()
    kinds = {
        "module": (module, "exact"),
        "neighbours": (KNeighborsClassifier(1).fit(X, y), "nothing is proven"),
        "kernel": (SVC(gamma=2.0, C=10).fit(X, y), "nothing is proven"),
    }
    model = LogisticRegression(C=10).fit(X, y)
    found = report(
        lambda rows: model.predict(rows), X, y, points=5, beside={name: one for name, (one, _) in kinds.items()}
    )
    assert [part.measured.proof for part in found.beside] == [proof for _, proof in kinds.values()]
    assert found.model.measured.proof == "nothing is proven" and found.notes
    exact = certified(
        model, torch.from_numpy(X[found.points]), label_codes(y[found.points], model.classes_, 1 if classes == 2 else 3)
    )
    upper = found.model.measured.bracket.upper
    assert (upper >= exact * (1 - 1e-9)).all() and (upper <= 1.2 * exact).double().mean() > 0.8
    for part, model_ in zip(found.beside[1:], (kinds["neighbours"][0], kinds["kernel"][0]), strict=True):
        bracket = part.measured.bracket
        moved = X[found.points] + bracket.perturbation.numpy()
        assert (model_.predict(moved) != y[found.points])[np.isfinite(bracket.upper.numpy())].all()


@pytest.mark.slow
def test_the_head_is_trained_on_the_training_rows():
    X, y, _ = rows(120)
    Z, z, fine = rows(60, seed=1)
    found = report(LogisticRegression().fit(X, y), Z, z, fine=fine, train=(X, y), compare=HEAD, points=5)
    assert found.refit is None and found.head.measured.proof == "proven" and found.head.measured.clean > 0.9
    bracket = found.head.measured.bracket
    assert (bracket.lower <= bracket.upper).all() and (bracket.lower > 0).any()
    assert re.search(r"A polynomial head, p = 3 .*\.\d\d \(certified \.\d\d\); its accuracy is \d+ %", found.summary())


@pytest.mark.slow
def test_without_training_rows_each_point_is_measured_by_a_head_that_never_saw_it(monkeypatch):
    X, y, fine = rows(60)
    estimator = importlib.import_module("polyrelu.estimator.classifier")
    cross = importlib.import_module("polyrelu.estimator.robustness_report.cross_fitting")
    trained, looked = [], []
    plain_fit, plain_measure = estimator.PolyReLUClassifier.fit, cross.measure_radii

    def fit(self, X, y, *more, **options):
        trained.append({row.tobytes() for row in X})
        return plain_fit(self, X, y, *more, **options)

    def measured(target, X, y, points, pool, **options):
        looked.append((target.name, {row.tobytes() for row in X.numpy()}))
        return plain_measure(target, X, y, points, pool, **options)

    monkeypatch.setattr(estimator.PolyReLUClassifier, "fit", fit)
    monkeypatch.setattr(cross, "measure_radii", measured)
    found = report(LogisticRegression().fit(X, y), X, y, fine=fine, compare=HEAD, points=6)
    heads = [seen for name, seen in looked if "polynomial" in name]
    assert len(trained) == len(heads) == 2 and not (trained[0] & heads[0]) and not (trained[1] & heads[1])
    assert found.refit.name == "LogisticRegression, fitted anew like the head" and any(
        "cross-fitted" in n for n in found.notes
    )
    assert len(found.head.measured.bracket) == len(found.points) == 6
    order = torch.from_numpy(found.points)
    moved = found.X[order] + found.refit.measured.bracket.perturbation
    assert (moved - found.X[order]).norm(dim=1).numpy() == pytest.approx(found.refit.measured.bracket.upper.numpy())


def test_halves_hold_every_class_and_nothing_twice():
    y = np.array([0] * 5 + [1] * 2 + [2] * 9)
    a, b = halves(y, 0)
    assert sorted([*a, *b]) == list(range(16)) and set(y[a]) == set(y[b]) == {0, 1, 2}
    assert halves(np.array([0, 0, 1]), 0) is None


def test_the_page_is_whole_and_asks_for_nothing(tmp_path):
    X, y, fine = rows()
    y = np.where(y == "yes", "<b>yes</b>", y)
    found = report(LogisticRegression(C=10).fit(X, y), X, y, fine=fine, name="<script>")
    page = found.save(tmp_path / "page.html", command="polyrelu diagnose a&b", data="<i>").read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert "<script" not in page and "<b>" not in page and "<i>" not in page and "a&amp;b" in page
    assert not re.search(r"(src|href)=|url\(|@import|https?:", page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    assert f"sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}" in page
    for sentence in findings(found):
        assert sentence.replace("<", "&lt;").replace(">", "&gt;") in page
    points = re.search(r'<polyline class="line" points="([^"]*)"', page).group(1).split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights) and heights[0] == pytest.approx(
        1000 * (1 - found.model.measured.curve.clean), abs=0.1
    )
    assert (
        found.save(tmp_path / "again.html", command="polyrelu diagnose a&b", data="<i>").read_text(encoding="utf-8")
        == page
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y, fine = rows()
    found = report(LogisticRegression(C=10).fit(X, y), X, y, fine=fine, compare=True)
    return found.save(tmp_path_factory.mktemp("page") / "page.html", command="polyrelu diagnose a.npz", data="a.npz")


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_can_be_read_on_any_screen(browser, contrasts, page, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown, trouble, asked = context.new_page(), [], []
    shown.on("console", lambda message: trouble.append(message.text))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.as_uri())
    assert trouble == [] and asked == [page.as_uri()]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    ratios = shown.evaluate(contrasts, "body *:not(style, svg, svg *)")
    assert len(ratios) > 30 and {name for name, ratio in ratios if ratio < 4.5} == set()
    context.close()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report():
    X, y, fine = rows()
    predict = lambda Z: NAMES[(np.asarray(Z) @ (X[y == "yes"].sum(0) - X[y == "no"].sum(0)) > 0).astype(int)]  # noqa: E731
    a, b, c = (report(predict, X, y, fine=fine, points=4, seed=seed).record() for seed in (0, 0, 1))
    assert a == b != c


def test_lengths_in_words():
    assert [fraction(r, 2.0) for r in (0.54, 2.1, 0.0, math.inf)] == [".27", "1.05", ".00", "no radius tried"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.zeros((4, 16))}, r"y.shape=\(90,\)"),
        ({"X": np.full((90, 16), np.nan)}, "X=NaN or infinity"),
        ({"y": np.repeat("yes", 90)}, "y=only yes: expected rows of two classes"),
        ({"radii": [-1.0]}, "radii"),
        ({"points": 0}, "points=0"),
        ({"fine": np.zeros(3)}, "fine=3 labels: expected 90"),
        ({"model": "a file"}, "model=str: expected a fitted classifier"),
        ({"model": LogisticRegression()}, "has no classes_ yet"),
        ({"model": nn.Linear(16, 3)}, "expected 3 classes, one for each logit"),
        ({"y": np.repeat(["yes", "maybe"], 45)}, "y=maybe: expected one of the model's classes"),
    ],
)
def test_bad_input_is_named(change, words):
    X, y, _ = rows()
    given = {"model": LogisticRegression().fit(X, y), "X": X, "y": y, **change}
    with pytest.raises(InputError, match=words):
        report(given.pop("model"), given.pop("X"), given.pop("y"), **given)


@pytest.mark.slow
def test_whatever_holds_farther_than_the_head_is_named(tmp_path):
    # The centre classifier is the best there is on this mixture (sqrt(2)/2); two ReLU neurons can only average.
    X, y, fine = rows(60)
    best = CentreClassifier(MIX.centres, MIX.labels)
    weak = PolyReLUClassifier(p=1, width=2, epochs=80, random_state=0)
    found = report(
        LogisticRegression(C=0.1).fit(X, y),
        X,
        y,
        fine=fine,
        train=(X, y),
        compare=weak,
        beside={"ideal": best},
        points=8,
    )
    ideal = found.beside[0].measured
    assert ideal.broken_at > found.head.measured.broken_at and "The ideal holds to" in found.summary()
    page = found.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "does not hold farther than the ideal here" in page
