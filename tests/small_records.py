"""Sequences to enumerate and parameters to draw, for tests of private learning."""

from __future__ import annotations

import itertools

import numpy as np

from dphmm.markov.hidden.parameters import Parameters

#: Expected counts are compared in units of 2**-GRID.
GRID = 20


def sequences_up_to(length, v):
    """All sequences of 1..length symbols out of v."""
    return [list(s) for n in range(1, length + 1) for s in itertools.product(range(v), repeat=n)]


def random_parameters(seed, n=2, v=2, zeros=False):
    """Uneven rows; with ``zeros`` many entries are 0."""
    source = np.random.default_rng(seed)

    def rows(*shape):
        drawn = source.dirichlet(np.full(shape[-1], 0.3), size=shape[:-1] or None)
        if zeros:
            drawn = np.where(drawn < 0.2, 0.0, drawn)
            drawn /= drawn.sum(axis=-1, keepdims=True)
        return drawn

    return Parameters(rows(n), rows(n, n), rows(n, v))
