"""Gradient flow, integrated in three ways, each where it is best.

    theta' = -grad L(theta),   L = (1/n) sum_i l(f(x_i), y_i)

polar_flow.py (PolyReLUNet, any initial scale), module_flow.py (any other module) and, once the data are separated and
few constraints decide, separated_flow.py (both; losses of 1e-1000 and beyond).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.descent.mean_gradient import outputs_of
from polyrelu.train.gradient_flow.module_flow import ModuleFlow
from polyrelu.train.gradient_flow.polar_flow import PolarFlow
from polyrelu.train.gradient_flow.separated_flow import SeparatedFlow
from polyrelu.train.gradient_flow.separated_step import SEPARATED, ready
from polyrelu.train.losses import check_loss, in_loss_time
from polyrelu.train.stopping import LN10, Status, Until, as_until
from polyrelu.train.training_run import FlowOptions, Watch
from polyrelu.train.trajectory import Trajectory

ADDED = ("steps", "rejected", "inside")  # counts that add up over the parts of a run


@checked
def flow(
    net: nn.Module,
    data: Dataset,
    *,
    loss: str = "exp",
    until: float | Until = 1e-2,
    rtol: float = 1e-2,
    record: Sequence[float] = (),
    checkpoints: Sequence[float] = (),
    surrogate: int = 128,
    merge: bool = True,
    drop: bool = True,
    max_evaluations: float = 10_000,
    progress: Progress | None = None,
    after: Trajectory | None = None,
    watch: Watch | None = None,
) -> Trajectory:
    """Follow the gradient flow of ``net`` on ``data`` until a loss (or an ``Until``) is reached.

    Parameters
    ----------
    net : a PolyReLUNet, or any module that maps (n, D) to (n,) or (n, C) and has derivatives almost everywhere
    loss : "exp", "logistic", "cross_entropy" or "squared"
    rtol : error allowed per step, in radians of direction and in relative norm
    record : flow times at which to keep a copy of the network (``Trajectory.snapshots``)
    checkpoints : log10 losses at which to keep a copy (``Trajectory.checkpoints``)
    surrogate : size of the set on which steps are taken between passes over the data; 0 takes every step on the
        data themselves, and so do data less than eight times as many (PolyReLUNet only, as the next two)
    merge : treat neurons as one once their directions agree, within the bound of merging.py at ``rtol``
    drop : leave neurons that no sample activates out of the products
    after : go on from an earlier run (its clock, time and history); ``net`` should be its network
    watch : called with every moment as it is recorded and the state of all neurons at it (PolyReLUNet, early method);
        what it raises ends the run

    The given network is not changed. An interrupt (Ctrl-C) after the first pass over the data returns what was reached.
    """
    until = as_until(until)
    check_loss(loss)
    options = FlowOptions(
        data, loss, until, rtol, record, checkpoints, surrogate, merge, drop, max_evaluations,
        progress or Progress(), watch,
    )  # fmt: skip
    _check(net, options)
    if after is not None:  # levels it has passed already are not ahead
        options = replace(options, checkpoints=[level for level in checkpoints if after.log_loss > level * LN10])
    settings = {
        "method": "flow", "loss": loss, "rtol": rtol, "samples": len(data),
        "surrogate": surrogate, "merge": merge, "drop": drop,
    }  # fmt: skip
    return replace(_phases(net, options, after), settings=settings)


def _phases(net: nn.Module, options: FlowOptions, run: Trajectory | None) -> Trajectory:
    """The early method and, from time to time, a try of the separated phase, until one of them reaches the end."""
    until, log_n = options.until, math.log(len(options.data))
    late, next_try = in_loss_time(options.loss), SEPARATED - log_n  # log loss at which to look for the separated phase
    try:
        while True:
            if late and run is not None and until.log_loss < run.log_loss and ready(net, options.data, run.log_loss):
                phase = SeparatedFlow(run, options)
                run, late = phase.run(), not phase.gave_up
                net = run.net
                if late:
                    return run
            kept = {} if run is None else run.checkpoints
            goals = [until.log_loss, *(level * LN10 for level in options.checkpoints if level not in kept)]
            stop = max(*goals, next_try if late else -math.inf)
            goal = until if stop == until.log_loss else replace(until, loss=None, log10_loss=stop / LN10)
            run = _early(net, replace(options, until=goal), run)
            net = run.net
            if goal is until or run.status is not Status.LOSS:
                return run
            next_try = min(next_try, 2 * (run.log_loss + log_n) - log_n)
    except KeyboardInterrupt:  # between two phases; inside them it is a status
        if run is None:
            raise
        return replace(run, status=Status.INTERRUPTED)


def _early(net: nn.Module, options: FlowOptions, after: Trajectory | None) -> Trajectory:
    """To the goal by the early method, counts and checkpoints with those of before."""
    flow = PolarFlow(net, options, after) if isinstance(net, PolyReLUNet) else ModuleFlow(net, options, after)
    run = flow.run()
    before = {} if after is None else after.counts
    added = {name: before.get(name, 0.0) + run.counts.get(name, 0.0) for name in ADDED}
    reached = [level for level in options.checkpoints if run.log_loss <= level * LN10]
    kept = {level: run.net for level in reached if level not in run.checkpoints}
    return replace(run, counts={**before, **run.counts, **added}, checkpoints=run.checkpoints | kept)


def _check(net: nn.Module, options: FlowOptions) -> None:
    data, record, rtol = options.data, options.record, options.rtol
    require(isinstance(net, nn.Module), "net", type(net).__name__, "a PolyReLUNet or another torch module")
    require(isinstance(data, Dataset), "data", type(data).__name__, "a Dataset")
    outputs = 1 if data.binary else data.classes
    if isinstance(net, PolyReLUNet):
        require(data.dim == net.dim, "data", f"{data.dim} columns", f"{net.dim}, the dim of the network")
        frozen = [name for name, p in net.named_parameters() if not p.requires_grad]
        require(not frozen, "net", f"frozen {', '.join(frozen)}", "all weights trained; use descend for frozen ones")
        found = net.outputs
    else:
        found = outputs_of(net, data)
    require(found == outputs, "net.outputs", found, f"{outputs}, for the labels of {data.name}")
    require(options.surrogate >= 0, "surrogate", options.surrogate, "a whole number >= 0")
    require(options.max_evaluations > 0, "max_evaluations", options.max_evaluations, "a number > 0")
    require(1e-8 <= rtol <= 0.1, "rtol", rtol, "a number between 1e-8 and 0.1")
    require(all(t > 0 and math.isfinite(t) for t in record), "record", list(record), "positive times")
    levels = options.checkpoints
    require(all(map(math.isfinite, levels)), "checkpoints", list(levels), "log10 losses such as -10")
