"""A homogeneous chain looked at backwards in time, where the laws of its tuples move: a kernel for every tuple.

Proof: docs/proofs/dependent-reversals.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm.dependent._kernel import LEAST, equal_rows
from dphmm.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Reversals:
    """The laws of every tuple given the one after it, not as matrices but as what they are made of.

    ``columns``: the transition matrix (n, n), by columns. ``laws``, ``possible`` (T, n): of the tuples. ``kinds``,
    ``falls``, ``errors`` (T − 1,): of the reversed kernels, see the kernel `carry_back`.
    """

    columns: sparse.csc_array
    laws: FloatArray
    possible: BoolArray
    kinds: NDArray[np.int8]
    falls: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, laws: FloatArray, possible: BoolArray, drift: float) -> Reversals:
        """``drift``: a bound on the relative error that one step adds to the ``laws``."""
        from dphmm._kernels.reversals import NOTHING, SCANNED, movements

        least = np.where(matrix > 0, matrix, np.inf).min(axis=1)
        kinds, falls = movements(laws, possible, least, LEAST)
        kinds[(kinds == SCANNED) & _telling_nothing(matrix, possible[:-1])] = NOTHING
        errors = drift * np.arange(1.0, len(laws))
        return cls(sparse.csc_array(matrix), laws, possible, kinds, falls, errors)

    def carried(self, single: FloatArray) -> FloatArray:
        """What each tuple (T,) loses at most through the one before it, from losses ``single`` (T,) of one alone."""
        from dphmm._kernels.reversals import carry_back

        carried = np.zeros(len(self.laws))
        by = self.columns
        carry_back(
            by.indptr, by.indices, by.data, self.laws, self.possible, self.kinds, self.falls, self.errors,
            single, carried,
        )  # fmt: skip
        return carried


def _telling_nothing(matrix: FloatArray, possible: BoolArray) -> BoolArray:
    """For which tuples (T − 1,) all possible values are followed by the same law."""
    found = np.zeros(len(possible), dtype=np.bool_)
    changes = np.r_[0, 1 + np.flatnonzero((possible[1:] != possible[:-1]).any(axis=1)), len(possible)]
    of: dict[bytes, bool] = {}
    for first, end in pairwise(changes):
        key = possible[first].tobytes()
        if key not in of:
            of[key] = equal_rows(matrix[possible[first]])
        found[first:end] = of[key]
    return found
