"""`polyrelu inspect`: its record, and what it refuses."""

import json
import shlex

import numpy as np
import pytest
from running import names, polyrelu_

from polyrelu.data import OrthonormalMixture


@pytest.mark.slow
def test_inspect_reads_a_run_with_its_trajectory(done, tmp_path):
    _, folder = done
    data = "mixture:dim=50,clusters=3+2,alpha=0.1,n=500,seed=0"
    result = polyrelu_("inspect", folder, data, "--json", "--quiet", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found == json.loads((tmp_path / "inspection.json").read_text(encoding="utf-8"))
    assert found["headline"].startswith("The neurons learned single centres: decoupling score")
    assert {"phases.png", "margins.svg"} <= names(tmp_path)
    words = shlex.split(found["command"])
    assert words[:4] == ["polyrelu", "inspect", str(folder), data]


def test_inspect_refuses_what_is_not_a_net(tmp_path):
    result = polyrelu_("inspect", tmp_path, "digits", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "net.safetensors in it, as polyrelu flow writes" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_inspect_reads_labels_as_the_head_that_was_fitted_on_them(tmp_path):
    mixture = OrthonormalMixture(dim=8, positive=2, negative=2, alpha=0.1).sample(80, seed=0)
    rows_file = tmp_path / "rows.npz"
    np.savez(rows_file, X=mixture.rows().numpy(), y=np.where(mixture.y.numpy() > 0, "cat", "dog"))
    head = tmp_path / "head.safetensors"
    fitted = polyrelu_("fit", rows_file, "-o", head, "--width", 8, "--epochs", 5, "--quiet")
    assert fitted.exit_code == 0, fitted.stderr
    result = polyrelu_("inspect", head, rows_file, "--json", "--quiet", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    right, rows = json.loads(result.stdout)["measurements"][0]["numbers"].values()
    evaluated = polyrelu_("evaluate", head, rows_file, "--json", "--quiet", "--out", tmp_path / "radii")
    assert (right / rows, rows) == (json.loads(evaluated.stdout)["table"]["clean"], 80)
