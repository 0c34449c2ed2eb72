"""Attacks of foolbox 3 (Rauber et al. 2020, JOSS 5(53)) as functions that return our `AttackResult`.

They run on d / unit inside [-8, 8], in the dtype of X, so that their lengths (first radius and step 1) fit any data.
DeepFool is given every class, since naming a number of candidates makes it write to the root log.

foolbox 3.3.4's l2 FMN never projects (its factor is |x|/|x| instead of eps/|d|), so it keeps the first point it jumps
to: about 1 unit, anything between 1 and 2 times the radius. `fmn` puts the published projection back.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.robust.core.margin import Score
from polyrelu.robust.core.norms import NORMS
from polyrelu.robust.core.result import AttackResult
from polyrelu.robust.crosscheck.rescaled_points import HALF_WIDTH, RescaledPoints, seeded

L2, L2_LINF = (2.0,), (2.0, math.inf)


def library() -> Any:
    """foolbox, or an InputError that says how to get it."""
    try:
        with warnings.catch_warnings():
            # foolbox/attacks/blur.py imports a name from where scipy no longer likes it.
            warnings.filterwarnings("ignore", message=".*scipy.ndimage.filters", category=DeprecationWarning)
            return importlib.import_module("foolbox")
    except ImportError as error:
        raise InputError(f'foolbox cannot be imported ({error}): pip install "polyrelu[crosscheck]"') from error


def ddn(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 200
) -> AttackResult:
    """Decoupled direction and norm (Rony et al. 2019), cross-entropy, l2, minimal."""
    return _minimal(score, X, y, norm, L2, seed, lambda points, attacks: attacks.DDNAttack(steps=steps))


def fmn(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 200
) -> AttackResult:
    """Fast minimum norm (Pintor et al. 2021), margin loss, minimal; in l2 with the projection put back."""

    def attack(points: RescaledPoints, attacks: Any) -> Any:
        # Steps have l2 length 1; a cube's corner is sqrt(D) away.
        step = math.sqrt(points.x.shape[1]) if points.norm == math.inf else 1.0
        kind = {1.0: attacks.L1FMNAttack, 2.0: _projecting(attacks), math.inf: attacks.LInfFMNAttack}[points.norm]
        return kind(steps=steps, max_stepsize=step)

    return _minimal(score, X, y, norm, NORMS, seed, attack)


def deepfool(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 50
) -> AttackResult:
    """DeepFool (Moosavi-Dezfooli et al. 2016), linearised margins, 2 % overshoot, l2 or linf, minimal."""

    def attack(points: RescaledPoints, attacks: Any) -> Any:
        kind = attacks.L2DeepFoolAttack if points.norm == 2.0 else attacks.LinfDeepFoolAttack
        return kind(steps=steps, candidates=None)

    return _minimal(score, X, y, norm, L2_LINF, seed, attack)


def _minimal(
    score: Score,
    X: Tensor,
    y: Tensor,
    norm: float | str,
    norms: tuple[float, ...],
    seed: int,
    attack: Callable[[RescaledPoints, Any], Any],
) -> AttackResult:
    points, foolbox = RescaledPoints(score, X, y, norm, norms), library()
    if not len(points):
        return points.result(points.x)
    model = foolbox.PyTorchModel(points.model(points.unit), bounds=(-HALF_WIDTH, HALF_WIDTH), device=points.X.device)
    with seeded(seed, points.X.device):
        u: Tensor = attack(points, foolbox.attacks).run(model, torch.zeros_like(points.x), points.labels())
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
