"""A head on frozen embeddings, whose labels put several kinds together (Min & Vidal, ICML 2024, Fig. 4).

    x = ResNet-152's 2048 features of a Caltech-256 image,   y = its class mod 10,   c the mean of the training rows
    f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) + b,   2000 neurons            (Min & Vidal 2024)

The features cannot be had here, so the published size takes yours: a file with X (n, D) and y (n,), the classes 0..256
in the order of their folders, named by $POLYRELU_CALTECH256 or kept as caltech256.npz where `polyrelu data list` says.
Without one, and at quick size, a mixture seen through random features stands for them:

    x = c relu(A (m_k + s g)),   k < K,   y = k mod 10,   m_k, g and the rows of A Gaussian,   mean of x one half
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from polyrelu.bias import correlation
from polyrelu.claims import Key, Measured, Profile, Values, experiment
from polyrelu.claims.mv24.across_powers import changes, overstated
from polyrelu.claims.mv24.sizes import HEAD_POWERS
from polyrelu.claims.setups.digit_nets import APGD_STEPS, EpochCurves, Head, robust_accuracy
from polyrelu.data import Dataset, read, split_part
from polyrelu.data.images import cached
from polyrelu.nets import PolyReLUNet
from polyrelu.train import published_head

RADII, SHARES = (0.05, 0.1), (0.1,)  # l-infinity, in the published range; l2, of the median |x - c|
ATTACKED = 100
RECIPES: dict[Profile, dict[str, Any]] = {
    "quick": {"width": 200, "epochs": 51, "batch": 100},
    "paper": {"width": 2000, "epochs": 51, "batch": 1000},
}


@final
@dataclass(frozen=True)
class RandomFeatures:
    """``n`` rows of clusters in ``latent`` dimensions, ``spread`` wide, seen through ``dim`` random ReLU features."""

    n: int
    clusters: int
    dim: int
    latent: int
    spread: float

    def sample(self, seed: int) -> Dataset:
        """The same seed, the same rows; clusters of equal size, class k mod 10."""
        source = torch.Generator().manual_seed(seed)
        centres = torch.randn(self.clusters, self.latent, generator=source)
        A = torch.randn(self.latent, self.dim, generator=source)
        cluster = torch.arange(self.n) % self.clusters
        X = ((centres[cluster] + self.spread * torch.randn(self.n, self.latent, generator=source)) @ A).relu()
        return Dataset(X / (2 * X.mean()), cluster % 10, cluster, name="random features")


STAND_INS: dict[Profile, RandomFeatures] = {
    "quick": RandomFeatures(n=2000, clusters=40, dim=256, latent=32, spread=1.2),
    "paper": RandomFeatures(n=30_607, clusters=257, dim=2048, latent=64, spread=1.2),
}


def own_features() -> Path | None:
    """The file of features that somebody named or put into the cache."""
    named = os.environ.get("POLYRELU_CALTECH256")
    return Path(named) if named else cached("caltech256")


def features(profile: Profile, seed: int) -> tuple[Dataset, Dataset, str]:
    """Rows to train on, rows to test (a fifth, as published) and what they are."""
    file = own_features() if profile == "paper" else None
    if file is None:
        stand_in = STAND_INS[profile].sample(seed)
        train, test = split_part(stand_in, "train"), split_part(stand_in, "test")
        return train, test, f"a stand-in, {STAND_INS[profile].clusters} clusters"
    labels = "mod10" if read(str(file)).classes > 10 else "parity"  # so that every class hides several
    return read(f"{file}:train:{labels}"), read(f"{file}:test:{labels}"), f"{file.name}:{labels}"


def _across_powers(values: Values) -> dict[Key, float]:
    return changes(values) | {"most that APGD-CE overstates": max(overstated(values).values())}


@experiment(over={"p": HEAD_POWERS}, combine=_across_powers)
def heads(profile: Profile, seed: int, p: int) -> Measured:
    """One head: accuracy and stable rank after every epoch, robust accuracy from three sides."""
    train, test, about = features(profile, seed)
    epochs = EpochCurves(train, test)
    recipe = RECIPES[profile]
    if profile == "paper":  # as many steps for fewer rows
        recipe = {**recipe, "batch": min(recipe["batch"], max(1, len(train) // 24))}
    net = published_head(train, p, seed=seed, each_epoch=epochs, **recipe).net
    assert isinstance(net, PolyReLUNet) and net.centre is not None
    head = Head(net, train, test, test.subset(slice(ATTACKED)), epochs, APGD_STEPS[profile], box=None)
    values: dict[Key, float] = {
        "accuracy": epochs.accuracy[-1],
        "accuracy on the training rows": epochs.train_accuracy[-1],
        "stable rank": epochs.rank[-1],
    }
    in_linf = robust_accuracy(head, "l∞", RADII, seed)
    values |= in_linf.values()
    drawn = {"l∞": in_linf.lines()}
    if profile == "paper":
        typical = float((test.rows() - net.centre).norm(dim=1).median())
        in_l2 = robust_accuracy(head, "l2", [typical * share for share in SHARES], seed)
        values |= in_l2.values([f"{share:g} |x|" for share in SHARES])
        drawn["l2"] = in_l2.lines(SHARES)
    data = {
        "p": p,
        "about": about,
        **epochs.lines(),
        "sides": drawn,
        "cosines": correlation(train).means.nan_to_num(1.0).tolist() if p == HEAD_POWERS[0] else [],
    }
    return Measured(values, data, note=f"Features: {about}.")
