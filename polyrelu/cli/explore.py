"""`polyrelu explore`: see the neurons choose, on a local page."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from polyrelu.cli.options import OUTPUT, fail, option, plain_errors

EPILOG = (
    "Example: polyrelu explore\n\nand, for a run of your own: polyrelu explore runs/p3\n\n"
    "Exit status: 2 bad input, 130 ended by Ctrl-C."
)
KEPT = "the explorer has ended; files that were saved from it are kept, and the same command begins anew"
MISSING = 'the explorer needs a small web server; install it with: pip install "polyrelu[web]"'


def explore(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder of polyrelu flow to look at.", metavar="[DIR]", show_default=False)
    ] = None,
    *,
    port: Annotated[int, option(OUTPUT, "Port on this machine; 0 takes any free one.", min=0, max=65535)] = 8765,
    no_browser: Annotated[bool, option(OUTPUT, "Only print the address.", "--no-browser")] = False,
) -> None:
    """Open a page on which neurons are seen to choose between class averages and sub-class centres.

    Everything is computed here by the same code as polyrelu flow and polyrelu evaluate; the page answers to this
    machine only and asks nothing of any other. Ctrl-C ends it.
    """
    with plain_errors(kept=KEPT):
        try:
            import uvicorn

            from polyrelu.explorer import application, read_run, warm_up
        except ModuleNotFoundError as error:
            if error.name in ("uvicorn", "starlette"):
                fail(MISSING)
            raise
        app = application(None if folder is None else read_run(folder))
        listener = listen(port)
        warm_up()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        typer.echo(address)
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

        class Server(uvicorn.Server):
            """Leaves Ctrl-C to us."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; a port that is taken is said so."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # a browser that comes at once waits
    except OSError as error:
        listener.close()
        fail(f"port={port}: {error.strerror}; choose another with --port, or --port 0 for any free one.")
    return listener
