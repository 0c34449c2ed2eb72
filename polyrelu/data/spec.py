"""The data that a text names: a file, an image set or a recipe, read by one function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from polyrelu.checks import dtype_named, whole_number
from polyrelu.data.dataset import Dataset
from polyrelu.data.images.image_sets import IMAGE_SETS, read_image_set
from polyrelu.data.relabel import relabel
from polyrelu.data.splits import SPLITS, split_part
from polyrelu.data.synthetic.mixture import OrthonormalMixture
from polyrelu.data.synthetic.recipe import (
    nearest,
    parse_clusters,
    parse_real_number,
    parse_recipe,
    parse_whole_number,
    parse_yes_or_no,
)
from polyrelu.data.synthetic.sphere import NearlyOrthogonalSphere
from polyrelu.data.synthetic.symmetric import SymmetricSeparable
from polyrelu.data.tables.table import TABLE_SUFFIXES
from polyrelu.data.tables.table_dataset import read_dataset_file
from polyrelu.errors import InputError, require
from polyrelu.files import exists

LARGE = 2**27  # numbers (half a gigabyte in float32) above which a mixture's rows are drawn when they are asked for


def read(text: str, *, limit: int | None = None) -> Dataset:
    """The set that ``text`` means, or one line that says what is wrong with it.

    * a recipe, ``mixture:dim=1000,clusters=6+4,alpha=0.1,n=1000,seed=1`` (also ``sphere:`` and ``symmetric:``): the
      name of every set made by a recipe is such a text and reads back to the same bits; ``seed`` is 0 if not given
    * a name: ``digits`` (scikit-learn's 1797 images of 8 x 8, bundled), ``mnist``, ``mnist-full`` or ``cifar10``
      (fetched once), then perhaps a split and coarser labels, as ``mnist:test:parity`` (image_sets.py, relabel.py),
      with the fine label as the hidden sub-class
    * a file (tables/table.py): .npz or .safetensors with X (n, D), y (n,) and, if known, cluster and centres; .npy
      with its labels beside it (X.npy and y.npy, train_X.npy and train_y.npy, else NAME.npy and NAME_y.npy); .csv or
      .parquet with the label in the column called y, label, target or class, else in the last; then perhaps a random
      four fifths or the rest of its rows and coarser labels, as ``embeddings.npz:train:mod10`` and
      ``embeddings.npz:test:mod10`` (splits.py, relabel.py)

    Labels are +1/-1 or 0..C-1. ``limit`` keeps the first so many rows, which must hold two classes.
    """
    require(isinstance(text, str) and bool(text.strip()), "data", repr(text), "a file, a name or a recipe")
    if limit is not None:
        whole_number("limit", limit)
    data = _find(text.strip())
    if limit is None or limit >= len(data):
        return data
    if bool((data.y[:limit] == data.y[0]).all()):
        raise InputError(f"limit={limit}: the first {limit} rows are all of one class; raise it, or shuffle the rows.")
    return dataclasses.replace(data.subset(slice(limit)), name=f"{data.name}, first {limit} rows")


def _find(text: str) -> Dataset:
    kind = text.partition(":")[0]
    if kind in IMAGE_SETS:
        return read_image_set(text)
    if ":" in text and kind in RECIPES:
        return _read_recipe(text)
    path = Path(text)
    if exists(path) or (path.suffix.lower() in TABLE_SUFFIXES and ":" not in text):  # FILE.npz:map.csv is no file
        return read_dataset_file(path)
    file, _, rest = text.partition(":")
    if Path(file).suffix.lower() in TABLE_SUFFIXES:
        data, (first, _, more) = read_dataset_file(Path(file)), rest.partition(":")
        if labels := more if first in SPLITS else rest:
            data = relabel(data, labels)
        data = split_part(data, first) if first in SPLITS else data
        return dataclasses.replace(data, name=f"{Path(file).name}:{rest}")
    names = (*IMAGE_SETS, *(f"{kind}:..." for kind in RECIPES))
    close = nearest(kind, (*IMAGE_SETS, *RECIPES)) or nearest(text, (*IMAGE_SETS, *RECIPES))
    raise InputError(
        f"data={text}: expected a file ({', '.join(TABLE_SUFFIXES)}), a name or a recipe ({', '.join(names)}){close}."
    )


def _read_recipe(text: str) -> Dataset:
    """The set that ``kind:key=value,...`` means."""
    kind = text.partition(":")[0]
    recipe, keys, needed = RECIPES[kind]
    found = parse_recipe(text, {key: SETTINGS[key] for key in keys}, needed)
    n, seed, balanced = found.pop("n"), found.pop("seed", 0), found.pop("balanced", True)
    if recipe is not OrthonormalMixture:
        data: Dataset = recipe(**found).sample(n, seed)
        return data
    found["positive"], found["negative"] = found.pop("clusters")
    mixture = OrthonormalMixture(**found)
    return mixture.sample(n, seed, balanced, lazy=n * mixture.dim > LARGE)


SETTINGS: dict[str, Callable[[str, str], Any]] = {  # how the text of each setting is read, in whatever recipe
    "dim": parse_whole_number,
    "clusters": lambda _, value: parse_clusters(value),
    "alpha": parse_real_number,
    "scale": lambda key, value: value if value == "sqrt_dim" else parse_real_number(key, value),
    "noise": parse_real_number,
    "margin": parse_real_number,
    "spread": parse_real_number,
    "extra": parse_whole_number,
    "rotate": parse_whole_number,
    "dtype": lambda _, value: dtype_named(value),
    "n": parse_whole_number,
    "seed": parse_whole_number,
    "balanced": parse_yes_or_no,
}
RECIPES: dict[str, tuple[Any, Sequence[str], Sequence[str]]] = {  # the recipe, its settings, those that must be there
    "mixture": (
        OrthonormalMixture,
        ("dim", "clusters", "alpha", "scale", "noise", "rotate", "dtype", "n", "seed", "balanced"),
        ("dim", "clusters", "alpha", "n"),
    ),
    "sphere": (NearlyOrthogonalSphere, ("dim", "dtype", "n", "seed"), ("dim", "n")),
    "symmetric": (
        SymmetricSeparable,
        ("dim", "margin", "spread", "extra", "rotate", "dtype", "n", "seed"),
        ("dim", "n"),
    ),
}
