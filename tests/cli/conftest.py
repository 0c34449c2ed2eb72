"""What the commands that are interrupted are given; their tools are imported from beside this file."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "sweep")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A head and rows for it, a net, a sweep: what the commands are given."""
    from PIL import Image

    import polyrelu

    folder = tmp_path_factory.mktemp("made")
    source = np.random.default_rng(0)
    y = np.arange(450) % 3
    X = 3 * np.eye(3, 6)[y] + 0.5 * source.normal(size=(450, 6))
    np.savez(folder / "rows.npz", X=X, y=y)
    polyrelu.PolyReLUClassifier(width=6, epochs=20, random_state=0).fit(X, y).save(folder / "head.safetensors")
    polyrelu.save(polyrelu.PolyReLUNet(8, 6, seed=0), folder / "net.safetensors")
    (folder / "slow.py").write_text(
        "import os, time\nfrom pathlib import Path\nfrom polyrelu.sweep import sweepable\n\n\n@sweepable()\n"
        "def slow(x, release):\n"
        "    Path(release).with_name(f'began-{x}').write_text(str(os.getpid()))\n"
        "    while not Path(release).exists():\n        time.sleep(0.01)\n    return x * x\n"
    )
    for name in ("red", "blue"):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (4, 4), (40 * number, 7, 99)).save(folder / "images" / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run: what was printed, and its folder."""
    from running import SMALL, polyrelu_

    folder = tmp_path_factory.mktemp("runs") / "done"
    return polyrelu_("flow", *SMALL, "--json", "--out", folder), folder
