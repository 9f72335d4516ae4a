"""The parameters of a hidden Markov model, checked, and the forms of them that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm._kernels.hmm_lanes import Matrix
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import check_ends
from dphmm.types import FloatArray

#: How far a sum of probabilities may be from 1: arrays that went through float32 are.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Parameters:
    """``initial`` (S,), ``transition`` (S, S) dense or a csr_array, ``emission`` (S, V): rows sum to 1."""

    initial: FloatArray
    transition: Any
    emission: FloatArray

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_symbols(self) -> int:
        return int(self.emission.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.transition))

    @cached_property
    def likelihood(self) -> FloatArray:
        """P(symbol | state), a row for each symbol (V, S)."""
        return np.ascontiguousarray(self.emission.T)

    @cached_property
    def rows(self) -> Matrix:
        """The transition matrix for kernels, dense if it is."""
        return _entries(self.transition) if self.is_sparse else _dense(self.transition)

    @cached_property
    def columns(self) -> Matrix:
        """The transposed transition matrix for kernels, dense if the matrix is."""
        return self.compressed_columns if self.is_sparse else _dense(self.transition.T)

    @cached_property
    def compressed_rows(self) -> Matrix:
        """The entries of the transition matrix that are not 0, by rows."""
        return self.rows if self.is_sparse else _entries(sparse.csr_array(self.transition))

    @cached_property
    def compressed_columns(self) -> Matrix:
        """The entries of the transition matrix that are not 0, by columns."""
        return _entries(sparse.csr_array(self.transition.T))

    @cached_property
    def stationary(self) -> FloatArray:
        """A distribution (S,) that a step leaves as it is, by elimination without subtractions (Grassmann et al. 1985).

        Of a chain with several closed classes: that one from which rare restarts anywhere come back to them.
        """
        n = self.n_states
        matrix = (self.transition.toarray() if self.is_sparse else self.transition) * (1 - _RESTART) + _RESTART / n
        for k in range(n - 1, 0, -1):
            matrix[:k, k] /= matrix[k, :k].sum()
            matrix[:k, :k] += np.outer(matrix[:k, k], matrix[k, :k])
        found: FloatArray = np.ones(n)
        for k in range(1, n):
            found[k] = found[:k] @ matrix[:k, k]
        total: float = found.sum()
        return found / total


#: How often a chain is restarted anywhere for a stationary distribution to be the only one.
_RESTART = 1e-12


def checked(initial: Any, transition: Any, emission: Any, n_states: int, n_symbols: int | None) -> Parameters:
    """Parameters as a caller sets them; InvalidInput names the attribute, the row and what is wrong."""
    start = _numbers(initial, "startprob_", (n_states,))
    _check_rows(start[None, :], "startprob_")
    if sparse.issparse(transition):
        moves = _sparse(transition, n_states)
        _check_entries(moves.data, "transmat_")
        _check_sums(np.asarray(moves.sum(axis=1)).ravel(), "transmat_")
    else:
        moves = _numbers(transition, "transmat_", (n_states, n_states))
        _check_rows(moves, "transmat_")
    seen = _numbers(emission, "emissionprob_", (n_states, np.shape(emission)[-1] if n_symbols is None else n_symbols))
    _check_rows(seen, "emissionprob_")
    return Parameters(start, moves, seen)


def _dense(matrix: FloatArray) -> Matrix:
    none = np.zeros(0, dtype=np.int64)
    return Matrix(np.ascontiguousarray(matrix), none, none, np.zeros(0))


def _entries(matrix: Any) -> Matrix:
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return Matrix(np.zeros((0, 0)), indptr, indices, matrix.data)


def _numbers(given: Any, field: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        values: NDArray[Any] = np.asarray(given)
    except ValueError:
        raise InvalidInput(field, "rows of different lengths", f"shape {shape}") from None
    if values.dtype.kind not in "iuf":
        raise InvalidInput(field, f"dtype {values.dtype}", "probabilities")
    if values.shape != shape or 0 in shape:
        raise InvalidInput(field, f"shape {values.shape}", f"shape {shape}")
    return np.ascontiguousarray(values, dtype=np.float64)


def _sparse(given: Any, n_states: int) -> Any:
    if given.shape != (n_states, n_states):
        raise InvalidInput("transmat_", f"shape {given.shape}", f"shape {(n_states, n_states)}")
    if given.dtype.kind not in "iuf":
        raise InvalidInput("transmat_", f"dtype {given.dtype}", "probabilities")
    try:
        # Before anything is converted: compiled code trusts the index arrays.
        if hasattr(given, "check_format"):
            check_ends(given.indptr)
            given.check_format(full_check=True)
        matrix = sparse.csr_array(given, dtype=np.float64, copy=True)
    except (ValueError, IndexError):
        raise InvalidInput("transmat_", "a sparse matrix with wrong index arrays", "a well-formed one") from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _check_rows(rows: FloatArray, field: str) -> None:
    _check_entries(rows, field)
    _check_sums(rows.sum(axis=1), field)


def _check_entries(values: FloatArray, field: str) -> None:
    wrong = ~((values >= 0) & (values <= 1 + TOLERANCE))
    if wrong.any():
        raise InvalidInput(field, repr(float(values[wrong].flat[0])), "probabilities from 0 to 1")


def _check_sums(sums: FloatArray, field: str) -> None:
    wrong = ~(np.abs(sums - 1.0) <= TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        name = field if len(sums) == 1 and field == "startprob_" else f"{field}[{row}]"
        raise InvalidInput(name, f"a sum of {float(sums[row])!r}", f"a sum of 1 (within {TOLERANCE:g})")
