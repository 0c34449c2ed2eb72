"""What Lyu, Li, Wang & Arora (NeurIPS 2021) say, and where our numbers must lie for it to hold."""

from __future__ import annotations

from functools import partial

from polyrelu.claims import Claim, Quantity, Standing, at_least, at_most, filled
from polyrelu.claims.llwa21 import MIRRORED, SLABS

LEAKY = "{width} neurons of slope .5, start 1e-4, logistic loss to 1e-1000"

said = partial(Claim, paper="LLWA21", standing=Standing.PRINTED)

CLAIMS: tuple[Claim, ...] = (
    said(
        id="E15",
        sentence="On mirrored, linearly separable data a leaky ReLU net from a small start converges to the linear "
        "classifier of largest margin, which is its global max-margin solution.",
        where="main theorem",
        published="linear, max-margin",
        settings=filled(f"d = {{dim}}, {{points}} mirrored pairs, {LEAKY}", MIRRORED),
        experiment="llwa21.simplicity.mirrored",
        checks=(
            at_least("cosine to the SVM", 0.99),
            at_most("part that is not linear", 0.02),
            at_least("margin over the largest possible", 0.99),
        ),
    ),
    said(
        id="E16",
        sentence="A few more points make the same flow end in a linear decision rule whose margin is not the largest "
        "that a net can have.",
        where="theorem on non-symmetric data",
        published="linear, margin sub-optimal; our points: 2/3 of the hand-built net's",
        settings=filled(
            "d = {dim}, {points} mirrored pairs with two blockers and a hint (SymmetricSeparable, extra=3), " + LEAKY,
            MIRRORED,
        ),
        experiment="llwa21.simplicity.misled",
        checks=(
            at_most("margin over that of the hand-built net", 0.9),
            at_least("agreement with the linear rule", 0.98),
        ),
    ),
    said(
        id="E25",
        sentence="Where one feature separates the classes by a line and another by slabs with a wider gap, a two-layer "
        "net from a small start takes the line and gives up margin.",
        where="slides of a talk by Jian Li (2024), after Shah et al. 2020",
        published="a linear boundary, locally but not globally of largest margin",
        settings=filled(
            "{points} points in the plane, {width} ReLU neurons with biases, start 1e-4 (or 1), logistic loss to 1e-10",
            SLABS,
        ),
        experiment="llwa21.simplicity.boundary",
        checks=(
            at_most(Quantity("margin over the best possible", start="small start"), 0.65),
            at_most(Quantity("angle to the linear boundary in degrees", start="small start"), 8.0),
            at_most(Quantity("largest bend of the boundary", start="small start"), 0.08),
        ),
        reason="A large start bends the boundary around the slabs and comes nearer to the best margin: it is the small "
        "start that makes it linear.",
    ),
)
