"""Loops of the lattice mechanisms: drawing noise, levels and norms of lattice vectors, sums over lattice points.

The tables of a sampler's levels are here too, where 64 bits hold them: boxes, bounds of cumulative probabilities.

The drawing loop takes only decisions that it can take for certain. An attempt with a decision within the
margin of a threshold, or with numbers beyond 64 bits, is left to the caller untouched.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray, WordArray

#: What the last word of an attempt decides.
NOTHING = 0
STEPS = 1
GRADED = 2

_HALF = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)
_ALL_ONES = np.uint64(2**64 - 1)
_ONE = np.uint64(1)
_TO_FLOAT = np.uint64(11)
_ULP = 2.0**-53
#: Room for the rounding of the exponent and of exp itself, of which a few times 2**-53 is needed.
_MARGIN = 2.0**-44


@kernel
def scaled_word(word: np.uint64, n: np.uint64) -> tuple[np.uint64, bool]:
    """(floor(word·n / 2**64), whether every real number with these first 64 digits gives the same)."""
    w0, w1 = word & _LOW_HALF, word >> _HALF
    n0, n1 = n & _LOW_HALF, n >> _HALF
    lowest = w0 * n0
    middle = w1 * n0 + (lowest >> _HALF)
    other = w0 * n1 + (middle & _LOW_HALF)
    high = w1 * n1 + (middle >> _HALF) + (other >> _HALF)
    low = ((other & _LOW_HALF) << _HALF) | (lowest & _LOW_HALF)
    return high, bool(low <= _ALL_ONES - (n - _ONE))


@kernel
def level_of(u: float, low: FloatArray, high: FloatArray) -> int:
    """The level of every real number in [u, u + 2**-53), or -1 where the bounds leave it open."""
    top = u + _ULP
    first, last = 0, len(low)
    while first < last:
        middle = (first + last) >> 1
        if low[middle] >= top:
            last = middle
        else:
            first = middle + 1
    if first == len(low) or (first > 0 and u < high[first - 1]):
        return -1
    return first


@kernel
def steps_to(values: IntArray, offsets: IntArray, allowances: IntArray) -> int:
    """max over facets of ceil+(value/offset - g), where allowance = floor(g·offset)."""
    largest = 0
    for i in range(len(offsets)):
        quotient = values[i] // offsets[i]
        step = quotient + (1 if values[i] - quotient * offsets[i] > allowances[i] else 0)
        largest = max(largest, step)
    return largest


@kernel
def last_exponent(
    values: IntArray, offsets: IntArray, allowances: IntArray, stride: int, kind: int, rate: float
) -> float:
    """x of the last acceptance exp(-x), in floats (ADR 0002, section 4)."""
    steps = steps_to(values, offsets, allowances)
    if kind == STEPS:
        level = -(-steps // stride)
        return rate * (steps - stride * level + stride - 1)
    gap = 1.0
    for i in range(len(offsets)):
        gap = min(gap, float(steps * offsets[i] - values[i]) / float(offsets[i]))
    return rate * (1.0 - gap)


@kernel
def draw(
    words: WordArray,
    low: FloatArray,
    high: FloatArray,
    half_widths: IntArray,
    normals: IntArray,
    offsets: IntArray,
    allowances: IntArray,
    stride: int,
    kind: int,
    rate: float,
    embedding: IntArray,
    out: IntArray,
) -> tuple[int, int, bool]:
    """Attempts from ``words`` until ``out`` (m, d) is full, the words run out, or one is left to the caller.

    Returns words used, noises written, and whether the next attempt is one for the caller.
    """
    m, k = normals.shape
    per_attempt = k + 1 + (1 if kind != NOTHING else 0)
    x = np.empty(k, dtype=np.int64)
    values = np.empty(m, dtype=np.int64)
    at = 0
    written = 0
    while written < len(out) and at + per_attempt <= len(words):
        level = level_of(float(words[at] >> _TO_FLOAT) * _ULP, low, high)
        if level < 0:
            return at, written, True
        for j in range(k):
            half = half_widths[level, j]
            position, settled = scaled_word(words[at + 1 + j], np.uint64(2 * half + 1))
            if not settled:
                return at, written, True
            x[j] = np.int64(position) - half
        inside = True
        for i in range(m):
            value = 0
            for j in range(k):
                value += normals[i, j] * x[j]
            values[i] = abs(value)
            if values[i] > stride * level * offsets[i] + allowances[i]:
                inside = False
                break
        if inside and kind != NOTHING:
            u = float(words[at + 1 + k] >> _TO_FLOAT) * _ULP
            p = np.exp(-last_exponent(values, offsets, allowances, stride, kind, rate))
            if u + _ULP > p - _MARGIN:
                inside = False
                if u < p + _MARGIN:
                    return at, written, True
        at += per_attempt
        if inside:
            for row in range(embedding.shape[0]):
                noise = 0
                for j in range(k):
                    noise += embedding[row, j] * x[j]
                out[written, row] = noise
            written += 1
    return at, written, False


@kernel
def facet_norms(v: IntArray, normals: IntArray, offsets: IntArray) -> FloatArray:
    """N(v) = max |normals·v| / offsets of each row (n, k), as floats."""
    norms = np.zeros(len(v))
    for row in range(len(v)):
        for i in range(len(offsets)):
            value = 0
            for j in range(v.shape[1]):
                value += normals[i, j] * v[row, j]
            norms[row] = max(norms[row], abs(value) / offsets[i])
    return norms


@kernel
def facet_steps(v: IntArray, normals: IntArray, offsets: IntArray, allowances: IntArray) -> IntArray:
    """ceil+(N(v) - g) of each row (n, k), exactly; allowances = floor(g·offsets)."""
    steps = np.zeros(len(v), dtype=np.int64)
    values = np.empty(len(offsets), dtype=np.int64)
    for row in range(len(v)):
        for i in range(len(offsets)):
            value = 0
            for j in range(v.shape[1]):
                value += normals[i, j] * v[row, j]
            values[i] = abs(value)
        steps[row] = steps_to(values, offsets, allowances)
    return steps


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
