"""Coarser labels on top of fine ones: the fine label stays as the hidden sub-class, ``cluster``.

parity  even +1, odd -1      halves  first half of the classes +1, second -1      modM  class mod M
FILE    .json {"0": 0, "1": 1, ...} or .csv with a line fine,coarse for each class
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import torch

from polyrelu.checks import checked
from polyrelu.data.dataset import Dataset
from polyrelu.errors import InputError, nearest, require
from polyrelu.files import parse_json, read_text

FORMS = "parity, halves, mod3 (any number) or a mapping file (.json, .csv)"


@checked
def relabel(data: Dataset, how: str) -> Dataset:
    """The same rows with coarser labels: +1/-1 when there are just these two, else classes 0, 1, ..."""
    require(not data.binary, "data", data.name, "a set with classes 0, 1, ... to put together")
    coarse = _table(data.classes, how)
    missing = sorted(set(data.y.tolist()) - coarse.keys())
    if missing:
        raise InputError(f"labels={how}: expected a coarse label for every class, there is none for {missing[0]}.")
    kinds = set(coarse.values())
    require(len(kinds) > 1, "labels", how, "at least two coarse classes")
    require(max(map(abs, kinds)) < 2**63, "labels", how, "labels below 2^63")
    table = torch.tensor([coarse.get(fine, 0) for fine in range(data.classes)])
    new = table[data.y.cpu()].to(data.y.device)
    labels = new.to(data.dtype) if kinds == {1, -1} else new
    return replace(data, y=labels, cluster=data.y, centres=None, name=f"{data.name}:{how}")


def _table(classes: int, how: str) -> dict[int, int]:
    if how == "parity":
        return {fine: 1 - 2 * (fine % 2) for fine in range(classes)}
    if how == "halves":
        return {fine: 1 if fine < (classes + 1) // 2 else -1 for fine in range(classes)}
    if modulus := re.fullmatch(r"mod(\d+)", how):
        require(2 <= int(modulus[1]) <= classes, "labels", how, f"mod2 to mod{classes}")
        return {fine: fine % int(modulus[1]) for fine in range(classes)}
    if Path(how).suffix.lower() in (".json", ".csv"):
        return _file(Path(how))
    raise InputError(f"labels={how}: expected {FORMS}{nearest(how, ('parity', 'halves', 'mod3'))}.")


def _file(path: Path) -> dict[int, int]:
    try:
        text = read_text(path)
        if path.suffix.lower() == ".json":
            return {int(fine): int(coarse) for fine, coarse in parse_json(text).items()}
        rows = list(csv.reader(text.splitlines()))
        headed = bool(rows) and not rows[0][0].strip().lstrip("-").isdigit()
        return {int(fine): int(coarse) for fine, coarse in (rows[1:] if headed else rows)}
    except OSError as error:
        raise InputError(f"labels={path}: cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError, csv.Error):
        raise InputError(
            f'labels={path}: expected whole numbers, as {{"0": 1, "1": -1}} or lines fine,coarse.'
        ) from None
