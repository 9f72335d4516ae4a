"""The command line: parse, call the library, answer. Each command is one file, loaded when it is used."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of ``dphmm``: runs a command and exits with its code."""
    try:
        from dphmm.cli.app import app

        app.main(prog_name="dphmm")
    except KeyboardInterrupt:
        # Ctrl-C before the command line is there to answer it, or after it has.
        sys.stderr.write("interrupted\n")
        sys.exit(130)
