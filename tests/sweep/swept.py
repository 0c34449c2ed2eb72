"""Functions that the tests sweep over, and small tools to disturb a run of them."""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from polyrelu.sweep import sweepable

HERE = str(Path(__file__).parent)
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from polyrelu.sweep import Sweep, run_sweep
from polyrelu.sweep.engines import ray_address
ray_address.REACH_SECONDS = ray_address.JOIN_SECONDS = 600.0  # a busy machine is slow to answer
function, settings, out, more = json.loads(sys.argv[2])
run_sweep(Sweep(function, settings), out, **more)
"""


@sweepable()
def square(x: float, noise: str = "") -> dict[str, float]:
    if noise:
        print(noise)
        os.write(1, noise.encode())
    return {"square": x * x, "root": math.sqrt(abs(x))}


@sweepable()
def slow(x: int, gate: str, mark: str) -> list[float]:
    """Leaves a mark for every time it begins and, if there is a gate, waits until it is open for x.

    Its result depends on the global generator and on the order of a set.
    """
    with Path(mark).open("a") as stream:
        stream.write(f"{x} {os.getpid()}\n")
    end = time.monotonic() + 600
    while gate and not any(Path(gate, name).exists() for name in (str(x), "all")):
        assert time.monotonic() < end, "the gate was never opened"
        time.sleep(0.01)
    return [math.sin(x), random.random(), *(float(ord(one)) for one in {"a", "b", "c", "d", "e"})]


@sweepable()
def moody(x: int, mood: str = "fine") -> float:
    if mood == "raises":
        raise ValueError(f"{x} is not a good number")
    if mood == "leaves":
        print("farewell", flush=True)
        os._exit(7)
    if mood == "crashes":
        ctypes.string_at(0)
    if mood == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if mood == "exits":
        raise SystemExit(3)
    return math.exp(x / 7)


@sweepable()
def deaf(mark: str) -> int:
    """Holds the interpreter for minutes: no thread of it hears anything."""
    with Path(mark).open("a") as stream:
        stream.write(f"0 {os.getpid()}\n")
    return sum(range(10**11))


@sweepable()
def odd(what: str) -> Any:
    import numpy as np

    return {
        "nan": float("nan"),
        "infinite": [math.inf, -math.inf, -0.0],
        "array": np.array([[1.5, np.nan], [2, 3]]),
        "scalar": np.float32(0.1),
        "tuple": (1, True, None, "text"),
        "key": {1: 2},
        "object": object(),
    }[what]


@sweepable()
def threads() -> list[Any]:
    set_before = None if "torch" in sys.modules else os.environ["GOMP_SPINCOUNT"]
    import torch

    return [torch.get_num_threads(), int(os.environ["OMP_NUM_THREADS"]), set_before]


def unmarked(x: int) -> int:
    return x


def launch(function: str, settings: list[dict[str, Any]], out: Path, **more: Any) -> subprocess.Popen[str]:
    """A run in a process of its own, which can be killed."""
    about = json.dumps([function, settings, str(out), more])
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, HERE, about], stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def begun(mark: Path) -> list[tuple[int, int]]:
    """(x, process) for every time `slow` began."""
    lines = mark.read_text().splitlines() if mark.exists() else []
    return [(int(x), int(process)) for x, process in (line.split() for line in lines)]


def open_gate(gate: Path, *names: Any) -> None:
    """Let `slow` go on for these x, or for "all"."""
    gate.mkdir(exist_ok=True)
    for name in names:
        (gate / str(name)).touch()


def alive(process: int) -> bool:
    """Is it there, and not only waiting to be counted as dead?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def results(out: Path) -> dict[str, str]:
    """The result of every file, bit for bit."""
    return {
        path.name: json.dumps(json.loads(path.read_text())["result"])
        for path in sorted((out / "results").glob("[0-9a-f]*"))
    }
