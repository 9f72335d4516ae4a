"""A ledger in memory: whoever had the turn gives it back, whatever its transaction ends with."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from dphmm import SequencePromise
from dphmm.accounting import Caps, PlanRecord, Request, Requests, SessionHeader, memory
from dphmm.accounting.memory import MemoryLedger, MemoryTransaction
from dphmm.errors import BudgetExceeded


@pytest.mark.parametrize("step", ["keep", "end"])
def test_an_interrupt_while_a_transaction_ends_gives_the_turn_back(monkeypatch, step):
    """Or nobody could use the ledger again."""
    ledger = MemoryLedger()

    def interrupted(transaction):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MemoryTransaction, step, interrupted)
        with pytest.raises(KeyboardInterrupt), ledger.transaction():
            pass
    with ledger.transaction() as transaction:
        assert transaction.headers("anybody") == []


def test_a_promise_counts_rows_that_a_reader_is_turning_into_entries(monkeypatch):
    """A reader takes no turn: rows that are half way from columns to entries must not be missed."""
    ledger, plan, half = MemoryLedger(), PlanRecord("p1", b"\xf0", 5, "{}"), Fraction(1, 2)
    release = Request("ann", "state", 3, "release", half, half, plan, True, False)
    column = np.zeros(2, np.int64)
    two = Requests("state", ["ann"], [release], column, column, np.array([1, 2]), np.ones(2, np.int64))
    with ledger.transaction(["ann"]) as transaction:
        transaction.open_session(SessionHeader("ann", "state", {}))
        transaction.bind("ann", Caps(promise=SequencePromise(1, window=3)))
        transaction.add_many(transaction.admit_many(two, Caps()), np.ones((2, 1), np.int64))
    readers, search = [], memory.bisect_right

    def interrupted(*arguments, **names):
        if not readers:
            readers.append(threading.Thread(target=ledger.entries, args=("ann", "state")))
            readers[0].start()
            readers[0].join(timeout=0.5)
        return search(*arguments, **names)

    monkeypatch.setattr(memory, "bisect_right", interrupted)
    with pytest.raises(BudgetExceeded, match="promise: step 3"), ledger.transaction(["ann"]) as transaction:
        transaction.admit(release, Caps())
    readers[0].join()
    assert len(ledger.entries("ann", "state")) == 2
