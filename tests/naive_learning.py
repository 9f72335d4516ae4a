"""Learning from answers as a reader of the page would write it: every path of every person, in plain Python.

Shares no code with `dphmm.learning`. Matrices are dense (K, N, N), a jump is part of them, slots are lists.
"""

from __future__ import annotations

import itertools

import numpy as np


def expected_moves(initial, matrices, rate, into, slots, likelihoods):
    """Expected moves by the matrices (K, N, N), the law of the first state, and the likelihood: all paths, all ways.

    ``likelihoods`` (T, N); ``slots`` (T - 1,): of the move from each step. A move is one of the matrix, or a jump.
    """
    n, steps = len(initial), len(likelihoods)
    counts, first, total = np.zeros_like(matrices), np.zeros(n), 0.0
    for path in itertools.product(range(n), repeat=steps):
        for jumps in itertools.product((False, True), repeat=steps - 1):
            chance = initial[path[0]] * likelihoods[0][path[0]]
            for t, jump in enumerate(jumps):
                a, b = path[t], path[t + 1]
                chance *= (rate * into[b] if jump else (1 - rate) * matrices[slots[t]][a, b]) * likelihoods[t + 1][b]
            total += chance
            first[path[0]] += chance
            for t, jump in enumerate(jumps):
                if not jump:
                    counts[slots[t], path[t], path[t + 1]] += chance
    return counts / total, first / total, total


def tilted(public, distance, by_distance, by_destination, by_stay):
    """A tilted matrix (N, N) of one slot, entry by entry: a stay has the factor of distance 0 and one of the place."""
    n = len(public)
    found = np.zeros((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        own = by_stay[i] if i == j else by_destination[j]
        found[i, j] = public[i, j] * by_distance[distance[i][j]] * own
    return found / found.sum(axis=1, keepdims=True)
