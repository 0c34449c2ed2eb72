"""Minimal attacks of other libraries: do they find anything smaller than ours, and nothing below what is proven?

foolbox 3 (Rauber et al. 2020, JOSS 5(53)) runs on d / unit inside [-8, 8], in the dtype of X, so that its lengths
(first radius and step 1) fit any data. DeepFool is given every class, since naming a number of candidates makes it
write to the root log. Its l2 FMN (3.3.4) never projects (its factor is |x|/|x| instead of eps/|d|), so it keeps the
first point it jumps to: about 1 unit, anything between 1 and 2 times the radius. `fmn` puts the published projection
back.

FAB of AutoAttack (Croce & Hein 2020; the package pyautoattack) clamps to [0, 1] in float32 and says nothing. Here each
point sits at (1/2, ..., 1/2) of a box of its own with a half-width of 8 units, so that no perturbation of interest
reaches its edge. `attack_single_run` is one start on all rows; the loops over restarts in the package's `perturb` only
drop the rows already broken, which rows with coordinates of their own cannot follow.
"""

from __future__ import annotations

import copy
import importlib
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.errors import InputError, require
from polyrelu.nets import as_float64
from polyrelu.robust.bracketing.bracket import BoundsInconsistentError, Bracket
from polyrelu.robust.core.attack_result import AttackResult
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.norms import NORMS, check_norm, lengths
from polyrelu.robust.crosscheck.rescaled_points import HALF_WIDTH, RescaledPoints, RescaledScore, seeded

LIBRARIES = {"foolbox": "foolbox", "pyautoattack": "pyautoattack.fab_pt"}  # the module that has the attacks
L2, L2_LINF = (2.0,), (2.0, math.inf)
NORM_NAMES = {1.0: "L1", 2.0: "L2", math.inf: "Linf"}
LEAST_GAIN = 1e-6  # relative: a smaller gain does not count
ROUNDING = 1e-9  # relative: float64 rounding of a margin that is 0 to within its last digits
STRETCHES = (1.0, 1 + 1e-6, 1 + 1e-5)  # what a float32 perturbation may need to flip the net in float64 as well
FIRST_EPS = 0.15  # radius of pyautoattack's random starts, of which none is taken


def library(name: str) -> Any:
    """The module of one of `LIBRARIES`, or an InputError that says how to get it."""
    try:
        with warnings.catch_warnings():
            # foolbox/attacks/blur.py imports a name from where scipy no longer likes it.
            warnings.filterwarnings("ignore", message=".*scipy.ndimage.filters", category=DeprecationWarning)
            return importlib.import_module(LIBRARIES[name])
    except ImportError as error:
        raise InputError(f'{name} cannot be imported ({error}): pip install "polyrelu[crosscheck]"') from error


def ddn(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 200
) -> AttackResult:
    """Decoupled direction and norm (Rony et al. 2019), cross-entropy, l2, minimal."""
    points = RescaledPoints(score, X, y, norm, L2)
    return _run_foolbox(points, seed, lambda attacks: attacks.DDNAttack(steps=steps))


def fmn(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 200
) -> AttackResult:
    """Fast minimum norm (Pintor et al. 2021), margin loss, minimal; in l2 with the projection put back."""
    points = RescaledPoints(score, X, y, norm)

    def attack(attacks: Any) -> Any:
        # Steps have l2 length 1; a cube's corner is sqrt(D) away.
        step = math.sqrt(points.x.shape[1]) if points.norm == math.inf else 1.0
        kind = {1.0: attacks.L1FMNAttack, 2.0: _projecting(attacks), math.inf: attacks.LInfFMNAttack}[points.norm]
        return kind(steps=steps, max_stepsize=step)

    return _run_foolbox(points, seed, attack)


def deepfool(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 50
) -> AttackResult:
    """DeepFool (Moosavi-Dezfooli et al. 2016), linearised margins, 2 % overshoot, l2 or linf, minimal."""
    points = RescaledPoints(score, X, y, norm, L2_LINF)
    name = "L2DeepFoolAttack" if points.norm == 2.0 else "LinfDeepFoolAttack"
    return _run_foolbox(points, seed, lambda attacks: getattr(attacks, name)(steps=steps, candidates=None))


def fab(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100
) -> AttackResult:
    """Fast adaptive boundary attack (Croce & Hein 2020), minimal, one start at the point."""
    points, module = RescaledPoints(score, X, y, norm), library("pyautoattack")
    if not len(points):
        return points.result(points.x)
    unit = 2 * HALF_WIDTH * points.unit
    # every row at the middle of its box; as an image, which is all that the package was made for
    u = torch.full((len(points), 1, 1, points.x.shape[1]), 0.5, dtype=torch.float32, device=points.X.device)
    model, norm = RescaledScore(points, unit, centre=0.5), NORM_NAMES[points.norm]
    attack = module.FABAttack_PT(model, norm=norm, n_iter=steps, eps=FIRST_EPS, seed=seed, device=u.device)
    attack.target_class = None
    with seeded(seed, u.device):
        found = attack.attack_single_run(u, points.labels, use_rand_start=False, is_targeted=False)
    return points.result((found.detach().flatten(1) - 0.5).to(unit.dtype) * unit[:, None])


def _run_foolbox(points: RescaledPoints, seed: int, attack: Callable[[Any], Any]) -> AttackResult:
    foolbox = library("foolbox")
    if not len(points):
        return points.result(points.x)
    score = RescaledScore(points, points.unit, centre=0.0)
    model = foolbox.PyTorchModel(score, bounds=(-HALF_WIDTH, HALF_WIDTH), device=points.X.device)
    with seeded(seed, points.X.device):
        u: Tensor = attack(foolbox.attacks).run(model, torch.zeros_like(points.x), points.labels)
    return points.result(u.detach() * points.unit[:, None])


def _projecting(attacks: Any) -> Any:
    class ProjectingFMN(attacks.L2FMNAttack):  # type: ignore[misc]
        """l2 FMN that keeps its perturbation within eps, as published."""

        def project(self, x: Any, x0: Any, epsilon: Any) -> Any:
            """The nearest point to x within epsilon of x0."""
            d = (x - x0).raw
            length = torch.linalg.vector_norm(d, dim=1).clamp(min=1e-12)
            return x0 + type(x)(d * (epsilon.raw / length).clamp(max=1.0)[:, None])

    return ProjectingFMN


@final
@dataclass(frozen=True)
class Peer:
    """One minimal attack of another library, the norms it is made for, and the function above that runs it."""

    name: str
    library: str
    norms: tuple[float, ...]
    function: Callable[..., AttackResult]


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("ddn", "foolbox", L2, ddn),
        Peer("fmn", "foolbox", NORMS, fmn),
        Peer("deepfool", "foolbox", L2_LINF, deepfool),
        Peer("fab", "pyautoattack", NORMS, fab),
    )
}


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
    if attacks is None or attacks == "all":
        return [PEERS[name] for name in able]
    names = [attacks] if isinstance(attacks, str) else list(attacks)
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
