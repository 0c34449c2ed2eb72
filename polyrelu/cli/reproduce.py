"""`polyrelu reproduce`: the papers run again, on one page."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from polyrelu.cli import claims
from polyrelu.cli.options import OUTPUT, Quiet, Seed, check_cluster, option, plain_errors

EPILOG = (
    "Example: polyrelu reproduce --out out/reproduce\n\n"
    "and: polyrelu reproduce --only fig2 --profile paper --out out/fig2\n\n" + claims.EXIT
)


def reproduce(
    *,
    only: Annotated[
        list[str] | None, option(claims.SIZE, "Only this claim (B7), group (B) or figure (fig2); may be repeated.")
    ] = None,
    profile: claims.Profile = "quick",
    seeds: claims.Seeds = None,
    seed: Seed = 0,
    engine: claims.Engine = "local",
    workers: claims.Workers = None,
    address: claims.Address = None,
    retry_failed: claims.RetryFailed = False,
    out: Annotated[Path, option(OUTPUT, "Folder for the page and its results.", metavar="DIR")] = Path("out/reproduce"),
    as_json: claims.AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure the papers' claims again, judge them, draw the figures again, and write one page: DIR/index.html.

    What is in DIR already is not measured again, so an interrupted run goes on where it stopped.
    """
    with plain_errors("use --profile quick", claims.KEPT):
        check_cluster(engine, address)
        from polyrelu.workflows import ReproductionSettings, write_page

        settings = ReproductionSettings(tuple(only or ()), profile, seeds, seed, engine, workers, address, retry_failed)
        result = claims.measured(settings, out, quiet, page=True)
        page = write_page(result)
        if as_json:
            typer.echo(json.dumps(result.record(), indent=1, ensure_ascii=False))
        else:
            counts = Counter(judgement.verdict.value for judgement in result.judgements)
            typer.echo(", ".join(f"{number} {verdict}" for verdict, number in counts.most_common()))
            typer.echo(page)
    raise typer.Exit(claims.finish(result))
