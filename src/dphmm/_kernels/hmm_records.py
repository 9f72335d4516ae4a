"""Expected counts of many sequences as integers, each sequence computed, rounded and bounded alone.

What a sequence adds is a function of that sequence and of the parameters: not of the other sequences, their number or
their order. It is a vector of integers of at least 0 whose blocks sum to at most their limits, whatever floats did.
That is what the sensitivity of a noisy iteration rests on.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.hmm import add_expected, backward, forward
from dphmm.types import FloatArray, IntArray


@kernel
def add_whole(values: FloatArray, steps: float, limit: int, totals: IntArray) -> None:
    """Add floor(values·steps) to ``totals``, but in all at most ``limit``: what would pass it is cut.

    Values that are no numbers, or negative, count as 0.
    """
    left = limit
    for i in range(len(values)):
        scaled = values[i] * steps
        taken = 0
        if scaled >= left:
            taken = left
        elif scaled >= 1.0:
            taken = int(scaled)
        totals[i] += taken
        left -= taken


@kernel
def add_records(
    initial: FloatArray,
    transition: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    bounds: IntArray,
    steps: float,
    limits: IntArray,
    starts: IntArray,
    moves: IntArray,
    emissions: IntArray,
) -> None:
    """Add the expected counts of every sequence ``symbols[bounds[k]:bounds[k + 1]]``, in units of 1/steps.

    ``starts`` (S,), ``moves`` (S·S,) and ``emissions`` (V·S,) are the blocks, ``limits`` (3,) their bounds. A sequence
    that is impossible under the parameters, or beyond the range of floats, adds nothing.
    """
    n, n_symbols = len(initial), likelihood.shape[0]
    longest = 0
    for k in range(len(bounds) - 1):
        longest = max(longest, bounds[k + 1] - bounds[k])
    alpha, beta, scales = np.empty((longest, n)), np.empty((longest, n)), np.empty(longest)
    s, a, e = np.empty(n), np.empty((n, n)), np.empty((n_symbols, n))
    for k in range(len(bounds) - 1):
        own = symbols[bounds[k] : bounds[k + 1]]
        m = len(own)
        if forward(initial, transition, likelihood, own, alpha[:m], scales[:m]) >= 0:
            continue
        if not backward(transition, likelihood, own, scales[:m], beta[:m]):
            continue
        s[:] = 0.0
        a[:] = 0.0
        e[:] = 0.0
        add_expected(transition, likelihood, own, scales[:m], alpha[:m], beta[:m], 1.0, s, a, e)
        add_whole(s, steps, limits[0], starts)
        add_whole(a.ravel(), steps, limits[1], moves)
        add_whole(e.ravel(), steps, limits[2], emissions)
