"""Continuous floats from random words: for simulation and for reproducing the papers, never for a release.

The low-order bits of a float sum say which float was added (docs/theory.md 5).

Proof: docs/proofs/knorm.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.types import Bits, FloatArray, IntArray


def unit_floats(bits: Bits, n: int) -> FloatArray:
    """n floats uniform on the midpoints of 2**53 equal parts of (0, 1)."""
    top = (bits.uint64(n) >> np.uint64(11)).astype(np.float64)
    return np.asarray((top + 0.5) * 2.0**-53)


def exponentials(bits: Bits, n: int) -> FloatArray:
    """n floats of the exponential law of mean 1."""
    return np.asarray(-np.log(unit_floats(bits, n)))


def choices(bits: Bits, weights: FloatArray, n: int) -> IntArray:
    """n indices with probability proportional to ``weights``."""
    cumulative = np.cumsum(weights) / np.sum(weights)
    chosen = np.searchsorted(cumulative, unit_floats(bits, n), side="right")
    return np.minimum(chosen, len(weights) - 1).astype(np.int64)
