"""How totals of keys come back from tasks: in rows that are the same in number, whatever was counted.

Spark shows how many rows each task gave, in its pages, its event log and its metrics. One row for each key that occurs
would tell how many do, exactly and without noise. So a task gives one row for each part of all possible keys. Up to
``MOST_DENSE`` keys a row holds the totals of all keys of its part, the zeros too, and has the same length as well. No
Spark is needed here.

Proof: docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dphmm.markov.private.transition_counts import KeyTotals
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns of what comes back. ``again``: nothing was counted, as the rows must be in another order.
TOTALS = "part int, again boolean, totals binary"
#: Up to so many possible keys a row holds the totals of all of them: 4,095 states. Above, of those that occur.
MOST_DENSE = 2**24
#: Keys of a part, where a row holds all of them: 2 MiB.
_PART_KEYS = 2**18
#: Parts, where a row holds the keys that occur.
_PARTS = 64
_NAMES = ["part", "again", "totals"]


@dataclass(frozen=True)
class Parts:
    """Keys 0..n_keys-1 in parts of ``size`` keys that follow each other: public."""

    n_keys: int

    @property
    def dense(self) -> bool:
        """Whether a row holds the totals of all keys of its part."""
        return self.n_keys <= MOST_DENSE

    @property
    def size(self) -> int:
        """Keys of each part but the last one."""
        return _PART_KEYS if self.dense else -(-self.n_keys // _PARTS)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return -(-self.n_keys // self.size)

    def rows(self, keys: IntArray, totals: IntArray, again: bool = False) -> Iterator[pa.RecordBatch]:
        """A row for each part, of increasing keys (k,) that occur and their totals (k,)."""
        ends = np.searchsorted(keys, self.size * np.arange(self.count + 1))
        for part in range(self.count):
            own = slice(ends[part], ends[part + 1])
            yield self.row(part, keys[own] - part * self.size, totals[own], again)

    def row(self, part: int, keys: IntArray, totals: IntArray, again: bool) -> pa.RecordBatch:
        """One row, of keys that are counted from the first one of the part."""
        import pyarrow as pa

        if self.dense:
            cell = np.zeros(min(self.size, self.n_keys - part * self.size), dtype="<i8")
            cell[keys] = totals
        else:
            cell = np.concatenate([keys, totals]).astype("<i8")
        columns = [pa.array([part], pa.int32()), pa.array([again]), pa.array([cell.tobytes()], pa.binary())]
        return pa.RecordBatch.from_arrays(columns, _NAMES)

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bool, IntArray, IntArray]]:
        """Part, ``again``, keys (k,) from the first one of the part, and totals (k,), of every row."""
        for batch in batches:
            for part, again, cell in zip(*(batch.column(name) for name in _NAMES), strict=True):
                found = np.frombuffer(cell.as_buffer(), dtype="<i8")
                keys = np.flatnonzero(found) if self.dense else found[: len(found) // 2]
                yield part.as_py(), again.as_py(), keys, found[keys] if self.dense else found[len(found) // 2 :]


@dataclass(frozen=True)
class AddTotals:
    """Add up the rows of each part, those of all tasks: one row a part comes out."""

    parts: Parts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches (part, again, totals) of such batches."""
        sums, asked = dict[int, KeyTotals](), dict[int, bool]()
        for part, again, keys, totals in self.parts.read(batches):
            sums.setdefault(part, KeyTotals(self.parts.size)).add(keys, totals)
            asked[part] = asked.get(part, False) or again
        for part, found in sums.items():
            yield self.parts.row(part, *found.found(), asked[part])
