"""One direction that breaks nearly all points (Frei, Vardi, Bartlett & Srebro, NeurIPS 2023, Thm 4.2; E13).

z = eta sum_j y_j mu_j, |z| = O(sqrt(d/k)):  x - y z is on the other side
"""

from __future__ import annotations

import math

import torch

from polyrelu.bias import kkt
from polyrelu.claims import Measured, Profile, Values, experiment
from polyrelu.claims.fvbs23 import CLUSTERS
from polyrelu.claims.setups.biased_nets import flip_lengths, trained, with_ones
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.claims.setups.power_law import slope
from polyrelu.data import OrthonormalMixture


def _over_k(values: Values) -> dict[str, float]:
    half = values.along("k", "|z| that flips half over sqrt(d/k)")
    return {"slope of log |z| against log k": slope(half, half.values()) - 0.5}


@experiment(over={"k": {profile: size.k for profile, size in CLUSTERS.items()}}, combine=_over_k)
def clusters(profile: Profile, seed: int, k: int) -> Measured:
    """The norm of z = eta sum_j y_j mu_j that flips fresh points, over sqrt(d/k); n = k ln^2 d training points."""
    size = CLUSTERS[profile]
    mixture = OrthonormalMixture(size.dim, k // 2, k // 2, 1.0, scale="sqrt_dim", rotate=seed, dtype=torch.float64)
    data = with_ones(mixture.sample(math.ceil(k * math.log(size.dim) ** 2), seed))
    run = trained(data, size.width, 1e-4, seed, until=1e-6)
    fresh = with_ones(mixture.sample(size.points, TEST_SEED + seed))
    norms = flip_lengths(run.net, fresh, mixture.labels @ mixture.centres) / math.sqrt(size.dim / k)
    values = {
        "points flipped by |z| = 3 sqrt(d/k)": float((norms <= 3).double().mean()),
        "|z| that flips half over sqrt(d/k)": float(norms.median()),
        "|z| that flips 95 % over sqrt(d/k)": float(norms.quantile(0.95)),
        "clean accuracy": float((norms > 0).double().mean()),
        "loss": math.exp(run.log_loss),
        "KKT residual": kkt(run.net, data, widen=0).stationarity,
    }
    return Measured(values, {"k": k, "norms": norms.quantile(torch.linspace(0, 1, 101, dtype=torch.float64)).tolist()})
