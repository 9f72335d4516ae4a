"""The tables of a ledger file, and the checks that a file is one.

session   the public parameters of one (subject, query)
plan      each plan once: its plan set as compressed packed bits
release   one step each, UNIQUE(subject, query, t) through its session; z as text, because integers may pass 64 bits
account   one subject's totals: epsilon an exact fraction, cost in integers of 1e-9, both text

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dphmm.errors import InvalidInput

FORMAT = 1

_TABLES = {
    "meta": """(
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID""",
    "session": """(
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    query TEXT NOT NULL,
    options TEXT NOT NULL,
    UNIQUE (subject, query)
)""",
    "plan": """(
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    n_states INTEGER NOT NULL CHECK (n_states >= 1),
    states BLOB NOT NULL,
    description TEXT NOT NULL
)""",
    "release": """(
    session INTEGER NOT NULL REFERENCES session (id),
    t INTEGER NOT NULL CHECK (t >= 1),
    through INTEGER NOT NULL CHECK (through = t OR through > t AND kind = 'skip'),
    kind TEXT NOT NULL CHECK (kind IN ('release', 'skip')),
    z TEXT,
    epsilon TEXT,
    cost TEXT,
    plan INTEGER REFERENCES plan (id),
    secure INTEGER NOT NULL CHECK (secure IN (0, 1)),
    constant INTEGER NOT NULL CHECK (constant IN (0, 1)),
    PRIMARY KEY (session, t),
    CHECK ((kind = 'release') = (z IS NOT NULL)),
    CHECK ((z IS NULL) = (epsilon IS NULL) AND (z IS NULL) = (cost IS NULL) AND (z IS NULL) = (plan IS NULL))
) WITHOUT ROWID""",
    "account": """(
    subject TEXT NOT NULL PRIMARY KEY,
    epsilon TEXT NOT NULL,
    cost_nanos TEXT NOT NULL,
    unbounded INTEGER NOT NULL CHECK (unbounded IN (0, 1))
) WITHOUT ROWID""",
}
_STATEMENTS = {name: f"CREATE TABLE {name} {columns}" for name, columns in _TABLES.items()}


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; any other must have them."""
    if not _objects(connection):
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made them while this one waited.
        if not _objects(connection):
            _create(connection)
        connection.execute("COMMIT")
    require_tables(connection, path)


def require_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a ledger of this format, with the tables as dphmm makes them."""
    _check_format(connection, path)
    # A trigger or an altered table could make the account say less than was released.
    if _objects(connection) != _STATEMENTS:
        raise InvalidInput("ledger", str(path), "the tables as dphmm made them; others were added or changed")


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    # In a damaged file a name may be no text.
    return {name: sql for name, sql in rows if not str(name).startswith("sqlite_")}


def _create(connection: sqlite3.Connection) -> None:
    for statement in _STATEMENTS.values():
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('format', ?), ('created_by', ?)", (str(FORMAT), _this_version()))


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    is_ledger = _objects(connection).get("meta") == _STATEMENTS["meta"]
    row = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() if is_ledger else None
    if row is None or not str(row[0])[:20].isdecimal():
        raise InvalidInput("ledger", str(path), "a dphmm ledger; this is a database of something else")
    written = str(row[0])[:20]
    if int(written) > FORMAT:
        newer = f"a ledger of format {FORMAT} or older; this one has format {written}: upgrade dphmm"
        raise InvalidInput("ledger", str(path), newer)


def _this_version() -> str:
    try:
        return f"dphmm {version('dphmm')}"
    except PackageNotFoundError:
        return "dphmm, not installed"
