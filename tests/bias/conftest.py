"""Data that several measurements are tried on."""

import pytest
import torch

from polyrelu import Dataset, OrthonormalMixture


@pytest.fixture
def blobs():
    """Two well separated clusters of opposite labels, in float64."""

    def sample(n=60, dim=6):
        return OrthonormalMixture(dim=dim, positive=1, negative=1, alpha=0.1, dtype=torch.float64).sample(n, seed=0)

    return sample


@pytest.fixture
def rough():
    """Rows of very unequal length, so that cos and <x, u> differ."""

    def sample(classes=2, n=60, dim=8):
        source = torch.Generator().manual_seed(3)
        X = (
            torch.randn(n, dim, generator=source, dtype=torch.float64)
            * torch.linspace(0.2, 3, n, dtype=torch.float64)[:, None]
        )
        y = torch.arange(n) % classes
        return Dataset(X, (2.0 * y - 1).to(torch.float64) if classes == 2 else y)

    return sample
