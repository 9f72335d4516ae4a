"""Sequences of observed symbols, checked and laid end to end; messages name sequence and position, never a symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.types import IntArray

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
    """How a message names a symbol: by its sequence and its position in there."""
    k = int(np.searchsorted(ends, at, side="right")) - 1
    return f"X, sequence {k}, position {at - int(ends[k])} (from 0)"


def _is_list_of_sequences(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.dtype == np.object_ and given.ndim == 1 and all(_has_length(entry) for entry in given)
    if not isinstance(given, (list, tuple)) or not all(_has_length(entry) for entry in given):
        return False
    if len(given) > 1 and all(len(entry) == 1 for entry in given):
        came = f"{len(given)} lists of one number each"
        raise InvalidInput("X", came, "lengths beside it: this is one sequence, or as many as lists")
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
    came = "NaN" if np.isnan(array[at]) else "a number that is not whole"
    return InvalidInput(f"{field}, position {at} (from 0)", came, "an integer symbol")


def _ends(lengths: Any, m: int) -> IntArray:
    if lengths is None:
        return np.array([0, m], dtype=np.int64)
    try:
        given = np.asarray(lengths)
    except ValueError:
        given = np.empty((0, 0))
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind not in "iu":
        raise InvalidInput("lengths", f"{given.dtype} of shape {given.shape}", "one whole number for each sequence")
    if (given < 1).any():
        k = int(np.argmax(given < 1))
        raise InvalidInput(f"lengths[{k}]", int(given[k]), "at least 1: an empty sequence tells nothing")
    total = sum(given.tolist())
    if total != m:
        raise InvalidInput("lengths", f"{total} symbols in all", f"the {m} symbols of X")
    return np.concatenate(([0], np.cumsum(given, dtype=np.int64)))
