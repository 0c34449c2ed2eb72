"""Heads on frozen embeddings (D7)."""

from __future__ import annotations

from polyrelu.claims import Claim, Quantity, Standing, at_least

STAND_IN = (
    "{} clusters in {} dimensions, seen through {} random ReLU features, class = cluster mod 10 (a stand-in); four "
    "fifths to train on, {} neurons, Adam 1e-3, batches of {}, 51 epochs; 100 held-out rows attacked."
)
GAIN = "p = 4 minus p = 1"


def _gain(side: str, radius: float | str, norm: str = "l∞") -> Quantity:
    return Quantity(f"robust accuracy, {GAIN}", side=side, norm=norm, radius=radius)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="D7",
        sentence="A pReLU head on frozen embeddings, whose ten labels put many kinds together, gains accuracy and "
        "robustness as p grows.",
        paper="MV24",
        where="Fig. 4 (Caltech-256, ResNet-152)",
        standing=Standing.UNKNOWN,
        published="both grow with p",
        settings={
            "quick": STAND_IN.format(40, 32, 256, 200, 100),
            "paper": "The features of Caltech-256 in the file that $POLYRELU_CALTECH256 names, or caltech256.npz in "
            "the cache; without one, "
            + STAND_IN.format(257, 64, 2048, 2000, "1000 (a 24th of the rows, if that is less)")
            + " Published: five repeats, no output bias.",
        },
        experiment="mv24.embeddings.heads",
        checks={
            "quick": (
                at_least(f"accuracy, {GAIN}", 0.01),
                at_least("accuracy, smallest step in p", -0.015),
                at_least(_gain("strongest attack", radius=0.05), 0.05),
                at_least(_gain("strongest attack", radius=0.1), 0.1),
                at_least(_gain("certified", radius=0.1), 0.1),
            ),
            "paper": (
                at_least(f"accuracy, {GAIN}", 0.0),
                *(at_least(_gain("strongest attack", radius=radius), 0.0) for radius in (0.05, 0.1)),
                at_least(_gain("strongest attack", radius="0.1 |x|", norm="l2"), 0.0),
            ),
        },
        reason="The features are not published, only a matrix of their cosines; what stands for them is named in the "
        "settings. l∞ means something only in the coordinates of the network itself.",
        shown=_gain("strongest attack", radius=0.1),
    ),
)
