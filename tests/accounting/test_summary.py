"""The summary of a whole ledger: it adds no two people up, and refuses whom the ledger does not have."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphmm.accounting import (
    Caps,
    MemoryLedger,
    PlanRecord,
    Request,
    SessionHeader,
)
from dphmm.accounting.composition import Guarantee
from dphmm.accounting.summary import guarantee_document, ledger_summary
from dphmm.errors import InvalidInput
from storing import store

PLAN = PlanRecord("p1", b"\xf0", 5, "{}")


def test_the_summary_of_a_ledger_adds_no_two_people_up() -> None:
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        for name, cost, times in (("ann", Fraction(5), 1), ("ben", Fraction(2, 3), 3)):
            transaction.open_session(SessionHeader(name, "state", {"scope": "global"}))
            for t in range(1, times + 1):
                request = Request(name, "state", t, "release", Fraction(1, 2), cost, PLAN, True, False)
                store(transaction, request, lambda: (1,), Caps())
    found = ledger_summary(ledger)
    epsilon, cost = found.largest()
    assert (epsilon.value, cost.value) == (Fraction(3, 2), 5)
    told = found.document()
    assert told["totals"]["largest_epsilon"]["exact"] == "3/2" and told["totals"]["releases"] == 4
    assert [each["subject"] for each in told["subjects"]] == ["ann", "ben"]
    # Without publications a person loses in all what their releases lose.
    assert told["subjects"][1]["with_publications"]["replaced"]["exact"] == "3/2"
    assert told["anybody"]["replaced"]["value"] == 0 and told["groups"] == told["publications"] == []
    assert [each.subject for each in ledger_summary(ledger, "ben").subjects] == ["ben"]


def test_a_summary_refuses_whom_the_ledger_does_not_have_and_a_delta_that_is_none() -> None:
    with pytest.raises(InvalidInput, match="subject: got ann"):
        ledger_summary(MemoryLedger(), "ann")
    with pytest.raises(InvalidInput, match="delta"):
        ledger_summary(MemoryLedger(), delta="2")
    assert ledger_summary(MemoryLedger(), delta="0.001").document()["delta"] == "1/1000"


def test_a_cost_without_a_bound_is_null_for_machines() -> None:
    assert guarantee_document(Guarantee(math.inf, "s", "c")) == {
        "value": None,
        "exact": None,
        "statement": "s",
        "citation": "c",
    }
