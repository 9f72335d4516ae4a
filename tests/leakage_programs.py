"""Chains and linear programs that leakage is compared with, in the tests of its kernels, its steps and its policies."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext

import numpy as np
from scipy.optimize import linprog

DIGITS = Context(prec=60, Emin=-(10**8), Emax=10**8)


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


def marginals_of(start, moves, steps):
    """The law of the state at each step."""
    found = [start]
    for _ in range(1, steps):
        found.append(found[-1] @ moves)
    return found


def outcomes(start, moves, laws):
    """(T, n, n): the largest log-ratio over every outcome; laws[t][s, z]."""
    n, steps = len(start), len(laws)
    worst = np.full((steps, n, n), -np.inf)
    marginals = marginals_of(start, moves, steps)
    for outcome in itertools.product(range(laws[0].shape[1]), repeat=steps):
        e = [law[:, z] for law, z in zip(laws, outcome, strict=True)]
        before, after = [start], [np.ones(n)]
        for t in range(1, steps):
            before.append((before[-1] * e[t - 1]) @ moves)
            after.insert(0, moves @ (e[steps - t] * after[0]))
        for t in range(steps):
            with np.errstate(invalid="ignore", divide="ignore"):
                logs = np.log(before[t] / marginals[t] * e[t] * after[t])
                worst[t] = np.fmax(worst[t], logs[:, None] - logs[None])
    return worst


def by_coupling(q, d, limits):
    """The least r such that q can be carried onto d over limits of at most r: linear programs, by halving."""
    n, steps = len(q), np.unique(limits)

    def carried(r):
        arcs = np.argwhere(limits <= r)
        sums = np.zeros((2 * n, len(arcs)))
        columns = np.arange(len(arcs))
        sums[arcs[:, 0], columns] = sums[n + arcs[:, 1], columns] = 1.0
        return linprog(np.zeros(len(arcs)), A_eq=sums, b_eq=np.concatenate([q, d]), method="highs").status == 0

    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if carried(steps[middle]) else (middle + 1, high)
    return steps[low]


def many_digits():
    """Decimals of sixty digits, for `exact_ratio`."""
    return localcontext(DIGITS)


def spanning_trees(n):
    """All trees that join n states, as edges."""
    if n == 2:
        return [[(0, 1)]]
    found = []
    for code in itertools.product(range(n), repeat=n - 2):
        degree = [1 + code.count(k) for k in range(n)]
        edges = []
        for k in code:
            leaf = next(i for i in range(n) if degree[i] == 1)
            edges.append((leaf, k))
            degree[leaf] -= 1
            degree[k] -= 1
        found.append([*edges, tuple(k for k in range(n) if degree[k] == 1)])
    return found


def potentials(tree, turned, limits):
    """u with u_a − u_b = limits[a, b] along a tree, each edge one way or the other."""
    u = {0: 0.0}
    waiting = [(b, a) if turn else (a, b) for (a, b), turn in zip(tree, turned, strict=True)]
    while waiting:
        a, b = waiting.pop(0)
        if a in u:
            u[b] = u[a] - limits[a, b]
        elif b in u:
            u[a] = u[b] + limits[a, b]
        else:
            waiting.append((a, b))
    return [u[k] for k in range(len(tree) + 1)]


def exact_ratio(q, d, limits):
    """The largest log (q·x / d·x): x is given by some spanning tree of tight limits."""
    n, best = len(q), Decimal(0)
    q, d = [Decimal(float(x)) for x in q], [Decimal(float(x)) for x in d]
    for tree in spanning_trees(n):
        for turned in itertools.product((False, True), repeat=n - 1):
            u = potentials(tree, turned, limits)
            if all(u[k] - u[m] <= limits[k, m] + 1e-9 for k in range(n) for m in range(n)):
                x = [Decimal(value).exp() for value in u]
                best = max(best, sum(map(Decimal.__mul__, q, x)) / sum(map(Decimal.__mul__, d, x)))
    return float(best.ln())
