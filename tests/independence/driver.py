"""A program that runs ``dphmm`` commands with everything turned up that could tell, each with a fault of its own.

``python -m independence.driver COMMANDS.json``: logging at the lowest level to standard error, development mode,
faulthandler on. COMMANDS.json is a list of [fault, arguments]; they run in turn, whatever becomes of them. A fault
strikes where the answer of a private row has just been drawn, with the row in a local variable.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from independence.observing import around_draws
from independence.secrets import NAME, PLACES


def fail(fault: str) -> None:
    """Strike, with a private row at hand."""
    row = f"{NAME} {PLACES[0]}"
    if fault == "exception":
        raise RuntimeError("an error that nobody expected")
    if fault == "database":
        raise sqlite3.DatabaseError("a database that failed")
    if fault == "logged":
        _log_an_exception()
    if fault == "dump":
        faulthandler.dump_traceback()
    if fault in ("SIGKILL", "SIGINT", "SIGTERM", "SIGABRT"):
        os.kill(os.getpid(), getattr(signal, fault))
    if fault == "debug line":
        logging.getLogger("dphmm").debug("releasing %s", row)
    if fault == "a file left behind":
        import tempfile

        Path(tempfile.mkstemp()[1]).write_text(row)
    if fault == "locals":
        from rich.traceback import install

        install(show_locals=True)
        raise RuntimeError("an error that nobody expected")


def _log_an_exception() -> None:
    from rich.console import Console

    try:
        raise RuntimeError("an error that somebody logs")
    except RuntimeError:
        logging.getLogger("dphmm").exception("a release failed", stack_info=True)
        Console(stderr=True).print_exception()


def striking_after_drawing(fault: str) -> contextlib.AbstractContextManager[None]:
    """The second draw ends in the fault."""
    draws = count(1)

    def after(plan: Any, states: Any, drawn: Any) -> Any:
        place = PLACES[0]
        if place and next(draws) == 2:
            fail(fault)
        return drawn

    return around_draws(after)


@contextlib.contextmanager
def striking_at_statement(number: int, start: str) -> Iterator[None]:
    """The statement of this number that begins so is the ledger's last."""
    from dphmm.storage.ledger.transaction import SqliteTransaction

    truly, seen = SqliteTransaction.__init__, count(1)

    def watch(statement: str) -> None:
        if statement.startswith(start) and next(seen) == number:
            fail("SIGKILL")

    def begin(self: Any, connection: Any, *more: Any) -> None:
        truly(self, connection, *more)
        connection.set_trace_callback(watch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteTransaction, "__init__", begin)
        yield


@contextlib.contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file may grow beyond this: what a full disk looks like from inside."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def striking(fault: str) -> contextlib.AbstractContextManager[None]:
    """The fault, or nothing for "none"."""
    name, _, detail = fault.partition(":")
    if name.startswith("statement"):
        return striking_at_statement(int(name.split()[1]), detail)
    if name == "full":
        return small_files(int(detail))
    return contextlib.nullcontext() if name == "none" else striking_after_drawing(name)


def main(commands: str) -> None:
    """Run the commands; after each a line with its fault and how it ended."""
    from dphmm.cli.app import app

    logging.basicConfig(level=1, stream=sys.stderr)
    logging.getLogger("numba").setLevel(logging.WARNING)
    faulthandler.enable()
    for fault, arguments in json.loads(Path(commands).read_text()):
        code: object = "an exception"
        with striking(fault):
            try:
                app.main(arguments, prog_name="dphmm")
            except SystemExit as end:
                code = end.code
            except Exception:
                sys.excepthook(*sys.exc_info())
        print(f"{fault} ended with {code}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
