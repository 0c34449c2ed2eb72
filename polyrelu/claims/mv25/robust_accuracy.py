"""Where classifiers break: six on one mixture (Fig. 2), and nets by their start (Fig. 7; Min & Vidal, ICML 2025).

Fig. 7      entries N(0, .01^2) ("small") or N(0, .5^2) ("large")
pReLU       f(x) = sum_j v_j relu(<x, w_j>)^3 / |w_j|^2
polynomial  f(x) = sum_j v_j relu(<x, w_j>)^3            (the same functions, other dynamics)

Loss, rate and length of training are not published, but for "perfect train accuracy". Ours: gradient flow of the mean
logistic loss to .03. The polynomial net from the small start is also taken where every training point is right for
the first time: its clean accuracy in the figure, .99, says that it had just got there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.mv25 import sizes
from polyrelu.claims.mv25.sizes import GAUSSIAN, HALF, MODELS
from polyrelu.claims.setups.mixture_nets import FLOW_TIME, TEST_SEED, proven_for_bayes, sorted_radii
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import MLP, BayesClassifier, LogisticRegression, PlainPolyNet, PolyReLUNet, TanhNet
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


P, SMALL, LARGE = 3.0, 0.01, 0.5
ACCURATE, LOW = Until(accurate=True), Until(loss=0.03)
NETS: Mapping[str, tuple[type[PlainPolyNet] | type[PolyReLUNet], float, Until]] = {
    "polynomial, small": (PlainPolyNet, SMALL, ACCURATE),
    "polynomial, large": (PlainPolyNet, LARGE, LOW),
    "pReLU, small": (PolyReLUNet, SMALL, LOW),
    "pReLU, large": (PolyReLUNet, LARGE, LOW),
    "polynomial, small, trained on": (PlainPolyNet, SMALL, LOW),  # quick only: thousands of passes at paper scale
}
RADII = (0.05, 0.1, 0.15, 0.2, 0.34, 0.4, 0.5, 0.65)


def normalised(net: PlainPolyNet | PolyReLUNet) -> PolyReLUNet:
    """The same function as a PolyReLUNet: v_j relu(<x, w_j>)^p = (v_j |w_j|^(p-1)) relu(<x, w_j>)^p / |w_j|^(p-1)."""
    if isinstance(net, PolyReLUNet):
        return net
    same = PolyReLUNet(net.dim, len(net.weight), net.p, init="zeros", dtype=net.dtype)
    with torch.no_grad():
        same.weight.copy_(net.weight)
        same.output.copy_(net.output * torch.linalg.vector_norm(net.weight, dim=1).pow(net.p - 1))
    return same


def _nets(profile: Profile) -> list[dict[str, str]]:
    return [{"net": net} for net in NETS if profile == "quick" or not net.endswith("trained on")]


@experiment(parts=_nets)
def starts(profile: Profile, seed: int, net: str) -> Measured:
    """Train one net of Fig. 7 and bracket its radii: proven without branching, found by minimal attacks."""
    kind, scale, until = NETS[net]
    size = sizes.INITIALISATION[profile]
    dtype = torch.float32 if profile == "paper" else torch.float64
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, size.alpha, dtype=dtype)
    data, test = mixture.sample(size.samples, seed=seed), mixture.sample(size.points, seed=TEST_SEED)
    first = kind(size.dim, size.width, P, scale=scale, seed=seed, dtype=dtype)
    most = 400 if profile == "paper" and until is ACCURATE else 10_000
    out = flow(first, data, loss="logistic", until=until, max_evaluations=most)
    assert isinstance(out.net, PlainPolyNet | PolyReLUNet)
    same, X, y = normalised(out.net), test.rows(), test.y
    found = bracket(same, X, y, tol=1e-2, budget=Budget(nodes=0), pool=data)
    line = curve(found)
    values: dict[Key, float] = {"train accuracy": out.accuracy, "loss": math.exp(out.log_loss)}
    for radius in RADII:
        values[Quantity("proven", radius=radius)] = line.certified(radius)
        values[Quantity("not broken", radius=radius)] = line.attacked(radius)
    radii = {"lower": found.lower.tolist(), "upper": found.upper.tolist()}
    return Measured(values, {"profile": profile, "net": net, "time": out.time, **radii}, out.status.value)
