"""The finished parts of a long evaluation, one file each, so that an interruption costs one part at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch

from polyrelu.arrays import DAMAGED, open_npz, write_npz
from polyrelu.robust import Bracket, BracketStatus, check_norm

SIZE = 100  # points in a part: seconds to a minute of work


@final
@dataclass(frozen=True)
class BracketedRows:
    """The brackets of rows ``start``, ``start + 1``, ... and the seconds they took."""

    start: int
    bracket: Bracket
    seconds: float


def write_part(folder: Path, part: BracketedRows, fingerprint: str) -> None:
    """Write one part, whole or not at all, with the fingerprint of all that its numbers depend on."""
    bracket = part.bracket
    arrays = {
        "lower": bracket.lower.detach().cpu().double().numpy(),
        "upper": bracket.upper.detach().cpu().double().numpy(),
        "perturbation": bracket.perturbation.detach().cpu().double().numpy(),
        "status": np.array([status.name for status in bracket.status]),
        "norm": np.array(bracket.norm),
        "nodes": bracket.nodes.detach().cpu().numpy(),
        "seconds": np.array(part.seconds),
        "fingerprint": np.array(fingerprint),
    }
    write_npz(_path(folder, part.start), arrays)


def read_part(folder: Path, start: int, count: int, fingerprint: str) -> BracketedRows | None:
    """The first ``count`` points of the part that begins at ``start``; None where it must be computed (again).

    That is where there is none, a shorter one, one of other settings, or a damaged one: nothing is repaired or trusted.
    """
    try:
        with open_npz(_path(folder, start)) as stored:
            if str(stored["fingerprint"]) != fingerprint:
                return None
            status = tuple(BracketStatus[str(name)] for name in stored["status"][:count])
            lower, upper, perturbation, nodes = (
                torch.from_numpy(stored[name][:count]) for name in ("lower", "upper", "perturbation", "nodes")
            )
            norm, seconds = check_norm(float(stored["norm"])), float(stored["seconds"])
    except DAMAGED:
        return None
    whole = (len(status),) == lower.shape == upper.shape == nodes.shape == perturbation.shape[:1] == (count,)
    floats = all(part.dtype == torch.float64 for part in (lower, upper, perturbation)) and perturbation.ndim == 2
    if not whole or not floats or nodes.dtype != torch.int64 or not math.isfinite(seconds):
        return None
    if not bool(((lower >= 0) & (lower <= upper)).all() and perturbation.isfinite().all()):
        return None
    return BracketedRows(start, Bracket(lower, upper, perturbation, status, norm, nodes), seconds)


def join(parts: list[BracketedRows]) -> Bracket:
    """One bracket of all points, in the order of the rows."""
    brackets = [part.bracket for part in sorted(parts, key=lambda part: part.start)]
    lower, upper, perturbation, nodes = (
        torch.cat([getattr(bracket, name) for bracket in brackets])
        for name in ("lower", "upper", "perturbation", "nodes")
    )
    status = tuple(status for bracket in brackets for status in bracket.status)
    return Bracket(lower, upper, perturbation, status, brackets[0].norm, nodes)


def _path(folder: Path, start: int) -> Path:
    return folder / f"{start:08d}.npz"
