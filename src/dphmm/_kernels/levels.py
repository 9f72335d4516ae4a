"""The tables of a sampler's levels, where 64 bits hold them: boxes, bounds of cumulative probabilities.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray


@kernel
def level_table(
    widths: IntArray, offset: int, stride: int, bits: int, rate: float, share: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Bounds of the cumulative probabilities of the first levels (L,), and their boxes (see boxes, level_bounds).

    All but a share of the mass is on them. No level where 64 bits do not hold the boxes.
    """
    k = widths.shape[1]
    real = np.empty(k)
    for i in range(k):
        real[i] = widths[0, i] / 2.0 ** widths[1, i]
    length, tail = table_length(real, float(stride), offset / 2.0**bits, rate, share)
    if k and (float(stride) * length + 1.0) * 2.0**bits * widths[0].max() >= 2.0**61:
        return np.empty(0), np.empty(0), np.empty((0, k), np.int64)
    half_widths = boxes(widths, offset, stride, bits, length)
    low, high = level_bounds(half_widths.astype(np.float64), rate, tail)
    return low, high, half_widths


@kernel
def boxes(widths: IntArray, offset: int, stride: int, bits: int, length: int) -> IntArray:
    """Half-widths (length, k) of the first boxes, rounded down.

    Those of box j are its radius, stride·j + offset·2**-bits, times width·2**-shift.

    ``widths`` (2, k) are the widths and their shifts. Radius times width must stay below 2**62.
    """
    out = np.empty((length, widths.shape[1]), np.int64)
    for level in range(length):
        radius = ((stride * level) << bits) + offset
        for i in range(widths.shape[1]):
            out[level, i] = (radius * widths[0, i]) >> (bits + widths[1, i])
    return out


@kernel
def log_weight(level: int, widths: FloatArray, stride: float, offset: float, rate: float) -> float:
    """log of exp(-rate·level) times a bound on the points of the box: 2·radius·width + 1 on each side."""
    weight = -rate * level
    for width in widths:
        weight += math.log(2.0 * (stride * level + offset) * width + 1.0)
    return weight


@kernel
def log_tail(level: int, widths: FloatArray, stride: float, offset: float, rate: float) -> float:
    """log of a bound on the mass of this level and all above: geometric, for the sides grow ever more slowly."""
    here = log_weight(level, widths, stride, offset, rate)
    ratio = math.exp(log_weight(level + 1, widths, stride, offset, rate) - here)
    return math.inf if ratio >= 1.0 else here - math.log1p(-ratio)


@kernel
def table_length(widths: FloatArray, stride: float, offset: float, rate: float, share: float) -> tuple[int, float]:
    """Levels until the mass left is below this share of one of the heaviest levels', and the log of a bound on it."""
    length = 8 + math.ceil(40.0 / rate)
    heaviest = int(np.rint(len(widths) / rate))
    enough = math.log(share) + max(
        log_weight(0, widths, stride, offset, rate), log_weight(heaviest, widths, stride, offset, rate)
    )
    tail = log_tail(length, widths, stride, offset, rate)
    while tail > enough:
        length += 1 + length // 4
        tail = log_tail(length, widths, stride, offset, rate)
    return length, tail


@kernel
def level_bounds(half_widths: FloatArray, rate: float, log_tail: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of the cumulative probabilities of levels with boxes of these half-widths (L, k); margins in ADR 0002.

    ``log_tail``: log of a bound on the mass, exp(-rate·j) times the points of the box, of all levels that follow.
    """
    sides = 2.0 * half_widths + 1.0
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
