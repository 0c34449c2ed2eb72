"""Radii proven from slopes, beside the true ones (Lyu & Li, ICLR 2020; E10, and E26 of a talk).

R(x) >= q(x)/beta,  beta the Lipschitz constant of the margin q
"""

from __future__ import annotations

import torch

from polyrelu.bias import lipschitz_radius
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.ll20 import sizes
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.robust import bracket


@experiment(over={"p": (1.0, 3.0)})
def sample_radii(profile: Profile, seed: int, p: float) -> Measured:
    """How far fresh points are from the boundary (bracket), and how far the slope proves them to be."""
    found = trained(SIX_FOUR[profile], p, seed)
    test = found.test(sizes.FRESH_POINTS[profile])
    both = bracket(found.net, test.rows(), test.y, tol=1e-3)
    share = lipschitz_radius(found.net, test) / both.upper
    share = torch.where(both.upper > 0, share, 0.0)
    relative = torch.stack([both.lower, both.upper]) / test.rows().double().norm(dim=1)
    values = {
        "largest certificate over attack": float(share.max()),
        "median certificate over attack": float(share.median()),
        "median radius over |x|": float(relative.mean(dim=0).median()),
        "gap of the median radius": float(relative[1].median() - relative[0].median()),
    }
    return Measured(values)
