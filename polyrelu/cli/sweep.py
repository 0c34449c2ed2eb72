"""`polyrelu sweep`: many settings of one function, on every core here or on a Ray cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from polyrelu.cli.options import OUTPUT, Out, Quiet, check_cluster, option, plain_errors
from polyrelu.cli.terminal import TerminalProgress, describe
from polyrelu.workflows import to_argv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyrelu.sweep import Record

MACHINES = "Machines"
EXIT = (
    "Exit status: 0 all settings done, 1 some failed, 2 bad input, 130 interrupted (what is done is kept, the same "
    "command goes on)."
)
KEPT = "interrupted; finished settings are kept, and the same command goes on from there"
SHOWN = 10  # failures that are told; all of them are in the folder


class FileFirst(TyperGroup):
    """``polyrelu sweep FILE ...`` is ``polyrelu sweep run FILE ...``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in that a person may leave out."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=FileFirst,
    help="Call one function for many settings: polyrelu sweep FILE --out DIR. Nothing is lost, nothing is done twice.",
    epilog="Example: polyrelu sweep alphas.toml --workers 2 --out out/alphas",
    no_args_is_help=True,
)
Folder = Annotated[Path, typer.Argument(help="Output folder of a sweep.", metavar="DIR")]


@app.command(
    epilog='A FILE in TOML: function = "polyrelu.workflows.experiments:mixture", grid.alpha = [0.1, 0.2], '
    "fixed.dim = 200, "
    "a line each.\n\nExample: polyrelu sweep alphas.toml --engine ray --workers 2 --out out/alphas\n\n" + EXIT
)
def run(
    file: Annotated[Path, typer.Argument(help="TOML or JSON: function, grid or settings, fixed.", metavar="FILE")],
    *,
    engine: Annotated[str, option(MACHINES, "local: processes here; ray: a Ray cluster.", metavar="NAME")] = "local",
    workers: Annotated[int | None, option(MACHINES, "Settings at once; one for each core by default.")] = None,
    address: Annotated[
        str | None, option(MACHINES, "Of a running Ray cluster; none starts a local one.", metavar="HOST:PORT")
    ] = None,
    retry_failed: Annotated[bool, option(MACHINES, "Try again what failed before.", "--retry-failed")] = False,
    time_limit: Annotated[
        float | None,
        option(MACHINES, "Seconds a setting may take; then it is ended and counts as failed.", metavar="SECONDS"),
    ] = None,
    out: Out,
    as_json: Annotated[bool, option(OUTPUT, "Print all records instead of a summary.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Call the function for every setting that is not done yet; one file for each result in DIR/results.

    The function is marked with @polyrelu.sweep.sweepable(), of an installed package or of a module beside FILE. Failed
    settings are kept with their error in DIR/failures, and tried again with --retry-failed. One that a time limit has
    ended (--time-limit, or time_limit = SECONDS in FILE) is tried again when it has more time.
    """
    again = to_argv("sweep", str(file), engine=engine, address=address, workers=workers, time_limit=time_limit, out=out)
    with plain_errors("lower --workers", KEPT):
        check_cluster(engine, address)
        from polyrelu.sweep import Sweep, encode, run_sweep

        sys.path.append(str(file.resolve().parent))
        sweep = Sweep.read(file, call=True)
        with TerminalProgress(quiet, noun="settings", resume=again) as progress:
            records = run_sweep(
                sweep, out, engine=engine, workers=workers, address=address, retry_failed=retry_failed,
                time_limit=time_limit, progress=progress,
            )  # fmt: skip
        unique = list({record.key: record for record in records}.values())
        failures = [record for record in unique if record.failed]
        if as_json:
            shown = [
                {
                    "settings": encode(record.settings),
                    "result": encode(record.result),
                    "error": record.error,
                    "file": record.file,
                    "seconds": record.seconds,
                }
                for record in records
            ]
            typer.echo(json.dumps(shown, indent=1, allow_nan=False))
        else:
            typer.echo(f"{len(unique) - len(failures)} of {len(unique)} settings done, {len(failures)} failed")
        _show_failures(failures, out)
        if not quiet:
            typer.echo(f"polyrelu: written to {out}; a table: polyrelu sweep export {out} --to results.csv", err=True)
    raise typer.Exit(1 if failures else 0)


@app.command(epilog="Example: polyrelu sweep status out/alphas")
def status(folder: Folder, as_json: Annotated[bool, option(OUTPUT, "Print it as JSON.", "--json")] = False) -> None:
    """How far a sweep is; it may be running."""
    with plain_errors():
        from polyrelu.sweep import status as look

        found = look(folder)
        if as_json:
            typer.echo(json.dumps(found.as_json(), indent=1, allow_nan=False))
            return
        rows = {
            "function": f"{found.function}, version {found.version}",
            "settings": f"{found.total}: {found.done} done, {found.failed} failed, {found.missing} missing",
            "others in the folder": found.others,
            "time spent": f"{found.seconds:.1f} s",
            "at work now": "yes" if found.at_work else "no",
        }
        for label, text in rows.items():
            typer.echo(f"{label:<22}{text}")
        _show_failures(found.failures, folder)


@app.command(epilog="Example: polyrelu sweep export out/alphas --to results.csv")
def export(
    folder: Folder,
    to: Annotated[Path, option(OUTPUT, "The table: .csv or .jsonl.", metavar="FILE", show_default=False)],
) -> None:
    """All results as one table: a row for each setting, its settings and the numbers of its result as columns."""
    with plain_errors():
        from polyrelu.sweep import export as write

        typer.echo(f"{write(folder, to)} rows written to {to}")


def _show_failures(failures: Sequence[Record], folder: Path) -> None:
    """What failed, on stderr."""
    for record in failures[:SHOWN]:
        typer.echo(f"polyrelu: failed: {describe(record.settings)}: {record.error} ({record.file})", err=True)
    if failures:
        more = f"{len(failures) - SHOWN} more failed; " if len(failures) > SHOWN else ""
        typer.echo(f"polyrelu: {more}all of it is in {folder / 'failures'}; try again with --retry-failed", err=True)
