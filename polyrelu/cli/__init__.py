"""The command line, one file for each command: parse, call, show. Heavy imports wait inside, so that --help is fast."""

from polyrelu.cli.main import main

__all__ = ["main"]
