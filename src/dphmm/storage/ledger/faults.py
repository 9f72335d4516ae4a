"""Every failure of the database as one line: what happened, what it means for the ledger, what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dphmm.errors import DphmmError, InvalidInput, LedgerBusy

#: Result codes that say the file is not what it was taken for, and what was expected of it.
_WRONG_FILE = {
    sqlite3.SQLITE_READONLY: "a file and a folder that can be written",
    sqlite3.SQLITE_PERM: "a file and a folder that can be written",
    sqlite3.SQLITE_CANTOPEN: "a file in a folder that exists and can be written",
    sqlite3.SQLITE_NOTADB: "a dphmm ledger; this file is not a database",
    sqlite3.SQLITE_CORRUPT: "an undamaged ledger; this one has a damaged page: restore its latest copy",
}
_RETRY = "nothing of this transaction may be shown; ask again: a stored step is returned, never drawn twice"


def explained(error: sqlite3.Error, path: Path) -> DphmmError | sqlite3.Error:
    """The deliberate error for a database error; the error itself where it is a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return damaged(path) if isinstance(error, sqlite3.OperationalError) else error
    primary = code & 0xFF
    if primary in _WRONG_FILE:
        return InvalidInput("ledger", str(path), _WRONG_FILE[primary])
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerBusy(f"ledger {path.name}: another process holds it; nothing was spent; try again")
    if primary == sqlite3.SQLITE_FULL:
        return DphmmError(
            f"ledger {path.name}: the disk is full; nothing of this transaction was released or spent; "
            "free some space and ask again"
        )
    name = getattr(error, "sqlite_errorname", code)
    return DphmmError(f"ledger {path.name}: the database failed ({name}); {_RETRY}")


def damaged(path: Path | None = None, what: str = "a damaged row") -> InvalidInput:
    """A record that cannot be read back, for instance text that is not UTF-8."""
    return InvalidInput("ledger", what if path is None else str(path), "an undamaged ledger: restore its latest copy")
