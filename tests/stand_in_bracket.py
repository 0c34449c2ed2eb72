"""A quick stand-in for the bracket, for tests of what is built around it; also a program that runs with it.

Upper: the way to the mean of the other classes, bisected. Lower: nine tenths of it. Right for no one, but a bracket.
"""

import importlib
import os
import time
from dataclasses import dataclass

import torch

from polyrelu.robust import Bracket, BracketStatus, check_points, lengths, margin_of

room = importlib.import_module("polyrelu.robust")
parts = []  # points of each call; with a GATE the second one waits for that file


@dataclass(frozen=True)
class Budget:
    nodes: int = 2000
    seconds: float | None = None


def bracket(net, X, y, *, norm=2, tol=1e-3, budget=None, pool=None, seed=0, progress=None):
    X, y = check_points(net, X, y)
    rows, labels = pool.rows(), pool.y
    means = torch.stack([rows[labels != label].mean(0) for label in y])
    with torch.no_grad():
        low, high = torch.zeros(len(X), dtype=X.dtype), torch.ones(len(X), dtype=X.dtype)
        broken = margin_of(net(means), y) <= 0
        wrong = margin_of(net(X), y) <= 0
        for _ in range(40):
            middle = (low + high) / 2
            inside = margin_of(net(X + middle[:, None] * (means - X)), y) > 0
            low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
    share = torch.where(wrong | ~broken, 0.0, high)
    perturbation = (share[:, None] * (means - X)).double()
    upper = torch.where(broken | wrong, lengths(perturbation, norm), torch.inf)
    status = [BracketStatus.WRONG if w else BracketStatus.BUDGET if b else BracketStatus.UNBROKEN
              for w, b in zip(wrong, broken, strict=True)]  # fmt: skip
    lower = torch.where(upper.isinf(), 0.1, 0.9 * upper)
    nodes = torch.full((len(X),), (budget or Budget()).nodes, dtype=torch.int64)
    parts.append(len(X))
    end = time.monotonic() + 600
    while len(parts) == 2 and "GATE" in os.environ and not os.path.exists(os.environ["GATE"]):  # noqa: PTH110 - a text
        assert time.monotonic() < end, "the gate was never opened"
        time.sleep(0.01)
    return Bracket(lower, upper, perturbation, tuple(status), float(norm), nodes)


if __name__ == "__main__":
    from polyrelu import cli

    room.bracket, room.Budget = bracket, Budget
    cli.main()
