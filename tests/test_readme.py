"""The README's Python runs as printed, in small sizes."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
SMALLER = {"dim=1000": "dim=60", "20_000": "1200", "width=2000": "width=40"}


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=["researcher", "learned", "robust", "practitioner"])
def test_example_runs(block, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    np.savez(tmp_path / "embeddings.npz", X=rng.normal(size=(300, 20)) + 3 * np.eye(20)[y], y=y)
    for published, small in SMALLER.items():
        block = block.replace(published, small)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    if "log10_loss" in block and "kkt" in block:
        assert "class averages" in printed and "Monotone(ok=True" in printed
    elif "polyrelu.bracket" in block:
        assert "RadiusRange(lower=0." in printed
    else:
        assert ("[0 1 2 0 1]" if "Classifier" in block else "Reached the requested loss.") in printed
        assert len(list(tmp_path.glob("*.safetensors"))) == 1
