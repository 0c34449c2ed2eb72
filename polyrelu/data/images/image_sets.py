"""Image sets by name: ``NAME[:SPLIT][:LABELS]``, as mnist, mnist:test, mnist:validation:parity, cifar10:halves.

mnist       the 50 000 / 10 000 / 10 000 set of Min & Vidal (ICML 2024): training, validation, test; pixels/256
mnist-full  all 60 000 training images and the 10 000 test images; pixels/255
cifar10     50 000 training and 10 000 test images, 3 planes of 32 x 32; pixels/255
digits      scikit-learn's 1797 images of 8 x 8, bundled; pixels/16
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import torch

from polyrelu.checks import checked
from polyrelu.data.dataset import Dataset
from polyrelu.data.images.downloads import load_images
from polyrelu.data.relabel import FORMS, relabel
from polyrelu.errors import InputError, nearest, require


@final
@dataclass(frozen=True)
class ImageSet:
    """A set: its splits (the first is the default) and what is fetched for it ("" if it is bundled)."""

    splits: tuple[str, ...]
    fetched: str
    load: Callable[[str], tuple[torch.Tensor, torch.Tensor]]


@checked
def read_image_set(text: str) -> Dataset:
    """The set that ``NAME[:SPLIT][:LABELS]`` means; fetched first if need be."""
    name, *words = text.split(":")
    require(name in IMAGE_SETS, "data", text, f"one of {', '.join(IMAGE_SETS)}")
    known = IMAGE_SETS[name]
    split = known.splits[0]
    if words and words[0] in known.splits:
        split = words.pop(0)
    if len(words) > 1 or (words and not words[0]):
        splits = " or ".join(known.splits)
        raise InputError(f"data={text}: expected {name}, then perhaps :{splits}, then perhaps labels: {FORMS}"
                         f"{nearest(words[0], known.splits)}.")  # fmt: skip
    X, y = known.load(split)
    data = Dataset(X, y, name=name if split == known.splits[0] else f"{name}:{split}")
    return relabel(data, words[0]) if words else data


def _mnist(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    found = load_images("mnist")
    kind = "test" if split == "test" else "train"
    rows = {"train": slice(50_000), "validation": slice(50_000, None), "test": slice(None)}[split]
    return _tensors(found[f"{kind}_x"][rows], found[f"{kind}_y"][rows], 256)


def _fetched(name: str, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    found = load_images(name)
    return _tensors(found[f"{split}_x"], found[f"{split}_y"], 255)


def _digits(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    stored = load_digits()
    return _tensors(stored.data, stored.target, 16)  # sixteenths are exact in float32


def _tensors(x: object, y: object, scale: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.as_tensor(x).float() / scale, torch.as_tensor(y).long()


IMAGE_SETS = {
    "digits": ImageSet(("train",), "", _digits),
    "mnist": ImageSet(("train", "validation", "test"), "mnist", _mnist),
    "mnist-full": ImageSet(("train", "test"), "mnist", partial(_fetched, "mnist")),
    "cifar10": ImageSet(("train", "test"), "cifar10", partial(_fetched, "cifar10")),
}
