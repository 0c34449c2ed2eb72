"""Contradictions about class averages: the classifier F, and the nets that average features."""

from __future__ import annotations

import math
from functools import partial

from polyrelu.claims import Claim, Quantity, Standing, Verdict, at_least, at_most, filled, within
from polyrelu.claims.errata import sizes


def _radius(sign: str, averages: str, clusters: str) -> Quantity:
    return Quantity(f"radius at a {sign} centre", averages=averages, clusters=clusters)


contradiction = partial(Claim, standing=Standing.PRINTED, expects=Verdict.ARTEFACT)  # if not said otherwise

CLAIMS: tuple[Claim, ...] = (
    contradiction(
        id="I1",
        sentence="The posters give each cluster the covariance α²I, the 2025 paper and the public code α²I/D.",
        paper="MV24",
        where="poster, against the code",
        published="α²I; robust accuracy 1.0 at .30",
        settings="Exact radii of F, 6+4 clusters, α = .1, D = 1000, 20 000 points; the same at both sizes.",
        experiment="errata.averages.noise_covariance",
        checks=(within(Quantity("accuracy of F at .30", covariance="covariance α²I"), 1.0, 0.02),),
        why=(
            within(Quantity("accuracy of F at .30", covariance="covariance α²I/D"), 1.0, 0.02),
            within(Quantity("10% quantile of F's radius", covariance="covariance α²I/D"), 0.312, 0.002),
            within(Quantity("90% quantile of F's radius", covariance="covariance α²I/D"), 0.320, 0.002),
            within(Quantity("10% quantile of F's radius", covariance="covariance α²I"), 0.188, 0.01),
            within(Quantity("90% quantile of F's radius", covariance="covariance α²I"), 0.440, 0.01),
        ),
        reason="The published curve needs α²I/D. With α²I as the posters print it, a tenth of the points of F would "
        "break at .19 already and another tenth hold beyond .44.",
    ),
    contradiction(
        id="I4",
        sentence="Theorem 1(a) names one unit direction d0 that breaks F on both classes at (1 + ρ)/√K, for every ρ > "
        "0.",
        paper="MV24",
        where="Theorem 1(a)",
        published="accuracy ≤ 2 exp(−CDρ²/(α²K)), about 0 at ρ = .5",
        settings=filled(
            "F, 6+4 clusters, α = .1, D = 1000, {points} points, 360 directions in the plane that F sees.",
            points=sizes.ONE_DIRECTION,
        ),
        experiment="errata.averages.one_direction",
        checks=(at_most("accuracy of F at 1.5/√K, best common direction", 0.05, 0.0),),
        why=(
            within("accuracy of F at 1.5/√K, best common direction", 0.4, 0.01),
            at_most("accuracy of F at 1.5/√K, x − y r d0", 0.01),
            within("radius in 1/√K at which one direction makes F = 0 at every centre", 10 / math.sqrt(24), 1e-6),
        ),
        reason="No common direction takes more than one class below √(K/(K1K2)), about 2/√K; there F is 0, not wrong. "
        "The statement holds with the sign of the label: x − y r d0.",
    ),
    contradiction(
        id="I12",
        sentence="The class averages μ+ and μ− in F are sums of the centres on the posters and unit vectors in the "
        "figures, as if it were the same.",
        paper="MV24",
        where="posters, against Fig. 2c",
        published="1/√K = .3162 for either class",
        settings=filled(
            "Two-neuron nets at exact centres, D = {dim}, 6+4 and 5+5 clusters, certified and attacked within 1e-6.",
            dim=sizes.UNIT_AVERAGES,
        ),
        experiment="errata.averages.unit_averages",
        checks=tuple(within(_radius(sign, "unit averages", "6+4"), 0.3162, 1e-3) for sign in ("positive", "negative")),
        why=(
            within(_radius("positive", "unit averages", "6+4"), 1 / math.sqrt(12), 1e-5),
            within(_radius("negative", "unit averages", "6+4"), 1 / math.sqrt(8), 1e-5),
            *(within(_radius(sign, "sums", "6+4"), 10**-0.5, 1e-5) for sign in ("positive", "negative")),
            *(within(_radius(sign, "unit averages", "5+5"), 10**-0.5, 1e-5) for sign in ("positive", "negative")),
        ),
        reason="F must be read with sums. Unit vectors move the break to 1/√(2 K_own), .289 and .354 for 6+4; only for "
        "K1 = K2 are both readings the same.",
    ),
    contradiction(
        id="I13",
        sentence="The slides start the weights at variance 1/d, the experiment behind the plotted cosines at a "
        "deviation of 1e-5.",
        paper="LPLL25",
        where="slides, against Fig. 2a",
        standing=Standing.SECONDARY,
        published="cosine to own centres .40 to .48",
        settings={
            "quick": "d = 512, 5+5 clusters, 500 points, 5+5 neurons, logistic loss, 200 steps of .005 from either "
            "start.",
            "paper": "d = 3072, 5+5 clusters, 1000 points, 5+5 neurons, logistic loss, 100 steps of .001 from either "
            "start.",
        },
        experiment="errata.averages.averaging_starts",
        checks=(within(Quantity("mean cosine to own centres", start="start 1/√d"), 0.447, 0.04),),
        why=(
            within(Quantity("mean cosine to own centres", start="start 1e-5"), 0.447, 0.02),
            at_most(Quantity("mean cosine to own centres", start="start 1/√d"), 0.15),
            *(at_least(Quantity("training accuracy", start=start), 0.95) for start in ("start 1e-5", "start 1/√d")),
        ),
        reason="The plotted cosines need the small start. From variance 1/d the same steps also fit the data, but the "
        "weights are still mostly the start: the theorem's time, polynomial in d, is far longer than the experiment.",
    ),
    contradiction(
        id="I16",
        sentence="The net trained on cluster labels, read out as a sum over each class, is shown to hold to about "
        "√(d/2), as decoupled features should.",
        paper="LPLL25",
        where="Fig. 3, left",
        standing=Standing.READ_OFF,
        published="1.0 at .6√d (33.3 for d = 3072)",
        settings={
            "quick": "d = 512, 5+5 clusters, 500 points, one neuron a cluster, cross-entropy, 200 steps of .005; 400 "
            "test points.",
            "paper": "d = 3072, 5+5 clusters, 1000 points, one neuron a cluster, cross-entropy, 100 steps of .001; "
            "400 test points.",
        },
        experiment="errata.averages.summed_readout",
        checks=(within("accuracy of the summed read-out at .6√d", 1.0, 0.02),),
        why=(
            at_most("accuracy of the summed read-out at .6√d", 0.05),
            at_least("accuracy of the largest-logit read-out at .6√d", 0.9),
            at_least("reported by PGD on the net's own loss at .6√d", 0.95),
        ),
        reason="A summed read-out is F^(1): stepping to all opposite centres at once breaks it at √(d/(1 + k_opp)), of "
        "order √(d/k). An attack on the net's own ten-class loss reports the plotted 1.0; the largest logit of each "
        "class does hold that far.",
    ),
)
