"""All commands in one application: every command is a file of this folder."""

from __future__ import annotations

from typing import Annotated

import typer

from polyrelu._version import __version__
from polyrelu.cli import (
    claims,
    data,
    diagnose,
    evaluate,
    explore,
    export,
    fit,
    flow,
    inspect,
    predict,
    reproduce,
    sweep,
)

app = typer.Typer(
    help="What did gradient training make a classifier learn, and how far can it be trusted?",
    epilog="Example: polyrelu reproduce --out out/reproduce",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=flow.EPILOG)(flow.flow)
app.command(epilog=reproduce.EPILOG)(reproduce.reproduce)
app.command(epilog=evaluate.EPILOG)(evaluate.evaluate)
app.command(epilog=inspect.EPILOG)(inspect.inspect)
app.command(epilog=fit.EPILOG)(fit.fit)
app.command(epilog=diagnose.EPILOG)(diagnose.diagnose)
app.command(epilog=predict.EPILOG)(predict.predict)
app.command(epilog=export.EPILOG)(export.export)
app.command(epilog=explore.EPILOG)(explore.explore)
app.add_typer(sweep.app, name="sweep")
app.add_typer(claims.app, name="claims")
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"polyrelu {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Its version.")] = False,
) -> None:
    """What did gradient training make a classifier learn, and how far can it be trusted?"""
