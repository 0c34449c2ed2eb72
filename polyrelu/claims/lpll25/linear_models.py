r"""Where linear models end, and one that is right on clean points and breaks, beside a rule that holds (LPLL25's talk).

descent               w(t)/|w(t)| -> SVM,   |w| ~ log t                                      (Soudry et al. 2017)
penalty               argmin_w sum_i log(1 + e^(-q_i)) + lambda |w|^2/2 -> SVM, lambda -> 0  (Rosset et al. 2004)
logistic regression   r(x) = y (<w,x> + b)/|w|
nearest centre        r(x) >= min_{l opposite} max_{k own} <x, mu_k - mu_l>/|mu_k - mu_l|
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from polyrelu.bias import svm_direction
from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import LogisticRegression, NearestCentre
from polyrelu.train import Until, flow, log_softplus

DECADES = (1, 2, 3, 4, 5, 6, 7, 8, 30, 100, 300)  # penalties 1e-1, 1e-2, ...
LEVELS = (-1, -3, -10, -30, -100, -300)  # log10 losses on the way to 1e-1000


def cloud(dim: int, n: int, seed: int) -> Dataset:
    """x = S g + .2 y w, y = sign <w, S g>, |w| = 1: a slab is free; S = diag(1..4) turns the class means from w."""
    source = torch.Generator().manual_seed(seed)
    X = torch.randn(n, dim, generator=source, dtype=torch.float64) * torch.linspace(1, 4, dim, dtype=torch.float64)
    w = functional.normalize(torch.randn(dim, generator=source, dtype=torch.float64), dim=0)
    y = torch.sign(X @ w)
    return Dataset(X + 0.2 * y[:, None] * w, y, name=f"cloud of {n} points in {dim} dimensions")


def penalised(data: Dataset, decades: tuple[int, ...] = DECADES) -> list[Tensor]:
    """argmin_w |w|^2/2 + (1/lambda) sum_i log(1 + e^(-y_i <w, x_i>)) for lambda = 10^-decade, one after the other.

    Newton's method with halved steps, from the last solution made longer by the ratio of the decades; all weights in
    logs, so that lambda = 1e-300 is a number.
    """
    Z = data.y[:, None] * data.rows()
    w, found = torch.zeros(data.dim, dtype=torch.float64), []
    for last, decade in zip((None, *decades), decades, strict=False):
        scale = decade * math.log(10)
        w = w if last is None else w * decade / last

        def height(w: Tensor, scale: float = scale) -> float:
            return float(w @ w / 2 + (scale + log_softplus(-Z @ w)).exp().sum())

        for _ in range(200):
            pull = (scale + functional.logsigmoid(-Z @ w)).exp()
            slope = w - pull @ Z
            bend = torch.eye(data.dim, dtype=torch.float64) + (Z * (pull * torch.sigmoid(Z @ w))[:, None]).T @ Z
            step = torch.linalg.solve(bend, slope)
            gain, here, size = float(step @ slope), height(w), 1.0
            while size > 1e-12 and not height(w - size * step) <= here - 0.1 * size * gain:
                size /= 2
            w = w - size * step
            if gain <= 1e-18 * float(w @ w):
                break
        found.append(w)
    return found


@experiment(parts=lambda profile: [{"dim": dim, "n": n} for dim, n in sizes.SEPARABLE[profile]])
def separable(profile: Profile, seed: int, dim: int, n: int) -> Measured:
    """E11, E12: the flow of the logistic loss to 1e-1000, and the penalised solutions, beside the exact SVM."""
    data = cloud(dim, n, seed)
    svm = svm_direction(data).direction

    def cosine(w: Tensor) -> float:
        return float(functional.cosine_similarity(w.flatten(), svm, dim=0))

    start = LogisticRegression(dim, bias=False, dtype=torch.float64)
    run = flow(start, data, loss="logistic", until=Until(log10_loss=-1000), checkpoints=LEVELS)
    nets = [*(run.checkpoints[level] for level in LEVELS), run.net]
    descent = [cosine(net.state_dict()["weight"]) for net in nets]
    path = [cosine(w) for w in penalised(data)]
    falls = max(max(path[:i]) - path[i] for i in range(1, len(path)))
    means = data.class_means()
    values = {
        "cosine of descent at loss 1e-1000": descent[-1],
        "cosine of descent at loss 1e-10": descent[LEVELS.index(-10)],
        "cosine at penalty 1e-300": path[-1],
        "cosine at penalty 1e-8": path[DECADES.index(8)],
        "largest fall of the cosine as the penalty falls": max(0.0, falls),
        "cosine of the class means": cosine(means[0] - means[1]),
    }
    drawn = {"log10 losses": [*LEVELS, -1000], "descent": descent, "decades": list(DECADES), "penalty": path}
    return Measured(values, drawn)


def nearest_centre_radius(net: NearestCentre, X: Tensor, y: Tensor) -> Tensor:
    """r(x) >= min_{l opposite} max_{k own} <x, mu_k - mu_l>/|mu_k - mu_l|, (n,), for centres of equal norm.

    To break the rule some l must come level with every k, and each of these is a half-space away.
    """
    apart = net.centres[:, None] - net.centres
    gaps = torch.einsum("nd,kld->nkl", X, apart) / apart.norm(dim=2).clamp(min=1e-300)
    own = y[:, None] == net.labels
    worst = gaps.masked_fill(~own[:, :, None], -torch.inf).amax(dim=1)
    radius: Tensor = worst.masked_fill(own, torch.inf).amin(dim=1)
    return radius


@experiment()
def linear_rule(profile: Profile, seed: int) -> Measured:
    """E24: logistic regression, whose radius is exact, and the nearest centre on fresh points."""
    size = sizes.LINEAR_RULE[profile]
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, alpha=size.alpha, dtype=torch.float64)
    data, test = mixture.sample(size.samples, seed), mixture.sample(size.points, seed=TEST_SEED + seed)
    model = flow(LogisticRegression(size.dim, dtype=torch.float64), data, loss="logistic", until=1e-3).net
    assert isinstance(model, LogisticRegression)
    with torch.no_grad():
        line = test.y * model(test.rows()) / model.weight.norm()
    nearest = nearest_centre_radius(NearestCentre(mixture.centres, mixture.labels), test.rows(), test.y)
    values: dict[Key, float] = {}
    for rule, radii in (("linear rule", line), ("nearest centre", nearest)):
        values[Quantity("clean accuracy", rule=rule)] = float((radii > 0).double().mean())
        values[Quantity("robust accuracy", rule=rule, radius=0.4)] = float((radii > 0.4).double().mean())
        values[Quantity("median radius", rule=rule)] = float(radii.median())
    return Measured(values)
