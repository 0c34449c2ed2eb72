"""What the start decides: its size, its direction, and whether the neurons are normalised (Min & Vidal 2025).

    pReLU       f(x) = sum_j v_j relu(<x, w_j>)^3 / |w_j|^2
    polynomial  f(x) = sum_j v_j relu(<x, w_j>)^3            (the same functions, other dynamics)

Entries N(0, .01^2) ("small") or N(0, .5^2) ("large"); Min & Vidal, ICML 2025, Fig. 7.
Loss, rate and length of training are not published, but for "perfect train accuracy". Ours: gradient flow of the mean
logistic loss to .03. The polynomial net from the small start is also taken where every training point is right for
the first time: its clean accuracy in the figure, .99, says that it had just got there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mv25 import sizes
from polyrelu.claims.mv25.phases import STEP, curves, distances, start
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity, Values
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import PlainPolyNet, PolyReLUNet
from polyrelu.robust import Budget, bracket, curve
from polyrelu.train import Until, flow

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
NUDGE, PLOTTED = 0.05, "of a unit weight"
READINGS = ("none", "as printed", PLOTTED)


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


def unit_nudge(dim: int, nudge: float = NUDGE) -> float:
    """The d that turns w as ``nudge`` turns a w of length 1: d/(1-d) = sqrt(D) nudge/(1-nudge), |g| being sqrt(D)."""
    reach = math.sqrt(dim) * nudge / (1 - nudge)
    return reach / (1 + reach)


def _sooner(values: Values) -> dict[Quantity, float]:
    """How long the nudged starts take, as a share of the random one with the same weights."""
    steps = values.along("reading", "step of median cosine .9")
    return {
        Quantity("share of the random start's time", reading=one): steps[one] / steps["none"] for one in READINGS[1:]
    }


@experiment(over={"reading": READINGS}, combine=_sooner)
def nudged_start(profile: Profile, seed: int, reading: str) -> Measured:
    """Fig. 6: every weight moved by 5 % towards a random centre; of what length 5 % are taken is the ``reading``."""
    nudge = {"none": 0.0, "as printed": NUDGE, PLOTTED: unit_nudge(sizes.NUDGED.dim)}[reading]
    mixture, data, net = start(sizes.NUDGED, seed, nudge)
    looks = (*range(260, 380, 40), *range(380, 520, 20), 560, 600) if reading == PLOTTED else (320,)
    times = [look * STEP for look in looks]
    out = flow(net, data, loss="squared", until=Until(time=times[-1]), record=times if reading == PLOTTED else ())
    values, lines = curves(out)
    found: dict[str, Any] = {"nudge": nudge, **lines, **distances(out, mixture)}
    step = "step of median cosine .9"
    return Measured({step: values[step]}, found)
