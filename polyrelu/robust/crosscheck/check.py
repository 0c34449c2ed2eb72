"""Do the attacks of other libraries find anything smaller than ours, and nothing below what is proven?"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.nets import as_float64
from polyrelu.robust.bracketing.bracket import BoundsInconsistentError, Bracket
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.norms import check_norm, lengths
from polyrelu.robust.core.result import AttackResult
from polyrelu.robust.crosscheck.peers import PEERS, Peer, library

LEAST_GAIN = 1e-6  # relative: a smaller gain does not count
ROUNDING = 1e-9  # relative: float64 rounding of a margin that is 0 to within its last digits
STRETCHES = (1.0, 1 + 1e-6, 1 + 1e-5)  # what a float32 perturbation may need to flip the net in float64 as well


@final
@dataclass(frozen=True)
class CrossCheck:
    """One peer beside our bracket, on the points named in ``note``; radii counted as found again in float64.

    None of them is below a certified radius: that raises `BoundsInconsistentError`.

    median_radius : over the points classified rightly; inf when the peer broke fewer than half of them
    smaller : points where the peer's radius is below our attacked one by more than 1e-6 of it
    """

    name: str
    library: str
    median_radius: float
    smaller: int
    seconds: float
    note: str


def cross_check(
    net: Score,
    X: Tensor,
    y: Tensor,
    bracket: Bracket,
    norm: float | str = 2.0,
    attacks: str | Sequence[str] | None = None,
    seed: int = 0,
    *,
    points: int = 100,
) -> list[CrossCheck]:
    """Compare attacks of other libraries, on at most ``points`` rows, evenly spaced, with ``bracket``.

    ``attacks``: names out of `PEERS`, or "all" (as None) of those made for the norm. A peer's
    perturbation counts only if it changes the decision of a float64 copy of ``net`` (stretched by up to 1e-5, and then
    with that length), so that float32 rounding is neither a find nor a contradiction. One below the certified radius
    by more than 1e-9 of it raises `BoundsInconsistentError`: the certificate, the net or the check is wrong.
    """
    norm = check_norm(norm)
    X, y = check_points(net, X, y)
    exact = isinstance(net, nn.Module) or X.dtype == torch.float64
    require(exact, "X.dtype", X.dtype, "torch.float64, unless the net is a torch.nn.Module (which can be copied to it)")
    require(len(bracket) == len(X), "len(bracket)", len(bracket), f"{len(X)}, one row per point")
    require(bracket.norm == norm, "norm", norm, f"{bracket.norm:g}, the norm of the bracket")
    require(points >= 1, "points", points, "a whole number >= 1")
    peers = _chosen(attacks, norm)
    for name in {peer.library for peer in peers}:
        library(name)  # what is missing is said before any work is done, and importing is not part of the time
    rows = torch.linspace(0, len(X) - 1, min(points, len(X)), dtype=torch.float64).round().long()
    here = rows.to(X.device)
    return [_against(peer, net, X[here], y[here], bracket, rows, seed) for peer in peers]


def _chosen(attacks: str | Sequence[str] | None, norm: float) -> list[Peer]:
    able = [peer.name for peer in PEERS.values() if norm in peer.norms]
    every = attacks is None or attacks == "all"
    names = able if every else [attacks] if isinstance(attacks, str) else list(attacks or ())
    for name in names:
        require(name in PEERS, "attacks", name, f"'all' or names out of {', '.join(PEERS)}")
        require(name in able, "attacks", name, f"attacks that know the norm {norm:g}: {', '.join(able)}")
    return [PEERS[name] for name in names]


def _against(peer: Peer, net: Score, X: Tensor, y: Tensor, bracket: Bracket, rows: Tensor, seed: int) -> CrossCheck:
    """The peer on X and y, the rows of the bracket's points numbered ``rows``."""
    begin = time.perf_counter()
    result = peer.function(net, X, y, norm=bracket.norm, seed=seed)
    seconds = time.perf_counter() - begin
    right, radius = _again(net, X, y, result, bracket.norm)
    lower, upper = bracket.lower.cpu()[rows], bracket.upper.cpu()[rows]
    below = radius < lower * (1 - ROUNDING)
    if bool(below.any()):
        row = int(below.nonzero()[0])
        raise BoundsInconsistentError(
            f"{peer.library}'s {peer.name} changes the decision at row {int(rows[row])} with radius"
            f" {radius[row]:.9g}, below the certified {lower[row]:.9g} ({int(below.sum())} such points)."
        )
    unbroken, wrong = int((right & radius.isinf()).sum()), int((~right).sum())
    note = f"{len(rows)} of {len(bracket)} points, {wrong} wrong without any attack, {unbroken} not broken"
    median = float(radius[right].quantile(0.5, interpolation="higher")) if bool(right.any()) else math.nan
    smaller = int((radius < upper * (1 - LEAST_GAIN)).sum())
    return CrossCheck(peer.name, peer.library, median, smaller, seconds, note)


def _again(net: Score, X: Tensor, y: Tensor, result: AttackResult, norm: float) -> tuple[Tensor, Tensor]:
    """Which points are right, and the radii found, both with a float64 copy of the net; on the CPU."""
    score, dtype = net, X.dtype
    if isinstance(net, nn.Module):
        score, dtype = as_float64(copy.deepcopy(net)), torch.float64
    label = y.to(dtype) if y.is_floating_point() else y
    x, d = X.to(dtype), result.perturbation.to(dtype)
    with torch.no_grad():
        right = margin_of(score(x), label) > 0
        radius = torch.where(right, torch.inf, 0.0).double()
        for factor in STRETCHES:
            flips = margin_of(score(x + factor * d), label) <= 0
            found = torch.where(flips & result.success, lengths(factor * d, norm).double(), torch.inf)
            radius = torch.minimum(radius, found)
    return right.cpu(), radius.cpu()
