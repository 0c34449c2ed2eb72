"""Numbers that the measuring procedure made: attacks and ascents that stop short."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import Check, Claim, Quantity, Standing, Verdict, at_least, at_most, filled, within
from polyrelu.claims.errata import sizes

contradiction = partial(Claim, standing=Standing.PRINTED, expects=Verdict.ARTEFACT)  # if not said otherwise

CLAIMS: tuple[Claim, ...] = (
    contradiction(
        id="I5",
        sentence="The published curve of p = 3 stays at 1.0 up to about .85, beyond √2/2, where no classifier can hold."
        "",
        paper="MV24",
        where="Fig. 2e",
        standing=Standing.READ_OFF,
        published="1.0 at .75",
        settings={
            "quick": "F^(3), D = 1000, 6+4 clusters, α = .1, 50 points; the published attack (start at x, 2000 steps).",
            "paper": "Net of 2000 neurons trained as long as published, D = 1000, 6+4 clusters, α = .1, 50 points; "
            "the published attack.",
        },
        experiment="errata.procedures.beyond_half_gap",
        checks=(within("robust accuracy at .75", 1.0, 0.02),),
        why=(
            within("reported by the published attack at .75", 1.0, 0.02),
            at_most("robust accuracy at .75", 0.02),
            at_least("certified at .66", 0.9),
        ),
        reason="Started at x, the attack sees no slope towards the other class, because relu(z)^3 is flat there, and "
        "reports 1.0 where every point can be broken. The truth is √2/2, certified from below and attacked from "
        "above.",
    ),
    contradiction(
        id="I14",
        sentence="The plotted distance sup |f − F^(3)| starts at .53, although f is about 0 there and sup |F^(3)| = 1.",
        paper="MV25",
        where="Fig. 5",
        standing=Standing.READ_OFF,
        published=".53",
        settings=filled(
            "D = {dim}, {positive}+{negative} clusters, {width} neurons, start 1e-7; an ascent from {points} random "
            "unit vectors beside it.",
            sizes.START_DISTANCE,
        ),
        experiment="errata.procedures.distance_at_start",
        checks=(within("distance at the start", 0.53, 0.05),),
        why=(
            within("distance at the start", 1.0, 1e-6),
            within("reported by an ascent of 100 steps of .01", 0.53, 0.1),
        ),
        reason="The distance is 1 at every centre. How long the source climbed is not printed; an ascent from random "
        "unit vectors is a lower bound, and after 100 steps of .01 it stands at about .52.",
    ),
    contradiction(
        id="I15",
        sentence="The published distances of p = 3 are of order 1e-5, a thousand times smaller than those of p = 1.",
        paper="MV24",
        where="Fig. 2a",
        standing=Standing.READ_OFF,
        published=".8e-5 to 2.7e-5",
        settings={
            "quick": "F^(3) with one coefficient 3 % off, D = 1000; the published estimator on 1000 vectors, 50 steps.",
            "paper": "F^(3) with one coefficient 3 % off, D = 1000; the published estimator on 2 batches of 1000 "
            "vectors, 1000 steps.",
        },
        experiment="errata.procedures.guarded_distance",
        checks=(at_most("true distance", 1e-4, 1.1e-5),),
        why=(
            within("true distance", 0.027, 1e-3),
            Check("reported by the published estimator", 5e-6, 1e-4),
            within("reported without the guard", 0.027, 1e-3),
        ),
        reason="The mean over the batch makes gradients so small that the guard 1e-7 in the step stops the ascent: a "
        "net that is 3 % off at one centre is reported at 2e-5 to 6e-5. Without the guard the same ascent finds the "
        "true distance.",
    ),
    contradiction(
        id="I18",
        sentence="Projected gradient descent from a random start breaks half of the points of F^(3) at about .72, near "
        "the truth.",
        paper="ours",
        where="attack checks on F^(3)",
        standing=Standing.DERIVED,
        published="half broken at .72",
        settings=filled(
            "F^(3), 6+4 clusters, α = .1, D = 10, 50 and 1000, {points} points, 200 steps from one random start.",
            points=sizes.RANDOM_STARTS,
        ),
        experiment="errata.procedures.random_starts",
        checks=(at_most(Quantity("reported accuracy at .75", dim=1000), 0.5),),
        why=(
            at_most(Quantity("reported accuracy at .75", dim=10), 0.3),
            Check(Quantity("reported accuracy at .75", dim=50), 0.3, 0.8),
            at_least(Quantity("reported accuracy at .75", dim=1000), 0.95),
            *(at_most(Quantity("true accuracy at .75", dim=dim), 0.06) for dim in (10, 50, 1000)),
        ),
        reason="It holds only in the span of the centres, D = K. The part of a random start along a centre is about "
        "1/√D, so the reported accuracy rises with D to 1.0, where the truth is 0.",
    ),
    contradiction(
        id="I25",
        sentence="Robust accuracy by APGD on the cross-entropy is compared over p, as if the attack were equally good "
        "for every p.",
        paper="MV24",
        where="Table 1, Fig. 3d",
        standing=Standing.DERIVED,
        published="what APGD on the cross-entropy reports",
        settings=filled(
            "64 inputs, 10 classes, logits relu(x_j)^p, p = 1 and 4, {points} points; certified, attacked, and "
            "APGD-CE (60 steps).",
            points=sizes.SAME_CLASSIFIER,
        ),
        experiment="errata.procedures.same_classifier",
        checks=tuple(within(Quantity("robust accuracy at .8", p=p), 1.0, 0.02) for p in (1, 4)),
        why=(
            *(at_most(Quantity("robust accuracy at .8", p=p), 0.02) for p in (1, 4)),
            *(at_least(Quantity("reported by APGD on the cross-entropy at .8", p=p), 0.98) for p in (1, 4)),
            within("true rise from p = 1 to 4", 0.0, 2e-3),
            at_least("rise it reports from p = 1 to 4", 0.02),
        ),
        reason="All p are the same classifier here, with the same radius of .70. The attack reports over .9, and more "
        "for larger p: what rises is its own error.",
    ),
    contradiction(
        id="I7",
        sentence="The poster says AutoAttack, the code runs APGD on the cross-entropy only.",
        paper="MV24",
        where="poster, against the code",
        published="APGD on the cross-entropy alone counts as AutoAttack",
        settings=filled(
            "8x8 digits in place of MNIST: {width} neurons, p = {powers}, Adam, {epochs} epochs, l∞ .1 and .15, "
            "{attacked} test images.",
            sizes.DIGITS,
            powers=sizes.POWERS,
        ),
        experiment="errata.procedures.cross_entropy_only",
        checks=(at_most("largest gap between APGD-CE and both", 0.02),),
        why=(
            at_least("largest gap between APGD-CE and both", 0.03),
            at_least("by both at .1, p = 4 minus p = 1", 0.1),
        ),
        reason="A targeted margin attack, which AutoAttack would have run too, takes several points more, most of all "
        "for large p: the published numbers are upper bounds. That larger p is more robust stays true.",
        shown="largest gap between APGD-CE and both",
    ),
)
