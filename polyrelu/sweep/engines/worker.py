"""What happens in a worker: one call of the function, the same under every engine, and the process of the local one.

A local worker gets settings and sends results over one connection. What the function prints goes to stdout and stderr,
so it cannot spoil the results. When the parent is gone, so is the worker.
"""

from __future__ import annotations

import ctypes
import faulthandler
import hashlib
import os
import platform
import queue
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from polyrelu.errors import InputError
from polyrelu.sweep.function import find_function, source_version
from polyrelu.sweep.record import decode, encode
from polyrelu.threads import prepare

PR_SET_PDEATHSIG = 1  # prctl: the kernel ends this process with its parent, whatever it is doing
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


def main(descriptor: int, name: str) -> None:
    """Call the function of that name for every setting that arrives at the connection, until that ends."""
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    faulthandler.enable()  # where it was when it crashed is in the record of the failure
    os.set_inheritable(descriptor, False)
    connection = Connection(descriptor)
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    try:
        function = find_function(name)
        connection.send({"ready": source_version(function)})
    except InputError as error:
        connection.send({"refused": str(error)})
        return
    while True:
        result = call(function, **tasks.get())
        print(end="", flush=True)  # what the function printed comes before its result
        connection.send(result)


def _receive(connection: Connection, tasks: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Settings in; when the connection ends, the parent is gone or wants no more, and nothing under way is of use."""
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)
