"""What a ledger says has been spent, by whom and in what, as one result: for people, pages and services.

Proof: docs/proofs/account.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dphmm._checks import exact_number
from dphmm.accounting.budget import Group
from dphmm.accounting.composition import Guarantee, check_delta
from dphmm.accounting.ledger import Ledger, SubjectSummary, summarise_ledger
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.publication import DELTA, PersonTotals, Publication, totals
from dphmm.errors import InvalidInput
from dphmm.types import Exact, Loss

GROUP_STATEMENT = (
    "bounds the loss of any neighbouring paths of all members at once, in their releases (docs/proofs/paths.md); "
    "publications are not in it"
)


@dataclass(frozen=True)
class LedgerSummary:
    """The totals of each subject, the publications and the groups of a ledger; where rho terms are converted, once.

    ``cap`` is that of the publications, None for none.
    """

    subjects: Sequence[SubjectSummary] = ()
    publications: Sequence[Publication] = ()
    groups: Sequence[Group] = ()
    cap: Fraction | None = None
    delta: Fraction = DELTA

    def counts(self) -> dict[str, int]:
        """How many subjects, releases, skips, public constants and replayable releases there are."""
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
        """What a person loses in all publications and in releases whose epsilons have this sum."""
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
            "groups": [
                {
                    "name": group.name,
                    "cap_epsilon": str(group.cap),
                    "members": list(group.members),
                    "statement": GROUP_STATEMENT,
                }
                for group in self.groups
            ],
        }

    def _person_document(self, spent: Loss) -> dict[str, Any]:
        found = self.totals_of(spent)
        return {
            "replaced": {**guarantee_document(found.replaced), "delta": str(found.replaced_delta)},
            "present": {**guarantee_document(found.present), "delta": str(found.present_delta)},
        }


def ledger_summary(ledger: Ledger, subject: str | None = None, delta: Exact | None = None) -> LedgerSummary:
    """What a ledger says has been spent: by all of its subjects, or by one.

    Parameters
    ----------
    subject : one subject only; publications and groups are told all the same.
    delta : where rho terms of publications are converted. That of the ledger where none is given.

    Raises
    ------
    InvalidInput : a subject that the ledger does not have, or a delta that is none.

    Examples
    --------
    >>> from dphmm.accounting import MemoryLedger
    >>> ledger_summary(MemoryLedger()).counts()
    {'subjects': 0, 'releases': 0, 'skips': 0, 'constants': 0, 'insecure': 0}
    """
    subjects, facts = summarise_ledger(ledger, subject), ledger.facts()
    at = facts.get("delta", DELTA) if delta is None else check_delta(exact_number(delta, "delta"), "delta")
    found = LedgerSummary(subjects, ledger.publications(), ledger.groups(), facts.get("cap_epsilon"), at)
    if subject is not None and not subjects:
        raise InvalidInput("subject", subject, "a subject of this ledger")
    return found


def guarantee_document(guarantee: Guarantee) -> dict[str, Any]:
    """A total for machines: the value (null when unbounded), the same exactly, and what it is."""
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
        "unbounded_because": summary.reason,
        "cap_epsilon": None if summary.caps.epsilon is None else str(summary.caps.epsilon),
        "cap_cost": None if summary.caps.cost is None else str(summary.caps.cost),
        "promise": None if summary.caps.promise is None else _promise_document(summary.caps.promise),
        "horizon": None if summary.caps.horizon is None else vars(summary.caps.horizon),
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
                "unbounded_because": query.reason,
            }
            for query in summary.queries
        ],
    }


def _promise_document(promise: SequencePromise) -> dict[str, Any]:
    """A promise over paths for machines, in steps; ``passed`` steps of the first block lie before step 1."""
    lengths = {"steps": promise.steps, "window": promise.window, "per": promise.per, "passed": promise.passed}
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
