"""Good values: for every parameter of a public function one that it takes, small enough that a call is quick.

A case changes one or two of them (`tools.fuzz.bads`), so that what is wrong is met deep inside,
not only at the start.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polyrelu
from polyrelu import nets
from polyrelu import sweep as sweeps
from polyrelu.report import figures
from polyrelu.robust import attacks

DIM, WIDTH, ROWS = 6, 5, 24


@cache
def world() -> Mapping[str, Any]:
    """What people have: a mixture and its rows, a net, a run, brackets, a head, files."""
    mixture = polyrelu.OrthonormalMixture(DIM, 2, 2, 0.1)
    rows = mixture.sample(ROWS, 0)
    net = polyrelu.PolyReLUNet(DIM, WIDTH, 2.0, init="balanced", scale=0.3, seed=1)
    run = polyrelu.flow(net, rows, until=0.3, max_evaluations=30)
    found = polyrelu.bracket(run.net, rows.rows(0, 4), rows.y[:4], budget=polyrelu.Budget(nodes=5))
    head = polyrelu.PolyReLUClassifier(p=2, width=WIDTH, epochs=2, random_state=0)
    head.fit(rows.rows().numpy(), rows.y.numpy())
    report = polyrelu.RobustnessReport.measure(head, rows.rows().numpy(), rows.y.numpy(), points=4, compare=False)
    return {
        "mixture": mixture,
        "data": rows,
        "net": run.net,
        "trajectory": run,
        "bracket": found,
        "head": head,
        "report": report,
    }


def write_files(folder: Path) -> None:
    """Files that good paths lead to; made anew for each case, for a call may write."""
    made = world()
    polyrelu.save(made["net"], folder / "net.safetensors")
    made["head"].save(folder / "head.safetensors")
    made["trajectory"].save(folder / "trajectory.npz")
    (folder / "sweep").mkdir(exist_ok=True)
    state = {
        "center": torch.zeros(DIM),
        "prelulayer.W": torch.ones(DIM, WIDTH),
        "output_net.weight": torch.ones(2, WIDTH),
    }
    torch.save(state, folder / "reference.pt")
    (folder / "sweep.toml").write_text('function = "polyrelu.workflows.experiments:mixture"\n[grid]\np = [1.0]\n')


def good(name: str, function: str) -> Any:
    """A value for the parameter ``name`` of the function (or class) called ``function``; `missing` if there is none."""
    for key in (f"{function}.{name}", f"{function.split('.')[0]}.{name}", name):
        if key in GOOD:
            return GOOD[key]()
    return MISSING


def needed(parameter: inspect.Parameter) -> bool:
    """Is it given in every call: because it must be, or because it limits the work?"""
    listed = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    return listed and (parameter.default is parameter.empty or parameter.name in LIMITS)


def instance(kind: type) -> Any:
    """A good object of a class, for its methods."""
    made = world()
    ready: dict[str, Callable[[], Any]] = {
        "PolyReLUClassifier": lambda: made["head"],
        "Trajectory": lambda: made["trajectory"],
        "History": lambda: made["trajectory"].history,
        "RobustCurve": lambda: polyrelu.curve(made["bracket"]),
        "Dataset": lambda: made["data"],
        "Polar": lambda: made["net"].polar(),
        "RobustnessReport": lambda: made["report"],
    }
    if kind.__name__ in ready:
        return ready[kind.__name__]()
    wanted = [one for one in inspect.signature(kind).parameters.values() if needed(one)]
    return kind(**{one.name: good(one.name, kind.__name__) for one in wanted})


@sweeps.sweepable()
def example(p: float = 1.0) -> float:
    """A function that may be swept."""
    return p


class Missing:
    """No good value is known."""


MISSING = Missing()
LIMITS = {"steps", "max_evaluations", "points", "budget", "nodes", "epochs", "rounds", "searches", "batches", "size",
          "splits", "probes", "workers", "every"}  # fmt: skip


def _rows() -> torch.Tensor:
    found: torch.Tensor = world()["data"].rows(0, 6).clone()
    return found


def _labels() -> torch.Tensor:
    found: torch.Tensor = world()["data"].y[:6].clone()
    return found


def _value(key: str) -> Callable[[], Any]:
    return lambda: world()[key]


def _plain(value: Any) -> Callable[[], Any]:
    return lambda: value


GOOD: dict[str, Callable[[], Any]] = {
    **{name: _value("net") for name in ("net", "score", "model", "f", "F", "like")},
    **dict.fromkeys(("X", "W", "directions", "matrix", "X_like", "z"), _rows),
    **dict.fromkeys(("positive", "negative", "clusters", "opposite", "m", "outputs", "groups", "workers", "total",
                     "done",
                     "others", "every", "probes"), _plain(1)),
    **dict.fromkeys(("alpha", "radius", "rho", "nu", "delta", "eps", "at_centre", "margin", "balance", "lipschitz",
                     "tolerance", "seconds"), _plain(0.1)),
    **dict.fromkeys(("steps", "points", "rounds", "searches"), _plain(3)),
    **dict.fromkeys(("key", "error", "file", "message", "version", "status", "name", "title"), _plain("a")),
    **dict.fromkeys(("evaluations", "log10_time", "C", "log10_loss", "log_factor"), _plain(1.0)),
    **dict.fromkeys(("clock", "log_time", "log_loss", "values", "accuracy"), lambda: np.arange(3.0)),
    **dict.fromkeys(("cos_centre", "cos_average", "log_contribution"), lambda: np.ones((3, WIDTH), np.float32)),
    "RadiusFromMinimal.attack": lambda: attacks.BoundaryWalk(steps=2),
    "Bracket.nodes": lambda: world()["bracket"].nodes,
    "Bracket.status": lambda: world()["bracket"].status,
    "Polar.log_r": lambda: torch.zeros(WIDTH, dtype=torch.float64),
    "Polar.log_s": lambda: torch.zeros(WIDTH, dtype=torch.float64),
    "Polar.neurons.index": lambda: torch.tensor([0, 1]),
    "Polar.q": lambda: torch.ones(WIDTH, 1),
    "Polar.u": lambda: torch.eye(WIDTH, DIM),
    "PolyReLUClassifier.load.path": _plain("head.safetensors"),
    "ReadOut.against.own": _plain(1),
    "ReadOut.net": lambda: nets.PolyReLUNet(DIM, WIDTH, 2.0, 3),
    "ReadOut.class_of": _plain((0, 0, 1)),
    "Record.settings": dict,
    "RobustCurve.lower": lambda: (np.array([0.1, 0.2]),),
    "RobustCurve.upper": lambda: (np.array([0.2, 0.3]),),
    "RobustnessReport.measure.X": lambda: world()["data"].rows().numpy(),
    "RobustnessReport.measure.y": lambda: world()["data"].y.numpy(),
    "RobustnessReport.save.path": _plain("out.html"),
    "RunSummary.accuracy": _plain(1.0),
    "GroupedNet.binary.labels": lambda: torch.tensor([1.0, -1.0]),
    "GroupedNet.groups": _plain(2),
    "Sweep.read.path": _plain("sweep.toml"),
    "Trajectory.load.path": _plain("trajectory.npz"),
    "Trajectory.save.path": _plain("out.npz"),
    "Trajectory.settings": dict,
    "Trajectory.status": lambda: world()["trajectory"].status,
    "attack": lambda: attacks.PGD(steps=2),
    "at_work": _plain(False),
    "batches": _plain(1),
    "bracket": _value("bracket"),
    "brackets": _value("bracket"),
    "budget": lambda: polyrelu.Budget(nodes=2),
    "centres": lambda: world()["mixture"].centres.clone(),
    "Net.settings": dict,
    "config": dict,
    "counts": dict,
    "data": _value("data"),
    "dim": _plain(DIM),
    "epochs": _plain(1),
    "export.path": _plain("sweep"),
    "failures": _plain(()),
    "figure": lambda: figures.trajectory_figure(world()["trajectory"]),
    "find_function.name": _plain("polyrelu.workflows.experiments:mixture"),
    "function": _plain("polyrelu.workflows.experiments:mixture"),
    "grid": lambda: {"p": [1.0]},
    "history": lambda: world()["trajectory"].history,
    "index": lambda: torch.tensor([0, 1, 2, 3, 23]),
    "labels": lambda: world()["mixture"].labels.clone(),
    "load_reference.path": _plain("reference.pt"),
    "log_contributions": lambda: world()["net"].log_contributions(),
    "lower": lambda: world()["bracket"].lower,
    "max_evaluations": _plain(20),
    "mixture": _value("mixture"),
    "n": _plain(12),
    "nodes": _plain(5),
    "norm": _plain(2.0),
    "out": _plain("sweep"),
    "p": _plain(2.0),
    "path": _plain(Path("net.safetensors")),
    "perturbation": lambda: world()["bracket"].perturbation,
    "read.text": _plain("mixture:dim=6,clusters=2+1,alpha=0.1,n=9"),
    "read_records.path": _plain("sweep"),
    "result": _plain(None),
    "save.path": _plain("out.safetensors"),
    "save_figure.path": _plain("out.png"),
    "seed": _plain(0),
    "settings": lambda: [{"p": 1.0}],
    "size": _plain(4),
    "splits": _plain(1),
    "status.path": _plain("sweep"),
    "step": lambda: torch.zeros(6, DIM),
    "sweep": lambda: sweeps.Sweep("polyrelu.workflows.experiments:mixture", []),
    "text": _plain("2+1"),
    "to": _plain("out.csv"),
    "trajectory": _value("trajectory"),
    "until": _plain(0.3),
    "upper": lambda: world()["bracket"].upper,
    "value": _plain(lambda logits, y, target: logits),
    "version.function": _plain(example),
    "width": _plain(WIDTH),
    "y": _labels,
}  # fmt: skip
