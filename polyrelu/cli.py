"""The command line's entry point: Ctrl-C is listened to before anything else is loaded."""

from __future__ import annotations

from typing import Any

from polyrelu import interrupt
from polyrelu.threads import prepare


def main() -> None:
    """Entry point of ``polyrelu``."""
    interrupt.listen()
    prepare()
    from polyrelu.commands.application import app

    app(prog_name="polyrelu")


def __getattr__(name: str) -> Any:
    if name == "app":
        from polyrelu.commands.application import app

        return app
    raise AttributeError(f"module 'polyrelu.cli' has no attribute {name!r}")


if __name__ == "__main__":
    main()
