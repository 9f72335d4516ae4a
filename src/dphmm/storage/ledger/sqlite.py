"""The ledger file: transactions on one connection, reads of what is committed on another.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dphmm.accounting.budget import EMPTY, UNLIMITED, Caps, quoted
from dphmm.accounting.clock import Bounds
from dphmm.accounting.ledger import Entry, PlanRecord, SessionHeader, Spent
from dphmm.accounting.moments import Prefix, prefix_of
from dphmm.accounting.person import UNICODE, key_by, version_of
from dphmm.accounting.publication import Publication, Published
from dphmm.accounting.transaction import ThreadTurn
from dphmm.errors import InvalidInput
from dphmm.storage.ledger.connection import (
    abandon,
    connect,
    connect_reading,
    damaged,
    explained,
    held,
    ledger_path,
    use_wal,
    watch,
)
from dphmm.storage.ledger.owner import owner_key, store_prefixes, stored_prefixes
from dphmm.storage.ledger.schema import (
    BLOCKS,
    READING,
    account_from,
    bounds_from,
    caps_from,
    check_contents,
    check_pages,
    check_tables,
    digest_of,
    entry_from,
    fact_from,
    hash_stored,
    is_empty,
    moments_from,
    options_from,
    plan_from,
    prepare,
    publication_from,
    published_from,
)
from dphmm.storage.ledger.transaction import ASKED_TOGETHER, SqliteTransaction
from dphmm.types import IntArray

Result = TypeVar("Result")

#: Files up to this size (bytes) are read whole when they are opened.
CHECKED_SIZE = 64 * 2**20

_HEADER = "SELECT options FROM stored_header WHERE subject = ? AND query = ?"
_ENTRIES = (
    "SELECT t, steps, kind, z, epsilon, cost, secure, constant, hash FROM stored_entry "
    "WHERE subject = ? AND query = ? AND t >= ? ORDER BY t"
)
_ENTRIES_OF = (
    "SELECT subject, query, t, steps, kind, z, epsilon, cost, secure, constant, hash FROM stored_entry "
    "WHERE subject IN ({}) ORDER BY subject, query, t"
)
_PLAN = "SELECT hash, n_states, states, description FROM stored_plan WHERE hash = ?"
_PLANS_AT = (
    "SELECT hash, n_states, states, description FROM stored_entry JOIN stored_plan USING (hash) "
    "WHERE subject = ? AND t = ? AND query <> ? ORDER BY query"
)
_ACCOUNT = "SELECT epsilon, cost_nanos FROM stored_account WHERE subject = ?"
_CAPS = "SELECT cap_epsilon, cap_cost, promise FROM stored_caps WHERE subject = ?"
_SNAPSHOT = "SELECT t, digest, belief FROM stored_snapshot WHERE subject = ? AND query = ?"
_PUBLICATIONS = (
    "SELECT name, kind, statement, unit, relation, units_per_person, epsilon, rho, delta, counts "
    "FROM stored_publication ORDER BY version"
)
_PUBLISHED = "SELECT * FROM stored_publication WHERE name = ?"
_RELEASES = (
    "SELECT COUNT(*) FROM session JOIN release ON release.session = session.id JOIN terms ON terms.id = release.terms "
    "WHERE query = ? AND terms.kind = 'release'"
)
_HEADERS_OF = "SELECT subject, query, options FROM stored_header WHERE subject IN ({}) ORDER BY subject, query"
_SESSIONS_OF = "SELECT subject, query FROM stored_header WHERE subject IN ({}) ORDER BY subject, query"
_NAMES_OF = "SELECT key, subject FROM stored_account WHERE key IN ({})"
_MOMENTS_OF = "SELECT subject, t, moments FROM stored_moment WHERE subject IN ({}) ORDER BY subject, t"
_REACHED_BY = (
    "SELECT account.subject, max(t + steps - 1) FROM account JOIN session ON session.account = account.id "
    "JOIN release ON release.session = session.id WHERE account.subject IN ({}) GROUP BY account.id"
)
_SPENT_OF = "SELECT subject, epsilon, cost_nanos FROM stored_account WHERE subject IN ({})"


def open_ledger(
    path: str | os.PathLike[str], *, timeout: float = 30.0, read_only: bool = False, spelling: str | None = None
) -> SqliteLedger:
    """Open a ledger file, or make it where there is none.

    ``timeout``: seconds to wait for another process (or thread) before LedgerBusy. ``read_only``: for a file that
    exists, to look at it, also where nothing can be written (there nobody else may write meanwhile); transactions are
    refused. ``spelling``: "same", by default, takes different spellings of a name for one person, "exact" takes them
    for several; it stays.
    Raises InvalidInput for a path that cannot be one, a file that is not a ledger, is damaged, or is of a
    newer format, and for another rule of spelling than it has.
    """
    return SqliteLedger(ledger_path(path, read_only), timeout, read_only, spelling)


def stored_spelling(path: str | os.PathLike[str]) -> str | None:
    """The rule of spelling of a ledger file; None where there is none yet, as after an interrupt while it was made.

    Raises InvalidInput as `open_ledger`.
    """
    with opened_if_made(path) as ledger:
        return None if ledger is None else ledger.spelling


@contextmanager
def opened_if_made(path: str | os.PathLike[str], spelling: str | None = None) -> Iterator[SqliteLedger | None]:
    """A ledger file to read; None where there is none yet, as after an interrupt while it was made.

    Raises InvalidInput as `open_ledger`.
    """
    file = Path(path).absolute()
    if not file.is_file():
        yield None
        return
    try:
        with closing(connect_reading(file, 30.0)) as connection:
            empty = is_empty(connection)
    except sqlite3.Error as error:
        raise explained(error, file) from error
    if empty:
        yield None
        return
    with open_ledger(path, read_only=True, spelling=spelling) as ledger:
        yield ledger


class SqliteLedger:
    """A ``dphmm.accounting.Ledger`` in one SQLite file (write-ahead log, full synchronisation).

    Safe to share between threads, and between processes that each open it; survives a fork outside of
    transactions.
    """

    _write: sqlite3.Connection | None = None
    _read: sqlite3.Connection | None = None

    def __init__(self, path: Path, timeout: float = 30.0, read_only: bool = False, spelling: str | None = None) -> None:
        if spelling is not None:
            key_by(spelling)
        self.path = path
        self.read_only = read_only
        self._timeout = timeout
        self._turn = ThreadTurn(timeout)
        self._reading = threading.RLock()
        self._closed = False
        self._pid = os.getpid()
        try:
            self._make_ready(spelling)
        except sqlite3.Error as error:
            self._drop_connections()
            raise explained(error, path) from error
        except UnicodeDecodeError:
            # What the database says of a schema that is not text cannot be read either.
            self._drop_connections()
            raise damaged(path) from None
        except BaseException:
            self._drop_connections()
            raise
        watch(self)

    def __repr__(self) -> str:
        return f"SqliteLedger({self.path.name!r})"

    def _make_ready(self, spelling: str | None) -> None:
        if self.read_only:
            connection = self._reader()
        else:
            connection = self._writer()
            prepare(connection, self.path, spelling or "same")
            use_wal(connection, self.path, self._timeout)
        meta = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('id', 'spelling', 'unicode')"))
        #: The same of every copy of the file; tells nothing of what is in it.
        self.id = str(meta["id"])
        self.spelling = str(meta["spelling"])
        self._key_of = key_by(self.spelling)
        if spelling not in (None, self.spelling):
            raise InvalidInput("spelling", spelling, f"{self.spelling}, which this ledger was made with")
        if not self.read_only and version_of(UNICODE) > version_of(meta["unicode"]):
            # Names that this Python knows can be stored from now on: what reads them must know them, too.
            connection.execute("UPDATE meta SET value = ? WHERE key = 'unicode'", (UNICODE,))
        if self.path.stat().st_size <= CHECKED_SIZE:
            check_pages(connection, self.path)

    @contextmanager
    def transaction(self, subjects: Sequence[str] = ()) -> Iterator[SqliteTransaction]:
        """One immediate transaction: it commits on leaving normally, and only then may anything be shown.

        ``subjects`` need no lock of their own: a file has one writer.
        Raises InvalidInput when nested or opened to read alone, LedgerBusy when another process holds the file beyond
        the timeout.
        """
        with self._turn.hold():
            connection = self._begun()
            transaction, process = SqliteTransaction(connection, self.path, self._key_of), os.getpid()
            try:
                yield transaction
                self._commit(connection, transaction)
            except BaseException:
                if os.getpid() == process:
                    self._roll_back(connection)
                raise
            finally:
                transaction.end()

    def names_of(self, subjects: Sequence[str]) -> list[str]:
        """The stored name of each of these people; see the protocol."""
        keys = [self._key_of(subject) for subject in subjects]
        names = dict(self._rows_of(_NAMES_OF, keys))
        return [names.get(key, subject) for key, subject in zip(keys, subjects, strict=True)]

    def header(self, subject: str, query: str) -> SessionHeader | None:
        """The parameters of a session, or None."""
        rows = self._rows(_HEADER, subject, query)
        return SessionHeader(subject, query, options_from(rows[0][0])) if rows else None

    def entries(self, subject: str, query: str, first: int = 1) -> list[Entry]:
        """The stored steps of a session that begin at step ``first`` or later, in order of t."""
        return [entry_from(subject, query, row) for row in self._rows(_ENTRIES, subject, query, first)]

    def plan(self, hash: str) -> PlanRecord:
        """The plan of this hash. Raises InvalidInput for one that is not stored."""
        rows = self._rows(_PLAN, hash_stored(hash))
        if not rows:
            raise InvalidInput("plan", quoted(hash), "the hash of a plan in this ledger")
        return plan_from(rows[0])

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query."""
        return [plan_from(row) for row in self._rows(_PLANS_AT, subject, t, query)]

    def spent(self, subject: str) -> Spent:
        """The subject's spending over all queries; zero if unknown."""
        rows = self._rows(_ACCOUNT, subject)
        return (account_from(rows[0]) if rows else EMPTY).spent

    def caps(self, subject: str) -> Caps:
        """The caps and the promise that stay with the subject's account."""
        rows = self._rows(_CAPS, subject)
        return caps_from(*rows[0]) if rows else UNLIMITED

    def blocks(self, subject: str) -> list[Bounds]:
        """The bounds of each block of local days in which the subject has an answer, ascending."""
        return bounds_from(self._rows(BLOCKS, subject))

    def publications(self) -> list[Publication]:
        """All publications, in the order in which they were stored."""
        return [publication_from(row) for row in self._rows(_PUBLICATIONS)]

    def published(self, name: str) -> Published | None:
        """The publication of this name with its result, or None."""
        rows = self._rows(_PUBLISHED, name)
        return published_from(rows[0]) if rows else None

    def count_releases(self, query: str) -> int:
        """The number of answered steps of a query, over all subjects."""
        ((count,),) = self._rows(_RELEASES, query)
        return int(count)

    def facts(self) -> dict[str, Fraction]:
        """The facts of all publications: "delta", if rho terms are converted, and "cap_epsilon"."""
        rows = self._rows("SELECT key, value FROM meta WHERE key IN ('delta', 'cap_epsilon')")
        return {name: fact_from(value) for name, value in rows}

    def sessions(self) -> list[tuple[str, str]]:
        """All (subject, query), sorted."""
        return sorted(self._rows("SELECT subject, query FROM stored_header"))

    def sessions_of(self, subjects: Sequence[str]) -> list[tuple[str, str]]:
        """All (subject, query) of these subjects, sorted."""
        return sorted(self._rows_of(_SESSIONS_OF, subjects))

    def headers_of(self, subjects: Sequence[str]) -> list[SessionHeader]:
        """The parameters of all sessions of these subjects, by subject and query."""
        rows = sorted(self._rows_of(_HEADERS_OF, subjects))
        return [SessionHeader(subject, query, options_from(options)) for subject, query, options in rows]

    def entries_of(self, subjects: Sequence[str]) -> list[Entry]:
        """The stored steps of all sessions of these subjects, by subject, query and t."""
        return [entry_from(subject, query, row) for subject, query, *row in self._rows_of(_ENTRIES_OF, subjects)]

    def spent_of(self, subjects: Sequence[str]) -> list[Spent]:
        """The spending of each of these subjects over all queries, in their order; zero if unknown."""
        accounts = {row[0]: account_from(row[1:]) for row in self._rows_of(_SPENT_OF, subjects)}
        return [accounts.get(subject, EMPTY).spent for subject in subjects]

    def moments_of(self, subjects: Sequence[str]) -> list[IntArray]:
        """The moments (k,) of all steps of each of these subjects; see the protocol."""
        parts: dict[str, list[tuple[int, bytes]]] = {}
        for subject, *row in self._rows_of(_MOMENTS_OF, subjects):
            parts.setdefault(subject, []).append((row[0], row[1]))
        return [moments_from(parts.get(subject, []))[1] for subject in subjects]

    def prefixes_of(self, subjects: Sequence[str]) -> list[Prefix | None]:
        """The rows without any mark of each of these subjects; see the protocol."""
        reached, stored = dict(self._rows_of(_REACHED_BY, subjects)), stored_prefixes(self.path, subjects)
        return [prefix_of(stored.get(subject, ()), reached.get(subject) or 0) for subject in subjects]

    def keep_prefixes(self, prefixes: Mapping[str, Prefix]) -> None:
        """Keep these beside those of the last commit; see the protocol."""
        before = zip(prefixes, self.prefixes_of(list(prefixes)), strict=True)
        store_prefixes(self.path, prefixes, {name: prefix for name, prefix in before if prefix is not None})

    def owner_key(self) -> bytes:
        """The key of the ledger's digests, which is made once; see the protocol."""
        key = owner_key(self.path, create=False)
        if key is None:
            self._require_writing()
            key = owner_key(self.path, create=True)
        assert key is not None
        return key

    def snapshot(self, subject: str, query: str) -> tuple[int, bytes] | None:
        """The step and the bytes of the session's snapshot; None where there is none, or where it is damaged."""
        for t, digest, belief in self._rows(_SNAPSHOT, subject, query):
            if type(t) is int and type(belief) is bytes and digest_of(belief) == digest:
                return t, belief
        return None

    def check(self) -> None:
        """Read every page and recount every account from its releases. Raises DphmmError for a difference."""
        self._told(lambda: check_contents(self._reader(), self.path))

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Hold ``name`` against other threads and processes; LedgerBusy at once if somebody has it.

        The lease is a lock on a file beside the ledger, which the system releases if its holder is killed. Commands
        hold `COMMANDS`. Transactions need no lease: they are safe by themselves.
        """
        self._require_writing()
        with held(self.path, name):
            yield

    def close(self) -> None:
        """Close the file; committed steps are in it. Further use raises InvalidInput."""
        with self._turn.hold(), self._reading:
            self._drop_connections()
            self._closed = True

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._turn.mine:
            self.close()
            return
        # An interrupt came just before a transaction could end. Closing undoes it, and must not hide the interrupt.
        with self._reading:
            self._drop_connections()
            self._closed = True

    def __del__(self) -> None:
        # Dropped before it was closed, by Ctrl-C for one. A connection refers to itself: left to the garbage
        # collector, it would keep the log beside the file for as long as that takes.
        self._drop_connections()

    def _begun(self) -> sqlite3.Connection:
        try:
            connection = self._writer()
            if connection.in_transaction:
                # Ctrl-C came between the last one's beginning and its block: nothing was done in it.
                connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        return connection

    def _commit(self, connection: sqlite3.Connection, transaction: SqliteTransaction) -> None:
        try:
            transaction.write_accounts()
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        # One that was closed meanwhile has been rolled back.
        if connection is not self._write or not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # Closing rolls back too, and the error that led here is the one to tell.
            connection.close()
            self._write = None

    def _rows(self, statement: str, *values: str | int | bytes) -> list[Any]:
        return self._told(lambda: self._reader().execute(READING + statement, values).fetchall())

    def _rows_of(self, statement: str, subjects: Sequence[str]) -> list[Any]:
        names, rows = sorted(set(subjects)), []
        for first in range(0, len(names), ASKED_TOGETHER):
            some = names[first : first + ASKED_TOGETHER]
            rows += self._rows(statement.format(",".join("?" * len(some))), *some)
        return rows

    def _told(self, read: Callable[[], Result]) -> Result:
        with self._reading:
            try:
                return read()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error

    def _writer(self) -> sqlite3.Connection:
        self._require_open()
        self._require_writing()
        if self._write is None:
            self._write = connect(self.path, self._timeout)
        return self._write

    def _reader(self) -> sqlite3.Connection:
        self._require_open()
        if self._read is None:
            opened = connect_reading if self.read_only else connect
            connection = opened(self.path, self._timeout)
            try:
                connection.execute("PRAGMA query_only = ON")
                check_tables(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._read = connection
        return self._read

    def _require_writing(self) -> None:
        if self.read_only:
            raise InvalidInput("ledger", "one that was opened to read alone", "an open_ledger(path) without read_only")

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("ledger", "a closed one", "an open ledger")
        if os.getpid() != self._pid:
            self.after_fork_in_child()

    def _drop_connections(self) -> None:
        for connection in (self._write, self._read):
            if connection is not None:
                connection.close()
        self._write = self._read = None

    def before_fork(self) -> bool:
        """Take both locks and close the connections; False if a transaction is open and stays open."""
        if self._turn.mine or not self._turn.take():
            return False
        self._reading.acquire()
        self._drop_connections()
        return True

    def after_fork_in_parent(self) -> None:
        """Give back what ``before_fork`` took."""
        self._reading.release()
        self._turn.give_back()

    def after_fork_in_child(self) -> None:
        """Start afresh in this process: new locks, and no connection that the parent made."""
        for connection in (self._write, self._read):
            if connection is not None:
                abandon(connection, self.path)
        self._write = self._read = None
        self._turn, self._reading = ThreadTurn(self._timeout), threading.RLock()
        self._pid = os.getpid()
