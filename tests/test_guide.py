"""The Python of docs/guide.md runs as printed, from first to last, and shows what the text says."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
SMALLER = {
    "points=100": "points=10",
    ":50]": ":20]",
    "digits.data / 16, digits.target": "digits.data[:500] / 16, digits.target[:500]",
}


@pytest.mark.slow
def test_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, block in enumerate(BLOCKS):
        for printed, small in SMALLER.items():
            block = block.replace(printed, small)
        exec(compile(block, f"guide.md, block {number + 1}", "exec"), names)
    assert capsys.readouterr().out
    for file in ("embeddings.npz", "diagnosis.html", "head.safetensors"):
        assert (tmp_path / file).stat().st_size > 0
    assert names["head"].score(names["X_test"], names["y_test"]) > 0.96
    assert (names["radii"].lower <= names["radii"].upper).all()
    assert names["report"].attacked[1] + 0.1 < names["certified"] <= names["attacked"]
    assert len(names["known"].fine_classes_) == 10
