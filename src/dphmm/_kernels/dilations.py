"""Loops over the lattice points of a few dilations of a body, and over the polynomials that they give.

Proof: docs/proofs/dilations.md.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray

#: Fractions of denominators up to 2**25 that differ, or miss 1 when added, do so by more than this.
_APART = 2.0**-51
_ROOM = 2.0**60


@kernel
def dilations(
    half_widths: IntArray, rows: IntArray, offsets: IntArray, pitch: FloatArray, radius: int, most: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fractions g (b,) of N on lattice points; and (radius, b) how many points have N <= j + g, and their sum of |x|².

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
    """Of the lattice points x of radius·body, one of each ± pair, without 0: floor(N), a slot for N - floor(N), |x|².

    ``units`` (d, k) takes x to answer units. A fraction r/b has a slot for every facet of offset b; ``slots`` holds the
    fraction of those that occur, -1 elsewhere. Offsets below 2**25 make the fractions, as floats, equal or in order
    exactly as the rationals that they stand for. Last, how many points there are; more than ``most`` are not looked at.
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
    """How many points radius·body has, from the ``counts`` (r, b) of its dilations."""
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
