"""What the experiments on Min, Mallada & Vidal (ICLR 2024) share: as published, or small."""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims.profile import Profile

RATE, WIDTH = 2e-3, 50  # published
SCALE = 1e-6  # of the start
ITERATIONS = 15_000
REPEATS: Mapping[Profile, int] = {"quick": 1, "paper": 5}
