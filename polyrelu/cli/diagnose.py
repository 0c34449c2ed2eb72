"""`polyrelu diagnose`: is a classifier of these data fragile, and would a polynomial head be less so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from polyrelu.cli.options import DATA, NET, OUTPUT, POINTS, Quiet, Seed, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress

EPILOG = (
    "Example: polyrelu diagnose embeddings.npz -o diagnosis.html\n\n"
    "and: polyrelu diagnose table.csv --label species --model head.safetensors -o diagnosis.html\n\n"
    "Exit status: 0 done, 2 bad input, 3 a proof exceeded an attack (our bug, please report it), 130 interrupted."
)


def diagnose(
    data: Annotated[
        str,
        typer.Argument(
            help="A file (.npz, .npy, .csv, .parquet, .safetensors), a name (digits:parity) or a recipe.",
            metavar="DATA",
        ),
    ],
    *,
    label: Annotated[str | None, option(DATA, "Column or array with the labels.", metavar="COL")] = None,
    fine: Annotated[
        str | None, option(DATA, "Column with known sub-classes; found if not given.", metavar="COL")
    ] = None,
    model: Annotated[
        str | None,
        option(NET, "A head or net saved by polyrelu; without it a ReLU head is trained and examined.", metavar="FILE"),
    ] = None,
    points: Annotated[int, option(POINTS, "So many held-out rows are attacked, drawn at random.")] = 200,
    out: Annotated[Path, option(OUTPUT, "The page.", "--out", "-o", metavar="FILE.html")] = Path("diagnosis.html"),
    seed: Seed = 0,
    as_json: Annotated[bool, option(OUTPUT, "Print the numbers instead of sentences.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Say whether a classifier of DATA averages hidden sub-classes, how far it holds, and what a p = 3 head would do.

    Trains on four fifths of the rows, attacks and certifies on the rest, and writes one HTML page that needs nothing
    else.
    """
    with plain_errors("give fewer rows"):
        from polyrelu.workflows import DiagnosisSettings, run_diagnosis

        settings = DiagnosisSettings(data, out, label, fine, model, points, seed)
        with TerminalProgress(quiet) as progress:
            report = run_diagnosis(settings, progress)
        typer.echo(json.dumps(report.record(), indent=2, allow_nan=False) if as_json else report.summary())
        if not quiet:
            typer.echo(f"polyrelu: written to {out}", err=True)
