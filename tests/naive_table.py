"""Brute-force twins of the optimal table: what it loses, pair by pair in fractions, and its linear program dense, with
an unknown for every pair of answers; and what a plan by tables loses between states that it must hide.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from dphmm.audit.pairs import Clique, required_pairs


def exp_below(epsilon):
    """A rational below e^ε, by less than 1e-30 of it: a partial sum of its series."""
    total = term = Fraction(1)
    n = 0
    while n < 4 * epsilon + 8 or term > total / 10**32:
        n += 1
        term *= Fraction(epsilon) / n
        total += term
        term = Fraction(math.floor(term * 2**400), 2**400)
    return total


def worst_ratio(table, a, b):
    """The largest quotient of the probabilities of any answer where the truth is a, and where it is b (d,)."""
    points = [tuple(p) for p in table.law.points.tolist()]
    first, second = (table.law.weights[points.index(tuple(s))].tolist() for s in (a, b))
    first, second = ([Fraction(w, sum(row)) for w in row] for row in (first, second))
    return max(max(x / y, y / x) for x, y in zip(first, second, strict=True))


def least_mean(costs, prior, edges, epsilon):
    """The least mean cost of any law that keeps ε on the edges: no more than it, by a solution of the dual program.

    The solver's own value may be off either way by what it lets laws break their limits. Prices of the limits, with
    wrong signs put to 0, bound what any law costs, however good they are.
    """
    n = len(costs)
    rows = []
    for a, b in [(a, b) for a, b in edges] + [(b, a) for a, b in edges]:
        for z in range(n):
            row = np.zeros((n, n))
            row[a, z], row[b, z] = 1.0, -math.exp(epsilon)
            rows.append(row.ravel())
    weights = np.array(prior, dtype=float) / sum(prior)
    ratios = np.array(rows) if rows else np.zeros((1, n * n))
    sums = np.kron(np.eye(n), np.ones(n))
    mean = (weights[:, None] * costs).ravel()
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(mean, ratios, np.zeros(len(ratios)), sums, np.ones(n), method="highs-ds", options=exact)
    prices = np.minimum(found.ineqlin.marginals, 0.0)
    return float((mean - prices @ ratios).reshape(n, n).min(axis=1).sum())


def ratio_of_states(plan, a, b):
    """The largest quotient of the probabilities of any answer from two states, in fractions."""
    law = plan.mechanism.law
    points = [tuple(p) for p in law.points.tolist()]
    rows = [law.weights[points.index(tuple(plan.image[s].tolist()))].tolist() for s in (a, b)]
    shares = [[Fraction(w, sum(row)) for w in row] for row in rows]
    return max(max(x / y, y / x) for x, y in zip(*shares, strict=True))


def required_of(policy, plan):
    """Every pair of states that a plan must hide."""
    for group in required_pairs(policy, plan):
        if isinstance(group, Clique):
            yield from itertools.combinations(group.members.tolist(), 2)
        else:
            yield from zip(group.a.tolist(), group.b.tolist(), strict=True)
