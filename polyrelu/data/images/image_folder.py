"""Images on disk: a sub-folder for each class, or one folder and a table of labels.

    FOLDER/001.ak47/001_0001.jpg   classes in the order of their names, so 001.ak47 is class 0 (Caltech-256's layout)
    FOLDER/0001.jpg, LABELS.csv    lines file,label under a heading file,label or none; classes in the order of labels

An image becomes 224 x 224: the shorter side is resized to 256 pixels, the middle is cut out (Min & Vidal 2024).
"""

from __future__ import annotations

import csv
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import read_text

SHORTER, SIDE = 256, 224
HEADINGS = ("file", "filename", "image", "name", "path")


class UnreadableError(InputError):
    """A file that is no image, and why."""


@final
@dataclass(frozen=True)
class ImageFolder:
    """``files`` below ``root``, class by class, their class numbers ``y`` and the names of the classes."""

    root: Path
    files: tuple[str, ...]
    y: tuple[int, ...]
    classes: tuple[str, ...]


@checked
def list_images(folder: str | Path, labels: str | Path | None = None) -> ImageFolder:
    """Every file that is not hidden, read by nobody yet; ``labels`` is the table of a folder without sub-folders."""
    root = Path(folder)
    require(root.is_dir(), "folder", root, "an existing folder of images")
    named = _by_folder(root) if labels is None else _by_table(root, Path(labels))
    classes = sorted({name for _, name in named}, key=_order)
    source = root if labels is None else labels
    require(len(classes) > 1, "folder" if labels is None else "labels", source, "at least two classes")
    number = {name: place for place, name in enumerate(classes)}
    named.sort(key=lambda pair: (number[pair[1]], pair[0]))
    return ImageFolder(root, tuple(file for file, _ in named), tuple(number[name] for _, name in named), tuple(classes))


@checked
def load_image(path: Path) -> npt.NDArray[np.uint8]:
    """The middle (3, 224, 224) of an image, bytes."""
    from PIL import Image  # which takes as long to import as all of polyrelu.data

    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                opaque = image.convert("RGBA") if image.mode == "P" else image  # palettes may be transparent
                whole = opaque.convert("RGB")
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, *bombs) as error:
        why = " ".join(str(error).replace(str(path), path.name).split()) or type(error).__name__
        raise UnreadableError(why) from None
    width, height = whole.size
    shorter = min(width, height)
    width, height = SHORTER * width // shorter, SHORTER * height // shorter
    left, top = round((width - SIDE) / 2), round((height - SIDE) / 2)
    resized = whole.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIDE, top + SIDE))).transpose(2, 0, 1)


def _by_folder(root: Path) -> list[tuple[str, str]]:
    folders = [one for one in root.iterdir() if one.is_dir() and not one.name.startswith(".")]
    if not folders:
        raise InputError(f"folder={root}: expected a sub-folder of images for each class, or a table of labels beside "
                         "a folder without sub-folders: --labels FILE.csv")  # fmt: skip
    found = {one.name: [f"{one.name}/{file}" for file in _files(one)] for one in folders}
    images = sum(map(len, found.values()))
    empty = sorted(name for name, files in found.items() if not files)
    if empty:
        raise InputError(f"folder={root}: {len(found)} classes and {images} images: expected an image of every class, "
                         f"{empty[0]} has none.")  # fmt: skip
    return [(file, name) for name, files in found.items() for file in files]


def _by_table(root: Path, table: Path) -> list[tuple[str, str]]:
    try:
        rows = [row for row in csv.reader(read_text(table, "utf-8-sig").splitlines()) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"labels={table}: expected a table of lines file,label ({error}).") from None
    if rows and rows[0][0].strip().lower() in HEADINGS:
        rows = rows[1:]
    wrong = next((row for row in rows if len(row) != 2 or not row[1].strip()), None)
    require(bool(rows) and wrong is None, "labels", table, f"lines file,label, not {','.join(wrong or [])!r}")
    label: dict[str, str] = {}
    for file, name in ((file.strip(), name.strip()) for file, name in rows):
        require(label.setdefault(file, name) == name, "labels", table, f"one label for {file}, not two")
    there = {file for file in _files(root) if not table.exists() or not (root / file).samefile(table)}
    for words, odd in (
        (f"only files of {root}, there is no", label.keys() - there),
        (f"a label for every file of {root}, there is none for", there - label.keys()),
    ):
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        require(not odd, "labels", table, f"{words} {min(odd, default='')}{more}")
    return list(label.items())


def _files(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.is_file() and not one.name.startswith(".")]


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers by size, then everything else by letters."""
    whole = name.lstrip("-").isascii() and name.lstrip("-").isdigit()
    return (not whole, int(name) if whole else 0, name)
