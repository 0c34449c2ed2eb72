"""What the images look like, and why the nets divide by |x|^(p-1) (Min & Vidal 2024, Fig. 3a and code; D6 and D11).

cos_ij = <x_i - m, x_j - m> / (|x_i - m| |x_j - m|);   features  relu(<x, w>)^p / |w|^(p-1)  [ / |x|^(p-1) ]
"""

from __future__ import annotations

import math

from polyrelu.bias import correlation
from polyrelu.claims.claim import Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.digit_nets import RECIPES, accuracy, images, needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Until, descend

SHOWN = 200  # images in the map
SCALES = (0.1, 1.0, 10.0)
EPOCHS: dict[Profile, int] = {"quick": 30, "paper": 5}


def cosines(profile: Profile, seed: int) -> Measured:
    """D6: mean cosine of centred images of one digit and of different digits, and some of them."""
    data = read("digits") if profile == "quick" else images(profile, seed)[0]
    found = correlation(data, most=SHOWN, seed=seed)
    own = found.means.diagonal()
    other = found.means.masked_fill(found.means.isnan(), 0.0).fill_diagonal_(-1.0).amax(dim=1)
    values = {
        "mean cosine within a digit": found.within,
        "mean cosine between digits": found.between,
        "digits nearer to themselves than to any other": float((own > other).sum()),
    }
    drawn = {
        "matrix": [[round(cell, 2) for cell in row] for row in found.matrix.tolist()],
        "group": found.group.tolist(),
        "means": found.means.tolist(),
    }
    return Measured(values, drawn)


def scaled_inputs(profile: Profile, seed: int, normalised: bool) -> Measured:
    """D11: the same training, p = 4, on images of .1, 1 and 10 times the size, with or without division by |x|^3."""
    train, held = images(profile, seed)
    recipe = RECIPES[profile]
    word = "with" if normalised else "without"
    sizes, values = [], {}
    for scale in SCALES:
        data, test = (Dataset(scale * part.rows(), part.y) for part in (train, held))
        net = PolyReLUNet(
            data.dim, recipe["width"], 4.0, 10, init="kaiming", seed=seed, centre=data.rows().mean(0), bias=True,
            normalise_input=normalised,
        )  # fmt: skip
        features = net.preprocess(data.rows(0, 1000)) @ net.directions().detach().T
        sizes.append(float(features.clamp(min=0).pow(4.0).mean()))
        run = descend(
            net, data, method="adam", rate=recipe["rate"], batch=recipe["batch"], loss="cross_entropy",
            until=Until(log10_loss=-1e6), steps=EPOCHS[profile] * math.ceil(len(data) / recipe["batch"]),
            every=EPOCHS[profile], seed=seed,
        )  # fmt: skip
        values[f"accuracy on images × {scale:g}, {word} division"] = accuracy(run.net, test)
    values[f"degree of the features in x, {word} division"] = math.log10(sizes[-1] / sizes[0]) / 2
    return Measured(values)


COSINES = Experiment(cosines, needs=needs_mnist)
SCALED = Experiment(
    scaled_inputs, parts=lambda profile: [{"normalised": on} for on in (True, False)], needs=needs_mnist
)

LEAST: dict[Profile, float] = {"quick": 0.9, "paper": 0.85}  # five epochs are few for images of a tenth the size

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="D6",
        sentence="Centred images are correlated within a digit and hardly between digits.",
        paper="MV24",
        where="Fig. 3a",
        standing=Standing.DERIVED,
        published="a picture: blocks on the diagonal",
        settings={
            "quick": "8 × 8 digits, all 1797 images; mean over all pairs.",
            "paper": "MNIST, all 50 000 training images; mean over all pairs.",
        },
        experiment=COSINES,
        checks={
            "quick": (
                near("mean cosine within a digit", 0.424, 0.01),
                near("mean cosine between digits", -0.047, 0.01),
                at_least("digits nearer to themselves than to any other", 10),
            ),
            "paper": (
                at_least("mean cosine within a digit", 0.2),
                near("mean cosine between digits", 0.0, 0.1),
                at_least("digits nearer to themselves than to any other", 10),
            ),
        },
    ),
    Claim(
        id="D11",
        sentence="Without division by |x|^(p−1) features grow or vanish like |x|^p, and training depends on the scale "
        "of the images.",
        paper="MV24",
        where="code",
        standing=Standing.SECONDARY,
        published="degree p without division, 1 with it",
        settings={
            "quick": "8 × 8 digits × .1, 1 and 10, p = 4, 64 neurons, Adam 1e-2, batches of 130, 30 epochs.",
            "paper": "MNIST × .1, 1 and 10, p = 4, 500 neurons, Adam 1e-3, batches of 1000, 5 epochs.",
        },
        experiment=SCALED,
        checks={
            profile: (
                near("degree of the features in x, without division", 4.0, 1e-3),
                near("degree of the features in x, with division", 1.0, 1e-3),
                at_most("accuracy on images × 0.1, without division", 0.85),
                *(at_least(f"accuracy on images × {scale:g}, with division", least) for scale in SCALES),
            )
            for profile, least in LEAST.items()
        },
    ),
)
