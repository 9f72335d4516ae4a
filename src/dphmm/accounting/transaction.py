"""The order of work of one ledger transaction, the same wherever its rows live.

Look up, compare public parameters, check the caps, and only then draw and record. That order, in one
transaction that commits before anything is shown, is what leaves no double release and no unspent one after a
crash.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from dphmm.accounting.budget import Account, Spent, admit, quoted
from dphmm.accounting.many import DrawMany, Requests, StoredMany, admit_many, checked_answers, stored_many
from dphmm.accounting.records import (
    Caps,
    Entry,
    PlanRecord,
    Request,
    SessionHeader,
    lattice_answer,
    shown,
)
from dphmm.errors import DphmmError, InvalidInput
from dphmm.types import IntArray

Answers = TypeVar("Answers")


class BaseTransaction(ABC):
    """A transaction over rows that a subclass finds and adds; see the protocol ``Transaction``."""

    def __init__(self) -> None:
        self._ended = False
        self._drawing = False

    def open_session(self, header: SessionHeader) -> None:
        """Record a session if it is new; InvalidInput names the first option in which a known one differs."""
        self._require_usable()
        stored = self._options(header.subject, header.query)
        if stored is None:
            self._add_session(header)
        elif stored != header.options:
            raise _other_option(header, stored)

    def headers(self, subject: str) -> list[SessionHeader]:
        """The parameters of all of a subject's queries, by name of the query."""
        self._require_usable()
        return self._headers_of(subject)

    def store(self, request: Request, draw: Callable[[], tuple[int, ...]], caps: Caps) -> Entry:
        """The stored entry of this step, or a new one made by one call of ``draw``.

        A stored step is returned whatever ``draw`` would give, and charged once. Raises InvalidInput when a
        public parameter differs from the stored step's, or when ``t`` is not the next step; BudgetExceeded,
        before drawing, when a cap would be passed.
        """
        self._require_usable()
        last = self._last_step_of(request.subject, request.query)
        if request.t <= last:
            return self._replay(request)
        self._require_next(request.t, last)
        if request.kind == "skip":
            return self._add(request, None, None)
        account = admit(self._account(request.subject), request, caps)
        return self._add(request, self._drawn(lambda: lattice_answer(draw())), account)

    def store_many(self, requests: Requests, draw: DrawMany, caps: Caps) -> StoredMany:
        """As ``store`` for every row, in the same order of work, with one draw for all that are not stored yet.

        All or nothing: what would refuse one row refuses all of them, before anything is drawn.
        """
        self._require_usable()
        releases, fresh = requests.releases, np.zeros(len(requests), dtype=np.bool_)
        stored: dict[int, Entry] = {}
        accounts: dict[str, Account] = {}
        for subject, first, end in requests.parts():
            last = self._last_step_of(subject, requests.query)
            known = first + int(np.searchsorted(requests.t[first:end], last, side="right"))
            stored |= {row: self._replay(requests[row]) for row in range(first, known)}
            if known < end:
                self._require_next(int(requests.t[known]), last)
                fresh[known:end] = True
            if releases[known:end].any():
                accounts[subject] = admit_many(self._account(subject), requests, known, end, caps)
        wanted = np.flatnonzero(fresh & releases)
        drawn = self._drawn(lambda: checked_answers(draw(wanted), len(wanted))) if len(wanted) else None
        together = stored_many(requests, fresh, wanted, drawn, stored)
        if fresh.any():
            self._add_many(requests, np.flatnonzero(fresh), wanted, drawn, accounts)
        return together

    def entry(self, subject: str, query: str, t: int) -> Entry | None:
        """A step, stored before or in this transaction."""
        self._require_usable()
        return self._entry(subject, query, t)

    def spent(self, subject: str) -> Spent:
        """What the subject has spent, this transaction included."""
        self._require_usable()
        return self._account(subject).spent

    def last_step(self, subject: str, query: str) -> int:
        """The last stored step of a session; 0 when there is none."""
        self._require_usable()
        return self._last_step(subject, query) or 0

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query.

        Theorem 7.1 needs them: a state without an edge keeps one partner in all queries of a step (errata 4).
        """
        self._require_usable()
        return self._plans_at(subject, t, query)

    def _replay(self, request: Request) -> Entry:
        entry = self._entry(request.subject, request.query, request.t)
        if entry is None:
            raise DphmmError(f"ledger: step {request.t} is missing although a later one is there; it is damaged")
        refuse_other_request(request, entry)
        return entry

    def _last_step_of(self, subject: str, query: str) -> int:
        last = self._last_step(subject, query)
        if last is None:
            raise InvalidInput("query", quoted(query), "a session that was opened in this ledger")
        return last

    def _require_next(self, t: int, last: int) -> None:
        if t != last + 1:
            raise InvalidInput("t", t, f"{last + 1}, the next step of this session, or a stored one")

    def _drawn(self, draw: Callable[[], Answers]) -> Answers:
        self._drawing = True
        try:
            return draw()
        finally:
            self._drawing = False

    def _require_usable(self) -> None:
        if self._ended:
            raise InvalidInput("transaction", "one that has ended", "use inside its with block")
        if self._drawing:
            # A draw that stores would take the step it is being drawn for.
            raise InvalidInput("draw", "a call of the transaction", "a draw that leaves the ledger alone")

    @abstractmethod
    def _headers_of(self, subject: str) -> list[SessionHeader]: ...

    @abstractmethod
    def _options(self, subject: str, query: str) -> Mapping[str, str] | None: ...

    @abstractmethod
    def _add_session(self, header: SessionHeader) -> None: ...

    @abstractmethod
    def _last_step(self, subject: str, query: str) -> int | None:
        """0 for a session without steps, None where there is no session."""

    @abstractmethod
    def _entry(self, subject: str, query: str, t: int) -> Entry | None: ...

    @abstractmethod
    def _account(self, subject: str) -> Account: ...

    @abstractmethod
    def _plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]: ...

    @abstractmethod
    def _add(self, request: Request, z: tuple[int, ...] | None, account: Account | None) -> Entry:
        """Record a step and, for a release, the account after it; the entry as it was recorded."""

    @abstractmethod
    def _add_many(
        self, requests: Requests, fresh: IntArray, drawn_for: IntArray, z: IntArray | None, accounts: dict[str, Account]
    ) -> None:
        """Record the rows ``fresh``, those of ``drawn_for`` with the answers z, and the accounts after them."""


def refuse_other_request(request: Request, entry: Entry) -> None:
    """A step asked again must agree in kind, epsilon and plan, which are public; nothing else is compared."""
    asked = request.plan.hash if request.plan else None
    again = f"as step {request.t} was stored; a stored step cannot be changed"
    if request.kind != entry.kind:
        raise InvalidInput("kind", request.kind, f"{entry.kind}, {again}")
    if request.epsilon is not None and entry.epsilon is not None and request.epsilon != entry.epsilon:
        raise InvalidInput("epsilon", shown(request.epsilon), f"{shown(entry.epsilon)}, {again}")
    if (request.t, request.steps) != (entry.t, entry.steps):
        raise InvalidInput("steps", request.steps, f"steps {entry.t} through {entry.through}, {again}")
    if asked != entry.plan_hash:
        raise InvalidInput("plan", asked, f"{entry.plan_hash}, {again}")


def _other_option(header: SessionHeader, stored: Mapping[str, str]) -> InvalidInput:
    names = sorted({*header.options, *stored})
    name = next(n for n in names if header.options.get(n) != stored.get(n))
    came, kept = header.options.get(name), stored.get(name)
    as_opened = "as this session was opened; keep it, or give the query another name"
    return InvalidInput(name, _option_shown(came), f"{_option_shown(kept)}, {as_opened}")


def _option_shown(value: str | None) -> str:
    return "nothing" if value is None else quoted(value)
