"""Is the file whole, and do its accounts say what its releases say?

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

from dphmm.accounting.budget import EMPTY, Account, quoted, recount
from dphmm.accounting.promise import Group
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.ledger.rows import (
    account_from,
    caps_from,
    entry_from,
    fact_from,
    groups_from,
    number_of,
    published_from,
)
from dphmm.storage.ledger.schema import GROUPS, READING


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page. Raises InvalidInput with the first fault that SQLite finds."""
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if found != "ok":
        first = " ".join(found.split())[:80]
        raise InvalidInput("ledger", str(path), f"an undamaged ledger ({first}): restore its latest copy")


_PAST_HORIZON = "SELECT 1 FROM stored_entry WHERE subject = ? AND epsilon IS NOT NULL AND (query != ? OR t > ?) LIMIT 1"
_SPENT = "SELECT t, epsilon FROM stored_entry WHERE subject = ? AND epsilon IS NOT NULL"
#: Sessions, rows and changes raise the version of their account by one each.
_VERSIONS = """SELECT subject FROM account WHERE version IS NOT
    (SELECT count(*) FROM session WHERE account = account.id)
    + (SELECT count(*) FROM session JOIN release ON release.session = session.id WHERE account = account.id)
    + (SELECT count(*) FROM change WHERE account = account.id)"""


def check_contents(connection: sqlite3.Connection, path: Path, reading: str) -> None:
    """Read every page and recount every account, in one snapshot. Raises DphmmError for a difference.

    ``reading`` begins every query of the file's format: `schema.reading`.
    """
    check_pages(connection, path)
    connection.execute("BEGIN")
    try:
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
        if dangling is not None:
            raise DphmmError(f"ledger {path.name}: a row of {dangling[0]} has lost what it refers to")
        counted, stored = _counted(connection, reading), _stored(connection, reading)
        broken = _broken_promise(connection, reading)
        _check_publications(connection, path, reading)
        groups = _groups(connection)
        other = connection.execute(_VERSIONS).fetchone() if reading == READING else None
    finally:
        connection.execute("ROLLBACK")
    for subject in sorted({*counted, *stored}, key=str):
        if not isinstance(subject, str):
            raise DphmmError(f"ledger {path.name}: a subject whose name is no text: restore its latest copy")
        if counted.get(subject, EMPTY) != stored.get(subject, EMPTY):
            raise DphmmError(f"ledger {path.name}: the account of {quoted(subject)} is not that of its releases")
    if broken is not None:
        raise DphmmError(f"ledger {path.name}: the releases of {quoted(broken)} break the promise of its account")
    for group in groups:
        if sum((stored.get(member, EMPTY).epsilon for member in group.members), Fraction(0)) > group.cap:
            raise DphmmError(f"ledger {path.name}: the releases of group {quoted(group.name)} pass its cap")
    if other is not None:
        raise DphmmError(f"ledger {path.name}: the version of {quoted(other[0])} is not the number of its facts")


def _counted(connection: sqlite3.Connection, reading: str) -> dict[str, Account]:
    accounts: dict[str, Account] = defaultdict(lambda: EMPTY)
    for subject, query, *row in connection.execute(f"{reading} SELECT * FROM stored_entry"):
        accounts[subject] = recount([entry_from(subject, query, tuple(row))], accounts[subject])
    return dict(accounts)


def _broken_promise(connection: sqlite3.Connection, reading: str) -> str | None:
    """A subject whose releases, of all its queries, break its promise."""
    for subject, *kept in connection.execute(f"{reading} SELECT * FROM stored_caps").fetchall():
        spent = connection.execute(f"{reading} {_SPENT}", (subject,))
        caps = caps_from(*kept)
        if caps.promise is not None and not caps.promise.holds([(t, number_of(epsilon)) for t, epsilon in spent]):
            return str(subject)
        if caps.horizon is not None:
            within = (subject, caps.horizon.query, caps.horizon.steps)
            if connection.execute(f"{reading} {_PAST_HORIZON}", within).fetchone() is not None:
                return str(subject)
    return None


def _check_publications(connection: sqlite3.Connection, path: Path, reading: str) -> None:
    """Every publication can be read with its result, they are numbered from 1, and the file says that it has some."""
    features, *_ = connection.execute("SELECT value FROM meta WHERE key = 'features'").fetchone() or ("",)
    numbers = []
    for row in connection.execute(f"{reading} SELECT * FROM stored_publication ORDER BY version"):
        numbers.append(published_from(row).version)
    if numbers != list(range(1, len(numbers) + 1)):
        raise DphmmError(f"ledger {path.name}: a publication is missing: restore its latest copy")
    facts = connection.execute("SELECT value FROM meta WHERE key IN ('delta', 'cap_epsilon')").fetchall()
    for (value,) in facts:
        fact_from(value)
    if (numbers or facts) and "publications" not in str(features).split():
        raise DphmmError(f"ledger {path.name}: it has publications and does not say so: restore its latest copy")


def _groups(connection: sqlite3.Connection) -> list[Group]:
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'group_account'").fetchone()
    return groups_from(connection.execute(GROUPS)) if there else []


def _stored(connection: sqlite3.Connection, reading: str) -> dict[str, Account]:
    rows = connection.execute(f"{reading} SELECT * FROM stored_account")
    return {row[0]: account_from(row[1:]) for row in rows}
