"""A folder beside a ledger for the data owner alone: LEDGER.owner, the key of the digests that are in it, and digests.

A digest without a key confirms a guess of somebody's rows. The ledger may be shown to whoever checks a release; this
folder may not.

Proof: docs/proofs/account.md.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkstemp

from dphmm.accounting.moments import Prefix
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import PathLike

_KEY = "key"
_BYTES = 32
#: Digests of the rows without any mark: of each person those of the last commit, and of the one that is coming.
_ROWS = "rows.db"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS prefix (name TEXT, rows INTEGER, digest BLOB, PRIMARY KEY (name, rows)) WITHOUT ROWID"
)


def owner_folder(ledger: PathLike) -> Path:
    """The folder of files for the owner of a ledger."""
    return Path(f"{os.fspath(ledger)}.owner")


def owner_key(ledger: PathLike, create: bool) -> bytes | None:
    """The owner's key of a ledger, 32 random bytes; where there is none yet, a new one (``create``) or None.

    Raises InvalidInput for a file that is no key.
    """
    folder = owner_folder(ledger)
    path = folder / _KEY
    if create and not path.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        opened, temporary = mkstemp(prefix=f".{_KEY}.", dir=folder)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
                os.fsync(file.fileno())
            # Of several programs that make one at once the first is heeded by all.
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            Path(temporary).unlink()
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != _BYTES:
        raise InvalidInput(str(path), f"{len(key)} bytes", f"the key of {_BYTES} bytes that dphmm wrote")
    return key


def stored_prefixes(ledger: PathLike, people: Sequence[str]) -> dict[str, list[Prefix]]:
    """The stored prefixes of each person's rows without any mark. Raises InvalidInput for a damaged file."""
    path = owner_folder(ledger) / _ROWS
    if not path.exists():
        return {}
    prefixes: dict[str, list[Prefix]] = {}
    with _opened(path) as connection:
        for name in people:
            rows = connection.execute("SELECT rows, digest FROM prefix WHERE name = ?", (name,))
            prefixes[name] = [Prefix(rows, digest) for rows, digest in rows]
    return prefixes


def store_prefixes(ledger: PathLike, new: Mapping[str, Prefix], before: Mapping[str, Prefix]) -> None:
    """Keep the ``new`` ones beside those ``before``, and no others of these people. Raises as `stored_prefixes`."""
    owner_key(ledger, create=True)
    path = owner_folder(ledger) / _ROWS
    path.touch(mode=0o600)
    with _opened(path) as connection, connection:
        connection.execute(_TABLE)
        connection.executemany("DELETE FROM prefix WHERE name = ?", [(name,) for name in new])
        rows = [(name, *prefix) for some in (before, new) for name, prefix in some.items() if name in new]
        connection.executemany("INSERT OR REPLACE INTO prefix VALUES (?, ?, ?)", rows)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise InvalidInput(str(path), f"a file that cannot be read ({error})", "the file as dphmm wrote it") from None
