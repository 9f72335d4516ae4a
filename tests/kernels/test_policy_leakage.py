"""Programs of policy leakage against linear programs: couplings are above them, and so is a search cut short."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dphmm._kernels import policy_leakage
from dphmm._kernels.policy_leakage import bottleneck, largest_ratio
from dphmm.accounting.leakage_step import leakage_step
from leakage_programs import by_linear_program, program

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")


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
        assert both == pytest.approx(leakage_step(rows, alpha), abs=1e-9)


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
        twins[name] = getattr(policy_leakage, name).py_func
    for name, twin in twins.items():
        monkeypatch.setattr(policy_leakage, name, twin)
    looser = 0
    for seed in range(12):
        q, d, limits = program(seed, most=6)
        expected = by_linear_program(q, d, limits)
        with np.errstate(divide="ignore"):
            log_q, log_d = np.log(q), np.log(d)
        assert largest_ratio.py_func(log_q, log_d, limits) == pytest.approx(expected, abs=1e-7)
        with monkeypatch.context() as patch:
            patch.setattr(policy_leakage, "MOST_MOVES", 0)
            rushed = largest_ratio.py_func(log_q, log_d, limits)
        assert rushed >= expected - 1e-9
        looser += rushed > expected + 1e-6
    # Else nothing was cut short.
    assert looser >= 3
