"""The text form of a recipe: ``mixture:dim=1000,clusters=6+4,alpha=0.1,n=1000,seed=1``."""

from __future__ import annotations

import re

import torch

from polyrelu.errors import InputError


def parse_clusters(text: str) -> tuple[int, int]:
    """``"6+4" -> (6, 4)``: how many clusters are positive and how many negative, at least one of each."""
    match = re.fullmatch(r"\s*([0-9]+)\s*\+\s*([0-9]+)\s*", text) if isinstance(text, str) else None
    counts = (int(match[1]), int(match[2])) if match else (0, 0)
    if min(counts) < 1:
        raise InputError(
            f"clusters={text}: expected two counts >= 1 joined by '+', such as 6+4 (6 positive, 4 negative clusters)."
        )
    return counts


def recipe_text(kind: str, **settings: object) -> str:
    """``kind:key=value,...`` in the given order; settings that are None are left out."""
    return kind + ":" + ",".join(f"{key}={_text(value)}" for key, value in settings.items() if value is not None)


def _text(value: object) -> str:
    """A value as a person would type it: ``0.1``, ``float64``, ``6+4``."""
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)
