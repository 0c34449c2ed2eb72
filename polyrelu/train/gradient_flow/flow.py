"""Gradient flow: the door to three ways of integrating it, each where it is best.

    theta' = -grad L(theta),   L = (1/n) sum_i l(f(x_i), y_i)

polar_flow.py (PolyReLUNet, any initial scale), module_flow.py (any other module) and, once the data are separated and
few constraints decide, late.py (both; losses of 1e-1000 and beyond).
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
from polyrelu.train.descent.backward import outputs_of
from polyrelu.train.gradient_flow.module_flow import module_flow
from polyrelu.train.gradient_flow.polar_flow import Watch, polar_flow
from polyrelu.train.late_phase.late_flow import finish
from polyrelu.train.late_phase.late_step import SEPARATED, ready
from polyrelu.train.losses import check_loss, in_loss_time
from polyrelu.train.stopping import Status, Until
from polyrelu.train.trajectory import Trajectory

LN10 = math.log(10)
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
    merge : let neurons that met, within the bound ``rtol`` of groups.py, travel as one
    drop : leave neurons that no sample activates out of the products
    after : go on from an earlier run (its clock, time and history); ``net`` should be its network
    watch : called with every moment as it is recorded and the state of all neurons at it (PolyReLUNet, early method);
        what it raises ends the run

    The given network is not changed. An interrupt (Ctrl-C) after the first pass over the data returns what was reached.
    """
    until = Until.of(until)
    check_loss(loss)
    _check(net, data, record, checkpoints, surrogate, max_evaluations, rtol)
    if after is not None:  # levels it has passed already are not ahead
        checkpoints = [level for level in checkpoints if after.log_loss > level * LN10]
    told, log_n = progress or Progress(), math.log(len(data))
    kept = {} if after is None else dict(after.checkpoints)
    run, here, height = after, net, -SEPARATED  # height: -log of the summed loss at which to look for the late phase
    late = in_loss_time(loss)
    try:
        while True:
            if late and run is not None and until.log_loss < run.log_loss and ready(here, data, run.log_loss):
                run, late = finish(
                    replace(run, checkpoints=kept), data, loss=loss, until=until, rtol=rtol, record=record,
                    checkpoints=checkpoints, max_evaluations=max_evaluations, progress=told,
                )  # fmt: skip
                here, kept = run.net, run.checkpoints
                if late:
                    break
            goals = [until.log_loss, *(level * LN10 for level in checkpoints if level not in kept)]
            stop = max(*goals, -height - log_n if late else -math.inf)
            goal = until if stop == until.log_loss else replace(until, loss=None, log10_loss=stop / LN10)
            before = {} if run is None else run.counts
            if isinstance(here, PolyReLUNet):
                run = polar_flow(
                    here, data, loss=loss, until=goal, rtol=rtol, record=record, surrogate=surrogate, merge=merge,
                    drop=drop, max_evaluations=max_evaluations, progress=told, after=run, watch=watch,
                )  # fmt: skip
            else:
                run = module_flow(
                    here, data, loss=loss, until=goal, rtol=rtol, record=record,
                    max_evaluations=max_evaluations, progress=told, after=run,
                )  # fmt: skip
            run = replace(
                run, counts={**before, **run.counts, **{k: before.get(k, 0.0) + run.counts.get(k, 0.0) for k in ADDED}}
            )
            here = run.net
            kept |= {level: here for level in checkpoints if level not in kept and run.log_loss <= level * LN10}
            if goal is until or run.status is not Status.LOSS:
                break
            height = max(height, -2 * (run.log_loss + log_n))
    except KeyboardInterrupt:  # between two phases; inside them it is a status
        if run is None:
            raise
        run = replace(run, status=Status.INTERRUPTED)
    settings = {
        "method": "flow", "loss": loss, "rtol": rtol, "samples": len(data),
        "surrogate": surrogate, "merge": merge, "drop": drop,
    }  # fmt: skip
    return replace(run, settings=settings, checkpoints=kept)


def _check(
    net: nn.Module,
    data: Dataset,
    record: Sequence[float],
    checkpoints: Sequence[float],
    surrogate: int,
    max_evaluations: float,
    rtol: float,
) -> None:
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
    require(surrogate >= 0, "surrogate", surrogate, "a whole number >= 0")
    require(max_evaluations > 0, "max_evaluations", max_evaluations, "a number > 0")
    require(1e-8 <= rtol <= 0.1, "rtol", rtol, "a number between 1e-8 and 0.1")
    require(all(t > 0 and math.isfinite(t) for t in record), "record", list(record), "positive times")
    require(all(map(math.isfinite, checkpoints)), "checkpoints", list(checkpoints), "log10 losses such as -10")
