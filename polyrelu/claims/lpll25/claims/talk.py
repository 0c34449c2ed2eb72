"""From the slides of a talk on the paper: where linear models end, and rules that hold or break (E11 to E26)."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import PROFILES, Claim, Quantity, Standing, at_least, at_most, filled, within
from polyrelu.claims.lpll25 import sizes

TALK = "slides of a talk by Jian Li (2024)"

said = partial(Claim, paper="LPLL25", standing=Standing.PRINTED)
separable = partial(said, experiment="lpll25.linear_models.separable")

CLAIMS: tuple[Claim, ...] = (
    separable(
        id="E11",
        sentence="Gradient descent on the logistic loss of separable data turns to the hard-margin SVM, penalty-free.",
        where=f"{TALK}, quoting Soudry et al. 2017",
        published="cosine to the SVM → 1",
        settings={
            "quick": "40 points in 2 dimensions with a free slab; gradient flow in rescaled time to loss 1e-1000",
            "paper": "the same with 40, 200 and 1000 points in 2, 10 and 50 dimensions",
        },
        checks={
            profile: tuple(
                at_least(Quantity("cosine of descent at loss 1e-1000", dim=dim, n=n), 0.9999)
                for dim, n in sizes.SEPARABLE[profile]
            )
            for profile in PROFILES
        },
    ),
    separable(
        id="E12",
        sentence="The minimiser of the logistic loss with an L2 penalty λ tends to the hard-margin SVM as λ → 0.",
        where=f"{TALK}, quoting Rosset et al. 2004",
        published="cosine to the SVM → 1 as λ → 0",
        settings={
            "quick": "40 points in 2 dimensions; exact minimisers for λ = 1e-1 … 1e-300",
            "paper": "the same with 40, 200 and 1000 points in 2, 10 and 50 dimensions",
        },
        checks={
            profile: tuple(
                check
                for dim, n in sizes.SEPARABLE[profile]
                for check in (
                    at_least(Quantity("cosine at penalty 1e-300", dim=dim, n=n), 0.9999),
                    at_least(Quantity("cosine at penalty 1e-8", dim=dim, n=n), 0.98),
                )
            )
            for profile in PROFILES
        },
        reason="The angle falls like 1/log(1/λ), so that at λ = 1e-8 it can still be several degrees, and not always "
        "steadily: the limit is what is claimed, and λ = 1e-300 shows it.",
    ),
    said(
        id="E24",
        sentence="A linear rule can be right on every clean point and wrong on nearly every perturbed one where a "
        "robust rule exists.",
        where=f"{TALK}, quoting Li et al. 2022",
        published="linear rule: clean 1, robust ≈ 0; robust rule: 1 and 1",
        settings=filled(
            "D = {dim}, {positive}+{negative} clusters, α = {alpha}, {samples} training and {points} fresh points, "
            "radius .4; exact radii",
            sizes.LINEAR_RULE,
        ),
        experiment="lpll25.linear_models.linear_rule",
        checks=(
            at_least(Quantity("clean accuracy", rule="linear rule"), 0.999, published=1.0),
            at_most(Quantity("robust accuracy", rule="linear rule", radius=0.4), 0.01, published=0.0),
            at_least(Quantity("clean accuracy", rule="nearest centre"), 0.999, published=1.0),
            at_least(Quantity("robust accuracy", rule="nearest centre", radius=0.4), 0.999, published=1.0),
        ),
    ),
    said(
        id="E26",
        sentence="Samples lie near the decision boundary of a ReLU net, at a third of their norm, and farther from "
        "that of a pReLU net.",
        where=TALK,
        published='"every sample is very close to the boundary"; for 10 clusters 1/√10 = .316 and √2/2 = .707',
        settings={
            "quick": "D = 100, 6+4 clusters, h = 100, p = 1 and 3, 100 fresh points, brackets",
            "paper": "D = 1000, h = 2000, n = 20 000, 500 fresh points, else the same",
        },
        experiment="ll20.margins.sample_radii",
        checks=(
            within(Quantity("median radius over |x|", p=1), 0.316, 0.02),
            within(Quantity("median radius over |x|", p=3), 0.70, 0.02),
        ),
    ),
)
