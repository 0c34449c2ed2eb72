"""`polyrelu fit`: a head for a table of embeddings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyrelu.cli.options import DATA, NET, OUTPUT, Quiet, Seed, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.errors import InputError

if TYPE_CHECKING:
    from polyrelu.workflows import FitSettings

EPILOG = (
    "Example: polyrelu fit embeddings.npz -o head.safetensors\n\n"
    "and: polyrelu fit flowers.csv --label species --p auto -o flowers.safetensors\n\n"
    "Exit status: 0 done, 2 bad input, 130 interrupted (the head of the whole passes made is kept)."
)


def fit(
    data: Annotated[
        str,
        typer.Argument(
            help="A table (.npz, .safetensors with X and y; .npy with its labels in NAME_y.npy; .csv, .parquet), a "
            "part of one (FILE:train) or a name (digits:parity).",
            metavar="DATA",
        ),
    ],
    *,
    label: Annotated[
        str | None, option(DATA, "Column or array with the classes; guessed and said otherwise.", metavar="NAME")
    ] = None,
    fine: Annotated[
        str | None,
        option(DATA, "Column or array with sub-classes to train on, or discover to look for them.", metavar="NAME"),
    ] = None,
    test: Annotated[
        str | None, option(DATA, "Rows to measure on; a held-out fifth of DATA by default.", metavar="DATA2")
    ] = None,
    p: Annotated[str, option(NET, "Power of the ReLU, a number >= 1, or auto: chosen by certified accuracy.")] = "3",
    width: Annotated[int | None, option(NET, "Number of neurons.", min=1)] = None,
    epochs: Annotated[int | None, option(NET, "Passes over the rows.", min=1)] = None,
    out: Annotated[
        Path, option(OUTPUT, "The head, a .safetensors file.", "--out", "-o", metavar="FILE", show_default=False)
    ],
    seed: Seed = 0,
    as_json: Annotated[bool, option(OUTPUT, "Print the numbers as JSON.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Fit a polynomial-ReLU head to DATA, measure it on rows it has not seen, and write it to a file.

    The fifth that is measured is that of FILE:test and is not trained on. Radii are fractions of the median distance of
    the training rows from their mean; at each, the true accuracy lies between certified (proven) and attacked (found).
    Ctrl-C keeps the head of the passes made so far, marked as stopped early; over a finished head it is never written.
    """
    with plain_errors("lower --width"):
        power = _power(p)
        from polyrelu.workflows import FitSettings, run_fit

        settings = FitSettings(data, out, label, power, fine, test, width, epochs, seed)
        with TerminalProgress(quiet) as progress:
            found = run_fit(settings, progress)
        lines = [json.dumps(found, indent=2, allow_nan=False)] if as_json else summary(settings, found)
        typer.echo("\n".join(lines))
        if not quiet:
            commands = [f"  {command}" for command in settings.next_commands()]
            typer.echo("\n".join([f"polyrelu: written to {out}; next:", *commands]), err=True)


def summary(settings: FitSettings, found: dict[str, Any]) -> list[str]:
    """A few lines that hide nothing: what was guessed, what was measured, on how many rows."""
    classes = [str(one) for one in found["classes"]]
    names = ", ".join(classes[:6]) + (", ..." if len(classes) > 6 else "")
    sub = f", read out from {found['sub_classes']} sub-classes" if found["sub_classes"] else ""
    where = f"in {settings.test}" if settings.test else "held out"
    at = found["chosen_at_radius"]
    chosen = "" if at is None else f" (chosen by cross-validated certified accuracy at radius {at:.4g})"
    lines = [
        f"{settings.data}: {found['rows']} rows to train on, {found['held_out']} {where}; {found['columns']} "
        f"columns; {len(classes)} classes: {names}{sub}",
        *found["said"],
        f"p = {found['p']:g}{chosen}, {found['width']} neurons, {found['passes']} passes",
        f"accuracy on the {found['held_out']} rows {where}: {100 * found['accuracy']:.1f} %",
        f"robust accuracy (l2) on {found['points']} of them; median distance from the mean "
        f"{found['median_centred_norm']:.4g}:",
        "  radius            certified   attacked",
    ]
    for row in found["radii"]:
        radius = f".{row['fraction'] * 10:.0f} x = {row['radius']:.4g}"
        lines.append(f"  {radius:<16}  {100 * row['certified']:7.1f} %  {100 * row['attacked']:7.1f} %")
    return lines


def _power(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"p={text}: expected a number >= 1, or auto.") from None
