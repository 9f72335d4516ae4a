"""Resuming from a snapshot of the belief gives the bits of the whole history, and is never trusted for an account.

It could fail where a snapshot is of another step than it says, where a belief in logs or a support is not restored,
where another version's snapshot is taken, and where an old step would be made from a later belief.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.transaction import BaseTransaction
from dphmm.session import stepwise
from dphmm.session.rounds import SubjectState
from dphmm.session.stepwise import belief_of, snapshot_of
from session.test_tables import world

WORLDS = ("grid", "tails", "faint", "two phases")


def history(name, ledger, steps=200, **choices):
    """A subject's session over many steps, with skips."""
    model, policy, space, epsilon, kept = world(name)
    choices = {**kept, **choices}
    session = dphmm.ReleaseSession(
        model, policy, space, epsilon, subject="a", ledger=ledger, bits=dphmm.ReplayBits(4), **choices
    )
    rng = np.random.default_rng(8)
    while session.t <= steps:
        if rng.random() < 0.1:
            session.skip(int(rng.integers(1, 9)))
        session.release(int(rng.integers(space.n_states)))
    return session, (model, policy, space)


def bits_of(belief):
    return belief.log_probability.tobytes(), belief.support.tobytes(), belief.row is None


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
@pytest.mark.parametrize("name", WORLDS)
def test_a_resumed_session_has_the_bits_of_the_whole_history(name, constraint, monkeypatch):
    ledger = MemoryLedger()
    session, parts = history(name, ledger, constraint=constraint)
    kept, _ = ledger.snapshot("a", "state") or (0, b"")
    # Where no plan needs a belief, none is kept: it is folded when somebody reads it.
    assert session.t - 1 - 64 - 9 <= kept < session.t - 1 if constraint != "support" else kept == 0
    asked, truly = [], MemoryLedger.entries
    monkeypatch.setattr(MemoryLedger, "entries", lambda self, *which: asked.append(which) or truly(self, *which))
    resumed = dphmm.ReleaseSession.resume(ledger, "a", *parts)
    assert resumed.t == session.t
    assert bits_of(resumed.prior) == bits_of(session.prior)
    assert asked[0] == ("a", "state", kept + 1) and asked[1:] == [("a", "state", 1)] * (constraint == "support")
    assert bits_of(resumed.posterior) == bits_of(session.posterior)
    assert resumed.plan.hash == session.plan.hash
    without = MemoryLedger()
    other, _ = history(name, without, constraint=constraint)
    monkeypatch.setattr(MemoryLedger, "snapshot", lambda *_: None)
    whole = dphmm.ReleaseSession.resume(without, "a", *parts)
    assert bits_of(whole.prior) == bits_of(resumed.prior) and other.spent == resumed.spent
    assert [str(r) for r in resumed.releases] == [str(r) for r in whole.releases]
    assert str(resumed.estimate()) == str(whole.estimate()) == str(session.estimate())


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_from_every_snapshot_there_are_the_same_bits(name, monkeypatch):
    """Kept at every step, of 120 steps: whichever of them a session goes on from, belief and plan are the same."""
    kept, put = dict[int, bytes](), BaseTransaction.put_snapshot
    monkeypatch.setattr(stepwise, "_SNAPSHOT_EVERY", 1)
    monkeypatch.setattr(
        BaseTransaction,
        "put_snapshot",
        lambda self, subject, query, t, belief: (kept.update({t: belief}), put(self, subject, query, t, belief))[1],
    )
    ledger = MemoryLedger()
    session, parts = history(name, ledger, steps=120, constraint="delta=0.1")
    assert len(kept) > 80
    for t, belief in kept.items():
        monkeypatch.setattr(MemoryLedger, "snapshot", lambda self, *_, found=(t, belief): found)
        resumed = dphmm.ReleaseSession.resume(ledger, "a", *parts)
        assert bits_of(resumed.prior) == bits_of(session.prior), t
        assert resumed.plan.hash == session.plan.hash, t


def test_an_earlier_step_is_not_made_from_a_later_belief():
    ledger = MemoryLedger()
    session, (model, policy, space) = history("grid", ledger)
    behind = dphmm.ReleaseSession(model, policy, space, 1, subject="a", ledger=ledger)
    first = behind.release(0, t=1)
    assert str(first) == str(session.released(1)) and behind.t == 2


def test_a_file_keeps_snapshots_too(tmp_path):
    with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
        session, parts = history("grid", ledger, steps=80, constraint="delta=0.1")
        assert ledger.snapshot("a", "state")[0] < session.t - 1
        assert bits_of(dphmm.ReleaseSession.resume(ledger, "a", *parts).prior) == bits_of(session.prior)


def test_snapshots_of_others_and_of_other_lengths_are_none():
    belief = dphmm.ReleaseSession(*world("grid")[:4]).prior
    whose = bytes(range(16))
    kept = snapshot_of(belief, whose)
    assert bits_of(belief_of(kept, whose, belief.n_states)) == bits_of(belief)
    assert belief_of(kept[:-1], whose, belief.n_states) is None and belief_of(b"", whose, belief.n_states) is None
    assert belief_of(kept, whose[::-1], belief.n_states) is None


def put(ledger, subject, query, t, belief):
    """A snapshot as the ledger keeps it, with the digest that fits."""
    with ledger.transaction() as transaction:
        transaction.put_snapshot(subject, query, t, belief)


def test_a_snapshot_of_another_session_step_or_version_is_as_none(tmp_path, monkeypatch):
    """Its digest fits; believed, it would make other plans than the history does."""
    with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
        session, parts = history("grid", ledger, steps=80, constraint="delta=0.1")
        true, (t, belief) = bits_of(session.prior), ledger.snapshot("a", "state")
        other = dphmm.ReleaseSession(
            *parts, 1, subject="b", ledger=ledger, constraint="delta=0.1", bits=dphmm.ReplayBits(9)
        )
        while other.t <= 80:
            other.release(0)
        at, others = ledger.snapshot("b", "state")
        for wrong in ((t, others), (at, others), (t - 5, belief), (t + 3, belief)):
            put(ledger, "a", "state", *wrong)
            assert ledger.snapshot("a", "state") == wrong
            assert bits_of(dphmm.ReleaseSession.resume(ledger, "a", *parts).prior) == true
        put(ledger, "a", "state", t, belief)
        engine = dphmm.ReleaseSession.resume(ledger, "a", *parts)._engine
        own = SubjectState("a", session.origin)
        assert engine.beliefs._snapshot(own, session.t - 1).t == t + 1
        monkeypatch.setattr(stepwise, "_SNAPSHOT_VERSION", 200)
        assert engine.beliefs._snapshot(own, session.t - 1) is None
