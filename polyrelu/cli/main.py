"""The command line's entry point: Ctrl-C is listened to before anything else is loaded."""

from __future__ import annotations

import signal


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
