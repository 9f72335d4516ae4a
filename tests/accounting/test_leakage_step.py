"""L of one step against the best set of columns, linear programs and all subsets of values; reversed matrices by Bayes.

It fails where L is below what a set of columns reaches, or far above it, and where it depends on what was asked before.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from dependent_models import largest_increase_by_subsets
from dphmm import MarkovModel
from dphmm.accounting import temporal_leakage
from dphmm.accounting.leakage_step import FAR, MOST_BOUNDS, LeakageCurve, LeakageStep, leakage_step, reversed_transition
from leakage_programs import by_linear_program, rows_of
from random_seeds import seeds


@seeds(30)
def test_the_curve_is_the_maximum_over_all_subsets(seed):
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(int(rng.integers(2, 6)), 0.4), int(rng.integers(2, 6)))
    kernel = np.where(kernel < 0.05, 0.0, kernel)
    kernel /= kernel.sum(axis=1, keepdims=True)
    curve = LeakageCurve.of(kernel)
    for alpha in (1e-6, 0.1, 1.0, 4.0, 30.0):
        expected = largest_increase_by_subsets(kernel, alpha)
        assert curve(alpha) == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert expected * (1 - 1e-15) <= curve.above(alpha) <= alpha
        assert curve(alpha) == pytest.approx(leakage_step(kernel, alpha), rel=1e-9, abs=1e-14)


def test_the_curve_far_out():
    curve = LeakageCurve.of(np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]))
    assert curve(800.0) == pytest.approx(800.0 + math.log(0.25))
    assert LeakageCurve.of(np.array([[0.5, 0.5], [0.25, 0.75]]))(math.inf) == pytest.approx(math.log(2))
    assert curve.above(math.inf) == math.inf


PAPER = np.array([[0.8, 0.2], [0.0, 1.0]])


SYMMETRIC = np.array([[0.8, 0.2], [0.2, 0.8]])


def by_subsets(matrix, alpha):
    """L by all 2^n sets of columns, for all pairs of rows."""
    highs = np.array(list(itertools.product([0, 1], repeat=matrix.shape[1])))
    masses = highs @ matrix.T
    numbers = 1 + np.expm1(alpha) * masses
    return float(np.log((numbers[:, :, None] / numbers[:, None, :]).max()))


def by_prefixes(matrix, alpha):
    """L by Cao et al.: every pair of rows, columns sorted by falling quotient."""
    best = 0.0
    for q, d in itertools.permutations(matrix, 2):
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.where(q > 0, q / d, -1.0))
        high, low = (np.cumsum(row[order]) * -math.expm1(-alpha) + math.exp(-alpha) for row in (q, d))
        best = max(best, float(np.log(high / low).max()))
    return best


@seeds(30)
def test_the_increase_is_that_of_the_best_set_of_columns(seed):
    matrix = rows_of(seed, 2 + seed % 7, zeros=seed % 2 == 1)
    increase = LeakageStep(matrix)
    for alpha in (1e-3, 0.1, 0.7, 2.0, 9.0, 0.4):
        expected = by_subsets(matrix, alpha)
        # Rounded up, by less than any use of it could notice.
        assert expected - 4e-15 * (1 + alpha) <= increase(alpha) <= min(alpha, expected * (1 + 1e-12) + 1e-13)
        assert increase(alpha) == pytest.approx(leakage_step(sparse.csr_array(matrix), alpha), abs=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_the_increase_is_the_linear_program(seed):
    matrix = rows_of(seed, 2 + seed % 4)
    alpha = 0.3 + seed / 4
    expected = max(by_linear_program(q, d, alpha) for q, d in itertools.permutations(matrix, 2))
    assert leakage_step(matrix, alpha) == pytest.approx(expected, abs=1e-8)


def test_what_is_remembered_does_not_change_what_is_found(monkeypatch):
    """Bounds and corners kept from other losses, in any order of asking; and without memory for bounds."""
    rng = np.random.default_rng(5)
    for n, zeros in ((12, False), (30, True), (45, False)):
        matrix = rows_of(n, n, zeros)
        warm = LeakageStep(matrix)
        asked = np.concatenate([rng.uniform(0.01, 6, 15), np.linspace(0.01, 5, 15), [math.inf, 700.0, 0.02]])
        found = [warm(a) for a in asked]
        expected = [by_prefixes(matrix, a) for a in asked[:-3]]
        # What a result is rounded up by: four units in the last place per column, and 64; as much again for the twin.
        rounding = (4 * n + 64) * 2.0**-52
        assert found[:-3] == pytest.approx(expected, rel=rounding)
        assert found == pytest.approx([LeakageStep(matrix)(a) for a in asked], rel=rounding)
        with monkeypatch.context() as patch:
            patch.setattr("dphmm.accounting.leakage_step.MOST_BOUNDS", 0)
            bare = LeakageStep(matrix)
            assert [bare(a) for a in asked] == pytest.approx(found, rel=rounding)
    assert MOST_BOUNDS >= 500**2


def test_large_losses_neither_overflow_nor_lose_the_limit():
    full = rows_of(1, 5)
    limit = math.log(max((q / d).max() for q, d in itertools.permutations(full, 2)))
    for alpha in (FAR, FAR + 1, 1e5, 1e308, math.inf):
        assert leakage_step(full, alpha) == pytest.approx(limit, rel=1e-12)
    assert leakage_step(PAPER, math.inf) == math.inf
    for alpha in (50.0, 599.0, 601.0, 1e5):
        # From (1, 0) against (0.8, 0.2) nothing can be told; from (0.2) against 0 all of alpha but log 5.
        assert leakage_step(PAPER, alpha) == pytest.approx(alpha + math.log(0.8), abs=1e-9)
    tiny = np.array([[1.0, 5e-324], [0.5, 0.5]])
    assert leakage_step(tiny, 400.0) == pytest.approx(400 + math.log(0.5), abs=1e-9)


def test_what_cannot_be_told_apart_loses_nothing_and_what_is_certain_all():
    assert leakage_step(np.full((4, 4), 0.25), 3.0) == 0.0
    assert leakage_step(np.eye(4), 3.0) == 3.0
    assert leakage_step(PAPER, 0) == 0.0
    assert leakage_step([[1.0]], 2.0) == 0.0


def test_rows_that_are_left_out_do_not_count():
    matrix = np.vstack([SYMMETRIC, [[1.0, 0.0]]])
    assert leakage_step(matrix, 1.0) > leakage_step(SYMMETRIC, 1.0)
    for rows in ([0, 1], np.array([True, True, False])):
        assert leakage_step(matrix, 1.0, rows) == pytest.approx(leakage_step(SYMMETRIC, 1.0), abs=1e-15)
    assert leakage_step(np.vstack([SYMMETRIC, [[0.0, 0.0]]]), 1.0) == leakage_step(SYMMETRIC, 1.0)


def test_the_reversed_kernel_is_bayes_rule_even_for_states_too_rare_for_a_float():
    moves = rows_of(7, 4)
    marginal = np.array([0.1, 0.2, 0.3, 0.4])
    found = reversed_transition(moves, marginal).toarray()
    assert found == pytest.approx((marginal[:, None] * moves).T / (marginal @ moves)[:, None], abs=1e-15)
    corridor = np.diag(np.full(400, 0.99)) + np.diag(np.full(399, 0.01), 1)
    corridor[-1, -1] = 1.0
    start = np.zeros(400)
    start[0] = 1.0
    # State t at time t has probability 1e-2t: after 200 steps no float. It still came from t - 1 for certain.
    leak = temporal_leakage(MarkovModel(start, corridor, start="at"), [0.1] * 200)
    assert np.isfinite(leak.total).all()


def test_rows_that_share_no_column_mix_nothing():
    """L(a) = a exactly as the pairs of rows have it, and only where two rows share no column."""
    rng = np.random.default_rng(11)
    seen = set()
    for _ in range(200):
        n = int(rng.integers(2, 6))
        matrix = rng.dirichlet(np.ones(n), size=n) * (rng.random((n, n)) < 0.5)
        matrix = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)
        step, rows = LeakageStep(matrix), np.flatnonzero(matrix.sum(axis=1) > 0)
        apart = any(not (matrix[i] * matrix[j]).any() for i in rows for j in rows)
        seen.add((apart, step._unmixed))
        assert apart or not step._unmixed
        if step._unmixed:
            assert [step(a) for a in (0.0, 0.3, 7.0, 700.0, np.inf)] == [0.0, 0.3, 7.0, 700.0, np.inf]
            assert step.supremum(0.1) == np.inf and step.supremum(0.0) == 0.0
            step._unmixed = False
            assert [step(a) for a in (0.3, 7.0, 700.0)] == pytest.approx([0.3, 7.0, 700.0], rel=1e-12)
            assert step.supremum(0.1) == np.inf
    assert {(True, True), (False, False)} <= seen
