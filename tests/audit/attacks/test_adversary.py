"""Adversaries know what Bayes' rule says they know.

Claims: the tracker's beliefs are the enumerated posteriors, the smoother's and Viterbi's those of all paths; a chain
that an answer refutes begins anew.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dphmm
from audit.small import MODEL, session
from dphmm.audit import Adversary
from dphmm.audit.attacks.adversary import METHODS, Seen
from running_example import TRANSITION

STEPS = 4


def played(**options):
    """Four answers of a session, and each one's plan."""
    one = session(seed=9, **options)
    seen = []
    for state in (1, 2, 0, 3)[:STEPS]:
        plan = one.plan
        release = one.release(state)
        seen.append(Seen(release.t, release.z_lattice, plan))
    return one, seen


def enumerated(seen, model):
    """Marginals given all answers, given those before and at each step, and the likeliest path, from every path."""
    matrix, n = model.transition.toarray(), model.n_states
    first = model.initial @ matrix
    likelihood = [np.where(s.plan.still_possible(s.z), np.exp(s.plan.log_likelihood(s.z)), 0) for s in seen]

    def weights(upto):
        for path in itertools.product(range(n), repeat=upto):
            p = first[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
            yield path, p * math.prod(likelihood[k][s] for k, s in enumerate(path))

    filtered = np.zeros((len(seen), n))
    for upto in range(1, len(seen) + 1):
        for path, p in weights(upto):
            filtered[upto - 1, path[-1]] += p
    smoothed, best = np.zeros((len(seen), n)), {}
    for path, p in weights(len(seen)):
        smoothed[np.arange(len(seen)), list(path)] += p
        best[path] = p
    return filtered / filtered.sum(axis=1, keepdims=True), smoothed / smoothed.sum(axis=1, keepdims=True), best


@pytest.mark.parametrize("options", [{}, {"constraint": "delta=0.3"}, {"scope": "component"}], ids=str)
def test_beliefs_are_the_enumerated_ones(options):
    one, seen = played(**options)
    filtered, smoothed, paths = enumerated(seen, MODEL)
    beliefs = {name: Adversary(name, name, MODEL).beliefs(seen) for name in METHODS}
    assert np.allclose(beliefs["tracker"], filtered) and np.allclose(beliefs["smoother"], smoothed)
    assert paths[tuple(beliefs["viterbi"].argmax(axis=1).tolist())] == pytest.approx(max(paths.values()))
    assert np.allclose(beliefs["tracker"][-1], one.posterior.probability)
    powers = [np.full(6, 1 / 6) @ np.linalg.matrix_power(TRANSITION, t) for t in range(1, STEPS + 1)]
    assert np.allclose(beliefs["prior"], powers)
    alone = np.where(seen[1].plan.still_possible(seen[1].z), np.exp(seen[1].plan.log_likelihood(seen[1].z)), 0)
    assert np.allclose(beliefs["memoryless"][1], alone / alone.sum())
    assert all(np.allclose(rows.sum(axis=1), 1) for rows in beliefs.values())


def test_a_gap_is_moved_through():
    one = session(seed=3)
    one.skip(2)
    plan = one.plan
    release = one.release(1)
    seen = [Seen(release.t, release.z_lattice, plan)]
    assert np.allclose(Adversary("t", "tracker", MODEL).beliefs(seen)[0], one.posterior.probability)
    assert np.allclose(Adversary("s", "smoother", MODEL).beliefs(seen)[0], one.posterior.probability)


def test_a_wrong_chain_that_an_answer_refutes_begins_anew():
    answers = np.array([[0, 0], [1, 0], [0, 5], [1, 5]])
    stay = dphmm.MarkovModel(np.full(4, 0.25), np.eye(4))
    one = session(
        model=stay, policy=dphmm.policy.from_edges([(0, 1), (2, 3)], 4), space=dphmm.StateSpace(answers), flat="allow"
    )
    plan = one.plan
    release = one.release(3)
    sure = dphmm.MarkovModel(np.eye(4)[0], np.eye(4))
    belief = Adversary("sure", "tracker", sure).beliefs([Seen(1, release.z_lattice, plan)])[0]
    assert belief[:2].tolist() == [0, 0] and belief.sum() == pytest.approx(1)
