"""`polyrelu flow`: train by gradient flow."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyrelu.cli.options import DATA, FLOW, NET, OUTPUT, STOP, Out, Quiet, Seed, one_of, option, plain_errors
from polyrelu.workflows.flow.settings import DTYPES, LIMITS, LOSSES, STARTS, TARGETS, FlowSettings

if TYPE_CHECKING:
    from polyrelu.train import Trajectory
    from polyrelu.workflows.flow.run_folder import Run

EXIT = "Exit status: 0 done, 1 stopped short of every target (files are written), 2 bad input, 130 interrupted."
EPILOG = (
    "Example: polyrelu flow --p 3 --dim 200 --samples 4000 --width 400 --out runs/p3\n\n"
    "and further: polyrelu flow --resume --until-loss 1e-6 --out runs/p3\n\n" + EXIT
)
REACHED = ("LOSS", "TIME", "ACCURATE", "ALIGNED")
PUBLISHED = FlowSettings()


def flow(
    context: typer.Context,
    *,
    p: Annotated[float, option(NET, "Power of the ReLU, any number >= 1; 1 is the ordinary ReLU.")] = PUBLISHED.p,
    width: Annotated[int, option(NET, "Number of neurons.")] = PUBLISHED.width,
    init: Annotated[float, option(NET, "Initial scale of the weights, as in the papers.")] = PUBLISHED.init,
    start: Annotated[str, option(NET, f"Initial shape: {one_of(STARTS)}.", metavar="NAME")] = PUBLISHED.start,
    nudge: Annotated[float, option(NET, "Share of the way to a centre, for --start nudged.")] = PUBLISHED.nudge,
    clusters: Annotated[str, option(DATA, "Positive and negative sub-classes.", metavar="K1+K2")] = PUBLISHED.clusters,
    dim: Annotated[int, option(DATA, "Dimension, at least the number of sub-classes.")] = PUBLISHED.dim,
    samples: Annotated[int, option(DATA, "Number of training points.")] = PUBLISHED.samples,
    alpha: Annotated[float, option(DATA, "Noise: how far points lie from their centre.")] = PUBLISHED.alpha,
    loss: Annotated[str, option(FLOW, f"What flows down: {one_of(LOSSES)}.", metavar="NAME")] = PUBLISHED.loss,
    rtol: Annotated[float, option(FLOW, "Error per step, in radians and relative norm.")] = PUBLISHED.rtol,
    dtype: Annotated[str, option(FLOW, f"Arithmetic: {one_of(DTYPES)}.", metavar="NAME")] = PUBLISHED.dtype,
    until_loss: Annotated[float | None, option(STOP, "This mean loss; 0.01 when no target is given.")] = None,
    until_log10_loss: Annotated[
        float | None, option(STOP, "This log10 of the loss; -1000 is far below any float.")
    ] = None,
    until_time: Annotated[float | None, option(STOP, "This flow time.")] = None,
    until_accurate: Annotated[bool, option(STOP, "Every training point right.", "--until-accurate")] = False,
    until_alignment: Annotated[float | None, option(STOP, "This median cosine of the neurons.")] = None,
    max_evaluations: Annotated[float, option(STOP, "This many passes over the data.")] = PUBLISHED.max_evaluations,
    checkpoints: Annotated[
        str, option(OUTPUT, "Keep net-1e-10.safetensors, ... at these log10 losses.", metavar="-10,-15,...")
    ] = PUBLISHED.checkpoints,
    out: Out,
    seed: Seed = PUBLISHED.seed,
    resume: Annotated[bool, option(OUTPUT, "Go on with the run in --out, or to a new target.", "--resume")] = False,
    as_json: Annotated[bool, option(OUTPUT, "Print run.json instead of a table.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Train a polynomial-ReLU net by gradient flow on Gaussian sub-classes and see what its neurons learn.

    The sizes are the published ones unless given (Min & Vidal, ICML 2024; their start is gaussian).

    Writes net.safetensors, trajectory.npz, run.json and trajectory.png. Ctrl-C saves what was reached. Losses far below
    any float are within reach: --until-log10-loss -1000 takes seconds more.
    """
    names = [part.name for part in fields(FlowSettings)]
    with plain_errors():
        if resume:
            typed = {name: context.params[name] for name in names if _typed(context, name)}
            run = go_on(out, typed, as_json, quiet)
        else:
            run = train(FlowSettings(**{name: context.params[name] for name in names}), out, quiet)
        show(run, as_json, quiet)
    raise typer.Exit(exit_code(run))


def train(settings: FlowSettings, out: Path, quiet: bool, before: Trajectory | None = None) -> Run:
    """Check everything, train (on from ``before``) and save; one line of progress on a terminal."""
    import torch

    from polyrelu.data import OrthonormalMixture, parse_clusters
    from polyrelu.files import output_folder
    from polyrelu.nets import PolyReLUNet
    from polyrelu.report import summarise
    from polyrelu.train import Until
    from polyrelu.train import flow as follow
    from polyrelu.workflows.flow.progress import Live
    from polyrelu.workflows.flow.run_folder import Run

    positive, negative = parse_clusters(settings.clusters)
    dtype = getattr(torch, settings.dtype)
    mixture = OrthonormalMixture(settings.dim, positive, negative, settings.alpha, dtype=dtype)
    net: Any = before.net if before else PolyReLUNet(
        settings.dim, settings.width, settings.p, init=settings.start, scale=settings.init, seed=settings.seed,
        centres=mixture.centres, nudge=settings.nudge, dtype=dtype,
    )  # fmt: skip
    folder = output_folder(out)
    data = mixture.sample(settings.samples, settings.seed)
    until = Until(**{name.removeprefix("until_"): value for name, value in settings.targets.items()})
    with Live(f"p = {settings.p:g}", quiet) as live:
        trajectory = follow(
            net, data, loss=settings.loss, until=until, rtol=settings.rtol,
            checkpoints=settings.levels(), max_evaluations=settings.max_evaluations, progress=live, after=before,
        )  # fmt: skip
        live.saving()
        run = Run(folder, settings, trajectory, summarise(trajectory, data))
        run.save()
    return run


def go_on(out: Path, typed: dict[str, Any], as_json: bool, quiet: bool) -> Run:
    """Resume the run in a folder; one that is finished says so and ends the command."""
    from polyrelu.workflows.flow.run_folder import read_record, read_trajectory

    record = read_record(out)
    settings = FlowSettings.from_json(record.get("settings"), out / "run.json").going_on(typed)
    ended = record["summary"]
    if ended.get("status") == "INTERRUPTED" or any(name in typed for name in (*TARGETS, *LIMITS)):
        trajectory = read_trajectory(out)
        if not reached(settings, trajectory):
            return train(settings, out, quiet, trajectory)
    typer.echo(f"polyrelu: nothing to resume: {ended.get('message')} Give a further target to go on.", err=True)
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    raise typer.Exit(0)


def reached(settings: FlowSettings, trajectory: Trajectory) -> bool:
    """Does the last moment meet a target already? (Alignment is left to the flow, which knows who is moving.)"""
    targets = settings.targets
    return (
        ("until_loss" in targets and trajectory.log_loss <= math.log(targets["until_loss"]))
        or ("until_log10_loss" in targets and trajectory.log10_loss <= targets["until_log10_loss"])
        or ("until_time" in targets and trajectory.time >= targets["until_time"])
        or ("until_accurate" in targets and trajectory.accuracy >= 1)
    )


def show(run: Run, as_json: bool, quiet: bool) -> None:
    """The result on stdout, what else there is to know on stderr."""
    if as_json:
        typer.echo(json.dumps(run.record(), indent=2, allow_nan=False))
    else:
        rows = run.summary.rows()
        width = max(len(label) for label, _ in rows)
        lines = [f"{label:<{width}}  {text}" for label, text in rows]
        typer.echo("\n".join([run.title, run.summary.reading(), "", *lines]))
    if not quiet:
        typer.echo(f"polyrelu: written to {run.folder}: the net, its trajectory, run.json and trajectory.png", err=True)
    if run.summary.status == "INTERRUPTED":
        typer.echo(f"polyrelu: interrupted; go on with: polyrelu flow --resume --out {run.folder}", err=True)


def exit_code(run: Run) -> int:
    """0 if a target was reached, 130 if the run was interrupted, else 1."""
    return 0 if run.summary.status in REACHED else 130 if run.summary.status == "INTERRUPTED" else 1


def _typed(context: typer.Context, name: str) -> bool:
    """Was this option given, or is it a default?"""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
