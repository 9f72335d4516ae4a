"""The command line: parse, call the library, answer. Each command is one file, loaded when it is used."""

from __future__ import annotations


def main() -> None:
    """The entry point of ``dphmm``: runs a command and exits with its code."""
    from dphmm.cli.app import app

    app.main(prog_name="dphmm")
