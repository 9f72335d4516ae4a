"""Parameters of a hidden Markov model: checked, drawn at random, in the forms that kernels take, and their origin.

A fit leaves digests of the parameters that it learned. So copies, pickles and changes in place can be told from them:
learned parameters are no public start of another fit, and an event is of the parameters that it came with alone.

Sequences of observed symbols are checked and laid end to end; messages name sequence and position, never a symbol.
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
from dphmm.types import FloatArray, IntArray

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
        """The factor of a row on its way forward: dense if the transition matrix is, else compressed columns."""
        return _unsigned(self.compressed_columns) if self.is_sparse else _dense(self.transition)

    @cached_property
    def backward(self) -> Matrix:
        """The factor of a row on its way back: transposed if the transition matrix is dense, else compressed rows."""
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
        law: FloatArray = np.ones(n)
        for k in range(1, n):
            law[k] = law[:k] @ matrix[:k, k]
        total: float = law.sum()
        return law / total


#: How often a chain is restarted anywhere for a stationary distribution to be the only one.
_RESTART = 1e-12


def checked(initial: Any, transition: Any, emission: Any, n_states: int, n_symbols: int | None) -> Parameters:
    """Parameters as a caller sets them; InvalidInput names the attribute, the row and what is wrong."""
    start = _numbers(initial, "startprob_", (n_states,))
    _check(start, start.sum(keepdims=True), "startprob_")
    if sparse.issparse(transition):
        moves = _sparse(transition, n_states)
        _check(moves.data, moves.sum(axis=1), "transmat_")
    else:
        moves = _numbers(transition, "transmat_", (n_states, n_states))
        _check(moves, moves.sum(axis=1), "transmat_")
    seen = _numbers(emission, "emissionprob_", (n_states, np.shape(emission)[-1] if n_symbols is None else n_symbols))
    _check(seen, seen.sum(axis=1), "emissionprob_")
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


def _check(values: FloatArray, sums: FloatArray, field: str) -> None:
    """Refuse what is no probability, and rows whose sums are not 1."""
    wrong = ~((values >= 0) & (values <= 1 + TOLERANCE))
    if wrong.any():
        raise InvalidInput(field, repr(float(values[wrong].flat[0])), "probabilities from 0 to 1")
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
    """The event of learning the present parameters; None if no fit recorded one."""
    event: Event | None = hmm.__dict__[_PLACE][2] if was_fitted(hmm) else None
    if event is not None and not all(is_as_left(hmm, name) for name in ATTRIBUTES.values()):
        return NotPrivateEvent(CHANGED)
    return event


def was_fitted(hmm: Any) -> bool:
    """True if a fit has left anything here."""
    return _PLACE in hmm.__dict__


def is_as_left(hmm: Any, name: str) -> bool:
    """True if an attribute has the value that the last fit left there."""
    return was_fitted(hmm) and hasattr(hmm, name) and hmm.__dict__[_PLACE][0][name] == _digest(getattr(hmm, name))


def is_learned(hmm: Any, name: str) -> bool:
    """True if an attribute has the value that the last fit learned."""
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


_EXPECTED = "integers (m,) or (m, 1) with lengths, or a list of integer sequences"


@dataclass(frozen=True, eq=False)
class Observations:
    """``symbols`` (m,); sequence k is those from ``ends[k]`` up to ``ends[k + 1]``, and none is empty."""

    symbols: IntArray
    ends: IntArray

    @property
    def n_sequences(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.ends)

    @property
    def n_symbols(self) -> int:
        """The least number of symbols that holds all of these."""
        return int(self.symbols.max()) + 1

    def sequence(self, k: int) -> IntArray:
        """A view of sequence k."""
        return self.symbols[self.ends[k] : self.ends[k + 1]]


def observations(given: Any, lengths: Any = None, n_symbols: int | None = None) -> Observations:
    """Check X and lengths, as every method of the estimator takes them.

    ``given`` is an array (m,) or (m, 1), cut by ``lengths`` or one single sequence; or a list of sequences. A list of
    several lists of one number each could be either, and needs ``lengths``. Raises InvalidInput where there is no
    symbol, a sequence is empty, a symbol is no integer from 0 to n_symbols - 1, or lengths do not add up.
    """
    if lengths is None and _is_list_of_sequences(given):
        arrays = [_flat(entry, f"X[{k}]") for k, entry in enumerate(given)]
        symbols = np.concatenate(arrays)
        ends = np.concatenate(([0], np.cumsum([len(array) for array in arrays], dtype=np.int64)))
    else:
        symbols = _flat(given, "X")
        ends = _ends(lengths, len(symbols))
    wrong = symbols < 0 if n_symbols is None else (symbols < 0) | (symbols >= n_symbols)
    if wrong.any():
        at = int(np.argmax(wrong))
        negative = symbols[at] < 0
        expected = "a symbol, 0 or more" if n_symbols is None else f"a symbol from 0 to {n_symbols - 1}"
        raise InvalidInput(place(ends, at), "a negative number" if negative else "a number too large", expected)
    return Observations(symbols, ends)


def place(ends: IntArray, at: int) -> str:
    """The name of a symbol in messages: its sequence and its position in it."""
    k = int(np.searchsorted(ends, at, side="right")) - 1
    return f"X, sequence {k}, position {at - int(ends[k])} (from 0)"


def _is_list_of_sequences(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.dtype == np.object_ and given.ndim == 1 and all(_has_length(entry) for entry in given)
    if not isinstance(given, (list, tuple)) or not all(_has_length(entry) for entry in given):
        return False
    if len(given) > 1 and all(len(entry) == 1 for entry in given):
        fault = f"{len(given)} lists of one number each"
        raise InvalidInput("X", fault, "lengths beside it: this is one sequence, or as many as lists")
    return len(given) > 0


def _has_length(entry: Any) -> bool:
    return hasattr(entry, "__len__") and not isinstance(entry, (str, bytes)) and np.ndim(entry) > 0


def _flat(given: Any, field: str) -> IntArray:
    try:
        array: NDArray[Any] = np.asarray(given)
    except ValueError:
        raise InvalidInput(field, "rows of different lengths", _EXPECTED) from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInput(field, f"shape {array.shape}", _EXPECTED)
    if len(array) == 0:
        raise InvalidInput(field, "no symbol", "at least one")
    if array.dtype.kind == "f":
        raise _no_integers(array, field)
    if array.dtype.kind not in "iu":
        raise InvalidInput(
            field, f"dtype {array.dtype}", "integer symbols (names have numbers: symbols_ of a loaded model)"
        )
    if array.dtype == np.uint64 and array.max() > 2**62:
        raise InvalidInput(field, "a number too large", "symbols below 2**62")
    return np.ascontiguousarray(array, dtype=np.int64)


def _no_integers(array: NDArray[Any], field: str) -> InvalidInput:
    wrong = ~(np.isfinite(array) & (np.floor(array) == array))
    if not wrong.any():
        return InvalidInput(
            field, f"dtype {array.dtype}", "integer symbols: these are whole numbers, .astype(int) makes them so"
        )
    at = int(np.argmax(wrong))
    fault = "NaN" if np.isnan(array[at]) else "a number that is not whole"
    return InvalidInput(f"{field}, position {at} (from 0)", fault, "an integer symbol")


def _ends(lengths: Any, m: int) -> IntArray:
    if lengths is None:
        return np.array([0, m], dtype=np.int64)
    try:
        sizes = np.asarray(lengths)
    except ValueError:
        sizes = np.empty((0, 0))
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu":
        raise InvalidInput("lengths", f"{sizes.dtype} of shape {sizes.shape}", "one whole number for each sequence")
    if (sizes < 1).any():
        k = int(np.argmax(sizes < 1))
        raise InvalidInput(f"lengths[{k}]", int(sizes[k]), "at least 1: an empty sequence tells nothing")
    total = sum(sizes.tolist())
    if total != m:
        raise InvalidInput("lengths", f"{total} symbols in all", f"the {m} symbols of X")
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
