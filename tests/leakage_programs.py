"""Chains and linear programs that leakage is compared with, in the tests of its kernels, its steps and its policies."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def rows_of(seed, n, zeros=False):
    """A transition matrix (n, n) of drawn rows, some of them with zeros."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(n, 0.5), n)
    if zeros:
        matrix[rng.random((n, n)) < 0.4] = 0.0
        matrix[np.arange(n), rng.integers(0, n, n)] += 0.5
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def by_linear_program(q, d, limits):
    """max log(q·x / d·x) with x_k <= e^limits[k, m] x_m; ``limits`` (n, n), or a number for all pairs."""
    limits = np.broadcast_to(limits, (len(q), len(q)))
    used = np.flatnonzero((q > 0) | (d > 0))
    pairs = [(k, m) for k, m in itertools.permutations(range(len(used)), 2) if np.isfinite(limits[used[k], used[m]])]
    bounds = np.zeros((len(pairs), len(used)))
    for row, (k, m) in zip(bounds, pairs, strict=True):
        row[k], row[m] = 1.0, -math.exp(limits[used[k], used[m]])
    found = linprog(-q[used], A_ub=bounds, b_ub=np.zeros(len(pairs)), A_eq=d[used][None], b_eq=[1.0], method="highs")
    return math.log(-found.fun) if found.status == 0 else math.inf


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
