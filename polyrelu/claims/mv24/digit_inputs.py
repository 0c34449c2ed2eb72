"""What the images look like, and why the nets divide by |x|^(p-1) (Min & Vidal 2024, Fig. 3a and code).

cos_ij = <x_i - m, x_j - m> / (|x_i - m| |x_j - m|);   features  relu(<x, w>)^p / |w|^(p-1)  [ / |x|^(p-1) ]
"""

from __future__ import annotations

import math

from polyrelu.bias import correlation
from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.setups.digit_nets import RECIPES, accuracy, images
from polyrelu.claims.setups.needs import needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Until, descend

SHOWN = 200  # images in the map
EPOCHS: dict[Profile, int] = {"quick": 30, "paper": 5}  # on scaled images


@experiment(needs=needs_mnist)
def cosines(profile: Profile, seed: int) -> Measured:
    """Mean cosine of centred images of one digit and of different digits, and some of them."""
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


@experiment(over={"normalised": (True, False)}, needs=needs_mnist)
def scaled_inputs(profile: Profile, seed: int, normalised: bool) -> Measured:
    """The same training, p = 4, on images of .1, 1 and 10 times the size, with or without division by |x|^3."""
    train, test = images(profile, seed)
    recipe, epochs = RECIPES[profile], EPOCHS[profile]
    features, values = list[float](), dict[Key, float]()
    for scale in sizes.SCALES:
        data, scaled_test = (Dataset(scale * part.rows(), part.y) for part in (train, test))
        net = PolyReLUNet(
            data.dim, recipe["width"], 4.0, 10, init="kaiming", seed=seed, centre=data.rows().mean(0), bias=True,
            normalise_input=normalised,
        )  # fmt: skip
        inputs = net.preprocess(data.rows(0, 1000)) @ net.directions().detach().T
        features.append(float(inputs.clamp(min=0).pow(4.0).mean()))
        run = descend(
            net, data, method="adam", rate=recipe["rate"], batch=recipe["batch"], loss="cross_entropy",
            until=Until(log10_loss=-1e6), steps=epochs * math.ceil(len(data) / recipe["batch"]), every=epochs,
            seed=seed,
        )  # fmt: skip
        values[Quantity("accuracy on scaled images", scale=scale)] = accuracy(run.net, scaled_test)
    values["degree of the features in x"] = math.log10(features[-1] / features[0]) / 2
    return Measured(values)
