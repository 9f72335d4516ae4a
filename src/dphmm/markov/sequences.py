"""Integer sequences, checked and laid end to end; messages name sequence and position, never a state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class FlatSequences:
    """``states`` (m,) of all sequences, one after another; sequence k begins at ``starts[k]``."""

    states: IntArray
    starts: IntArray

    @property
    def n_sequences(self) -> int:
        return len(self.starts)

    def split(self) -> list[IntArray]:
        """The sequences again, as views."""
        return np.split(self.states, self.starts[1:])

    def leaves(self) -> BoolArray:
        """Which positions (m - 1,) are followed by another state of the same sequence."""
        inside = np.ones(max(len(self.states) - 1, 0), dtype=np.bool_)
        inside[self.starts[1:] - 1] = False
        return inside


def flatten(sequences: Iterable[Any], n_states: int, field: str = "sequences") -> FlatSequences:
    """Lay sequences of states 0..n_states-1 end to end.

    Raises InvalidInput for no sequences, an empty one, anything that is not an integer, and numbers out of
    range.
    """
    if isinstance(sequences, (str, bytes)) or not isinstance(sequences, Iterable):
        raise InvalidInput(field, type(sequences).__name__, "a list of integer sequences")
    arrays = [_one(given, f"{field}[{k}]") for k, given in enumerate(sequences)]
    if not arrays:
        raise InvalidInput(field, "no sequence", "at least one")
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    states = np.concatenate(arrays)
    if states.min() < 0 or states.max() >= n_states:
        position = int(np.argmax((states < 0) | (states >= n_states)))
        k = int(np.searchsorted(starts, position, side="right")) - 1
        where = f"{field}[{k}][{position - int(starts[k])}]"
        came = "a negative number" if states[position] < 0 else f"a number above {n_states - 1}"
        raise InvalidInput(where, came, f"a state from 0 to {n_states - 1}")
    return FlatSequences(states, starts)


def keep_visited(sequences: Iterable[Any], n_cells: int) -> tuple[IntArray, list[IntArray]]:
    """Leave out cells that nobody visits.

    Returns
    -------
    (k,) int64, the visited cells, increasing: cell ``kept[i]`` is state i of the smaller space
    (``space.subset(kept)``); ``n_cells - k`` were left out.
    The sequences in the numbers of that space.

    Which cells are visited is taken from the data, without privacy. Raises InvalidInput as :func:`flatten`
    does.
    """
    flat = flatten(sequences, n_cells)
    visited = np.zeros(n_cells, dtype=np.bool_)
    visited[flat.states] = True
    number = np.cumsum(visited, dtype=np.int64) - 1
    return np.flatnonzero(visited), FlatSequences(number[flat.states], flat.starts).split()


def _one(given: Any, field: str) -> IntArray:
    if np.ndim(given) == 0 if isinstance(given, np.ndarray) else not _is_sequence(given):
        raise InvalidInput(field, type(given).__name__, "a sequence of states; a single sequence goes in a list")
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidInput(field, "rows of different lengths", "a flat sequence of states") from None
    if array.ndim != 1:
        raise InvalidInput(field, f"{array.ndim} dimensions", "a flat sequence of states")
    if len(array) == 0:
        raise InvalidInput(field, "an empty sequence", "at least one state")
    if array.dtype.kind not in "iu":
        raise _not_integers(given, array, field)
    return array.astype(np.int64, copy=False)


def _is_sequence(given: Any) -> bool:
    return isinstance(given, Iterable) and hasattr(given, "__len__") and not isinstance(given, (str, bytes, dict))


def _not_integers(given: Any, array: NDArray[Any], field: str) -> InvalidInput:
    position = next((k for k, entry in enumerate(given) if not _is_whole(entry)), 0)
    return InvalidInput(f"{field}[{position}]", f"dtype {array.dtype}", "integer state numbers")


def _is_whole(entry: Any) -> bool:
    if isinstance(entry, (bool, np.bool_)):
        return False
    return isinstance(entry, (int, np.integer)) or (
        isinstance(entry, (float, np.floating)) and float(entry).is_integer()
    )
