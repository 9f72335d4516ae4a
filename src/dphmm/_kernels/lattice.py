"""Loops of the lattice mechanisms: drawing noise, levels and norms of lattice vectors, sums over lattice points.

The tables of a sampler's levels are here too, where 64 bits hold them: boxes, bounds of cumulative probabilities.

The drawing loop takes only decisions that it can take for certain. An attempt with a decision within the
margin of a threshold, or with numbers beyond 64 bits, is left to the caller untouched.

Sums over the lattice points of a few dilations of a body, and over the polynomials that they give, are for errors.

Proofs: docs/proofs/sampling.md, docs/proofs/dilations.md (sums).
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
    """The pair of floor(word·n / 2**64), and True if every real number with these first 64 digits gives the same."""
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
    """The number of first levels with every row·x (m, k), x in the box, and level·farthest below the guard."""
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


#: Fractions of denominators up to 2**25 that differ, or miss 1 when added, do so by more than this.
_APART = 2.0**-51
_ROOM = 2.0**60


@kernel
def dilations(
    half_widths: IntArray, rows: IntArray, offsets: IntArray, pitch: FloatArray, radius: int, most: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fractions g (b,) of N on lattice points; the number (radius, b) of points with N <= j + g, and their sum of |x|².

    ``rows`` (m + d, k) are the normals and the embedding; x has answer units, ``pitch`` (d,) for a step. No fraction
    where the points are more than ``most`` (see norm_parts), or products beyond 64 bits.
    """
    m, d = len(offsets), len(pitch)
    if farthest(rows, half_widths) >= _ROOM:
        return np.empty(0), np.empty((radius, 0)), np.empty((radius, 0))
    normals = rows[:m]
    units = rows[m:] * pitch.reshape(d, 1)
    whole, slot, square, slots, count = norm_parts(half_widths, normals, offsets, units, radius, most)
    if count > most:
        return np.empty(0), np.empty((radius, 0)), np.empty((radius, 0))
    parts, position = distinct_parts(slots)
    counts = np.zeros((radius, len(parts)))
    squares = np.zeros((radius, len(parts)))
    counts[0, 0] = 1.0
    for at in range(count):
        # A point with N = radius itself is one step too far.
        if whole[at] < radius:
            counts[whole[at], position[slot[at]]] += 2.0
            squares[whole[at], position[slot[at]]] += 2.0 * square[at]
    points = 0.0
    size = 0.0
    for j in range(radius):
        for g in range(len(parts)):
            points += counts[j, g]
            size += squares[j, g]
            counts[j, g] = points
            squares[j, g] = size
    return parts, counts, squares


@kernel
def farthest(rows: IntArray, half_widths: IntArray) -> float:
    """The largest |row|·x over the box."""
    largest = 0.0
    for i in range(len(rows)):
        reach = 0.0
        for j in range(len(half_widths)):
            reach += abs(float(rows[i, j])) * half_widths[j]
        largest = max(largest, reach)
    return largest


@kernel
def norm_parts(
    half_widths: IntArray, normals: IntArray, offsets: IntArray, units: FloatArray, radius: int, most: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, int]:
    """The norm N at the lattice points x of radius·body, one of each ± pair, without 0, and the number of points.

    Returned are floor(N), a slot for N - floor(N), |x|², ``slots`` and the number. More points than ``most`` are not
    looked at.

    ``units`` (d, k) takes x to answer units. A fraction r/b has a slot for every facet of offset b; ``slots`` holds the
    fraction of those that occur, -1 elsewhere. Offsets below 2**25 make the fractions, as floats, equal or in order
    exactly as the rationals that they stand for.
    """
    m, k = normals.shape
    whole = np.empty(most, dtype=np.int64)
    slot = np.empty(most, dtype=np.int64)
    square = np.empty(most)
    slots = np.full(offsets.sum(), -1.0)
    x = np.zeros(k, dtype=np.int64)
    signed = np.empty(m, dtype=np.int64)
    count = 0
    # Half of the body in lexicographic order from the origin on: each point stands for its mirror image too.
    axis = 0
    while axis >= 0:
        first, last = _row(x, half_widths[k - 1], normals, offsets, radius)
        if not x[: k - 1].any():
            first = 1
        if count + max(0, last - first + 1) > most:
            return whole[:0], slot[:0], square[:0], slots, most + 1
        x[k - 1] = first - 1
        for i in range(m):
            signed[i] = 0
            for j in range(k):
                signed[i] += normals[i, j] * x[j]
        for at in range(first, last + 1):
            x[k - 1] = at
            # The facet of the largest ratio value / offset, the first of equals: by products, which are exact.
            most_value, most_offset, place, begin = 0, 1, 0, 0
            for i in range(m):
                signed[i] += normals[i, k - 1]
                value = abs(signed[i])
                if value * most_offset > most_value * offsets[i]:
                    most_value, most_offset, place = value, offsets[i], begin
                begin += offsets[i]
            quotient = 0
            while most_value >= most_offset:
                most_value -= most_offset
                quotient += 1
            place, part = place + most_value, most_value / most_offset
            whole[count] = quotient
            slot[count] = place
            slots[place] = part
            square[count] = 0.0
            for row in range(units.shape[0]):
                component = 0.0
                for j in range(k):
                    component += units[row, j] * x[j]
                square[count] += component * component
            count += 1
        axis = k - 2
        while axis >= 0 and x[axis] == half_widths[axis]:
            x[axis] = -half_widths[axis]
            axis -= 1
        if axis >= 0:
            x[axis] += 1
    return whole[:count], slot[:count], square[:count], slots, count


@kernel
def _row(x: IntArray, half: int, normals: IntArray, offsets: IntArray, radius: int) -> tuple[int, int]:
    """Bounds on the last coordinate of the points of radius·body that share the other coordinates of x."""
    first, last = -half, half
    k = len(x)
    for i in range(len(offsets)):
        rest = 0
        for j in range(k - 1):
            rest += normals[i, j] * x[j]
        slope = normals[i, k - 1]
        limit = radius * offsets[i]
        if slope == 0:
            if abs(rest) > limit:
                return 1, 0
        else:
            low, high = -limit - rest, limit - rest
            if slope < 0:
                slope, low, high = -slope, -high, -low
            first = max(first, -(-low // slope))
            last = min(last, high // slope)
    return first, last


@kernel
def distinct_parts(slots: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct fractions that occur, ascending, with 0; and for every slot which of them it holds."""
    used = np.flatnonzero(slots >= 0.0)
    parts = np.zeros(len(used) + 1)
    position = np.zeros(len(slots), dtype=np.int64)
    last = 0
    for at in used[np.argsort(slots[used])]:
        if slots[at] > parts[last]:
            last += 1
            parts[last] = slots[at]
        position[at] = last
    return parts[: last + 1], position


@kernel
def dilation_sums(
    values: FloatArray, parts: FloatArray, rank: int, degree: int, top: float, ratio: float, complement: float
) -> FloatArray:
    """sum over j >= 0 of ratio^j·P_g(j) for every fraction g (b,) from ``values`` (r, b), P_g(0) .. P_g(r - 1).

    ``top`` is the difference of order ``degree`` of all of them; ``complement`` is 1 - ratio.
    """
    return polynomial_sums(continued(around_zero(values, parts, rank), degree, top, degree), ratio, complement)


@kernel
def points_of(counts: FloatArray, parts: FloatArray, rank: int, radius: int) -> float:
    """The number of points of radius·body, from the ``counts`` (r, b) of its dilations."""
    whole = around_zero(counts, parts, rank)[:, :1].copy()
    return float(continued(whole, rank, 0.0, radius)[radius, 0])


@kernel
def around_zero(values: FloatArray, parts: FloatArray, rank: int) -> FloatArray:
    """P_g(-r), .., P_g(r - 1) (2r, b) from ``values`` (r, b), P_g(0) .. P_g(r - 1).

    P_g(-m) is what the points with N < m - g give, with the sign of (-1)^rank.
    """
    radius = len(values)
    sign = -1.0 if rank % 2 else 1.0
    lines = np.empty((2 * radius, len(parts)))
    below = len(parts) - 1
    for g in range(len(parts)):
        while parts[below] + parts[g] > 1.0 - _APART:
            below -= 1
        for j in range(radius):
            lines[radius + j, g] = values[j, g]
            lines[radius - 1 - j, g] = sign * values[j, below]
    return lines


@kernel
def continued(lines: FloatArray, degree: int, top: float, last: int) -> FloatArray:
    """P(0), .., P(last) of polynomials (columns) from their values at -r, .., r - 1 (rows): ``degree`` of them or more.

    ``top`` is their difference of order ``degree``, which is the same everywhere.
    """
    rows, n = lines.shape
    known = min(rows, degree + 1)
    ends = np.full((degree + 1, n), top)
    differences = lines[rows - known :].copy()
    for order in range(known):
        ends[order] = differences[known - 1 - order]
        for i in range(known - 1 - order):
            for column in range(n):
                differences[i, column] = differences[i + 1, column] - differences[i, column]
    out = np.empty((last + 1, n))
    for j in range(last + 1):
        if j < rows // 2:
            out[j] = lines[rows // 2 + j]
        else:
            for order in range(degree - 1, -1, -1):
                for column in range(n):
                    ends[order, column] += ends[order + 1, column]
            out[j] = ends[0]
    return out


@kernel
def polynomial_sums(values: FloatArray, ratio: float, complement: float) -> FloatArray:
    """sum over j >= 0 of ratio^j·P(j) for polynomials (columns) given by P(0), .., P(degree) (rows).

    It is h(ratio) / complement^(degree + 1), complement = 1 - ratio; h has differences of the values as coefficients.
    """
    h = values.copy()
    size, n = h.shape
    for _ in range(size):
        for i in range(size - 1, 0, -1):
            for column in range(n):
                h[i, column] -= h[i - 1, column]
    out = np.zeros(n)
    for i in range(size - 1, -1, -1):
        for column in range(n):
            out[column] = out[column] * ratio + h[i, column]
    out /= complement**size
    return out


@kernel
def graded_sums(parts: FloatArray, masses: FloatArray, sizes: FloatArray, rate: float) -> tuple[float, float]:
    """Mass and size under exp(-rate·N): between two fractions the points weigh what the next of them weighs."""
    mass, size = 0.0, 0.0
    for g in range(len(parts)):
        end = parts[g + 1] if g + 1 < len(parts) else 1.0
        fall = math.exp(-rate * parts[g]) * -math.expm1(-rate * (end - parts[g]))
        mass += fall * masses[g]
        size += fall * sizes[g]
    return mass, size


@kernel
def first_least(sizes: FloatArray, masses: FloatArray, tie: float) -> int:
    """The first place where size / mass is least, up to a share ``tie``."""
    least = np.inf
    for g in range(len(sizes)):
        least = min(least, sizes[g] / masses[g])
    first = 0
    while sizes[first] / masses[first] > least * (1.0 + tie):
        first += 1
    return first
