"""One direction that breaks all points at the margin (Vardi, Yehudai & Shamir, NeurIPS 2022, Fig. 1; E14).

z = eta sum_{i in I} y_i x_i, I the points at the margin:  |z| = O(sqrt(d/m)) flips them all
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from polyrelu.claims import Measured, Profile, Values, experiment
from polyrelu.claims.setups.biased_nets import flip_lengths, trained, with_ones
from polyrelu.claims.setups.power_law import slope
from polyrelu.data import Dataset, NearlyOrthogonalSphere

MOST = 2000  # points on the sphere
DIMS: Mapping[Profile, tuple[int, ...]] = {"quick": (60, 120, 240), "paper": (100, 200, 400, 1000)}
EXPONENTS: Mapping[Profile, tuple[float, ...]] = {"quick": (1.0,), "paper": (0.5, 0.8, 1.0, 1.2, 1.5)}


def _parts(profile: Profile) -> list[dict[str, float]]:
    return [{"dim": d, "exponent": a} for a in EXPONENTS[profile] for d in DIMS[profile] if d**a <= MOST]


def _over_d(values: Values) -> dict[str, float]:
    length = values.along("dim", "c over sqrt(d)", exponent=1.0)
    return {"slope of log c/sqrt(d) against log d": slope(length, length.values())}


@experiment(parts=_parts, combine=_over_d, repeats={"quick": 1, "paper": 5})
def margin_points(profile: Profile, seed: int, dim: int, exponent: float) -> Measured:
    """m = d^a random points with random labels; the c at which x_i - y_i c z/|z| has crossed for every i in I."""
    # from a smaller start a point may be left without any active neuron
    width, start = (100, 3e-3) if profile == "quick" else (1000, 3e-4)
    data = with_ones(NearlyOrthogonalSphere(dim, dtype=torch.float64).sample(round(dim**exponent), seed))
    run = trained(data, width, start, seed, until=1e-15)
    with torch.no_grad():
        q = data.y * run.net(data.rows())
    at_margin = q <= 1.1 * q.min()
    points = Dataset(data.rows()[at_margin], data.y[at_margin])
    c = float(flip_lengths(run.net, points, points.y @ points.rows()[:, :-1]).max())
    values = {
        "c over sqrt(d)": c / math.sqrt(dim),
        "c over sqrt(d/m)": c / math.sqrt(dim / len(data)),
        "share of points at the margin": len(points) / len(data),
    }
    return Measured(values, {"dim": dim, "exponent": exponent, "points": len(data), "c": c})
