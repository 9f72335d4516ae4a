"""One immediate transaction on the file: it keeps its reads in memory, and writes accounts at its end.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from dphmm.accounting.budget import EMPTY, UNLIMITED, Account, Caps, Looked, quoted
from dphmm.accounting.clock import Bounds
from dphmm.accounting.ledger import Entry, PlanRecord, Request, SessionHeader
from dphmm.accounting.memory import other_plan
from dphmm.accounting.moments import NO_MOMENTS
from dphmm.accounting.promise import MOST_STEPS
from dphmm.accounting.publication import Publication, Published
from dphmm.accounting.records import Requests, Spending
from dphmm.accounting.transaction import BaseTransaction
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.ledger.connection import damaged, explained
from dphmm.storage.ledger.schema import (
    Row,
    account_from,
    account_row,
    answer_texts,
    bounds_from,
    caps_from,
    digest_of,
    entry_from,
    fact_from,
    hash_stored,
    moments_from,
    moments_row,
    number_of,
    number_text,
    options_from,
    plan_from,
    plan_row,
    publication_from,
    publication_row,
    published_from,
    release_row,
    release_rows,
    terms_row,
    use_feature,
)
from dphmm.types import IntArray

#: Plans whose record is kept at hand, so that a plan seen again is compared by identity.
PLANS_AT_HAND = 256
#: Subjects that one statement asks for.
ASKED_TOGETHER = 500
#: And terms, of five numbers each.
_TERMS_TOGETHER = 100

#: All about some subjects: their accounts, their sessions, and the last step of each.
_FIND = (
    "SELECT subject, account.id, version, epsilon, cost_nanos, cap_epsilon, cap_cost, "
    "(SELECT text FROM document WHERE document.id = account.promise), query, session.id, text, "
    "(SELECT t + steps - 1 FROM release WHERE session = session.id ORDER BY t DESC LIMIT 1), "
    "(SELECT value FROM meta WHERE key = 'features') FROM account "
    "LEFT JOIN session ON session.account = account.id LEFT JOIN document ON document.id = session.options "
    "WHERE subject IN ({}) ORDER BY subject, query"
)
_PUT_CAPS = "UPDATE account SET cap_epsilon = ?, cap_cost = ?, promise = ? WHERE id = ?"
_ENTRY = (
    "SELECT t, steps, kind, z, epsilon, cost, secure, constant, hash FROM release "
    "JOIN terms ON terms.id = terms LEFT JOIN plan ON plan.id = plan WHERE session = ? "
)
_READ_BACK = f"{_ENTRY} AND t = ?"
_READ_BACK_MANY = "SELECT t, z FROM release WHERE session = ? AND t BETWEEN ? AND ? ORDER BY t"
_FIND_RELEASE = f"{_ENTRY} AND t <= ? ORDER BY t DESC LIMIT 1"
_FIND_PLANS_AT = (
    "SELECT hash, n_states, states, text FROM account JOIN session ON session.account = account.id "
    "JOIN release ON release.session = session.id AND t = ? JOIN plan ON plan.id = release.plan "
    "JOIN document ON document.id = plan.description WHERE subject = ? AND query <> ? ORDER BY query"
)
_FIND_PLANS = (
    "SELECT plan.id, hash, n_states, states, text FROM plan JOIN document ON document.id = description "
    "WHERE hash IN ({})"
)
_ADD_PLAN = "INSERT INTO plan (id, hash, n_states, states, description) VALUES (?, ?, ?, ?, ?)"
_FIND_TERMS = (
    "WITH wanted (kind, epsilon, cost, secure, constant) AS (VALUES {}) SELECT terms.id, wanted.* FROM wanted "
    "CROSS JOIN terms ON terms.kind = wanted.kind AND terms.epsilon IS wanted.epsilon AND terms.cost IS wanted.cost "
    "AND terms.secure = wanted.secure AND terms.constant = wanted.constant"
)
_ADD_TERMS = "INSERT INTO terms (id, kind, epsilon, cost, secure, constant) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_ACCOUNT = "INSERT INTO account (subject, key, version, epsilon, cost_nanos) VALUES (?, ?, 0, ?, ?)"
_NAME = "SELECT subject FROM account WHERE key = ?"
_EPSILONS = (
    "SELECT t, terms.epsilon FROM session JOIN release ON release.session = session.id JOIN terms ON terms.id = terms "
    "WHERE session.account = ? AND t BETWEEN ? AND ? AND terms.epsilon IS NOT NULL"
)
#: The moments of an account from the row on that has a step, or from the last one on.
_MOMENTS = (
    "SELECT t, moments FROM moment WHERE account = ? AND t >= (SELECT coalesce(max(t), 1) FROM moment "
    "WHERE account = ? AND t <= ?) ORDER BY t"
)
_PUT_MOMENTS = "INSERT OR REPLACE INTO moment VALUES (?, ?, ?)"
#: Moments of one row: as many as SQLite keeps in a page with others. A row of fewer takes in those that are added.
_MOMENTS_OF_A_ROW = 120
_FEATURES = "SELECT value FROM meta WHERE key = 'features'"
_CAPPED = "SELECT subject FROM account WHERE cap_epsilon IS NOT NULL OR cap_cost IS NOT NULL ORDER BY subject"
_DESCRIBED = "id, kind, statement, unit, relation, units_per_person, epsilon, rho, delta, counts"
PUBLICATIONS = f"SELECT {_DESCRIBED} FROM publication ORDER BY version"
PUBLISHED = f"SELECT {_DESCRIBED}, version, time, result FROM publication WHERE id = ?"
_ADD_CHANGE = "INSERT INTO change (account, version, kind, document) VALUES (?, ?, ?, ?)"
_FIND_BLOCKS = 'SELECT first, "end" FROM block WHERE account = ? ORDER BY first'
_ADD_BLOCK = "INSERT INTO block VALUES (?, ?, ?)"
_ADD_RELEASE = "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?)"
_PUT_ACCOUNT = "UPDATE account SET version = ?, epsilon = ?, cost_nanos = ? WHERE id = ?"
_PUT_SNAPSHOT = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)"
#: Of a row that is added, what is read back of it.
_T_AND_Z = itemgetter(1, 3)


class _Session:
    """A session row and, under the write lock, the step it has reached."""

    __slots__ = ("header", "id", "last")

    def __init__(self, id: int, header: SessionHeader, last: int) -> None:
        self.id, self.header, self.last = id, header, last


class _Subject:
    """A subject's account row, None where it has none yet, and all its sessions by name of the query."""

    __slots__ = ("account", "blocks", "caps", "id", "moments", "sessions", "version")

    def __init__(self) -> None:
        self.id: int | None = None
        self.version, self.account = 0, EMPTY
        self.caps = UNLIMITED
        #: Its stored blocks; None until something has read them.
        self.blocks: list[Bounds] | None = None
        #: Its rows of moments (t, moments) from some step on, the last one too; None until something has read them.
        self.moments: list[tuple[int, bytes]] | None = None
        self.sessions: dict[str, _Session] = {}


class SqliteTransaction(BaseTransaction):
    """See the protocol ``dphmm.accounting.Transaction``. A database failure ends it without a commit."""

    def __init__(self, connection: sqlite3.Connection, path: Path, key_of: Callable[[str], str]) -> None:
        super().__init__(key_of)
        self._connection = connection
        self._path = path
        self._pid = os.getpid()
        self._failed = False
        #: Why it failed, where the database said so.
        self._reason: BaseException | None = None
        self._subjects: dict[str, _Subject] = {}
        self._changed: set[str] = set()
        self._plans: OrderedDict[str, tuple[int, PlanRecord]] = OrderedDict()
        self._documents: dict[str, int] = {}
        self._terms: dict[Row, int] = {}
        #: The features of the file; None until something has read them.
        self._used: str | None = None
        self._known: list[Publication] | None = None

    def write_accounts(self) -> None:
        """Write totals and version of every subject that something was stored of; called once, before the commit."""
        self._require_usable()
        changed = [self._subjects[subject] for subject in sorted(self._changed)]
        rows = [(subject.version, *account_row(subject.account), subject.id) for subject in changed]
        self._connection.executemany(_PUT_ACCOUNT, rows)

    def end(self) -> None:
        """Refuse any further use."""
        self._ended = True

    def _failure(self, error: BaseException) -> BaseException | None:
        if not isinstance(error, sqlite3.Error):
            return None
        # SQLite may have rolled back by itself: a later statement would then commit alone.
        self._failed = True
        self._reason = self._reason or explained(error, self._path)
        return self._reason

    def _require_usable(self) -> None:
        super()._require_usable()
        if os.getpid() != self._pid:
            raise DphmmError(f"ledger {self._path.name}: a transaction belongs to the process that began it")
        if self._failed or not self._connection.in_transaction:
            failed = DphmmError(f"ledger {self._path.name}: this transaction failed before; nothing of it was stored")
            raise self._reason or failed

    def _subject(self, name: str) -> _Subject:
        if name not in self._subjects:
            self._find([name])
        return self._subjects[name]

    def _find(self, names: list[str]) -> None:
        """Read all about these subjects, which are not known yet, in one statement."""
        self._subjects |= {name: _Subject() for name in names}
        rows = self._connection.execute(_FIND.format(",".join("?" * len(names))), names)
        for name, row, version, *account, query, session, options, last, used in rows:
            subject, self._used = self._subjects[name], used
            if type(version) is not int:
                raise damaged()
            if subject.id is None:
                subject.id, subject.version, subject.account = row, version, account_from(tuple(account[:2]))
                subject.caps = caps_from(*account[2:])
            if session is not None:
                header = SessionHeader(name, query, options_from(options))
                subject.sessions[query] = _Session(session, header, last or 0)

    def _look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        new = [name for name in dict.fromkeys(subjects) if name not in self._subjects]
        for first in range(0, len(new), ASKED_TOGETHER):
            self._find(new[first : first + ASKED_TOGETHER])
        return super()._look(subjects, query)

    def _headers_of(self, subject: str) -> list[SessionHeader]:
        sessions = self._subject(subject).sessions
        return [sessions[query].header for query in sorted(sessions)]

    def _name(self, key: str) -> str | None:
        row = self._connection.execute(_NAME, (key,)).fetchone()
        return None if row is None else str(row[0])

    def _options(self, subject: str, query: str) -> Mapping[str, str] | None:
        session = self._subject(subject).sessions.get(query)
        return None if session is None else session.header.options

    def _add_session(self, header: SessionHeader) -> None:
        subject = self._subject(header.subject)
        if subject.id is None:
            row = (header.subject, self._key_of(header.subject), *account_row(EMPTY))
            subject.id = self._inserted(_ADD_ACCOUNT, row)
            subject.moments = []
        row = (subject.id, header.query, self._document(header.options_text))
        number = self._inserted("INSERT INTO session (account, query, options) VALUES (?, ?, ?)", row)
        subject.sessions[header.query] = _Session(number, header, 0)
        self._raise_version(header.subject, 1)

    def _inserted(self, statement: str, row: Row) -> int:
        number = self._connection.execute(statement, row).lastrowid
        assert number is not None
        return number

    def _document(self, text: str) -> int:
        """The number of a text that is stored once."""
        if text not in self._documents:
            if len(self._documents) == PLANS_AT_HAND:
                self._documents.clear()
            self._documents[text] = self._stored_document(text)
        return self._documents[text]

    def _stored_document(self, text: str) -> int:
        digest = digest_of(text)
        row = self._connection.execute("SELECT id, text FROM document WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return self._inserted("INSERT INTO document (digest, text) VALUES (?, ?)", (digest, text))
        if row[1] != text:
            raise damaged(what="a text that is not that of its digest")
        return int(row[0])

    def _last_step(self, subject: str, query: str) -> int | None:
        session = self._subject(subject).sessions.get(query)
        return None if session is None else session.last

    def _entry(self, subject: str, query: str, t: int) -> Entry | None:
        session = self._subject(subject).sessions.get(query)
        if session is None or not 1 <= t <= session.last:
            return None
        row = self._connection.execute(_FIND_RELEASE, (session.id, t)).fetchone()
        return None if row is None or row[0] + row[1] <= t else entry_from(subject, query, row)

    def _plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        rows = self._connection.execute(_FIND_PLANS_AT, (t, subject, query))
        return [plan_from(row) for row in rows]

    def _account(self, subject: str) -> Account:
        return self._subject(subject).account

    def _caps(self, subject: str) -> Caps:
        return self._subject(subject).caps

    def _put_caps(self, subject: str, caps: Caps) -> None:
        record = self._subject(subject)
        if record.id is None:
            raise InvalidInput("subject", quoted(subject), "one with a session in this ledger")
        promise = None if caps.promise is None else self._document(caps.promise.written())
        capped = caps.epsilon is not None or caps.cost is not None
        for feature, used in (("caps", capped), ("promise", promise)):
            if used:
                self._use(feature)
        self._raise_version(subject, 1)
        row = (number_text(caps.epsilon), number_text(caps.cost), promise, record.id)
        self._connection.execute(_PUT_CAPS, row)
        change = (record.id, record.version, "caps", self._document(caps.written()))
        self._connection.execute(_ADD_CHANGE, change)
        record.caps = caps

    def _uses(self, feature: str) -> bool:
        if self._used is None:
            self._used = str(self._connection.execute(_FEATURES).fetchone()[0])
        return feature in self._used

    def _use(self, feature: str) -> None:
        use_feature(self._connection, feature)
        self._used = None

    def _publications(self) -> Sequence[Publication]:
        if self._known is None:
            rows = self._connection.execute(PUBLICATIONS) if self._uses("publications") else ()
            self._known = [publication_from(row) for row in rows]
        return self._known

    def _publication(self, name: str) -> Published | None:
        row = self._connection.execute(PUBLISHED, (name,)).fetchone()
        return None if row is None else published_from(row)

    def _add_publication(self, published: Published) -> Published:
        self._use("publications")
        row = publication_row(published)
        self._connection.execute(f"INSERT INTO publication VALUES ({','.join('?' * len(row))})", row)
        self._known = None
        stored = self._publication(published.publication.name)
        if stored != published:
            raise DphmmError(f"ledger {self._path.name}: a row does not hold what was written; nothing was stored")
        return published

    def _capped(self) -> Sequence[str]:
        return [row[0] for row in self._connection.execute(_CAPPED)]

    def _fact(self, name: str) -> Fraction | None:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return None if row is None else fact_from(row[0])

    def _put_fact(self, name: str, value: Fraction) -> None:
        self._use("publications")
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, number_text(value)))

    def _blocks(self, subject: str) -> Sequence[Bounds]:
        account = self._subject(subject)
        if account.blocks is None:
            account.blocks = bounds_from(self._connection.execute(_FIND_BLOCKS, (account.id,)).fetchall())
        return account.blocks

    def _add_blocks(self, subject: str, blocks: Sequence[Bounds]) -> None:
        if blocks:
            account = self._subject(subject)
            self._connection.executemany(_ADD_BLOCK, [(account.id, first, end) for first, end in blocks])
            account.blocks = None

    def _epsilons(self, subject: str, first: int, last: int) -> list[Spending]:
        rows = self._connection.execute(_EPSILONS, (self._subject(subject).id, first, last))
        return [(t, number_of(epsilon)) for t, epsilon in rows]

    def _moments(self, subject: str, first: int) -> tuple[int, IntArray]:
        account = self._subject(subject)
        if account.moments is None or (account.moments and account.moments[0][0] > first):
            account.moments = self._connection.execute(_MOMENTS, (account.id, account.id, first)).fetchall()
        place = bisect_right(account.moments, first, key=itemgetter(0)) - 1
        return moments_from(account.moments[max(0, place) :])

    def _add_moments(self, subject: str, moments: IntArray) -> None:
        account = self._subject(subject).id
        assert account is not None
        first, stored = self._moments(subject, MOST_STEPS)
        if len(stored) >= _MOMENTS_OF_A_ROW:
            first, stored = first + len(stored), NO_MOMENTS
        together = np.concatenate([stored, moments])
        cuts = range(0, len(together), _MOMENTS_OF_A_ROW)
        rows = [moments_row(account, first + cut, together[cut : cut + _MOMENTS_OF_A_ROW]) for cut in cuts]
        self._connection.executemany(_PUT_MOMENTS, rows)
        written = self._connection.execute(_MOMENTS, (account, account, first)).fetchall()
        if written != [row[1:] for row in rows]:
            raise DphmmError(f"ledger {self._path.name}: a row does not hold what was written; nothing was stored")
        self._subject(subject).moments = written

    def _version(self, subject: str) -> int:
        return self._subject(subject).version

    def _raise_version(self, subject: str, facts: int) -> None:
        self._subject(subject).version += facts
        self._changed.add(subject)

    def _put_snapshot(self, subject: str, query: str, t: int, belief: bytes) -> None:
        row = (self._subject(subject).sessions[query].id, t, digest_of(belief), belief)
        self._connection.execute(_PUT_SNAPSHOT, row)

    def _add(self, request: Request, z: tuple[int, ...] | None, account: Account | None) -> Entry:
        subject = self._subject(request.subject)
        session = subject.sessions[request.query]
        plan = None if request.plan is None else self._plan_ids([request.plan])[0]
        row = release_row(session.id, request, z, plan, self._terms_ids([terms_row(request)])[0])
        self._connection.execute(_ADD_RELEASE, row)
        session.last = request.through
        subject.account = account or subject.account
        self._raise_version(request.subject, 1)
        row = self._connection.execute(_READ_BACK, (session.id, request.t)).fetchone()
        return entry_from(request.subject, request.query, row)

    def _add_many(
        self, requests: Requests, fresh: IntArray, drawn_for: IntArray, z: IntArray | None, accounts: dict[str, Account]
    ) -> None:
        used = np.unique(requests.term[fresh]).tolist()
        terms = dict(zip(used, self._terms_ids([terms_row(requests.terms[number]) for number in used]), strict=True))
        planned = {number: plan for number in used if (plan := requests.terms[number].plan) is not None}
        plans = dict(zip(planned, self._plan_ids(list(planned.values())), strict=True))
        sessions = [self._subject(subject).sessions.get(requests.query) for subject in requests.subjects]
        ids = np.array([0 if session is None else session.id for session in sessions], dtype=np.int64)
        answers = np.full(len(requests), None, dtype=np.object_)
        if z is not None:
            answers[drawn_for] = answer_texts(z)
        rows = release_rows(requests, fresh, ids, plans, terms, answers[fresh].tolist())
        # Rows without their accounts must not be committed, whatever stops this half way.
        self._failed = True
        self._connection.executemany(_ADD_RELEASE, rows)
        self._require_recorded(rows)
        for name, account in accounts.items():
            self._subject(name).account = account
        numbers, counts = np.unique(requests.subject[fresh], return_counts=True)
        for number, row, count in zip(numbers.tolist(), np.cumsum(counts).tolist(), counts.tolist(), strict=True):
            session = sessions[number]
            assert session is not None
            session.last = int(requests.t[fresh[row - 1]] + requests.steps[fresh[row - 1]] - 1)
            self._raise_version(requests.subjects[number], count)
        self._failed = False

    def _require_recorded(self, rows: list[Row]) -> None:
        """Check that the rows hold what is shown: read them back, session by session."""
        for session, added in groupby(rows, key=itemgetter(0)):
            expected = list(map(_T_AND_Z, added))
            first, last = expected[0][0], expected[-1][0]
            if self._connection.execute(_READ_BACK_MANY, (session, first, last)).fetchall() != expected:
                raise DphmmError(f"ledger {self._path.name}: a row does not hold what was written; nothing was stored")

    def _plan_ids(self, plans: Sequence[PlanRecord]) -> list[int]:
        """The numbers of plans, which are added where they are new."""
        numbers: list[int] = []
        for first in range(0, len(plans), PLANS_AT_HAND):
            some = plans[first : first + PLANS_AT_HAND]
            new = {plan.hash: plan for plan in some if plan.hash not in self._plans}
            if new:
                hashes = list(map(hash_stored, new))
                for number, *row in self._connection.execute(_FIND_PLANS.format(_marks(hashes)), hashes):
                    plan = plan_from(tuple(row))
                    self._plans[plan.hash] = (number, plan)
                added = [plan for name, plan in new.items() if name not in self._plans]
                rows = [plan_row(plan, self._document(plan.description)) for plan in added]
                for number, plan in zip(self._added("plan", _ADD_PLAN, rows), added, strict=True):
                    self._plans[plan.hash] = (number, plan)
            for plan in some:
                number, stored = self._plans[plan.hash]
                if stored is not plan:
                    if stored != plan:
                        raise other_plan(plan)
                    self._plans[plan.hash] = (number, plan)
                numbers.append(number)
            while len(self._plans) > PLANS_AT_HAND:
                self._plans.popitem(last=False)
        return numbers

    def _terms_ids(self, rows: Sequence[Row]) -> list[int]:
        """The numbers of what many releases share, as `terms_row` tells it; new ones are added."""
        new = [row for row in dict.fromkeys(rows) if row not in self._terms]
        for first in range(0, len(new), _TERMS_TOGETHER):
            some = new[first : first + _TERMS_TOGETHER]
            stored = self._connection.execute(_FIND_TERMS.format(_marks(some, len(some[0]))), list(chain(*some)))
            self._terms |= {tuple(row): number for number, *row in stored}
        added = [row for row in new if row not in self._terms]
        self._terms |= zip(added, self._added("terms", _ADD_TERMS, added), strict=True)
        return [self._terms[row] for row in rows]

    def _added(self, table: str, statement: str, rows: Sequence[Row]) -> range:
        """Add rows with numbers after the last one of their table, which nobody else writes to meanwhile."""
        if not rows:
            return range(0)
        last = self._connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
        numbers = range(last + 1, last + 1 + len(rows))
        self._connection.executemany(statement, [(number, *row) for number, row in zip(numbers, rows, strict=True)])
        return numbers


def _marks(values: Sequence[object], columns: int = 1) -> str:
    """The placeholders of a statement for these values, or for rows of so many ``columns``."""
    row = ",".join("?" * columns)
    return ",".join([f"({row})" if columns > 1 else row] * len(values))
