"""One call of the function in a worker, the same under every engine."""

from __future__ import annotations

import hashlib
import platform
import random
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from polyrelu.sweep.values import decode, encode

# Set before anything numerical is loaded: one thread each, and sets of text in the same order everywhere.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def call(function: Callable[..., Any], key: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Call it; what comes back, result or error, is strict JSON. ``settings`` are encoded."""
    seed_and_pin_threads(key)
    began = time.perf_counter()
    try:
        answer = {"result": encode(function(**decode(settings)))}
    except BaseException as error:  # a worker outlives sys.exit() too
        message = " ".join(str(error).split())[:2000]
        name = type(error).__name__
        answer = {"error": f"{name}: {message}" if message else name, "details": traceback.format_exc()[-20_000:]}
    return {"key": key, "seconds": time.perf_counter() - began, "versions": versions(), **answer}


def seed_and_pin_threads(key: str) -> None:
    """One torch thread, and the global generators seeded by the key, not left as the setting before left them.

    A function should take its randomness from a seed among its settings; this is for those that do not.
    """
    seed = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
        torch.manual_seed(seed)


def versions() -> dict[str, str]:
    """What computes the numbers."""
    loaded: list[str] = [name for name in ("numpy", "torch") if name in sys.modules]
    return {"python": platform.python_version(), **{name: str(sys.modules[name].__version__) for name in loaded}}
