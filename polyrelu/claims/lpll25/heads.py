"""Heads of 30 neurons on frozen features, trained with ten labels or with two (Li et al., ICLR 2025, Fig. 2c,d).

two labels   f(x) = (1/15) sum_r relu(<w_+r, x> + b_+r) - (1/15) sum_r relu(<w_-r, x> + b_-r);  groups of 3 in order
ten labels   f_i(x) = (1/3) sum_r relu(<w_ir, x>);                                              one group a class
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.claims.lpll25.image_nets import embedding, halved, pictures
from polyrelu.claims.lpll25.sizes import TEN, TWO, ImageTask
from polyrelu.claims.quantity import Key, Quantity
from polyrelu.data import Dataset
from polyrelu.nets import FixedOutputNet, GroupedNet
from polyrelu.train import descend

GROUP, CLASSES = 3, 10
SCALE, RATE, UPDATES = 1e-2, 0.1, 300  # full gradient descent; the paper's are not known, the rerun's rate was .01


def head(net: nn.Module, task: ImageTask, labels: str, seed: int) -> Tensor:
    """cos(mean feature of class i, mean weight of the neurons of group j), [10, 10], after training with ``labels``."""
    fine = pictures(task, seed)[0]
    with torch.no_grad():
        features = torch.cat([embedding(net, rows) for _, rows in fine.blocks()])
    features = features / features.square().mean().sqrt()  # one rate for every extractor
    dim, width = features.shape[1], GROUP * CLASSES // 2
    if labels == TWO:
        start, data = FixedOutputNet(dim, width, scale=SCALE, seed=seed), Dataset(features, halved(fine, task)[0].y)
        run = descend(start, data, loss="logistic", rate=RATE, steps=UPDATES, every=UPDATES)
    else:
        groups, data = GroupedNet(dim, CLASSES, GROUP, scale=SCALE, seed=seed), Dataset(features, fine.y)
        run = descend(groups, data, loss="cross_entropy", rate=RATE, steps=UPDATES, every=UPDATES)
    means = torch.stack([features[fine.y == c].mean(dim=0) for c in range(CLASSES)])
    weight = run.net.get_parameter("weight").detach().reshape(CLASSES, GROUP, dim).mean(dim=1)
    return functional.normalize(means) @ functional.normalize(weight).T


def patterns(cosines: Mapping[str, Tensor]) -> dict[Key, float]:
    """Block means of the head with two labels, the diagonal against the rest with ten."""
    first, number = torch.arange(CLASSES) < CLASSES // 2, torch.arange(CLASSES)
    two, ten, own, same = cosines[TWO], cosines[TEN], first[:, None] == first, number[:, None] == number
    found = {
        TWO: {
            "mean cosine to its own five": float(two[own].mean()),
            "mean cosine to the other five": float(two[~own].mean()),
            "own minus other": float(two[own].mean() - two[~own].mean()),
        },
        TEN: {
            "mean cosine to its own class": float(ten[same].mean()),
            "mean cosine to other classes": float(ten[~same].mean()),
            "own minus other": float(ten[same].mean() - ten[~same].mean()),
            "groups nearest to their own class": float((ten.argmax(dim=0) == number).sum()),
        },
    }
    return {
        Quantity(name, head=f"head with {labels}"): value
        for labels, values in found.items()
        for name, value in values.items()
    }
