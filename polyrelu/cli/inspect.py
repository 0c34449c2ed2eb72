"""`polyrelu inspect`: what a net learned."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from polyrelu.cli.options import NET, OUTPUT, POINTS, Out, Quiet, Seed, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress

EPILOG = (
    "Example: polyrelu inspect runs/p3 mixture:dim=200,clusters=6+4,alpha=0.1,n=4000 --out out/p3\n\n"
    "and: polyrelu inspect head.safetensors embeddings.npz --limit 5000 --out out/head\n\n"
    "Exit status: 0 done, 2 bad input, 130 interrupted (finished pictures are kept)."
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
        from polyrelu.workflows import InspectionSettings, inspection_table, run_inspection

        settings = InspectionSettings(net, data, trajectory, limit, seed)
        with TerminalProgress(quiet) as progress:
            result = run_inspection(settings, out, progress)
        if as_json:
            typer.echo(json.dumps(result.record(), indent=2, allow_nan=False))
        else:
            from rich.console import Console
            from rich.text import Text

            title, table = Text(result.title, style="bold"), inspection_table(list(result.rows))
            Console(highlight=False).print(title, Text(result.headline), table, sep="\n")
        if not quiet:
            files = ", ".join(name for name in result.pictures if name.endswith(".png"))
            pictures = f" and the pictures {files} (and .svg)" if files else ""
            typer.echo(f"polyrelu: written to {result.folder}: inspection.json, table.csv{pictures}", err=True)
