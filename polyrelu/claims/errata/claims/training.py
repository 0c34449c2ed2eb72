"""Contradictions between sources that only trained nets settle."""

from __future__ import annotations

import math
from functools import partial

from polyrelu.claims import Claim, Quantity, Standing, Verdict, at_least, at_most, filled, within
from polyrelu.claims.errata import sizes

BROKEN = "share broken by one z of length 3√(d/k)"
ROBUST = "robust accuracy by APGD-CE in l∞"
CURVE = {0.05: 0.511, 0.1: 0.041}  # p = 1, by radius, read off

contradiction = partial(Claim, standing=Standing.PRINTED, expects=Verdict.ARTEFACT)  # if not said otherwise

CLAIMS: tuple[Claim, ...] = (
    contradiction(
        id="I2",
        sentence="The banner of the 2024 poster asks for p > 3, the theorems for p > 2.",
        paper="MV24",
        where="poster banner, against Theorem 1(b)",
        published="p > 3, so that p = 2.5 falls short of √2/2",
        settings={
            "quick": "p = 2.5, D = 100, 6+4 clusters, α = .1, 100 neurons, 1000 points, by the flow as long as "
            "published; 100 test points.",
            "paper": "p = 2.5, D = 1000, 6+4 clusters, α = .1, 2000 neurons, 20 000 points, by the flow as long as "
            "published; 100 test points.",
        },
        experiment="errata.training.power_between",
        checks=(at_most("radius of F^(2.5) at a centre", 0.70),),
        why=(
            within("radius of F^(2.5) at a centre", math.sqrt(0.5), 1e-6),
            at_least("median radius of the net, p = 2.5", 0.68),
            at_least("median cosine of its neurons to a centre", 0.99),
            at_least("centres learned", 10),
        ),
        reason="p = 2.5 does all that p > 3 is asked for: F^(2.5) holds to √2/2 at a centre, and the trained net "
        "learns every centre. The condition is p > 2.",
    ),
    contradiction(
        id="I3",
        sentence="The posters train with the exponential or logistic loss, and Theorem 1 of 2025 bounds sup |f − "
        "F^(p)| without a factor c.",
        paper="MV25",
        where="posters, against Theorem 1",
        published="sup |f − F^(3)| = Õ(α²) with c = 1",
        settings=filled(
            "p = 3, D = {dim}, {positive}+{negative} clusters, α = {alpha}, {width} neurons, {samples} points, each "
            "loss by the flow to 1e-3.",
            sizes.LOSSES,
        ),
        experiment="errata.training.scale_of_losses",
        checks=tuple(at_most(Quantity("distance without c", loss=loss), 0.1) for loss in ("exp", "logistic")),
        why=(
            at_most(Quantity("distance without c", loss="squared"), 0.1),
            within(Quantity("the best c", loss="squared"), 1.0, 0.1),
            *(at_least(Quantity("distance without c", loss=loss), 4.0) for loss in ("exp", "logistic")),
            *(at_most(Quantity("distance with the best c", loss=loss), 0.05) for loss in ("exp", "logistic")),
        ),
        reason="The squared loss, for which the theorem is proven, stops f at F^(3) and needs no c. With the posters' "
        "losses f keeps growing like log 1/loss: it is near F^(3) only up to c, about .14 here.",
    ),
    contradiction(
        id="I6",
        sentence="The caption says 10 repeats and α = .1 for the attacked nets, the code runs 5 repeats and attacks α "
        "= .01.",
        paper="MV24",
        where="Fig. 2, caption against code",
        published="10 repeats, α = .1; 5 repeats, α = .01",
        settings={
            "quick": "p = 1 and 3, α = .1 and .01, D = 100, 6+4 clusters, 100 neurons, by the flow as long as "
            "published; two repeats for α = .1, one for .01; 200 test points.",
            "paper": "p = 1 and 3, α = .1 and .01, D = 1000, 6+4 clusters, 2000 neurons, by the flow as long as "
            "published; ten repeats for α = .1, five for .01; 200 test points.",
        },
        experiment="errata.training.attacked_alpha",
        checks=tuple(
            check
            for p in (1, 3)
            for check in (
                within(Quantity("median radius at α = .1 minus at .01", p=p), 0.0, 0.01),
                within(Quantity("median radius over all repeats minus over half", p=p), 0.0, 0.01),
            )
        ),
        reason="It does not matter which of them was run: the radius at which half of the points break moves by less "
        "than .01.",
        expects=Verdict.REPRODUCED,
    ),
    contradiction(
        id="I21",
        sentence="The poster says that any ReLU net trained by gradient flow is broken within O(1/√K); the theorem it "
        "cites is about KKT points, under conditions.",
        paper="MV25",
        where="poster, against Frei et al. 2023, Theorem 4.2",
        published="any ReLU net breaks at O(1/√K)",
        settings=filled(
            "d = {dim}, {positive}+{negative} clusters, {samples} points; flow of the logistic loss to 1e-6 from a "
            "small start ({width} neurons) and from the hand-built robust net of the same paper.",
            sizes.KKT,
        ),
        experiment="errata.training.not_every_net",
        checks=tuple(at_least(Quantity(BROKEN, start=start), 0.95) for start in ("robust start", "small start")),
        why=(
            at_least(Quantity(BROKEN, start="small start"), 0.95),
            at_most(Quantity(BROKEN, start="robust start"), 0.2),
            at_most(Quantity("KKT residual", start="small start"), 0.3),
            at_least(Quantity("KKT residual", start="robust start"), 0.9),
        ),
        reason="It holds near KKT points, where small starts lead. Begun at a robust net, the flow reaches the same "
        "loss of 1e-6 far from any KKT point and stays robust to that z.",
    ),
    contradiction(
        id="I8",
        sentence="What the MNIST experiments call the test set is the 10 000-image validation split.",
        paper="MV24",
        where="code, against the text",
        published="test accuracy .980 to .982",
        settings={
            "quick": "Nothing to run at this size.",
            "paper": "MNIST, p = 1 and 4, published recipe; accuracy of all 10 000 images of either split, and APGD-CE "
            "at l∞ .05 and .1 on them.",
        },
        experiment="errata.training.validation_split",
        checks=tuple(
            check
            for where in ({"p": p, "split": "validation minus test"} for p in (1, 4))
            for check in (
                within(Quantity("accuracy", **where), 0.0, 0.005),
                *(within(Quantity(ROBUST, radius=radius, **where), 0.0, 0.03) for radius in CURVE),
            )
        ),
        reason="It does not matter: the same nets do as well on the images that nobody looked at.",
        expects={"quick": Verdict.NOT_RUN, "paper": Verdict.REPRODUCED},
    ),
    contradiction(
        id="I19",
        sentence="The caption of the robust-accuracy curve says parity, its values are those of the ten-digit table.",
        paper="MV24",
        where="Fig. 3d, against Table 1",
        standing=Standing.SECONDARY,
        published="p = 1: .511 at l∞ .05, .041 at .1",
        settings={
            "quick": "8 × 8 digits, p = 1, both tasks; APGD-CE at l∞ .05 and .1 on all 497 images held out.",
            "paper": "MNIST, p = 1, both tasks by the published recipe; APGD-CE at l∞ .05 and .1 on all "
            "10 000 validation images.",
        },
        experiment="errata.training.parity_or_digits",
        checks={
            "quick": tuple(within(Quantity("parity minus ten digits", radius=radius), 0.0, 0.02) for radius in CURVE),
            "paper": tuple(
                within(Quantity(ROBUST, radius=radius, task="parity"), share, 0.03) for radius, share in CURVE.items()
            ),
        },
        why={
            "quick": (at_most(Quantity("parity minus ten digits", radius=0.05), -0.02),),
            "paper": tuple(
                within(Quantity(ROBUST, radius=radius, task="ten digits"), share, 0.03)
                for radius, share in CURVE.items()
            ),
        },
        reason="The curve is that of the ten digits; parity gives other values.",
    ),
)
