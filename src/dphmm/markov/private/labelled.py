"""A hidden Markov model learned privately from sequences whose hidden states are known, and from one noisy vector.

The vector has how often each state begins a sequence, follows another and shows a symbol. The rates behind it are those
of `dphmm.markov.private.noisy_table`: a row of moves is drawn towards independence plus a diagonal, a row of emissions
towards the symbols of all states.

Source: "Differentially private parameter estimation of hidden Markov models", IPSJ SIG 2014-MPS-98-25, Eq. 3 and 4.
Proof: docs/proofs/labelled.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.labelled import labelled_counts
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.noisy_table import rates_of
from dphmm.markov.private.sensitivity import Kept
from dphmm.types import BoolArray, FloatArray, IntArray


def open_cells(start: Parameters, letters: str) -> BoolArray:
    """The cells of (starts, moves, emissions), flat, that are published: learned, and not 0 at the public start."""
    n, v = start.emission.shape
    block = np.repeat(list("ste"), [n, n * n, n * v])
    possible = np.concatenate([start.initial, np.ravel(start.transition), start.emission.ravel()]) > 0
    return np.asarray(possible & np.isin(block, list(letters)))


def count_labelled(states: Kept, symbols: Kept, n: int, v: int) -> IntArray:
    """All counts of capped sequences, flat: starts, moves, emissions.

    Raises InvalidInput where states and symbols are not of the same sequences.
    """
    if not np.array_equal(states.bounds, symbols.bounds):
        raise InvalidInput("states", "sequences of other lengths than those of X", "one state for each symbol")
    counts = labelled_counts(states.symbols, symbols.symbols, symbols.bounds, n, v)
    return np.concatenate([counts.starts, counts.moves.ravel(), counts.emissions.ravel()])


def learned_rows(values: FloatArray, cells: BoolArray, start: Parameters, scale: float) -> Parameters:
    """The parameters behind noisy counts of ``cells``; rows without a cell are those of the public start."""
    n, v = start.emission.shape
    state, symbol = np.arange(n), n + np.arange(v)
    rows = np.concatenate([np.full(n, n), np.repeat(state, n), np.repeat(state, v)])
    columns = np.concatenate([state, np.tile(state, n), np.tile(symbol, n)])
    rates, seen = np.zeros(len(cells)), np.arange(len(cells)) >= n + n * n
    # Symbols are numbered after the states: no emission is on the diagonal.
    for some, size in ((cells & ~seen, n), (cells & seen, n + v)):
        if some.any():
            (rates[some],) = rates_of(values[some[cells]][None], rows[some], columns[some], size, scale)
    flat = np.concatenate([start.initial, np.ravel(start.transition), start.emission.ravel()])
    # A row of the vector: the starts, then the moves and then the emissions of each state.
    row = np.concatenate([np.zeros(n), 1 + np.repeat(state, n), 1 + n + np.repeat(state, v)]).astype(np.int64)
    totals = np.bincount(row, weights=rates)[row]
    flat = np.where(totals > 0, rates / np.where(totals > 0, totals, 1.0), flat)
    return Parameters(flat[:n], flat[n : n + n * n].reshape(n, n), flat[n + n * n :].reshape(n, v))
