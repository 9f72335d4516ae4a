"""Parameters of a hidden Markov model: checked, drawn at random, in the forms that kernels take, and their origin.

A fit leaves digests of the parameters that it learned. So copies, pickles and changes in place can be told from them:
learned parameters are no public start of another fit, and an event is of the parameters that it came with alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm._cached import cached_property
from dphmm._kernels.hmm import Matrix
from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import check_ends
from dphmm.types import FloatArray

#: How far a sum of probabilities may be from 1: arrays that went through float32 are.
TOLERANCE = 1e-6
#: The letters of ``params`` and ``init_params``, and the attributes they stand for.
ATTRIBUTES = {"s": "startprob_", "t": "transmat_", "e": "emissionprob_"}
Event: TypeAlias = LearningEvent | NotPrivateEvent
CHANGED = "parameters were set by hand after they were learned: nothing bounds what they show"
#: Where a model keeps what its last fit left.
_PLACE = "_last_fit"


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
    def forward(self) -> Matrix:
        """What a row is multiplied by on its way forward: dense if the matrix is, else compressed columns."""
        return _unsigned(self.compressed_columns) if self.is_sparse else _dense(self.transition)

    @cached_property
    def backward(self) -> Matrix:
        """What a row is multiplied by on its way back: transposed if the matrix is dense, else compressed rows."""
        return _unsigned(self.compressed_rows) if self.is_sparse else _dense(self.transition.T)

    @cached_property
    def compressed_rows(self) -> Matrix:
        """The entries of the transition matrix that are not 0, by rows."""
        return _entries(self.transition if self.is_sparse else sparse.csr_array(self.transition))

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


def _unsigned(matrix: Matrix) -> Matrix:
    """The same with unsigned indices: compiled loops then need no test for negative wrap-around."""
    return matrix._replace(indptr=matrix.indptr.view(np.uint64), indices=matrix.indices.view(np.uint64))


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


def random_generator(given: Any) -> Any:
    """A generator: from a seed, a new one from the system for None, or the one that was given."""
    if given is None or (isinstance(given, (int, np.integer)) and not isinstance(given, bool)):
        try:
            return np.random.default_rng(given)
        except ValueError:
            raise InvalidInput("random_state", given, "a seed, 0 or more") from None
    if hasattr(given, "dirichlet") and hasattr(given, "random"):
        return given
    raise InvalidInput("random_state", type(given).__name__, "None, a seed or a NumPy generator")


def drawn(kept: dict[str, Any], n_states: int, n_symbols: int, random: Any) -> Parameters:
    """Each row of what is not in ``kept`` (by letter) uniform over all distributions, so nothing is impossible."""
    initial = kept["s"] if "s" in kept else random.dirichlet(np.ones(n_states))
    transition = kept["t"] if "t" in kept else random.dirichlet(np.ones(n_states), size=n_states)
    emission = kept["e"] if "e" in kept else random.dirichlet(np.ones(n_symbols), size=n_states)
    return checked(initial, transition, emission, n_states, n_symbols)


def letters(given: Any, field: str) -> str:
    """Some of the letters s, t, e; InvalidInput for others."""
    if not isinstance(given, str) or set(given) - set(ATTRIBUTES):
        raise InvalidInput(field, given, 'some of the letters "ste"')
    return given


def remember(hmm: Any, letters: str, event: Event | None = None) -> None:
    """Note the three attributes as they are now, which of them the fit has learned, and what that cost."""
    digests = {name: _digest(getattr(hmm, name)) for name in ATTRIBUTES.values()}
    hmm.__dict__[_PLACE] = (digests, [ATTRIBUTES[letter] for letter in letters], event)


def event_of(hmm: Any) -> Event | None:
    """What learning the parameters that are there now cost; None where no fit has said."""
    event: Event | None = hmm.__dict__[_PLACE][2] if was_fitted(hmm) else None
    if event is not None and not all(is_as_left(hmm, name) for name in ATTRIBUTES.values()):
        return NotPrivateEvent(CHANGED)
    return event


def was_fitted(hmm: Any) -> bool:
    """Whether a fit has left anything here."""
    return _PLACE in hmm.__dict__


def is_as_left(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit left there."""
    return was_fitted(hmm) and hasattr(hmm, name) and hmm.__dict__[_PLACE][0][name] == _digest(getattr(hmm, name))


def is_learned(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit learned."""
    return is_as_left(hmm, name) and name in hmm.__dict__[_PLACE][1]


def _digest(value: Any) -> str:
    """The same for equal numbers, in whatever they are stored."""
    try:
        dimensions, rows = np.ndim(value), _non_zeros(value)
    except (TypeError, ValueError):
        return "no numbers"
    digest = hashlib.sha256(repr((dimensions, rows.shape)).encode())
    for part in (rows.indptr, rows.indices):
        digest.update(part.astype(np.int64).tobytes())
    digest.update(rows.data.tobytes())
    return digest.hexdigest()


def _non_zeros(value: Any) -> Any:
    """Numbers as the one csr_array that equal numbers have: a large sparse table is never made dense."""
    if not sparse.issparse(value) or value.ndim == 1:
        dense = value.toarray() if sparse.issparse(value) else value
        value = np.atleast_2d(np.asarray(dense, dtype=np.float64))
    rows = sparse.csr_array(value).astype(np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
