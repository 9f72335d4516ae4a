"""Estimates are views: whoever reads them changes no answer, plan, cost or ledger, and nobody else moves a belief.

It could fail where a word is drawn for an estimate, where a public plan or a cost follows from a belief, where an
estimate is of other answers than those so far, or where a belief is moved, or a history is read, for nothing or twice.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.markov.filtering import Belief
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from dphmm.session.plan import Position

SIDE = 5
N = SIDE**2
POINTS = np.stack(np.divmod(np.arange(N), SIDE), axis=1)
NEAR = np.abs(POINTS[:, None] - POINTS).max(axis=2) <= 1
SPACE = dphmm.StateSpace(POINTS)
#: From one corner: the support grows for some steps, and so plans change.
WALK = dphmm.MarkovModel(np.eye(N)[0], NEAR / NEAR.sum(axis=1, keepdims=True))
EVEN = dphmm.MarkovModel(np.full(N, 1 / N), NEAR / NEAR.sum(axis=1, keepdims=True))
#: All but one move so unlikely that the floats of a belief end after some steps.
FAINT = dphmm.MarkovModel(
    np.eye(N)[0], sparse.csr_array(np.where(NEAR, 1e-120, 0) + np.diag(1 - 1e-120 * (NEAR.sum(axis=1) - 1) - 1e-120))
)
NEIGHBOURS = dphmm.policy.radius(SPACE, 1)
ROWS = dphmm.policy.categorical(POINTS[:, 0])
WORLDS = {
    "growing": (WALK, NEIGHBOURS, SPACE, {}),
    "complete": (EVEN, dphmm.policy.complete(N), SPACE, {"mechanism": "discrete-knorm", "start": "at"}),
    "staircase": (EVEN, NEIGHBOURS, SPACE, {"mechanism": "staircase"}),
    "laplace": (WALK, NEIGHBOURS, SPACE, {"mechanism": "discrete-laplace", "protection": "min-error"}),
    "table": (WALK, NEIGHBOURS, SPACE, {"mechanism": "optimal-table"}),
    "rows": (WALK, ROWS, SPACE, {}),
    "faint": (FAINT, NEIGHBOURS, SPACE, {}),
    "delta": (WALK, NEIGHBOURS, SPACE, {"constraint": "delta=0.2"}),
}
#: Three users with gaps, drift (a state that nobody can be in at first, a name that no state has) and late beginnings.
FRAME = pd.DataFrame(
    [("a", 0, "0"), ("a", 1, "24"), ("a", 4, "7"), ("b", 3, "elsewhere"), ("b", 4, "2"), ("b", 12, "24"),
     ("c", 1, "6"), ("a", 5, "12"), ("a", 14, "13"), ("b", 13, "1"), ("c", 9, "8"), ("c", 10, "8")],
    columns=["user", "step", "state"],
)  # fmt: skip


def held(ledger):
    """Everything that a ledger holds."""
    entries = {key: ledger.entries(*key) for key in ledger.sessions()}
    plans = {entry.plan_hash for some in entries.values() for entry in some if entry.plan_hash is not None}
    return {
        "headers": {key: ledger.header(*key) for key in entries},
        "entries": entries,
        "plans": {plan: ledger.plan(plan) for plan in plans},
        "spent": {subject: ledger.spent(subject) for subject, _ in entries},
    }


def table(world, frame, *, bits=None, ledger=None, **more):
    model, policy, space, choices = world
    ledger = MemoryLedger() if ledger is None else ledger
    bits = dphmm.ReplayBits(5) if bits is None else bits
    how = {"bits": bits, "ledger": ledger, "progress": False, **choices, **more}
    return dphmm.release_many(frame, model, policy, space, 1, **how), ledger


@pytest.mark.parametrize("name", WORLDS)
def test_reading_an_estimate_changes_nothing(name):
    model, policy, space, choices = WORLDS[name]
    seen, last = [], []
    for reads in (True, False):
        ledger, found = MemoryLedger(), []
        session = dphmm.ReleaseSession(*(model, policy, space, 1), ledger=ledger, bits=dphmm.ReplayBits(2), **choices)
        for step, state in enumerate([0, 24, -1, "elsewhere", 7, 12]):
            if step in (2, 5):
                session.skip(step)
            found.append((session.plan.hash, session.support.tolist(), str(session.release(state))))
            if reads:
                session.estimate("euclidean")
        assert [str(release) for release in session.releases] == [one for _, _, one in found]
        seen.append((found, held(ledger), session.owner_view()))
        last.append((str(session.estimate()), session.prior.log_probability.tobytes()))
    assert seen[0] == seen[1] and last[0] == last[1]


@pytest.mark.parametrize("name", ["growing", "delta", "faint"])
def test_an_estimate_is_what_a_resumed_session_and_every_reading_habit_have(name):
    """Read after each step, now and then, or once at the end: the same bits."""
    model, policy, space, choices = WORLDS[name]
    states = np.random.default_rng(4).integers(0, N, 200).tolist()
    found = []
    for every in (1, 7, 200):
        ledger = MemoryLedger()
        session = dphmm.ReleaseSession(
            *(model, policy, space, 1), subject="x", ledger=ledger, bits=dphmm.ReplayBits(9), **choices
        )
        for step, state in enumerate(states, start=1):
            if step % 50 == 0:
                session.skip(3)
            session.release(state)
            if step % every == 0:
                session.estimate()
        resumed = dphmm.ReleaseSession.resume(ledger, "x", model, policy, space)
        for one in (session, resumed):
            found.append((str(one.estimate()), one.posterior.log_probability.tobytes(), one.prior.support.tolist()))
    assert found == [found[0]] * 6


def test_an_estimate_is_of_the_steps_that_this_session_has_had():
    """Another session of the same key has gone on; its answers are not in it until they are asked for."""
    model, policy, space, _ = WORLDS["growing"]
    ledger = MemoryLedger()
    ahead, behind = (
        dphmm.ReleaseSession(model, policy, space, 1, subject="x", ledger=ledger, bits=dphmm.ReplayBits(seed))
        for seed in (1, 2)
    )
    ahead.release(3)
    early = str(ahead.estimate())
    ahead.release(9)
    behind.release(0, t=1)
    assert str(behind.estimate()) == early
    behind.release(0, t=2)
    assert str(behind.estimate()) == str(ahead.estimate()) != early


def test_reading_after_every_step_moves_each_belief_once(monkeypatch):
    """So it is linear: whoever folds again from the first step would move beliefs n·(n + 1) / 2 times."""
    model, policy, space, _ = WORLDS["growing"]
    moved, truly = [], Belief.predict

    def predict(belief, model, t):
        moved.append(t)
        return truly(belief, model, t)

    session = dphmm.ReleaseSession(model, policy, space, 1, bits=dphmm.ReplayBits(9))
    monkeypatch.setattr(Belief, "predict", predict)
    for state in np.random.default_rng(4).integers(0, N, 300).tolist():
        session.release(state)
        session.estimate()
    assert moved == list(range(2, 302))


@pytest.fixture
def no_belief_moves(monkeypatch):
    """Beliefs raise where they are moved, but for the prior of step 1, which follows from the model alone."""

    def refuse(*_, **__):
        raise AssertionError("a belief was moved")

    def predict(belief, model, t, truly=Belief.predict):
        return truly(belief, model, t) if sys._getframe(1).f_code is Position.first.__func__.__code__ else refuse()

    monkeypatch.setattr(Belief, "predict", predict)
    for name in ("predict_many", "condition", "weighted"):
        monkeypatch.setattr(Belief, name, refuse)
    for name in ("condition", "predict", "predict_through"):
        monkeypatch.setattr(Position, name, refuse)


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "delta"])
def test_no_belief_is_moved(name, no_belief_moves):
    """Neither by a release nor by a history that is continued, in tables, sessions and for rows that come again."""
    model, policy, space, choices = WORLDS[name]
    first = FRAME[FRAME["step"] <= 5]
    _, ledger = table(WORLDS[name], first)
    again, _ = table(WORLDS[name], FRAME, ledger=ledger, resume=True)
    assert len(again) == len(FRAME)
    session = Batch(model, policy, space, 1, ledger=ledger, bits=dphmm.ReplayBits(1), **choices)
    resumed = session.resumed("a")
    resumed.skip(3)
    assert resumed.release(4).asked and resumed.released(1).asked
    with pytest.raises(AssertionError, match="a belief was moved"):
        resumed.estimate()


class Counted(MemoryLedger):
    """A ledger that counts how often whole histories are read."""

    def __init__(self):
        super().__init__()
        self.read = 0

    def entries(self, subject, query, first=1):
        self.read += 1
        return super().entries(subject, query, first)


def test_a_long_history_is_not_read_for_new_rows():
    model, policy, space, _ = WORLDS["growing"]
    ledger, bits = Counted(), dphmm.ReplayBits(6)
    rows = pd.DataFrame({"user": "a", "step": np.arange(300), "state": "0"})
    table(WORLDS["growing"], rows, ledger=ledger, bits=bits)
    batch = Batch(model, policy, space, 1, ledger=ledger, bits=bits)
    ledger.read = 0
    session = batch.resumed("a")
    session.release(0)
    session.skip(1)
    stream = Stream(batch, True)
    list(stream.take(parse_line(b'{"user": "a", "step": 302, "state": "7"}', False)))
    assert ledger.read == 0
    for steps, reads in (([303, 305], 0), ([0, 303, 306], 1)):
        # A row that comes again is read, once with all others.
        ledger.read = 0
        more = pd.DataFrame({"user": "a", "step": steps, "state": "0"})
        found, _ = table(WORLDS["growing"], more, ledger=ledger, bits=bits, resume=True)
        assert len(found) == len(steps) and ledger.read == reads
