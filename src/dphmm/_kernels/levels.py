"""The tables of a sampler's levels, where 64 bits hold them: boxes, bounds of cumulative probabilities.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray


@kernel
def boxes(widths: IntArray, offset: int, stride: int, bits: int, length: int) -> IntArray:
    """Half-widths (length, k) of the first boxes: radius (stride·j, and offset·2**-bits) times width·2**-shift, rounded
    down.

    ``widths`` (2, k) are the widths and their shifts. Radius times width must stay below 2**62.
    """
    out = np.empty((length, widths.shape[1]), np.int64)
    for level in range(length):
        radius = ((stride * level) << bits) + offset
        for i in range(widths.shape[1]):
            out[level, i] = (radius * widths[0, i]) >> (bits + widths[1, i])
    return out


@kernel
def level_bounds(sides: FloatArray, rate: float, log_tail: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of the cumulative probabilities of levels whose boxes have these sides (L, k); margins in ADR 0002.

    ``log_tail``: log of a bound on the mass, exp(-rate·j) times the points of the box, of all levels that follow.
    """
    length, k = sides.shape
    sums = np.empty(length)
    total = 0.0
    for level in range(length):
        weight = math.exp(-rate * level)
        for i in range(k):
            weight *= sides[level, i] / sides[length - 1, i]
        total += weight
        sums[level] = total
    for i in range(k):
        log_tail -= math.log(sides[length - 1, i])
    tail = math.exp(log_tail) * (1.0 + 1e-9)
    margin = (length + rate * (length - 1) + 3 * k + 16) * 2.0**-51 + tail / total
    low, high = np.empty(length), np.empty(length)
    for level in range(length):
        low[level] = sums[level] / total - margin
        high[level] = min(sums[level] / total + margin, 1.0)
    return low, high


@kernel
def levels_below(guard: float, half_widths: IntArray, rows: FloatArray, farthest: float) -> int:
    """How many first levels have every row·x (m, k), x in the box, and level·farthest below the guard."""
    for level in range(len(half_widths)):
        largest = (level + 1) * farthest
        for i in range(len(rows)):
            reach = 0.0
            for j in range(rows.shape[1]):
                reach += (2.0 * half_widths[level, j] + 1.0) * abs(rows[i, j])
            largest = max(largest, reach)
        if not largest < guard:
            return level
    return len(half_widths)
