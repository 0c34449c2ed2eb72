"""dist(f_p, ideal) = inf_{c>0} sup_{|x|=1} |c f_p(x) - F(x)| of trained nets (Min & Vidal 2024, Conjecture 1, Fig. 2a).

The published estimator takes c = E[f F]/E[f^2] and climbs from random unit vectors with a guard in the step. For p = 1
it finds the supremum at that c; for p = 3 the guard stops it far below, and `published_ascent` repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from polyrelu.claims.claim import Check, Claim, Standing, Verdict, at_least, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.neurons import TWENTY, TWENTY_SETTINGS
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import ideal, trained
from polyrelu.robust import dist
from polyrelu.robust.distance import NeuronSum, common_span, neuron_sum_of, published_c

ALPHAS = tuple(round(float(alpha), 4) for alpha in np.linspace(0.01, 0.3, 15))
RELU = {0.01: 0.028, 0.05: 0.035, 0.1: 0.046, 0.15: 0.055, 0.2: 0.066, 0.25: 0.078, 0.3: 0.090}  # read off Fig. 2a
CENTRES = {0.01: 0.76e-5, 0.05: 0.95e-5, 0.1: 1.1e-5, 0.2: 1.9e-5, 0.25: 2.2e-5, 0.3: 2.7e-5}  # the same, p = 3
SPREAD = {0.01: 0.3, 0.05: 0.2}  # relative, over seeds and for reading; .1 elsewhere
QUICK_RELU, QUICK_CENTRES = (0.05, 0.1, 0.3), (0.05, 0.1)


def published_ascent(
    f: NeuronSum, F: NeuronSum, c: float, *, starts: int = 10_000, steps: int = 2000, seed: int = 0
) -> float:
    """max |E| after x <- unit(x + .01 g/(|g| + 1e-7)), g = grad E^2/1000, E = c f - F (Min & Vidal 2024).

    `robust.distance.published_dist` in few coordinates: E and g live in the span of the neurons, and what x has outside
    it is only rescaled. Batches of 1000 enter through the mean alone, so all starts move together. Both nets need the
    same p.
    """
    f = f.strongest()
    basis = common_span(f, F)
    U = torch.cat([f.U, F.U]) @ basis.T
    U, a = U.float(), torch.cat([c * f.a, -F.a]).float()
    X = torch.randn(starts, basis.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X = (X / X.norm(dim=1, keepdim=True) @ basis.T).float()
    outside = 1 - X.square().sum(dim=1, keepdim=True)
    for _ in range(steps):
        Z = (X @ U.T).relu()
        slope = Z.pow(f.p - 1)
        g = (slope.mul(Z) @ a)[:, None] * ((slope * (f.p * a)) @ U) / 500
        X = X + 0.01 * g / (g.norm(dim=1, keepdim=True) + 1e-7)
        length = X.square().sum(dim=1, keepdim=True) + outside
        X, outside = X / length.sqrt(), outside / length
    return float(((X @ U.T).relu().pow(f.p) @ a).abs().max())


def _parts(quick: Sequence[float]) -> Any:
    def parts(profile: Profile) -> list[dict[str, float]]:
        return [{"alpha": alpha} for alpha in (ALPHAS if profile == "paper" else quick)]

    return parts


def _measured(alpha: float, distance: float, estimate: float, log10_loss: float) -> Measured:
    values = {f"distance, alpha {alpha:g}": distance, f"published estimate, alpha {alpha:g}": estimate}
    data = {"alpha": alpha, "distance": distance, "estimate": estimate, "log10_loss": log10_loss}
    return Measured(values, data)


def relu_distance(profile: Profile, seed: int, alpha: float) -> Measured:
    """p = 1: with the best c and with the published one."""
    run = trained(profile, 1, seed, alpha=alpha)
    F = ideal(run.mixture, 1)
    estimate = dist(run.net, F, c="published", mixture=run.mixture, seed=seed).value
    return _measured(alpha, dist(run.net, F, seed=seed).value, estimate, run.trajectory.log10_loss)


def centre_distance(profile: Profile, seed: int, alpha: float) -> Measured:
    """p = 3: with the best c, and what the published estimator reports; D = 1000 always, where its guard bites."""
    run = trained(profile, 3, seed, alpha=alpha, size=None if profile == "paper" else (1000, 2000, 200))
    F = ideal(run.mixture, 3)
    c = published_c(run.net, F, run.mixture, seed=seed)
    starts = 10_000 if profile == "paper" else 1000
    estimate = published_ascent(neuron_sum_of("f", run.net), neuron_sum_of("F", F), c, starts=starts, seed=seed)
    return _measured(alpha, dist(run.net, F, seed=seed).value, estimate, run.trajectory.log10_loss)


def _at_published(published: Mapping[float, float]) -> Any:
    """Values at the alphas read off the figure, by linear interpolation, and how much they rise."""

    def combine(values: Mapping[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for kind in ("distance", "published estimate"):
            points = sorted((float(name.split()[-1]), v) for name, v in values.items() if name.startswith(f"{kind},"))
            alphas, line = [a for a, _ in points], [v for _, v in points]
            inside = [alpha for alpha in published if alphas[0] <= alpha <= alphas[-1]]
            found |= {f"{kind} at {alpha:g}": float(np.interp(alpha, alphas, line)) for alpha in inside}
            found[f"{kind}: largest over smallest alpha"] = line[-1] / line[0]
        return found

    return combine


RELU_DISTANCE = Experiment(relu_distance, _parts(QUICK_RELU), {"quick": 1, "paper": 5}, combine=_at_published(RELU))
CENTRE_DISTANCE = Experiment(
    centre_distance, _parts(QUICK_CENTRES), {"quick": 1, "paper": 5}, combine=_at_published(CENTRES)
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="B1",
        sentence="Trained from a small start, the ReLU net f_1 comes close to the class-average classifier F: "
        "inf over c > 0 of sup over |x| = 1 of |c f_1(x) - F(x)| is small beside sup |F| = √6 = 2.45, and grows with "
        "the noise α.",
        paper="MV24",
        where="Fig. 2a, Conjecture 1",
        standing=Standing.READ_OFF,
        published=".028, .035, .046, .055, .066, .078, .090 at α ≈ 0, .05, .1, .15, .2, .25, .3 (±3 %)",
        settings={
            "quick": "D=100, 6+4 clusters, n=1000, h=100, gradient flow to time 16 040, α = .05, .1, .3; the distance "
            "at the published c = E[fF]/E[f²] beside the true infimum. With a twentieth of the data it is larger: "
            "ten seeds gave .058-.076, .094-.105 and .23-.26.",
            "paper": "D=1000, n=20 000, h=2000, gradient flow to time 16 040 (as long as 401 epochs of SGD .2), 15 α; "
            "read-off values met by interpolation, ±10 % (3 % for reading, the rest for seeds), ±20 % at .05 and "
            "±30 % at .01, where the random start weighs more.",
        },
        experiment=RELU_DISTANCE,
        checks={
            "quick": (
                Check("published estimate at 0.05", 0.04, 0.09),
                Check("published estimate at 0.1", 0.08, 0.12),
                Check("published estimate at 0.3", 0.2, 0.3),
                at_least("distance: largest over smallest alpha", 2),
            ),
            "paper": (
                *(near(f"published estimate at {a:g}", v, SPREAD.get(a, 0.1) * v) for a, v in RELU.items()),
                Check("distance: largest over smallest alpha", 2, 4, published=RELU[0.3] / RELU[0.01]),
            ),
        },
        reason="The published estimator fixes c = E[fF]/E[f²]; with the best c, as the conjecture has it, the distance "
        "at α = .1 is .037 instead of .046. It falls with training: .160, .061 and .037 at losses 1e-2, 1e-3 and "
        "1.4e-5 (one seed).",
        shown="published estimate at 0.1",
    ),
    Claim(
        id="B2",
        sentence="Trained from a small start, the pReLU net f_3 (p = 3) comes as close as 1e-5 to the centre "
        "classifier F^(3): inf over c > 0 of sup over |x| = 1 of |c f_3(x) - F^(3)(x)|, beside sup |F^(3)| = 1.",
        paper="MV24",
        where="Fig. 2a, Conjecture 1",
        standing=Standing.READ_OFF,
        published=".76, .95, 1.1, 1.9, 2.2, 2.7 times 1e-5 at α ≈ 0, .05, .1, .2, .25, .3 (±3 %)",
        settings={
            "quick": "D=1000, 6+4 clusters, n=2000, h=200, gradient flow to time 16 040, α = .05, .1; the true "
            "distance, and the published estimator step for step from 1000 starts.",
            "paper": "D=1000, n=20 000, h=2000, gradient flow to time 16 040, 15 α, 5 repeats; the true distance, and "
            "the published estimator step for step from 10 000 starts.",
        },
        experiment=CENTRE_DISTANCE,
        checks={
            "quick": tuple(near(f"distance at {a:g}", CENTRES[a], 0.03 * CENTRES[a]) for a in QUICK_CENTRES),
            "paper": tuple(near(f"distance at {a:g}", value, 0.03 * value) for a, value in CENTRES.items()),
        },
        why={
            "quick": (
                *(Check(f"published estimate at {a:g}", 2e-6, 1e-4, CENTRES[a]) for a in QUICK_CENTRES),
                *(Check(f"distance at {a:g}", 2e-3, 0.04) for a in QUICK_CENTRES),
            ),
            "paper": (
                *(Check(f"published estimate at {a:g}", 1e-6, 2e-4, v) for a, v in CENTRES.items()),
                *(Check(f"distance at {a:g}", 1e-3, 0.02) for a in CENTRES),
            ),
        },
        reason="The published ascent divides by (gradient norm + 1e-7); for p = 3 at D = 1000 gradients at random unit "
        "vectors are smaller than that guard, so it reports |cf - F| about where it started. The true distance is 200 "
        "to 600 times larger, and still small: the conjecture stands, the 1e-5 does not.",
        expects=Verdict.ARTEFACT,
    ),
    Claim(
        id="B3",
        sentence="With K = 20 clusters (8 + 12) both nets come close to their ideals too: dist(f_1, F) is small beside "
        "sup |F| = √12 = 3.46, and dist(f_3, F^(3)) beside 1.",
        paper="MV24",
        where="Fig. 5a",
        standing=Standing.UNKNOWN,
        published="a figure without numbers known to us",
        settings=TWENTY_SETTINGS,
        experiment=TWENTY,
        checks={
            "quick": (Check("p = 1: distance", 0.05, 0.25), Check("p = 3: distance", 0.005, 0.12)),
            "paper": (Check("p = 1: distance", 0.02, 0.1), Check("p = 3: distance", 0.001, 0.05)),
        },
    ),
)
