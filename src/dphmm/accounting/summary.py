"""What has been spent, per subject and query, with the statement that each total makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from dphmm.accounting.budget import EMPTY, Account
from dphmm.accounting.composition import Guarantee, neighbouring_paths, theorem_7_2
from dphmm.accounting.event import ReleaseEvent, event_of
from dphmm.accounting.ledger import Caps, Entry, Ledger, SessionHeader
from dphmm.accounting.promise import UNLIMITED

EPSILON_STATEMENT = neighbouring_paths([]).statement
#: Added where steps may have another policy than their session.
OWN_POLICIES = "the edges of a step are those of its own policy, which may be another one at each step"
COST_STATEMENT = (
    "Theorem 7.2: bounds the loss of any two histories of possible states; the sum of the costs, "
    "each rounded up to 1e-9"
)
COMPONENT_REASON = "component scope: a release can disclose the component of the policy"
FLAT_REASON = "a flat body with several cosets: a release can exclude states for certain"
EITHER_REASON = f"{FLAT_REASON}, or {COMPONENT_REASON}"


@dataclass(frozen=True)
class QuerySummary:
    """The totals of one (subject, query). ``reason`` says why a cost is unbounded; None when it is not."""

    subject: str
    query: str
    releases: int
    skips: int
    constants: int
    insecure: int
    epsilon: Guarantee
    cost: Guarantee
    reason: str | None


@dataclass(frozen=True)
class SubjectSummary:
    """The totals of one subject over all queries, and the caps and the promise of the account."""

    subject: str
    queries: tuple[QuerySummary, ...]
    epsilon: Guarantee
    cost: Guarantee
    reason: str | None
    caps: Caps = UNLIMITED

    @property
    def insecure(self) -> int:
        """Releases drawn from bits that anyone can replay: they promise nothing."""
        return sum(query.insecure for query in self.queries)


def summarise(entries: Iterable[Entry], headers: Iterable[SessionHeader] = ()) -> tuple[SubjectSummary, ...]:
    """Sum up entries by subject and query, sorted; headers, where given, tell why a cost is unbounded."""
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

    found = summarise(entries(), headers)
    return tuple(replace(each, caps=ledger.caps(each.subject)) for each in found)


class _Tally:
    def __init__(self, header: SessionHeader | None) -> None:
        self.header = header
        self.account = EMPTY
        self.releases = self.skips = self.constants = self.insecure = 0

    def add(self, entry: Entry) -> None:
        event = event_of(entry, self.header)
        if isinstance(event, ReleaseEvent):
            self.releases += 1
            self.constants += event.constant
            self.insecure += not event.secure
            self.account = self.account.plus(event.epsilon, event.cost)
        else:
            self.skips += entry.steps

    @property
    def own_policies(self) -> bool:
        """Whether single steps may have had another policy than the session."""
        return self.header is not None and "policy" in self.header.options.get("varies", "").split(",")

    @property
    def reason(self) -> str | None:
        if not self.account.unbounded:
            return None
        options = {} if self.header is None else self.header.options
        if options.get("scope") == "component":
            return COMPONENT_REASON
        return FLAT_REASON if "scope" in options else EITHER_REASON


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
        queries.append(QuerySummary(subject, query, *counts, epsilon, cost, tally.reason))
        part = tally.account
        total = Account(total.epsilon + part.epsilon, total.nanos + part.nanos, total.unbounded or part.unbounded)
    reason = next((query.reason for query in queries if query.reason), None)
    own_policies = any(tally.own_policies for _, tally in tallies)
    return SubjectSummary(subject, tuple(queries), *_guarantees(total, own_policies), reason)
