"""The command line: parse, call, show. Everything heavy is imported inside the commands, so that --help is instant."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from polyrelu import __version__
from polyrelu.errors import InputError
from polyrelu.runs.evaluation_settings import EvaluationSettings, parse_radii
from polyrelu.runs.settings import DTYPES, LIMITS, LOSSES, STARTS, TARGETS, FlowSettings, text

if TYPE_CHECKING:
    from polyrelu.runs.evaluation import Evaluation
    from polyrelu.runs.folder import Run
    from polyrelu.runs.inspection import Inspection
    from polyrelu.train import Trajectory

EXIT = "Exit status: 0 done, 1 stopped short of every target (files are written), 2 bad input, 130 interrupted."
EVALUATED = (
    "Exit status: 0 done, 2 bad input, 3 a proof exceeded an attack (our bug, please report it), 130 interrupted "
    "(what is done is kept)."
)
INSPECTED = "Exit status: 0 done, 2 bad input, 130 interrupted (finished pictures are kept)."
QUICK: dict[str, Any] = {"dim": 200, "samples": 4000, "width": 400, "start": "gaussian"}  # start as published
REACHED = ("LOSS", "TIME", "ACCURATE", "ALIGNED")
PUBLISHED = FlowSettings()

app = typer.Typer(
    help="What did gradient training make a classifier learn, and how far can it be trusted?",
    epilog="Example: polyrelu reproduce --out out/reproduce",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def option(panel: str, help: str, *names: str, **more: Any) -> Any:
    """An option in its group of the help text; flags name themselves, so that they have no negative form."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def one_of(names: tuple[str, ...]) -> str:
    """``a, b or c``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


NET, DATA, FLOW, STOP, OUTPUT = "Network", "Data", "Flow", "Stop at the first of", "Output"
POINTS, EFFORT = "Points", "Effort for each point"
Out = Annotated[Path, option(OUTPUT, "Folder for the results; made if need be.", metavar="DIR", show_default=False)]
Seed = Annotated[int, option(OUTPUT, "Same seed, same numbers.")]
Quiet = Annotated[bool, option(OUTPUT, "Show no progress.", "--quiet")]


@app.command(
    epilog="Example: polyrelu flow --p 3 --dim 200 --samples 4000 --width 400 --out runs/p3\n\n"
    "and further: polyrelu flow --resume --until-loss 1e-6 --out runs/p3\n\n" + EXIT
)
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


@app.command(epilog="Example: polyrelu reproduce --out out/reproduce\n\n" + EXIT)
def reproduce(out: Out, seed: Seed = 0, quiet: Quiet = False) -> None:
    """Train p = 1 and p = 3 in quick size (seconds, not the paper's) and write one page that compares them.

    Writes p1/ and p3/ as `polyrelu flow` does, and index.html with both pictures and the numbers side by side.
    """
    with plain_errors():
        runs = []
        for p in (1.0, 3.0):
            runs.append(train(FlowSettings(p=p, seed=seed, **QUICK), out / f"p{p:g}", quiet))
            if runs[-1].summary.status == "INTERRUPTED":
                typer.echo("polyrelu: interrupted; the page was not written. Run the same command again.", err=True)
                raise typer.Exit(130)
            typer.echo(f"p = {p:g}: {runs[-1].summary.reading()}")
        typer.echo(compare(out, runs))
    raise typer.Exit(max(exit_code(run) for run in runs))


@app.command(
    epilog="Example: polyrelu evaluate runs/p3 mixture:dim=200,clusters=6+4,alpha=0.1,n=1000,seed=1 --out out/p3\n\n"
    "and: polyrelu evaluate head.safetensors embeddings.npz --limit 500 --radius 0.1,0.2 --out out/head\n\n" + EVALUATED
)
def evaluate(
    net: Annotated[str, typer.Argument(help="A net saved by polyrelu, or a folder of polyrelu flow.", metavar="NET")],
    data: Annotated[
        str,
        typer.Argument(
            help="A file (.npz, .safetensors with X and y; .npy with its labels in NAME_y.npy; .csv, .parquet), a name "
            "(digits, digits:parity) or a recipe (mixture:dim=200,clusters=6+4,alpha=0.1,n=500).",
            metavar="DATA",
        ),
    ],
    *,
    norm: Annotated[str, option(POINTS, "How perturbations are measured: 1, 2 or inf.", metavar="NORM")] = "2",
    radius: Annotated[
        list[str] | None, option(POINTS, "Radii of the table, as 0.1,0.2; round ones by default.", metavar="R,...")
    ] = None,
    limit: Annotated[int | None, option(POINTS, "Only the first so many points.")] = None,
    tol: Annotated[float, option(EFFORT, "Stop when proof and attack are this close, relatively.")] = 1e-3,
    budget_nodes: Annotated[int, option(EFFORT, "Stop after so many nodes of branch and bound.")] = 300,
    budget_seconds: Annotated[float | None, option(EFFORT, "Stop after so many seconds.")] = None,
    cross_check: Annotated[
        bool, option(EFFORT, "Hold the attacks of other libraries against the result.", "--cross-check")
    ] = False,
    out: Out,
    seed: Seed = 0,
    as_json: Annotated[bool, option(OUTPUT, "Print evaluation.json instead of a table.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Bracket how far every point of DATA can be moved before NET changes its mind: certified <= true <= attacked.

    Writes radii.csv, curve.png, curve.svg, adversarial.npz and evaluation.json. Finished points are kept in DIR/parts:
    after Ctrl-C the same command goes on from there, and other radii or a larger limit use them again.
    """
    with plain_errors("lower --limit"):
        settings = EvaluationSettings(
            net, data, norm, tol, budget_nodes, budget_seconds, seed, limit, parse_radii(radius), cross_check
        )
        from polyrelu.robust.bracket import BrokenSandwich
        from polyrelu.runs.evaluation import evaluate as run
        from polyrelu.runs.evaluation_live import EvaluationLive

        with EvaluationLive(quiet) as live:
            try:
                result = run(settings, out, live)
            except BrokenSandwich as error:
                typer.echo(f"polyrelu: error: {' '.join(str(error).split())}", err=True)
                raise typer.Exit(3) from None
            except KeyboardInterrupt:
                kept = f"{live.done} of {live.total} points are kept" if live.total else "nothing was done yet"
                again = settings.command(str(out))
                live.close()
                typer.echo(f"polyrelu: interrupted; {kept}. Go on with: {again}", err=True)
                raise typer.Exit(130) from None
        show_evaluation(result, as_json, quiet)


@app.command(
    epilog="Example: polyrelu inspect runs/p3 mixture:dim=200,clusters=6+4,alpha=0.1,n=4000 --out out/p3\n\n"
    "and: polyrelu inspect head.safetensors embeddings.npz --limit 5000 --out out/head\n\n" + INSPECTED
)
def inspect(
    net: Annotated[str, typer.Argument(help="A net saved by polyrelu, or a folder of polyrelu flow.", metavar="NET")],
    data: Annotated[str, typer.Argument(help="A file, a name or a recipe, as for polyrelu evaluate.", metavar="DATA")],
    *,
    trajectory: Annotated[
        str | None,
        option(NET, "How it was trained; that of the folder by default.", metavar="FILE", show_default=False),
    ] = None,
    limit: Annotated[int | None, option(POINTS, "Only the first so many rows.")] = None,
    out: Out,
    seed: Seed = 0,
    as_json: Annotated[bool, option(OUTPUT, "Print inspection.json instead of a table.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Say what NET learned from DATA: averages or single centres, margins, phases; a sentence for each measurement.

    Writes inspection.json, table.csv and a picture (PNG, SVG) of whatever can be drawn. What does not apply to this net
    or these data says why.
    """
    with plain_errors("lower --limit"):
        from polyrelu.runs.inspection import inspect as run
        from polyrelu.runs.inspection_inputs import InspectionSettings
        from polyrelu.runs.inspection_live import InspectionLive

        settings = InspectionSettings(net, data, trajectory, limit, seed)
        with InspectionLive(quiet) as live:
            try:
                result = run(settings, out, live)
            except KeyboardInterrupt:
                live.close()
                typer.echo(f"polyrelu: interrupted while {live.state()}. Run the same command again.", err=True)
                raise typer.Exit(130) from None
        show_inspection(result, as_json, quiet)


def train(settings: FlowSettings, out: Path, quiet: bool, before: Trajectory | None = None) -> Run:
    """Check everything, train (on from ``before``) and save; one line of progress on a terminal."""
    import torch

    from polyrelu.data import OrthonormalMixture, parse_clusters
    from polyrelu.files import output_folder
    from polyrelu.nets import PolyReLUNet
    from polyrelu.report.summary import summarise
    from polyrelu.runs.folder import Run
    from polyrelu.runs.live import Live
    from polyrelu.train import Until
    from polyrelu.train import flow as follow

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
    from polyrelu.runs.folder import read_record, read_trajectory

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


def show_evaluation(result: Evaluation, as_json: bool, quiet: bool) -> None:
    """The tables on stdout, where the files are on stderr."""
    if as_json:
        typer.echo(json.dumps(result.record(), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from polyrelu.runs.evaluation_show import tables

        console = Console(highlight=False)
        for table in tables(result):
            console.print(table)
    if not quiet:
        files = "radii.csv, curve.png, curve.svg, adversarial.npz and evaluation.json"
        typer.echo(f"polyrelu: written to {result.folder}: {files}", err=True)


def show_inspection(result: Inspection, as_json: bool, quiet: bool) -> None:
    """The headline and the table on stdout, where the files are on stderr."""
    if as_json:
        typer.echo(json.dumps(result.record(), indent=2, allow_nan=False))
    else:
        from rich.console import Console
        from rich.text import Text

        from polyrelu.runs.inspection_table import grid

        console = Console(highlight=False)
        console.print(Text(result.title, style="bold"), Text(result.headline), grid(list(result.rows)), sep="\n")
    if not quiet:
        files = ", ".join(name for name in result.pictures if name.endswith(".png"))
        pictures = f" and the pictures {files} (and .svg)" if files else ""
        typer.echo(f"polyrelu: written to {result.folder}: inspection.json, table.csv{pictures}", err=True)


def compare(out: Path, runs: list[Run]) -> Path:
    """The page of the given runs."""
    from polyrelu.report.page import Section, write_page
    from polyrelu.runs.folder import PICTURE, versions

    sections = [
        Section(
            heading=f"p = {run.settings.p:g}" + (", the ordinary ReLU" if run.settings.p == 1 else ""),
            column=f"p = {run.settings.p:g}",
            summary=run.summary,
            picture=(run.folder / PICTURE).read_bytes(),
            command=run.settings.command(run.folder.name),
            settings={name: text(value) for name, value in run.settings.in_force().items()},
            versions=versions(),
        )
        for run in runs
    ]
    note = (
        "Min and Vidal (ICML 2024, Fig. 2) found that from a small start the neurons learn class averages when p = 1 "
        "and single sub-class centres when p = 3. Here both are trained again by gradient flow, in dimension "
        f"{QUICK['dim']} instead of {PUBLISHED.dim}, with {QUICK['samples']} training points instead of "
        f"{PUBLISHED.samples} and {QUICK['width']} neurons instead of {PUBLISHED.width}."
    )
    title = "What do the neurons learn? p = 1 against p = 3"
    return write_page(out / "index.html", title, sections, note, badge="quick size, not the paper's")


def exit_code(run: Run) -> int:
    """0 if a target was reached, 130 if the run was interrupted, else 1."""
    return 0 if run.summary.status in REACHED else 130 if run.summary.status == "INTERRUPTED" else 1


@contextlib.contextmanager
def plain_errors(smaller: str = "lower --samples, --dim or --width") -> Iterator[None]:
    """Failures that are nobody's bug become one line and an exit code; ``smaller`` is what saves memory."""
    try:
        yield
    except InputError as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"{error.filename or 'the results'} cannot be written ({error.strerror or error}).")
    except KeyboardInterrupt:
        typer.echo("polyrelu: interrupted; nothing is half-written.", err=True)
        raise typer.Exit(130) from None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            fail(f"not enough memory for these sizes; {smaller}.")
        raise


def fail(message: str) -> NoReturn:
    """One line on stderr, exit code 2."""
    typer.echo(f"polyrelu: error: {' '.join(message.split())}", err=True)
    raise typer.Exit(2)


def _typed(context: typer.Context, name: str) -> bool:
    """Was this option given, or is it a default?"""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"polyrelu {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Its version.")] = False,
) -> None:
    """What did gradient training make a classifier learn, and how far can it be trusted?"""


def main() -> None:
    """Entry point of ``polyrelu``."""
    app(prog_name="polyrelu")


if __name__ == "__main__":
    main()
