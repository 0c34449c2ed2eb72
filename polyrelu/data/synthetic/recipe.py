"""What recipes share: their text form, independent random streams from one seed, random orthonormal directions.

    mixture:dim=1000,clusters=6+4,alpha=0.1,n=1000,seed=1
    stream(seed, purpose, block) = PCG64(SeedSequence(seed, spawn_key=(purpose, block)))

Numpy's generators are used for data, not ``torch.Generator``: on a CPU the latter keeps only the low 32 bits of its
seed (among the 1000 blocks of a million rows, two would repeat each other with probability 1e-4), and its normal
numbers change with the vector instructions of the machine. ``spawn_key`` keeps long seeds apart from (seed, block).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np
import torch

from polyrelu.checks import enough_memory, value_text
from polyrelu.errors import InputError, nearest, require


def parse_clusters(text: str) -> tuple[int, int]:
    """``"6+4" -> (6, 4)``: how many clusters are positive and how many negative, at least one of each."""
    match = re.fullmatch(r"\s*([0-9]+)\s*\+\s*([0-9]+)\s*", text) if isinstance(text, str) else None
    counts = (int(match[1]), int(match[2])) if match else (0, 0)
    if min(counts) < 1:
        given = text if isinstance(text, str) else value_text(text)
        raise InputError(
            f"clusters={given}: expected two counts >= 1 joined by '+', such as 6+4 (6 positive, 4 negative clusters)."
        )
    return counts


def parse_recipe(text: str, keys: Mapping[str, Callable[[str, str], Any]], needed: Iterable[str]) -> dict[str, Any]:
    """The settings of ``kind:key=value,...``, the inverse of `recipe_text`.

    ``keys`` says how the text of each key is read, ``needed`` which must be there. Nothing is guessed: a key that is
    unknown, given twice, empty or missing is an error that names it.
    """
    kind, _, rest = text.partition(":")
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        require(bool(equals and value), kind, part, "key=value pairs joined by commas, such as dim=1000,n=500")
        if key not in keys:
            allowed = f"a setting of {kind}: {', '.join(keys)}"
            raise InputError(f"{kind}: {key}={value}: expected {allowed}{nearest(key, keys)}.")
        require(key not in found, f"{kind}: {key}", value, "each setting once, it is there twice")
        found[key] = keys[key](key, value)
    missing = [key for key in needed if key not in found]
    require(not missing, "data", text, f"{' and '.join(f'{key}=...' for key in missing)} as well")
    return found


def recipe_text(kind: str, **settings: object) -> str:
    """``kind:key=value,...`` in the given order; settings that are None are left out."""
    return kind + ":" + ",".join(f"{key}={_text(value)}" for key, value in settings.items() if value is not None)


def changed_settings(recipe: Any) -> dict[str, Any]:
    """The settings of a frozen recipe that are not at their default, by name, in order."""
    values = {field.name: (getattr(recipe, field.name), field.default) for field in fields(recipe)}
    return {name: value for name, (value, default) in values.items() if value != default}


def parse_whole_number(key: str, text: str) -> int:
    """A whole number >= 0, as it is typed."""
    require(re.fullmatch(r"[0-9]+", text) is not None, key, text, "a whole number")
    return int(text)


def parse_real_number(key: str, text: str) -> float:
    """A finite number; what range it may have is the recipe's own check."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), key, text, "a number")
    return value


def parse_yes_or_no(key: str, text: str) -> bool:
    """``yes`` or ``no``."""
    require(text in ("yes", "no"), key, text, "yes or no")
    return text == "yes"


def _text(value: object) -> str:
    """A value as a person would type it: ``0.1``, ``float64``, ``6+4``."""
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)


class Purpose(IntEnum):
    """What a stream is for, so that one seed never serves two purposes. The numbers are part of every recipe."""

    CLUSTERS = 0
    NOISE = 1
    FRAME = 2
    SPHERE = 3
    SYMMETRIC = 4


def stream(seed: int, purpose: Purpose, block: int = 0) -> np.random.Generator:
    """The generator of one block of one purpose; blocks can be drawn in any order, or not at all."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(int(purpose), block))))


def orthonormal_rows(count: int, dim: int, rotate: int | None) -> torch.Tensor:
    """``count`` orthonormal rows in R^dim (float64): the first basis vectors, or Haar-random ones from seed ``rotate``.

    G = Q R for a Gaussian (dim, count) matrix; Q diag(sign R_ii) is uniform on the Stiefel manifold (Mezzadri, 2007).
    """
    with enough_memory(f"rows of dim={dim}"):
        if rotate is None:
            return torch.eye(count, dim, dtype=torch.float64)
        gaussian = stream(rotate, Purpose.FRAME).standard_normal((dim, count))
    Q, R = torch.linalg.qr(torch.from_numpy(gaussian))
    rows: torch.Tensor = Q * torch.where(R.diagonal() < 0, -1.0, 1.0)
    return rows.T.contiguous()
