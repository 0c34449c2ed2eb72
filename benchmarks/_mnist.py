"""The ten-digit nets of the published recipe, for the benchmarks of attacks and certificates on MNIST."""

from __future__ import annotations

from pathlib import Path

import polyrelu
from polyrelu.train import published_head


def net(p, folder=None):
    """The net p{p}.safetensors of ``folder`` if there, else one trained now (51 epochs, seed 0) and kept there."""
    file = None if folder is None else Path(folder) / f"p{p:g}.safetensors"
    if file is not None and file.exists():
        return polyrelu.nets.load(file)
    trained = published_head(polyrelu.data.read("mnist"), float(p)).net
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        polyrelu.nets.save(trained, file)
    return trained


def images(points):
    """The first images of the validation split, which the paper calls its test set."""
    data = polyrelu.data.read("mnist:validation")
    return data.rows(0, points), data.y[:points]
