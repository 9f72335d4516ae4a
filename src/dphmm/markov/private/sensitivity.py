"""Public caps of a record, what is kept of it under them, and how much it can then change a vector of counts.

Sensitivities are functions of public numbers, never of the data.
A vector is made of *blocks*; the block bounds of one sequence of at most L positions are

    sequences begun                 1
    transitions                     L - 1, with an end L
    emissions (positions)           L
    o-grams                         L - o + 1

Counts are not negative, so the L1 norm of a block is its sum. A record of m sequences has at most m times that, and
two records that replace each other differ by at most the sum of both.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._checks import one_of, whole
from dphmm.accounting.event import NEIGHBOURS
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import flatten
from dphmm.types import BoolArray, IntArray

#: A sequence is cut to at most this many positions.
LONGEST = 2**20
#: An owner keeps at most this many sequences.
MOST_SEQUENCES = 2**10


@dataclass(frozen=True)
class RecordBounds:
    """The public bounds of a record, and which data sets are neighbours."""

    max_length: int
    max_sequences: int = 1
    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", whole(self.max_length, "max_length", 1, LONGEST))
        object.__setattr__(self, "max_sequences", whole(self.max_sequences, "max_sequences", 1, MOST_SEQUENCES))
        one_of(self.neighbours, NEIGHBOURS, "neighbours")


def l1(blocks: tuple[int, ...], caps: RecordBounds) -> Fraction:
    """The L1 sensitivity of a vector of these blocks."""
    return Fraction(sum(blocks) * caps.max_sequences * _records(caps))


def l2_squared(blocks: tuple[int, ...], caps: RecordBounds) -> Fraction:
    """The squared L2 sensitivity of a vector of these blocks."""
    return Fraction(sum(bound * bound for bound in blocks) * caps.max_sequences**2 * _records(caps))


def expected_counts(caps: RecordBounds, letters: str) -> tuple[int, ...]:
    """Blocks of the expected counts of a hidden Markov model: "s" starts, "t" transitions, "e" emissions."""
    bounds = {"s": 1, "t": caps.max_length - 1, "e": caps.max_length}
    return tuple(bounds[letter] for letter in "ste" if letter in letters)


def ngrams(caps: RecordBounds, order: int) -> tuple[int, ...]:
    """The one block of a histogram of o-grams."""
    if caps.max_length < order:
        raise InvalidInput("max_length", caps.max_length, f"at least {order}: shorter sequences have no {order}-gram")
    return (caps.max_length - order + 1,)


def transitions(caps: RecordBounds, *, first: bool, end: bool = False) -> tuple[int, ...]:
    """Blocks of the transition counts of an observed chain, with how often each state comes first if asked for.

    ``end``: a sequence within the cap moves once more, to its end.
    """
    moves = caps.max_length if end else caps.max_length - 1
    if moves == 0:
        raise InvalidInput("max_length", caps.max_length, "at least 2: shorter sequences have no transition")
    return (1, moves) if first else (moves,)


def _records(caps: RecordBounds) -> int:
    return 2 if caps.neighbours == "replace" else 1


@dataclass(frozen=True, eq=False)
class Kept:
    """The kept positions (m,), one sequence after another; sequence k is ``symbols[bounds[k]:bounds[k + 1]]``.

    ``which`` (k,) are the numbers of the kept sequences among those that were given. ``n_records`` owners have a
    sequence. Not public: not even how many there are.
    """

    symbols: IntArray
    bounds: IntArray
    which: IntArray
    n_records: int = 0

    def __repr__(self) -> str:
        return "Kept(...)"


def unit_of(owners: Any) -> str:
    """The unit of a record in events: all sequences of an owner, or one sequence if there are no owners."""
    return "sequence" if owners is None else "owner"


def kept_records(
    sequences: Iterable[Any],
    n: int,
    caps: RecordBounds,
    owners: Any = None,
    field: str = "sequences",
    end: int | None = None,
) -> Kept:
    """Sequences of numbers 0..n-1, capped. No sequence at all is data like any other.

    owners : the owner of each sequence, one name or number per sequence; None if each is a person's only one.
    end : a state that stands once after the positions of each sequence before it, where the cap cut none of them.

    Raises InvalidInput for malformed sequences (naming sequence and position, no number of them), and for a cap on
    sequences per owner without owners: nothing would enforce it.
    """
    if owners is None and caps.max_sequences > 1:
        raise InvalidInput("owners", None, "whose each sequence is, so that max_sequences can be enforced")
    paths = (
        list(sequences) if isinstance(sequences, Iterable) and not isinstance(sequences, (str, bytes)) else sequences
    )
    if isinstance(paths, list) and not paths:
        _kept_of_owners(owners, 0, caps)
        none = np.empty(0, dtype=np.int64)
        return Kept(none, np.zeros(1, dtype=np.int64), none)
    flat = flatten(paths, n, field)
    ends = np.append(flat.starts[1:], len(flat.states))
    chosen, n_records = _kept_of_owners(owners, flat.n_sequences, caps)
    sizes = ends - flat.starts
    if end is not None:
        # Positions before the first end of a sequence.
        stops = np.append(np.flatnonzero(flat.states == end), len(flat.states))
        sizes = np.minimum(stops[np.searchsorted(stops, flat.starts)], ends) - flat.starts
    lengths = np.where(chosen, np.minimum(sizes, caps.max_length), 0)
    inside = np.arange(len(flat.states)) - np.repeat(flat.starts, ends - flat.starts)
    symbols = flat.states[inside < np.repeat(lengths, ends - flat.starts)]
    bounds = np.concatenate([[0], np.cumsum(lengths[chosen])])
    if end is not None:
        whole_ones = sizes[chosen] <= caps.max_length
        symbols = np.insert(symbols, bounds[1:][whole_ones], end)
        bounds[1:] += np.cumsum(whole_ones)
    return Kept(symbols, bounds, np.flatnonzero(chosen), n_records)


def _kept_of_owners(owners: Any, n: int, caps: RecordBounds) -> tuple[BoolArray, int]:
    """True where a sequence is among the first ``max_sequences`` of its owner, and the number of owners."""
    if owners is None:
        return np.ones(n, dtype=np.bool_), n
    number = _owner_numbers(owners, n)
    order = np.argsort(number, kind="stable")
    begins = np.searchsorted(number[order], number[order])
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n) - begins
    return np.asarray(rank < caps.max_sequences), int(number.max(initial=-1)) + 1


def _owner_numbers(owners: Any, n: int) -> IntArray:
    if isinstance(owners, (str, bytes)) or not isinstance(owners, Iterable):
        raise InvalidInput("owners", type(owners).__name__, "one owner for each sequence")
    names = list(owners)
    if len(names) != n:
        raise InvalidInput("owners", "another number of owners than of sequences", "one owner for each sequence")
    numbers: dict[Any, int] = {}
    try:
        # A missing name (None, NaN) would make everybody without one a person of their own.
        if any(name is None or name != name for name in names):
            raise InvalidInput("owners", "a missing owner", "one owner for each sequence")
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    except TypeError:
        raise InvalidInput("owners", "an owner that cannot be compared", "names or numbers") from None


def split_sequences(X: Any, lengths: Any) -> Any:
    """The sequences of X, an array with ``lengths``, one sequence, or a list of sequences.

    Which it is, is decided by types and not by what it holds; messages have no numbers of it.
    """
    if lengths is None and not isinstance(X, np.ndarray) and not (isinstance(X, list) and X and np.ndim(X[0]) == 0):
        return X
    flat = np.asarray(X)
    if flat.ndim == 2 and flat.shape[1] == 1:
        flat = flat[:, 0]
    if flat.ndim != 1:
        raise InvalidInput("X", f"{flat.ndim} dimensions", "one symbol per row, or a list of sequences")
    if lengths is None:
        return [flat]
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or (len(sizes) and sizes.dtype.kind not in "iu") or (sizes < 1).any():
        raise InvalidInput("lengths", "something else", "a whole number of at least 1 for each sequence")
    if int(sizes.sum()) != len(flat):
        raise InvalidInput("lengths", "a sum that is not the number of rows of X", "lengths that add up to it")
    return np.split(flat, np.cumsum(sizes)[:-1].astype(np.int64)) if len(sizes) else []
