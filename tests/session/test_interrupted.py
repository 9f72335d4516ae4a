"""Two sessions of one key, stopped at odd places and gone on with: each step has one answer, paid before it is shown.

Random histories of releases, skips, resumes and interrupts, before or after what they stop. It could fail where a
session's own state outlives a transaction that was rolled back, or a step that was stored is drawn again.
"""

from __future__ import annotations

import linecache
import sys
from itertools import pairwise

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.transaction import BaseTransaction
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.session.rounds import Engine
from dphmm.session.scheduled import Scheduled
from dphmm.session.stepwise import Stepwise
from dphmm.states.trajectory import Trajectories

N = 9
MODEL = dphmm.MarkovModel(np.eye(N)[4], np.full((N, N), 1 / N))
SPACE = dphmm.StateSpace(np.stack(np.divmod(np.arange(N), 3), axis=1))
POLICY = dphmm.policy.radius(SPACE, 1)
STOPPED = [
    (BaseTransaction, "put_snapshot"),
    (BaseTransaction, "add"),
    *((kind, name) for kind in (Stepwise, Scheduled) for name in ("predict", "constrain", "plan", "condition")),
]


def opened(ledger, rng, choices):
    bits = dphmm.ReplayBits(int(rng.integers(10**6)))
    if ledger.header("a", "state"):
        return dphmm.ReleaseSession.resume(ledger, "a", MODEL, POLICY, SPACE, bits=bits)
    return dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, subject="a", ledger=ledger, bits=bits, **choices)


def interrupting(patch, rng):
    """One of the places raises KeyboardInterrupt, before or after its work."""
    kind, name = STOPPED[int(rng.integers(len(STOPPED)))]
    truly, after = getattr(kind, name), rng.random() < 0.5

    def stopped(self, *given):
        if after:
            truly(self, *given)
        raise KeyboardInterrupt

    patch.setattr(kind, name, stopped)


def acted(session, rng, shown):
    """A skip, or a release whose answer is what was shown of its step before, if it was."""
    if rng.random() < 0.1:
        session.skip(int(rng.integers(1, 4)))
        return
    named = {"t": session.t} if rng.random() < 0.7 else {}
    if session.t > 1 and rng.random() < 0.3:
        session.estimate()
    release = session.release(int(rng.integers(N)), **named)
    answer = tuple(release.z_lattice.tolist())
    assert shown.setdefault(release.t, answer) == answer


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.2"}], ids=["public", "δ"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_stops_it_a_step_has_one_answer_which_is_paid(seed, choices):
    rng, ledger = np.random.default_rng([seed, len(str(choices))]), MemoryLedger()
    sessions, shown, stops = [opened(ledger, rng, choices) for _ in range(2)], {}, 0
    for _ in range(90):
        session = sessions[int(rng.integers(2))]
        with pytest.MonkeyPatch.context() as patch:
            if rng.random() < 0.15:
                interrupting(patch, rng)
            try:
                acted(session, rng, shown)
            except KeyboardInterrupt:
                stops += 1
                left = session.t > 1 and str(session.estimate())
                session._reader[1].fold_again_before(0)
                assert left == (session.t > 1 and str(session.estimate()))
            except InvalidInput as refused:
                assert "moved on" in str(refused) or "skipped" in str(refused)
        if rng.random() < 0.05:
            sessions[int(rng.integers(2))] = opened(ledger, rng, choices)
    entries = ledger.entries("a", "state")
    stored = {entry.t: entry.z for entry in entries if entry.z is not None}
    assert stops and len(shown) > 10 and {t: stored[t] for t in shown} == shown
    assert ledger.spent("a").epsilon == len(stored) - sum(entry.constant for entry in entries)
    assert [(before, after) for before, after in pairwise(entries) if after.t != before.through + 1] == []


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.2"}], ids=["public", "δ"])
@pytest.mark.parametrize("name", ["show", "_accept", "_release_of"])
def test_a_step_that_was_stored_before_an_interrupt_is_told_when_it_is_asked_for(name, choices):
    """The commit went through and beliefs had moved on, but the session never had the answer."""
    session = opened(MemoryLedger(), np.random.default_rng(5), choices)
    first = session.release(4)
    kind = Engine if name == "show" else dphmm.ReleaseSession
    truly = getattr(kind, name)

    def stopped(self, *given):
        truly(self, *given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, name, stopped)
        with pytest.raises(KeyboardInterrupt):
            session.release(0)
    again = session.release(8, t=2)
    (entry,) = session._ledger.entries("a", "state", 2)
    assert tuple(again.z_lattice.tolist()) == entry.z and session.t == 3
    resumed = dphmm.ReleaseSession.resume(session._ledger, "a", MODEL, POLICY, SPACE)
    assert [r.z_lattice.tolist() for r in resumed.releases] == [r.z_lattice.tolist() for r in (first, again)]
    assert str(resumed.estimate()) == str(session.estimate()) and resumed.plan.hash == session.plan.hash


@pytest.mark.parametrize("many", [False, True])
def test_an_interrupt_while_a_ledger_in_memory_commits_leaves_all_of_the_transaction(many):
    """At every line of `MemoryTransaction.keep`: a step is there with its cost, and once."""
    for stop in range(1, 60):
        ledger, shown = MemoryLedger(), {}
        session = opened(ledger, np.random.default_rng(5), {})
        shown[1] = session.release(4).z_lattice.tolist()
        stopping, before = _Stopping(stop), sys.gettrace()
        try:
            sys.settrace(stopping)
            if many:
                batch = Batch(MODEL, POLICY, SPACE, 1, ledger=ledger, bits=dphmm.ReplayBits(1))
                rows = Trajectories.from_labels(["b"] * 3, state=np.array(["0"] * 3, object), step=np.arange(3))
                list(batch.run(rows))
            else:
                session.release(4)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        for subject in ("a", "b"):
            steps = [entry.t for entry in ledger.entries(subject, "state")]
            assert steps == list(range(1, 1 + len(steps))), stopping.where
            assert ledger.spent(subject).epsilon == len(steps), stopping.where
        if stopping.left:
            break
        shown |= {t: session.release(0, t=t).z_lattice.tolist() for t in (2, 3)}
        assert shown == {entry.t: list(entry.z) for entry in ledger.entries("a", "state")}
    assert 5 < stop < 59


class _Stopping:
    """A trace function that raises KeyboardInterrupt at one of the lines that commit to a ledger in memory."""

    def __init__(self, line: int) -> None:
        self.left, self.where = line, ""

    def __call__(self, frame, event, arg):
        code = frame.f_code
        inside = code.co_name in ("_keep", "extend", "entries") and code.co_filename.endswith("memory.py")
        return self.line if inside else None

    def line(self, frame, event, arg):
        # Python hands no signal to a statement between the body of `with` and its end.
        if event == "line" and self.left and "with " not in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            self.left -= 1
            if not self.left:
                self.where = f"{frame.f_code.co_name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self.line
