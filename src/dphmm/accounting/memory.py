"""A ledger in memory: for simulation, for tests, and for sessions that keep no file.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dphmm.accounting.budget import EMPTY, UNLIMITED, Account, Caps, Spent, quoted
from dphmm.accounting.clock import Bounds
from dphmm.accounting.moments import NO_MOMENTS, Prefix, prefix_of
from dphmm.accounting.person import key_by
from dphmm.accounting.publication import Publication, Published
from dphmm.accounting.records import Entry, PlanRecord, Request, Requests, SessionHeader, Spending
from dphmm.accounting.transaction import BaseTransaction, ThreadTurn, checked_lease
from dphmm.errors import InvalidInput, LedgerBusy
from dphmm.types import IntArray

Key = tuple[str, str]


class _Columns(NamedTuple):
    """The rows first..end of requests, all of one subject, and the answers (m, d) to requests; zeros for skips."""

    requests: Requests
    z: IntArray
    first: int
    end: int

    @property
    def through(self) -> int:
        """The last step of the requests."""
        return int(self.requests.t[self.end - 1] + self.requests.steps[self.end - 1] - 1)

    def entries(self) -> list[Entry]:
        """The entries of the rows, one a row."""
        requests, rows = self.requests, slice(self.first, self.end)
        name, query = requests.subjects[requests.subject[self.first]], requests.query
        columns = [column[rows].tolist() for column in (requests.term, requests.t, requests.steps)]
        shared = {number: entry_of(requests.terms[number], None)[5:10] for number in set(columns[0])}
        skips = {number: requests.terms[number].kind == "skip" for number in shared}
        return [
            Entry(
                name, query, t, "skip" if skips[number] else "release", None if skips[number] else z, *shared[number], n
            )
            for number, t, n, z in zip(*columns, zip(*self.z[rows].T.tolist(), strict=True), strict=True)
        ]


#: So many columns of one session take longer to look through than entries.
_MANY_COLUMNS = 4


class _Steps:
    """The stored steps of a session. Columns become entries when somebody reads them: most are never read."""

    def __init__(self) -> None:
        self.through = 0
        self._entries: list[Entry] = []
        self._columns: list[_Columns] = []

    def append(self, entry: Entry) -> None:
        """Add one step."""
        self.entries().append(entry)
        self.through = entry.through

    def append_many(self, columns: _Columns) -> None:
        """Add many steps."""
        self._columns.append(columns)
        self.through = columns.through

    def extend(self, steps: _Steps) -> None:
        """Add all steps of a later part of the session; steps that are there already are not added again."""
        if steps.through <= self.through:
            return
        if steps._entries:
            earlier, later = self.entries(), steps.entries()
            if not earlier or earlier[-1] is not later[-1]:
                earlier.extend(later)
            self.through = steps.through
        else:
            self._columns, self.through = [*self._columns, *steps._columns], steps.through

    def epsilons(self, first: int, last: int) -> list[Spending]:
        """(step, epsilon) of the releases from step ``first`` to ``last``."""
        if len(self._columns) > _MANY_COLUMNS:
            # One for each round of a paced schedule, which asks again before every row.
            self.entries()
        at = bisect_left(self._entries, first, key=lambda entry: entry.t)
        end = bisect_right(self._entries, last, key=lambda entry: entry.t)
        spendings = [(entry.t, entry.epsilon) for entry in self._entries[at:end] if entry.epsilon is not None]
        for requests, _, row, stop in self._columns:
            within = row + np.flatnonzero((requests.t[row:stop] >= first) & (requests.t[row:stop] <= last))
            terms = [requests.terms[number].epsilon for number in requests.term[within].tolist()]
            spendings += [(t, e) for t, e in zip(requests.t[within].tolist(), terms, strict=True) if e is not None]
        return spendings

    def entries(self) -> list[Entry]:
        """The steps in order."""
        if self._columns:
            made = [entry for columns in self._columns for entry in columns.entries()]
            # One statement without a call in it: no interrupt comes between the two.
            self._entries, self._columns = [*self._entries, *made], []
        return self._entries


class _Tables:
    """The tables of a ledger in memory, and of the additions of a transaction."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._headers: dict[Key, SessionHeader] = {}
        self._queries: dict[str, set[str]] = {}
        self._steps: dict[Key, _Steps] = {}
        self._plans: dict[str, PlanRecord] = {}
        self._accounts: dict[str, Account] = {}
        self._versions: dict[str, int] = {}
        self._snapshots: dict[Key, tuple[int, bytes]] = {}
        self._caps_of: dict[str, Caps] = {}
        self._blocks_of: dict[str, set[Bounds]] = {}
        self._published: dict[str, Published] = {}
        self._facts: dict[str, Fraction] = {}
        self._moments_of: dict[str, IntArray] = {}


class MemoryLedger(_Tables):
    """The ledger's promises without its file: same refusals, same replays, same rollback. See ``Ledger``.

    Threads may share it, processes may not: a forked child is refused.
    """

    def __init__(self, spelling: str = "same") -> None:
        super().__init__()
        self.spelling, self._key_of = spelling, key_by(spelling)
        self._turn = ThreadTurn()
        # Two readers of one session must not both make its entries.
        self._reading = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._prefixes: dict[str, list[Prefix]] = {}
        self._leases: dict[str, threading.Lock] = {}

    @contextmanager
    def transaction(self, subjects: Sequence[str] = ()) -> Iterator[MemoryTransaction]:
        """One transaction: kept as a whole when its block ends normally, dropped as a whole otherwise."""
        self._require_open()
        self._turn.refuse_nested()
        transaction = MemoryTransaction(self)
        try:
            self._turn.take()
            yield transaction
            transaction.keep()
        finally:
            try:
                transaction.end()
            finally:
                self._turn.give_back()

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Hold ``name`` against other threads; LedgerBusy at once if somebody has it."""
        self._require_open()
        lock = self._leases.setdefault(checked_lease(name), threading.Lock())
        if not lock.acquire(blocking=False):
            raise LedgerBusy(f"ledger: somebody else holds the lease {name!r}; wait for its end")
        try:
            yield
        finally:
            lock.release()

    def names_of(self, subjects: Sequence[str]) -> list[str]:
        """The name of each of these people in this ledger; see the protocol."""
        self._require_open()
        return [self._names.get(self._key_of(subject), subject) for subject in subjects]

    def header(self, subject: str, query: str) -> SessionHeader | None:
        """The parameters of a session, or None."""
        self._require_open()
        return self._headers.get((subject, query))

    def entries(self, subject: str, query: str, first: int = 1) -> list[Entry]:
        """The stored steps of a session that begin at step ``first`` or later, in order of t."""
        self._require_open()
        steps = self._steps_of((subject, query))
        return steps[bisect_left(steps, first, key=lambda entry: entry.t) :]

    def _steps_of(self, key: Key) -> list[Entry]:
        with self._reading:
            return self._steps[key].entries() if key in self._steps else []

    def plan(self, hash: str) -> PlanRecord:
        """The plan of this hash. Raises InvalidInput for one that is not stored."""
        self._require_open()
        if hash not in self._plans:
            raise InvalidInput("plan", quoted(hash), "the hash of a plan in this ledger")
        return self._plans[hash]

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query."""
        self._require_open()
        return MemoryTransaction(self).plans_at(subject, t, query)

    def spent(self, subject: str) -> Spent:
        """The spending of a subject; zero for an unknown one."""
        self._require_open()
        return self._accounts.get(subject, EMPTY).spent

    def caps(self, subject: str) -> Caps:
        """The caps and the promise that stay with the subject's account."""
        self._require_open()
        return self._caps_of.get(subject, UNLIMITED)

    def blocks(self, subject: str) -> list[Bounds]:
        """The bounds of each block of local days in which the subject has an answer, ascending."""
        self._require_open()
        return sorted(self._blocks_of.get(subject, ()))

    def publications(self) -> list[Publication]:
        """All publications, in the order in which they were stored."""
        self._require_open()
        return [published.publication for published in self._published.values()]

    def published(self, name: str) -> Published | None:
        """The publication of this name with its result, or None."""
        self._require_open()
        return self._published.get(name)

    def facts(self) -> dict[str, Fraction]:
        """The facts of all publications: "delta", at which rho terms are converted, and "cap_epsilon"."""
        self._require_open()
        return dict(self._facts)

    def sessions(self) -> list[Key]:
        """All (subject, query), sorted."""
        self._require_open()
        return sorted(self._headers)

    def sessions_of(self, subjects: Sequence[str]) -> list[Key]:
        """All (subject, query) of these subjects, sorted."""
        self._require_open()
        return sorted((subject, query) for subject in set(subjects) for query in self._queries.get(subject, ()))

    def headers_of(self, subjects: Sequence[str]) -> list[SessionHeader]:
        """The parameters of all sessions of these subjects, by subject and query."""
        return [self._headers[key] for key in self.sessions_of(subjects)]

    def entries_of(self, subjects: Sequence[str]) -> list[Entry]:
        """The stored steps of all sessions of these subjects, by subject, query and t."""
        return [entry for key in self.sessions_of(subjects) for entry in self.entries(*key)]

    def spent_of(self, subjects: Sequence[str]) -> list[Spent]:
        """The total spending of each of these subjects over all queries, in their order; zero for unknown ones."""
        return [self.spent(subject) for subject in subjects]

    def moments_of(self, subjects: Sequence[str]) -> list[IntArray]:
        """The moments (k,) of all steps of each of these subjects; see the protocol."""
        self._require_open()
        return [self._moments_of.get(subject, NO_MOMENTS) for subject in subjects]

    def prefixes_of(self, subjects: Sequence[str]) -> list[Prefix | None]:
        """The rows without any mark of each of these subjects; see the protocol."""
        self._require_open()
        reached = {
            subject: max(
                (
                    self._steps[subject, query].through
                    for query in self._queries.get(subject, ())
                    if (subject, query) in self._steps
                ),
                default=0,
            )
            for subject in subjects
        }
        return [prefix_of(self._prefixes.get(subject, ()), reached[subject]) for subject in subjects]

    def keep_prefixes(self, prefixes: Mapping[str, Prefix]) -> None:
        """Keep these beside those of the last commit; see the protocol."""
        for (subject, prefix), before in zip(prefixes.items(), self.prefixes_of(list(prefixes)), strict=True):
            self._prefixes[subject] = [prefix, *([] if before is None else [before])]

    def owner_key(self) -> bytes:
        """The key of its digests, which leave this memory as little as the rows do."""
        return bytes(32)

    def snapshot(self, subject: str, query: str) -> tuple[int, bytes] | None:
        """The step and the bytes of the session's snapshot, or None."""
        self._require_open()
        return self._snapshots.get((subject, query))

    def close(self) -> None:
        """Forbid further use."""
        self._closed = True

    def __enter__(self) -> MemoryLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("ledger", "a closed one", "an open ledger")
        if os.getpid() != self._pid:
            # Two copies would each give an answer to one question.
            raise InvalidInput("ledger", "one in another process's memory", "a ledger file, which processes can share")


class MemoryTransaction(_Tables, BaseTransaction):
    """The additions of one transaction, kept beside the ledger until it ends."""

    def __init__(self, ledger: MemoryLedger) -> None:
        _Tables.__init__(self)
        BaseTransaction.__init__(self, ledger._key_of)
        self._ledger = ledger

    def keep(self) -> None:
        """Make everything of this transaction part of the ledger: all of it, also if an interrupt comes meanwhile."""
        try:
            self._keep()
        except BaseException:
            # Half of it would charge for steps that are not there. Doing a part of it twice changes nothing.
            self._keep()
            raise

    def _keep(self) -> None:
        ledger = self._ledger
        if self._headers:
            for subject, queries in self._queries.items():
                ledger._queries.setdefault(subject, set()).update(queries)
            ledger._headers.update(self._headers)
            ledger._names.update(self._names)
        if self._plans:
            ledger._plans.update(self._plans)
        if self._caps_of:
            ledger._caps_of.update(self._caps_of)
        for subject, blocks in self._blocks_of.items():
            ledger._blocks_of[subject] = ledger._blocks_of.get(subject, set()) | blocks
        if self._snapshots:
            ledger._snapshots.update(self._snapshots)
        ledger._moments_of.update(self._moments_of)
        ledger._accounts.update(self._accounts)
        ledger._versions.update(self._versions)
        if self._published or self._facts:
            ledger._published.update(self._published)
            ledger._facts.update(self._facts)
        with ledger._reading:
            for key, steps in self._steps.items():
                stored = ledger._steps.setdefault(key, steps)
                if stored is not steps:
                    stored.extend(steps)

    def end(self) -> None:
        """Refuse any further use."""
        self._ended = True

    def _header(self, key: Key) -> SessionHeader | None:
        return self._headers.get(key) or self._ledger._headers.get(key)

    def _queries_of(self, subject: str) -> set[str]:
        stored, new = self._ledger._queries.get(subject), self._queries.get(subject)
        return (stored or set()) | new if new else stored or set()

    def _headers_of(self, subject: str) -> list[SessionHeader]:
        keys = [(subject, query) for query in sorted(self._queries_of(subject))]
        return [header for header in map(self._header, keys) if header is not None]

    def _options(self, subject: str, query: str) -> Mapping[str, str] | None:
        header = self._header((subject, query))
        return None if header is None else header.options

    def _name(self, key: str) -> str | None:
        return self._names.get(key) or self._ledger._names.get(key)

    def _add_session(self, header: SessionHeader) -> None:
        self._names[self._key_of(header.subject)] = header.subject
        self._headers[header.subject, header.query] = header
        self._queries.setdefault(header.subject, set()).add(header.query)
        self._raise_version(header.subject)

    def _last_step(self, subject: str, query: str) -> int | None:
        key = (subject, query)
        steps = self._steps.get(key) or self._ledger._steps.get(key)
        if steps is not None:
            return steps.through
        return None if self._header(key) is None else 0

    def _entry(self, subject: str, query: str, t: int) -> Entry | None:
        key = (subject, query)
        added = self._steps[key].entries() if key in self._steps else []
        for entries in (added, self._ledger._steps_of(key)):
            at = bisect_right(entries, t, key=lambda entry: entry.t) - 1
            if at >= 0:
                return entries[at] if t <= entries[at].through else None
        return None

    def _plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        others = self._queries_of(subject) - {query}
        if not others:
            return []
        entries = [self._entry(subject, other, t) for other in sorted(others)]
        return [self._plan(e.plan_hash) for e in entries if e is not None and e.plan_hash is not None]

    def _plan(self, plan_hash: str) -> PlanRecord:
        return self._plans.get(plan_hash) or self._ledger._plans[plan_hash]

    def _account(self, subject: str) -> Account:
        return self._accounts.get(subject) or self._ledger._accounts.get(subject, EMPTY)

    def _caps(self, subject: str) -> Caps:
        return self._caps_of.get(subject) or self._ledger._caps_of.get(subject, UNLIMITED)

    def _put_caps(self, subject: str, caps: Caps) -> None:
        self._caps_of[subject] = caps
        self._raise_version(subject)

    def _blocks(self, subject: str) -> Sequence[Bounds]:
        return [*self._ledger._blocks_of.get(subject, ()), *self._blocks_of.get(subject, ())]

    def _add_blocks(self, subject: str, blocks: Sequence[Bounds]) -> None:
        self._blocks_of.setdefault(subject, set()).update(blocks)

    def _publications(self) -> Sequence[Publication]:
        return [each.publication for each in (*self._ledger._published.values(), *self._published.values())]

    def _publication(self, name: str) -> Published | None:
        return self._published.get(name) or self._ledger._published.get(name)

    def _add_publication(self, published: Published) -> Published:
        self._published[published.publication.name] = published
        return published

    def _capped(self) -> Sequence[str]:
        return sorted({**self._ledger._caps_of, **self._caps_of})

    def _fact(self, name: str) -> Fraction | None:
        return self._facts.get(name, self._ledger._facts.get(name))

    def _put_fact(self, name: str, value: Fraction) -> None:
        self._facts[name] = value

    def _epsilons(self, subject: str, first: int, last: int) -> list[Spending]:
        stored = [steps.get((subject, query)) for query in self._queries_of(subject) for steps in self._both]
        # Somebody who reads a session meanwhile makes its columns entries: half way rows are in neither.
        with self._ledger._reading:
            return [row for steps in stored if steps is not None for row in steps.epsilons(first, last)]

    def _moments(self, subject: str, first: int) -> tuple[int, IntArray]:
        moments = self._moments_of.get(subject)
        return 1, self._ledger._moments_of.get(subject, NO_MOMENTS) if moments is None else moments

    def _add_moments(self, subject: str, moments: IntArray) -> None:
        self._moments_of[subject] = np.concatenate([self._moments(subject, 1)[1], moments])

    @property
    def _both(self) -> tuple[dict[Key, _Steps], dict[Key, _Steps]]:
        return self._ledger._steps, self._steps

    def _version(self, subject: str) -> int:
        return self._versions.get(subject) or self._ledger._versions.get(subject, 0)

    def _raise_version(self, subject: str, by: int = 1) -> None:
        self._versions[subject] = self._version(subject) + by

    def _put_snapshot(self, subject: str, query: str, t: int, belief: bytes) -> None:
        self._snapshots[subject, query] = t, belief

    def _add(self, request: Request, z: tuple[int, ...] | None, account: Account | None) -> Entry:
        entry = entry_of(request, z)
        if request.plan is not None:
            self._add_plan(request.plan)
        if account is not None:
            self._accounts[request.subject] = account
        self._steps.setdefault((request.subject, request.query), _Steps()).append(entry)
        self._raise_version(request.subject)
        return entry

    def _add_many(
        self, requests: Requests, fresh: IntArray, drawn_for: IntArray, z: IntArray | None, accounts: dict[str, Account]
    ) -> None:
        for number in np.unique(requests.term[fresh]).tolist():
            plan = requests.terms[number].plan
            if plan is not None:
                self._add_plan(plan)
        answers = np.zeros((len(requests), 1 if z is None else z.shape[1]), dtype=np.int64)
        if z is not None:
            answers[drawn_for] = z
        parts = requests.parts()
        # The rows of a subject that are stored already stand before all others of its rows.
        places = np.searchsorted(fresh, [first for _, first, _ in parts]).tolist()
        for (subject, _, end), place in zip(parts, places, strict=True):
            if place < len(fresh) and (first := int(fresh[place])) < end:
                steps = self._steps.setdefault((subject, requests.query), _Steps())
                steps.append_many(_Columns(requests, answers, first, end))
                self._raise_version(subject, end - first)
        self._accounts.update(accounts)

    def _add_plan(self, plan: PlanRecord) -> None:
        stored = self._plans.get(plan.hash) or self._ledger._plans.get(plan.hash)
        if stored is None:
            self._plans[plan.hash] = plan
        elif stored is not plan and stored != plan:
            raise other_plan(plan)


def entry_of(request: Request, z: tuple[int, ...] | None) -> Entry:
    """The entry that a request becomes."""
    return Entry(
        request.subject,
        request.query,
        request.t,
        request.kind,
        z,
        request.epsilon,
        request.cost,
        None if request.plan is None else request.plan.hash,
        bool(request.secure),
        bool(request.constant),
        request.steps,
    )


def other_plan(plan: PlanRecord) -> InvalidInput:
    """A plan's hash stands for one plan: a second plan under it is refused."""
    return InvalidInput("plan", quoted(plan.hash), "a hash that stands for one plan; another one is stored under it")
