"""The data that a text names: a file, an image set or a recipe, as a `Dataset` or as a table with any labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyrelu.checks import dtype_named, whole_number
from polyrelu.data.dataset import SPLITS, Dataset, split_part
from polyrelu.data.images.image_sets import IMAGE_SETS, read_image_set
from polyrelu.data.relabel import relabel
from polyrelu.data.synthetic.mixture import OrthonormalMixture
from polyrelu.data.synthetic.recipe import (
    parse_clusters,
    parse_real_number,
    parse_recipe,
    parse_whole_number,
    parse_yes_or_no,
)
from polyrelu.data.synthetic.sphere import NearlyOrthogonalSphere
from polyrelu.data.synthetic.symmetric import SymmetricSeparable
from polyrelu.data.tables.archives import label_file
from polyrelu.data.tables.columns import InputSchema, Table, is_number_text
from polyrelu.data.tables.table import TABLE_SUFFIXES, as_floats, open_table, read_table_file
from polyrelu.errors import InputError, nearest, require
from polyrelu.files import exists

ADVICE = "expected +1/-1, or classes numbered 0, 1, ..., C-1"
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
      ``embeddings.npz:test:mod10`` (dataset.py, relabel.py)

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


def read_dataset_file(path: Path) -> Dataset:
    """The set in a file, read by how its name ends; every complaint names the file.

    Numbers are kept as exactly as they are stored (whole numbers become floats that hold them, a table of text becomes
    float64); nothing is scaled.
    """
    table = open_table(path)
    if table.y is None:
        beside = f"its labels beside it in {label_file(path).name}"
        require(False, "data", path, beside if path.suffix.lower() == ".npy" else "X (n, D) and y (n,) inside")
    try:
        y = as_label_numbers(table.y)
        return Dataset(as_floats(table.X), y, table.extra.get("cluster"), table.extra.get("centres"), name=path.name)
    except InputError as error:
        raise InputError(f"data={path}: {error}") from None


def as_label_numbers(y: Any) -> Any:
    """+1/-1, or int64 classes that begin at 0 (whole floats, as tables hold them, included); no other set of labels.

    Guessing would hide mistakes: {1, 2} may be classes counted from one or a set without its class 0.
    """
    array: NDArray[Any] = np.asarray(y)
    if array.dtype.kind in "USO":
        texts = sorted({str(label) for label in array.ravel()[:1000]})
        some = ", ".join(texts[:3]) + ", ..." * (len(texts) > 3)
        raise InputError(
            f"labels are text ({some}): {ADVICE}; number them, as np.unique(y, return_inverse=True)[1] does."
        )
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.dtype.kind not in "iufb" or array.ndim != 1 or not array.size:
        return array  # a shape or type that Dataset describes better
    require(bool(np.isfinite(array).all()), "y", "NaN or infinity", "a label in every row")
    found = np.unique(array)
    if found.tolist() in ([-1, 1], [1], [-1]):
        return array.astype(np.float64)
    shown = ", ".join(f"{label:g}" for label in found[:4].tolist()) + (", ..." if len(found) > 4 else "")
    if not (found == np.floor(found)).all():
        raise InputError(f"labels {shown}: {ADVICE}, these are not whole numbers.")
    if found[0] < 0:
        raise InputError(f"labels {shown}: {ADVICE}; renumber them.")
    if found[0] > 0:
        raise InputError(f"labels {shown}: {ADVICE}; subtract {found[0]:g}, or add rows of the classes below it.")
    return array.astype(np.int64)


def _read_recipe(text: str) -> Dataset:
    """The set that ``kind:key=value,...`` means."""
    kind = text.partition(":")[0]
    sample, keys, needed = RECIPES[kind]
    return sample(**parse_recipe(text, {key: SETTINGS[key] for key in keys}, needed))


def _sample_mixture(
    clusters: tuple[int, int], n: int, seed: int = 0, balanced: bool = True, **settings: Any
) -> Dataset:
    positive, negative = clusters
    mixture = OrthonormalMixture(positive=positive, negative=negative, **settings)
    return mixture.sample(n, seed, balanced, lazy=n * mixture.dim > LARGE)


def _sample_sphere(n: int, seed: int = 0, **settings: Any) -> Dataset:
    return NearlyOrthogonalSphere(**settings).sample(n, seed)


def _sample_symmetric(n: int, seed: int = 0, **settings: Any) -> Dataset:
    return SymmetricSeparable(**settings).sample(n, seed)


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
RECIPES: dict[str, tuple[Callable[..., Dataset], Sequence[str], Sequence[str]]] = {
    # what makes the rows, its settings, those that must be there
    "mixture": (
        _sample_mixture,
        ("dim", "clusters", "alpha", "scale", "noise", "rotate", "dtype", "n", "seed", "balanced"),
        ("dim", "clusters", "alpha", "n"),
    ),
    "sphere": (_sample_sphere, ("dim", "dtype", "n", "seed"), ("dim", "n")),
    "symmetric": (
        _sample_symmetric,
        ("dim", "margin", "spread", "extra", "rotate", "dtype", "n", "seed"),
        ("dim", "n"),
    ),
}


def read_table(
    text: str, *, label: str | None = None, fine: str | None = None, takes: InputSchema | None = None
) -> Table:
    """The table in a file (`read_table_file`), in a part of one (FILE:train, FILE:test), or the set that `read` finds.

    Of a set that is no file of its own (digits:parity, FILE:mod10, a recipe) ``fine="cluster"`` are the finer labels.
    """
    require(isinstance(text, str) and bool(text.strip()), "data", repr(text), "a file, a name or a recipe")
    text = text.strip()
    file, _, rest = text.partition(":")
    path = Path(text)
    if path.suffix.lower() in TABLE_SUFFIXES:
        return read_table_file(path, label=label, fine=fine, takes=takes)
    if Path(file).suffix.lower() in TABLE_SUFFIXES and rest in SPLITS:
        return read_table_file(file, label=label, fine=fine, takes=takes).part(rest)
    data = read(text)
    require(label is None, "label", label, f"no --label: {text} is not a file with columns")
    require(fine in (None, "cluster"), "fine", fine, f"cluster, the finer labels of {text}")
    require(fine is None or data.cluster is not None, "fine", fine, f"a set with finer labels, {text} has none")
    if takes is not None and data.dim != takes.count:
        raise InputError(f"data={text}: has {data.dim} columns, but the head takes {takes.count}.")
    return dataset_as_table(data, fine is not None)


def dataset_as_table(data: Dataset, fine: bool = False) -> Table:
    """A `Dataset` as a table; +1/-1 are whole numbers."""
    extra = {name: part for name in ("cluster", "centres") if (part := getattr(data, name)) is not None}
    y = data.y.to(torch.int64).numpy()
    sub = extra["cluster"].numpy() if fine else None
    return Table(data.rows().numpy(), y, sub, name=data.name, extra=extra)


def class_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Where each label stands among ``classes``, -1 for one that is none of them; 1, 1.0 and "1" are the same label."""
    texts = [part.dtype.kind in "OU" for part in (y, classes)]
    plain = _number if any(texts) and not all(texts) else _same
    known = {plain(label): place for place, label in enumerate(classes.tolist())}
    return np.array([known.get(plain(label), -1) for label in y.tolist()], dtype=np.int64)


def _same(label: Any) -> Any:
    return label.strip() if isinstance(label, str) else label


def _number(label: Any) -> Any:
    """For text beside numbers: both as numbers, and whatever is none as text."""
    text = str(label).strip()
    return float(text) if is_number_text(text) and math.isfinite(float(text)) else text
