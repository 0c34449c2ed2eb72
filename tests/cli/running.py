"""Commands, run in this process or as people do, and what they leave in their folders."""

import json
import os
import subprocess
import sys

from typer.testing import CliRunner
from waiting import LIMIT

import polyrelu
from polyrelu.cli import application as cli
from polyrelu.train import Trajectory

SMALL = ("--dim", "50", "--clusters", "3+2", "--samples", "500", "--width", "40")
FILES = {"net.safetensors", "trajectory.npz", "run.json", "trajectory.png"}
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "TERM": "xterm"}


def polyrelu_(*words):
    """Run a command in this process."""
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu")


def program(*words, **options):
    """Run a command as people do."""
    command = [sys.executable, "-m", "polyrelu", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=ALONE, check=False, **options)


def names(folder):
    return {file.name for file in folder.iterdir()}


def record(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def history(folder):
    return Trajectory.load(folder / "trajectory.npz", polyrelu.load(folder / "net.safetensors")).history
