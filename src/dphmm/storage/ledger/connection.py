"""A connection that keeps what it commits, made for one process.

SQLite's state does not survive a fork: even a new connection in the child would share the parent's record of
which locks are held. So connections are closed before a fork and opened again on both sides; where that was
not possible (a fork inside a transaction) the child refuses the file.

`explained` says every failure of the database in one line: the event, its meaning for the ledger, and the remedy.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from filelock import FileLock, Timeout

from dphmm.accounting.transaction import checked_lease
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy

#: The lease that every command holds which writes to a ledger.
COMMANDS = "commands"

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


#: Files that this process inherited open from its parent.
_INHERITED: set[Path] = set()


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """An autocommit connection with the ledger's settings; waits ``timeout`` seconds for locks."""
    return _connected(path, timeout, "mode=rwc")


def connect_reading(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to look at a file, which may lie where nothing can be written; nothing is left there.

    A reader who may write takes part in the ledger's log, as the last to close has to fold it in. One who may not
    could only begin a log that its owner cannot end: the file alone is read, which without a log is whole (nobody may
    write to it meanwhile), or a log that is there with all its parts. Raises InvalidInput for parts of one.
    """
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return _connected(path, timeout, "mode=rw")
    log, shared = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not log.exists() or log.stat().st_size == 0:
        return _connected(path, timeout, "mode=ro&immutable=1")
    if not shared.exists():
        expected = f"{shared.name} with it, or all of the ledger's files together where they can be written"
        raise InvalidInput("ledger", f"{log.name} beside {path.name}", expected)
    return _connected(path, timeout, "mode=ro")


def _connected(path: Path, timeout: float, choices: str) -> sqlite3.Connection:
    if path in _INHERITED:
        raise LedgerBusy(
            f"ledger {path.name}: this process inherited it open, by a fork inside a transaction; "
            "fork outside of transactions"
        )
    uri = f"{path.as_uri()}?{choices}"
    connection = sqlite3.connect(uri, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True)
    try:
        for setting in (
            "synchronous = FULL",
            "foreign_keys = ON",
            "fullfsync = ON",
            "trusted_schema = OFF",
            "cache_spill = OFF",
        ):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def use_wal(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Switch the file to a write-ahead log, once for its life; readers then never wait for a writer."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself: several processes may be opening a new file.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise InvalidInput("ledger", str(path), "a file on a local disk, where a write-ahead log works")


@contextmanager
def held(path: Path, name: str = COMMANDS, *, whose: str = "ledger") -> Iterator[None]:
    """Hold the lease ``name`` of a ledger: an advisory lock on a file beside it. LedgerBusy at once if it is taken.

    ``whose``: the name of the thing that the file belongs to, by default a ledger.
    """
    lock = FileLock(f"{path}.{checked_lease(name)}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        who = "another dphmm command is using it" if name == COMMANDS else f"somebody else holds the lease {name!r}"
        raise LedgerBusy(f"{whose} {path.name}: {who}; wait for its end") from None
    except OSError:
        raise InvalidInput(whose, str(path), "a file in a folder that can be written") from None
    try:
        yield
    finally:
        lock.release()


def abandon(connection: sqlite3.Connection, path: Path) -> None:
    """Keep a connection that was inherited open from ever being closed here; refuse its file from now on.

    Closing it would undo the parent's transaction in the shared memory of the log.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _INHERITED.add(path)


def ledger_path(path: str | os.PathLike[str], read_only: bool = False) -> Path:
    """The file of a ledger, resolved so that one file has one lock; InvalidInput if there can be none."""
    try:
        resolved = Path(path).resolve()
        exists, is_file = resolved.exists(), resolved.is_file()
    except (TypeError, ValueError, OSError):
        raise InvalidInput("ledger", path, "the path of a file") from None
    if exists and not is_file:
        raise InvalidInput("ledger", str(path), "a regular file")
    if not resolved.parent.is_dir():
        raise InvalidInput("ledger", str(path), f"a folder that exists; there is no {resolved.parent}")
    if read_only:
        if not (exists and os.access(resolved, os.R_OK)):
            raise InvalidInput("ledger", str(path), "a ledger file that exists and can be read")
        return resolved
    if not os.access(resolved if exists else resolved.parent, os.W_OK):
        raise InvalidInput("ledger", str(path), "a file and a folder that can be written")
    return resolved


class Forkable(Protocol):
    """Something that must not be carried open across a fork."""

    def before_fork(self) -> bool: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_WATCHED: WeakSet[Forkable] = WeakSet()
_CLOSED: list[Forkable] = []


def watch(ledger: Forkable) -> None:
    """Close ``ledger`` around every fork, as long as it lives."""
    _WATCHED.add(ledger)


def _before() -> None:
    _CLOSED[:] = [ledger for ledger in list(_WATCHED) if ledger.before_fork()]


def _in_parent() -> None:
    for ledger in _CLOSED:
        ledger.after_fork_in_parent()
    _CLOSED.clear()


def _in_child() -> None:
    _CLOSED.clear()
    for ledger in list(_WATCHED):
        ledger.after_fork_in_child()


# Windows does not fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
