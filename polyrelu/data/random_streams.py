"""Independent random streams from one seed, and random orthonormal directions.

    stream(seed, purpose, block) = PCG64(SeedSequence(seed, spawn_key=(purpose, block)))

Numpy's generators are used for data, not ``torch.Generator``: on a CPU the latter keeps only the low 32 bits of its
seed (among the 1000 blocks of a million rows, two would repeat each other with probability 1e-4), and its normal
numbers change with the vector instructions of the machine. ``spawn_key`` keeps long seeds apart from (seed, block).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch

from polyrelu.checks import enough_memory


class Purpose(IntEnum):
    """What a stream is for, so that one seed never serves two purposes. The numbers are part of every recipe."""

    CLUSTERS = 0
    NOISE = 1
    FRAME = 2
    SPHERE = 3
    SYMMETRIC = 4


def stream(seed: int, purpose: Purpose, block: int = 0) -> np.random.Generator:
    """The generator of one block of one purpose; blocks can be drawn in any order, or not at all."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(int(purpose), block))))


def orthonormal_rows(count: int, dim: int, rotate: int | None) -> torch.Tensor:
    """``count`` orthonormal rows in R^dim (float64): the first basis vectors, or Haar-random ones from seed ``rotate``.

    G = Q R for a Gaussian (dim, count) matrix; Q diag(sign R_ii) is uniform on the Stiefel manifold (Mezzadri, 2007).
    """
    with enough_memory(f"rows of dim={dim}"):
        if rotate is None:
            return torch.eye(count, dim, dtype=torch.float64)
        gaussian = stream(rotate, Purpose.FRAME).standard_normal((dim, count))
    Q, R = torch.linalg.qr(torch.from_numpy(gaussian))
    rows: torch.Tensor = Q * torch.where(R.diagonal() < 0, -1.0, 1.0)
    return rows.T.contiguous()
