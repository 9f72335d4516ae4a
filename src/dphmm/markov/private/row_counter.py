"""Transitions of capped records, counted from sorted rows as they pass: memory does not grow with their number.

Rows come by owner and step, in parts of any size. What is kept of an owner depends on the order of that owner's rows,
which is a total order of the rows themselves: whatever order they arrived in, the same ones are kept.

Proof: docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

import numpy as np

from dphmm.markov.private.sensitivity import Caps
from dphmm.markov.private.transition_counts import KeyTotals, TransitionCounts, transitions_of
from dphmm.types import BoolArray, IntArray


class RowCounter:
    """Counts rows (owner, step, state) as `TransitionCounts`, part by part.

    A sequence is a run of rows of one owner at steps that follow each other; the first row of a step counts. A row in
    no state counts nowhere, and cuts. An owner's first ``caps.max_sequences`` sequences of at least ``shortest`` rows
    count, 1 or 2, each cut to its first ``caps.max_length`` rows.
    """

    def __init__(self, n_states: int, caps: Caps, shortest: int) -> None:
        self._n, self._caps, self._shortest = n_states, caps, shortest
        # Pairs of states, then states that come first, then owners, then rows that are left out.
        self._totals = KeyTotals(n_states**2 + n_states + 2)
        self._carried = False
        # The last row that came: its step; the last that counted: its owner, step, state, place; the owner's sequences.
        self._owner = self._seen = self._counted_owner = self._step = self._state = self._place = self._sequences = 0

    def leave_out(self, rows: int) -> None:
        """These rows count nowhere."""
        self._totals.add(np.full(rows, self._n**2 + self._n + 1, dtype=np.int64))

    def add(self, new_owner: BoolArray, step: IntArray, state: IntArray) -> None:
        """Rows (m,) by owner and step, after those that came before.

        new_owner : whether a row is of another owner than the row before it; of the very first row it is not used.
        state : 0..n-1, any other number for none.

        Raises ValueError for rows that are out of order.
        """
        if len(step) == 0:
            return
        new_owner = new_owner.copy()
        new_owner[0] |= not self._carried
        before = np.concatenate([[self._seen], step[:-1]])
        if (~new_owner & (step < before)).any():
            raise ValueError("rows are out of order: sort them by owner and step")
        owner = self._owner + np.cumsum(new_owner)
        self._totals.add(np.full(int(new_owner.sum()), self._n**2 + self._n, dtype=np.int64))
        first = new_owner | (step != before)
        known = (state >= 0) & (state < self._n)
        self.leave_out(int((first & ~known).sum()))
        self._carried, self._owner, self._seen = True, int(owner[-1]), int(step[-1])
        counts = first & known
        self._count(owner[counts], step[counts], state[counts])

    def _count(self, owner: IntArray, step: IntArray, state: IntArray) -> None:
        """One row of each step, all in a state."""
        if len(owner) == 0:
            return
        owners = np.concatenate([[self._counted_owner], owner])
        others = owners[1:] != owners[:-1]
        steps = np.concatenate([[self._step], step])
        begins = others | (steps[1:] != steps[:-1] + 1)
        rows = np.arange(len(owner))
        place = rows - np.maximum.accumulate(np.where(begins, rows, -1 - self._place))
        # A sequence is one from its ``shortest``-th row on.
        enough = place == self._shortest - 1
        passed = np.cumsum(enough)
        at_owner = np.maximum.accumulate(np.where(others, passed - enough, -self._sequences))
        rank = passed - at_owner
        kept = (rank <= self._caps.max_sequences) & (place < self._caps.max_length)
        states = np.concatenate([[self._state], state])
        moves = kept & (place > 0)
        self._totals.add(states[:-1][moves] * self._n + states[1:][moves])
        begun = enough & (rank <= self._caps.max_sequences)
        self._totals.add(self._n**2 + (states[1:] if self._shortest == 1 else states[:-1])[begun])
        self._counted_owner, self._step, self._state = int(owner[-1]), int(step[-1]), int(state[-1])
        self._place, self._sequences = int(place[-1]), int(rank[-1])

    def found(self) -> tuple[IntArray, IntArray]:
        """What was counted, as keys and totals, which may be added to those of other owners."""
        return self._totals.found()

    def __repr__(self) -> str:
        return "RowCounter(...)"


def counts_of_keys(keys: IntArray, totals: IntArray, n: int, caps: Caps) -> TransitionCounts:
    """The counts of added keys (k,) and totals of `RowCounter.found`, in any order."""
    order = np.argsort(keys)
    keys, totals = keys[order], totals[order]
    ends = np.searchsorted(keys, [n * n, n * n + n])
    starts, rest = np.zeros(n, dtype=np.int64), np.zeros(2, dtype=np.int64)
    starts[keys[ends[0] : ends[1]] - n * n] = totals[ends[0] : ends[1]]
    rest[keys[ends[1] :] - n * n - n] = totals[ends[1] :]
    transitions = transitions_of(keys[: ends[0]], totals[: ends[0]], n)
    n_owners, left_out = rest.tolist()
    return TransitionCounts(n, caps.max_length, caps.max_sequences, "owner", transitions, starts, n_owners, left_out)
