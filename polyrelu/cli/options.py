"""What every command shares: how options are grouped, and how a failure is said."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from polyrelu import interrupt
from polyrelu.errors import InputError


def option(panel: str, help: str, *names: str, **more: Any) -> Any:
    """An option in its group of the help text; flags name themselves, so that they have no negative form."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def one_of(names: tuple[str, ...]) -> str:
    """``a, b or c``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


NET, DATA, FLOW, STOP, OUTPUT = "Network", "Data", "Flow", "Stop at the first of", "Output"
POINTS, EFFORT = "Points", "Effort for each point"
Out = Annotated[Path, option(OUTPUT, "Folder for the results; made if need be.", metavar="DIR", show_default=False)]
Seed = Annotated[int, option(OUTPUT, "Same seed, same numbers.")]
Quiet = Annotated[bool, option(OUTPUT, "Show no progress.", "--quiet")]


@contextlib.contextmanager
def plain_errors(smaller: str = "lower --samples, --dim or --width", kept: str = interrupt.PLAIN) -> Iterator[None]:
    """Expected failures become one line and an exit code; ``smaller`` is what saves memory.

    Ctrl-C ends the command; ``kept`` says what that leaves, where no block of work within says more.
    """
    try:
        with interrupt.CtrlC(lambda: kept):
            yield
    except InputError as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"{error.filename or 'the results'} cannot be read or written ({error.strerror or error}).")
    except KeyboardInterrupt as error:
        typer.echo(f"polyrelu: {error}", err=True)
        raise typer.Exit(interrupt.status()) from None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            fail(f"not enough memory for these sizes; {smaller}.")
        from polyrelu.robust import BoundsInconsistentError

        if isinstance(error, BoundsInconsistentError):
            fail(str(error), 3)
        raise


def fail(message: str, code: int = 2) -> NoReturn:
    """One line on stderr, and the exit code."""
    typer.echo(f"polyrelu: error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def check_cluster(engine: str, address: str | None) -> None:
    """Say within seconds that there is no Ray cluster at an address, before anything else is loaded."""
    if engine == "ray" and address is not None:
        from polyrelu.sweep import probe_address

        probe_address(address)
