"""Even or odd: the same nets with one logit on MNIST's parity (Min & Vidal 2024, Fig. 3; D5 and D10).

f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) + b,   y = +1 for even digits, -1 for odd ones
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from polyrelu.claims.claim import Claim, Standing, at_least
from polyrelu.claims.digits import CURVE, POWERS, RADII
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.digit_nets import needs_mnist, published_attack, sides, trained

LATE = 10  # epochs over which the accuracy is averaged


def parity(profile: Profile, seed: int, p: int) -> Measured:
    """Accuracy and stable rank in time, and l-infinity robust accuracy from three sides."""
    head = trained(profile, float(p), seed, "parity")
    found = sides(head, profile, math.inf, RADII[profile][math.inf], seed)
    curve = [1 - float(published_attack(head, profile, r, math.inf, seed).double().mean()) for r in CURVE[profile]]
    epochs = head.epochs
    values = found.values(p) | {
        f"accuracy, p = {p}": sum(epochs.accuracy[-LATE:]) / LATE,
        f"accuracy on the training images, p = {p}": epochs.train_accuracy[-1],
        f"stable rank at the end, p = {p}": epochs.rank[-1],
        f"stable rank at the start, p = {p}": epochs.rank[0],
    }
    drawn = {
        "p": p,
        "radii": CURVE[profile],
        "curve": curve,
        "table radii": found.radii,
        "published": found.published,
        "strongest": found.strongest,
        "proven": sorted(round(r, 5) for r in found.proven.tolist()),
        "accuracy": epochs.accuracy,
        "train accuracy": epochs.train_accuracy,
        "rank": epochs.rank,
    }
    return Measured(values, drawn)


def _together(values: Mapping[str, float]) -> dict[str, float]:
    """Smallest steps from p to p + 1, and the worst of p > 1 against p = 1."""
    names = dict.fromkeys(name.rpartition(", p = ")[0] for name in values)
    row = {name: [values[f"{name}, p = {p}"] for p in POWERS] for name in names}
    out = {f"{name}, smallest step in p": min(b - a for a, b in pairwise(each)) for name, each in row.items()}
    out |= {f"{name}, p = 4 minus p = 1": each[-1] - each[0] for name, each in row.items()}
    out |= {f"{name}, worst of p > 1 minus p = 1": min(each[1:]) - each[0] for name, each in row.items()}
    return out


PARITY = Experiment(
    parity,
    parts=lambda profile: [{"p": p} for p in POWERS],
    combine=_together,
    needs=needs_mnist,
)
SETTINGS: dict[Profile, str] = {
    "quick": "8 × 8 digits, even or odd, 1300 to train on, 64 neurons, one logit, Adam 1e-2, batches of 130, 100 "
    "epochs; the first 100 of the other 497 images attacked in l∞, without a box.",
    "paper": "MNIST, even or odd, 500 neurons, one logit (published: two), Adam 1e-3, batches of 1000, 51 epochs; one "
    "repeat (published: 5 or 10); the first 1000 validation images attacked in l∞, in the box [0, 1].",
}
LEAST: dict[Profile, tuple[float, float]] = {"quick": (-0.03, -0.005), "paper": (-0.01, 0.0)}  # steps; accuracy

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="D5",
        sentence="Told only even or odd, larger p is more robust, uses more directions and is slightly more accurate.",
        paper="MV24",
        where="Fig. 3",
        standing=Standing.UNKNOWN,
        published="robust accuracy and stable rank grow with p; p > 1 slightly more accurate",
        settings=SETTINGS,
        experiment=PARITY,
        checks={
            profile: (
                *(at_least(f"strongest attack at l∞ {r:g}, p = 4 minus p = 1", 0.05) for r in (0.05, 0.1)),
                *(at_least(f"strongest attack at l∞ {r:g}, smallest step in p", least) for r in (0.05, 0.1)),
                at_least("stable rank at the end, smallest step in p", 0.0),
                at_least("accuracy, worst of p > 1 minus p = 1", more),
            )
            for profile, (least, more) in LEAST.items()
        },
        shown="strongest attack at l∞ 0.1, p = 4",
    ),
    Claim(
        id="D10",
        sentence="In training on parity no p > 1 ends below p = 1.",
        paper="MV24",
        where="Fig. 3b",
        standing=Standing.UNKNOWN,
        published="curves with a band over the repeats",
        settings={profile: f"{words[:-1]}; accuracy over the last ten epochs." for profile, words in SETTINGS.items()},
        experiment=PARITY,
        checks=(at_least("accuracy, worst of p > 1 minus p = 1", -0.01),),
    ),
)
