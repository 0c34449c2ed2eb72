"""Six classifiers on one mixture: where each breaks (Min & Vidal 2025, Fig. 2)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mv25 import sizes
from polyrelu.claims.mv25.sizes import GAUSSIAN, HALF, MODELS
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Quantity, Values
from polyrelu.claims.setups.mixture_nets import FLOW_TIME, TEST_SEED, proven_for_bayes, sorted_radii
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import MLP, BayesClassifier, LogisticRegression, PolyReLUNet, TanhNet
from polyrelu.robust import Budget, bracket, check_bounds, curve
from polyrelu.train import Until, descend, flow

EDGE = tuple(k / 200 for k in range(132, 146))  # .66 to .725, around √2/2, where the lines fall


def _beside_bayes(values: Values) -> dict[str, float]:
    net, bayes = (values.along("radius", "accuracy", model=model) for model in ("pReLU", "Bayes"))
    return {"largest gap between pReLU and Bayes": max(abs(net[r] - bayes[r]) for r in EDGE)}


@experiment(over={"model": MODELS}, combine=_beside_bayes)
def models(profile: Profile, seed: int, model: str) -> Measured:
    """One classifier, attacked; pReLU, ReLU and Bayes also proven."""
    size = sizes.FIG2[profile]
    dtype = torch.float64 if profile == "quick" else torch.float32
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, size.alpha, dtype=dtype)
    data = mixture.sample(size.samples, seed=seed, balanced=False)
    test = mixture.sample(size.points, seed=TEST_SEED)
    radii = bracket(_model(model, mixture, data, size.width, seed), test.rows(), test.y, budget=Budget(nodes=60))
    if model == "Bayes":
        radii = replace(radii, lower=proven_for_bayes(test.rows(), test.y, mixture).double())
        check_bounds(radii.lower, radii.upper)
    line = curve(radii)
    looks = (0.3077, *(EDGE if model in ("pReLU", "Bayes") else ()))
    accuracies = {Quantity("accuracy", radius=r): line.attacked(r) for r in looks}
    return Measured({"median radius": line.median_radius.upper, **accuracies}, {"model": model, **sorted_radii(radii)})


def _model(model: str, mixture: OrthonormalMixture, data: Dataset, width: int, seed: int) -> nn.Module:
    """pReLU and ReLU by the flow, as long as the nets of 2024; the others by SGD with batches of 100 to loss 1e-2."""
    dim, dtype = mixture.dim, mixture.dtype
    if model == "Bayes":
        return BayesClassifier(mixture.centres, mixture.labels, mixture.alpha)
    if model in ("pReLU", GAUSSIAN, "ReLU"):
        init = "gaussian" if model == GAUSSIAN else "balanced"
        net = PolyReLUNet(dim, width, 1 if model == "ReLU" else 3, init=init, scale=1e-7, seed=seed, dtype=dtype)
        return flow(net, data, loss="exp", until=Until(time=FLOW_TIME)).net
    start: nn.Module
    if model == "LogReg":
        start = LogisticRegression(dim, bias=False, seed=seed, dtype=dtype)
    elif model == "Tanh":
        start = TanhNet(dim, width, scale=1e-2, seed=seed, dtype=dtype)
    else:
        start = MLP(dim, width, 4, scale=0.5 if model == HALF else 1.0, seed=seed, dtype=dtype)
    rate = 1.0 if model == "LogReg" else 0.1
    return descend(start, data, method="sgd", rate=rate, loss="exp", until=1e-2, seed=seed).net
