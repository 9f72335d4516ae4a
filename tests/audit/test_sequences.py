"""`sequence_loss`: the worst two histories over a sequence of releases, against every history and every answer.

Claims: the dynamic programme finds what a search of all pairs of histories finds; that loss really occurs, at an answer
that can be written down, and no other answer of a window has more; it is never above the sum of the costs (Theorem
7.2), which is reached, and often above the sum of the epsilons. Exact: no error rates.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE, everywhere
from dphmm.audit import sequence_loss, sequences
from dphmm.audit.law import Law
from dphmm.audit.sequences import losses
from dphmm.errors import InvalidInput
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from registered import chosen_mechanisms


def histories(model, steps):
    """Every possible history of states at steps 1.., by trying all."""
    matrix = model.transition.toarray()
    first = model.initial @ matrix if model.start == "before" else model.initial
    for path in itertools.product(range(model.n_states), repeat=steps):
        if first[path[0]] > 0 and all(matrix[a, b] > 0 for a, b in itertools.pairwise(path)):
            yield path


def plans(model, policy, space, epsilon, steps, **options):
    planner = Planner(policy, space, Options.checked(epsilon, start=model.start, **options))
    for t in range(1, steps + 1):
        support = np.zeros(model.n_states, dtype=bool)
        support[[path[-1] for path in histories(model, t)]] = True
        yield planner.plan(support, support)


def random_world(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    matrix = (rng.random((n, n)) < 0.6) * rng.random((n, n)) + 1e-3 * np.eye(n)
    model = dphmm.MarkovModel(np.eye(n)[rng.integers(n)] * 0.5 + 0.5 / n, matrix / matrix.sum(axis=1, keepdims=True))
    space = dphmm.StateSpace(rng.permutation(7)[:n, None])
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5]
    return model, dphmm.policy.from_edges(edges, n), space


@pytest.mark.parametrize("mechanism", chosen_mechanisms())
@pytest.mark.parametrize("seed", range(15))
def test_no_two_histories_lose_more_and_two_lose_it(seed, mechanism):
    model, policy, space = random_world(seed)
    steps = 3
    verdict = sequence_loss(model, policy, space, Fraction(1, 2), steps, mechanism=mechanism)
    made = list(plans(model, policy, space, Fraction(1, 2), steps, mechanism=mechanism))
    tables = [losses(plan) for plan in made]
    found = {
        (one, two): sum(table[a][b] for table, a, b in zip(tables, one, two, strict=True))
        for one, two in itertools.product(list(histories(model, steps)), repeat=2)
    }
    assert verdict.worst == max(found.values()) == found[verdict.first, verdict.second]
    assert not verdict.convicted and verdict.worst <= verdict.charged == sum(plan.cost for plan in made)


# Of the laws with exponents in fractions: those of weights are logarithms in floats, and a table has no window.
@pytest.mark.parametrize("mechanism", ["discrete-knorm", "staircase"])
@pytest.mark.parametrize("seed", range(6))
def test_the_loss_is_that_of_real_answers(seed, mechanism):
    """Over every answer of a window, step by step: noises are independent, so ratios of a sequence multiply."""
    model, policy, space = random_world(seed)
    verdict = sequence_loss(model, policy, space, 1, 2, mechanism=mechanism)
    total = Fraction(0)
    for plan, a, b in zip(
        plans(model, policy, space, 1, 2, mechanism=mechanism), verdict.first, verdict.second, strict=True
    ):
        if plan.constant:
            continue
        law, window = Law.of(plan.mechanism), np.arange(-40, 41)[:, None]
        from_a, from_b = (law.exponents(window - plan.image[s]) for s in (a, b))
        total += max(y - x for x, y in zip(from_a, from_b, strict=True))
    assert total == verdict.worst


def test_theorem_7_2_is_reached_and_epsilon_is_no_bound():
    """Three states on a line, each release costing 2ε: two histories lose 4ε in two (docs/theory.md 7)."""
    line = dphmm.StateSpace([[0], [1], [2]])
    policy = dphmm.policy.from_edges([(0, 1), (1, 2)], 3)
    verdict = sequence_loss(everywhere(3), policy, line, 1, 2, mechanism="discrete-knorm")
    assert (verdict.worst, verdict.charged, verdict.epsilons) == (4, 4, 2)
    assert {verdict.first, verdict.second} == {(0, 0), (2, 2)}


def test_the_running_example_loses_less_than_is_charged():
    """The chain cannot be at the two ends of the hull at every step, so the sum of the costs is not reached."""
    verdict = sequence_loss(MODEL, POLICY, SPACE, 1, 6, mechanism="discrete-knorm")
    assert 6 < verdict.worst < verdict.charged == 12


def test_an_undercharged_sequence_is_convicted(monkeypatch):
    from exactness import mutants

    mutants.epsilon_charged_as_cost(monkeypatch)
    verdict = sequence_loss(everywhere(), POLICY, SPACE, 1, 2, mechanism="discrete-knorm")
    assert verdict.convicted and "CONVICTED" in verdict.lines[0]
    assert json.loads(json.dumps(verdict.document()))["charged"] == "2"


def test_plans_that_hang_on_answers_and_large_models_are_refused(monkeypatch):
    with pytest.raises(InvalidInput, match="known beforehand"):
        sequence_loss(MODEL, POLICY, SPACE, 1, 2, constraint="delta=0.1")
    monkeypatch.setattr(sequences, "_MOST_WORK", 100)
    with pytest.raises(InvalidInput, match="steps"):
        sequence_loss(MODEL, POLICY, SPACE, 1, 2)
    with pytest.raises(InvalidInput, match="steps"):
        sequence_loss(MODEL, POLICY, SPACE, 1, 0)
