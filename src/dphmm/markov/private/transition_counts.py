"""Counts of transitions in capped records: exact, private, and counted before any noise is drawn.

Counting and drawing are apart: many machines may count, one draws. The counts depend on the rows of each owner
alone; the noise is in `dphmm.markov.private.planned`. Sorted rows, by owner and step, are counted as they pass, in
parts of any size: memory does not grow with their number. The kept rows of an owner follow from that owner's rows, by
step, time and state: whatever order they arrived in, the same ones are kept.

Proof: docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from dphmm._checks import whole
from dphmm.markov.estimate import ALL_PAIRS_STATES
from dphmm.markov.private.sensitivity import Kept, RecordBounds, kept_records, unit_of
from dphmm.markov.slots import Slots
from dphmm.markov.slotted import steps_of
from dphmm.types import BoolArray, IntArray

#: Up to this many pairs of states a table of all of them is counted; above, the pairs that occur are sorted.
_TABLE_PAIRS = (ALL_PAIRS_STATES + 1) ** 2
#: Keys are held until there are so many, or as many as there are different ones.
_HELD = 2**20


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class TransitionCounts:
    """Exact counts of capped records: private. Neither ``repr`` nor a pickle shows anything of them.

    n_states, max_length, max_sequences, unit : public. A record is all sequences of one "owner", or one "sequence".
    transitions : csr_array (N, N) int64, how often state j follows state i. With ``slots``, which are public, the
        tables of all slots (K N, N), one below another: a move is in that of the step it leaves. With an ``end``,
        which is public, too, sequences move to that state once, and never from it.
    starts : (N,) int64, the number of kept sequences that begin in each state.
    n_owners : the number of records.
    left_out : the number of rows that count nowhere: nobody owns them, or they are at no step or in no state.

    All but these, the slots and the end are for the data owner alone.

    Examples
    --------
    >>> from dphmm.markov.private import count_transitions
    >>> counts = count_transitions([[0, 1, 1], [1, 0]], 2, 3)
    >>> counts
    TransitionCounts(...)
    >>> counts.transitions.toarray().tolist()
    [[0, 1], [1, 1]]

    Source: docs/proofs/learning.md.
    """

    n_states: int
    max_length: int
    max_sequences: int
    unit: str
    transitions: Any
    starts: IntArray
    n_owners: int
    left_out: int = 0
    slots: Slots | None = None
    end: int | None = None

    def __repr__(self) -> str:
        return "TransitionCounts(...)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("TransitionCounts are not written: they are exact; fit_counts adds the noise")


def count_transitions(
    sequences: Iterable[Any],
    n_states: int,
    max_length: int,
    *,
    max_sequences: int = 1,
    owners: Any = None,
    end: int | None = None,
) -> TransitionCounts:
    """Count the transitions of capped records, exactly and without noise.

    sequences : integer sequences, states 0..n_states-1, one step apart. None at all is data too.
    max_length : public; each sequence is cut to its first positions.
    owners, max_sequences : the owner of each sequence, and the number kept of an owner's, the first in the order of
        ``sequences``.
    end : as in `dphmm.markov.private.fit_chain`.

    Raises InvalidInput as `dphmm.markov.private.fit_chain` does.
    """
    n, caps = whole(n_states, "n_states", 2, 2**31 - 1), RecordBounds(max_length, max_sequences)
    last = None if end is None else whole(end, "end", 0, n - 1)
    return counts_of(kept_records(sequences, n, caps, owners, end=last), n, caps, unit_of(owners), end=last)


def counts_of(
    kept: Kept,
    n: int,
    caps: RecordBounds,
    unit: str,
    slots: Slots | None = None,
    first_steps: Any = None,
    step: int | None = None,
    end: int | None = None,
) -> TransitionCounts:
    """The counts of capped records of states 0..n-1; with slots by them, of steps of so many seconds.

    ``first_steps``: of all sequences that were given, the number of the first step. The slot of a move follows from the
    steps of its own sequence and from public data. Times that no slot has are those of the nearest time that has one.
    """
    inside = np.ones(max(len(kept.symbols) - 1, 0), dtype=np.bool_)
    inside[kept.bounds[1:-1] - 1] = False
    several, rows = 1, kept.symbols
    if slots is not None:
        several, firsts = slots.n, np.asarray([] if first_steps is None else first_steps)
        firsts = firsts[kept.which] if len(firsts) > kept.which.max(initial=-1) else firsts
        steps = steps_of(firsts, kept.bounds[:-1], len(kept.symbols), slots)
        rows = rows + n * slots.of_steps(slots.within(steps, step), step)
    totals = KeyTotals(several * n * n)
    totals.add((rows[:-1] * n + kept.symbols[1:])[inside])
    starts = np.bincount(kept.symbols[kept.bounds[:-1]], minlength=n).astype(np.int64)
    transitions = transitions_of(*totals.found(), n, several)
    public = n, caps.max_length, caps.max_sequences, unit
    return TransitionCounts(*public, transitions, starts, kept.n_records, slots=slots, end=end)


def transitions_of(pairs: IntArray, counts: IntArray, n: int, several: int = 1) -> Any:
    """``counts`` (k,) of the increasing pairs ``from * n + to`` (k,), as a csr_array (n, n), or of several (K n, n)."""
    rows, columns = np.divmod(pairs, n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=several * n))])
    return sparse.csr_array((counts, columns, indptr), shape=(several * n, n))


class KeyTotals:
    """The counts of keys 0..n_keys-1, added up in parts. Memory grows with different keys, not with additions."""

    def __init__(self, n_keys: int) -> None:
        self._table = np.zeros(n_keys, dtype=np.int64) if n_keys <= _TABLE_PAIRS else None
        self._keys, self._counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._held: list[IntArray] = []
        self._held_totals: list[tuple[IntArray, IntArray]] = []
        self._n_held = 0

    def add(self, keys: IntArray, totals: IntArray | None = None) -> None:
        """Count these keys (m,) too: each once, or as often as ``totals`` (m,) says."""
        if totals is None:
            self._held.append(keys)
        else:
            self._held_totals.append((keys, totals))
        self._n_held += len(keys)
        if self._n_held >= max(_HELD, len(self._keys)):
            self._fold()

    def found(self) -> tuple[IntArray, IntArray]:
        """The keys that occur, increasing, and how often each does."""
        self._fold()
        if self._table is None:
            return self._keys, self._counts
        keys = np.flatnonzero(self._table)
        return keys, self._table[keys]

    def _fold(self) -> None:
        keys = np.concatenate([*self._held, np.zeros(0, dtype=np.int64)])
        added, self._held, self._held_totals, self._n_held = self._held_totals, [], [], 0
        if self._table is not None:
            self._table += np.bincount(keys, minlength=len(self._table))
            for known, totals in added:
                np.add.at(self._table, known, totals)
            return
        added += [np.unique(keys, return_counts=True), (self._keys, self._counts)]
        known, counts = (np.concatenate(column) for column in zip(*added, strict=True))
        self._keys, place = np.unique(known, return_inverse=True)
        self._counts = np.zeros(len(self._keys), dtype=np.int64)
        np.add.at(self._counts, place, counts)

    def __repr__(self) -> str:
        return "KeyTotals(...)"


UNSORTED = "rows are out of order: sort them by owner and step"


class OwnerSteps(NamedTuple):
    """Rows (m,) by owner and step; a state of n is none."""

    new_owner: BoolArray
    step: IntArray
    state: IntArray
    time: IntArray

    def take(self, rows: slice) -> OwnerSteps:
        """Some of them."""
        return OwnerSteps(self.new_owner[rows], self.step[rows], self.state[rows], self.time[rows])

    def before(self, others: OwnerSteps) -> OwnerSteps:
        """These, and then others."""
        new_owner = np.concatenate([self.new_owner, others.new_owner])
        step, state, time = (np.concatenate(pair) for pair in zip(self[1:], others[1:], strict=True))
        return OwnerSteps(new_owner, step, state, time)


class SortedRows(ABC):
    """Takes rows (owner, step, state) by owner and step, part by part, and keeps one of each step.

    The latest of several rows at one step counts, and of those the least state.
    """

    def __init__(self, n_states: int, n_keys: int) -> None:
        self._n = n_states
        #: Keys of what is counted are 0..n_keys-1: public.
        self.n_keys = n_keys
        self._totals = KeyTotals(n_keys)
        #: The last step that came, as one row: other rows of it may follow.
        self._held: OwnerSteps | None = None

    @abstractmethod
    def leave_out(self, rows: int) -> None:
        """These rows count nowhere."""

    def found(self) -> tuple[IntArray, IntArray]:
        """The counts, as increasing keys and totals, which may be added to those of other owners.

        No row comes after it.
        """
        if self._held is not None:
            self._take(self._held)
            self._held = None
        return self._totals.found()

    @abstractmethod
    def _take(self, rows: OwnerSteps) -> None:
        """One row of each step, after those that came before; a state of n is none."""

    def add(self, new_owner: BoolArray, step: IntArray, state: IntArray, time: IntArray | None = None) -> None:
        """Rows (m,) by owner and step, after those that came before; those of one step in any order.

        new_owner : True where a row is of another owner than the row before it; the very first is not used.
        state : 0..n-1, any other number for none.
        time : the times of the rows, of which the latest at one step counts; None if there are none.

        Raises ValueError for rows that are out of order.
        """
        if len(step) == 0:
            return
        known = (state >= 0) & (state < self._n)
        time = np.zeros(len(step), dtype=np.int64) if time is None else time
        rows = OwnerSteps(new_owner, step, np.where(known, state, self._n), time)
        if self._held is not None:
            rows = self._held.before(rows)
        else:
            rows = rows._replace(new_owner=np.concatenate([[True], new_owner[1:]]))
        single = _one_of_each_step(rows)
        self._take(single.take(slice(None, -1)))
        self._held = single.take(slice(-1, None))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class RunCounter(SortedRows):
    """Counts the sequences of rows (owner, step, state), part by part.

    Keys are ``n_cells`` cells, then owners, and rows that are left out. A sequence is a run of rows of one owner at
    steps that follow each other; a row in no state counts nowhere, and cuts. An owner's first ``caps.max_sequences``
    sequences of at least ``shortest`` rows count, 1 or 2, each cut to its first ``caps.max_length`` rows. A cell
    follows from a row and at most ``memory`` rows before it.
    """

    def __init__(self, n_states: int, n_cells: int, caps: RecordBounds, shortest: int, memory: int = 1) -> None:
        super().__init__(n_states, n_cells + 2)
        self._cells, self._caps, self._shortest, self._most = n_cells, caps, shortest, caps.max_length
        #: Of the last rows that counted: their states; of the last one its owner, step, place in its sequence, and how
        #: many sequences that owner has.
        self._states = np.zeros(memory, dtype=np.int64)
        self._owner = self._counted_owner = self._step = self._place = self._sequences = 0

    @abstractmethod
    def _cells_of(
        self, states: IntArray, steps: IntArray, place: IntArray, kept: BoolArray, begun: BoolArray
    ) -> IntArray:
        """The cells of rows (m,), whose ``states`` and ``steps`` begin with those of the rows before.

        place : in its sequence. kept : under the caps. begun : the row makes its sequence long enough.
        """

    def leave_out(self, rows: int) -> None:
        """These rows count nowhere."""
        self._totals.add(np.full(rows, self._cells + 1, dtype=np.int64))

    def _take(self, rows: OwnerSteps) -> None:
        """One row of each step."""
        owner = self._owner + np.cumsum(rows.new_owner)
        self._owner = int(owner[-1]) if len(owner) else self._owner
        self._totals.add(np.full(int(rows.new_owner.sum()), self._cells, dtype=np.int64))
        known = rows.state < self._n
        self.leave_out(int((~known).sum()))
        self._count(owner[known], rows.step[known], rows.state[known])

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
        within = (rank <= self._caps.max_sequences) & (place < self._most)
        begun = enough & (rank <= self._caps.max_sequences)
        states = np.concatenate([self._states, state])
        self._totals.add(self._cells_of(states, steps, place, within, begun))
        self._states = states[len(state) :]
        self._counted_owner, self._step = int(owner[-1]), int(step[-1])
        self._place, self._sequences = int(place[-1]), int(rank[-1])


class RowCounter(RunCounter):
    """Counts rows as `TransitionCounts`: pairs of states, then states that come first.

    With ``slots``, of steps of so many ``seconds``, the pairs of each slot come one after another. With an ``end``, a
    sequence stops before its first row there and moves there once, unless the cap cut it. Which row is the last one
    shows later: each moves to the end, and the next row takes that move back.
    """

    def __init__(
        self,
        n_states: int,
        caps: RecordBounds,
        shortest: int,
        slots: Slots | None = None,
        seconds: int | None = None,
        end: int | None = None,
    ) -> None:
        self._pairs = (1 if slots is None else slots.n) * n_states**2
        super().__init__(n_states, self._pairs + n_states, caps, shortest)
        self._slots, self._seconds, self._end = slots, seconds, end
        if end is not None:
            # One row beyond the cap takes the move to the end back.
            self._most += 1
        #: True if the sequence of the last row has reached the end.
        self._ended = False

    def _cells_of(
        self, states: IntArray, steps: IntArray, place: IntArray, kept: BoolArray, begun: BoolArray
    ) -> IntArray:
        first = self._pairs + (states[1:] if self._shortest == 1 else states[:-1])[begun]
        if self._end is None:
            moves = self._moves(states[:-1], states[1:], steps[:-1], place, kept & (place > 0))
            return np.concatenate([moves, first])
        rows, never = np.arange(len(place)), np.iinfo(np.int64).min
        at_end = np.concatenate([[-1 if self._ended else never], np.where(states[1:] == self._end, rows, never)])
        latest = np.maximum.accumulate(at_end)
        begins = rows - place
        self._ended = bool(latest[-1] >= begins[-1])
        live: BoolArray = np.logical_and(kept, latest[1:] < begins)
        inside = live & (place < self._caps.max_length)
        ends = np.full(len(place), self._end)
        moves = self._moves(states[:-1], states[1:], steps[:-1], place, inside & (place > 0))
        to_end = self._moves(states[1:], ends, steps[1:], place + 1, inside)
        taken_back = self._moves(states[:-1], ends, steps[:-1], place, live & (place > 0))
        self._totals.add(taken_back, np.full(len(taken_back), -1))
        return np.concatenate([moves, to_end, first])

    def _moves(
        self, leaving: IntArray, into: IntArray, steps: IntArray, position: IntArray, which: BoolArray
    ) -> IntArray:
        """The cells of some moves, which leave these steps, at these positions of their sequences from 1 on."""
        cells = leaving[which] * self._n + into[which]
        if self._slots is None:
            return cells
        left = steps[which] if self._slots.by_clock else position[which]
        return cells + self._n**2 * self._slots.of_steps(self._slots.within(left, self._seconds), self._seconds)


class WordCounter(RunCounter):
    """Counts words of ``order`` symbols, the last one fastest, of sequences of at least two rows."""

    def __init__(self, n_symbols: int, order: int, caps: RecordBounds) -> None:
        super().__init__(n_symbols, n_symbols**order, caps, 2, max(1, order - 1))
        self._order = order

    def _cells_of(
        self, states: IntArray, steps: IntArray, place: IntArray, kept: BoolArray, begun: BoolArray
    ) -> IntArray:
        earlier, words = len(states) - len(place), np.zeros(len(place), dtype=np.int64)
        for back in range(self._order - 1, -1, -1):
            words = words * self._n + states[earlier - back : len(states) - back]
        if self._order > 1:
            return words[kept & (place >= self._order - 1)]
        # The first symbol counts once a second one makes it a sequence.
        return np.concatenate([words[kept & (place > 0)], states[earlier - 1 : -1][begun]])


class LabelledCounter(RunCounter):
    """Counts sequences of pairs ``state * n_symbols + symbol``: starts, moves and emissions, one after another."""

    def __init__(self, n_states: int, n_symbols: int, caps: RecordBounds) -> None:
        super().__init__(n_states * n_symbols, n_states * (1 + n_states + n_symbols), caps, 1)
        self._hidden, self._symbols = n_states, n_symbols

    def _cells_of(
        self, states: IntArray, steps: IntArray, place: IntArray, kept: BoolArray, begun: BoolArray
    ) -> IntArray:
        n, hidden, moves = self._hidden, states // self._symbols, kept & (place > 0)
        into = n + hidden[:-1][moves] * n + hidden[1:][moves]
        return np.concatenate([hidden[1:][begun], into, n + n * n + states[1:][kept]])


def _one_of_each_step(rows: OwnerSteps) -> OwnerSteps:
    """One row for all of one owner and step, with the latest time and the least state of that time.

    The order of those rows changes nothing. Raises ValueError for steps that fall.
    """
    new_owner, step, state, time = rows
    if (~new_owner[1:] & (step[1:] < step[:-1])).any():
        raise ValueError(UNSORTED)
    runs = np.flatnonzero(np.concatenate([[True], new_owner[1:] | (step[1:] != step[:-1])]))
    if len(runs) == len(step):
        return rows
    latest = np.maximum.reduceat(time, runs)
    at_latest = np.repeat(latest, np.diff(np.append(runs, len(step)))) == time
    least = np.minimum.reduceat(np.where(at_latest, state, np.iinfo(np.int64).max), runs)
    return OwnerSteps(new_owner[runs], step[runs], least, latest)


def counts_of_keys(
    keys: IntArray, totals: IntArray, n: int, caps: RecordBounds, slots: Slots | None = None, end: int | None = None
) -> TransitionCounts:
    """The counts of added keys (k,) and totals of `RowCounter.found`, in any order."""
    order, several = np.argsort(keys), 1 if slots is None else slots.n
    keys, totals, pairs = keys[order], totals[order], several * n * n
    ends = np.searchsorted(keys, [pairs, pairs + n])
    starts, rest = np.zeros(n, dtype=np.int64), np.zeros(2, dtype=np.int64)
    starts[keys[ends[0] : ends[1]] - pairs] = totals[ends[0] : ends[1]]
    rest[keys[ends[1] :] - pairs - n] = totals[ends[1] :]
    transitions = transitions_of(keys[: ends[0]], totals[: ends[0]], n, several)
    public = n, caps.max_length, caps.max_sequences, "owner"
    n_owners, left_out = rest.tolist()
    return TransitionCounts(*public, transitions, starts, n_owners, left_out, slots, end)
