"""Errors a person can act on: which argument, what came, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Bad input, refused before any work is done; the command line turns it into one line and exit code 2."""


class InputTypeError(InputError, TypeError):
    """The same where scikit-learn's conventions ask for a TypeError."""


def require(condition: bool, argument: str, given: Any, allowed: str) -> None:
    """Raise ``InputError("alpha=-0.1: expected a number >= 0.")`` unless ``condition`` holds."""
    if not condition:
        try:
            given = str(given).encode("utf-8", "replace").decode()
        except Exception:  # an object that cannot be shown is named
            given = type(given).__name__
        raise InputError(f"{argument}={given}: expected {allowed}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """``" (did you mean alpha?)"`` when a known name is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
