"""Rows of floats that drop small probabilities, against a filter in fractions that drops nothing.

Claims: the bound holds for every state after every step; the estimate is within it; a row that dropped nothing has a
bound of 0. Thresholds are large here, so that dropping is common and many certificates fail. It would fail for a bound
that forgets an answer, a move, the states that many move to, or what is dropped after a move, and for a certificate
that is not looked at.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
import pytest

from dphmm._kernels import filter_batch as kernels
from dphmm._kernels.filter import TABLE
from dphmm._kernels.filter_batch import (
    Columns,
    Estimates,
    Flushing,
    Laws,
    Steps,
    Subjects,
    empty_batch,
    filter_batch,
)
from dphmm.markov.model import MarkovModel

N = 6


def world(rng, jump=None):
    """(model, weights of answers (k, N), start row): moves to few, hubs, tiny probabilities; answers that surprise."""
    moves = rng.random((N, N)) * (rng.random((N, N)) < 0.5) * 10.0 ** -rng.integers(0, 4, (N, N))
    moves[np.arange(N), (np.arange(N) + 1) % N] += 0.01
    if rng.random() < 0.3:
        moves[:, 0] += 5
    weights = 10.0 ** -(rng.integers(0, 8, (5, N)) * (rng.random((5, N)) < 0.6)).astype(np.float64)
    start = rng.random(N) + 0.01
    model = MarkovModel(start / start.sum(), moves / moves.sum(axis=1, keepdims=True))
    if jump is not None:
        into = 10.0 ** -rng.integers(0, 6, N)
        model = model.with_jump(jump, into / into.sum())
    return model, weights, start / start.sum()


def laws_of(weights):
    """Answer z is z times the unit vector of its number: a law of one facet for each answer, whose table is its row."""
    k, n = weights.shape
    return Laws(
        first_facets=np.arange(k + 1),
        projected=np.tile(np.arange(n, dtype=np.float64), (k, 1)),
        inverses=np.ones(k),
        shifts=np.zeros(k),
        normals=np.ones((k, 1)),
        kinds=np.full(k, TABLE),
        rates=np.ones(k),
        first_tables=np.arange(k + 1) * n,
        tables=weights.reshape(-1),
        supports=np.ones((k, n), dtype=np.bool_),
    )


def exact_filter(moves, weights, start, steps):
    """Posterior of each step, or the belief in the last one that is skipped, and prior after it, in fractions.

    Rows are integers of one denominator until they are told: it does not matter which.
    """
    moves, weights, prior, found = integers(moves), [integers(row) for row in weights], integers(start), []
    for answer, skipped in steps:
        posterior = prior
        if not skipped:
            posterior = [p * w for p, w in zip(prior, weights[answer], strict=True)]
        for _ in range(skipped - 1):
            posterior = moved(posterior, moves)
        prior = moved(posterior, moves)
        found.append([[Fraction(p, sum(row)) for p in row] for row in (posterior, prior)])
    return found


def integers(floats):
    """An array of floats times a power of two that makes all of them integers."""
    ratios = [x.as_integer_ratio() for x in floats.ravel().tolist()]
    scale = max(denominator for _, denominator in ratios)
    return np.array([n * (scale // d) for n, d in ratios], dtype=object).reshape(floats.shape).tolist()


def moved(row, moves):
    sums = [sum(row[i] * moves[i][j] for i in range(len(row))) for j in range(len(row))]
    common = gcd(*sums)
    return [p // common for p in sums]


def filtered(model, weights, start, steps, flushing):
    """(estimates, states, rows, bounds, steps taken): one step a call, until the slot is stopped."""
    matrix, n = model.predecessors_at(1), model.n_states
    dense = np.zeros((n, n))
    for j in range(n):
        dense[matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]], j] = matrix.data[
            matrix.indptr[j] : matrix.indptr[j + 1]
        ]
    if len(matrix.share):
        dense += matrix.share
    inflow = np.maximum(1.0, dense.sum(axis=0))
    columns = Columns(*matrix.arrays, -1.0, inflow)
    row, bound, answers = start.copy(), np.zeros(2), np.arange(n, dtype=np.float64)[None] ** 2
    found, zero = [], np.zeros(1, dtype=np.int64)
    for answer, skipped in steps:
        subjects = Subjects(np.array([0, 1]), row[None], bound[None], zero, np.empty((1, n)), np.empty((1, 2)), zero)
        batch, estimates = empty_batch(n, 0, 1), Estimates(np.zeros((1, 1)), np.zeros(1, dtype=np.int64))
        at = Steps(np.array([answer]), np.array([skipped]), np.zeros((1, 1)), np.ones(1, dtype=np.bool_))
        filter_batch(columns, flushing, laws_of(weights), answers, at, subjects, batch, estimates)
        if batch.stopped[0]:
            break
        row, bound = subjects.ends[0].copy(), subjects.end_bounds[0].copy()
        found.append((estimates.means[0, 0], int(estimates.states[0]), row, bound))
    return found, dense, inflow


def outside(true, row, bound, inflow):
    """Whether no factor c has c·row <= true <= c·((1 + relative)·row + absolute·inflow), up to roundings."""
    least = [t / Fraction(r) for t, r in zip(true, row.tolist(), strict=True) if r > 0]
    over = [
        Fraction(r) * (1 + Fraction(bound[0])) + Fraction(bound[1]) * Fraction(c)
        for r, c in zip(row, inflow, strict=True)
    ]
    most = [t / o for t, o in zip(true, over, strict=True) if t > 0 and o > 0]
    never = any(t > 0 and o == 0 for t, o in zip(true, over, strict=True))
    return never or max(most) > min(least) * (1 + Fraction(1, 10**9))


CASES = [(1e-3, 4.0, np.inf), (1e-3, 1e3, np.inf), (1e-7, 1e3, np.inf), (1e-7, 1e4, 1e-2), (1e-9, 1e6, 1e-4)]


@pytest.mark.parametrize(("least", "ratio", "limit"), CASES)
def test_the_bound_holds_for_every_state(least, ratio, limit):
    bound_holds(np.random.default_rng([17, CASES.index((least, ratio, limit))]), least, ratio, limit)


@pytest.mark.parametrize("jump", [0.001, 0.3])
@pytest.mark.parametrize(("least", "ratio", "limit"), CASES)
def test_the_bound_holds_where_there_is_a_jump(least, ratio, limit, jump):
    """Moved by M' in fractions; jumps lead to some states a hundred thousand times less often than to others."""
    seed = [18, CASES.index((least, ratio, limit)), int(1000 * jump)]
    bound_holds(np.random.default_rng(seed), least, ratio, limit, jump)


def bound_holds(rng, least, ratio, limit, jump=None):
    """Sixty worlds of twelve steps, some of which are flushed, and some of which are stopped."""
    stopped = flushed = exact = 0
    for _ in range(60):
        model, weights, start = world(rng, jump)
        steps = [(int(rng.integers(5)), int(rng.choice([0, 0, 0, 1, 3]))) for _ in range(12)]
        found, dense, inflow = filtered(model, weights, start, steps, Flushing(least, ratio, limit))
        true = exact_filter(dense, weights, start, steps[: len(found)])
        stopped += len(found) < len(steps)
        squares = [Fraction(s * s) for s in range(N)]
        for k, (posterior, prior) in enumerate(true):
            estimate, state, row, bound = found[k]
            flushed, exact = flushed + (bound[1] > 0), exact + (bound[1] == 0)
            assert (bound[1] == 0) == (bound == 0).all()
            assert not outside(prior, row, bound, inflow)
            if limit < 1:
                mean = sum(p * s for p, s in zip(posterior, squares, strict=True))
                assert abs(Fraction(estimate) - mean) <= 2 * Fraction(limit) * 25
                assert posterior[state] >= max(posterior) * (1 - 2 * Fraction(limit))
    assert flushed > 50
    assert exact > 5
    assert stopped > 5 or limit > 1


def test_a_dropped_state_that_comes_to_matter_stops_the_slot():
    """Two states that keep to themselves: nine answers for one of them, then nine that only the other explains."""
    model = MarkovModel(np.full(N, 1 / N), np.eye(N))
    weights = np.full((2, N), 1e-4)
    weights[0, 0] = weights[1, 1] = 1.0
    steps = [(0, 0)] * 9 + [(1, 0)] * 9
    found, _, _ = filtered(model, weights, np.full(N, 1 / N), steps, Flushing(1e-20, 1e10, 1e-6))
    assert any(row[1] == 0 for _, _, row, _ in found)
    assert 9 < len(found) < 18
    assert [(_, state, _, _) for _, state, _, _ in found[:9] if state != 0] == []
    careless, _, _ = filtered(model, weights, np.full(N, 1 / N), steps, Flushing(1e-20, 1e10, np.inf))
    assert len(careless) == 18 and careless[-1][1] == 0, "without the certificate the wrong state would be told"


def test_a_bound_does_not_grow_where_the_dropped_states_stay_unlikely():
    """So the certificate holds for as many steps as one likes, where a bound by the largest likelihood would not."""
    side = np.full(N - 1, 1e-4)
    moves = np.diag(side, 1) + np.diag(side, -1)
    moves += np.diag(1 - moves.sum(axis=1))
    weights = 10.0 ** -np.arange(N, dtype=np.float64)[None]
    steps = [(0, 0)] * 500
    found, _, _ = filtered(MarkovModel(np.eye(N)[0], moves), weights, np.eye(N)[0], steps, Flushing(1e-12, 1e6, 1e-3))
    assert len(found) == 500
    assert 0 < found[-1][3][1] < 2e-11


def test_dropped_states_that_all_move_to_one_count_together():
    """39 states below the threshold move to one state, and that to another: each lacks their sum."""
    n = 41
    moves = np.zeros((n, n))
    moves[0, 0] = moves[1, 2] = 1
    moves[2:, 1] = 1
    start = np.full(n, 9e-4)
    start[0] = 1 - start[1:].sum()
    found, dense, inflow = filtered(
        MarkovModel(start, moves), np.ones((1, n)), start, [(0, 0)] * 3, Flushing(1e-3, 1e3, np.inf)
    )
    true = exact_filter(dense, np.ones((1, n)), start, [(0, 0)] * 3)
    for (_, prior), (_, _, row, bound) in zip(true, found, strict=True):
        assert row[1] == 0
        assert not outside(prior, row, bound, inflow)


def test_the_slack_covers_the_roundings_of_a_step():
    assert kernels._SLACK - 1 > (2**24 + 8) * 2.0**-53


@pytest.mark.parametrize(("share", "stops"), [(2.0, True), (0.001, False)])
def test_an_estimated_skip_is_stopped_where_what_was_dropped_may_matter(share, stops):
    """All states moved to state 0 before: what was dropped of each may stand there together, beyond the limit."""
    model = MarkovModel(np.full(N, 1 / N), np.repeat(np.eye(N)[:1], N, axis=0))
    matrix, limit, zero = model.predecessors_at(1), 1e-3, np.zeros(1, dtype=np.int64)
    inflow = np.ones(N)
    inflow[0] = N
    columns = Columns(*matrix.arrays, -1.0, inflow)
    row, bound = np.eye(N)[N - 1], np.array([0.0, share * limit / N])
    subjects = Subjects(np.array([0, 1]), row[None], bound[None], zero, np.empty((1, N)), np.empty((1, 2)), zero)
    batch, estimates = empty_batch(N, 0, 1), Estimates(np.zeros((1, 1)), zero.copy())
    for estimated in (False, True):
        batch, estimates = empty_batch(N, 0, 1), Estimates(np.zeros((1, 1)), zero.copy())
        at = Steps(zero, np.ones(1, dtype=np.int64), np.zeros((1, 1)), np.array([estimated]))
        answers = np.arange(N, dtype=np.float64)[None]
        filter_batch(
            columns, Flushing(1e-300, 1e200, limit), laws_of(np.ones((1, N))), answers, at, subjects, batch, estimates
        )
        assert batch.stopped[0] == (estimated and stops)
    if not stops:
        # The true row may have had share·limit more in state 0 than the row that was kept.
        true = row + np.eye(N)[0] * bound[1] * N
        assert abs(estimates.means[0, 0] - true @ np.arange(N) / true.sum()) <= limit * N
