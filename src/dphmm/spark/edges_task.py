"""What tasks do with edges: ends to numbers of people, and edges taken one after the other. No Spark is needed here.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dphmm.dependent._degrees import People, ends_among_people, mixed

if TYPE_CHECKING:
    import pyarrow as pa

EDGES = "first long, second long, place long"
_NAMES = ["first", "second", "place"]


@dataclass(frozen=True)
class EdgesOfPeople:
    """Edges of two different public people: numbers first < second, and the place in the order of `mixed`.

    Rows that are none are passed over. An edge that stands twice is given twice.
    """

    people: People

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches (first, second, place) of batches of text (a, b)."""
        import pyarrow as pa

        for batch in batches:
            pairs = ends_among_people(pa.Table.from_batches([batch]), self.people)
            pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
            first, second = pairs.min(axis=1, initial=2**62), pairs.max(axis=1, initial=-1)
            # Spark compares signed numbers.
            place = (mixed(first, second) ^ np.uint64(2**63)).view(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(first), pa.array(second), pa.array(place)], _NAMES)


@dataclass(frozen=True)
class KeepEdges:
    """The edges whose ends both have fewer than ``cap`` edges when their turn comes.

    All edges come to one task, by place, first and second. It holds one number for each of their ends.
    """

    cap: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Some rows of batches (first, second, place). Raises ValueError for rows that are out of order."""
        import pyarrow as pa

        cap, degrees, last = self.cap, dict[int, int](), (-(2**63), -1, -1)
        for batch in batches:
            kept = []
            for a, b, place in zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True):
                if (place, a, b) <= last:
                    raise ValueError("edges are out of order: sort them by place and ends, each once")
                last = (place, a, b)
                one, other = degrees.get(a, 0), degrees.get(b, 0)
                room = one < cap and other < cap
                if room:
                    degrees[a], degrees[b] = one + 1, other + 1
                kept.append(room)
            yield batch.filter(pa.array(kept, pa.bool_()))
