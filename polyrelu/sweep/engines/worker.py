"""A worker process of the local engine: settings come in as JSON lines on stdin, answers go out on stdout.

The function's own output goes to stderr, so it cannot spoil the answers. When the parent is gone, so is the worker.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
from typing import Any

from polyrelu.errors import InputError
from polyrelu.sweep.engines.invoke import call
from polyrelu.sweep.function import find, version
from polyrelu.threads import prepare

PR_SET_PDEATHSIG = 1  # prctl: the kernel ends this process with its parent, whatever it is doing


def main() -> None:
    """Answer until stdin ends."""
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    lines = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull) as nothing:  # noqa: PTH123 - a descriptor is wanted
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    faulthandler.enable()  # where it was when it crashed is in the record of the failure
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines, asked), daemon=True).start()

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, allow_nan=False) + "\n")
        answers.flush()

    try:
        function = find(asked.get()["function"])
        answer({"ready": version(function)})
    except InputError as error:
        answer({"refused": str(error)})
        return
    while True:
        task = asked.get()
        message = call(function, task["key"], task["settings"])
        print(end="", flush=True)  # what the function printed comes before its answer
        answer(message)


def _listen(lines: Any, asked: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Settings in; at the end of stdin the parent is gone or wants no more, and nothing under way is of use."""
    for line in lines:
        asked.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
