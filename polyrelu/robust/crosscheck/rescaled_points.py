"""The points in the coordinates that attacks of other libraries need, and the verification of what they find.

The libraries are full of absolute constants: boxes [0, 1] that are clamped to silently, first steps of length 1,
guards of 1e-4 and 1e-8, softmaxes that underflow in float32. So each rightly classified row gets its own coordinates

    u = centre + d / unit_i,        logits = (f_c - f_own) / margin_i(x_i),  own class last

in which the point is the middle of the box, its edges are far away whatever the range of the data, a radius of interest
is about 1 and the clean margin is 1. No decision changes: softmax, DeepFool and FAB only see differences of
logits, and one logit z becomes the pair [-y z, 0], which is [-z/2, z/2] up to a shift. The own class comes last because
argmax takes the first of equals: a margin of exactly 0 then counts as broken, as it does here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.robust.core.attack_result import AttackResult
from polyrelu.robust.core.margin import Score, check_points, margin_of
from polyrelu.robust.core.norms import NORMS, check_norm, lengths, steepest

HALF_WIDTH = 8.0  # half-width of the box, in units, for attacks that choose their own radius
RAY_LENGTHS = 4  # lengths tried along the gradient when looking for the unit, each twice the last


@final
class RescaledPoints:
    """The rows of ``X`` that ``score`` gets right, in coordinates of their own.

    unit : (m,) how far the plain steepest-descent ray goes until the decision changes, up to the next power of 2 (so
        that nothing is rounded and the answer is not given away). Where 8 times the linear estimate margin/|gradient|
        is not enough, twice that estimate. Each row has its own, so that no row depends on the others.
    labels : (m,) what the attack is given: the own class is always the last logit
    """

    def __init__(self, score: Score, X: Tensor, y: Tensor, norm: float | str, norms: tuple[float, ...] = NORMS) -> None:
        self.norm = check_norm(norm)
        require(self.norm in norms, "norm", norm, f"{' or '.join(f'{known:g}' for known in norms)} for this attack")
        self.score = score
        self.X, self.y = check_points(score, X, y)
        self.passes = 0
        logits = self.logits_at(self.X)
        self.classes = 2 if logits.ndim == 1 else logits.shape[1]
        self.right = margin_of(logits, self.y) > 0
        self.x, self.label = self.X[self.right], self.y[self.right]
        self.labels = torch.full((len(self),), self.classes - 1, dtype=torch.int64, device=self.X.device)
        logits = logits[self.right]
        self.others: Tensor | None = None
        if logits.ndim == 2:
            keep = torch.ones_like(logits, dtype=torch.bool).scatter(1, self.label[:, None], False)
            index = torch.arange(self.classes, device=self.X.device).expand(len(logits), -1)
            self.others = index[keep].reshape(len(logits), self.classes - 1)
        relative = self.relative(logits)
        margin = -relative.amax(dim=1)
        # A point on the very boundary would blow the other logits up; 1e-6 of their spread is small enough.
        self.weight = 1 / torch.maximum(margin, 1e-6 * -relative.amin(dim=1))
        self.unit = self._unit(margin)

    def __len__(self) -> int:
        return len(self.x)

    def logits_at(self, x: Tensor) -> Tensor:
        """The score at ``x``, differentiable in ``x`` alone: the net's own gradients are not touched."""
        self.passes += len(x)
        if x.requires_grad and torch.is_grad_enabled():
            result: Tensor = _InputGradient.apply(x, self)  # type: ignore[no-untyped-call]
            return result
        with torch.no_grad():
            return self.score(x)

    def relative(self, logits: Tensor) -> Tensor:
        """(m, C - 1): the logits of the other classes minus that of the own class."""
        if self.others is None:
            return -(self.label * logits)[:, None]
        return logits.gather(1, self.others) - logits.gather(1, self.label[:, None])

    def check(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Whether x + d, as it is in the dtype of X, changes the decision; and its true distance from x, float64.

        A row that is not finite changes nothing: NaN is what some attacks end with where the net is flat.
        """
        d = torch.where(d.isfinite().all(dim=1, keepdim=True), d, 0.0)
        moved = self.x + d
        return margin_of(self.logits_at(moved), self.label) <= 0, lengths(moved.double() - self.x.double(), self.norm)

    def result(self, d: Tensor) -> AttackResult:
        """What the perturbations ``d`` of the attacked rows are worth: checked on x + d, in the original space."""
        d = (self.x + d) - self.x  # what rounding leaves of it
        flips, size = self.check(d)
        perturbation = torch.zeros_like(self.X)
        perturbation[self.right] = torch.where(flips[:, None], d, 0.0)
        radius = torch.zeros(len(self.X), dtype=torch.float64, device=self.X.device)
        radius[self.right] = torch.where(flips, size, torch.inf)
        return AttackResult(perturbation, radius, self.passes)

    def _unit(self, margin: Tensor) -> Tensor:
        with torch.enable_grad():
            x = self.x.clone().requires_grad_()
            value = -self.relative(self.logits_at(x)).amax(dim=1)
            (slope,) = torch.autograd.grad(value.sum(), x)
        direction = -steepest(slope, self.norm)
        size = lengths(self.x, self.norm)
        linear = margin / (slope * -direction).sum(dim=1)
        linear = torch.where(linear.isfinite(), linear, torch.where(size > 0, size, 1.0))
        linear = torch.maximum(linear, 16 * torch.finfo(size.dtype).eps * size)  # less would not move x at all
        first = torch.exp2((1.001 * linear).log2().ceil())
        unit, found = 2 * first, torch.zeros_like(self.label, dtype=torch.bool)
        for step in range(RAY_LENGTHS):
            flips, _ = self.check((2**step * first)[:, None] * direction)
            unit = torch.where(flips & ~found, 2**step * first, unit)
            found |= flips
        return unit


@final
class RescaledScore(nn.Module):
    """Logits (m, C) of all rows at once as a function of their own coordinates u = centre + d / unit (m, ...)."""

    def __init__(self, points: RescaledPoints, unit: Tensor, centre: float) -> None:
        super().__init__()
        self._points = (points,)  # in a tuple: moving or switching this module must not reach the user's net
        self.unit, self.centre = unit, centre
        self.eval()

    def forward(self, u: Tensor) -> Tensor:
        """The other classes, then the own class at 0; in the dtype of ``u``."""
        points = self._points[0]
        if len(u) != len(points):
            raise RuntimeError(f"An attack asked for {len(u)} of {len(points)} rows: rows must stay together.")
        d = (u.reshape(len(u), -1) - self.centre).to(points.x.dtype) * self.unit[:, None]
        relative = points.relative(points.logits_at(points.x + d)) * points.weight[:, None]
        return torch.cat([relative, torch.zeros_like(relative[:, :1])], dim=1).to(u.dtype)


class _InputGradient(torch.autograd.Function):
    """The score, with a backward pass that stops at the input.

    Attacks of other libraries call ``backward()``, which would otherwise add to the ``.grad`` of the weights.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, points: RescaledPoints) -> Tensor:
        """The score at x, with a graph kept aside."""
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.out = points.score(ctx.x)
        ctx.points = points
        out: Tensor = ctx.out.detach()
        return out

    @staticmethod
    def backward(ctx: Any, *given: Any) -> tuple[Tensor, None]:
        """One gradient pass; the graph stays, since FAB asks for one class after the other."""
        ctx.points.passes += len(ctx.x)
        if not ctx.out.requires_grad:
            return torch.zeros_like(ctx.x), None
        (slope,) = torch.autograd.grad(ctx.out, ctx.x, given[0], retain_graph=True)
        return slope, None


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Gradients on, and the global random state put back afterwards: the libraries draw from nothing else."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield
