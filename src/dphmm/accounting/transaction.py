"""A ledger transaction, whatever stores its rows: replay stored rows, check caps and promises, then record.

Look up, compare public parameters, check the caps: that is ``admit``. Only then is something drawn, and recorded: that
is ``add``. That order, in one transaction that commits before anything is shown, is what leaves no double release and
no unspent one after a crash. Nothing random is read before ``admit`` has returned; what it returned serves once.

`ThreadTurn` lets one transaction at a time run within a process.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np

from dphmm.accounting.budget import (
    EMPTY,
    UNLIMITED,
    Account,
    Admitted,
    AdmittedMany,
    Caps,
    Looked,
    Spent,
    admit,
    admit_many,
    keep_promise,
    quoted,
)
from dphmm.accounting.clock import Bounds, overlap
from dphmm.accounting.moments import NO_MOMENT, added_moments, has_moments
from dphmm.accounting.promise import MOST_STEPS, SequencePromise
from dphmm.accounting.publication import (
    DELTA,
    LONGEST_RESULT,
    AdmittedPublication,
    Publication,
    Published,
    total_replaced,
)
from dphmm.accounting.records import (
    Entry,
    PlanRecord,
    Request,
    Requests,
    SessionHeader,
    Spending,
    StoredMany,
    check_exact,
    checked_answers,
    lattice_answer,
    shown,
    stored_many,
)
from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput, LedgerBusy
from dphmm.types import IntArray


class ThreadTurn:
    """A lock that other threads wait for and that its own thread may not take twice."""

    def __init__(self, timeout: float | None = None) -> None:
        # One that knows its thread: an interrupt just after it was taken must not leave it taken for ever.
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._timeout = timeout

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the turn. Raises InvalidInput when nested, LedgerBusy after the timeout (seconds)."""
        self.refuse_nested()
        try:
            if not self.take():
                raise LedgerBusy(
                    f"ledger: another thread held it for over {self._timeout:g} s; nothing was drawn or spent"
                )
            yield
        finally:
            self.give_back()

    def take(self) -> bool:
        """Take the turn, which this thread must not have, or False after the timeout."""
        if not self._lock.acquire(timeout=-1 if self._timeout is None else self._timeout):
            return False
        self._owner = threading.get_ident()
        return True

    def give_back(self) -> None:
        """End the turn of this thread, if it is its turn."""
        if self.mine:
            self._owner = None
        try:
            self._lock.release()
        except RuntimeError:
            # An interrupt came before it was taken.
            return

    @property
    def mine(self) -> bool:
        """True if this thread has the turn."""
        return self._owner == threading.get_ident()

    def refuse_nested(self) -> None:
        """Raises InvalidInput if this thread has the turn."""
        if self.mine:
            raise InvalidInput("transaction", "one inside another", "one at a time: leave the first before the next")


def checked_lease(name: str) -> str:
    """The name of a lease, which may become part of a file's name."""
    if not isinstance(name, str) or re.fullmatch(r"[a-z0-9-]{1,64}", name) is None:
        raise InvalidInput("name", name, "1 to 64 small letters, digits and hyphens")
    return name


class _InUse:
    """Around everything that is asked of a transaction: it must be usable, and its storage's failures are explained.

    A class, because a generator takes longer than most of what is asked; a new one each time, because one that a
    transaction kept would keep it, too: a circle, which waits for the garbage collector.
    """

    __slots__ = ("_transaction",)

    def __init__(self, transaction: BaseTransaction) -> None:
        self._transaction = transaction

    def __enter__(self) -> None:
        self._transaction._require_usable()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            meant = self._transaction._failure(error)
            if meant is not None:
                raise meant from error


class BaseTransaction(ABC):
    """A transaction over rows that a subclass finds and adds; see the protocol ``Transaction``.

    ``key_of``: the key that all names of one person share in this ledger.
    """

    def __init__(self, key_of: Callable[[str], str]) -> None:
        self._key_of = key_of
        self._ended = False
        self._admitted: Admitted | AdmittedMany | AdmittedPublication | None = None
        #: What publications take of every account; None until somebody asks.
        self._charge: Account | None = None

    def open_session(self, header: SessionHeader) -> None:
        """Record a session if it is new; InvalidInput names the first option in which a known one differs."""
        with _InUse(self):
            stored = self._options(header.subject, header.query)
            if stored is None:
                known = self._name(self._key_of(header.subject))
                if known not in (None, header.subject):
                    expected = f"{quoted(str(known))}, as this ledger calls that person"
                    raise InvalidInput("subject", quoted(header.subject), expected)
                self._add_session(header)
            elif stored != header.options:
                raise _other_option(header, stored)

    def bind(self, subject: str, caps: Caps, blocks: Sequence[Bounds] = ()) -> Caps:
        """Give a subject's account caps and a promise that stay; returns all of them. Raises as the protocol says."""
        with _InUse(self):
            before = self._caps(subject)
            after = before.joined(caps, quoted(subject))
            if after == before:
                return before
            promise = after.promise if before.promise is None else None
            if promise is None:
                self._put_caps(subject, after)
                return after
            if blocks and (promise.local is None or overlap(sorted(blocks))):
                raise InvalidInput("blocks", f"{len(blocks)} of them", "blocks of local days that do not overlap")
            spent = self._epsilons(subject, 1, MOST_STEPS)
            if not promise.beside(blocks).holds(spent):
                raise BudgetExceeded(f"promise: {quoted(subject)} has already spent more than {promise}")
            self._put_caps(subject, after)
            if promise.local is not None:
                self._add_blocks(subject, blocks)
                self._keep_blocks(subject, [t for t, _ in spent])
            return after

    def look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        """The stored state of each of these subjects, in their order, this transaction included."""
        with _InUse(self):
            return self._look(subjects, query)

    def version(self, subject: str) -> int:
        """The version of a subject, this transaction included: a count of its changes, as in `Looked`."""
        with _InUse(self):
            return self._version(subject)

    def headers(self, subject: str) -> list[SessionHeader]:
        """The parameters of all of a subject's queries, by name of the query."""
        with _InUse(self):
            return self._headers_of(subject)

    def admit(self, request: Request, caps: Caps) -> Admitted:
        """Look for this step, and refuse it where it has to be refused; nothing is drawn or recorded."""
        with _InUse(self):
            last = self._last_step_of(request.subject, request.query)
            moments = None
            if has_moments(self._origin(request.subject, request.query)):
                columns = (np.array([value]) for value in (request.t, request.steps, request.moment))
                moments = self._new_moments(request.subject, *columns)
            if request.t <= last:
                return Admitted(request, self._replay(request), None)
            self._require_next(request.t, last)
            account = None
            if request.epsilon is not None:
                held, promise = self._held(request.subject, caps)
                account, charge = self._account(request.subject), self._charged(held)
                if charge is EMPTY:
                    account = admit(account, request, held)
                else:
                    account = admit(account.beside(charge), request, held).without(charge)
                if promise is not None:
                    self._keep_promise(promise, request.subject, request.query, [(request.t, request.epsilon)])
            self._admitted = Admitted(request, None, account, moments)
            return self._admitted

    def add(self, admitted: Admitted, z: tuple[int, ...] | None) -> Entry:
        """Record an admitted step with its answer, None for a skip: the entry as it was recorded.

        Raises InvalidInput for an invalid answer, and for a step that was not the last one admitted here, that is
        stored already, or that was recorded before.
        """
        with _InUse(self):
            self._require_admitted(admitted)
            request = admitted.request
            answer = None if request.kind == "skip" else lattice_answer(() if z is None else z)
            if admitted.moments is not None and len(admitted.moments):
                self._add_moments(request.subject, admitted.moments)
            if answer is None:
                return self._add(request, None, None)
            entry = self._add(request, answer, admitted.account)
            self._keep_blocks(request.subject, [request.t])
            return entry

    def admit_many(self, requests: Requests, caps: Caps) -> AdmittedMany:
        """As ``admit`` for every row."""
        with _InUse(self):
            releases, fresh = requests.releases, np.zeros(len(requests), dtype=np.bool_)
            stored: dict[int, Entry] = {}
            accounts: dict[str, Account] = {}
            moments: dict[str, IntArray] = {}
            # Of many subjects with a row each, slices of arrays would take longer than all else.
            t, asks = requests.t.tolist(), releases.tolist()
            for subject, first, end in requests.parts():
                last = self._last_step_of(subject, requests.query)
                if has_moments(self._origin(subject, requests.query)):
                    rows = slice(first, end)
                    coming = np.full(end - first, NO_MOMENT) if requests.moment is None else requests.moment[rows]
                    moments[subject] = self._new_moments(subject, requests.t[rows], requests.steps[rows], coming)
                known = bisect_right(t, last, first, end)
                for row in range(first, known):
                    stored[row] = self._replay(requests[row])
                if known < end:
                    self._require_next(t[known], last)
                    fresh[known:end] = True
                if any(asks[known:end]):
                    held, promise = self._held(subject, caps)
                    account, charge = self._account(subject), self._charged(held)
                    if charge is EMPTY:
                        after = admit_many(account, requests, known, end, held)
                    else:
                        after = admit_many(account.beside(charge), requests, known, end, held).without(charge)
                    if promise is not None:
                        self._keep_promise(promise, subject, requests.query, requests.epsilons(known, end))
                    accounts[subject] = after
            admitted = AdmittedMany(requests, fresh, np.flatnonzero(fresh & releases), stored, accounts, moments)
            self._admitted = admitted
            return admitted

    def add_many(self, admitted: AdmittedMany, z: IntArray | None) -> StoredMany:
        """As ``add`` for every row that is not stored yet; ``z`` (k, d) are the answers of the rows ``wanted``."""
        with _InUse(self):
            self._require_admitted(admitted)
            requests, wanted, fresh = admitted.requests, admitted.wanted, admitted.fresh
            drawn = checked_answers(z, len(wanted)) if len(wanted) else None
            together = stored_many(requests, fresh, wanted, drawn, admitted.stored)
            for subject, moments in admitted.moments.items():
                if len(moments):
                    self._add_moments(subject, moments)
            if fresh.any():
                self._add_many(requests, np.flatnonzero(fresh), wanted, drawn, admitted.accounts)
                for subject, first, end in requests.parts():
                    if subject in admitted.accounts and self._caps(subject).by_local_days:
                        asked = wanted[(wanted >= first) & (wanted < end)]
                        self._keep_blocks(subject, requests.t[asked].tolist())
            return together

    def admit_publication(self, publication: Publication, delta: Fraction | None = None) -> AdmittedPublication:
        """Look for a publication by its name, and refuse it where it has to be refused, before anything is drawn."""
        with _InUse(self):
            stored = self._publication(publication.name)
            if stored is not None:
                refuse_other_publication(publication, stored)
                return AdmittedPublication(publication, stored, None)
            ledger_delta = self._delta()
            delta = None if ledger_delta is not None or publication.rho is None else delta
            self._keep_caps(publication, ledger_delta if delta is None else delta)
            admitted = AdmittedPublication(publication, None, delta)
            self._admitted = admitted
            return admitted

    def add_publication(self, admitted: AdmittedPublication, result: bytes) -> Published:
        """Record an admitted publication with its result: as it was recorded. Raises as `add` does."""
        with _InUse(self):
            self._require_admitted(admitted)
            if type(result) is not bytes or len(result) > LONGEST_RESULT:
                fault = f"{len(result)} bytes" if type(result) is bytes else type(result).__name__
                raise InvalidInput("result", fault, f"bytes, at most {LONGEST_RESULT}")
            time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            published = Published(admitted.publication, len(self._publications()) + 1, time, result)
            if admitted.delta is not None:
                self._put_fact("delta", admitted.delta)
            self._charge = None
            return self._add_publication(published)

    def bind_publications(self, cap: Fraction) -> None:
        """Give all publications of the ledger together a cap that stays; see the protocol."""
        with _InUse(self):
            check_exact(cap, "cap_epsilon")
            stored = self._fact("cap_epsilon")
            if stored is None:
                self._put_fact("cap_epsilon", cap)
            elif cap != stored:
                stays = f"{shown(stored)}, the cap of all publications of this ledger, which stays"
                raise InvalidInput("cap_epsilon", shown(cap), stays)

    def entry(self, subject: str, query: str, t: int) -> Entry | None:
        """A step, stored before or in this transaction."""
        with _InUse(self):
            return self._entry(subject, query, t)

    def spent(self, subject: str) -> Spent:
        """The spending of the subject, this transaction included."""
        with _InUse(self):
            return self._account(subject).spent

    def room(self, subject: str, t: int) -> Fraction | None:
        """The largest epsilon that the subject's promise leaves to step ``t``; None where there is no promise."""
        with _InUse(self):
            promise = self._placed(subject, self._caps(subject).promise)
            return None if promise is None else promise.room(self._epsilons(subject, *promise.reach(t, t)), t)

    def blocks(self, subject: str) -> list[Bounds]:
        """The blocks of local days in which a subject has an answer, this transaction included: see the protocol."""
        with _InUse(self):
            return sorted(self._blocks(subject))

    def last_step(self, subject: str, query: str) -> int:
        """The last stored step of a session; 0 when there is none."""
        with _InUse(self):
            return self._last_step(subject, query) or 0

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query.

        Theorem 7.1 needs them: a state without an edge keeps one partner in all queries of a step (errata 4).
        """
        with _InUse(self):
            return self._plans_at(subject, t, query)

    def put_snapshot(self, subject: str, query: str, t: int, belief: bytes) -> None:
        """Keep a belief that follows from the session's stored steps up to ``t``, in place of the snapshot before it.

        Raises InvalidInput for a step that is not stored yet, and for a belief that is not bytes.
        """
        with _InUse(self):
            last = self._last_step_of(subject, query)
            if type(t) is not int or not 0 <= t <= last:
                raise InvalidInput("t", t, f"0, or a stored step up to {last}")
            if type(belief) is not bytes:
                raise InvalidInput("belief", type(belief).__name__, "bytes")
            self._put_snapshot(subject, query, t, belief)

    def _origin(self, subject: str, query: str) -> str | None:
        """The ``origin`` of a session's steps; None without a session or an origin."""
        options = self._options(subject, query)
        return None if options is None else options.get("origin")

    def _new_moments(self, subject: str, t: IntArray, steps: IntArray, moments: IntArray) -> IntArray:
        """The moments that requests for steps of a subject add. Raises InvalidInput as `added_moments` does."""
        return added_moments(*self._moments(subject, int(t[0])), t, steps, moments)

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

    def _require_admitted(self, admitted: Admitted | AdmittedMany | AdmittedPublication) -> None:
        if admitted is not self._admitted:
            # Totals and the next step may have moved since, or the answer is in the ledger already.
            raise InvalidInput("admitted", "not what this transaction admitted last", "each admission recorded once")
        self._admitted = None

    def _held(self, subject: str, caps: Caps) -> tuple[Caps, SequencePromise | None]:
        """The lower of the caps of a caller and those of the account, and the account's promise."""
        account = self._caps(subject)
        return caps if account is UNLIMITED else account.within(caps), self._placed(subject, account.promise)

    def _placed(self, subject: str, promise: SequencePromise | None) -> SequencePromise | None:
        """The promise of an account, with the blocks of local days that are stored."""
        if promise is None or promise.local is None:
            return promise
        return promise.beside(self._blocks(subject))

    def _keep_blocks(self, subject: str, asked: Sequence[int]) -> None:
        """Record the bounds of the blocks of local days of these steps, where their first answer is recorded now."""
        promise = self._placed(subject, self._caps(subject).promise)
        if promise is not None and promise.local is not None and len(asked):
            self._add_blocks(subject, promise.local.stored_as(asked))

    def _charged(self, held: Caps) -> Account:
        """The charge of publications on an account with these caps. Raises BudgetExceeded where they have no bound."""
        if held.epsilon is None and held.cost is None:
            return EMPTY
        if self._charge is None:
            self._charge = self._charge_with(None, self._delta())
        return self._charge

    def _charge_with(self, asked: Publication | None, delta: Fraction | None) -> Account:
        """The charge on every account, of the ledger's publications and of one that is ``asked`` for."""
        known = [*self._publications(), *([] if asked is None else [asked])]
        if not known:
            return EMPTY
        total = total_replaced(known, DELTA if delta is None else delta)
        if isinstance(total.epsilon, Fraction):
            return total.charge
        name = next((each.name for each in known if not each.bounded), known[-1].name)
        raise BudgetExceeded(
            f"publication: nothing bounds what {quoted(name)} loses of one person, so no cap can be kept; "
            "nothing was drawn or spent"
        )

    def _keep_caps(self, asked: Publication, delta: Fraction | None) -> None:
        """Refuse a publication that would pass the cap of the publications, or that of any account."""
        cap, capped = self._fact("cap_epsilon"), self._capped()
        if cap is None and not capped:
            return
        charge, name = self._charge_with(asked, delta), quoted(asked.name)
        if cap is not None and charge.epsilon > cap:
            raise BudgetExceeded(
                f"publication: with {name} all publications of this ledger would lose {shown(charge.epsilon)} of one "
                f"person, cap {shown(cap)}; nothing was drawn or spent"
            )
        for subject in capped:
            if not self._account(subject).beside(charge).within(self._caps(subject)):
                raise BudgetExceeded(
                    f"publication: {name} would take the account of {quoted(subject)} over its cap, as it counts for "
                    "every person of this ledger; nothing was drawn or spent"
                )

    def _delta(self) -> Fraction | None:
        """The delta at which rho terms are converted, as set by the first publication with one."""
        return self._fact("delta")

    def _keep_promise(self, promise: SequencePromise, subject: str, query: str, asked: Iterable[Spending]) -> None:
        """Refuse the coming releases of a subject, by step, where one would break the promise of its account."""
        coming = list(asked)
        if promise.steps is not None:
            spent = [(1, self._account(subject).epsilon)]
        else:
            spent = self._epsilons(subject, *promise.reach(coming[0][0], coming[-1][0]))
        keep_promise(promise, spent, coming, subject, query)

    def _failure(self, error: BaseException) -> BaseException | None:
        """The error that a failure of the storage becomes; None for anything else."""
        return None

    def _require_usable(self) -> None:
        if self._ended:
            raise InvalidInput("transaction", "one that has ended", "use inside its with block")

    def _look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        return [self._looked(subject, query) for subject in subjects]

    def _looked(self, subject: str, query: str) -> Looked:
        header, others = None, []
        for session in self._headers_of(subject):
            if session.query == query:
                header = session
            else:
                others.append(session)
        last = 0 if header is None else self._last_step(subject, query) or 0
        return Looked(header, last, tuple(others), self._account(subject), self._version(subject))

    @abstractmethod
    def _headers_of(self, subject: str) -> list[SessionHeader]: ...

    @abstractmethod
    def _name(self, key: str) -> str | None: ...

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
    def _caps(self, subject: str) -> Caps: ...

    @abstractmethod
    def _put_caps(self, subject: str, caps: Caps) -> None:
        """Record the caps that an account has from now on."""

    @abstractmethod
    def _blocks(self, subject: str) -> Sequence[Bounds]:
        """The stored bounds of blocks of local days, this transaction's too."""

    @abstractmethod
    def _add_blocks(self, subject: str, blocks: Sequence[Bounds]) -> None: ...

    @abstractmethod
    def _epsilons(self, subject: str, first: int, last: int) -> list[Spending]:
        """(step, epsilon) of all releases of all queries from step ``first`` to ``last``, this transaction's too."""

    @abstractmethod
    def _moments(self, subject: str, first: int) -> tuple[int, IntArray]:
        """The moments of all steps of a subject from step ``first`` or an earlier one on, and the number of that step.

        The last one is among them; (1, none) where there are none.
        """

    @abstractmethod
    def _add_moments(self, subject: str, moments: IntArray) -> None:
        """Record the moments of the next steps of a subject."""

    def put_moments(self, subject: str, moments: IntArray) -> None:
        """Record the moments of the first steps (k,) of a subject. Raises InvalidInput for a subject with steps.

        For programs that make a ledger again from rows that have all of them.
        """
        with _InUse(self):
            first, stored = self._moments(subject, 1)
            t = np.arange(1, len(moments) + 1)
            added = added_moments(first, stored, t, np.ones_like(t), moments)
            if len(added) < len(moments):
                raise InvalidInput("moment", "moments of steps that have some already", "a subject without steps")
            if len(added):
                self._add_moments(subject, added)

    @abstractmethod
    def _version(self, subject: str) -> int: ...

    @abstractmethod
    def _put_snapshot(self, subject: str, query: str, t: int, belief: bytes) -> None: ...

    @abstractmethod
    def _plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]: ...

    @abstractmethod
    def _publications(self) -> Sequence[Publication]:
        """All of them in the order in which they were stored, this transaction's too."""

    @abstractmethod
    def _publication(self, name: str) -> Published | None: ...

    @abstractmethod
    def _add_publication(self, published: Published) -> Published:
        """Record a publication: as it was recorded."""

    @abstractmethod
    def _capped(self) -> Sequence[str]:
        """The subjects whose accounts have caps."""

    @abstractmethod
    def _fact(self, name: str) -> Fraction | None:
        """An exact number that holds of all publications: "delta" or "cap_epsilon"."""

    @abstractmethod
    def _put_fact(self, name: str, value: Fraction) -> None: ...

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


def refuse_other_publication(asked: Publication, stored: Published) -> None:
    """A publication asked again must agree in everything that is public."""
    publication = stored.publication
    if asked != publication:
        names = ("kind", "relation", "unit", "units", "loss", "epsilon", "rho", "delta")
        other = next((f"another {name}" for name in names if getattr(asked, name) != getattr(publication, name)), None)
        fault = f"{quoted(asked.name)} with {other or 'other settings'} than it was stored with at {stored.time}"
        raise InvalidInput("event_id", fault, "another id for another publication")


def _other_option(header: SessionHeader, stored: Mapping[str, str]) -> InvalidInput:
    names = sorted({*header.options, *stored})
    name = next(n for n in names if header.options.get(n) != stored.get(n))
    asked, recorded = header.options.get(name), stored.get(name)
    as_opened = "as this session was opened; keep it, or give the query another name"
    return InvalidInput(name, _option_shown(asked), f"{_option_shown(recorded)}, {as_opened}")


def _option_shown(value: str | None) -> str:
    return "nothing" if value is None else quoted(value)
