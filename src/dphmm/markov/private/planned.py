"""A private fit of a chain, planned from public options alone: its event is known before anything is counted.

Published: the counts of each public pair of states, with integer noise in every cell of the mask, and
if asked for the counts of first states, in the same vector. All else is computed from that.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dphmm._checks import exact_epsilon, one_of, whole
from dphmm.accounting.event import LearningEvent, described
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import ALL_PAIRS_STATES, lattice_neighbours
from dphmm.markov.private import sensitivity
from dphmm.markov.private.noisy_table import ESTIMATOR, at_most, rates_of
from dphmm.markov.private.release import noise_for, release
from dphmm.markov.private.sensitivity import RecordBounds, kept_records, unit_of
from dphmm.markov.private.transition_counts import TransitionCounts, counts_of
from dphmm.markov.slots import Slots
from dphmm.markov.slotted import described as described_slots
from dphmm.markov.stochastic import ModelParts, beginning, check_space, checked_step, with_data
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace


def learn(
    sequences: Iterable[Any],
    n_states: int,
    epsilon: Exact,
    max_length: int,
    *,
    neighbours: str = "add-remove",
    owners: Any = None,
    max_sequences: int = 1,
    admit: Callable[[LearningEvent], None] | None = None,
    first_steps: Any = None,
    **options: Any,
) -> tuple[ModelParts, LearningEvent]:
    """The parts of the model of `dphmm.markov.private.fit_chain`, and the event; parameters as there."""
    caps = RecordBounds(max_length, max_sequences, neighbours)
    planned = PlannedFit(n_states, epsilon, caps, unit_of(owners), **options)
    # Every public check is made before the data is looked at.
    if admit is not None:
        admit(planned.event)
    records = kept_records(sequences, planned.n_states, caps, owners, end=planned.end)
    by_slot = planned.slots, first_steps, planned.step, planned.end
    return planned.learned(counts_of(records, planned.n_states, caps, planned.event.unit, *by_slot)), planned.event


class PlannedFit:
    """A fit of a chain whose public options are checked: its event is known, and nothing was counted or drawn.

    It draws once. Parameters as in `fit_chain`; ``unit``: the unit of a record, "owner" or "sequence".

    Raises InvalidInput for public options.
    """

    def __init__(
        self,
        n_states: int,
        epsilon: Exact,
        caps: RecordBounds,
        unit: str,
        *,
        mask: Any = None,
        initial: str | None = None,
        bits: Bits | None = None,
        space: StateSpace | None = None,
        step: int | None = None,
        source: str | None = None,
        slots: Slots | None = None,
        end: int | None = None,
    ) -> None:
        n = self.n_states = whole(n_states, "n_states", 2, 2**31 - 1)
        total = exact_epsilon(epsilon)
        initial, self._start = beginning(initial, step)
        #: Counts of first states are published too, for which the noise is larger.
        self._first = initial == "first"
        #: The state that no move leaves: nothing of its row is published.
        self.end = None if end is None else whole(end, "end", 0, n - 1)
        if self.end is not None and not self._first:
            raise InvalidInput("initial", initial, "first, beside an end: sequences begin and end")
        self._pairs = _pairs(mask, n, space)
        if self.end is not None:
            self._pairs = sparse.csr_array(self._pairs.multiply((np.arange(n) != self.end)[:, None]))
            self._pairs.eliminate_zeros()
        words = default_bits(bits)
        size = sensitivity.l1(sensitivity.transitions(caps, first=self._first, end=self.end is not None), caps)
        name = "transitions and starts" if self._first else "transitions"
        part = noise_for(name if self.end is None else "transitions with starts and ends", "laplace", size, total)
        caps_of_event = (caps.neighbours, caps.max_length, caps.max_sequences, is_secure(words))
        self.event = LearningEvent((part,), *caps_of_event, unit=unit)
        check_space(space, n)
        self._parts, self._bits = [part], words
        self._initial = initial
        self._space, self.step = space, checked_step(step)
        #: With a single slot there is one matrix.
        self.slots = slots if slots is not None and slots.n > 1 else None
        if self.slots is not None and self.slots.by_clock and self.step is None:
            raise InvalidInput("step", "none", "seconds between two steps: slots go by the clock")
        self._provenance = {
            "method": "noisy counts",
            "private": self.event.secure,
            "privacy": described(self.event),
            "mask": _named(mask),
            "initial": initial,
            "estimator": ESTIMATOR,
            "source": source,
            **({} if self.end is None else {"end": self.end}),
            **described_slots(self.slots),
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The public facts of the fit beside the event, for JSON; another value is another fit."""
        facts = {name: value for name, value in self._provenance.items() if name not in ("private", "privacy")}
        moves = b"".join(np.asarray(part, dtype="<i8").tobytes() for part in (self._pairs.indptr, self._pairs.indices))
        if self.slots is not None:
            moves += self.slots.digest
        return {**facts, "n_states": self.n_states, "step": self.step, "pairs": sha256(moves).hexdigest()}

    def learned(self, counts: TransitionCounts) -> ModelParts:
        """The parts of the model of these counts: the noise is drawn now, and only once.

        Raises InvalidInput for counts of other states or under other caps than those of the event.
        """
        self._check(counts)
        if not self._parts:
            raise RuntimeError("the noise of this fit has been drawn")
        part, pairs = self._parts.pop(), self._pairs
        several = 1 if self.slots is None else self.slots.n
        exact = masked(counts, pairs if several == 1 else sparse.vstack([pairs] * several, "csr"), self._first)
        table = release(exact, part, 0, self._bits)
        if self.slots is not None:
            most = np.diff(np.append(self.slots.begins, self.event.max_length + (self.end is not None)))
            by_position = None if self.slots.by_clock else most
            initial, moves = _made_by_slots(table.values, pairs, self._initial, float(part.scale), several, by_position)
            facts = self._space, self.step, self._provenance
            ended = [self._ended(matrix) for matrix in moves]
            return ModelParts(initial, ended, *facts, start=self._start, slots=self.slots)
        initial, moves = _made(table.values, pairs, self._initial, float(part.scale))
        return ModelParts(initial, self._ended(moves), self._space, self.step, self._provenance, start=self._start)

    def _ended(self, moves: Any) -> Any:
        """The moves, and of an end that to itself."""
        if self.end is None:
            return moves
        return moves + sparse.csr_array(([1.0], ([self.end], [self.end])), shape=moves.shape)

    def _check(self, counts: TransitionCounts) -> None:
        event = self.event
        wanted = (self.n_states, event.max_length, event.max_sequences, event.unit, self.slots, self.end)
        setting = (counts.n_states, counts.max_length, counts.max_sequences, counts.unit, counts.slots, counts.end)
        if setting != wanted:
            expected = "counts of the states, caps and records that the noise is for"
            raise InvalidInput("counts", "those of another setting", expected)

    def __repr__(self) -> str:
        return f"PlannedFit(n_states={self.n_states}, epsilon={self.event.epsilon})"


def masked(counts: TransitionCounts, pairs: Any, first: bool) -> IntArray:
    """The counts in the order of the mask; then, if asked for, how often each state comes first.

    For counts by slots the mask (K N, N) is that of each slot, one below another.
    """
    (rows, n), seen = pairs.shape, counts.transitions
    counted, known = (np.repeat(np.arange(rows), np.diff(m.indptr)) * n + m.indices for m in (seen, pairs))
    exact = np.zeros(len(known), dtype=np.int64)
    if len(known) == rows * n:
        exact[counted] = seen.data
    else:
        place = np.minimum(np.searchsorted(known, counted), len(known) - 1)
        inside = known[place] == counted
        exact[place[inside]] = seen.data[inside]
    return np.concatenate([exact, counts.starts]) if first else exact


def _made(values: FloatArray, pairs: Any, initial: str, scale: float) -> tuple[FloatArray, Any]:
    """(initial, transition) from what was published."""
    n, moves = pairs.shape[0], pairs.nnz
    rows, columns = np.repeat(np.arange(n), np.diff(pairs.indptr)), pairs.indices.astype(np.int64)
    if initial == "first":
        rows, columns = np.append(rows, np.full(n, n)), np.append(columns, np.arange(n))
    (rates,) = rates_of(values[None], rows, columns, n, scale)
    leaving = np.bincount(rows[:moves], weights=rates[:moves], minlength=n)
    if initial == "uniform":
        weights = np.ones(n)
    elif initial == "first":
        weights = rates[moves:]
    else:
        weights = leaving + np.bincount(columns, weights=rates, minlength=n)
    return weights / weights.sum(), with_data(pairs, rates[:moves] / leaving[rows[:moves]])


def _made_by_slots(
    values: FloatArray, pairs: Any, initial: str, scale: float, several: int, most: IntArray | None
) -> tuple[FloatArray, list[Any]]:
    """(initial, the matrix of each slot) from what was published: each slot is drawn towards the others.

    most : the largest number of moves in each slot (K,) by one sequence, where slots go by positions.
    """
    n, moves = pairs.shape[0], several * pairs.nnz
    rows, columns = np.repeat(np.arange(n), np.diff(pairs.indptr)), pairs.indices.astype(np.int64)
    tables = rates_of(values[:moves].reshape(several, -1), rows, columns, n, scale)
    if initial == "uniform":
        weights = np.ones(n)
    elif initial == "first":
        (weights,) = rates_of(values[moves:][None], np.full(n, n), np.arange(n), n, scale)
        if most is not None:
            # As many sequences begin as have a move at any position, or more.
            tables = np.stack(
                [at_most(table, max(1, k) * weights.sum()) for table, k in zip(tables, most, strict=True)]
            )
    else:
        together = tables.sum(axis=0)
        weights = np.bincount(np.append(rows, columns), weights=np.tile(together, 2), minlength=n)
    matrices = [with_data(pairs, rates / np.bincount(rows, weights=rates, minlength=n)[rows]) for rates in tables]
    return weights / weights.sum(), matrices


def _pairs(mask: Any, n: int, space: Any) -> Any:
    """The public pairs as a canonical csr_array of ones, no row empty."""
    if mask is None:
        if n > ALL_PAIRS_STATES:
            expected = f'mask="neighbours" or a sparse mask above {ALL_PAIRS_STATES} states'
            raise InvalidInput("mask", f"all pairs of {n} states", expected)
        return sparse.csr_array(np.ones((n, n)))
    if isinstance(mask, str):
        one_of(mask, ("neighbours",), "mask")
        if space is None or space.n_states != n:
            raise InvalidInput(
                "space", "none, or of another size", f"the grid of {n} states whose neighbours are meant"
            )
        allowed = lattice_neighbours(space)
    else:
        allowed = _given_pairs(mask, n)
    pairs = sparse.csr_array(allowed != 0).astype(np.float64)
    pairs.sum_duplicates()
    pairs.eliminate_zeros()
    empty = np.flatnonzero(np.diff(pairs.indptr) == 0)
    if len(empty):
        raise InvalidInput(f"mask[{empty[0]}]", "a row of no pairs", "at least one state that can follow, as itself")
    return pairs


def _given_pairs(mask: Any, n: int) -> Any:
    try:
        matrix = mask if sparse.issparse(mask) else np.asarray(mask)
        wrong = matrix.shape != (n, n) or matrix.dtype.kind not in "biuf"
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise InvalidInput("mask", type(mask).__name__, f"a matrix ({n}, {n}) of booleans or numbers")
    return sparse.csr_array(matrix)


def _named(mask: Any) -> str:
    if mask is None:
        return "all pairs"
    return mask if isinstance(mask, str) else "given"
