"""Is the file whole, and do its accounts say what its releases say?

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path

from dphmm.accounting.budget import EMPTY, Account, quoted, recount
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.ledger.rows import account_from, entry_from


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page. Raises InvalidInput with the first fault that SQLite finds."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if found != "ok":
        first = " ".join(found.split())[:80]
        raise InvalidInput("ledger", str(path), f"an undamaged ledger ({first}): restore its latest copy")


def check_contents(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page and recount every account, in one snapshot. Raises DphmmError for a difference."""
    check_pages(connection, path)
    connection.execute("BEGIN")
    try:
        counted, stored = _counted(connection), _stored(connection)
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
    finally:
        connection.execute("ROLLBACK")
    if dangling is not None:
        raise DphmmError(f"ledger {path.name}: a row of {dangling[0]} has lost what it refers to")
    for subject in sorted({*counted, *stored}, key=str):
        if not isinstance(subject, str):
            raise DphmmError(f"ledger {path.name}: a subject whose name is no text: restore its latest copy")
        if counted.get(subject, EMPTY) != stored.get(subject, EMPTY):
            raise DphmmError(f"ledger {path.name}: the account of {quoted(subject)} is not that of its releases")


def _counted(connection: sqlite3.Connection) -> dict[str, Account]:
    accounts: dict[str, Account] = defaultdict(lambda: EMPTY)
    rows = connection.execute(
        "SELECT subject, query, t, through, kind, z, epsilon, cost, secure, constant "
        "FROM release JOIN session ON session.id = release.session"
    )
    for subject, query, *row in rows:
        accounts[subject] = recount([entry_from(subject, query, tuple(row), None)], accounts[subject])
    return dict(accounts)


def _stored(connection: sqlite3.Connection) -> dict[str, Account]:
    rows = connection.execute("SELECT subject, epsilon, cost_nanos, unbounded FROM account")
    return {row[0]: account_from(row[1:]) for row in rows}
