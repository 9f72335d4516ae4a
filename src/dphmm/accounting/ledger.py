"""The ledger: the protocol that a session writes to, the fold that replays a history, and summaries of the spending.

A release is a stored fact. It is written with its cost in one transaction before anyone sees it; the same
(subject, query, t) always returns the stored answer and costs nothing more. A summary gives the totals of each subject
and query, with the statement that each total makes.

`ledger_summary` is all of it as one result, for people, pages and services.

Proofs: docs/proofs/ledger.md, docs/proofs/account.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, Protocol, TypeVar

from dphmm._checks import exact_number
from dphmm.accounting.budget import (
    EMPTY,
    UNLIMITED,
    Account,
    Admitted,
    AdmittedMany,
    Caps,
    Looked,
    Spent,
    recount,
)
from dphmm.accounting.clock import Bounds
from dphmm.accounting.event import Guarantee, ReleaseEvent, check_delta, event_of, neighbouring_paths, theorem_7_2
from dphmm.accounting.memory import MemoryLedger
from dphmm.accounting.moments import Prefix
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.publication import DELTA, AdmittedPublication, PersonTotals, Publication, Published, totals
from dphmm.accounting.records import Entry, Kind, PlanRecord, Request, Requests, SessionHeader, StoredMany
from dphmm.errors import InvalidInput
from dphmm.types import Exact, IntArray, Loss

__all__ = [
    "Account",
    "Admitted",
    "AdmittedMany",
    "Caps",
    "Entry",
    "Kind",
    "Ledger",
    "Looked",
    "MemoryLedger",
    "PlanRecord",
    "Request",
    "Requests",
    "SequencePromise",
    "SessionHeader",
    "Spent",
    "StoredMany",
    "Transaction",
    "recount",
    "replay",
]

State = TypeVar("State")


class Transaction(Protocol):
    """A transaction stores all or nothing, and nothing of it may be shown before it has committed.

    The thread that began it uses it.
    """

    def open_session(self, header: SessionHeader) -> None:
        """Record a session if it is new.

        Raises InvalidInput naming the first option in which a known session differs, with both values, and for another
        spelling of somebody who is there (`names_of`): a person has one account.
        """
        ...

    def bind(self, subject: str, caps: Caps, blocks: Sequence[Bounds] = ()) -> Caps:
        """Give a subject's account caps and a promise that stay: every later admission of any query is held to them.

        ``blocks``: bounds that another ledger has stored, of a promise over local days that is given now.
        Returns all caps and the promise of the account. Raises InvalidInput for others than are stored, BudgetExceeded
        where stored releases break a promise.
        """
        ...

    def look(self, subjects: Sequence[str], query: str) -> list[Looked]:
        """The stored state of each of these subjects, in their order, this transaction included."""
        ...

    def version(self, subject: str) -> int:
        """The version of a subject, this transaction included: a count of its changes, as in `Looked`.

        Whoever knew everything at one version knows it still while the version is the same.
        """
        ...

    def headers(self, subject: str) -> list[SessionHeader]:
        """The parameters of all of a subject's queries, this transaction included."""
        ...

    def admit(self, request: Request, caps: Caps) -> Admitted:
        """Look for a step, and refuse it where it has to be refused, before anything is drawn.

        Compares kind, epsilon and plan hash with a stored step (InvalidInput); requires ``t`` to be the next step
        (InvalidInput); checks caps and promise, those given and those of the account, against all queries
        (BudgetExceeded).
        """
        ...

    def add(self, admitted: Admitted, z: tuple[int, ...] | None) -> Entry:
        """Record the request admitted last, with its answer (None for a skip); once."""
        ...

    def admit_many(self, requests: Requests, caps: Caps) -> AdmittedMany:
        """As ``admit`` for every row: a refusal of one row refuses all."""
        ...

    def add_many(self, admitted: AdmittedMany, z: IntArray | None) -> StoredMany:
        """As ``add`` for the rows ``admitted.wanted`` and the skips between them."""
        ...

    def admit_publication(self, publication: Publication, delta: Fraction | None = None) -> AdmittedPublication:
        """Look for a publication by its name, and refuse it where it has to be refused, before anything is drawn.

        ``delta``: where rho terms are converted, if this is the first publication with one. Raises InvalidInput where
        another publication has the name, BudgetExceeded where it would pass the cap of the publications or of any
        account: it counts for every person of the ledger.
        """
        ...

    def add_publication(self, admitted: AdmittedPublication, result: bytes) -> Published:
        """Record the publication that was admitted last, with its result; once."""
        ...

    def bind_publications(self, cap: Fraction) -> None:
        """Give all publications together a cap on one person's loss in them, where its records are replaced.

        It stays: raises InvalidInput for another one.
        """
        ...

    def entry(self, subject: str, query: str, t: int) -> Entry | None:
        """A step, stored before or in this transaction."""
        ...

    def spent(self, subject: str) -> Spent:
        """The subject's totals over all queries, this transaction included."""
        ...

    def room(self, subject: str, t: int) -> Fraction | None:
        """The largest epsilon that the subject's promise leaves to step ``t``; None where there is no promise."""
        ...

    def blocks(self, subject: str) -> list[Bounds]:
        """As `Ledger.blocks`, this transaction included."""
        ...

    def last_step(self, subject: str, query: str) -> int:
        """The last stored step of a session; 0 when there is none."""
        ...

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query."""
        ...

    def put_snapshot(self, subject: str, query: str, t: int, belief: bytes) -> None:
        """Keep a belief that follows from the session's stored steps up to ``t``, in place of the snapshot before it.

        Raises InvalidInput for a step that is not stored yet, and for a belief that is not bytes.
        """
        ...


class Ledger(Protocol):
    """The store of releases. All reads show what has been committed, never an open transaction.

    ``spelling``: the rule by which names are of one person (`dphmm.accounting.person.SPELLINGS`).

    Threads may share a ledger: of its transactions one is open at a time, and the others wait for it.
    """

    spelling: str

    def names_of(self, subjects: Sequence[str]) -> list[str]:
        """The name of each of these people in this ledger: the spelling that came first; a new person's own.

        Raises InvalidInput for a name without a key (`dphmm.accounting.person.person_key`).
        """
        ...

    def transaction(self, subjects: Sequence[str] = ()) -> AbstractContextManager[Transaction]:
        """One immediate transaction: commits on leaving normally, rolls back on an exception; not nested.

        ``subjects``: all that it will ask about or store for. A ledger whose transactions run side by side locks them
        before anything else, in sorted order; one with a single writer needs no names.
        """
        ...

    def lease(self, name: str) -> AbstractContextManager[None]:
        """Hold ``name`` against all others who ask this ledger for it; it ends with its holder.

        Raises LedgerBusy at once if somebody has it, InvalidInput for a name other than letters, digits and hyphens.
        """
        ...

    def header(self, subject: str, query: str) -> SessionHeader | None:
        """The parameters of a session, or None."""
        ...

    def entries(self, subject: str, query: str, first: int = 1) -> list[Entry]:
        """The stored steps of a session that begin at step ``first`` or later, in order of t."""
        ...

    def plan(self, hash: str) -> PlanRecord:
        """The plan of this hash. Raises InvalidInput for one that is not stored."""
        ...

    def plans_at(self, subject: str, t: int, query: str) -> list[PlanRecord]:
        """The plans under which the subject's *other* queries released step t, by name of the query."""
        ...

    def spent(self, subject: str) -> Spent:
        """The subject's totals over all queries."""
        ...

    def caps(self, subject: str) -> Caps:
        """The caps and the promise that stay with the subject's account."""
        ...

    def blocks(self, subject: str) -> list[Bounds]:
        """The bounds of each block in which the subject has an answer, of any query, for a promise over local days.

        In bins of the model's step since 1970, ascending. They were stored with the block's first answer, and stay,
        whatever a newer zone table says.
        """
        ...

    def publications(self) -> list[Publication]:
        """All publications, in the order in which they were stored."""
        ...

    def published(self, name: str) -> Published | None:
        """The publication of this name with its result, or None."""
        ...

    def facts(self) -> dict[str, Fraction]:
        """The facts of all publications: "delta", at which rho terms are converted, and "cap_epsilon"."""
        ...

    def sessions(self) -> list[tuple[str, str]]:
        """All (subject, query), sorted."""
        ...

    def sessions_of(self, subjects: Sequence[str]) -> list[tuple[str, str]]:
        """All (subject, query) of these subjects, sorted."""
        wanted = set(subjects)
        return [key for key in self.sessions() if key[0] in wanted]

    def headers_of(self, subjects: Sequence[str]) -> list[SessionHeader]:
        """The parameters of all sessions of these subjects, by subject and query."""
        headers = (self.header(*key) for key in self.sessions_of(subjects))
        return [header for header in headers if header is not None]

    def entries_of(self, subjects: Sequence[str]) -> list[Entry]:
        """The stored steps of all sessions of these subjects, by subject, query and t."""
        return [entry for key in self.sessions_of(subjects) for entry in self.entries(*key)]

    def spent_of(self, subjects: Sequence[str]) -> list[Spent]:
        """The total spending of each of these subjects over all queries, in their order; zero for unknown ones."""
        return [self.spent(subject) for subject in subjects]

    def moments_of(self, subjects: Sequence[str]) -> list[IntArray]:
        """The moments (k,) that the steps 1 to k of each of these subjects stand for, all queries together.

        None for those whose steps stand for numbers (`dphmm.accounting.moments`).
        """
        ...

    def prefixes_of(self, subjects: Sequence[str]) -> list[Prefix | None]:
        """The stored prefix of each of these subjects: its rows without any mark that have steps; None without one.

        They are kept for the owner alone, beside the ledger and never in it. Raises InvalidInput where they are gone.
        """
        ...

    def keep_prefixes(self, prefixes: Mapping[str, Prefix]) -> None:
        """Keep these for the owner, in a transaction that stores their steps, beside those of the last commit.

        If it commits they are what `prefixes_of` gives, and else those before.
        """
        ...

    def owner_key(self) -> bytes:
        """The 32 bytes that key the digests of a ledger: for the owner alone, kept beside it and never in it."""
        ...

    def snapshot(self, subject: str, query: str) -> tuple[int, bytes] | None:
        """The step and the bytes of the session's snapshot; None where there is none, or where it is damaged."""
        ...

    def close(self) -> None:
        """Release the resources of the ledger."""
        ...


def replay(entries: Iterable[Entry], state: State, step: Callable[[State, Entry], State]) -> State:
    """Fold a session's history into its state. Raises InvalidInput if a step is missing or out of order."""
    expected = 1
    for entry in entries:
        if entry.t != expected:
            raise InvalidInput("t", entry.t, f"step {expected}: a history without gaps, in order")
        state = step(state, entry)
        expected = entry.through + 1
    return state


EPSILON_STATEMENT = neighbouring_paths([]).statement
#: Added where steps may have another policy than their session.
OWN_POLICIES = "the edges of a step are those of its own policy, which may be another one at each step"
COST_STATEMENT = (
    "Theorem 7.2: bounds the loss of any two histories of possible states; the sum of the costs, "
    "each rounded up to 1e-9"
)


@dataclass(frozen=True)
class QuerySummary:
    """The totals of one (subject, query)."""

    subject: str
    query: str
    releases: int
    skips: int
    constants: int
    insecure: int
    epsilon: Guarantee
    cost: Guarantee


@dataclass(frozen=True)
class SubjectSummary:
    """The totals of one subject over all queries, and the caps and the promise of the account."""

    subject: str
    queries: tuple[QuerySummary, ...]
    epsilon: Guarantee
    cost: Guarantee
    caps: Caps = UNLIMITED

    @property
    def insecure(self) -> int:
        """Releases drawn from bits that anyone can replay: they promise nothing."""
        return sum(query.insecure for query in self.queries)


def summarise(entries: Iterable[Entry], headers: Iterable[SessionHeader] = ()) -> tuple[SubjectSummary, ...]:
    """Sum up entries by subject and query, sorted; headers, where given, tell if steps had their own policy."""
    known = {(header.subject, header.query): header for header in headers}
    tallies: dict[tuple[str, str], _Tally] = {}
    for entry in entries:
        key = (entry.subject, entry.query)
        if key not in tallies:
            tallies[key] = _Tally(known.get(key))
        tallies[key].add(entry)
    by_subject = groupby(sorted(tallies), key=lambda key: key[0])
    return tuple(_subject(subject, [(key[1], tallies[key]) for key in keys]) for subject, keys in by_subject)


def summarise_ledger(ledger: Ledger, subject: str | None = None) -> tuple[SubjectSummary, ...]:
    """The summary of a whole ledger, or of one subject in it."""
    keys = [key for key in ledger.sessions() if subject is None or key[0] == subject]
    headers = [header for key in keys if (header := ledger.header(*key)) is not None]

    def entries() -> Iterator[Entry]:
        for key in keys:
            yield from ledger.entries(*key)

    summaries = summarise(entries(), headers)
    return tuple(replace(each, caps=ledger.caps(each.subject)) for each in summaries)


class _Tally:
    def __init__(self, header: SessionHeader | None) -> None:
        self.header = header
        self.account = EMPTY
        self.releases = self.skips = self.constants = self.insecure = 0

    def add(self, entry: Entry) -> None:
        event = event_of(entry)
        if isinstance(event, ReleaseEvent):
            self.releases += 1
            self.constants += event.constant
            self.insecure += not event.secure
            self.account = self.account.plus(event.epsilon, event.cost)
        else:
            self.skips += entry.steps

    @property
    def own_policies(self) -> bool:
        """True if single steps may have had another policy than the session."""
        return self.header is not None and "policy" in self.header.options.get("varies", "").split(",")


def _guarantees(account: Account, own_policies: bool) -> tuple[Guarantee, Guarantee]:
    theorem, paths = theorem_7_2([account.spent.cost]), neighbouring_paths([account.epsilon])
    if own_policies:
        paths = Guarantee(paths.value, f"{paths.statement}; {OWN_POLICIES}", "docs/proofs/choices.md")
    return paths, Guarantee(theorem.value, COST_STATEMENT, theorem.citation)


def _subject(subject: str, tallies: list[tuple[str, _Tally]]) -> SubjectSummary:
    queries, total = [], EMPTY
    for query, tally in tallies:
        epsilon, cost = _guarantees(tally.account, tally.own_policies)
        counts = (tally.releases, tally.skips, tally.constants, tally.insecure)
        queries.append(QuerySummary(subject, query, *counts, epsilon, cost))
        part = tally.account
        total = total.beside(part)
    own_policies = any(tally.own_policies for _, tally in tallies)
    return SubjectSummary(subject, tuple(queries), *_guarantees(total, own_policies))


@dataclass(frozen=True)
class LedgerSummary:
    """The totals of each subject and the publications of a ledger; where rho terms are converted, once.

    ``cap`` is that of the publications, None for none.
    """

    subjects: Sequence[SubjectSummary] = ()
    publications: Sequence[Publication] = ()
    cap: Fraction | None = None
    delta: Fraction = DELTA

    def counts(self) -> dict[str, int]:
        """The numbers of subjects, releases, skips, public constants and replayable releases."""
        queries = [query for summary in self.subjects for query in summary.queries]
        names = ("releases", "skips", "constants", "insecure")
        return {"subjects": len(self.subjects)} | {
            name: sum(getattr(query, name) for query in queries) for name in names
        }

    def largest(self) -> tuple[Guarantee, Guarantee]:
        """The largest epsilon and the largest cost of a subject: different people's losses are not added."""
        return (
            max((summary.epsilon for summary in self.subjects), key=lambda total: total.value),
            max((summary.cost for summary in self.subjects), key=lambda total: total.value),
        )

    def totals_of(self, spent: Loss) -> PersonTotals:
        """The loss of a person in all publications, and in releases whose epsilons have this sum."""
        assert isinstance(spent, Fraction)
        return totals(spent, self.publications, self.delta)

    def document(self) -> dict[str, Any]:
        """The whole summary for machines, as `dphmm account --json` prints it."""
        counts: dict[str, Any] = self.counts()
        if self.subjects:
            epsilon, cost = self.largest()
            counts |= {"largest_epsilon": guarantee_document(epsilon), "largest_cost": guarantee_document(cost)}
        return {
            "subjects": [_subject_document(summary, self) for summary in self.subjects],
            "totals": counts,
            "publications": [_publication_document(each) for each in self.publications],
            "cap_publications": None if self.cap is None else str(self.cap),
            "delta": str(self.delta),
            "anybody": self._person_document(Fraction(0)),
        }

    def _person_document(self, spent: Loss) -> dict[str, Any]:
        both = self.totals_of(spent)
        return {
            "replaced": {**guarantee_document(both.replaced), "delta": str(both.replaced_delta)},
            "present": {**guarantee_document(both.present), "delta": str(both.present_delta)},
        }


def ledger_summary(ledger: Ledger, subject: str | None = None, delta: Exact | None = None) -> LedgerSummary:
    """The spending in a ledger: of all its subjects, or of one.

    Parameters
    ----------
    subject : one subject only; publications are listed all the same.
    delta : the delta at which rho terms of publications are converted; by default the ledger's.

    Raises
    ------
    InvalidInput : a subject that the ledger does not have, or an invalid delta.

    Examples
    --------
    >>> from dphmm.accounting import MemoryLedger
    >>> ledger_summary(MemoryLedger()).counts()
    {'subjects': 0, 'releases': 0, 'skips': 0, 'constants': 0, 'insecure': 0}
    """
    subjects, facts = summarise_ledger(ledger, subject), ledger.facts()
    at = facts.get("delta", DELTA) if delta is None else check_delta(exact_number(delta, "delta"), "delta")
    summary = LedgerSummary(subjects, ledger.publications(), facts.get("cap_epsilon"), at)
    if subject is not None and not subjects:
        raise InvalidInput("subject", subject, "a subject of this ledger")
    return summary


def guarantee_document(guarantee: Guarantee) -> dict[str, Any]:
    """A total for machines: the value (null when unbounded), the same exactly, and its meaning."""
    bounded = guarantee.value != math.inf
    return {
        "value": float(guarantee.value) if bounded else None,
        "exact": str(guarantee.value) if bounded else None,
        "statement": guarantee.statement,
        "citation": guarantee.citation,
    }


def _subject_document(summary: SubjectSummary, account: LedgerSummary) -> dict[str, Any]:
    return {
        "subject": summary.subject,
        "epsilon": guarantee_document(summary.epsilon),
        "cost": guarantee_document(summary.cost),
        "cap_epsilon": None if summary.caps.epsilon is None else str(summary.caps.epsilon),
        "cap_cost": None if summary.caps.cost is None else str(summary.caps.cost),
        "promise": None if summary.caps.promise is None else _promise_document(summary.caps.promise),
        "with_publications": account._person_document(summary.epsilon.value),
        "insecure_releases": summary.insecure,
        "queries": [
            {
                "query": query.query,
                "releases": query.releases,
                "skips": query.skips,
                "constants": query.constants,
                "insecure": query.insecure,
                "epsilon": guarantee_document(query.epsilon),
                "cost": guarantee_document(query.cost),
            }
            for query in summary.queries
        ],
    }


def _promise_document(promise: SequencePromise) -> dict[str, Any]:
    """A promise over paths for machines, in steps; ``passed`` steps of the first block lie before step 1."""
    lengths = {"steps": promise.steps, "window": promise.window, "per": promise.per, "passed": promise.passed}
    lengths |= {"zone": promise.zone} if promise.is_local else {}
    return {"over": "paths", "total": str(promise.exact), **lengths, "statement": promise.sentence()}


def _publication_document(one: Publication) -> dict[str, Any]:
    numbers = {"epsilon": one.epsilon, "rho": one.rho, "delta": one.delta}
    return {
        "name": one.name,
        "kind": one.kind,
        "unit": one.unit,
        "units_per_person": one.units,
        "relation": one.relation,
        "loss": one.loss,
        **{name: None if value is None else str(value) for name, value in numbers.items()},
        "statement": one.statement,
    }
