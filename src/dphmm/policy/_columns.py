"""The hull of planar differences in one pass: of all differences with the same x only the lowest and highest can be
corners.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.types import IntArray

#: One column per possible x difference: at most this many per state, and so many more.
_COLUMNS_PER_STATE = 4
_COLUMNS = 2**12
#: Below this span y differences and their negatives stay far from the marks of an empty column.
_HEIGHT = 2**40
EMPTY = 2**62


@dataclass(frozen=True)
class DifferenceColumns:
    """The least and the largest y of the differences at each x >= 0, one of each ± pair; EMPTY and -EMPTY where none.

    ``lattice``: the answers (N, 2); ``left``: the least x of them.
    """

    lattice: IntArray
    left: int
    low: IntArray
    high: IntArray

    @classmethod
    def of(cls, lattice: IntArray) -> DifferenceColumns | None:
        """Empty columns for differences of planar answers (N, 2); None for others, and where columns are too many."""
        if lattice.shape[1] != 2:
            return None
        from dphmm._kernels.points import bounds

        low, high = bounds(lattice)
        left, width = int(low[0]), int(high[0] - low[0]) + 1
        if width > _COLUMNS_PER_STATE * len(lattice) + _COLUMNS or int(high[1] - low[1]) >= _HEIGHT:
            return None
        return cls(lattice, left, np.full(width, EMPTY), np.full(width, -EMPTY))

    def points(self) -> IntArray:
        """The extreme differences (m, 2) that were found."""
        from dphmm._kernels.points import column_ends

        return column_ends(self.low, self.high, 0)
