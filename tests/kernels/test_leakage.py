"""Kernels of leakage are their own readable twins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dphmm._kernels.leakage import excess_of, improve


def by_linear_program(q, d, alpha):
    n = len(q)
    limits = [(k, m) for k, m in itertools.permutations(range(n), 2)]
    bounds = np.zeros((len(limits), n))
    for row, (k, m) in zip(bounds, limits, strict=True):
        row[k], row[m] = 1.0, -math.exp(alpha)
    found = linprog(-q, A_ub=bounds, b_ub=np.zeros(len(limits)), A_eq=d[None], b_eq=[1.0], method="highs")
    return math.log(-found.fun)


def rows_of(seed, n, zeros=False):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(n, 0.5), n)
    if zeros:
        matrix[rng.random((n, n)) < 0.4] = 0.0
        matrix[np.arange(n), rng.integers(0, n, n)] += 0.5
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def test_kernels_are_their_own_readable_twins():
    q, d = rows_of(3, 6)[:2]
    columns = np.arange(6)
    assert excess_of(columns, q, d, 0.2) == pytest.approx(excess_of.py_func(columns, q, d, 0.2), abs=1e-15)
    s, e = -math.expm1(-1.0), math.exp(-1.0)
    assert improve(columns, q, d, s, e, 0.0) == pytest.approx(improve.py_func(columns, q, d, s, e, 0.0), abs=1e-15)
    assert math.log1p(improve(columns, q, d, s, e, 0.0)[0]) == pytest.approx(by_linear_program(q, d, 1.0), abs=1e-8)
