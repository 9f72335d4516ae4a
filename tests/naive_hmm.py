"""Hidden Markov models by brute force: every path is written out, its probability multiplied, and nothing else done.

Only for a few states and positions; held against the library by tests/markov/hidden.
"""

from __future__ import annotations

from itertools import product

import numpy as np


def path_probability(initial, transition, emission, symbols, path):
    """P(path and symbols)."""
    probability = initial[path[0]] * emission[path[0], symbols[0]]
    for t in range(1, len(path)):
        probability *= transition[path[t - 1], path[t]] * emission[path[t], symbols[t]]
    return probability


def all_paths(initial, transition, emission, symbols):
    """Every path and P(path and symbols), in lexicographic order."""
    return [
        (path, path_probability(initial, transition, emission, symbols, path))
        for path in product(range(len(initial)), repeat=len(symbols))
    ]


def smooth(initial, transition, emission, symbols):
    """P(symbols), posteriors (T, S), expected transitions (S, S)."""
    paths = all_paths(initial, transition, emission, symbols)
    whole = sum(probability for _, probability in paths)
    posteriors = np.zeros((len(symbols), len(initial)))
    moves = np.zeros((len(initial), len(initial)))
    for path, probability in paths:
        for t, state in enumerate(path):
            posteriors[t, state] += probability / whole
            if t:
                moves[path[t - 1], state] += probability / whole
    return whole, posteriors, moves


def random_model(random, n_states, n_symbols, zeros=0.0):
    """Initial (S,), transition (S, S), emission (S, V); transitions and starts are 0 with probability ``zeros``."""

    def rows(n, k):
        values = random.dirichlet(np.ones(k), size=n) * (random.random((n, k)) >= zeros)
        values[np.arange(n), random.integers(0, k, n)] += 0.1
        return values / values.sum(axis=1, keepdims=True)

    return rows(1, n_states)[0], rows(n_states, n_states), random.dirichlet(np.ones(n_symbols), size=n_states)
