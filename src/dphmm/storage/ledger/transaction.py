"""One immediate transaction on the file: what it reads it keeps in mind, accounts are written at its end.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from dphmm.accounting.budget import EMPTY, Account
from dphmm.accounting.ledger import Caps, Entry, PlanRecord, Request, SessionHeader, Spent
from dphmm.accounting.many import Admitted, AdmittedMany, Looked, Requests, StoredMany
from dphmm.accounting.memory import other_plan
from dphmm.accounting.transaction import BaseTransaction
from dphmm.errors import DphmmError
from dphmm.storage.ledger.faults import explained
from dphmm.storage.ledger.rows import (
    Row,
    account_from,
    account_row,
    answer_texts,
    entry_from,
    options_from,
    plan_from,
    plan_row,
    release_row,
    release_rows,
)
from dphmm.types import IntArray

#: Plans whose record is kept at hand, so that a plan seen again is compared by identity.
PLANS_AT_HAND = 256
#: Subjects that one statement asks for.
ASKED_TOGETHER = 500

_ENTRY = "t, through, kind, z, epsilon, cost, secure, constant"
_FIND_SESSION = (
    "SELECT id, options, (SELECT max(through) FROM release WHERE session = session.id) "
    "FROM session WHERE subject = ? AND query = ?"
)
_ADD_RELEASE = "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_READ_BACK = f"SELECT {_ENTRY} FROM release WHERE session = ? AND t = ?"
_READ_BACK_MANY = "SELECT t, z FROM release WHERE session = ? AND t BETWEEN ? AND ? ORDER BY t"
_FIND_RELEASE = (
    "SELECT t, through, kind, z, epsilon, cost, secure, constant, plan.hash "
    "FROM release LEFT JOIN plan ON plan.id = release.plan WHERE session = ? AND t <= ? ORDER BY t DESC LIMIT 1"
)
FIND_ACCOUNT = "SELECT epsilon, cost_nanos, unbounded FROM account WHERE subject = ?"
FIND_PLANS_AT = (
    "SELECT hash, n_states, states, description FROM session "
    "JOIN release ON release.session = session.id AND t = ? JOIN plan ON plan.id = release.plan "
    "WHERE subject = ? AND query <> ? ORDER BY query"
)
_PUT_ACCOUNT = (
    "INSERT INTO account VALUES (?, ?, ?, ?) ON CONFLICT (subject) DO UPDATE SET "
    "epsilon = excluded.epsilon, cost_nanos = excluded.cost_nanos, unbounded = excluded.unbounded"
)
_LOOK = (
    "SELECT subject, query, session.id, options, (SELECT max(through) FROM release WHERE session = session.id), "
    "epsilon, cost_nanos, unbounded FROM session LEFT JOIN account USING (subject) "
    "WHERE subject IN ({}) ORDER BY subject, query"
)
#: Of a row that is added, what is read back of it.
_T_AND_Z = itemgetter(1, 4)


class _Session:
    """A session row and, under the write lock, the step it has reached."""

    __slots__ = ("id", "last", "options")

    def __init__(self, id: int, options: Mapping[str, str], last: int) -> None:
        self.id, self.options, self.last = id, options, last


class SqliteTransaction(BaseTransaction):
    """See the protocol ``dphmm.accounting.Transaction``. A database failure ends it without a commit."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__()
        self._connection = connection
        self._path = path
        self._pid = os.getpid()
        self._failed = False
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._accounts: dict[str, Account] = {}
        self._changed: set[str] = set()
        self._plans: OrderedDict[str, tuple[int, PlanRecord]] = OrderedDict()

    def open_session(self, header: SessionHeader) -> None:
        """Record a session if it is new; InvalidInput names the first option in which a known one differs."""
        try:
            super().open_session(header)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        """What is stored about each of these subjects, in their order, this transaction included."""
        try:
            return super().look(subjects, query)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def admit(self, request: Request, caps: Caps) -> Admitted:
        """Look for this step, and refuse it where it has to be refused; nothing is drawn or recorded."""
        try:
            return super().admit(request, caps)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def add(self, admitted: Admitted, z: tuple[int, ...] | None) -> Entry:
        """Record an admitted step with its answer, None for a skip: the entry as it was recorded."""
        try:
            return super().add(admitted, z)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def admit_many(self, requests: Requests, caps: Caps) -> AdmittedMany:
        """As ``admit`` for every row."""
        try:
            return super().admit_many(requests, caps)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def add_many(self, admitted: AdmittedMany, z: IntArray | None) -> StoredMany:
        """As ``add`` for every row that is not stored yet."""
        try:
            return super().add_many(admitted, z)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def entry(self, subject: str, query: str, t: int) -> Entry | None:
        """A step, stored before or in this transaction."""
        try:
            return super().entry(subject, query, t)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def spent(self, subject: str) -> Spent:
        """What the subject has spent, this transaction included."""
        try:
            return super().spent(subject)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def last_step(self, subject: str, query: str) -> int:
        """The last stored step of a session; 0 when there is none."""
        try:
            return super().last_step(subject, query)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query."""
        try:
            return super().plans_at(subject, t, query)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def write_accounts(self) -> None:
        """Write the totals of every subject that released something; called once, before the commit."""
        self._require_usable()
        rows = [account_row(subject, self._accounts[subject]) for subject in sorted(self._changed)]
        self._connection.executemany(_PUT_ACCOUNT, rows)

    def end(self) -> None:
        """Refuse any further use."""
        self._ended = True

    def _broken(self, error: sqlite3.Error) -> DphmmError | sqlite3.Error:
        # SQLite may have rolled back by itself: a later statement would then commit alone.
        self._failed = True
        return explained(error, self._path)

    def _require_usable(self) -> None:
        super()._require_usable()
        if os.getpid() != self._pid:
            raise DphmmError(f"ledger {self._path.name}: a transaction belongs to the process that began it")
        if self._failed or not self._connection.in_transaction:
            raise DphmmError(f"ledger {self._path.name}: this transaction failed before; nothing of it was stored")

    def _session(self, subject: str, query: str) -> _Session | None:
        known = self._sessions.get((subject, query))
        if known is None:
            row = self._connection.execute(_FIND_SESSION, (subject, query)).fetchone()
            if row is None:
                return None
            known = self._sessions[subject, query] = _Session(row[0], options_from(row[1]), row[2] or 0)
        return known

    def headers(self, subject: str) -> list[SessionHeader]:
        """The parameters of all of a subject's queries, by name of the query."""
        try:
            return super().headers(subject)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def _look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        names = list(dict.fromkeys(subjects))
        found: dict[str, Looked] = {}
        for first in range(0, len(names), ASKED_TOGETHER):
            found |= self._looked_together(names[first : first + ASKED_TOGETHER], query)
        return [found[subject] for subject in subjects]

    def _looked_together(self, names: list[str], query: str) -> dict[str, Looked]:
        """One statement for many subjects. What it finds is kept in mind, as if each had been asked alone."""
        statement = _LOOK.format(",".join("?" * len(names)))
        headers: dict[str, dict[str, SessionHeader]] = {name: {} for name in names}
        for subject, other, number, options, last, *account in self._connection.execute(statement, names):
            known = self._sessions.setdefault((subject, other), _Session(number, options_from(options), last or 0))
            headers[subject][other] = SessionHeader(subject, other, known.options)
            if account[0] is not None:
                self._accounts.setdefault(subject, account_from(tuple(account)))
        return {name: self._found(name, query, of_name) for name, of_name in headers.items()}

    def _found(self, subject: str, query: str, headers: dict[str, SessionHeader]) -> Looked:
        header = headers.pop(query, None)
        last = 0 if header is None else self._sessions[subject, query].last
        return Looked(header, last, tuple(headers.values()), self._accounts.setdefault(subject, EMPTY))

    def _headers_of(self, subject: str) -> list[SessionHeader]:
        rows = self._connection.execute(
            "SELECT query, options FROM session WHERE subject = ? ORDER BY query", (subject,)
        )
        return [SessionHeader(subject, query, options_from(options)) for query, options in rows]

    def _options(self, subject: str, query: str) -> Mapping[str, str] | None:
        session = self._session(subject, query)
        return None if session is None else session.options

    def _add_session(self, header: SessionHeader) -> None:
        row = (header.subject, header.query, header.options_text)
        added = self._connection.execute("INSERT INTO session (subject, query, options) VALUES (?, ?, ?)", row)
        assert added.lastrowid is not None
        self._sessions[header.subject, header.query] = _Session(added.lastrowid, header.options, 0)

    def _last_step(self, subject: str, query: str) -> int | None:
        session = self._session(subject, query)
        return None if session is None else session.last

    def _entry(self, subject: str, query: str, t: int) -> Entry | None:
        session = self._session(subject, query)
        if session is None or not 1 <= t <= session.last:
            return None
        row = self._connection.execute(_FIND_RELEASE, (session.id, t)).fetchone()
        return None if row is None or row[1] < t else entry_from(subject, query, row[:-1], row[-1])

    def _plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        rows = self._connection.execute(FIND_PLANS_AT, (t, subject, query))
        return [plan_from(row) for row in rows]

    def _account(self, subject: str) -> Account:
        known = self._accounts.get(subject)
        if known is None:
            row = self._connection.execute(FIND_ACCOUNT, (subject,)).fetchone()
            known = self._accounts[subject] = EMPTY if row is None else account_from(row)
        return known

    def _add(self, request: Request, z: tuple[int, ...] | None, account: Account | None) -> Entry:
        session = self._sessions[request.subject, request.query]
        plan = None if request.plan is None else self._plan_id(request.plan)
        self._connection.execute(_ADD_RELEASE, release_row(session.id, request, z, plan))
        session.last = request.through
        if account is not None:
            self._accounts[request.subject] = account
            self._changed.add(request.subject)
        row = self._connection.execute(_READ_BACK, (session.id, request.t)).fetchone()
        return entry_from(request.subject, request.query, row, request.plan.hash if request.plan else None)

    def _add_many(
        self, requests: Requests, fresh: IntArray, drawn_for: IntArray, z: IntArray | None, accounts: dict[str, Account]
    ) -> None:
        plans = {
            number: self._plan_id(plan)
            for number in np.unique(requests.term[fresh]).tolist()
            if (plan := requests.terms[number].plan) is not None
        }
        sessions = [self._session(subject, requests.query) for subject in requests.subjects]
        ids = np.array([0 if session is None else session.id for session in sessions], dtype=np.int64)
        answers = np.full(len(requests), None, dtype=np.object_)
        if z is not None:
            answers[drawn_for] = answer_texts(z)
        rows = release_rows(requests, fresh, ids, plans, answers[fresh].tolist())
        # Rows without their accounts must not be committed, whatever stops this half way.
        self._failed = True
        self._connection.executemany(_ADD_RELEASE, rows)
        self._require_recorded(rows)
        self._accounts.update(accounts)
        self._changed.update(accounts)
        self._failed = False
        for number, row in zip(*_last_of_each(requests.subject[fresh]), strict=True):
            session = sessions[number]
            assert session is not None
            session.last = int(requests.t[fresh[row]] + requests.steps[fresh[row]] - 1)

    def _require_recorded(self, rows: list[Row]) -> None:
        """What is shown is what the rows hold: read them back, session by session."""
        for session, added in groupby(rows, key=itemgetter(0)):
            expected = list(map(_T_AND_Z, added))
            first, last = expected[0][0], expected[-1][0]
            if self._connection.execute(_READ_BACK_MANY, (session, first, last)).fetchall() != expected:
                raise DphmmError(f"ledger {self._path.name}: a row does not hold what was written; nothing was stored")

    def _plan_id(self, plan: PlanRecord) -> int:
        at_hand = self._plans.get(plan.hash)
        if at_hand is None:
            at_hand = self._stored_plan(plan.hash) or self._add_plan(plan)
            self._plans[plan.hash] = at_hand
            if len(self._plans) > PLANS_AT_HAND:
                self._plans.popitem(last=False)
        number, stored = at_hand
        if stored is not plan:
            if stored != plan:
                raise other_plan(plan)
            self._plans[plan.hash] = (number, plan)
        return number

    def _stored_plan(self, plan_hash: str) -> tuple[int, PlanRecord] | None:
        found = "SELECT id, hash, n_states, states, description FROM plan WHERE hash = ?"
        row = self._connection.execute(found, (plan_hash,)).fetchone()
        return None if row is None else (row[0], plan_from(row[1:]))

    def _add_plan(self, plan: PlanRecord) -> tuple[int, PlanRecord]:
        added = "INSERT INTO plan (hash, n_states, states, description) VALUES (?, ?, ?, ?)"
        number = self._connection.execute(added, plan_row(plan)).lastrowid
        assert number is not None
        return number, plan


def _last_of_each(subject: IntArray) -> tuple[list[int], list[int]]:
    """The numbers of an ascending column, and the place where each stands last."""
    places = np.flatnonzero(np.diff(subject, append=-1))
    return subject[places].tolist(), places.tolist()
