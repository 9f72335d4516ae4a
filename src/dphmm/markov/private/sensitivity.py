"""How much one record can change a vector of counts: functions of public numbers, never of the data.

A vector is made of *blocks*; the block bounds of one sequence of at most L positions are

    sequences begun                 1
    transitions                     L - 1
    emissions (positions)           L
    o-grams                         L - o + 1

Counts are not negative, so the L1 norm of a block is its sum. A record of m sequences has at most m times that, and
two records that replace each other differ by at most the sum of both.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dphmm._checks import one_of, whole
from dphmm.accounting.event import NEIGHBOURS
from dphmm.errors import InvalidInput

#: A sequence is cut to at most this many positions.
LONGEST = 2**20
#: An owner keeps at most this many sequences.
MOST_SEQUENCES = 2**10


@dataclass(frozen=True)
class Caps:
    """The public bounds of a record, and which data sets are neighbours."""

    max_length: int
    max_sequences: int = 1
    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", whole(self.max_length, "max_length", 1, LONGEST))
        object.__setattr__(self, "max_sequences", whole(self.max_sequences, "max_sequences", 1, MOST_SEQUENCES))
        one_of(self.neighbours, NEIGHBOURS, "neighbours")


def l1(blocks: tuple[int, ...], caps: Caps) -> Fraction:
    """The L1 sensitivity of a vector of these blocks."""
    return Fraction(sum(blocks) * caps.max_sequences * _records(caps))


def l2_squared(blocks: tuple[int, ...], caps: Caps) -> Fraction:
    """The squared L2 sensitivity of a vector of these blocks."""
    return Fraction(sum(bound * bound for bound in blocks) * caps.max_sequences**2 * _records(caps))


def expected_counts(caps: Caps, letters: str) -> tuple[int, ...]:
    """Blocks of the expected counts of a hidden Markov model: "s" starts, "t" transitions, "e" emissions."""
    bounds = {"s": 1, "t": caps.max_length - 1, "e": caps.max_length}
    return tuple(bounds[letter] for letter in "ste" if letter in letters)


def ngrams(caps: Caps, order: int) -> tuple[int, ...]:
    """The one block of a histogram of o-grams."""
    if caps.max_length < order:
        raise InvalidInput("max_length", caps.max_length, f"at least {order}: shorter sequences have no {order}-gram")
    return (caps.max_length - order + 1,)


def transitions(caps: Caps, *, first: bool) -> tuple[int, ...]:
    """Blocks of the transition counts of an observed chain, with how often each state comes first if asked for."""
    if caps.max_length < 2:
        raise InvalidInput("max_length", caps.max_length, "at least 2: shorter sequences have no transition")
    return (1, caps.max_length - 1) if first else (caps.max_length - 1,)


def _records(caps: Caps) -> int:
    return 2 if caps.neighbours == "replace" else 1
