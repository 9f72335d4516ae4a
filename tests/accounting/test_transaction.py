"""Every transaction names the subjects that it touches, and leases keep two holders apart.

It could fail where a session, a table or a stream asks about a subject, or stores for one, that a ledger with many
writers would not have locked, or where a lease is given twice or not given back.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import InvalidInput, LedgerBusy
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from dphmm.storage.ledger import open_ledger

POINTS = np.stack(np.divmod(np.arange(9), 3), axis=1)
NEAR = np.abs(POINTS[:, None] - POINTS).max(axis=2) <= 1
SPACE = dphmm.StateSpace(POINTS)
WALK = dphmm.MarkovModel(np.full(9, 1 / 9), NEAR / NEAR.sum(axis=1, keepdims=True))
POLICY = dphmm.policy.radius(SPACE, 1)
PARTS = (WALK, POLICY, SPACE)
#: What a transaction is asked with a subject's name in first place.
ONE_SUBJECT = ("headers", "entry", "spent", "last_step", "plans_at", "put_snapshot")


class Locked(MemoryLedger):
    """A ledger whose transactions refuse every subject that they did not name."""

    transactions = 0

    @contextmanager
    def transaction(self, subjects=()):
        named = set(subjects)

        def refuse(*names):
            assert named.issuperset(names), f"{sorted(set(names) - named)} are not locked"

        def guarded(function, names_of):
            return lambda *given: (refuse(*names_of(*given)), function(*given))[1]

        with super().transaction(subjects) as transaction:
            self.transactions += 1
            guards = {name: lambda subject, *_: [subject] for name in ONE_SUBJECT}
            guards |= {"look": lambda subjects, _: subjects, "open_session": lambda header: [header.subject]}
            guards |= {"admit": lambda request, _: [request.subject]}
            guards |= {"admit_many": lambda requests, _: [name for name, _, _ in requests.parts()]}
            for name, names_of in guards.items():
                setattr(transaction, name, guarded(getattr(transaction, name), names_of))
            yield transaction


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_tables_lock_the_subjects_of_each_transaction(constraint, monkeypatch):
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 3)
    monkeypatch.setattr("dphmm.release.batch._CHUNK_STEPWISE", 3)
    ledger = Locked()
    table = {"user": list("aabbccc"), "step": [0, 1, 0, 5, 0, 1, 2], "state": ["0", "1", "2", "1", "8", "7", "8"]}
    given = {"constraint": constraint, "ledger": ledger, "bits": dphmm.ReplayBits(1), "progress": False}
    first = dphmm.release_many(_frame(table), *PARTS, 1, **given)
    again = dphmm.release_many(_frame(table), *PARTS, 1, resume=True, **given)
    assert first.equals(again)
    assert ledger.transactions >= 4


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_sessions_and_streams_lock_their_subject(constraint):
    ledger = Locked()
    given = {"constraint": constraint, "ledger": ledger, "bits": dphmm.ReplayBits(1)}
    session = dphmm.ReleaseSession(*PARTS, 1, subject="a", origin="0", **given)
    session.release(0)
    session.skip(2)
    session.release(1)
    assert not session.has_released(2)
    if constraint == "support":
        dphmm.ReleaseSession(*PARTS, 1, subject="a", query="work", origin="0", **given).release(0)
    resumed = dphmm.ReleaseSession.resume(ledger, "a", *PARTS, bits=dphmm.ReplayBits(2))
    assert resumed.release(3).t == 5
    assert ledger.spent("a").epsilon == (4 if constraint == "support" else 3)
    timed = dphmm.MarkovModel(WALK.initial, WALK.transition, step=60)
    stream = Stream(Batch(timed, POLICY, SPACE, 1, **given), False)
    for user, minute in (("b", 1), ("c", 1), ("b", 3)):
        line = f'{{"user": "{user}", "t": "2024-05-06T08:{minute:02d}:30Z", "state": "4"}}'
        list(stream.take(parse_line(line.encode(), False)))
    list(stream.end())
    assert ledger.spent("b").epsilon == 2
    assert ledger.transactions >= 8


def test_the_guard_refuses_a_subject_without_a_lock():
    ledger = Locked()
    with ledger.transaction(["a"]) as transaction, pytest.raises(AssertionError, match="'b'"):
        transaction.spent("b")


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    with MemoryLedger() if request.param == "memory" else open_ledger(tmp_path / "ledger.db") as ledger:
        yield ledger


def test_a_lease_has_one_holder_and_is_given_back(ledger):
    refused = []

    def ask():
        try:
            with ledger.lease("commands"):
                refused.append(False)
        except LedgerBusy:
            refused.append(True)

    def asked_elsewhere():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return refused[-1]

    with ledger.lease("commands"), ledger.lease("users-a-m"):
        assert asked_elsewhere()
        with pytest.raises(LedgerBusy), ledger.lease("users-a-m"):
            pass
        with ledger.transaction() as transaction:
            assert transaction.spent("a").epsilon == 0
    assert not asked_elsewhere()
    with pytest.raises(ZeroDivisionError), ledger.lease("commands"):
        raise ZeroDivisionError
    assert not asked_elsewhere()


@pytest.mark.parametrize("name", ["", "../up", "A", "a" * 65, "a.b", "a\n", None, 3])
def test_a_lease_has_a_plain_name(ledger, name):
    with pytest.raises(InvalidInput, match="name"), ledger.lease(name):
        pass


def _frame(columns):
    import pandas as pd

    return pd.DataFrame(columns)
