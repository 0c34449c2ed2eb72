r"""A linear rule that is right on clean points and breaks, beside a rule that holds (LPLL25's talk, E24).

logistic regression   r(x) = y (<w,x> + b)/|w|
nearest centre        r(x) >= min_{l opposite} max_{k own} <x, mu_k - mu_l>/|mu_k - mu_l|
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import LogisticRegression, NearestCentre
from polyrelu.train import flow


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
