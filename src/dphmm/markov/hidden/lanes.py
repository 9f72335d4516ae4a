"""Sequences side by side: batches of lanes in order of falling length, and the blocks a long batch is worked on in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dphmm.markov.hidden.observations import Observations
from dphmm.types import IntArray

#: Numbers in the forward rows of a batch (8 MB), and of a block (1 MB): they stay in a processor's cache.
BATCH_NUMBERS = 2**20
BLOCK_NUMBERS = 2**17


@dataclass(frozen=True)
class Block:
    """Positions ``first`` up to ``last`` of all lanes, which are rows ``start`` up to ``stop`` of the batch."""

    first: int
    last: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences ``which`` (lanes,), longest first. Row r is symbol ``rows[r]`` of the observations.

    ``widths`` (T,): how many lanes have a symbol at each position. ``symbols`` (rows,) are those of the rows.
    """

    which: IntArray
    widths: IntArray
    rows: IntArray
    symbols: IntArray

    def blocks(self, n_states: int) -> list[Block]:
        """The whole batch in pieces of about BLOCK_NUMBERS numbers, at least one position each."""
        most = max(BLOCK_NUMBERS // n_states, 1)
        begins = np.concatenate(([0], np.cumsum(self.widths)))
        found, first = [], 0
        while first < len(self.widths):
            last = max(int(np.searchsorted(begins, begins[first] + most, side="right")) - 1, first + 1)
            found.append(Block(first, last, int(begins[first]), int(begins[last])))
            first = last
        return found


def batches(observed: Observations, n_states: int, which: IntArray | None = None) -> Iterator[Batch]:
    """All sequences, or those of ``which``, in batches of about BATCH_NUMBERS numbers, a longer one by itself."""
    numbers = np.arange(observed.n_sequences) if which is None else which
    lengths = observed.lengths[numbers]
    falling = np.argsort(-lengths, kind="stable")
    order, sizes = numbers[falling], np.cumsum(lengths[falling])
    most = max(BATCH_NUMBERS // n_states, 1)
    first = 0
    while first < len(order):
        before = sizes[first - 1] if first else 0
        last = max(int(np.searchsorted(sizes, before + most, side="right")), first + 1)
        yield batch(observed, order[first:last])
        first = last


def halves(observed: Observations, whole: Batch) -> list[Batch]:
    """A batch in two, to find the sequence that floats do not serve; nothing of a single sequence."""
    middle = len(whole.which) // 2
    return [batch(observed, whole.which[:middle]), batch(observed, whole.which[middle:])] if middle else []


def batch(observed: Observations, which: IntArray) -> Batch:
    """Some sequences, given longest first, as lanes."""
    lengths = observed.lengths[which]
    # Lane k is there at positions below lengths[k]: counts of lengths, summed from the longest.
    widths = np.cumsum(np.bincount(lengths, minlength=int(lengths[0]) + 1)[::-1])[::-1][1:]
    begins = np.cumsum(widths) - widths
    lane = np.arange(int(widths.sum())) - np.repeat(begins, widths)
    rows = observed.ends[which][lane] + np.repeat(np.arange(len(widths)), widths)
    return Batch(which, np.ascontiguousarray(widths), rows, observed.symbols[rows])
