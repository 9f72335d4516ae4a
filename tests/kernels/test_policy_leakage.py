"""Programs of policy leakage against linear programs: couplings are above them, and so is a search cut short."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import dphmm
from dphmm._kernels import quotients
from dphmm._kernels.policy_leakage import bottleneck
from dphmm._kernels.quotients import largest_ratio

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")


def by_linear_program(q, d, limits):
    """max log(q·x / d·x) with x_k <= e^limits[k, m] x_m."""
    used = np.flatnonzero((q > 0) | (d > 0))
    pairs = [(k, m) for k, m in itertools.permutations(range(len(used)), 2) if np.isfinite(limits[used[k], used[m]])]
    bounds = np.zeros((len(pairs), len(used)))
    for row, (k, m) in zip(bounds, pairs, strict=True):
        row[k], row[m] = 1.0, -math.exp(limits[used[k], used[m]])
    found = linprog(-q[used], A_ub=bounds, b_ub=np.zeros(len(pairs)), A_eq=d[used][None], b_eq=[1.0], method="highs")
    return math.log(-found.fun) if found.status == 0 else math.inf


def by_coupling(q, d, limits):
    """The least r such that q can be carried onto d over limits of at most r."""
    n = len(q)
    for r in np.unique(limits):
        arcs = [(k, m) for k in range(n) for m in range(n) if limits[k, m] <= r]
        sums = np.zeros((2 * n, len(arcs)))
        for column, (k, m) in zip(sums.T, arcs, strict=True):
            column[k] = column[n + m] = 1.0
        if linprog(np.zeros(len(arcs)), A_eq=sums, b_eq=np.concatenate([q, d]), method="highs").status == 0:
            return r
    return math.inf


def program(seed, most=9):
    """Two rows and limits that obey the triangle inequality: on a line, on a grid, or of no shape."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    q, d = rng.dirichlet(np.full(n, 0.5), 2)
    for row in (q, d):
        zero = rng.random(n) < 0.35
        if seed % 2 and not zero.all():
            row[zero] = 0.0
            row /= row.sum()
    if seed % 3 == 0:
        limits = rng.uniform(0.1, 3, (n, n))
        np.fill_diagonal(limits, 0.0)
        for by in range(n):
            limits = np.minimum(limits, limits[:, by : by + 1] + limits[by : by + 1])
    else:
        points = rng.integers(0, 4, (n, 1 + seed % 2)).astype(float)
        limits = np.abs(points[:, None] - points[None]).max(axis=2) * rng.choice([0.3, 1.0, 2.5])
    used = (q > 0) | (d > 0)
    return q[used], d[used], limits[np.ix_(used, used)]


@pytest.mark.parametrize("seed", range(60))
def test_a_program_is_solved_to_its_maximum_and_a_coupling_is_above_it(seed):
    q, d, limits = program(seed)
    expected = by_linear_program(q, d, limits)
    found = largest_ratio(np.log(q), np.log(d), limits)
    assert expected - 1e-9 <= found <= expected + 1e-7
    coupled = bottleneck(np.log(q), np.log(d), limits)
    assert found <= coupled + 1e-9
    assert coupled == pytest.approx(by_coupling(q, d, limits), abs=1e-9)


def test_constant_limits_are_the_temporal_increase():
    q, d = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 2)
    for alpha in (0.1, 1.0, 30.0):
        limits = alpha * (1 - np.eye(6))
        rows = np.vstack([q, d])
        both = max(largest_ratio(np.log(a), np.log(b), limits) for a, b in (rows, rows[::-1]))
        assert both == pytest.approx(dphmm.accounting.leakage_step.leakage_step(rows, alpha), abs=1e-9)


def test_limits_beyond_the_range_of_floats():
    """e^2000 is no float: the maximum of q = (1, 0), d = (0, 1) is the limit itself, whatever its size."""
    limits = np.array([[0.0, 2000.0], [1.0, 0.0]])
    sure, other = np.log([1.0, 0.0]), np.log([0.0, 1.0])
    assert largest_ratio(sure, other, limits) == pytest.approx(2000, abs=1e-6)
    mixed = largest_ratio(np.log([0.5, 0.5]), other, limits)
    assert mixed == pytest.approx(2000 + math.log(0.5), abs=1e-6)


def test_a_search_cut_short_is_still_a_bound(monkeypatch):
    """The readable twin of the kernel, given no time: what cannot be carried is paid for."""
    twins = {}
    for name in ("start_tree", "outward", "hang", "shares", "not_carried", "move", "price"):
        twins[name] = getattr(quotients, name).py_func
    for name, twin in twins.items():
        monkeypatch.setattr(quotients, name, twin)
    looser = 0
    for seed in range(12):
        q, d, limits = program(seed, most=6)
        expected = by_linear_program(q, d, limits)
        with np.errstate(divide="ignore"):
            log_q, log_d = np.log(q), np.log(d)
        assert largest_ratio.py_func(log_q, log_d, limits) == pytest.approx(expected, abs=1e-7)
        with monkeypatch.context() as patch:
            patch.setattr(quotients, "MOST_MOVES", 0)
            rushed = largest_ratio.py_func(log_q, log_d, limits)
        assert rushed >= expected - 1e-9
        looser += rushed > expected + 1e-6
    # Else nothing was cut short.
    assert looser >= 3
