"""Counts of labelled sequences, of which the hidden states are known: Equations 3 and 4 of the paper.

Source: "Differentially private parameter estimation of hidden Markov models", IPSJ SIG 2014-MPS-98-25, Eq. 3 and 4.
Proof: docs/proofs/labelled.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm.types import IntArray


class LabelledCounts(NamedTuple):
    """Counts of states at the start of a sequence (S,), of moves (S, S), and of symbols by state (S, V)."""

    starts: IntArray
    moves: IntArray
    emissions: IntArray


def labelled_counts(states: IntArray, symbols: IntArray, bounds: IntArray, n: int, v: int) -> LabelledCounts:
    """The counts of sequences laid end to end; sequence k is from ``bounds[k]`` up to ``bounds[k + 1]``, none empty.

    Examples
    --------
    >>> import numpy as np
    >>> found = labelled_counts(np.array([0, 1, 1]), np.array([2, 0, 0]), np.array([0, 2, 3]), 2, 3)
    >>> found.starts.tolist(), found.moves.tolist(), found.emissions.tolist()
    ([1, 1], [[0, 1], [0, 0]], [[0, 0, 1], [2, 0, 0]])
    """
    inside = np.ones(max(len(states) - 1, 0), dtype=np.bool_)
    inside[bounds[1:-1] - 1] = False
    moves = np.bincount((states[:-1] * n + states[1:])[inside], minlength=n * n)
    emissions = np.bincount(states * v + symbols, minlength=n * v)
    starts = np.bincount(states[bounds[:-1]], minlength=n)
    whole = (starts, moves.reshape(n, n), emissions.reshape(n, v))
    return LabelledCounts(*(counts.astype(np.int64) for counts in whole))
