"""The command line's entry point: Ctrl-C is listened to before anything else is loaded."""

from __future__ import annotations

import signal
from typing import Any


def main() -> None:
    """Entry point of ``polyrelu``.

    Until Ctrl-C is listened to it ends the process, and after the last word it is too late: no traceback either way.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from polyrelu import interrupt
    from polyrelu.threads import prepare

    interrupt.listen()
    prepare()
    from polyrelu.cli.application import app

    try:
        app(prog_name="polyrelu")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def __getattr__(name: str) -> Any:
    if name == "app":
        from polyrelu.cli.application import app

        return app
    raise AttributeError(f"module 'polyrelu.cli.main' has no attribute {name!r}")


if __name__ == "__main__":
    main()
