"""One sequence in logs, where scaled floats do not serve: slower, and what is possible stays possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm._kernels.hmm_lanes import Matrix
from dphmm._kernels.hmm_logs import backward_logs, forward_logs
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.observations import Observations, place
from dphmm.markov.hidden.parameters import Parameters
from dphmm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LogPass:
    """``alpha`` (T, S), logs of P(state | symbols so far), ``scales`` (T,), and the log-likelihood ``log``."""

    symbols: IntArray
    alpha: FloatArray
    scales: FloatArray
    log: float


def log_pass(parameters: Parameters, initial: FloatArray, observed: Observations, k: int) -> LogPass:
    """The forward pass of sequence k. Raises InvalidInput with its place if a symbol is impossible there."""
    symbols = observed.sequence(k)
    alpha, scales = np.empty((len(symbols), parameters.n_states)), np.empty(len(symbols))
    rows = parameters.compressed_rows
    refused = forward_logs(
        logs(initial),
        rows.indptr,
        rows.indices,
        logs(rows.data),
        logs(parameters.likelihood),
        symbols,
        alpha,
        scales,
    )
    if refused >= 0:
        raise impossible(observed.ends, int(observed.ends[k]) + refused)
    return LogPass(symbols, alpha, scales, float(scales.sum()))


def log_smoothing(parameters: Parameters, passed: LogPass) -> tuple[FloatArray, FloatArray]:
    """Posteriors (T, S), and expected transitions for each entry of ``parameters.compressed_rows``."""
    rows = parameters.compressed_rows
    posteriors, expected = np.empty_like(passed.alpha), np.zeros(len(rows.data))
    backward_logs(
        rows.indptr,
        rows.indices,
        logs(rows.data),
        logs(parameters.likelihood),
        passed.symbols,
        passed.scales,
        passed.alpha,
        posteriors,
        expected,
    )
    return posteriors, expected


def impossible(ends: IntArray, at: int) -> InvalidInput:
    """The error for a symbol that no state can have emitted where it stands."""
    came = "a symbol that is impossible there under the model"
    return InvalidInput(place(ends, at), came, "a sequence the model can emit")


def logs(values: FloatArray) -> FloatArray:
    """Logarithms; -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def log_matrix(matrix: Matrix) -> Matrix:
    """The same matrix with logs in place of its numbers."""
    return Matrix(logs(matrix.dense), matrix.indptr, matrix.indices, logs(matrix.data))
