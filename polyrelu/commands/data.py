"""`polyrelu data`: the image sets, fetched once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyrelu.commands._shared import plain_errors

app = typer.Typer(help="Image sets that are fetched once and kept: list them, or fetch one.", no_args_is_help=True)


@app.command("list")
def list_sets() -> None:
    """Every set by name, and whether it is there."""
    with plain_errors():
        from polyrelu.data.fetch import SETS, cache_folder, cached
        from polyrelu.data.pictures import PICTURES

        for name, known in PICTURES.items():
            about = SETS[known.fetched].about if known.fetched else "handwritten digits, 1797 images of 8 x 8"
            there = "bundled" if not known.fetched else "fetched" if cached(known.fetched) else "not fetched yet"
            typer.echo(f"{name:<12}{there:<17}{about}; splits: {', '.join(known.splits)}")
        typer.echo(f"kept in {cache_folder()} (set POLYRELU_DATA to keep them elsewhere)", err=True)


@app.command("fetch", epilog="Example: polyrelu data fetch mnist")
def fetch_set(
    name: Annotated[str, typer.Argument(help="mnist or cifar10.", metavar="NAME")],
    file: Annotated[Path | None, typer.Option(help="An archive you have already, instead of the network.")] = None,
) -> None:
    """Fetch a set into the cache, check it, and say where it is; one that is there already is left alone."""
    with plain_errors():
        from polyrelu.data.fetch import SETS, cached, fetch

        there = cached(name)
        size = f" (about {SETS[name].megabytes} MB)" if name in SETS else ""
        path = there or fetch(
            name, file=file, say=lambda text: typer.echo(f"polyrelu: fetching {text}{size}", err=True)
        )
        typer.echo(path)
