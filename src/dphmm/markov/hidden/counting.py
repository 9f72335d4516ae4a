"""Expected counts: how often each state begins, each move is made and each symbol emitted, given the observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dphmm._kernels.hmm_lanes import Matrix, add_emissions, add_entries
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.in_logs import log_pass, log_smoothing
from dphmm.markov.hidden.lanes import Batch, batches, halves
from dphmm.markov.hidden.observations import Observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.hidden.passes import Pass, Underflow, Workspace
from dphmm.types import FloatArray

#: Largest weight of a sequence: far from where weighted rows overflow.
_MOST_WEIGHT = 1e15


@dataclass(frozen=True, eq=False)
class Counts:
    """Weighted sums over sequences, given the observations and the parameters.

    ``initial`` (S,), ``transition`` (S, S) dense, or a csr_array on the structure of a sparse one, ``emission`` (S, V),
    and ``log_likelihood``, the weighted sum of those of the sequences.
    """

    log_likelihood: float
    initial: FloatArray
    transition: Any
    emission: FloatArray


@dataclass(eq=False)
class Sums:
    """Counts while they are being summed; ``pairs`` lack the factor of the transition probabilities."""

    log: float
    starts: FloatArray
    pairs: FloatArray
    moves: FloatArray
    emissions: FloatArray

    @classmethod
    def zero(cls, parameters: Parameters) -> Sums:
        n = parameters.n_states
        entries = np.zeros(len(parameters.rows.data)) if parameters.is_sparse else np.zeros((n, n))
        return cls(0.0, np.zeros(n), entries, np.zeros_like(entries), np.zeros((parameters.n_symbols, n)))

    def add(self, other: Sums) -> None:
        self.log += other.log
        self.starts += other.starts
        self.pairs += other.pairs
        self.moves += other.moves
        self.emissions += other.emissions


class Counter:
    """Counts the same sequences under one model after another; their layout is made once.

    ``weights`` (n,) say how often each sequence was seen, once by default; those of weight 0 are left out.
    """

    def __init__(
        self, observed: Observations, n_states: int, weights: Any = None, checkpoint: bool | str = "auto"
    ) -> None:
        self._observed, self._checkpoint, self._space = observed, checkpoint, Workspace()
        self._weights = np.ones(observed.n_sequences) if weights is None else _weights(weights, observed.n_sequences)
        self._batches = list(batches(observed, n_states, np.flatnonzero(self._weights)))

    def count(self, parameters: Parameters, initial: FloatArray) -> Counts:
        """The expected counts under the model, started from ``initial``; InvalidInput for an impossible symbol."""
        sums = Sums.zero(parameters)
        for lanes in self._batches:
            self._add(parameters, initial, lanes, sums)
        return _counts(parameters, sums)

    def _add(self, parameters: Parameters, initial: FloatArray, lanes: Batch, sums: Sums) -> None:
        try:
            sums.add(self._in_floats(parameters, initial, lanes))
        except Underflow:
            if len(lanes.which) == 1:
                sums.add(self._in_logs(parameters, initial, int(lanes.which[0])))
            for half in halves(self._observed, lanes):
                self._add(parameters, initial, half, sums)

    def _in_floats(self, parameters: Parameters, initial: FloatArray, lanes: Batch) -> Sums:
        sums = Sums.zero(parameters)
        weights = self._weights[lanes.which]
        passed = Pass(parameters, initial, lanes, self._checkpoint, space=self._space)
        sums.log = float(weights @ passed.logs)
        for part in passed.backward(weights):
            if parameters.is_sparse:
                add_entries(parameters.rows, part.alpha, part.after, sums.pairs)
            else:
                sums.pairs += part.alpha.T @ part.after
            symbols = lanes.symbols[part.block.start : part.block.stop]
            add_emissions(symbols, part.alpha, part.beta, sums.emissions)
            if part.block.first == 0:
                width = len(lanes.which)
                sums.starts += (part.alpha[:width] * part.beta[:width]).sum(axis=0)
        return sums

    def _in_logs(self, parameters: Parameters, initial: FloatArray, k: int) -> Sums:
        sums, weight = Sums.zero(parameters), self._weights[k]
        passed = log_pass(parameters, initial, self._observed, k)
        posteriors, moves = log_smoothing(parameters, passed)
        sums.log = weight * passed.log
        sums.starts += weight * posteriors[0]
        if parameters.is_sparse:
            sums.moves += weight * moves
        else:
            rows = parameters.compressed_rows
            sums.moves += weight * csr(rows, moves, parameters.n_states).toarray()
        np.add.at(sums.emissions, passed.symbols, weight * posteriors)
        return sums


def csr(entries: Matrix, data: FloatArray, n: int) -> Any:
    """Numbers at the stored entries of a matrix, as a csr_array."""
    return sparse.csr_array((data, entries.indices, entries.indptr), shape=(n, n))


def _counts(parameters: Parameters, sums: Sums) -> Counts:
    if parameters.is_sparse:
        moves = csr(parameters.rows, sums.pairs * parameters.rows.data + sums.moves, parameters.n_states)
    else:
        moves = sums.pairs * parameters.transition + sums.moves
    return Counts(sums.log, sums.starts, moves, np.ascontiguousarray(sums.emissions.T))


def _weights(given: Any, n: int) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("weights", type(given).__name__, f"{n} numbers, one for each sequence") from None
    if values.shape != (n,):
        raise InvalidInput("weights", f"shape {values.shape}", f"shape ({n},), one for each sequence")
    wrong = ~((values >= 0) & (values <= _MOST_WEIGHT))
    if wrong.any():
        raise InvalidInput(f"weights[{int(np.argmax(wrong))}]", "a wrong weight", f"from 0 to {_MOST_WEIGHT:g}")
    if not (values > 0).any():
        raise InvalidInput("weights", "only zeros", "a sequence that counts")
    return values
