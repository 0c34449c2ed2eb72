"""What an attack's own file sees: losses, the points of one batch with the best found so far, and line searches.

With normalised steps only the direction of the gradient and the order of the values matter, so each loss stands here
in the form that never under- or overflows. Lower is better for the attacker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.core.margin import Score, margin_of
from polyrelu.robust.core.norms import lengths, linear_minimiser, project, steepest
from polyrelu.robust.core.pool import LabelledRows


@final
@dataclass(frozen=True)
class Loss:
    """``value(logits, y, target)`` -> (n,), to descend; ``target`` (n,) holds the class aimed at.

    ``targeted``: it compares with that class alone; the others do not read ``target``.
    """

    name: str
    value: Callable[[Tensor, Tensor, Tensor], Tensor] = field(repr=False)
    targeted: bool = False


def _margin(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    return margin_of(logits, y)


def _targeted_margin(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    if logits.ndim == 1:
        return y * logits
    return (logits.gather(1, y[:, None]) - logits.gather(1, target[:, None]))[:, 0]


def _log_odds(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    if logits.ndim == 1:
        return y * logits
    others = logits.scatter(1, y[:, None], -torch.inf).logsumexp(dim=1)
    return logits.gather(1, y[:, None])[:, 0] - others


def _exponential(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    return -(-_log_odds(logits, y, target)).exp()


MARGIN = Loss("margin", _margin)  # y f, or f_y - max_{c != y} f_c
TARGETED = Loss("targeted margin", _targeted_margin, targeted=True)  # f_y - f_c, every c != y in turn
# log p_y/(1 - p_y) = f_y - log sum_{c != y} exp f_c. Cross-entropy is log(1 + exp(-this)), and the exponential loss
# exp(-this): the same steps, but those two are flat in floating point where the net is sure of itself.
CROSS_ENTROPY = Loss("cross-entropy", _log_odds)
EXPONENTIAL = Loss("exponential", _exponential)  # -exp(-y f) as it stands, underflow included: for `PublishedPGD`

BLOCK = 16  # rows; matrix products give a row the same bits in any number of whole blocks, but not in odd sizes


@final
class CountedScore:
    """A score that counts the rows evaluated, and gives each row the same bits in any batch.

    Rounding that changes with the batch would be amplified by every step of a search: rows are filled up to blocks.
    """

    def __init__(self, score: Score) -> None:
        self.score = score
        self.rows = 0

    def __call__(self, Z: Tensor) -> Tensor:
        """Logits of the rows of ``Z``."""
        self.rows += len(Z)
        filler = Z.detach()[-1:].expand(-len(Z) % BLOCK, -1)
        return self.score(torch.cat([Z, filler]))[: len(Z)]


@final
@dataclass(eq=False)
class BestFound:
    """The shortest perturbed point found to be broken so far, and its float64 size: inf where there is none.

    Both are replaced, never written into: where nothing was found Z may be the points themselves.
    """

    Z: Tensor
    size: Tensor

    @classmethod
    def none(cls, X: Tensor) -> BestFound:
        """Nothing found yet."""
        return cls(X, torch.full((len(X),), torch.inf, dtype=torch.float64, device=X.device))


@final
@dataclass(kw_only=True, eq=False)
class AttackTask:
    """Rows to attack, one per point and start; all were classified rightly.

    X (n, D), y (n,) : the clean points and their labels
    rows (n,) : their numbers in the whole set, for whatever is drawn per point
    target (n,) : the class aimed at, for targeted losses of several classes
    radius (n,) float64 or None : the ball every step must stay in, for attacks at a radius
    best : updated by every evaluation, so that an attack need not keep its own record
    """

    score: CountedScore
    X: Tensor
    y: Tensor
    rows: Tensor
    target: Tensor
    norm: float
    pool: LabelledRows
    best: BestFound
    bounds: tuple[float, float] | None = None
    radius: Tensor | None = None
    seed: int = 0
    classes: int = 2

    def take(self, index: Tensor) -> AttackTask:
        """The rows with these numbers, of which nothing is known yet; all of them in order are not copied."""
        if len(index) == len(self.X) and bool((index == torch.arange(len(index), device=index.device)).all()):
            return replace(self, best=BestFound.none(self.X))
        X = self.X[index]
        radius = None if self.radius is None else self.radius[index]
        y, rows, target = self.y[index], self.rows[index], self.target[index]
        return replace(self, X=X, y=y, rows=rows, target=target, radius=radius, best=BestFound.none(X))

    def size(self, Z: Tensor) -> Tensor:
        """|Z - X| of each row, summed in float64."""
        return lengths(Z - self.X, self.norm, torch.float64)

    def reach(self) -> Tensor:
        """A length (n,) beyond which no search need go: twice the distance to the farthest class mean, or to 0."""
        middles = [torch.zeros_like(self.X[0]), *self.pool.means.values()]
        far = torch.stack([lengths(self.X - middle, self.norm) for middle in middles]).amax(dim=0)
        return 2 * torch.where(far > 0, far, 1.0)

    def within(self) -> Tensor:
        """The radius (n,) in the dtype of X, smaller by as much as x + d may be rounded to a larger length."""
        radius, eps = self.reach() if self.radius is None else self.radius, torch.finfo(self.X.dtype).eps
        grain = eps * self.X.abs().amax(dim=1).double() * float(self.X.shape[1] ** (1 / self.norm))
        return (radius * (1 - 4 * eps) - grain).clamp(min=0).to(self.X)

    def project(self, Z: Tensor) -> Tensor:
        """Z back into the ball and the box. Clamping brings each entry nearer to x, so the ball is not left again."""
        if self.radius is not None:
            Z = self.X + project(Z - self.X, self.within(), self.norm)
        return Z if self.bounds is None else Z.clamp(*self.bounds)

    def inside(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Z drawn back along the straight way to X until it is in the ball (and the box), and the radius (n,)."""
        radius = self.reach() if self.radius is None else self.radius.to(Z)
        step = Z - self.X
        far = lengths(step, self.norm)
        share = torch.where(far > radius, radius / torch.where(far > 0, far, 1.0), 1.0)
        return self.project(self.X + step * share[:, None]), radius

    def remember(self, Z: Tensor, margin: Tensor) -> None:
        """Keep the rows of Z that are broken and shorter than what was known, if the ball allows them."""
        broken = margin <= 0
        if not bool(broken.any()):
            return
        size = self.size(Z)
        better = broken & (size < self.best.size)
        if self.radius is not None:
            better &= size <= self.radius
        self.best.Z = torch.where(better[:, None], Z, self.best.Z)
        self.best.size = torch.where(better, size, self.best.size)

    @torch.no_grad()
    def margin(self, Z: Tensor) -> Tensor:
        """The margin at each row of Z, remembered."""
        margin = margin_of(self.score(Z), self.y)
        self.remember(Z, margin)
        return margin

    @torch.no_grad()
    def value(self, Z: Tensor, loss: Loss) -> Tensor:
        """The loss at each row of Z, remembered."""
        logits = self.score(Z)
        self.remember(Z, margin_of(logits, self.y))
        return loss.value(logits, self.y, self.target)

    def slope(self, Z: Tensor, loss: Loss, remember: bool = True) -> tuple[Tensor, Tensor]:
        """The loss at each row of Z and its gradient; a gradient that is not finite becomes 0."""
        with torch.enable_grad():
            Z = Z.detach().requires_grad_()
            logits = self.score(Z)
            value = loss.value(logits, self.y, self.target)
            known = value.requires_grad
            gradient = torch.autograd.grad(value.sum(), Z, allow_unused=True)[0] if known else None
        Z = Z.detach()
        if remember:
            self.remember(Z, margin_of(logits.detach(), self.y))
        g = torch.zeros_like(Z) if gradient is None else gradient
        return value.detach(), torch.where(g.isfinite().all(dim=1, keepdim=True), g, 0.0)

    def linear_minimiser(self, g: Tensor) -> Tensor:
        """argmin <g, z> over the ball and the box around x."""
        slack = None if self.bounds is None else (self.X - self.bounds[0], self.bounds[1] - self.X)
        return self.X + linear_minimiser(g, self.within(), self.norm, slack)

    def downhill(self, Z: Tensor, g: Tensor) -> Tensor:
        """The step of unit norm that lowers the loss most, among the coordinates the box lets move."""
        if self.bounds is not None:
            low, high = Z - self.bounds[0], self.bounds[1] - Z  # how far each may still move
            g = torch.where((g > 0) & (low <= 0) | (g < 0) & (high <= 0), 0.0, g)
        return -steepest(g, self.norm)


def first_crossing(task: AttackTask, ends: Tensor, samples: int, halvings: int) -> Tensor:
    """The first broken point on the way from x to each end, or x where none is seen.

    A ray may cross the boundary more than once: the way is scanned at ``samples`` equal distances, and the interval
    before the first broken one is halved ``halvings`` times. Error: a sliver thinner than |end - x|/samples is missed.
    """
    step = task.project(ends) - task.X
    t = torch.full_like(task.X[:, 0], torch.inf)
    for number in range(1, samples + 1):
        here = torch.full_like(t, number / samples)
        broken = task.margin(task.X + here[:, None] * step) <= 0
        t = torch.where(broken & t.isinf(), here, t)
    return halve(task, step, t - 1 / samples, t, halvings)


def shrink(task: AttackTask, halvings: int) -> None:
    """Pull the best point of every row towards x until the boundary, by bisection."""
    known = task.best.size.isfinite()
    t = torch.where(known, torch.ones_like(task.X[:, 0]), torch.inf)
    halve(task, task.best.Z - task.X, torch.zeros_like(t), t, halvings)


def halve(task: AttackTask, step: Tensor, low: Tensor, high: Tensor, halvings: int) -> Tensor:
    """x + high step after halving (low, high) towards the boundary; x where ``high`` is infinite."""
    none = high.isinf()
    low, high = torch.where(none, 0.0, low), torch.where(none, 0.0, high)
    for _ in range(halvings):
        middle = (low + high) / 2
        broken = task.margin(task.X + middle[:, None] * step) <= 0
        low, high = torch.where(broken, low, middle), torch.where(broken, middle, high)
    return torch.where(none[:, None], task.X, task.X + high[:, None] * step)
