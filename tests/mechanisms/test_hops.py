"""The table by hops: randomised response where all answers are joined, and what an edge can lose in any graph."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms import Hops, OptimalTable
from dphmm.mechanisms.registry import KINDS


def complete(n):
    return np.array(list(itertools.combinations(range(n), 2)))


def line(n):
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


GRAPHS = {
    "complete": (5, complete(5)),
    "line": (7, line(7)),
    "star": (6, np.array([(0, k) for k in range(1, 6)])),
    "ring": (6, np.array([(k, (k + 1) % 6) for k in range(6)])),
    "two parts": (7, np.array([(0, 1), (1, 2), (3, 4), (4, 5), (5, 6)])),
    "one alone": (4, np.array([(0, 1), (1, 2)])),
}


def table(name, epsilon):
    n, edges = GRAPHS[name]
    return Hops(np.arange(n)[:, None], edges, epsilon)


def largest_ratio(weights, a, b):
    """Of two rows of whole numbers with one sum, exactly."""
    pairs = zip(weights[a].tolist(), weights[b].tolist(), strict=True)
    return max(max(Fraction(x, y), Fraction(y, x)) for x, y in pairs)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), 1, 4, 11, 40])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_edge_keeps_epsilon_in_whole_numbers(name, epsilon):
    made = table(name, epsilon)
    weights = made.law.weights
    assert {sum(row) for row in weights.tolist()} == {1 << made.law.bits} and (weights > 0).all()
    # e^ε from below: partial sums of its series.
    bound, term = Fraction(1), Fraction(1)
    for k in range(1, 40 + 3 * math.ceil(epsilon)):
        term *= Fraction(epsilon) / k
        bound += term
    worst = max(largest_ratio(weights, a, b) for a, b in made.edges.tolist())
    assert worst <= bound
    if 0.1 < epsilon <= 11:
        # What is allowed is used.
        assert math.log(worst) > float(epsilon) * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 4])
@pytest.mark.parametrize("n", range(2, 13))
def test_where_all_are_joined_it_is_randomised_response_and_the_program_s_optimum(n, epsilon):
    made, truth = Hops(np.arange(n)[:, None], complete(n), epsilon), math.exp(epsilon) / (math.exp(epsilon) + n - 1)
    chances = made.law.probabilities
    assert np.abs(chances.diagonal() - truth).max() <= 1e-8
    off = chances[~np.eye(n, dtype=bool)]
    assert np.ptp(off) <= 1e-12
    if n <= 6:
        best = OptimalTable(np.arange(n)[:, None], complete(n), epsilon, costs=1.0 - np.eye(n))
        assert 1 - best.mean_cost == pytest.approx(chances.diagonal().mean(), abs=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_further_away_is_named_less_often(name):
    n, edges = GRAPHS[name]
    chances = table(name, 1).law.probabilities
    ways = np.full((n, n), n + 1)
    np.fill_diagonal(ways, 0)
    for a, b in edges.tolist():
        ways[a, b] = ways[b, a] = 1
    for k in range(n):
        ways = np.minimum(ways, ways[:, [k]] + ways[[k]])
    longest = ways[ways <= n].max()
    ways = np.minimum(ways, longest + 1)
    for row, far in zip(chances, ways, strict=True):
        for one, other in itertools.permutations(range(n), 2):
            if far[one] < far[other]:
                assert row[one] > row[other]
            elif far[one] == far[other]:
                assert row[one] == pytest.approx(row[other], rel=1e-9)


def test_answers_in_another_order_and_place_have_the_same_law():
    _, edges = GRAPHS["line"]
    made, order = table("line", 1), np.array([3, 0, 6, 2, 5, 1, 4])
    back = np.argsort(order)
    moved = Hops(10 + 3 * order[:, None], back[edges], 1)
    assert (moved.law.weights == made.law.weights).all() and (moved.law.points == 10 + 3 * made.law.points).all()
    assert moved.describe()["weights"] != made.describe()["weights"]


@pytest.mark.parametrize("way", [{}, {"constraint": dphmm.policy.DeltaSet("0.05")}])
def test_a_session_keeps_its_promise_with_it(way):
    """Names of pages in no order: every edge of the policy, over every answer, at every step of a history."""
    n, steps = 6, 4
    space = dphmm.StateSpace.categories(list("abcdef"))
    moves = 0.5 * np.eye(n) + 0.5 * np.roll(np.eye(n), 1, axis=1)
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves)
    policy = dphmm.policy.from_edges([(0, 1), (1, 2), (3, 4), (4, 5), (5, 3)], n)
    session = dphmm.ReleaseSession(model, policy, space, 1, mechanism="hops", bits=dphmm.ReplayBits(3), **way)
    for _ in range(steps):
        plan = session.plan
        assert plan.mechanism_name in ("hops", "constant")
        support = plan.constraint.support
        logs = np.array([plan.log_likelihood(np.array([z])) for z in range(n)])
        for a, b in policy.edges().tolist():
            if support[a] and support[b]:
                both = np.isfinite(logs[:, a]) | np.isfinite(logs[:, b])
                assert np.abs(logs[both, a] - logs[both, b]).max() <= 1 + 1e-9
        release = session.release(2)
        assert 0 <= int(release.z[0]) < n and session.estimate().state in range(n)


def test_who_asks_for_what_it_is_not_is_told():
    assert "hops" in KINDS
    with pytest.raises(InvalidInput, match="got 401 answers; expected at most 400"):
        Hops(np.arange(401)[:, None], line(401), 1)
    with pytest.raises(InvalidInput, match="policy, space: got 3 states in the policy, 6 in the space"):
        Hops.for_policy(dphmm.policy.complete(3), dphmm.StateSpace(range(6)), 1)
