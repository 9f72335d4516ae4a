"""What a ledger file shows: the statements that were run on it, its rows, its bytes."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from dphmm.storage.ledger import SqliteLedger, open_ledger

_ANSWER = re.compile(r"(INSERT INTO \"?release\"? VALUES ?\((?:\d+, ?){3})'[-0-9,]*'")


@contextlib.contextmanager
def traced(path: Path) -> Iterator[tuple[SqliteLedger, list[str]]]:
    """An open ledger, and every statement that it runs from now on, with all values written out.

    It does not wait for the disk: what is written is the subject here, not whether it would survive a power cut.
    """
    statements: list[str] = []
    with open_ledger(path) as ledger:
        for connection in (ledger._writer(), ledger._reader()):
            connection.execute("PRAGMA synchronous = OFF")
            connection.set_trace_callback(statements.append)
        yield ledger, statements


def rows_of(path: Path) -> list[str]:
    """All tables and rows, as the SQL that would make them."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def without_answers(statements: list[str]) -> list[str]:
    """Statements or rows with every released answer left out."""
    return [_ANSWER.sub(r"\1z", statement) for statement in statements]
