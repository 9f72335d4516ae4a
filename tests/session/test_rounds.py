"""The engine by itself: rounds, what is stored and when, what a rollback leaves, where words are read.

It could fail where rows are planned before earlier rows of their subject are answered, where something random is read
before everything that may refuse has been asked, and where a subject's state outlives the transaction that it is of.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import Caps, MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.session.rounds import Engine, StepRequests, StepRows, SubjectState
from dphmm.session.scheduled import Scheduled
from dphmm.session.setting import Setting
from dphmm.session.stepwise import Stepwise

N = 9
MODEL = dphmm.MarkovModel(np.eye(N)[4], np.full((N, N), 1 / N))
#: Moves seldom, so that what was answered before matters.
STILL = dphmm.MarkovModel(np.full(N, 1 / N), np.eye(N) * 0.9 + np.full((N, N), 0.1 / N))
SPACE = dphmm.StateSpace(np.stack(np.divmod(np.arange(N), 3), axis=1))
POLICY = dphmm.policy.radius(SPACE, 1)


def engine_of(way, ledger, seed=1, caps=Caps(), model=MODEL, **choices):  # noqa: B008
    setting = Setting.of(model, POLICY, SPACE, 1, **choices)
    return Engine(setting, way(setting, ledger), caps, dphmm.ReplayBits(seed))


def rows_of(steps):
    """Rows of subjects from the steps of each."""
    owner = np.repeat(np.arange(len(steps)), [len(own) for own in steps])
    t = np.concatenate([np.array(own, dtype=np.int64) for own in steps])
    return StepRows(owner, t, np.ones(len(t), dtype=np.bool_))


def alike(one, other):
    """Whether two subjects have the same belief, to the bit."""
    return one.posterior.log_probability.tobytes() == other.posterior.log_probability.tobytes()


def released(engine, ledger, subjects, rows, states):
    with ledger.transaction() as transaction:
        stored = engine.release(transaction, subjects, rows, states)
    return engine.show(stored)


@pytest.mark.parametrize(("way", "sizes"), [(Scheduled, [6]), (Stepwise, [3, 2, 1])])
def test_a_round_holds_what_can_be_planned_before_it_is_answered(way, sizes):
    engine = engine_of(way, MemoryLedger())
    states = np.arange(6)
    rounds, own, true = zip(*engine._rounds(rows_of([[1, 2, 5], [1], [2, 3]]), states), strict=True)
    assert [len(row) for row in rounds] == sizes
    assert [part.tolist() for part in true] == [row.tolist() for row in rounds]
    assert [part.t.tolist() for part in own] == [np.array([1, 2, 5, 1, 2, 3])[row].tolist() for row in rounds]
    assert np.concatenate(rounds).tolist() == ([0, 1, 2, 3, 4, 5] if way is Scheduled else [0, 3, 4, 1, 5, 2])


@pytest.mark.parametrize("way", [Scheduled, Stepwise])
def test_both_ways_store_and_tell_the_same_of_one_subject(way):
    """Public plans, known in advance or made step by step: the same words give the same answers."""
    ledger, rows = MemoryLedger(), rows_of([[1, 2, 5, 6, 40]])
    found = released(engine_of(way, ledger), ledger, [SubjectState("a")], rows, np.array([4, 1, 8, -1, 0]))
    session = dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, bits=dphmm.ReplayBits(1))
    expected = []
    for t, state in zip(rows.t.tolist(), [4, 1, 8, -1, 0], strict=True):
        if t > session.t:
            session.skip(t - session.t)
        expected.append(session.release(state))
    assert found.row.tolist() == [0, 1, 2, 3, 4] and found.skipped == 2 + 33
    assert [found.plans[number].hash for number in found.plan.tolist()] == [release.plan_hash for release in expected]
    if way is Stepwise:
        assert found.z.tolist() == [release.z_lattice.tolist() for release in expected]


def test_nothing_random_is_read_where_a_row_is_refused():
    ledger = MemoryLedger()
    engine = engine_of(Scheduled, ledger, caps=Caps(epsilon=dphmm.accounting.Spent(1, 1).epsilon))
    with pytest.raises(BudgetExceeded), ledger.transaction() as transaction:
        engine.release(transaction, [SubjectState("a")], rows_of([[1, 2]]), np.array([4, 4]))
    words = dphmm.ReplayBits(1)
    assert engine.bits.uint64(1) == words.uint64(1)
    assert ledger.sessions() == []


def test_rounds_before_a_refused_one_are_kept():
    """What refuses a round may depend on the answers before it: drawn again, they would be selected."""
    ledger = MemoryLedger()
    engine = engine_of(Stepwise, ledger, caps=Caps(epsilon=dphmm.accounting.Spent(1, 1).epsilon))
    subject = SubjectState("a")
    with ledger.transaction() as transaction:
        stored = engine.release(transaction, [subject], rows_of([[1, 2]]), np.array([4, 4]))
    told = engine.show(stored)
    assert isinstance(stored.refused, BudgetExceeded)
    assert told.row.tolist() == [0] and [list(entry.z) for entry in ledger.entries("a", "state")] == told.z.tolist()
    with pytest.raises(BudgetExceeded), ledger.transaction() as transaction:
        engine.release(transaction, [subject], rows_of([[2]]), np.array([4]))
    assert len(ledger.entries("a", "state")) == 1


@pytest.mark.parametrize("steps", [[1, 2, 3], [4, 5, 6]])
def test_what_a_rolled_back_transaction_left_is_folded_again(steps):
    """A subject was moved past rounds that were never committed: the next look notices."""
    ledger = MemoryLedger()
    engine, subject = engine_of(Stepwise, ledger, constraint="delta=0.1"), SubjectState("a")
    rows, states = rows_of([[1, 2, 3]]), np.array([4, 4, 4])
    with pytest.raises(KeyboardInterrupt), ledger.transaction() as transaction:
        engine.release(transaction, [subject], rows, states)
        raise KeyboardInterrupt
    assert ledger.sessions() == [] and subject.position.t == 4
    rows = rows_of([steps])
    found = released(engine, ledger, [subject], rows, states)
    other = SubjectState("a")
    again = released(engine_of(Stepwise, ledger, constraint="delta=0.1"), ledger, [other], rows, -states)
    assert found.fresh.all() and not again.fresh.any()
    assert found.z.tolist() == again.z.tolist() and alike(subject, other)


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.1"}])
@pytest.mark.parametrize("way", ["rolled back", "never told"])
@pytest.mark.parametrize("coming", [[4, 5], [5]])
def test_a_subject_that_was_told_everything_is_looked_at_again_after_less(coming, way, choices):
    """A round was rolled back, or committed and not told; then another session stored as many steps.

    The account's version is what it would have been, and what the subject was moved to is not what the ledger has.
    """
    ledger, choices = MemoryLedger(), {"model": STILL, **choices}
    engine, subject = engine_of(Stepwise, ledger, **choices), SubjectState("a")
    for t in (1, 2):
        released(engine, ledger, [subject], rows_of([[t]]), np.array([4]))
    with contextlib.suppress(KeyboardInterrupt), ledger.transaction() as transaction:
        stored = engine.release(transaction, [subject], rows_of([[3, 4]]), np.array([0, 0]))
        if way == "rolled back":
            raise KeyboardInterrupt
    assert stored.version == 5 and ledger.entries("a", "state")[-1].t == (2 if way == "rolled back" else 4)
    if way == "rolled back":
        other = engine_of(Stepwise, ledger, seed=2, **choices)
        released(other, ledger, [SubjectState("a")], rows_of([[3, 4]]), np.array([8, 8]))
    rows, same = rows_of([coming]), SubjectState("a")
    found = released(engine, ledger, [subject], rows, np.full(len(coming), 4))
    again = released(engine_of(Stepwise, ledger, **choices), ledger, [same], rows, np.full(len(coming), -1))
    assert found.fresh.tolist() == [t > 4 for t in coming] and not again.fresh.any()
    assert found.z.tolist() == again.z.tolist() and alike(subject, same)


def test_an_account_that_did_not_move_is_not_looked_at():
    """What another session or query stores is noticed at once; between two steps of one session nothing is read."""
    ledger = MemoryLedger()
    engine, subject = engine_of(Stepwise, ledger), SubjectState("a")
    looks = []

    class Watched:
        def __init__(self, transaction):
            self._transaction = transaction

        def __getattr__(self, name):
            if name == "look":
                looks.append(name)
            return getattr(self._transaction, name)

    def step(t):
        with ledger.transaction() as transaction:
            stored = engine.release(Watched(transaction), [subject], rows_of([[t]]), np.array([4]))
        engine.show(stored)
        return len(looks)

    assert [step(t) for t in (1, 2, 3)] == [1, 1, 1]
    dphmm.ReleaseSession(
        MODEL, POLICY, SPACE, 1, subject="a", query="other", ledger=ledger, bits=dphmm.ReplayBits(2)
    ).release(4)
    assert [step(t) for t in (4, 5)] == [2, 2] and subject.joint


def test_one_step_of_many_and_all_steps_of_one_give_the_same_beliefs():
    """Step by step over all subjects, or subject by subject: any cut gives the bits that resumed sessions give."""
    rng = np.random.default_rng(3)
    names, states = [f"u{k}" for k in range(5)], rng.integers(0, N, (5, 6))
    ledger = MemoryLedger()
    engine, subjects = engine_of(Stepwise, ledger), [SubjectState(name) for name in names]
    for t in range(1, 7):
        released(engine, ledger, subjects, rows_of([[t]] * 5), states[:, t - 1])
    others, rows = [SubjectState(name) for name in names], rows_of([range(1, 7)] * 5)
    assert not released(engine_of(Stepwise, ledger), ledger, others, rows, states.ravel()).fresh.any()
    assert all(map(alike, subjects, others))


def test_rows_out_of_order_are_refused():
    for steps in ([[2, 1]], [[1, 1]]):
        with pytest.raises(InvalidInput, match="rows: got row 1 out of order"):
            StepRequests.of(rows_of(steps), np.zeros(1, dtype=np.int64))
    with pytest.raises(InvalidInput, match="t: got a gap of"):
        StepRequests.of(rows_of([[1, 2**40]]), np.zeros(1, dtype=np.int64))
