"""A random four fifths of the rows to train on and the rest to test on, as published (Min & Vidal 2024).

    pi = torch.randperm(n) with seed 0;   test = the last floor(n/5) rows of pi,   train = the others

These are the rows of ``torch.utils.data.random_split(data, [0.8, 0.2])`` with a generator seeded 0.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from polyrelu.data.dataset import Dataset
from polyrelu.errors import require

SPLITS = ("train", "test")


def split_part(data: Dataset, name: str) -> Dataset:
    """The rows of ``train`` or ``test``, in the order in which they were drawn."""
    return replace(data.subset(split_rows(len(data), name, data.name)), name=f"{data.name}:{name}")


def split_rows(count: int, name: str, data: str) -> torch.Tensor:
    """The numbers of those rows, of ``count`` in all; ``data`` is what an error calls the set."""
    require(name in SPLITS, "part", name, "train or test")
    rows = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    test = math.floor(0.2 * count)
    require(test > 0, "data", data, f"five rows or more to set some aside, it has {count}")
    return rows[-test:] if name == "test" else rows[:-test]
