"""A promise over a sequence is kept by both ledgers: by every query, window and block, and for ever.

It could fail where a promise is kept for each query instead of each subject, where a program that names none passes it,
where a window or block is a step off, where what was refused left something behind, or where a promise is exchanged.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

from dphmm import SequencePromise
from dphmm.accounting import Caps, MemoryLedger, Request, Requests, SessionHeader
from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput
from dphmm.storage.ledger import open_ledger
from storing import FREE, PLAN, store

HALF = Fraction(1, 2)


def release(t, epsilon=HALF, query="state", subject="ann"):
    return Request(subject, query, t, "release", epsilon, epsilon, PLAN, True, False)


def begin(ledger, promise=None, queries=("state", "work"), subject="ann"):
    with ledger.transaction([subject]) as transaction:
        for query in queries:
            transaction.open_session(SessionHeader(subject, query, {}))
        return transaction.bind(subject, Caps(promise=promise)).promise


def ask(ledger, t, epsilon=HALF, query="state"):
    """Whether the step was stored; refused, it leaves nothing."""
    before = everything(ledger)
    try:
        with ledger.transaction(["ann"]) as transaction:
            store(transaction, release(t, epsilon, query), lambda: (t,), FREE)
        return True
    except BudgetExceeded as refused:
        assert str(refused).startswith(f"promise: step {t} of query ")
        assert everything(ledger) == before
        return False


def skip(ledger, t, steps=1, query="state"):
    with ledger.transaction(["ann"]) as transaction:
        request = Request("ann", query, t, "skip", None, None, None, True, False, steps)
        store(transaction, request, tuple, FREE)


def everything(ledger):
    keys = ledger.sessions()
    return [(key, ledger.entries(*key), ledger.spent(key[0]), ledger.caps(key[0]).promise) for key in keys]


def test_a_sequence_has_one_total_and_an_end(ledger):
    promise = SequencePromise(1, steps=3)
    assert begin(ledger, promise) == promise == ledger.caps("ann").promise
    assert [ask(ledger, 1), ask(ledger, 1, query="work")] == [True, True]
    assert not ask(ledger, 2)
    skip(ledger, 2)
    assert not ask(ledger, 3, Fraction(1, 1000))
    assert ask(ledger, 1)


def test_nothing_is_released_after_the_last_step(ledger):
    begin(ledger, SequencePromise(5, steps=2))
    assert [ask(ledger, 1), ask(ledger, 2), ask(ledger, 3)] == [True, True, False]


def test_a_window_moves_on(ledger):
    begin(ledger, SequencePromise(1, window=3))
    assert [ask(ledger, t) for t in (1, 2)] == [True, True]
    assert not ask(ledger, 3, Fraction(1, 100))
    skip(ledger, 3)
    assert ask(ledger, 4)
    assert not ask(ledger, 5, Fraction(51, 100))
    assert ask(ledger, 5)


def test_a_window_counts_rows_that_another_query_stored_later(ledger):
    begin(ledger, SequencePromise(1, window=3))
    skip(ledger, 1, 4, "work")
    assert ask(ledger, 5, Fraction(1), "work")
    assert [ask(ledger, t, Fraction(1, 3)) for t in (1, 2)] == [True, True]
    # Steps 3 and 4 lie in a window with step 5 of the other query.
    assert not ask(ledger, 3, Fraction(1, 100))


def test_a_block_begins_by_the_clock(ledger):
    begin(ledger, SequencePromise(1, per=3, passed=1))
    assert [ask(ledger, t) for t in (1, 2)] == [True, True]
    assert [ask(ledger, t) for t in (3, 4)] == [True, True]
    assert not ask(ledger, 5)
    skip(ledger, 5)
    assert ask(ledger, 6, Fraction(1))


@pytest.mark.parametrize(
    "promise", [SequencePromise(1, steps=6), SequencePromise(1, window=2), SequencePromise(1, per=2)]
)
def test_many_rows_at_once_are_refused_as_one_by_one(ledger, promise):
    """Every way to ask for steps 1 to 6 of two subjects: refused at the same row, and nothing of it stored."""
    for chosen in range(1, 4):
        epsilon = Fraction(chosen, 3)
        alone = MemoryLedger()
        begin(alone, promise)
        one_by_one = next((t for t in range(1, 7) if not ask(alone, t, epsilon)), None)
        together = MemoryLedger() if isinstance(ledger, MemoryLedger) else ledger
        subject = f"ann{chosen}"
        begin(together, promise, subject=subject)
        requests = Requests(
            "state", [subject], [release(1, epsilon, subject="")], np.zeros(6, np.int64), np.zeros(6, np.int64),
            np.arange(1, 7), np.ones(6, np.int64),
        )  # fmt: skip
        try:
            with together.transaction([subject]) as transaction:
                admitted = transaction.admit_many(requests, FREE)
                transaction.add_many(admitted, np.ones((6, 1), np.int64))
            assert one_by_one is None
        except BudgetExceeded as refused:
            assert f"step {one_by_one} of query" in str(refused)
            assert together.entries(subject, "state") == []
            assert together.spent(subject).epsilon == 0


def test_who_names_no_promise_is_held_to_it(ledger):
    begin(ledger, SequencePromise(1, steps=9))
    assert begin(ledger, None, ("third",)) == SequencePromise(1, steps=9)
    assert [ask(ledger, 1, query="third"), ask(ledger, 1), ask(ledger, 1, query="work")] == [True, True, False]


def test_a_promise_stays(ledger):
    begin(ledger, SequencePromise(1, steps=9))
    assert begin(ledger, SequencePromise(1, steps=9), ("other",)) == SequencePromise(1, steps=9)
    for other in (SequencePromise(2, steps=9), SequencePromise(1, steps=10), SequencePromise(1, window=9)):
        with pytest.raises(InvalidInput, match=r"promise: got .* expected 1 over 9 steps, which was promised to"):
            begin(ledger, other)
    assert ledger.caps("ann").promise == SequencePromise(1, steps=9)


def test_a_promise_comes_too_late_for_what_broke_it(ledger):
    begin(ledger)
    assert ask(ledger, 1, Fraction(2))
    with pytest.raises(BudgetExceeded, match=r"promise: \"ann\" has already spent more than 1 over 9 steps"):
        begin(ledger, SequencePromise(1, steps=9))
    assert ledger.caps("ann").promise is None
    assert begin(ledger, SequencePromise(2, steps=9)) is not None
    assert not ask(ledger, 2, Fraction(1, 100))


def test_a_promise_that_was_rolled_back_was_never_given(ledger):
    with pytest.raises(ZeroDivisionError), ledger.transaction(["ann"]) as transaction:
        transaction.open_session(SessionHeader("ann", "state", {}))
        transaction.bind("ann", Caps(promise=SequencePromise(1, steps=2)))
        raise ZeroDivisionError
    assert ledger.caps("ann").promise is None
    assert begin(ledger, SequencePromise(5, steps=2)) == SequencePromise(5, steps=2)


def test_rows_of_one_transaction_count_for_each_other(ledger):
    with ledger.transaction(["ann"]) as transaction:
        for query in ("state", "work"):
            transaction.open_session(SessionHeader("ann", query, {}))
        transaction.bind("ann", Caps(promise=SequencePromise(1, window=2)))
        for query in ("state", "work"):
            transaction.add(transaction.admit(release(1, query=query), FREE), (1,))
        with pytest.raises(BudgetExceeded):
            transaction.admit(release(2), FREE)


def test_each_change_raises_the_version_by_one(ledger):
    def version():
        with ledger.transaction(["ann"]) as transaction:
            return transaction.look(["ann"], "state")[0].version

    begin(ledger)
    assert version() == 2
    begin(ledger, SequencePromise(1, steps=2))
    begin(ledger, SequencePromise(1, steps=2))
    assert version() == 3


def bind(ledger, **caps):
    with ledger.transaction(["ann"]) as transaction:
        transaction.open_session(SessionHeader("ann", "state", {}))
        transaction.open_session(SessionHeader("ann", "work", {}))
        return transaction.bind("ann", Caps(**caps))


def capped(ledger, t, query="state", caps=FREE):
    """Whether the step was stored under the caps of the account and these."""
    try:
        with ledger.transaction(["ann"]) as transaction:
            store(transaction, release(t, query=query), lambda: (t,), caps)
        return True
    except BudgetExceeded:
        return False


@pytest.mark.parametrize("field", ["epsilon", "cost"])
def test_a_cap_stays_for_all_queries_and_for_who_names_none(ledger, field):
    assert bind(ledger, **{field: Fraction(1)}) == Caps(**{field: Fraction(1)}) == ledger.caps("ann")
    assert bind(ledger) == ledger.caps("ann")
    assert [capped(ledger, 1), capped(ledger, 1, "work"), capped(ledger, 2)] == [True, True, False]
    assert not capped(ledger, 2, caps=Caps(**{field: Fraction(9)}))
    assert ledger.spent("ann").epsilon == 1


@pytest.mark.parametrize("other", [Fraction(1, 2), Fraction(2)])
def test_another_cap_is_refused(ledger, other):
    bind(ledger, epsilon=Fraction(1))
    with pytest.raises(InvalidInput, match=r'cap_epsilon: got .* expected 1, the cap of "ann"'):
        bind(ledger, epsilon=other)
    assert ledger.caps("ann") == Caps(epsilon=Fraction(1))
    assert [capped(ledger, t) for t in range(1, 4)] == [True, True, False]


def test_a_cap_below_the_given_one_of_a_caller_holds(ledger):
    bind(ledger, epsilon=Fraction(5))
    assert [capped(ledger, t, caps=Caps(epsilon=Fraction(1))) for t in (1, 2, 3)] == [True, True, False]
    assert capped(ledger, 3)


def test_what_was_given_is_recorded(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        bind(ledger, epsilon=Fraction(2))
        bind(ledger, cost=Fraction(7), promise=SequencePromise(9, steps=9))
        ledger.check()
    with open_ledger(path) as ledger:
        assert ledger.caps("ann") == Caps(Fraction(2), Fraction(7), SequencePromise(9, steps=9))
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT kind, text FROM change JOIN document ON document.id = document ORDER BY version"
        )
        told = [(kind, text) for kind, text in rows]
        (features,) = connection.execute("SELECT value FROM meta WHERE key = 'features'").fetchone()
    assert [kind for kind, _ in told] == ["caps"] * 2
    assert told[0][1] == '{"cap_epsilon": "2"}' and '"cap_cost": "7", "cap_epsilon": "2"' in told[1][1]
    assert features == "caps promise"


class TestTheFile:
    @pytest.fixture
    def path(self, tmp_path):
        with open_ledger(tmp_path / "ledger.db") as ledger:
            begin(ledger, SequencePromise(1, per=3, passed=1))
            assert ask(ledger, 1)
        return tmp_path / "ledger.db"

    def test_it_is_there_after_opening_again_and_checks(self, path):
        with open_ledger(path) as ledger:
            ledger.check()
            assert ledger.caps("ann").promise == SequencePromise(1, per=3, passed=1)
            assert ask(ledger, 2)
            skip(ledger, 1, query="work")
            assert not ask(ledger, 2, query="work")

    def test_a_program_that_does_not_know_promises_refuses_the_file(self, path, monkeypatch):
        monkeypatch.setattr("dphmm.storage.ledger.schema.FEATURES", frozenset())
        with pytest.raises(InvalidInput, match="a ledger without 'promise': upgrade dphmm"):
            open_ledger(path)

    def test_the_check_finds_a_promise_that_was_broken(self, path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE document SET text = replace(text, '\"1\"', '\"1/4\"') WHERE text LIKE '%total%'")
            connection.commit()
        with open_ledger(path) as ledger, pytest.raises(DphmmError, match=r"releases of \"ann\" break the promise"):
            ledger.check()

    @pytest.mark.parametrize("text", ["", "{", '{"total": "1"}', "x" * 9])
    def test_a_damaged_promise_is_refused_not_forgotten(self, path, text):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE document SET text = ? WHERE text LIKE '%total%'", (text,))
            connection.commit()
        with open_ledger(path) as ledger:
            for question in (lambda: ledger.caps("ann").promise, lambda: ask(ledger, 2), ledger.check):
                with pytest.raises(InvalidInput, match="an undamaged ledger"):
                    question()


def test_a_file_whose_blocks_of_local_days_were_changed_is_refused(tmp_path):
    """Without the bounds of an answer's day, or with bounds that overlap, nobody knows which answers add up."""
    promise = SequencePromise(1, per="1d", zone="Europe/Berlin").in_steps(3600, 0)
    changes = {
        "none": "DELETE FROM block",
        "overlap": 'INSERT INTO block SELECT account, first + 1, "end" + 1 FROM block',
    }
    for name, change in changes.items():
        with open_ledger(tmp_path / f"{name}.db") as ledger:
            begin(ledger, promise)
            assert ask(ledger, 1) and ask(ledger, 1, query="work")
            ledger.check()
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection, connection:
            connection.execute(change)
        with open_ledger(tmp_path / f"{name}.db") as ledger, pytest.raises(DphmmError):
            ledger.check()
