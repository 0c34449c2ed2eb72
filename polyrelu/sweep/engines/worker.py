"""A worker process of the local engine: settings come in and results go out over one connection.

What the function prints goes to stdout and stderr, so it cannot spoil the results. When the parent is gone, so is the
worker.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from polyrelu.errors import InputError
from polyrelu.sweep.engines.invoke import call
from polyrelu.sweep.function import find, version
from polyrelu.threads import prepare

PR_SET_PDEATHSIG = 1  # prctl: the kernel ends this process with its parent, whatever it is doing


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
        function = find(name)
        connection.send({"ready": version(function)})
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
