"""`polyrelu diagnose` as people call it: a page, a sentence, and plain words for bad input."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from polyrelu.cli import application as cli
from polyrelu.data import OrthonormalMixture
from polyrelu.estimator import PolyReLUClassifier
from polyrelu.nets import LogisticRegression, save


def polyrelu_(*words):
    return CliRunner().invoke(cli.app, ["diagnose", *map(str, words)], prog_name="polyrelu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a name for every row, a head trained on it by hand, and a net without classes of its own."""
    folder = tmp_path_factory.mktemp("data")
    data = OrthonormalMixture(6, 2, 2, 0.1).sample(100, 0)
    X, names = data.rows().numpy(), np.where(data.y.numpy() > 0, "cat", "dog")
    head = "id," + ",".join(f"f{i}" for i in range(6)) + ",species,kind\n"
    cells = zip(X.tolist(), names.tolist(), data.cluster.tolist(), strict=True)
    lines = [f"row {i}," + ",".join(map(str, x)) + f",{name},{kind}\n" for i, (x, name, kind) in enumerate(cells)]
    (folder / "pets.csv").write_text(head + "".join(lines), encoding="utf-8")
    np.savez(folder / "signs.npz", X=X, y=data.y.numpy())
    PolyReLUClassifier(p=3, width=8, epochs=20, random_state=0).fit(X, names).save(folder / "head.safetensors")
    save(LogisticRegression(6, seed=0), folder / "net.safetensors")
    return folder


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Heads of eight neurons, trained for twenty passes."""
    plain = PolyReLUClassifier.__init__
    monkeypatch.setattr(PolyReLUClassifier, "__init__", quick := _quick(plain))
    quick.__wrapped__ = plain  # scikit-learn reads the parameters from there


def _quick(plain):
    def quick(self, p=3, **options):
        plain(self, p, **{**options, "width": 8, "epochs": 20})

    return quick


def test_a_table_becomes_a_page_and_a_sentence(folder, tmp_path):
    page = tmp_path / "new" / "diagnosis.html"
    done = polyrelu_(folder / "pets.csv", "--label", "species", "--fine", "kind", "--points", 10, "-o", page)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Your 2 classes have 4 sub-classes (2 + 2). The ReLU head ")
    assert "A polynomial head, p = 3 " in done.stdout and "Measured on 20 rows held out of 100" in done.stdout
    assert f"written to {page}" in done.stderr and "'id'" in done.stdout
    text = page.read_text(encoding="utf-8")
    for word in (
        "logistic regression",
        "ReLU head",
        "polynomial head, p = 3",
        "<span>fit</span>",
        "<span>species</span>",
    ):
        assert word in text
    assert [file.name for file in page.parent.iterdir()] == ["diagnosis.html"]


def test_a_head_is_measured_on_rows_that_fit_sets_aside(folder, tmp_path):
    words = (folder / "pets.csv", "--label", "species", "--fine", "kind", "--model", folder / "head.safetensors")
    done = polyrelu_(*words, "--points", 10, "--json", "--quiet", "-o", tmp_path / "page.html")
    assert done.exit_code == 0 and done.stderr == "", done.output
    found = json.loads(done.stdout)
    names = [one["name"] for one in found["classifiers"]]
    assert names == ["head in head.safetensors", "ReLU head", "logistic regression"]  # no second polynomial head
    for one in found["classifiers"]:
        assert all(low <= high for low, high in zip(one["certified"], one["attacked"], strict=True))
        assert sorted(one["attacked"], reverse=True) == one["attacked"] and one["attacked"][0] <= 1
    assert found["points"] == 10 and found["classifiers"][2]["proof"] == "exact"


def test_a_net_without_names_takes_signs(folder, tmp_path):
    words = (folder / "signs.npz", "--model", folder / "net.safetensors", "--points", 6, "-o", tmp_path / "page.html")
    done = polyrelu_(*words, "--json", "--quiet")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classifiers"][-1]["name"] == "polynomial head, p = 3"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.csv",), "nothing.csv: expected an existing file"),
        (("pets.csv", "--label", "colour"), "label=colour: expected a column"),
        (("pets.csv", "--label", "species", "-o", "page.txt"), "expected a name that ends in .html"),
        (
            ("pets.csv", "--label", "species", "--model", "none.safetensors"),
            "none.safetensors: expected an existing file",
        ),
        (("pets.csv", "--label", "species", "--model", "pets.csv"), "pets.csv: expected a net saved by polyrelu"),
        (("signs.npz", "--model", "head.safetensors"), "expected labels that the model knows, -1"),
        (("pets.csv", "--label", "species", "--points", "0"), "points=0: expected a whole number >= 1"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    before = sorted(file.name for file in folder.iterdir())
    done = polyrelu_(*words)
    assert done.exit_code == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.output
    assert sorted(file.name for file in folder.iterdir()) == before


def test_a_proof_above_an_attack_is_our_bug(folder, monkeypatch, tmp_path):
    measurement = importlib.import_module("polyrelu.estimator.robustness_report.measurement")
    monkeypatch.setattr(
        measurement, "certified", lambda module, X, y, **more: measurement.torch.full((len(X),), 99.0).double()
    )
    done = polyrelu_(folder / "signs.npz", "--points", 5, "-o", tmp_path / "page.html")
    assert done.exit_code == 3 and "please report it" in done.stderr and not list(tmp_path.iterdir())
