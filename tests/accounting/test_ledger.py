"""Summaries of a ledger: events, and totals that say which statement they are.

The summary of a whole ledger: it adds no two people up, and refuses whom the ledger does not have.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphmm.accounting import (
    Caps,
    ComposedEvents,
    Entry,
    MemoryLedger,
    PlanRecord,
    ReleaseEvent,
    Request,
    SessionHeader,
    SkipEvent,
    replay,
    summarise,
    summarise_ledger,
)
from dphmm.accounting.event import Guarantee, compose, event_of, leaves
from dphmm.accounting.ledger import guarantee_document, ledger_summary
from dphmm.errors import InvalidInput
from storing import store

PLAN = PlanRecord("p1", b"\xf0", 5, "{}")


def entry(t: int, cost: Fraction | float = Fraction(2, 3), *, query: str = "state", secure: bool = True) -> Entry:
    return Entry("ann", query, t, "release", (t, 0), Fraction(1, 2), cost, "p1", secure, cost == 0)


def skip(t: int) -> Entry:
    return Entry("ann", "state", t, "skip", None, None, None, None, True, False)


def test_an_entry_is_an_event() -> None:
    assert event_of(entry(1)) == ReleaseEvent(Fraction(1, 2), Fraction(2, 3), False, True)
    assert event_of(skip(1)) == SkipEvent()


def test_composed_events_keep_their_order_and_refuse_strangers() -> None:
    first, second = event_of(entry(1)), event_of(skip(2))
    assert list(leaves(compose([compose([first]), second, ComposedEvents(())]))) == [first, second]
    with pytest.raises(InvalidInput, match="events"):
        ComposedEvents(("a release",))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="cost"):
        ReleaseEvent(Fraction(1), math.nan, False, True)


def test_a_summary_says_what_its_totals_mean() -> None:
    (subject,) = summarise([entry(1), skip(2), entry(3, Fraction(0)), entry(4, secure=False)])
    (query,) = subject.queries
    assert (query.releases, query.skips, query.constants, query.insecure) == (3, 1, 1, 1)
    assert query.epsilon.value == Fraction(3, 2)
    assert query.epsilon.statement.endswith("not a bound for two states of one step")
    assert query.cost.value == Fraction(2 * 666_666_667, 10**9)
    assert query.cost.statement.startswith("Theorem 7.2: bounds the loss of any two histories")
    assert subject.insecure == 1


def test_a_subject_is_the_sum_of_its_queries_and_of_its_account() -> None:
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        for query, name in (("work", "bob"), ("state", "ann"), ("home", "ann")):
            transaction.open_session(SessionHeader(name, query, {"start": "at"}))
            for t in (1, 2):
                request = Request(name, query, t, "release", Fraction(1, 7), Fraction(1, 3), PLAN, True, False)
                store(transaction, request, lambda: (1,), Caps())
    ann, bob = summarise_ledger(ledger)
    assert (ann.subject, [q.query for q in ann.queries]) == ("ann", ["home", "state"])
    for summary in (ann, bob):
        spent = ledger.spent(summary.subject)
        assert (summary.epsilon.value, summary.cost.value) == (spent.epsilon, spent.cost)
    assert summarise_ledger(ledger, "bob") == (bob,)
    assert summarise_ledger(ledger, "cid") == ()


def test_the_fold_needs_a_whole_history() -> None:
    history = [entry(1), skip(2), entry(3)]
    assert replay(history, 0, lambda seen, e: seen * 10 + e.t) == 123
    for broken in (history[1:], history[:1] + history[2:], history[::-1], [history[0]] * 2):
        with pytest.raises(InvalidInput, match="without gaps"):
            replay(broken, 0, lambda seen, e: seen)


def test_the_summary_of_a_ledger_adds_no_two_people_up() -> None:
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        for name, cost, times in (("ann", Fraction(5), 1), ("ben", Fraction(2, 3), 3)):
            transaction.open_session(SessionHeader(name, "state", {"start": "at"}))
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
    assert told["anybody"]["replaced"]["value"] == 0 and told["publications"] == []
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
