"""`polyrelu claims`: which published statements hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyrelu.cli.options import OUTPUT, Quiet, Seed, check_cluster, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyrelu.claims import Judgement
    from polyrelu.workflows import Reproduction, ReproductionSettings

EXIT = (
    "Exit status: 0 every claim came out as expected, 1 one that we stand for did not, 2 bad input, 130 interrupted "
    "(what is done is kept)."
)
KEPT = "interrupted; finished measurements are kept, and the same command goes on from there"
SIZE, MACHINES = "Size", "Machines"
Profile = Annotated[
    str, option(SIZE, "quick: seconds a claim, smaller than published; paper: the published sizes.", metavar="NAME")
]
Seeds = Annotated[int | None, option(SIZE, "Repeat with so many seeds; by default as many as the claim asks for.")]
Engine = Annotated[str, option(MACHINES, "local: processes on this machine; ray: a Ray cluster.", metavar="NAME")]
Workers = Annotated[int | None, option(MACHINES, "Processes; one for each core by default.")]
Address = Annotated[str | None, option(MACHINES, "Of a running Ray cluster; none starts a local one.")]
RetryFailed = Annotated[bool, option(MACHINES, "Try again what failed before.", "--retry-failed")]
AsJson = Annotated[bool, option(OUTPUT, "Print the record instead of a table.", "--json")]
SYMBOLS = {"reproduced": "green", "source artefact": "yellow", "differs": "red", "measured": "cyan", "not run": "dim"}

app = typer.Typer(help="Which published statements hold? List them, or measure some again.", no_args_is_help=True)


@app.command("list", epilog="Example: polyrelu claims list B E4")
def list_claims(
    names: Annotated[list[str] | None, typer.Argument(help="Ids (A3) or groups (A); all by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every claim: its id, what it says, and where that is published."""
    with plain_errors():
        from polyrelu.claims import select

        claims = select(names or [])
        if as_json:
            rows = [
                {"id": one.id, "claim": one.sentence, "source": f"{one.paper}, {one.where}", "published": one.published}
                for one in claims
            ]
            typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
            return
        table = grid("id", "claim", "source", "published")
        for claim in claims:
            table.add_row(claim.id, claim.sentence, f"{claim.paper}, {claim.where}", claim.published)
        console().print(table)


@app.command("run", epilog="Example: polyrelu claims run A3 B7 --seeds 3 --out out/claims\n\n" + EXIT)
def run_claims(
    names: Annotated[list[str], typer.Argument(help="Ids (A3), groups (A) or figures (fig2).")],
    *,
    profile: Profile = "quick",
    seeds: Seeds = None,
    seed: Seed = 0,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    retry_failed: RetryFailed = False,
    out: Annotated[Path, option(OUTPUT, "Folder for the results; made if need be.", metavar="DIR")] = Path(
        "out/claims"
    ),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure some claims and say which hold; what is in DIR already is not measured again."""
    with plain_errors("use --profile quick", KEPT):
        check_cluster(engine, address)
        from polyrelu.workflows import ReproductionSettings

        settings = ReproductionSettings(tuple(names), profile, seeds, seed, engine, workers, address, retry_failed)
        result = measured(settings, out, quiet, page=False)
        if as_json:
            typer.echo(json.dumps(result.record(), indent=1, ensure_ascii=False))
        else:
            console().print(verdicts(result.judgements))
    raise typer.Exit(finish(result))


def measured(settings: ReproductionSettings, out: Path, quiet: bool, page: bool) -> Reproduction:
    """Measure with progress; Ctrl-C says how to go on."""
    from polyrelu.workflows import measure_claims

    with TerminalProgress(quiet, noun="measurements", resume=settings.command(str(out), page)) as progress:
        return measure_claims(settings, out, progress)


def finish(result: Reproduction) -> int:
    """Say what did not come out, and the exit code."""
    for judgement in result.surprises:
        why = judgement.reason if not judgement.numbers else failing(judgement)
        typer.echo(f"polyrelu: {judgement.claim.id} {judgement.verdict.value}: {why}", err=True)
    if any(outcome.error for judgement in result.surprises for outcome in judgement.outcomes):
        typer.echo("polyrelu: failed measurements are kept; try them again with --retry-failed.", err=True)
    return 1 if result.surprises else 0


def failing(judgement: Judgement) -> str:
    """The numbers that lie elsewhere."""
    from polyrelu.report import number_text, range_text

    return "; ".join(
        f"{number.name} is {range_text(number.values)}, expected {number_text(number.check.low)} to "
        f"{number_text(number.check.high)}"
        for number in judgement.numbers
        if number.check and not number.holds
    )


def verdicts(judgements: Sequence[Judgement]) -> Any:
    """A table: id, verdict, what is published, what was measured."""
    from rich.text import Text

    from polyrelu.report import range_text

    table = grid("id", "verdict", "claim", "published", "measured")
    for judgement in judgements:
        shown, word = judgement.shown, judgement.verdict.value
        value = f"{shown.name}: {range_text(shown.values)}" if shown else judgement.reason
        claim = judgement.claim
        table.add_row(claim.id, Text(word, style=SYMBOLS[word]), claim.sentence, claim.published, value)
    return table


def grid(*columns: str) -> Any:
    """A table for the terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        narrow = column in ("id", "verdict")
        table.add_column(column, no_wrap=narrow, ratio=None if narrow else 2)
    return table


def console() -> Any:
    """Standard output, nothing highlighted."""
    from rich.console import Console

    return Console(highlight=False)
