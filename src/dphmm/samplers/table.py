"""Draws of columns of a table by its rows' whole weights, exactly: no digit more than a draw needs.

Every row sums to the same power of two. A draw reads one word; where that word lies on an end between two columns it
reads more, one by one: with n columns and 64 digits, fewer than n draws in 2**64 do. The search in a row takes the same
steps for every row. ``draw`` of many rows equals as many draws of one, word by word, and the plain path.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm.samplers.uniform import LazyUniform, WordReader
from dphmm.types import Bits, BoolArray, IntArray, WordArray

_MOST_AT_ONCE = 2**16
_WORD_BITS = 64


class TableSampler:
    """Draws columns. ``weights`` (r, n): whole numbers, each row with the sum 2**bits, bits >= 64."""

    def __init__(self, weights: NDArray[np.object_], bits: int) -> None:
        self._ends = np.cumsum(weights, axis=1, dtype=object)
        self._bits = bits

    def draw(self, rows: IntArray, bits: Bits) -> IntArray:
        """A column (m,) for each of rows (m,)."""
        # The tables of all rows, whichever of them are asked for first.
        _ = self._thresholds, self._lists
        out = np.empty(len(rows), dtype=np.int64)
        words = np.empty(0, dtype=np.uint64)
        done = 0
        while done < len(rows):
            wanted = min(len(rows) - done, _MOST_AT_ONCE)
            words = np.concatenate([words, bits.uint64(wanted - len(words))]) if wanted > len(words) else words
            columns, open_ = self._decided(rows[done : done + wanted], words[:wanted])
            sure = int(np.argmax(open_)) if open_.any() else wanted
            out[done : done + sure] = columns[:sure]
            words, done = words[sure:], done + sure
            if sure < wanted:
                reader = WordReader(bits, words)
                out[done] = self.one(int(rows[done]), reader)
                words, done = reader.left(), done + 1
        return out

    def draw_plainly(self, rows: IntArray, bits: Bits) -> IntArray:
        """The same as ``draw``, one by one in Python integers: the definition, and the twin in tests."""
        reader = WordReader(bits)
        return np.array([self.one(row, reader) for row in rows.tolist()], dtype=np.int64)

    def one(self, row: int, reader: WordReader) -> int:
        """One column of a row: that on whose interval a uniform number falls."""
        ends, u = self._lists[row], LazyUniform(reader.word(), reader)
        while True:
            least = bisect_right(ends, (u.prefix << self._bits) >> u.digits)
            largest = bisect_right(ends, (((u.prefix + 1) << self._bits) - 1) >> u.digits)
            if least == largest:
                return least
            u.extend()

    def _decided(self, rows: IntArray, words: WordArray) -> tuple[IntArray, BoolArray]:
        """The column (m,) that each word picks in its row by itself, and which words leave it open."""
        ends = self._thresholds.shape[1]
        columns = np.zeros(len(rows), dtype=np.int64)
        step = 1 << max(0, ends.bit_length() - 1)
        while step and ends:
            after = np.minimum(columns + step, ends)
            columns = np.where(self._thresholds[rows, after - 1] <= words, after, columns)
            step >>= 1
        if not ends:
            return columns, np.zeros(len(rows), dtype=np.bool_)
        below = self._thresholds[rows, np.maximum(columns - 1, 0)]
        return columns, (columns > 0) & (below == words)

    @cached_property
    def _thresholds(self) -> WordArray:
        """floor(2**64·C_i) (r, n - 1) of the cumulative probabilities of all columns but the last."""
        return np.asarray((self._ends[:, :-1] >> (self._bits - _WORD_BITS)).astype(np.uint64))

    @cached_property
    def _lists(self) -> list[list[int]]:
        return [list(row) for row in self._ends]
