"""Sizes that no memory holds are bad input, whoever finds out first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from polyrelu.errors import InputError

TOO_LARGE = (
    "allocate memory", "Storage size calculation", "Maximum allowed dimension", "Overflow when unpacking",
    "array is too big",
)  # fmt: skip


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Sizes that no memory holds, asked for inside, become an InputError about ``what``."""
    try:
        yield
    except (MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise_if_memory(error, what)
        raise


def raise_if_memory(error: BaseException, what: str) -> None:
    """An InputError if ``error`` says, in numpy's words or torch's, that there is not enough memory."""
    if isinstance(error, MemoryError | OverflowError) or any(words in str(error) for words in TOO_LARGE):
        raise InputError(f"not enough memory for {what}: expected smaller sizes.") from None
