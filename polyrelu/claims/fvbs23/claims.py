"""What Frei, Vardi, Bartlett & Srebro (NeurIPS 2023) say, and where our numbers must lie for it to hold."""

from __future__ import annotations

from polyrelu.claims import Claim, Quantity, Standing, at_least, filled, within
from polyrelu.claims.fvbs23 import CLUSTERS

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="E13",
        sentence="On k clusters of norm √d one direction, z = η Σ_j y_j μ_j with |z| = O(√(d/k)), changes what a "
        "trained ReLU net with biases says about nearly every point x when it is moved to x − y z.",
        paper="FVBS23",
        where="Theorem 4.2",
        standing=Standing.PRINTED,
        published="P[flip] ≥ 1 − ε at |z| = O(√(d/k))",
        settings=filled(
            "d = {dim}, k = {k}, n = k ln²d, noise N(0, I), {width} neurons, start 1e-4, logistic loss to 1e-6; "
            "{points} fresh points",
            CLUSTERS,
        ),
        experiment="fvbs23.universal.clusters",
        checks={
            profile: (
                *(at_least(Quantity("points flipped by |z| = 3 sqrt(d/k)", k=k), 0.95) for k in size.k),
                within("slope of log |z| against log k", -0.5, 0.05),
            )
            for profile, size in CLUSTERS.items()
        },
        reason="The theorem is about KKT points; the residual reached is shown beside the loss.",
        shown=Quantity("|z| that flips half over sqrt(d/k)", k=8),
    ),
)
