"""Count the records of a histogram from sorted rows, part by part, in memory that does not grow with their number.

Rows come by person and step, in parts of any size. A person's own rows say which of them count, by step, time and
state, as in `dphmm.markov.private.transition_counts`. That module loads the compiler, and `dphmm.dependent` does not.

Proof: docs/proofs/contributions.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphmm.markov.private.transition_counts import Rows, SortedRows
from dphmm.types import IntArray

Spans = Sequence[tuple[int, int]]


class RecordCounter(SortedRows):
    """Counts rows (person, step, state) as a histogram does, part by part: one record of each person and step.

    A person's first ``most`` records count (None: all) of those at the public steps 0 to ``n_times`` - 1, which begin
    at step ``first`` (None: at the person's own first one). A row in no state counts in the state ``other``. Keys are
    ``interval * n_states + state``, an interval being from one of `edges_of` to the next.
    """

    def __init__(
        self, spans: Spans, n_states: int, n_times: int, first: int | None, most: int | None, other: int
    ) -> None:
        self._edges, self._n_times, self._first, self._most, self._other = edges_of(spans), n_times, first, most, other
        super().__init__(n_states, len(self._edges) * n_states)
        # Of the last person: the first step, and how many records count.
        self._begun = self._records = 0

    def leave_out(self, rows: int) -> None:
        """These rows count nowhere."""

    def _take(self, rows: Rows) -> None:
        if len(rows.step) == 0:
            return
        places = np.arange(len(rows.step))
        begins = np.maximum.accumulate(np.where(rows.new_owner, places, -1))
        begun = np.where(begins < 0, self._begun, rows.step[begins])
        number = rows.step - (begun if self._first is None else self._first)
        inside = (number >= 0) & (number < self._n_times)
        passed = np.cumsum(inside)
        before = np.maximum.accumulate(np.where(rows.new_owner, passed - inside, -self._records))
        rank: IntArray = passed - before
        kept = inside if self._most is None else inside & (rank <= self._most)
        between = np.searchsorted(self._edges, number[kept], side="right") - 1
        state = np.where(rows.state < self._n, rows.state, self._other)[kept]
        # What is before all windows is in none.
        counted = between >= 0
        self._totals.add(between[counted] * self._n + state[counted])
        self._begun, self._records = int(begun[-1]), int(rank[-1])


def edges_of(spans: Spans) -> IntArray:
    """Where a window begins or ends, each place once, increasing."""
    return np.unique(np.array(spans, dtype=np.int64))


def counts_of_intervals(keys: IntArray, totals: IntArray, spans: Spans, n_states: int) -> IntArray:
    """The counts (W, N) of windows, which may overlap, from added keys (k,) and totals of `RecordCounter.found`."""
    edges = edges_of(spans)
    # Row i is what is before edge i.
    before = np.zeros((len(edges) + 1, n_states), dtype=np.int64)
    np.add.at(before, (keys // n_states + 1, keys % n_states), totals)
    np.cumsum(before, axis=0, out=before)
    first, end = (np.searchsorted(edges, side) for side in np.array(spans, dtype=np.int64).T)
    found: IntArray = before[end] - before[first]
    return found
