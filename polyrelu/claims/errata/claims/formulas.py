"""Printed formulas, numbers and citations that contradict each other."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import Claim, Quantity, Standing, Verdict, at_least, at_most, filled, within
from polyrelu.claims.errata import sizes

contradiction = partial(Claim, standing=Standing.PRINTED, expects=Verdict.ARTEFACT)  # if not said otherwise

CLAIMS: tuple[Claim, ...] = (
    contradiction(
        id="I9",
        sentence="The network is printed without any division by |x|, the nets of the image experiments divide by "
        "|x|^(p−1).",
        paper="MV24",
        where="definition of the network, against the code",
        published="degree p in x",
        settings=filled(
            "A net of {inputs} inputs, {neurons} neurons and 10 logits, p = 4, Kaiming start, x centred, bias taken "
            "off.",
            inputs=sizes.IMAGE_INPUTS,
            neurons=sizes.IMAGE_NEURONS,
        ),
        experiment="errata.formulas.degree_of_image_nets",
        checks=(within(Quantity("degree in x", net="image nets", p=4), 4.0, 1e-6),),
        why=(
            within(Quantity("degree in x", net="image nets", p=4), 1.0, 1e-9),
            within(Quantity("degree in x", net="printed formula", p=4), 4.0, 1e-9),
        ),
        reason="Scaling the centred image by c scales the logits by c and not by c^p, so results on images are about "
        "another function of x than the theorems.",
    ),
    contradiction(
        id="I10",
        sentence="Proposition 3 is printed for 1-homogeneous f, but F^(p) and the nets it is used for have degree p in "
        "x.",
        paper="MV25",
        where="Proposition 3",
        published="degree 1",
        settings=filled("F^(3) and a random net with p = 3, D = {dim}.", dim=sizes.DEGREE),
        experiment="errata.formulas.degree_of_centres",
        checks=(within(Quantity("degree in x", net="F^(p)", p=3), 1.0, 1e-6),),
        why=(
            within(Quantity("degree in x", net="F^(p)", p=3), 3.0, 1e-9),
            within(Quantity("degree in x", net="random net", p=3), 3.0, 1e-9),
        ),
        reason="Read p-homogeneous: for p > 1 neither F^(p) nor any of the nets is 1-homogeneous.",
    ),
    contradiction(
        id="I11",
        sentence="The loss-based rate is said to give a margin 10 times that of the constant rate; the printed margins "
        "are 1.2e-3 and 1.8e-4.",
        paper="LL20",
        where="text, against its printed margins",
        published="10 times",
        settings="Arithmetic on two printed numbers; the same at both sizes.",
        experiment="errata.formulas.margin_ratio",
        checks=(within("ratio of the printed margins", 10.0, 0.5),),
        why=(within("ratio of the printed margins", 6.67, 0.01), at_most("largest by rounding", 7.2)),
        reason="The two numbers give 6.7, and whatever they were rounded from at most 7.2.",
    ),
    contradiction(
        id="I17",
        sentence="The poster's alignment formula d/dt w/|w| ≈ P⊥ x^(p)(w) has no factor sign(v), so that all neurons "
        "would move alike.",
        paper="MV25",
        where="poster, alignment phase",
        published="cosine 1 for every neuron",
        settings=filled(
            "Gradient of the summed exponential loss at start 1e-8, D = {dim}, {positive}+{negative} clusters, "
            "{width} neurons, p = 1 and 3.",
            sizes.ALIGNMENT,
        ),
        experiment="errata.formulas.missing_sign",
        checks=tuple(
            at_least(Quantity("cosine to the printed formula, worst neuron", p=p), 0.999, 1.0) for p in (1, 3)
        ),
        why=tuple(
            check
            for p in (1, 3)
            for check in (
                at_least(Quantity("cosine with sign(v), worst neuron", p=p), 0.999999),
                at_least(Quantity("cosine to the printed formula, worst neuron with v > 0", p=p), 0.999),
                at_most(Quantity("cosine to the printed formula, best neuron with v < 0", p=p), -0.999),
            )
        ),
        reason="Neurons with v < 0 move exactly the other way. With the factor sign(v) the formula is right for all.",
    ),
    contradiction(
        id="I20",
        sentence="Theorem 1(b) asks for δ < √2 on one poster and allows δ = √2 on the other.",
        paper="MV24",
        where="Theorem 1(b), both posters",
        published="δ = √2 is radius 0",
        settings=filled(
            "Exact radii of F^(3), 6+4 clusters, {points} points; α = 3, D = 100 and α = .7, D = 1000.",
            points=sizes.LARGEST_DELTA,
        ),
        experiment="errata.formulas.largest_delta",
        checks=(
            within(Quantity("accuracy at δ = √2 minus clean accuracy", alpha=3), 0.0, 1e-9),
            within(Quantity("accuracy at δ = √2 minus clean accuracy", alpha=0.7), 0.0, 1e-9),
            at_least(Quantity("clean accuracy minus the bound at δ = √2", alpha=0.7), 0.0),
        ),
        reason="Both readings are right: at δ = √2 the statement is about clean accuracy, and holds.",
        expects=Verdict.REPRODUCED,
    ),
    contradiction(
        id="I22",
        sentence="The reproducibility table prints the scales of the start as “10 7” and “1 10 4”.",
        paper="MV25",
        where="reproducibility table",
        standing=Standing.SECONDARY,
        published="“10 7”, “1 10 4”",
        settings="Nothing to run.",
        experiment="",
        checks=(),
        reason="Signs were lost in print, nothing to measure: read ε = 1e-7, and 1e-4 as the variance of an entry.",
        expects=Verdict.NOT_RUN,
    ),
    contradiction(
        id="I23",
        sentence="The loss is defined as ½(y − f)², and its plotted curve starts at 1.0 although f is about 0 there.",
        paper="MV25",
        where="Fig. 5, against the definition of the loss",
        standing=Standing.READ_OFF,
        published="1.0",
        settings=filled(
            "D = {dim}, {positive}+{negative} clusters, {samples} points, {width} neurons, start 1e-7.",
            sizes.STARTING_LOSS,
        ),
        experiment="errata.formulas.starting_loss",
        checks=(within("mean of ½(y − f)² at the start", 1.0, 0.02),),
        why=(within("mean of ½(y − f)² at the start", 0.5, 1e-6), within("mean of (y − f)²", 1.0, 1e-6)),
        reason="The mean of ½(y − f)² is .5 at f = 0; 1.0 is what the mean of (y − f)², without the ½, gives.",
    ),
    contradiction(
        id="I24",
        sentence="The slides cite Theorem “5.5”, Frei et al. “2024” and Lyu et al. “20”, and write O(√d) for a radius "
        "of order √d.",
        paper="LPLL25",
        where="slides",
        published="Theorem 5.5; 2024; 20; O(√d)",
        settings="Nothing to run.",
        experiment="",
        checks=(),
        reason="Citations, nothing to measure: read Theorem 4.7, Frei et al. 2023, Lyu et al. 2021, and Θ(√d).",
        expects=Verdict.NOT_RUN,
    ),
)
