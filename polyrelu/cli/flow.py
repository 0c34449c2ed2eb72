"""`polyrelu flow`: train by gradient flow."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from polyrelu.cli.options import DATA, FLOW, NET, OUTPUT, STOP, Out, Quiet, Seed, one_of, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.workflows import DTYPES, LOSSES, STARTS, FlowSettings

if TYPE_CHECKING:
    from polyrelu.workflows import FlowRun

EPILOG = (
    "Example: polyrelu flow --p 3 --dim 200 --samples 4000 --width 400 --out runs/p3\n\n"
    "and further: polyrelu flow --resume --until-loss 1e-6 --out runs/p3\n\n"
    "Exit status: 0 done, 1 stopped short of every target (files are written), 2 bad input, 130 interrupted."
)
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
    settings = {part.name: context.params[part.name] for part in fields(FlowSettings)}
    with plain_errors():
        from polyrelu.workflows import resume_flow, run_flow

        with TerminalProgress(quiet) as progress:
            if resume:
                given = {name: value for name, value in settings.items() if _given(context, name)}
                run = resume_flow(out, given, progress)
            else:
                run = run_flow(FlowSettings(**settings), out, progress)
        if isinstance(run, dict):
            nothing_to_resume(run, as_json)
        show(run, as_json, quiet)
    raise typer.Exit(run.exit_code)


def nothing_to_resume(record: dict[str, Any], as_json: bool) -> NoReturn:
    """The run is finished: say so and end the command."""
    message = record["summary"].get("message")
    typer.echo(f"polyrelu: nothing to resume: {message} Give a further target to go on.", err=True)
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    raise typer.Exit(0)


def show(run: FlowRun, as_json: bool, quiet: bool) -> None:
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


def _given(context: typer.Context, name: str) -> bool:
    """Was this option given, or is it a default?"""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
