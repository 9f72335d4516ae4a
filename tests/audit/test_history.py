"""The states that a public history leaves possible, by sets alone.

Claims: sessions whose support is too small are convicted, also at later steps; many steps at once lead where one after
another does.
"""

from __future__ import annotations

import numpy as np

import dphmm
from audit.small import session
from dphmm.audit import verify
from dphmm.audit.history import moved, moved_through
from exactness import mutants


def test_a_support_from_floats_is_convicted(monkeypatch):
    """A session that calls an unlikely state impossible: its history is moved by sets here."""
    mutants.support_from_floats(monkeypatch)
    transition = np.full((3, 3), 0.01) + 0.97 * np.eye(3)
    model = dphmm.MarkovModel(np.array([0.98, 0.01, 0.01]), transition)
    line = dphmm.StateSpace([[0], [1], [2]])
    one = session(model=model, policy=dphmm.policy.complete(3), space=line)
    assert any("takes them to be impossible" in finding for finding in verify(one).findings)


def test_a_plan_of_another_step_is_convicted(monkeypatch):
    """Plans found again by how many states are possible: at step 2 it is two others."""
    mutants.plans_cached_by_size(monkeypatch)
    there_and_back = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=float)
    model = dphmm.MarkovModel(np.array([0.5, 0.5, 0, 0]), there_and_back, start="at")
    space = dphmm.StateSpace([[0], [1], [5], [9]])
    one = session(model=model, policy=dphmm.policy.complete(4), space=space)
    assert not verify(one).convicted
    one.release(0)
    assert any("takes them to be impossible" in finding for finding in verify(one).findings)


def test_supports_after_many_steps_are_those_of_one_after_another():
    rng = np.random.default_rng(8)
    for _ in range(30):
        n = int(rng.integers(2, 8))
        moves = np.eye(n)[rng.permutation(n)] + (rng.random((n, n)) < 0.05)
        model = dphmm.MarkovModel(np.full(n, 1 / n), moves / moves.sum(axis=1, keepdims=True))
        support = first = rng.random(n) < 0.4
        for t in range(1, 60):
            assert np.array_equal(moved_through(model, first, 1, t), support)
            support = moved(model, support)
