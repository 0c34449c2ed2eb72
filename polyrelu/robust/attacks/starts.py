"""Where a search begins.

relu(z)^p is flat for z <= 0, so for p > 1 a search from x itself hardly sees the neurons of the other class and walks
along its own centre only: a true local optimum, sqrt(2) times too far on F^(p). Points of the other class lead to the
optimum for p > 2, their mean for p = 1: `OtherClassStart` gives both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from polyrelu.checks import check_fields
from polyrelu.robust.attacks.task import TARGETED, AttackTask

Anchor = tuple[Tensor, Tensor | None]  # points (n, D), and the classes (n,) they lead to, if to any in particular


class Start(ABC):
    """Points to begin at, one set after another; an attack at a radius begins on the way to them, inside its ball."""

    def __post_init__(self) -> None:
        """Check the settings: they are what their annotations say, and whole numbers are >= 1."""
        check_fields(self, least=1)

    @property
    def needs_other_class(self) -> bool:
        """Whether there is none in a pool of one class alone."""
        return False

    @abstractmethod
    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """One point for each row of ``task.X``, as often as the start has points to offer."""


@final
@dataclass(frozen=True)
class ZeroStart(Start):
    """x itself."""

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """X, once."""
        yield task.X, None


@final
@dataclass(frozen=True)
class RandomStart(Start):
    """x + s g, g ~ N(0, I), s the spread of the pool per coordinate; drawn per point, whatever the batch."""

    starts: int = 1

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """``starts`` random points."""
        spread = float((task.pool.X - task.pool.X.mean(dim=0)).square().mean().sqrt()) or 1.0
        for number in range(self.starts):
            keys = ([task.seed, number, row] for row in task.rows.tolist())
            draws = np.stack([np.random.default_rng(key).standard_normal(task.X.shape[1]) for key in keys])
            yield task.X + spread * torch.from_numpy(draws).to(task.X), None


@final
@dataclass(frozen=True)
class OtherClassStart(Start):
    """``samples`` rows of other classes, far from each other, and the mean of every other class."""

    samples: int = 8
    needs_other_class = True

    def __post_init__(self) -> None:
        check_fields(self, least=0)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The same points for all rows of one class."""
        labels = sorted(set(task.y.tolist()))
        choice = {label: task.pool.against(label, self.samples, task.seed) for label in labels}
        for number in range(max(len(rows) for rows, _ in choice.values())):
            Z, target = torch.empty_like(task.X), torch.empty_like(task.y)
            for label, (rows, classes) in choice.items():
                own = task.y == label
                Z[own], target[own] = rows[number % len(rows)], classes[number % len(rows)]
            yield Z, target


@final
@dataclass(frozen=True)
class LikeliestRivalsStart(Start):
    """x itself, towards each of the ``count`` classes whose margin, linearised at x, falls lowest inside the ball."""

    count: int = 3

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """X, once for each class."""
        targets = [(task.y + turn) % task.classes for turn in range(1, task.classes)]
        falls = []
        for target in targets:
            value, g = replace(task, target=target).slope(task.X, TARGETED)
            falls.append(value + ((task.linear_minimiser(g) - task.X) * g).sum(dim=1))
        order = torch.stack(falls).argsort(dim=0)[: self.count]
        for target in torch.stack(targets).gather(0, order):
            yield task.X, target


@final
@dataclass(frozen=True)
class NearestRivalStart(Start):
    """The row of every other class in the pool that is nearest to x in l2, drawn into the ball."""

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """One for each other class in the pool; x itself where there is none."""
        labels = sorted(task.pool.means)
        found = {label: task.pool.nearest(task.X, label) for label in labels}
        for turn in range(max(1, len(labels) - 1)):
            Z, target = task.X.clone(), (task.y + 1) % task.classes
            for own in set(task.y.tolist()):
                others = [label for label in labels if label != own]
                if others:
                    here, other = task.y == own, others[turn % len(others)]
                    Z[here], target[here] = found[other][here], other
            yield task.project(Z), target
