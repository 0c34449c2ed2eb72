"""What Vardi, Yehudai & Shamir (NeurIPS 2022) say, and where our numbers must lie for it to hold."""

from __future__ import annotations

from polyrelu.claims import Check, Claim, Quantity, Standing, at_most

SLOPE = "slope of log c/sqrt(d) against log d"

CLAIMS: tuple[Claim, ...] = (
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
        experiment="vys22.sphere.margin_points",
        checks={
            "quick": (at_most(Quantity("c over sqrt(d)", dim=240, exponent=1.0), 0.3), Check(SLOPE, -0.9, -0.1)),
            "paper": (at_most(Quantity("c over sqrt(d)", dim=1000, exponent=1.0), 0.3), Check(SLOPE, -0.7, -0.3)),
        },
        reason="c = O(√(d/m)) predicts a slope of −1/2 for m = d; at quick size c scatters by a sixth between draws. "
        "Far more points than dimensions (m = d^1.5) are no longer nearly orthogonal, and c/√d is above 1.",
        shown=SLOPE,
    ),
)
