"""`polyrelu predict`: classes for rows, and how far each decision is proven to hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyrelu.cli.options import DATA, OUTPUT, Quiet, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.interrupt import PLAIN

if TYPE_CHECKING:
    from polyrelu.workflows import Predictions

EPILOG = (
    "Example: polyrelu predict head.safetensors new.csv --radius -o predictions.csv\n\n"
    "Exit status: 0 done, 2 bad input, 130 interrupted (certified rows are kept in FILE.partial)."
)


def predict(
    head: Annotated[str, typer.Argument(help="A head written by polyrelu fit.", metavar="HEAD")],
    data: Annotated[str, typer.Argument(help="Rows, as for polyrelu fit; labels need not be there.", metavar="DATA")],
    *,
    label: Annotated[
        str | None,
        option(DATA, "Column or array with the true classes; the head's own or guessed otherwise.", metavar="NAME"),
    ] = None,
    radius: Annotated[
        bool,
        option(OUTPUT, "Prove for each prediction how far (l2) the row can be moved without changing it.", "--radius"),
    ] = False,
    out: Annotated[
        Path | None,
        option(OUTPUT, "A .csv file; stdout by default.", "--out", "-o", metavar="FILE", show_default=False),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Predict the class of every row of DATA: its number (from 0), class, probability and, with --radius, a radius.

    A radius is certified: no change of the row that is shorter changes the prediction. The column fraction is the
    radius divided by the median distance of the training rows from their mean. Rows of .csv and .npy files are read
    some at a time, so that they need not fit in memory. After Ctrl-C the same command with --out goes on from the rows
    that are certified.
    """
    begun = out is not None and out.with_name(f"{out.name}.partial").exists()
    earlier = "interrupted; certified rows of an earlier run are kept, and the same command goes on from them"
    kept = earlier if begun else PLAIN
    with plain_errors("give DATA as .npy or .csv, which are read some rows at a time", kept):
        from polyrelu.workflows import run_prediction

        with TerminalProgress(quiet, kept) as progress:
            result = run_prediction(head, data, label, radius, out, progress)
        if not quiet:
            typer.echo("\n".join(f"polyrelu: {line}" for line in summary(result)), err=True)
        if out is not None:
            typer.echo(out)


def summary(result: Predictions) -> list[str]:
    """Rows, accuracy where labels are there, and how far decisions hold."""
    lines = [*result.said, f"{result.rows} rows"]
    if result.labelled == 0:
        lines.append("no accuracy: no label is a class of the head")
    elif result.labelled is not None:
        share = 100 * result.right / result.labelled
        of = "" if result.labelled == result.rows else f" of the {result.labelled} rows with a class of the head's"
        lines.append(f"accuracy{of}: {share:.1f} %")
    if len(result.radii):
        import numpy as np

        middle, typical = float(np.median(result.radii)), result.typical
        relative = "" if typical is None else f", {middle / typical:.3f} of the median distance from the mean"
        lines.append(f"half of the predictions hold beyond radius {middle:.4g}{relative}")
    return lines
