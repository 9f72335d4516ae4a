"""Continue a ledger file of format 1: its rows move into tables of today's format, in one transaction of the file.

The file stays where it is, because two files would be two ledgers of the same people. Until the commit every reader
sees the old tables; whatever stops it before then leaves them as they were. What the new tables say is compared with
what the old ones say, by the queries that read them, before the commit.

Decision: docs/adr/0012. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dphmm.errors import DphmmError
from dphmm.storage.ledger import schema
from dphmm.storage.ledger.connection import connect, damaged, explained, held, ledger_path
from dphmm.storage.ledger.rows import account_from, digest_of, entry_from, hash_stored, options_from, plan_from

_MOVED = ("session", "plan", "release", "account")
_COPY = (
    # Every session and every row raised the version of its subject.
    """INSERT INTO account (subject, version, epsilon, cost_nanos, unbounded)
    SELECT subject, count(*) + coalesce(sum(stored), 0), coalesce(max(epsilon), '0'), coalesce(max(cost_nanos), '0'),
        coalesce(max(unbounded), 0)
    FROM (SELECT id, subject, (SELECT count(*) FROM release_format1 WHERE session = session_format1.id) AS stored
        FROM session_format1) LEFT JOIN account_format1 USING (subject) GROUP BY subject ORDER BY min(id)""",
    "INSERT OR IGNORE INTO document (digest, text) SELECT digest_of(options), options FROM session_format1 ORDER BY id",
    "INSERT OR IGNORE INTO document (digest, text) SELECT digest_of(description), description FROM plan_format1 "
    "ORDER BY id",
    """INSERT INTO plan SELECT old.id, hash_stored(hash), n_states, states, document.id FROM plan_format1 AS old
    JOIN document ON document.digest = digest_of(old.description)""",
    """INSERT INTO session SELECT old.id, account.id, query, document.id FROM session_format1 AS old
    JOIN account USING (subject) JOIN document ON document.digest = digest_of(old.options)""",
    """INSERT INTO terms (kind, epsilon, cost, secure, constant)
    SELECT DISTINCT kind, epsilon, cost, secure, constant FROM release_format1""",
    """INSERT INTO release SELECT session, t, through - t + 1, z, plan, terms.id FROM release_format1 AS old
    JOIN terms ON terms.kind = old.kind AND terms.epsilon IS old.epsilon AND terms.cost IS old.cost
    AND terms.secure = old.secure AND terms.constant = old.constant""",
)
_DROP = ("release", "account", "session", "plan")


def migrate_ledger(path: str | Path, *, timeout: float = 30.0) -> bool:
    """Turn a ledger file of format 1 into one of today's format, where it lies; False if it is one already.

    ``timeout``: seconds to wait for another process. Raises InvalidInput for what is no ledger, LedgerBusy while
    another command or process has it, DphmmError where accounts are not those of the releases; it is then as it was.
    """
    ledger_path(path, read_only=True)
    file = ledger_path(path)
    try:
        with held(file), closing(connect(file, timeout)) as connection:
            return _migrated(connection, file)
    except sqlite3.Error as error:
        raise explained(error, file) from error
    except UnicodeDecodeError:
        # What the database says of a schema that is not text cannot be read either.
        raise damaged(file) from None


def _migrated(connection: sqlite3.Connection, path: Path) -> bool:
    if schema.found_format(connection, path) == schema.FORMAT:
        return False
    schema.check_contents(connection, path, schema.reading_format1())
    # The pages of a large ledger may leave memory: nothing here was drawn and not shown.
    connection.execute("PRAGMA cache_spill = ON")
    for function in (digest_of, hash_stored):
        connection.create_function(function.__name__, 1, function, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        if schema.found_format(connection, path) == schema.FORMAT:
            return False
        _move(connection)
        _require_equal(connection, path)
        for name in _DROP:
            connection.execute(f"DROP TABLE {name}{schema.SUFFIX_FORMAT1}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    with suppress(sqlite3.Error):
        # It only gives back the room of the old tables.
        connection.execute("VACUUM")
    return True


def _move(connection: sqlite3.Connection) -> None:
    for name in _MOVED:
        connection.execute(f"ALTER TABLE {name} RENAME TO {name}{schema.SUFFIX_FORMAT1}")
    schema.create_tables(connection, "meta")
    for statement in _COPY:
        connection.execute(statement)
    facts = [("format", str(schema.FORMAT)), ("epoch", "0"), ("features", "")]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts)


def _require_equal(connection: sqlite3.Connection, path: Path) -> None:
    """Both say the same, record by record, or nothing is committed."""
    old, new = (
        _contents(connection, reading) for reading in (schema.reading_format1(schema.SUFFIX_FORMAT1), schema.READING)
    )
    nothing = object()
    if any(one != other for one, other in zip_longest(old, new, fillvalue=nothing)):
        raise DphmmError(f"ledger {path.name}: its copy in the new format differs; the file was left as it was")


def _contents(connection: sqlite3.Connection, reading: str) -> Iterator[Any]:
    """Every header, entry, plan and account that was ever charged, in an order that no format decides."""
    for subject, query, options in connection.execute(f"{reading} SELECT * FROM stored_header ORDER BY 1, 2"):
        yield subject, query, options_from(options)
    for subject, query, *row in connection.execute(f"{reading} SELECT * FROM stored_entry ORDER BY 1, 2, 3"):
        yield entry_from(subject, query, tuple(row))
    for number, *row in connection.execute(f"{reading} SELECT * FROM stored_plan ORDER BY 1"):
        yield number, plan_from(tuple(row))
    for subject, *row in connection.execute(f"{reading} SELECT * FROM stored_account ORDER BY 1"):
        account = account_from(tuple(row))
        if account.epsilon or account.nanos or account.unbounded:
            yield subject, account
