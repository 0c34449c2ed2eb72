r"""One direction that breaks all points, and radii proven from slopes (claims E10, E13, E14, E26).

    clusters    z = eta sum_j y_j mu_j, |z| = O(sqrt(d/k)): x - y z is on the other side   (Frei et al. 2023, Thm 4.2)
    sphere      z = eta sum_{i in I} y_i x_i, I the points at the margin, |z| = O(sqrt(d/m))   (Vardi et al. 2022)
    slope       R(x) >= q(x)/beta, beta the Lipschitz constant of the margin q                 (Lyu & Li 2020)

Hidden biases are the weights of a column of ones, so their norm counts as the theorems want it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from polyrelu.bias import flip_radii, kkt, lipschitz_radius
from polyrelu.claims.claim import Check, Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import TEST_SEED, trained
from polyrelu.data import Dataset, NearlyOrthogonalSphere, OrthonormalMixture
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket
from polyrelu.train import Trajectory, flow

CLUSTERS: dict[Profile, tuple[int, ...]] = {"quick": (2, 4, 8, 16), "paper": (2, 4, 8, 16, 32)}
DIMS: dict[Profile, tuple[int, ...]] = {"quick": (60, 120, 240), "paper": (100, 200, 400, 1000)}
EXPONENTS: dict[Profile, tuple[float, ...]] = {"quick": (1.0,), "paper": (0.5, 0.8, 1.0, 1.2, 1.5)}
MOST = 2000  # points on the sphere
FALL: dict[Profile, tuple[float, float]] = {"quick": (-0.9, -0.1), "paper": (-0.7, -0.3)}
START: dict[Profile, float] = {"quick": 3e-3, "paper": 3e-4}  # less may leave a point without any active neuron
FAR = 4.0  # how far along z to look, in norms of a point


def with_ones(data: Dataset) -> Dataset:
    """Rows (x, 1): the weight of the 1 is a hidden bias."""
    X = data.rows()
    return Dataset(torch.cat([X, X.new_ones(len(X), 1)], dim=1), data.y, name=data.name)


def slope(values: Mapping[str, float], name: str) -> float:
    """d log value / d log number over the values called "{name}{number}", by least squares."""
    found = [(float(key.removeprefix(name)), value) for key, value in values.items() if key.startswith(name)]
    x, y = np.log(np.array(found)).T
    return float(np.polyfit(x, y, 1)[0])


def _trained(data: Dataset, width: int, scale: float, seed: int, until: float) -> Trajectory:
    start = PolyReLUNet(data.dim, width, 1, init="balanced", scale=scale, seed=seed, dtype=data.dtype)
    return flow(start, data, loss="logistic", until=until)


def _flips(run: Trajectory, points: Dataset, z: torch.Tensor) -> torch.Tensor:
    """Smallest |z| at which each point x - y z has crossed; ``z`` is a direction in the space without the ones."""
    way = torch.cat([z.double() / z.double().norm(), torch.zeros(1, dtype=torch.float64)])
    reach = torch.full((len(points),), FAR * math.sqrt(len(z)))
    return flip_radii(run.net, points.rows(), points.y, -points.y.double()[:, None] * way, reach, samples=64)


def clusters(profile: Profile, seed: int, k: int) -> Measured:
    """E13: the norm of z = eta sum_j y_j mu_j that flips fresh points, over sqrt(d/k); n = k ln^2 d training points."""
    dim, width, points = (256, 100, 200) if profile == "quick" else (1024, 1000, 2000)
    mixture = OrthonormalMixture(dim, k // 2, k // 2, 1.0, scale="sqrt_dim", rotate=seed, dtype=torch.float64)
    data = with_ones(mixture.sample(math.ceil(k * math.log(dim) ** 2), seed))
    run = _trained(data, width, 1e-4, seed, until=1e-6)
    z = mixture.labels @ mixture.centres
    norms = _flips(run, with_ones(mixture.sample(points, TEST_SEED + seed)), z) / math.sqrt(dim / k)
    values = {
        f"points flipped by |z| = 3 sqrt(d/k), k = {k}": float((norms <= 3).double().mean()),
        f"|z| that flips half over sqrt(d/k), k = {k}": float(norms.median()),
        f"|z| that flips 95 % over sqrt(d/k), k = {k}": float(norms.quantile(0.95)),
        f"clean accuracy, k = {k}": float((norms > 0).double().mean()),
        f"loss, k = {k}": math.exp(run.log_loss),
        f"KKT residual, k = {k}": kkt(run.net, data, widen=0).stationarity,
    }
    return Measured(values, {"k": k, "norms": norms.quantile(torch.linspace(0, 1, 101, dtype=torch.float64)).tolist()})


def _over_k(values: Mapping[str, float]) -> Mapping[str, float]:
    half = slope(values, "|z| that flips half over sqrt(d/k), k = ")
    return {"slope of log |z| against log k": half - 0.5}


def sphere(profile: Profile, seed: int, dim: int, exponent: float) -> Measured:
    """E14: m = d^a random points with random labels; the c at which x_i - y_i c z/|z| has crossed for every i in I."""
    width = 100 if profile == "quick" else 1000
    data = with_ones(NearlyOrthogonalSphere(dim, dtype=torch.float64).sample(round(dim**exponent), seed))
    run = _trained(data, width, START[profile], seed, until=1e-15)
    with torch.no_grad():
        q = data.y * run.net(data.rows())
    at_margin = q <= 1.1 * q.min()
    points = Dataset(data.rows()[at_margin], data.y[at_margin])
    c = float(_flips(run, points, points.y @ points.rows()[:, :-1]).max())
    name = "" if exponent == 1 else f", m = d^{exponent:g}"
    values = {
        f"c over sqrt(d){name}, d = {dim}": c / math.sqrt(dim),
        f"c over sqrt(d/m){name}, d = {dim}": c / math.sqrt(dim / len(data)),
        f"share of points at the margin{name}, d = {dim}": len(points) / len(data),
    }
    return Measured(values, {"dim": dim, "exponent": exponent, "points": len(data), "c": c})


def _over_d(values: Mapping[str, float]) -> Mapping[str, float]:
    return {"slope of log c/sqrt(d) against log d": slope(values, "c over sqrt(d), d = ")}


def sample_radii(profile: Profile, seed: int, p: float) -> Measured:
    """E10, E26: how far fresh points are from the boundary (bracket), and how far the slope proves them to be."""
    found = trained(profile, p, seed)
    test = found.test(100 if profile == "quick" else 500)
    both = bracket(found.net, test.rows(), test.y, tol=1e-3)
    share = lipschitz_radius(found.net, test) / both.upper
    share = torch.where(both.upper > 0, share, 0.0)
    relative = torch.stack([both.lower, both.upper]) / test.rows().double().norm(dim=1)
    values = {
        f"largest certificate over attack, p = {p:g}": float(share.max()),
        f"median certificate over attack, p = {p:g}": float(share.median()),
        f"median radius over |x|, p = {p:g}": float(relative.mean(dim=0).median()),
        f"gap of the median radius, p = {p:g}": float(relative[1].median() - relative[0].median()),
    }
    return Measured(values)


CLUSTER_RUNS = Experiment(clusters, parts=lambda profile: [{"k": k} for k in CLUSTERS[profile]], combine=_over_k)
SPHERES = Experiment(
    sphere,
    parts=lambda profile: [
        {"dim": d, "exponent": a} for a in EXPONENTS[profile] for d in DIMS[profile] if d**a <= MOST
    ],
    combine=_over_d,
    repeats={"quick": 1, "paper": 5},
)
RADII = Experiment(sample_radii, parts=lambda profile: [{"p": 1.0}, {"p": 3.0}])

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="E10",
        sentence="A point with margin q is safe to the radius q/β, β being the Lipschitz constant of the margin.",
        paper="LL20",
        where="Section on robustness",
        standing=Standing.PRINTED,
        published="R(z) ≥ q/β",
        settings={
            "quick": "D = 100, 6+4 clusters, h = 100, p = 1 and 3, 100 fresh points, certificate against bracket",
            "paper": "D = 1000, h = 2000, n = 20 000, 500 fresh points, else the same",
        },
        experiment=RADII,
        checks=tuple(
            check
            for p in (1, 3)
            for check in (
                at_most(f"largest certificate over attack, p = {p}", 1 + 1e-9, published=1.0),
                at_least(f"median certificate over attack, p = {p}", 0.1),
            )
        ),
    ),
    Claim(
        id="E13",
        sentence="On k clusters of norm √d one direction, z = η Σ_j y_j μ_j with |z| = O(√(d/k)), changes what a "
        "trained ReLU net with biases says about nearly every point x when it is moved to x − y z.",
        paper="FVBS23",
        where="Theorem 4.2",
        standing=Standing.PRINTED,
        published="P[flip] ≥ 1 − ε at |z| = O(√(d/k))",
        settings={
            "quick": "d = 256, k = 2 … 16, n = k ln²d, noise N(0, I), 100 neurons, start 1e-4, logistic loss to 1e-6",
            "paper": "d = 1024, k = 2 … 32, 1000 neurons, else the same",
        },
        experiment=CLUSTER_RUNS,
        checks={
            profile: (
                *(at_least(f"points flipped by |z| = 3 sqrt(d/k), k = {k}", 0.95) for k in CLUSTERS[profile]),
                near("slope of log |z| against log k", -0.5, 0.05),
            )
            for profile in CLUSTERS
        },
        reason="The theorem is about KKT points; the residual reached is shown beside the loss.",
        shown="|z| that flips half over sqrt(d/k), k = 8",
    ),
    Claim(
        id="E14",
        sentence="Trained on nearly orthogonal points of norm √d with random labels, a ReLU net breaks at all its "
        "margin points along the one direction z = Σ_I y_i x_i, at a distance c far below √d.",
        paper="VYS22",
        where="experiment, Fig. 1",
        standing=Standing.SECONDARY,
        published="c/√d ≪ 1, falling with d (numbers unknown)",
        settings={
            "quick": "m = d = 60, 120, 240 points on the √d-sphere, 100 neurons, start 3e-3, logistic loss to 1e-15",
            "paper": "m = d^a ≤ 2000, a = .5 … 1.5, d = 100, 200, 400, 1000, 1000 neurons, start 3e-4, 5 seeds",
        },
        experiment=SPHERES,
        checks={
            profile: (
                at_most(f"c over sqrt(d), d = {DIMS[profile][-1]}", 0.3),
                Check("slope of log c/sqrt(d) against log d", *FALL[profile]),
            )
            for profile in DIMS
        },
        reason="c = O(√(d/m)) predicts a slope of −1/2 for m = d; at quick size c scatters by a sixth between draws. "
        "Far more points than dimensions (m = d^1.5) are no longer nearly orthogonal, and c/√d is above 1.",
        shown="slope of log c/sqrt(d) against log d",
    ),
    Claim(
        id="E26",
        sentence="Samples lie near the decision boundary of a ReLU net, at a third of their norm, and farther from "
        "that of a pReLU net.",
        paper="LPLL25",
        where="slides of a talk by Jian Li (2024)",
        standing=Standing.PRINTED,
        published='"every sample is very close to the boundary"; for 10 clusters 1/√10 = .316 and √2/2 = .707',
        settings={
            "quick": "D = 100, 6+4 clusters, h = 100, p = 1 and 3, 100 fresh points, brackets",
            "paper": "D = 1000, h = 2000, n = 20 000, 500 fresh points, else the same",
        },
        experiment=RADII,
        checks=(near("median radius over |x|, p = 1", 0.316, 0.02), near("median radius over |x|, p = 3", 0.70, 0.02)),
    ),
)
