"""Six classifiers on one mixture: where each breaks (Min & Vidal 2025, Fig. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from polyrelu.claims.claim import Claim, Experiment, Measured, Profile, Standing, at_most, near
from polyrelu.claims.ideal_bayes import proven_for_bayes
from polyrelu.claims.nets_of_mixtures import FLOW_TIME, TEST_SEED
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import MLP, BayesClassifier, LogisticRegression, PolyReLUNet, TanhNet
from polyrelu.robust import Bracket, Budget, bracket, check_sandwich, curve
from polyrelu.train import Until, descend, flow

GAUSSIAN, HALF = "pReLU, Gaussian start", "MLP(4), half start"  # beside the others: starts are not published
MODELS = ("pReLU", GAUSSIAN, "ReLU", "Bayes", "MLP(4)", HALF, "Tanh", "LogReg")
SIZES: Mapping[Profile, tuple[int, int, float, int]] = {
    "quick": (200, 1000, 0.1, 60),
    "paper": (2000, 20_000, 0.3, 200),
}
EDGE = tuple(k / 200 for k in range(132, 146))  # .66 to .725, around √2/2, where the lines fall
READ_OFF = {  # robust accuracy by radius
    "ReLU": {0.205: 1.0, 0.231: 0.86, 0.256: 0.08, 0.282: 0.0},
    "MLP(4)": {0.205: 1.0, 0.231: 0.97, 0.256: 0.13, 0.282: 0.0},
    "Tanh": {0.205: 1.0, 0.231: 0.12, 0.256: 0.0},
    "LogReg": {0.205: 1.0, 0.231: 0.12, 0.256: 0.0},
    "pReLU": {0.667: 1.0, 0.692: 0.92, 0.718: 0.0},
    "Bayes": {0.667: 1.0, 0.692: 0.92, 0.718: 0.0},
}


def drawn(radii: Bracket) -> dict[str, Any]:
    """Sorted finite radii, for a figure, and of how many points."""
    sides = {"lower": radii.lower, "upper": radii.upper}
    found = {name: [round(float(r), 5) for r in side.sort().values if r.isfinite()] for name, side in sides.items()}
    return {**found, "points": len(radii)}


def models(profile: Profile, seed: int, model: str) -> Measured:
    """One classifier, attacked; pReLU, ReLU and Bayes also proven."""
    dim, samples, alpha, points = SIZES[profile]
    dtype = torch.float64 if profile == "quick" else torch.float32
    mixture = OrthonormalMixture(dim, 12, 8, alpha, dtype=dtype)
    data = mixture.sample(samples, seed=seed, balanced=False)
    test = mixture.sample(points, seed=TEST_SEED)
    radii = bracket(_model(model, mixture, data, seed), test.rows(), test.y, budget=Budget(nodes=60))
    if model == "Bayes":
        radii = replace(radii, lower=proven_for_bayes(test.rows(), test.y, mixture).double())
        check_sandwich(radii.lower, radii.upper)
    line = curve(radii)
    values = {f"{model}: median radius": line.median_radius.upper}
    values |= {_accuracy(model, r): line.attacked(r) for r in (0.3077, *(EDGE if model in ("pReLU", "Bayes") else ()))}
    return Measured(values, {"model": model, **drawn(radii)})


def _model(model: str, mixture: OrthonormalMixture, data: Dataset, seed: int) -> nn.Module:
    """pReLU and ReLU by the flow, as long as the nets of 2024; the others by SGD with batches of 100 to loss 1e-2."""
    dim, dtype = mixture.dim, mixture.dtype
    if model == "Bayes":
        return BayesClassifier(mixture.centres, mixture.labels, mixture.alpha)
    if model in ("pReLU", GAUSSIAN, "ReLU"):
        init = "gaussian" if model == GAUSSIAN else "balanced"
        net = PolyReLUNet(dim, 200, 1 if model == "ReLU" else 3, init=init, scale=1e-7, seed=seed, dtype=dtype)
        return flow(net, data, loss="exp", until=Until(time=FLOW_TIME)).net
    start: nn.Module
    if model == "LogReg":
        start = LogisticRegression(dim, bias=False, seed=seed, dtype=dtype)
    elif model == "Tanh":
        start = TanhNet(dim, 200, scale=1e-2, seed=seed, dtype=dtype)
    else:
        start = MLP(dim, 200, 4, scale=0.5 if model == HALF else 1.0, seed=seed, dtype=dtype)
    rate = 1.0 if model == "LogReg" else 0.1
    return descend(start, data, method="sgd", rate=rate, loss="exp", until=1e-2, seed=seed).net


def _beside_bayes(values: Mapping[str, float]) -> dict[str, float]:
    gaps = [abs(values[_accuracy("pReLU", r)] - values[_accuracy("Bayes", r)]) for r in EDGE]
    return {"largest gap between pReLU and Bayes": max(gaps)}


def _accuracy(model: str, radius: float) -> str:
    return f"{model}: accuracy at {radius:g}"


COMPARED = Experiment(models, lambda profile: [{"model": model} for model in MODELS], combine=_beside_bayes)
HOW = (
    "pReLU and ReLU from a balanced start of 1e-7 by the flow to time 16 040; MLP (He start, and half of it), Tanh and "
    "LogReg by SGD to loss 1e-2. The paper gives neither α nor the starts nor when training stopped"
)
SETTINGS: Mapping[Profile, str] = {
    "quick": f"D=200, 12+8 clusters, α = .1, n=1000, width 200, 60 points. {HOW}.",
    "paper": f"D=2000, 12+8 clusters, n=20 000, width 200, 200 points. {HOW}; α = .3 was chosen so that Bayes has the "
    "plotted .92 at radius .692.",
}

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="B8",
        sentence="The ReLU net, a ReLU net of four layers, a tanh net and logistic regression all break near "
        "1/√20 = .224 on 12 + 8 clusters: more layers or another activation do not help.",
        paper="MV25",
        where="Fig. 2",
        standing=Standing.READ_OFF,
        published="half of the points break at .24 (ReLU), .245 (MLP), .218 (Tanh, LogReg); all by .29 (±.01)",
        settings=SETTINGS,
        experiment=COMPARED,
        checks=(
            near("ReLU: median radius", 0.24, 0.03),
            near("Tanh: median radius", 0.218, 0.03),
            near("LogReg: median radius", 0.218, 0.03),
            *(at_most(f"{model}: accuracy at 0.3077", 0.05, 0.0) for model in ("ReLU", "Tanh", "LogReg")),
            *(at_most(f"{model}: median radius", 0.35, 0.245) for model in ("MLP(4)", HALF)),  # half of √2/2
        ),
        reason="The number of the four-layer net, .245, cannot be tested: it depends on the start, which is not "
        "published. At paper scale (one seed) we found .213 from the He start, .232 from .7 and .244 from half of it; "
        "at quick size .244, .276 and .290. All are far below √2/2, which is the claim.",
    ),
    Claim(
        id="B9",
        sentence="The robust accuracy of the trained pReLU net (p = 3) is that of the Bayes classifier at "
        "every radius (compared from .66 to .725, where both fall from 1 to 0).",
        paper="MV25",
        where="Fig. 2",
        standing=Standing.READ_OFF,
        published="the lines coincide: 1.0 at .667, .91-.93 at .692, 0 at .718 (±.01)",
        settings=SETTINGS,
        experiment=COMPARED,
        checks={
            "quick": (at_most("largest gap between pReLU and Bayes", 0.15, 0.01),),
            "paper": (at_most("largest gap between pReLU and Bayes", 0.03, 0.01),),
        },
        reason="It needs a start with |v| = |w|, as in the paper's theory, and long training. From a Gaussian start at "
        "D = 2000 one neuron may serve two centres: two of two seeds from 1e-7, one of two from .01 (n = 5000) held "
        "far less than Bayes. At quick size the gap was .11 and .08 at loss 1e-3, .01 at 1e-4, and larger before.",
    ),
)
