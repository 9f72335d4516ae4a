"""Noise with whole weights near the origin and geometric shells beyond, exactly: no digit more than a draw needs.

One uniform number U picks a point near the origin, or the shells; where it picks the shells, a second picks which, and
a third the point of the shell. A draw reads one word, then as many more as its decisions leave open, in their order. So
``draw(m)`` equals m calls of ``draw(1)`` and the plain path, word by word, from the same bits.

`TableSampler` draws columns of a table by its rows' whole weights, exactly too. Every row sums to the same power of
two. A draw reads one word; where that word lies on an end between two columns it reads more, one by one: with n columns
and 64 digits, fewer than n draws in 2**64 do. The search in a row takes the same steps for every row. ``draw`` of many
rows equals as many draws of one, word by word, and the plain path.

Proofs: docs/proofs/optimal-additive.md, docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm.samplers.body import NOISE_BOUND
from dphmm.samplers.rows import Facets, shell_of
from dphmm.samplers.uniform import GUARD_BITS, LazyUniform, WordReader
from dphmm.types import Bits, BoolArray, IntArray, WordArray

_MOST_AT_ONCE = 2**16
_WORD = 1 << 64


class WeightedSampler:
    """Lattice vectors basis·y: y one of ``points`` (n, k) by ``weights``, or of shell j >= 1 by ``tail``·qʲ⁻¹ each.

    ``outside``: the weight of all shells together, exactly. ``basis`` (d, k).
    """

    def __init__(
        self,
        facets: Facets,
        radius: Fraction,
        points: IntArray,
        weights: Sequence[int],
        tail: int,
        q: Fraction,
        outside: Fraction,
        basis: IntArray,
    ) -> None:
        self._facets, self._radius, self._points, self._basis = facets, radius, points, basis
        self._tail, self._q, self._outside = tail, q, outside
        scale = outside.denominator
        self._ends = [scale * end for end in accumulate(weights)]
        self._total = self._ends[-1] + outside.numerator

    def prepare(self) -> None:
        """Compute the tables that drawing needs."""
        _ = self._thresholds, self._vectors

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent noises (m, d), within ±2**62 per axis."""
        out = np.empty((m, len(self._basis)), dtype=np.int64)
        words = np.empty(0, dtype=np.uint64)
        done = 0
        while done < m:
            wanted = min(m - done, _MOST_AT_ONCE)
            words = np.concatenate([words, bits.uint64(wanted - len(words))]) if wanted > len(words) else words
            used, written = self._write(words, out[done:], bits)
            words, done = words[used:], done + written
        return out

    def draw_plainly(self, m: int, bits: Bits) -> IntArray:
        """The same as ``draw``, one by one in Python integers: the definition, and the twin in tests."""
        reader = WordReader(bits)
        return np.array([self.one(reader) for _ in range(m)], dtype=np.int64).reshape(m, len(self._basis))

    def one(self, reader: WordReader) -> list[int]:
        """One noise (d,)."""
        number = self._picked(LazyUniform(reader.word(), reader))
        y = self._points[number].tolist() if number < len(self._points) else self._from_shells(reader)
        lattice = (sum(int(b) * c for b, c in zip(row, y, strict=True)) for row in self._basis.tolist())
        return [max(-NOISE_BOUND, min(NOISE_BOUND, component)) for component in lattice]

    def _write(self, words: np.ndarray, out: IntArray, bits: Bits) -> tuple[int, int]:
        """Noises from words, until those are used up; how many words were read and noises written.

        Words that a draw needs and that are not there are fetched.
        """
        number, open_ = self._decided(words)
        used = written = 0
        for stop in [*np.flatnonzero(open_).tolist(), len(words)]:
            if stop < used:
                continue
            sure = min(stop - used, len(out) - written)
            out[written : written + sure] = self._vectors[number[used : used + sure]]
            used, written = used + sure, written + sure
            if used == len(words) or written == len(out):
                break
            reader = WordReader(bits, words[used:])
            out[written] = self.one(reader)
            written += 1
            used = len(words) - len(reader.left())
        return used, written

    def _decided(self, words: np.ndarray) -> tuple[IntArray, np.ndarray]:
        """Which point each word picks by itself, and which words leave it open or pick the shells."""
        number = np.searchsorted(self._thresholds, words, side="right")
        on_threshold = words == self._thresholds[number - 1]
        return number, (number == len(self._points)) | (on_threshold & (number > 0))

    @cached_property
    def _thresholds(self) -> np.ndarray:
        """floor(2**64·C_i) (n,) of the cumulative probabilities of the points."""
        return np.array([end * _WORD // self._total for end in self._ends], dtype=np.uint64)

    @cached_property
    def _vectors(self) -> IntArray:
        return np.asarray(self._points @ self._basis.T)

    def _picked(self, u: LazyUniform) -> int:
        """The number of the point that U falls on; that of points for the shells."""
        while True:
            least = bisect_right(self._ends, (u.prefix * self._total) >> u.digits)
            largest = bisect_right(self._ends, ((u.prefix + 1) * self._total - 1) >> u.digits)
            if least == largest:
                return least
            u.extend()

    def _from_shells(self, reader: WordReader) -> Sequence[int]:
        j = self._shell(LazyUniform(reader.word(), reader))
        shell = shell_of(self._facets, self._radius, j)
        return shell.point(LazyUniform(reader.word(), reader).scaled(shell.size), self._points.shape[1])

    def _shell(self, u: LazyUniform) -> int:
        """The least j with U < C_j, C_j the share of the first j shells."""
        while True:
            j = self._sure_shell(u.prefix, u.digits)
            if j is not None:
                return j
            u.extend()

    def _sure_shell(self, prefix: int, digits: int) -> int | None:
        """The shell of every U in [prefix, prefix + 1) / 2**digits, or None where bounds cannot tell."""
        scale = digits + GUARD_BITS
        least, beyond = prefix << GUARD_BITS, (prefix + 1) << GUARD_BITS
        share = Fraction(self._tail << scale) / self._outside
        low, high = math.floor(share), math.ceil(share)
        sum_low = sum_high = before_high = j = 0
        while sum_high <= least:
            before_high = sum_high
            j += 1
            sum_low, sum_high = sum_low + low * self._size(j), sum_high + high * self._size(j)
            low = math.floor(low * self._q)
            high = math.ceil(high * self._q)
        return j if before_high <= least and beyond <= sum_low else None

    def _size(self, j: int) -> int:
        """How many points shell j has: a polynomial in j of degree k - 1 (docs/proofs/dilations.md)."""
        first = self._first_sizes
        return first[0] + (j - 1) * (first[-1] - first[0])

    @cached_property
    def _first_sizes(self) -> list[int]:
        return [shell_of(self._facets, self._radius, j).size for j in range(1, 1 + self._points.shape[1])]


_WORD_BITS = 64


class TableSampler:
    """Draws columns. ``weights`` (r, n): whole numbers, each row with the sum 2**bits, bits >= 64."""

    def __init__(self, weights: NDArray[np.object_], bits: int) -> None:
        self._ends = np.cumsum(weights, axis=1, dtype=object)
        self._bits = bits

    def prepare(self) -> None:
        """Compute the tables that drawing needs, for all rows."""
        _ = self._thresholds, self._lists

    def draw(self, rows: IntArray, bits: Bits) -> IntArray:
        """A column (m,) for each of rows (m,)."""
        self.prepare()
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
