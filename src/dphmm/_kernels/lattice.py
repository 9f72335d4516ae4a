"""Loops of the lattice mechanisms: drawing noise, levels and norms of lattice vectors, sums over lattice points.

The drawing loop takes only decisions that it can take for certain. An attempt with a decision within the
margin of a threshold, or with numbers beyond 64 bits, is left to the caller untouched.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

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
