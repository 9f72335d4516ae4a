"""Batches of up to 17 subjects against single sessions, over random worlds: policies, delta-sets, faint
beginnings, gaps, every mechanism, and borders of chunks and cores that are drawn too.

Claims: for every kind of policy and every mechanism, whatever is published of a subject is what a session says that
knows this subject alone, and not one bit of it changes with the company. It would fail for a belief that is another
subject's.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.policy import graph
from dphmm.policy._cliques import Complete
from dphmm.release.batch import Batch, ReleasedRow
from dphmm.states.trajectory import Trajectories
from registered import chosen_mechanisms, left_out, policy_kinds


def told(rows):
    return repr([(row.user, [np.asarray(value).tolist() for value in vars(row.release).values()]) for row in rows])


#: How each kind of policy is drawn.
POLICIES = {
    "complete": lambda rng, model, space: dphmm.policy.complete(space.n_states),
    "categorical": lambda rng, model, space: dphmm.policy.categorical(rng.integers(0, 3, space.n_states)),
    "radius": lambda rng, model, space: dphmm.policy.radius(space, int(rng.integers(1, 5))),
    "knn": lambda rng, model, space: dphmm.policy.knn(space, min(3, space.n_states - 1)),
    "transition": lambda rng, model, space: dphmm.policy.transition(model),
    "edges": lambda rng, model, space: listed(rng, space),
    "union": lambda rng, model, space: listed(rng, space).union(dphmm.policy.radius(space, 1)),
}


def listed(rng, space):
    return dphmm.policy.from_edges(rng.integers(0, space.n_states, (space.n_states, 2)), space.n_states)


def world(rng, kind, mechanism):
    # A program finds the optimal ones: of a few states near each other, at an epsilon that is not small.
    small = mechanism.startswith("optimal")
    n = int(rng.integers(2, 8 if small else 40))
    moves = rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.1, 0.3, 1.0]))
    moves[np.arange(n), rng.permutation(n)] += 0.1
    if rng.random() < 0.3:
        moves = moves * 10.0 ** (-rng.integers(0, 280, (n, n)) * (rng.random((n, n)) < 0.3))
    initial = rng.random(n) * (rng.random(n) < rng.choice([0.2, 1.0]))
    initial[rng.integers(n)] += 1
    if rng.random() < 0.3:
        initial = initial * 10.0 ** (-rng.integers(0, 300, n) * (rng.random(n) < 0.5))
    model = dphmm.MarkovModel(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))
    space = dphmm.StateSpace(rng.integers(0, 3 if small else 8, (n, int(rng.integers(1, 3)))))
    choices = {"mechanism": mechanism}
    for name, values, chance in (
        ("constraint", ["delta=0.01", "delta=0.2", "delta=0.5"], 0.3),
        ("start", ["at", "before"], 0.4),
    ):
        if rng.random() < chance:
            choices[name] = str(rng.choice(values))
    epsilon = int(rng.choice([2, 4, 8] if small else [1, 2, 8, 30]))
    return model, POLICIES[kind](rng, model, space), space, epsilon, choices


def rows_of(rng, n, users):
    found = []
    for user in range(users):
        ahead = rng.choice([1, 1, 1, 1, 2, 3, 40, 300], int(rng.choice([1, 2, 5, 12])))
        steps = int(rng.choice([0, 1, 5])) + np.cumsum(ahead)
        found += [(f"u{user:02}", step, str(rng.integers(n))) for step in steps.tolist()]
    return found


def trajectories(rows):
    users, steps, states = zip(*rows, strict=True)
    return Trajectories.from_labels(list(users), state=np.array(states, dtype=object), step=np.array(steps))


@pytest.mark.parametrize("mechanism", chosen_mechanisms())
@pytest.mark.parametrize("kind", policy_kinds())
def test_a_subject_is_told_the_same_in_whatever_company(kind, mechanism, monkeypatch):
    seed = policy_kinds().index(kind) * len(chosen_mechanisms()) + chosen_mechanisms().index(mechanism)
    rng = np.random.default_rng([7, seed])
    model, policy, space, epsilon, choices = world(rng, kind, mechanism)
    assert policy.kind == kind
    users = int(rng.integers(1, 18))
    rows, ledger = rows_of(rng, space.n_states, users), MemoryLedger()

    def run(some, bits, resume):
        monkeypatch.setattr("dphmm.release.batch.CHUNK", int(rng.choice([1, 3, 7, 10**6])))
        work = Batch(model, policy, space, epsilon, ledger=ledger, bits=dphmm.ReplayBits(bits), **choices)
        return work, [row for chunk in work.run(trajectories(some), resume=resume) for row in chunk]

    work, published = run(rows, seed, False)
    sessions = {user: work.resumed(user) for user, _ in ledger.sessions()}
    again = [ReleasedRow(user, None, r) for user, s in sessions.items() for r in s.releases]
    assert told(published) == told(again)
    assert told(run(rows, seed + 1, True)[1]) == told(published)
    kept = {f"u{user:02}" for user in rng.choice(users, int(rng.integers(1, users + 1)), replace=False)}
    some = run([row for row in rows if row[0] in kept], seed + 2, True)[1]
    assert told(some) == told([row for row in published if row.user in kept])


_POLICY = "how it is drawn to POLICIES, in tests/session/test_company.py"


def test_every_kind_of_policy_is_drawn(monkeypatch):
    """And every mechanism by its name, of which none may be refused."""
    assert left_out(policy_kinds(), POLICIES, _POLICY) == []
    monkeypatch.setitem(graph.KINDS, "rings", Complete)
    assert left_out(policy_kinds(), POLICIES, _POLICY) == [f"rings is registered and not tried here: add {_POLICY}"]
