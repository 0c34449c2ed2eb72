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

PARTS = ("train", "test")


def part(data: Dataset, name: str) -> Dataset:
    """The rows of ``train`` or ``test``, in the order in which they were drawn."""
    require(name in PARTS, "part", name, "train or test")
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    test = math.floor(0.2 * len(data))
    require(test > 0, "data", data.name, f"five rows or more to set some aside, it has {len(data)}")
    return replace(data.subset(rows[-test:] if name == "test" else rows[:-test]), name=f"{data.name}:{name}")
