"""`polyrelu evaluate`: how far can every point be moved."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from polyrelu.cli.options import EFFORT, NET, OUTPUT, POINTS, Out, Quiet, Seed, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.errors import require
from polyrelu.workflows import EvaluationSettings, parse_radii

EPILOG = (
    "Example: polyrelu evaluate runs/p3 mixture:dim=200,clusters=6+4,alpha=0.1,n=1000,seed=1 --out out/p3\n\n"
    "and: polyrelu evaluate head.safetensors embeddings.npz --limit 500 --radius 0.1,0.2 --out out/head\n\n"
    "and: polyrelu evaluate --reference p3.pt --p 3 --data mnist:validation --limit 9 --budget-nodes 1 --out out/3\n\n"
    "Exit status: 0 done, 2 bad input, 3 a proof exceeded an attack (our bug, please report it), 130 interrupted "
    "(what is done is kept)."
)


def evaluate(
    net: Annotated[
        str | None, typer.Argument(help="A net saved by polyrelu, or a folder of polyrelu flow.", metavar="NET")
    ] = None,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A file (.npz, .safetensors with X and y; .npy with its labels in NAME_y.npy; .csv, .parquet), a name "
            "(digits, mnist:validation) or a recipe (mixture:dim=200,clusters=6+4,alpha=0.1,n=500).",
            metavar="DATA",
        ),
    ] = None,
    *,
    reference: Annotated[
        str | None,
        option(NET, "Instead of NET: a checkpoint of the published code (.pt), with its power in --p.", metavar="FILE"),
    ] = None,
    p: Annotated[float | None, option(NET, "The power of the net in --reference, whose file does not hold it.")] = None,
    data_option: Annotated[str | None, option(NET, "Another way to say DATA.", "--data", metavar="DATA")] = None,
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
        words = [word for word in (net, data, data_option) if word is not None]
        file, points = net_and_data(words, reference, p)
        settings = EvaluationSettings(
            file, points, norm, tol, budget_nodes, budget_seconds, seed, limit, parse_radii(radius), cross_check, p
        )
        from polyrelu.workflows import evaluation_tables, run_evaluation

        with TerminalProgress(quiet) as progress:
            result = run_evaluation(settings, out, progress)
        if as_json:
            typer.echo(json.dumps(result.record(), indent=2, allow_nan=False))
        else:
            from rich.console import Console

            Console(highlight=False).print(*evaluation_tables(result), sep="\n")
        if not quiet:
            files = "radii.csv, curve.png, curve.svg, adversarial.npz and evaluation.json"
            typer.echo(f"polyrelu: written to {result.folder}: {files}", err=True)


def net_and_data(words: list[str], reference: str | None, p: float | None) -> tuple[str, str]:
    """The net's file and the data out of NET DATA, or out of DATA beside --reference."""
    if reference is None:
        require(p is None, "p", p, "--p only beside --reference: a net saved by polyrelu knows its own")
        require(len(words) == 2, "arguments", " ".join(words) or "none", "NET and DATA, or --reference, --p and DATA")
        return words[0], words[1]
    require(p is not None, "p", p, "a number >= 1 beside --reference, whose file does not hold it, such as --p 3")
    require(len(words) == 1, "arguments", " ".join(words) or "none", "DATA alone: the net is that of --reference")
    return reference, words[0]
