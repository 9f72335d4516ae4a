"""How often states follow each other in capped records: exact, private, and counted before any noise is drawn.

Counting and drawing are apart: many machines may count, one draws. What is counted depends on the rows of each owner
alone; what is drawn is in `dphmm.markov.private.chain`.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from dphmm._checks import whole
from dphmm.markov.estimate import ALL_PAIRS_STATES
from dphmm.markov.private.caps import Kept, kept_records, unit_of
from dphmm.markov.private.sensitivity import Caps
from dphmm.types import IntArray

#: Up to this many pairs of states a table of all of them is counted; above, the pairs that occur are sorted.
_TABLE_PAIRS = (ALL_PAIRS_STATES + 1) ** 2
#: Keys are held until there are so many, or as many as there are different ones.
_HELD = 2**20


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class TransitionCounts:
    """Exact counts of capped records: private. Neither ``repr`` nor a pickle shows anything of them.

    n_states, max_length, max_sequences, unit : public. A record is all sequences of one "owner", or one "sequence".
    transitions : csr_array (N, N) int64, how often state j follows state i.
    starts : (N,) int64, how often each state begins a kept sequence.
    n_owners : how many records there are.
    left_out : how many rows count nowhere, because nobody owns them or they are at no step or in no state.

    The last four are for the data owner alone.

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

    def __repr__(self) -> str:
        return "TransitionCounts(...)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("TransitionCounts are not written: they are exact; fit_counts adds the noise")


def count_transitions(
    sequences: Iterable[Any], n_states: int, max_length: int, *, max_sequences: int = 1, owners: Any = None
) -> TransitionCounts:
    """Count the transitions of capped records, exactly and without noise.

    sequences : integer sequences, states 0..n_states-1, one step apart. None at all is data too.
    max_length : public; each sequence is cut to its first positions.
    owners, max_sequences : whose each sequence is, and how many of an owner's are kept, the first ones in the order of
        ``sequences``.

    Raises InvalidInput as `dphmm.markov.private.fit_chain` does.
    """
    n, caps = whole(n_states, "n_states", 2, 2**31 - 1), Caps(max_length, max_sequences)
    return counts_of(kept_records(sequences, n, caps, owners), n, caps, unit_of(owners))


def counts_of(kept: Kept, n: int, caps: Caps, unit: str) -> TransitionCounts:
    """The counts of capped records of states 0..n-1."""
    inside = np.ones(max(len(kept.symbols) - 1, 0), dtype=np.bool_)
    inside[kept.bounds[1:-1] - 1] = False
    totals = KeyTotals(n * n)
    totals.add((kept.symbols[:-1] * n + kept.symbols[1:])[inside])
    starts = np.bincount(kept.symbols[kept.bounds[:-1]], minlength=n).astype(np.int64)
    pairs, counts = totals.found()
    return TransitionCounts(
        n, caps.max_length, caps.max_sequences, unit, transitions_of(pairs, counts, n), starts, kept.n_records
    )


def transitions_of(pairs: IntArray, counts: IntArray, n: int) -> Any:
    """``counts`` (k,) of the increasing pairs ``from * n + to`` (k,), as a csr_array (n, n)."""
    rows, columns = np.divmod(pairs, n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sparse.csr_array((counts, columns, indptr), shape=(n, n))


class KeyTotals:
    """How often each of 0..n_keys-1 occurs, added up in parts. Memory: by what differs, not by how much was added."""

    def __init__(self, n_keys: int) -> None:
        self._table = np.zeros(n_keys, dtype=np.int64) if n_keys <= _TABLE_PAIRS else None
        self._keys, self._counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._held: list[IntArray] = []
        self._n_held = 0

    def add(self, keys: IntArray) -> None:
        """Count these keys (m,) too."""
        self._held.append(keys)
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
        self._held, self._n_held = [], 0
        if self._table is not None:
            self._table += np.bincount(keys, minlength=len(self._table))
            return
        found, counts = np.unique(keys, return_counts=True)
        self._keys, place = np.unique(np.concatenate([self._keys, found]), return_inverse=True)
        together = np.concatenate([self._counts, counts])
        self._counts = np.zeros(len(self._keys), dtype=np.int64)
        np.add.at(self._counts, place, together)

    def __repr__(self) -> str:
        return "KeyTotals(...)"
