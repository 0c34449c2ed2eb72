"""Certified rows of an earlier run count only if all is as it was that decides a radius."""

from __future__ import annotations

import numpy as np
import pytest

from polyrelu.estimator import PolyReLUClassifier
from polyrelu.progress import Progress
from polyrelu.workflows.predict import run as predictions


@pytest.fixture
def certified_anew(tmp_path, monkeypatch):
    """certified_anew(): how many chunks of 4 rows, of 8, are certified, after the first was kept by another run."""
    rows = np.random.default_rng(0).normal(size=(8, 3))
    np.save(tmp_path / "rows.npy", rows)
    PolyReLUClassifier(width=2, epochs=1, random_state=0).fit(rows, rows[:, 0] > 0).save(tmp_path / "head.safetensors")
    monkeypatch.setattr(predictions, "CERTIFIED", 4)
    inner, asked = PolyReLUClassifier.certify, []

    def certify(self, X, **given):
        asked.append(len(X))
        if stop and len(asked) == 2:
            raise KeyboardInterrupt
        return inner(self, X, **given)

    def run():
        asked.clear()
        given = (str(tmp_path / "head.safetensors"), str(tmp_path / "rows.npy"), None, True, tmp_path / "p.csv")
        predictions.run_prediction(*given, Progress())
        return asked.copy()

    monkeypatch.setattr(PolyReLUClassifier, "certify", certify)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        run()
    assert (tmp_path / "p.csv.partial").is_file()
    stop = False
    return run


@pytest.mark.slow
def test_the_first_chunk_is_taken_as_it_was(certified_anew):
    assert certified_anew() == [4]


@pytest.mark.slow
@pytest.mark.parametrize("name, other", [("TOL", 0.02), ("NODES", 31), ("CERTIFIED", 8)])
def test_rows_certified_with_other_settings_are_certified_again(certified_anew, monkeypatch, name, other):
    monkeypatch.setattr(predictions, name, other)
    assert sum(certified_anew()) == 8


@pytest.mark.slow
def test_rows_certified_by_another_version_are_certified_again(certified_anew, monkeypatch):
    monkeypatch.setattr(predictions, "__version__", "0")
    assert sum(certified_anew()) == 8
