"""One step of many subjects with plans of their own: a row for each, as far as it can be decided for certain.

Every loop that decides is one that a single plan is made with, called without Python between them. A row that is
marked as undecided is planned by itself.

Proof: docs/proofs/hull.md, docs/proofs/delta-sets.md, docs/proofs/dilations.md, docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import predict, update
from dphmm._kernels.lattice import (
    GRADED,
    NOTHING,
    STEPS,
    dilation_sums,
    dilations,
    draw,
    first_least,
    graded_sums,
    level_table,
    levels_below,
    points_of,
)
from dphmm._kernels.points import (
    all_equal,
    fan_sums,
    nearest_in_columns,
    outer_extents,
    polygon_around,
    reduced_coordinates,
)
from dphmm._kernels.policy import differences_within, heaviest, least_of_fewest, linked_images, planned, total_mass
from dphmm.types import BoolArray, FloatArray, FloatLaw, IntArray, Predecessors, WordArray

#: Which law a hull has, or may have: the better of the two, K-norm, staircase. UNDECIDED is for the planner.
UNDECIDED, BETTER, KNORM, STAIRCASE = -1, 0, 1, 2
#: Ratios with parts below this are compared in 64 bits.
_RATIO = 2**31


class MassShare(NamedTuple):
    """The mass of a δ-set: 1 - δ less the tolerance; δ; the tolerance of equal masses."""

    enough: float
    delta: float
    tolerance: float


class PlanarAnswers(NamedTuple):
    """Planar answers (N, 2), their bounds (2,), their places in the box around them; the policy's cells and steps."""

    lattice: IntArray
    least: IntArray
    largest: IntArray
    places: IntArray
    whole: bool
    weights: tuple[int, int]
    sides: tuple[int, int]
    linear: IntArray
    cell_of: IntArray
    order: IntArray
    deltas: IntArray
    table: IntArray
    bands: IntArray
    span: int


class PlannedRows(NamedTuple):
    """Plans of rows: the plan set and the surrogates (n, N), the lowest plan state, the number of facets (0:
    undecided).

    ``facets`` (n, 3F): the normals of the hull, then its offsets; ``vertices`` (n, 2F, 2). ``norm`` (n, 2): the largest
    norm between two plan states, as a ratio.
    """

    plan: BoolArray
    surrogate: NDArray[Any]
    lowest: IntArray
    sizes: IntArray
    facets: IntArray
    vertices: IntArray
    norm: IntArray


class Family(NamedTuple):
    """The settings that all laws share: ε and how it falls, the law that is wanted, and the limits of exact sums.

    A staircase has levels of ``stride`` steps at ``rates[0]``; K-norm has levels of height ``up`` / ``down`` at
    ``rates[1]``.
    """

    chosen: int
    pitch: FloatArray
    epsilon: float
    ratio: float
    complement: float
    stride: int
    up: int
    down: int
    rates: tuple[float, float]
    most_points: int
    most_fractions: int
    gain: float
    tie: float
    spans: tuple[int, int]
    offset_bits: int
    width_bits: int
    tail: float
    guard: float


class LatticeLaws(NamedTuple):
    """Laws of hulls by number, as `draw` reads them; ``which`` is UNDECIDED, KNORM or STAIRCASE.

    ``offset`` (S, 2) of the staircase as a ratio; ``levels`` and ``sizes`` (S,): the numbers of levels and facets.
    """

    which: IntArray
    offset: IntArray
    levels: IntArray
    low: FloatArray
    high: FloatArray
    half_widths: IntArray
    sizes: IntArray
    normals: IntArray
    offsets: IntArray
    allowances: IntArray
    embedding: IntArray


class Falls(NamedTuple):
    """The fall of likelihoods from step to step under a staircase, and the bound of exact floats."""

    kind: int
    rate: float
    table: FloatArray
    room: float


class MovedRows(NamedTuple):
    """Beliefs (n, N) given an answer, and a move later.

    ``done`` (n,): 0 nothing could be trusted to floats, 1 the answer, 2 the move, too.
    """

    posterior: FloatArray
    remaining: BoolArray
    prior: FloatArray
    reached: BoolArray
    done: IntArray


@kernel
def constrain_rows(
    first: int,
    last: int,
    priors: FloatArray,
    supports: BoolArray,
    share: MassShare,
    plan: BoolArray,
    decided: BoolArray,
) -> None:
    """The δ-sets ``plan`` of the rows first..last (n, N) of priors and supports, and which of them are ``decided``."""
    for row in range(first, last):
        decided[row] = constrain_row(priors[row], supports[row], share, plan[row])


@kernel
def constrain_row(prior: FloatArray, support: BoolArray, share: MassShare, plan: BoolArray) -> bool:
    """Fill the δ-set of a row; False where floats cannot decide it."""
    total, possible = total_mass(prior, support)
    if not 0.0 < total < math.inf:
        return False
    large = share.delta * total / possible * (1 - 1e-9)
    drift = 2.0**-51 * possible * total
    least, count = least_of_fewest(prior, support, large, share.enough * total, drift)
    if count == 0:
        return False
    plan[:] = heaviest(prior, support, least, count, share.tolerance)
    return True


@kernel
def plan_rows(
    first: int, last: int, supports: BoolArray, decided: BoolArray, grid: PlanarAnswers, out: PlannedRows
) -> None:
    """Plan the rows first..last (n, N) of supports whose plan sets are ``decided``."""
    for row in range(first, last):
        out.sizes[row] = plan_row(row, supports[row], grid, out) if decided[row] else 0


@kernel
def plan_row(row: int, support: BoolArray, grid: PlanarAnswers, out: PlannedRows) -> int:
    """Plan a row, and return the number of its hull's facets; 0 if the planner has to look at the row."""
    states, contracted, _ = planned(support, out.plan[row])
    if not contracted or all_equal(grid.lattice, states):
        return 0
    (wx, wy), (width, height) = grid.weights, grid.sides
    nearest = nearest_in_columns(grid.places, grid.whole, states, wx, wy, width, height)
    linked = linked_images(grid.linear, grid.cell_of, grid.order, grid.deltas, grid.table, support, nearest, states)
    for state in states:
        if not linked[state]:
            return 0
    fits, few = differences_within(
        grid.linear, grid.order, grid.bands, support, nearest, states, grid.lattice, grid.least, grid.largest
    )
    if not fits or few.shape[0] < 2:
        return 0
    normals, offsets, vertices = polygon_around(few, grid.span)
    size = offsets.size
    if size == 0 or 3 * size > out.facets.shape[1]:
        return 0
    extents = outer_extents(grid.lattice[states], normals)
    if extents.size == 0:
        return 0
    above, below = 0, 1
    for i in range(size):
        if extents[i] >= _RATIO or offsets[i] >= _RATIO:
            return 0
        if extents[i] * below > above * offsets[i]:
            above, below = extents[i], offsets[i]
    out.norm[row, 0], out.norm[row, 1] = above, below
    out.lowest[row] = states[0]
    for state in range(nearest.size):
        out.surrogate[row, state] = nearest[state]
    for i in range(size):
        out.facets[row, 2 * i], out.facets[row, 2 * i + 1] = normals[i, 0], normals[i, 1]
        out.facets[row, 2 * size + i] = offsets[i]
    out.vertices[row, : 2 * size] = vertices
    return size


@kernel
def law_rows(
    first: int, last: int, rows: IntArray, numbers: IntArray, found: PlannedRows, family: Family, out: LatticeLaws
) -> None:
    """Make the laws of the hulls of some rows (m,), which become those of some numbers (m,)."""
    for at in range(first, last):
        row, number, size = rows[at], numbers[at], found.sizes[rows[at]]
        normals = found.facets[row, : 2 * size].copy().reshape((size, 2))
        offsets = found.facets[row, 2 * size : 3 * size].copy()
        out.which[number] = law_row(number, normals, offsets, found.vertices[row, : 2 * size].copy(), family, out)


@kernel
def law_row(
    number: int, normals: IntArray, offsets: IntArray, vertices: IntArray, family: Family, out: LatticeLaws
) -> int:
    """Make the law of a hull; UNDECIDED where its exact sums or tables are too large."""
    turned, back, widths = reduced_coordinates(normals, vertices, family.spans[1])
    if widths.size == 0:
        return UNDECIDED
    which, above, below = better_law(turned, back, offsets, widths, vertices, family)
    if which == UNDECIDED:
        return UNDECIDED
    knorm = which == KNORM
    up, down = (family.up, family.down) if knorm else (1, 1)
    stride = 1 if knorm else family.stride
    boxes = np.empty((2, 2), np.int64)
    for j in range(2):
        boxes[0, j], boxes[1, j] = short_width(widths[j] * up, down, family.width_bits)
    offset = -((-above << family.offset_bits) // below)
    rate = family.rates[1 if knorm else 0]
    low, high, half_widths = level_table(boxes, offset, stride, family.offset_bits, rate, family.tail)
    rows = np.concatenate((turned * down, back))
    farthest = float(stride) * float(offsets.max() * up)
    levels = levels_below(family.guard, half_widths, rows.astype(np.float64), farthest)
    if levels == 0 or levels > out.low.shape[1] or offsets.max() >= _RATIO:
        return UNDECIDED
    out.offset[number, 0], out.offset[number, 1] = above, below
    out.levels[number], out.sizes[number] = levels, offsets.size
    out.low[number, :levels], out.high[number, :levels] = low[:levels], high[:levels]
    out.half_widths[number, :levels] = half_widths[:levels]
    for i in range(offsets.size):
        out.normals[number, i] = rows[i]
        out.offsets[number, i] = offsets[i] * up
        out.allowances[number, i] = above * offsets[i] // below
    out.embedding[number] = back
    return which


@kernel
def better_law(
    turned: IntArray, back: IntArray, offsets: IntArray, widths: IntArray, vertices: IntArray, family: Family
) -> tuple[int, int, int]:
    """The law of a hull, and the offset of the staircase as a ratio."""
    if family.chosen == KNORM:
        return KNORM, 0, 1
    weight, xx, _, yy = fan_sums(vertices, family.spans[0])
    volume = weight / 2
    few = volume * 25 <= 2 * family.most_points and 2.0 * (5 * widths[0]) + 1.0 <= family.most_points
    if weight < 0 or not few or offsets.sum() >= family.most_fractions:
        return UNDECIDED, 0, 1
    pitch = family.pitch
    rows = np.concatenate((turned, back))
    parts, counts, squares = dilations(2 * widths, rows, offsets, pitch, 2, family.most_points // 2)
    if parts.size == 0 or points_of(counts, parts, 2, 5) > family.most_points + 1:
        return UNDECIDED, 0, 1
    mean_square = (xx * pitch[0] * pitch[0] + yy * pitch[1] * pitch[1]) / (12 * weight)
    masses = dilation_sums(counts, parts, 2, 2, 0.0, family.ratio, family.complement)
    sizes = dilation_sums(squares, parts, 2, 4, 24 * volume * mean_square, family.ratio, family.complement)
    at = first_least(sizes, masses, family.tie)
    if family.chosen == BETTER:
        mass, size = graded_sums(parts, masses, sizes, family.epsilon)
        if not sizes[at] / masses[at] < size / mass * (1.0 - family.gain):
            return KNORM, 0, 1
    for below in offsets:
        above = int(np.rint(parts[at] * below))
        if above / below == parts[at]:
            divisor = math.gcd(above, below)
            return STAIRCASE, above // divisor, below // divisor
    return UNDECIDED, 0, 1


@kernel
def short_width(above: int, below: int, bits: int) -> tuple[int, int]:
    """A width above / below, rounded up to ``bits`` binary digits, and the number of digits after the point."""
    divisor = math.gcd(above, below)
    above, below = above // divisor, below // divisor
    shift = max(0, bits - digits_of(above) + digits_of(below))
    return -((-above << shift) // below), shift


@kernel
def digits_of(number: int) -> int:
    """The number of binary digits of a positive number."""
    digits = 0
    while number > 0:
        number >>= 1
        digits += 1
    return digits


@kernel
def draw_rows(
    words: WordArray, first: int, numbers: IntArray, laws: LatticeLaws, family: Family, out: IntArray
) -> tuple[int, int, bool]:
    """Noises of the rows from ``first`` on, row by row, each by the law of its number (m,), until words run out.

    Returns words used, the next row, and whether its next attempt is left to the caller.
    """
    used, row = 0, first
    while row < len(numbers):
        law = numbers[row]
        levels, size = laws.levels[law], laws.sizes[law]
        knorm = laws.which[law] == KNORM
        kind, rate = (GRADED, family.rates[1]) if knorm else (STEPS, family.epsilon)
        stride = 1 if knorm else family.stride
        taken, written, left_open = draw(
            words[used:],
            laws.low[law, :levels],
            laws.high[law, :levels],
            laws.half_widths[law, :levels],
            laws.normals[law, :size],
            laws.offsets[law, :size],
            laws.allowances[law, :size],
            stride,
            NOTHING if stride == 1 and not knorm else kind,
            rate,
            laws.embedding[law],
            out[row : row + 1],
        )
        used += taken
        row += written
        if written == 0:
            return used, row, left_open
    return used, row, False


@kernel
def move_rows(
    first: int,
    last: int,
    places: IntArray,
    priors: FloatArray,
    supports: BoolArray,
    secrets: IntArray,
    planned_on: BoolArray,
    z: IntArray,
    found: PlannedRows,
    numbers: IntArray,
    laws: LatticeLaws,
    family: Family,
    falls: Falls,
    grid: PlanarAnswers,
    moves: Predecessors,
    out: MovedRows,
) -> None:
    """Condition the beliefs of the plans at ``places`` (m,) on answers (m, 2), and move them one step.

    Plans are on ``planned_on`` (n, S), which beliefs are about, too; or these are about latent states (n, N), of which
    ``secrets`` (N,), else none, are the secrets that are planned on.
    """
    for at in range(first, last):
        row = places[at]
        size, number, prior, support = found.sizes[row], numbers[row], priors[row], supports[row]
        normals = found.facets[row, : 2 * size].copy().reshape((size, 2))
        offsets = found.facets[row, 2 * size : 3 * size].copy()
        knorm = laws.which[number] == KNORM
        allowances = offsets - 1
        if not knorm:
            for i in range(size):
                allowances[i] = laws.offset[number, 0] * offsets[i] // laws.offset[number, 1]
        kind, rate = (GRADED, family.epsilon) if knorm else (falls.kind, falls.rate)
        law = FloatLaw(normals, offsets, allowances, kind, rate, falls.table)
        within, surrogate = planned_on[row], found.surrogate[row]
        states, _, _ = planned(within, found.plan[row])
        posterior, remaining = out.posterior[at], out.remaining[at]
        if len(secrets):
            within, surrogate = within[secrets], surrogate[secrets]
        if not update(
            prior, support, z[at], grid.lattice, within, states, surrogate, law, falls.room, posterior, remaining
        ):
            out.done[at] = 0
            continue
        moved = predict(moves, posterior, remaining, out.prior[at], out.reached[at])
        out.done[at] = 2 if moved else 1
