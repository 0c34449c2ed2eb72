r"""Linear rules: where linear models end, and when a two-layer net becomes one (E11, E12, E15, E16, E24, E25).

descent          w(t)/|w(t)| -> SVM,   |w| ~ log t                                   (Soudry et al. 2017)
penalty          argmin_w sum_i log(1 + e^(-q_i)) + lambda |w|^2/2 -> SVM, lambda -> 0  (Rosset et al. 2004)
mirrored data    a leaky ReLU net of slope a has min q / |theta|^2 <= (1 + a)/4 gamma, gamma the margin of the SVM,
                 because q(x) + q(-x) = (1 + a) <sum_j v_j w_j, x> and |sum_j v_j w_j| <= |theta|^2/2;
                 equality needs a linear net along the SVM                            (Lyu, Li, Wang, Arora 2021)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from polyrelu.bias import margins, odd_map, simplicity, svm_direction
from polyrelu.claims.claim import Claim, Standing, at_least, at_most
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.claims.setups.separable import (
    DECADES,
    SLOPE,
    cloud,
    hand_built,
    nearest_centre_radius,
    penalised,
    slab_data,
)
from polyrelu.data import Dataset, OrthonormalMixture, SymmetricSeparable
from polyrelu.nets import LeakyReLUNet, LogisticRegression, NearestCentre, PolyReLUNet
from polyrelu.train import Until, flow

SIZES: dict[Profile, tuple[tuple[int, int], ...]] = {"quick": ((2, 40),), "paper": ((2, 40), (10, 200), (50, 1000))}


def separable(profile: Profile, seed: int, dim: int, n: int) -> Measured:
    """E11, E12: the flow of the logistic loss to 1e-1000, and the penalised solutions, beside the exact SVM."""
    data = cloud(dim, n, seed)
    svm = svm_direction(data).direction

    def cosine(w: Tensor) -> float:
        return float(functional.cosine_similarity(w.flatten(), svm, dim=0))

    start = LogisticRegression(dim, bias=False, dtype=torch.float64)
    levels = (-1, -3, -10, -30, -100, -300)
    run = flow(start, data, loss="logistic", until=Until(log10_loss=-1000), checkpoints=levels)
    nets = [*(run.checkpoints[level] for level in levels), run.net]
    descent = [cosine(net.state_dict()["weight"]) for net in nets]
    path = [cosine(w) for w in penalised(data)]
    falls = max(max(path[:i]) - path[i] for i in range(1, len(path)))
    means = data.class_means()
    values = {
        f"cosine of descent at loss 1e-1000, d = {dim}": descent[-1],
        f"cosine of descent at loss 1e-10, d = {dim}": descent[2],
        f"cosine at penalty 1e-300, d = {dim}": path[-1],
        f"cosine at penalty 1e-8, d = {dim}": path[DECADES.index(8)],
        f"largest fall of the cosine as the penalty falls, d = {dim}": max(0.0, falls),
        f"cosine of the class means, d = {dim}": cosine(means[0] - means[1]),
    }
    drawn = {"log10 losses": [*levels, -1000], "descent": descent, "decades": list(DECADES), "penalty": path}
    return Measured(values, drawn)


def _leaky(profile: Profile, seed: int, extra: int) -> tuple[SymmetricSeparable, Dataset, LeakyReLUNet]:
    """A leaky ReLU net trained from a small start on mirrored data (and extra points) to loss 1e-1000."""
    dim, n, width = (5, 20, 20) if profile == "quick" else (20, 200, 100)
    recipe = SymmetricSeparable(dim, extra=extra, rotate=seed, dtype=torch.float64)
    data = recipe.sample(n, seed)
    start = LeakyReLUNet(dim, width, slope=SLOPE, scale=1e-4, seed=seed, dtype=torch.float64)
    net = flow(start, data, loss="logistic", until=Until(log10_loss=-1000)).net
    assert isinstance(net, LeakyReLUNet)
    return recipe, data, net


def mirrored(profile: Profile, seed: int) -> Measured:
    """E15: direction, nonlinearity and margin at the end."""
    recipe, data, net = _leaky(profile, seed, extra=0)
    line = odd_map(net)[0]
    found = simplicity(net, data, probes=2000, seed=seed)
    best = (1 + SLOPE) / 4 * recipe.linear_margin
    values = {
        "cosine to the SVM": float(functional.cosine_similarity(line, recipe.direction, dim=0)),
        "part that is not linear": max(found.residual, found.probe_residual or 0.0),
        "margin over the largest possible": margins(net, data, "logistic").normalised / best,
    }
    return Measured(values)


def misled(profile: Profile, seed: int) -> Measured:
    """E16: the margin of the trained net beside that of a net written down, and how linear its decisions are."""
    recipe, data, net = _leaky(profile, seed, extra=3)
    ours, built = (margins(one, data, "logistic").normalised for one in (net, hand_built(recipe)))
    probes = torch.randn(5000, recipe.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        same = (net(probes) > 0) == (probes @ recipe.direction > 0)
    values = {
        "margin over that of the hand-built net": ours / built,
        "agreement with the linear rule": float(same.double().mean()),
        "normalised margin": ours,
        "normalised margin of the hand-built net": built,
    }
    return Measured(values)


def linear_rule(profile: Profile, seed: int) -> Measured:
    """E24: logistic regression (radius y (<w,x> + b)/|w|, exact) and the nearest centre on fresh points."""
    dim, n, points = (100, 1000, 500) if profile == "quick" else (1000, 20_000, 2000)
    mixture = OrthonormalMixture(dim, 6, 4, alpha=0.1, dtype=torch.float64)
    test = mixture.sample(points, seed=TEST_SEED + seed)
    run = flow(LogisticRegression(dim, dtype=torch.float64), mixture.sample(n, seed), loss="logistic", until=1e-3)
    model = run.net
    assert isinstance(model, LogisticRegression)
    with torch.no_grad():
        line = test.y * model(test.rows()) / model.weight.norm()
    nearest = nearest_centre_radius(NearestCentre(mixture.centres, mixture.labels), test.rows(), test.y)
    values = {}
    for name, radii in (("linear rule", line), ("nearest centre", nearest)):
        values[f"clean accuracy of the {name}"] = float((radii > 0).double().mean())
        values[f"robust accuracy of the {name} at .4"] = float((radii > 0.4).double().mean())
        values[f"median radius of the {name}"] = float(radii.median())
    return Measured(values)


def simple_feature(profile: Profile, seed: int) -> Measured:
    """E25: the boundary that a small and a large start draw between the slabs (a 1 in each row gives hidden biases)."""
    n, width, cells = (200, 100, 301) if profile == "quick" else (2000, 1000, 601)
    data = slab_data(n, seed)
    flat, y = data.rows()[:, :2], data.y
    best = float(torch.cdist(flat[y > 0], flat[y < 0]).amin()) / 2  # no rule has a larger margin
    ticks = torch.linspace(-1.5, 1.5, cells, dtype=torch.float64)
    grid = torch.cartesian_prod(ticks, ticks)
    inside = ticks.abs() <= 1
    values: dict[str, float] = {}
    drawn: dict[str, Any] = {"x2": ticks[inside].tolist()}
    for name, scale in (("small start", 1e-4), ("large start", 1.0)):
        start = PolyReLUNet(3, width, 1, scale=scale, seed=seed, dtype=torch.float64)
        net = flow(start, data, loss="logistic", until=1e-10).net
        with torch.no_grad():
            positive = net(functional.pad(grid, (0, 1), value=1.0)) > 0
        other = [torch.cdist(flat[y == s], grid[positive != (s > 0)]).amin() for s in (1, -1)]
        edge = 1.5 - 3 * positive.reshape(cells, cells)[:, inside].double().mean(dim=0)  # x1 of the boundary at each x2
        line = torch.linalg.lstsq(functional.pad(ticks[inside][:, None], (0, 1), value=1.0), edge[:, None])
        fit = functional.pad(ticks[inside][:, None], (0, 1), value=1.0) @ line.solution
        values |= {
            f"margin over the best possible, {name}": float(min(other)) / best,
            f"angle to the linear boundary in degrees, {name}": abs(math.degrees(math.atan(float(line.solution[0])))),
            f"largest bend of the boundary, {name}": float((edge - fit[:, 0]).abs().amax()),
        }
        drawn[name] = edge.tolist()
    return Measured(values, drawn)


def _sizes(profile: Profile) -> list[dict[str, int]]:
    return [{"dim": dim, "n": n} for dim, n in SIZES[profile]]


SEPARABLE = Experiment(separable, parts=_sizes)
MIRRORED, MISLED = Experiment(mirrored), Experiment(misled)
RULE, SLABS = Experiment(linear_rule), Experiment(simple_feature)
TALK = "slides of a talk by Jian Li (2024)"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="E11",
        sentence="Gradient descent on the logistic loss of separable data turns to the hard-margin SVM, penalty-free.",
        paper="LPLL25",
        where=f"{TALK}, quoting Soudry et al. 2017",
        standing=Standing.PRINTED,
        published="cosine to the SVM → 1",
        settings={
            "quick": "40 points in 2 dimensions with a free slab; gradient flow in rescaled time to loss 1e-1000",
            "paper": "the same with 40, 200 and 1000 points in 2, 10 and 50 dimensions",
        },
        experiment=SEPARABLE,
        checks={
            p: tuple(at_least(f"cosine of descent at loss 1e-1000, d = {d}", 0.9999) for d, _ in SIZES[p])
            for p in SIZES
        },
    ),
    Claim(
        id="E12",
        sentence="The minimiser of the logistic loss with an L2 penalty λ tends to the hard-margin SVM as λ → 0.",
        paper="LPLL25",
        where=f"{TALK}, quoting Rosset et al. 2004",
        standing=Standing.PRINTED,
        published="cosine to the SVM → 1 as λ → 0",
        settings={
            "quick": "40 points in 2 dimensions; exact minimisers for λ = 1e-1 … 1e-300",
            "paper": "the same with 40, 200 and 1000 points in 2, 10 and 50 dimensions",
        },
        experiment=SEPARABLE,
        checks={
            p: tuple(
                check
                for d, _ in SIZES[p]
                for check in (
                    at_least(f"cosine at penalty 1e-300, d = {d}", 0.9999),
                    at_least(f"cosine at penalty 1e-8, d = {d}", 0.98),
                )
            )
            for p in SIZES
        },
        reason="The angle falls like 1/log(1/λ), so that at λ = 1e-8 it can still be several degrees, and not always "
        "steadily: the limit is what is claimed, and λ = 1e-300 shows it.",
    ),
    Claim(
        id="E15",
        sentence="On mirrored, linearly separable data a leaky ReLU net from a small start converges to the linear "
        "classifier of largest margin, which is its global max-margin solution.",
        paper="LLWA21",
        where="main theorem",
        standing=Standing.PRINTED,
        published="linear, max-margin",
        settings={
            "quick": "d = 5, 10 mirrored pairs, 20 neurons of slope .5, start 1e-4, logistic loss to 1e-1000",
            "paper": "d = 20, 100 mirrored pairs, 100 neurons, else the same",
        },
        experiment=MIRRORED,
        checks=(
            at_least("cosine to the SVM", 0.99),
            at_most("part that is not linear", 0.02),
            at_least("margin over the largest possible", 0.99),
        ),
    ),
    Claim(
        id="E16",
        sentence="A few more points make the same flow end in a linear decision rule whose margin is not the largest "
        "that a net can have.",
        paper="LLWA21",
        where="theorem on non-symmetric data",
        standing=Standing.PRINTED,
        published="linear, margin sub-optimal; our points: 2/3 of the hand-built net's",
        settings={
            "quick": "E15's data with two blockers and a hint (SymmetricSeparable, extra=3), else as E15",
            "paper": "the same on E15's larger data",
        },
        experiment=MISLED,
        checks=(
            at_most("margin over that of the hand-built net", 0.9),
            at_least("agreement with the linear rule", 0.98),
        ),
    ),
    Claim(
        id="E24",
        sentence="A linear rule can be right on every clean point and wrong on nearly every perturbed one where a "
        "robust rule exists.",
        paper="LPLL25",
        where=f"{TALK}, quoting Li et al. 2022",
        standing=Standing.PRINTED,
        published="linear rule: clean 1, robust ≈ 0; robust rule: 1 and 1",
        settings={
            "quick": "D = 100, 6+4 clusters, α = .1, 1000 training and 500 fresh points, radius .4; exact radii",
            "paper": "D = 1000, 20 000 training and 2000 fresh points, else the same",
        },
        experiment=RULE,
        checks=(
            at_least("clean accuracy of the linear rule", 0.999, published=1.0),
            at_most("robust accuracy of the linear rule at .4", 0.01, published=0.0),
            at_least("clean accuracy of the nearest centre", 0.999, published=1.0),
            at_least("robust accuracy of the nearest centre at .4", 0.999, published=1.0),
        ),
    ),
    Claim(
        id="E25",
        sentence="Where one feature separates the classes by a line and another by slabs with a wider gap, a two-layer "
        "net from a small start takes the line and gives up margin.",
        paper="LLWA21",
        where=f"{TALK}, after Shah et al. 2020",
        standing=Standing.PRINTED,
        published="a linear boundary, locally but not globally of largest margin",
        settings={
            "quick": "200 points in the plane, 100 ReLU neurons with biases, start 1e-4 (or 1), logistic loss to 1e-10",
            "paper": "2000 points, 1000 neurons, else the same",
        },
        experiment=SLABS,
        checks=(
            at_most("margin over the best possible, small start", 0.65),
            at_most("angle to the linear boundary in degrees, small start", 8.0),
            at_most("largest bend of the boundary, small start", 0.08),
        ),
        reason="A large start bends the boundary around the slabs and comes nearer to the best margin: it is the small "
        "start that makes it linear.",
    ),
)
