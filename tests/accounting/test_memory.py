"""A ledger in memory: whoever had the turn gives it back, whatever its transaction ends with."""

from __future__ import annotations

import pytest

from dphmm.accounting.memory import MemoryLedger, MemoryTransaction


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
