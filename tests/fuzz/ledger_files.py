"""Spoiling ledgers: rows, tables and pages of the database."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from pathlib import Path

from fuzz.mutations import bytes_anywhere

_ODD_SQL = (
    "NULL",
    "''",
    "-1",
    "0",
    "1",
    "9223372036854775807",
    "1e308",
    "'nan'",
    "'inf'",
    "'1/0'",
    "'1/3'",
    "x'ff00'",
    "'{}'",
    "'[1]'",
    "'null'",
    "'{\"epsilon\": 1}'",
    "zeroblob(100)",
    "'a' || char(10) || 'b'",
    "char(0)",
    "'" + "9" * 5000 + "'",
    "'release'",
    "'skip'",
)
_TABLES = {
    "meta": ("key", "value"),
    "document": ("id", "digest", "text"),
    "account": ("id", "subject", "version", "epsilon", "cost_nanos"),
    "session": ("id", "account", "query", "options"),
    "plan": ("id", "hash", "n_states", "states", "description"),
    "terms": ("id", "kind", "epsilon", "cost", "secure", "constant"),
    "release": ("session", "t", "steps", "z", "plan", "terms"),
    "snapshot": ("session", "t", "digest", "belief"),
}


def _statement(rng: random.Random) -> str:
    table = rng.choice(sorted(_TABLES))
    column = rng.choice(_TABLES[table])
    odd = rng.choice(_ODD_SQL)
    return rng.choice(
        (
            f"UPDATE {table} SET {column} = {odd}",
            f"UPDATE {table} SET {column} = {odd}",
            f"UPDATE {table} SET {column} = {odd}",
            f"UPDATE {table} SET {column} = CAST({column} AS BLOB)",
            f"DELETE FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE {table} ADD COLUMN extra",
            f"ALTER TABLE {table} RENAME TO other",
            f"CREATE INDEX i ON {table} ({column})",
            f"CREATE TRIGGER g AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
            f"CREATE VIEW v AS SELECT * FROM {table}",
            "PRAGMA user_version = 99",
            f"UPDATE sqlite_master SET sql = 'CREATE TABLE {table} (a)' WHERE name = '{table}'",
            f"UPDATE {table} SET {column} = {column} || {odd}",
            "UPDATE release SET t = t + 1000000",
            "VACUUM",
        )
    )


def ledger_file(data: bytes, rng: random.Random) -> bytes:
    """A ledger whose rows, tables or pages are spoiled."""
    if rng.randrange(4) == 0:
        return bytes_anywhere(data, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        path.write_bytes(data)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            for setting in ("ignore_check_constraints = ON", "writable_schema = ON", "foreign_keys = OFF"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(_statement(rng))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (sqlite3.Error, OverflowError):
            pass
        finally:
            connection.close()
        return path.read_bytes()
