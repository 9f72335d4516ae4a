"""Policies of distance: states within r of each other, and states with their nearest others.

Answers lie within r of each other as they were given (Gutil, Section 4.2). The paper says "at most r" there and "less
than r" in Section 8 (errata 16): ``closed`` chooses. On lattice points the edges are decided in integers and the graph
is a list of offsets; elsewhere distances are floats and edges are stored.

A policy joins cells; people are at places. Two places are hidden from each other where they lie in one cell, or in
cells that an edge joins: `covered_distance` says how far apart they may be.

`Offsets` answers the questions about a graph on lattice points whose edges are all pairs that lie one of some offsets
apart.

Proofs: docs/proofs/hull.md, docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm._checks import exact_number, whole
from dphmm.errors import InvalidInput
from dphmm.policy._cliques import CliqueGraph, Complete, array_hash, complete
from dphmm.policy._edges import Listed
from dphmm.policy._points import Cells, LatticeDistance, hull_points, indexable
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import (
    PolicyGraph,
    Union,
    projected,
    read_only,
    refuse_too_many,
    registered,
    sorted_edges,
    symmetric,
)
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import MapSpace, parse_length
from dphmm.states.space import StateSpace, lattice_answers
from dphmm.types import BoolArray, FloatArray, IntArray

#: Testing offsets one by one may cost this many look-ups; beyond it one Fourier transform finds all of them.
_LOOKUPS = 2**26
_LARGEST_TRANSFORM = 2**25


@dataclass(frozen=True)
class _Possible:
    """The possible states of each cell: True if it holds any, and their least and largest surrogates."""

    active: BoolArray
    least: IntArray
    most: IntArray


class Offsets(PolicyGraph):
    """States with equal answers are neighbours, and those whose answers differ by ± an offset."""

    cells: Cells
    points: IntArray

    def lay_out(self, points: IntArray, offsets: IntArray) -> None:
        """Number the cells of lattice points (N, d); offsets (m, d) are one of each ± pair, none zero."""
        self.points = read_only(points)
        self.cells = Cells(points, offsets)

    def planar_cells(self, lattice: IntArray) -> Cells | None:
        return self.cells if lattice.shape[1] == 2 and self.cells.singles else None

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        if self._is_own(lattice, within):
            return _extreme_row(self._reach(within), direction)
        possible = self._possible(within)
        zero = np.zeros(lattice.shape[1], dtype=np.int64)
        if not possible.active.any():
            return 0, zero
        supported = np.flatnonzero(within.support)
        images = within.surrogate[supported]
        values = projected(direction, lattice)[images]
        high_cell, low_cell = self._widest(within, values, supported)
        cell_of = self.cells.cell_of[supported]
        top, bottom = np.flatnonzero(cell_of == high_cell), np.flatnonzero(cell_of == low_cell)
        high, low = top[np.argmax(values[top])], bottom[np.argmin(values[bottom])]
        return int(values[high]) - int(values[low]), lattice[images[high]] - lattice[images[low]]

    def _widest(self, within: Constraint, values: NDArray[Any], supported: IntArray) -> tuple[int, int]:
        """The adjacent or equal cells between which the values of possible states differ most."""
        cells, active = self.cells, self._possible(within).active
        spread = np.full((2, self.n_states), values[0], dtype=values.dtype)
        spread[0], spread[1] = values.max(), values.min()
        spread[:, supported] = values
        low, high = cells.least(spread[0]), cells.most(spread[1])
        if values.dtype != object:
            return _kernels.policy.widest_pair(cells.linear, active, cells.deltas, cells.table, low, high)
        numbers = np.flatnonzero(active)
        best = max((high[c] - low[c], int(c), int(c)) for c in numbers)
        for a, b in self._cell_pairs(active):
            for up, down in ((a, b), (b, a)):
                rises = high[up] - low[down]
                k = int(np.argmax(rises))
                best = max(best, (rises[k], int(up[k]), int(down[k])))
        return best[1], best[2]

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        cells = self.cells
        if cells.singles:
            where = cells.linear, cells.cell_of, cells.order, cells.deltas, cells.table
            return _kernels.policy.linked_images(*where, within.support, within.surrogate, within.plan_states)
        possible = self._possible(within)
        linked = _kernels.policy.linked_cells(
            cells.linear, possible.active, cells.deltas, cells.table, possible.least, possible.most
        )
        mask = np.zeros(self.n_states, dtype=np.bool_)
        mask[within.surrogate[within.support & linked[cells.cell_of]]] = True
        return mask

    def _join(self, parent: IntArray, within: Constraint) -> None:
        cells, possible = self.cells, self._possible(within)
        supported = np.flatnonzero(within.support)
        _kernels.policy.join_pairs(parent, possible.least[cells.cell_of[supported]], within.surrogate[supported])
        _kernels.policy.join_cells(parent, cells.linear, possible.active, cells.deltas, cells.table, possible.least)

    def _edges(self, within: Constraint) -> IntArray:
        active = self._possible(within).active
        sizes = np.diff(self.cells.starts)
        total = int((sizes[active] * (sizes[active] - 1) // 2).sum())
        for a, b in self._cell_pairs(active):
            total += int((sizes[a] * sizes[b]).sum())
            refuse_too_many(total, "constraint", "list the edges of fewer states")
        pairs = [sorted_edges(a, b) for a, b in self._state_pairs(within)]
        edges = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])
        return sorted_edges(edges[:, 0], edges[:, 1])

    def _around(self, states: IntArray) -> IntArray:
        cells = self.cells
        inner = np.unique(cells.cell_of[states])
        beside = [cells.beside(inner, sign * int(delta)) for delta in cells.deltas for sign in (1, -1)]
        all_cells = np.unique(np.concatenate([inner, *beside]))
        return cells.states_in(all_cells[all_cells >= 0])[0]

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        # Axes are padded so that no other difference of two points has an offset's linear step.
        steps = self.cells.linear[self.cells.cell_of[a]] - self.cells.linear[self.cells.cell_of[b]]
        joined: BoolArray = np.isin(np.abs(steps), np.append(np.abs(self.cells.deltas), 0))
        return joined

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        if self._is_own(lattice, within):
            reach = symmetric(self._reach(within))
            # In space what lies inside is told in floats, and a certificate must not rest on them.
            return hull_points(reach) if reach.shape[1] <= 2 else reach
        none = np.zeros((0, lattice.shape[1]), dtype=np.int64)
        parts = [hull_points(lattice[b] - lattice[a]) for a, b in self._state_pairs(within)]
        return hull_points(np.vstack([none, *parts]))

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        if self._is_own(lattice, within):
            return self._reach(within)
        cells = self.cells
        if lattice.shape[1] != 2 or not cells.singles:
            return None
        where = cells.linear, cells.order, cells.bands
        fits, rows = _kernels.policy.differences_within(
            *where, within.support, within.surrogate, within.plan_states, lattice, *_kernels.points.bounds(lattice)
        )
        return rows if fits else None

    def _is_own(self, lattice: IntArray, within: Constraint) -> bool:
        """True if differences of answers are the offsets themselves: the graph's own points, perhaps translated."""
        if within.contracted or lattice.shape != self.points.shape:
            return False
        return bool(_kernels.policy.translated(self.points, lattice))

    def _possible(self, within: Constraint) -> _Possible:
        return self._remember(within, "possible", self._possible_cells)

    def _possible_cells(self, within: Constraint) -> _Possible:
        least = self.cells.least(np.where(within.support, within.surrogate, self.n_states))
        most = self.cells.most(np.where(within.support, within.surrogate, -1))
        return _Possible(self.cells.any(within.support), least, most)

    def _reach(self, within: Constraint) -> IntArray:
        """Offsets that occur between possible states, without contraction only: one of each ± pair in the plane.

        Elsewhere both, sorted: among equally far ones the first is where a hull begins.
        """
        return self._remember(within, "reach", self._occurring)

    def _occurring(self, within: Constraint) -> IntArray:
        active = self.cells.any(within.support)
        near = _kernels.policy.within_extent(self.cells.points, active, self.cells.offsets)
        offsets = self.cells.offsets[near][self._occur(near, active)]
        return offsets if offsets.shape[1] == 2 else symmetric(offsets)

    def _occur(self, near: BoolArray, active: BoolArray) -> BoolArray:
        """True where one of the offsets that are ``near`` enough lies between active cells."""
        cells = self.cells
        if np.count_nonzero(active) * np.count_nonzero(near) > _LOOKUPS:
            points = cells.points[active]
            if int(np.prod(2.0 * np.ptp(points, axis=0) + 1)) <= _LARGEST_TRANSFORM:
                return _autocorrelated(points, cells.offsets[near])
        return _kernels.policy.occurring(cells.linear, active, cells.deltas[near], cells.table)

    def _cell_pairs(self, active: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Pairs of different active cells, offset by offset; only offsets that occur."""
        numbers = np.flatnonzero(active)
        for delta in self.cells.deltas:
            other = self.cells.beside(numbers, int(delta))
            both = other >= 0
            both[both] = active[other[both]]
            if both.any():
                yield numbers[both], other[both]

    def _state_pairs(self, within: Constraint) -> Iterator[tuple[IntArray, IntArray]]:
        """The ends of contracted edges, offset by offset, with repetitions.

        First those of states with equal answers.
        """
        cells, active = self.cells, self._possible(within).active
        sizes = np.diff(cells.starts)
        twins = np.flatnonzero(active & (sizes > 1))
        for a, b in ((twins, twins), *self._cell_pairs(active)):
            refuse_too_many(int((sizes[a] * sizes[b]).sum()), "constraint", "plan on fewer states")
            first, position = cells.states_in(a)
            second, at = cells.states_in(b[position])
            first = first[at]
            inside = within.support[first] & within.support[second]
            first, second = within.surrogate[first[inside]], within.surrogate[second[inside]]
            apart = first != second
            yield first[apart], second[apart]


def _extreme_row(rows: IntArray, direction: NDArray[Any]) -> tuple[int, IntArray]:
    """The largest ``direction``·row of ± the rows, and that row; (0, zeros) where there is none."""
    if len(rows) == 0:
        return 0, np.zeros(rows.shape[1], dtype=np.int64)
    values = projected(direction, rows)
    ends = rows[int(np.argmax(values))], -rows[int(np.argmin(values))]
    exact = [sum(int(a) * int(x) for a, x in zip(direction, row, strict=True)) for row in ends]
    return (exact[0], ends[0].copy()) if exact[0] >= exact[1] else (exact[1], ends[1])


def _autocorrelated(points: IntArray, offsets: IntArray) -> BoolArray:
    """True where an offset lies between two of the points: their autocorrelation, a count of pairs, is not 0.

    The counts are integers below 2**25 and the transform's error is far below 1/2, so rounding decides
    exactly.
    """
    from scipy.fft import irfftn, next_fast_len, rfftn

    shape = tuple(next_fast_len(2 * int(side) + 1, real=True) for side in np.ptp(points, axis=0))
    mask = np.zeros(shape)
    mask[tuple((points - points.min(axis=0)).T)] = 1.0
    transform = rfftn(mask)
    pairs = irfftn(transform * transform.conj(), s=shape)
    between: BoolArray = pairs[tuple((offsets % np.array(shape)).T)] > 0.5
    return between


#: Distances of answers that are no lattice points are compared with this relative tolerance.
DISTANCE_TOLERANCE = 1e-12
#: Offsets are used while there are at most this many, or this many per state; else a tree finds the pairs.
_OFFSETS = 2**14
_OFFSETS_PER_STATE = 8
_SLACK = 1e-9
#: After so many pairs of cells of a grid the distance that is covered for certain by then is taken.
_MOST_PAIRS = 2 * 10**9
#: H3's own geometry is in floats: polygons are taken to be this much nearer to each other, in metres.
_H3_SLACK = 2e-3
_LEAST_EARTH_RADIUS = 6.3e6
#: Distances of H3 answers that differ by less, as a share, count as one.
_SAME_DISTANCE = 1e-8
_FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?", re.ASCII)


@registered
class Radius(PolicyGraph):
    """The facts of a radius policy: r (a Fraction), ``closed`` if the boundary counts, and a hash of the answers."""

    kind: ClassVar[str] = "radius"

    def __init__(self, n_states: int, r: Fraction, closed: bool, answers_hash: str) -> None:
        super().__init__(n_states)
        self.r = r
        self.closed = closed
        self.answers_hash = answers_hash

    def describe(self) -> dict[str, Any]:
        # The answers are the space's to keep; their hash says whether a space has the same.
        return {
            "kind": self.kind,
            "n_states": self.n_states,
            "r": str(self.r),
            "closed": self.closed,
            "answers": self.answers_hash,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        if space is None:
            raise InvalidInput("space", None, "the space of the radius policy")
        if not _FRACTION.fullmatch(description["r"]):
            raise InvalidInput("r", description["r"], "a number written as 3 or 7/2")
        built = radius(space, Fraction(description["r"]), closed=description["closed"])
        if built.describe() != description:
            answers = str(built.describe().get("answers"))[:16]
            raise InvalidInput("space", f"answers with hash {answers}", f"{str(description.get('answers'))[:16]}")
        return built


class LatticeRadius(Offsets, Radius):
    """A radius policy on lattice points, as offsets."""

    def __init__(self, points: IntArray, offsets: IntArray, r: Fraction, closed: bool, answers_hash: str) -> None:
        Radius.__init__(self, len(points), r, closed, answers_hash)
        self.lay_out(points, offsets)


class ListedRadius(Listed, Radius):
    """A radius policy on answers anywhere, as edges."""

    def __init__(self, n_states: int, listed: IntArray, r: Fraction, closed: bool, answers_hash: str) -> None:
        Radius.__init__(self, n_states, r, closed, answers_hash)
        self.listed = read_only(listed)


def radius(space: Any, r: Any = None, closed: bool = True, *, covers: Any = None) -> Radius | Complete:
    """The policy in which states are neighbours iff their answers lie within ``r`` of each other, in answer units.

    Answers of cells are their centres, and people are at places: on a map say with ``covers``, in metres or as "1km",
    up to which distance any two places in cells are to be hidden from each other, wherever they lie in their cells. The
    policy is then the one of the smallest radius that does so, as `covered_distance` measures. Exactly one of both.

    ``space`` : a StateSpace, whose answers count as they were given, or integers (N, d). States with equal
    answers are neighbours. ``closed=False`` leaves out pairs at distance exactly r. Lattice points are
    compared exactly, r and pitch meaning the decimals they print as; other answers in floats, with relative
    tolerance 1e-12 at the boundary (inside when closed, outside when not). ``r = math.inf`` is the complete
    policy.

    >>> from dphmm import Grid, policy
    >>> grid = Grid.from_bounds(13.30, 52.48, 13.40, 52.54, cell=340)
    >>> policy.radius(grid, covers="680m").r
    Fraction(1000, 1)

    Raises InvalidInput for r that is NaN, zero, negative or outside 1e-300 .. 1e300, and for more than
    50,000,000 pairs of neighbours where pairs have to be listed.
    """

    if isinstance(space, StateSpace) and space.has_labels:
        raise InvalidInput("space", "labels, which have no distances", "policy.complete, .categorical or .from_edges")
    if not isinstance(closed, (bool, np.bool_)):
        raise InvalidInput("closed", closed, "True or False")
    if (r is None) == (covers is None):
        raise InvalidInput("r", "neither r nor covers" if r is None else "both r and covers", "one of them")
    if covers is not None:
        r = math.inf if covers == math.inf else least_radius(space, float(parse_length(covers, "covers")))
    if isinstance(r, (float, np.floating)) and r == math.inf:
        return complete(len(lattice_answers(space)[0]))
    bound = exact_number(r, "r")
    if bound <= 0:
        raise InvalidInput("r", r, "a number greater than 0")
    if not Fraction(10) ** -300 <= bound <= 10**300:
        raise InvalidInput("r", r, "a number from 1e-300 to 1e300, or math.inf")
    if isinstance(space, StateSpace) and not space.is_lattice:
        return _of_floats(space.raw_answers, bound, bool(closed))
    points, frame = lattice_answers(space)
    return _of_lattice(points, frame.exact_pitch, bound, bool(closed))


def _of_lattice(points: IntArray, pitch: tuple[Fraction, ...], r: Fraction, closed: bool) -> Radius:
    metric = LatticeDistance.of(pitch)
    span = np.ptp(points, axis=0)
    largest = min(metric.largest_square(r, closed), metric.squared(span))
    content = lattice_hash(points, pitch)
    reach = np.array(
        [min(int(s), math.isqrt(max(largest, 0)) // w) for s, w in zip(span, metric.weights, strict=True)],
        dtype=np.int64,
    )
    box = math.prod(2 * int(m) + 1 for m in reach)
    if box <= max(_OFFSETS, _OFFSETS_PER_STATE * len(points)) and indexable(points, reach):
        offsets = _half_box(reach)
        return LatticeRadius(points, offsets[metric.within(offsets, largest)], r, closed, content)
    scaled = (points - points.min(axis=0)) * np.array([float(w) for w in metric.weights])
    # Coordinates are rounded relative to the whole span, distances only to themselves.
    slack = float(scaled.max(initial=0.0)) * 2.0**-48
    pairs = _close_pairs(scaled, math.sqrt(largest) * (1 + _SLACK) + slack)
    near = pairs[metric.within(points[pairs[:, 1]] - points[pairs[:, 0]], largest)]
    return ListedRadius(len(points), near, r, closed, content)


def _of_floats(answers: FloatArray, r: Fraction, closed: bool) -> Radius:
    bound = float(r)
    pairs = _close_pairs(answers, bound * (1 + _SLACK))
    distance = np.sqrt((((answers[pairs[:, 1]] - answers[pairs[:, 0]]) / bound) ** 2).sum(axis=1))
    near = distance <= 1 + DISTANCE_TOLERANCE if closed else distance < 1 - DISTANCE_TOLERANCE
    return ListedRadius(len(answers), pairs[near], r, closed, floats_hash(answers))


def lattice_hash(points: IntArray, pitch: tuple[Fraction, ...]) -> str:
    """SHA-256 (hex) of the differences of lattice answers (N, d) and their units."""
    units = ",".join(map(str, pitch))
    return hashlib.sha256(f"{units} {array_hash(points - points.min(axis=0))}".encode()).hexdigest()


def floats_hash(answers: FloatArray) -> str:
    """SHA-256 (hex) of answers (N, d) that are no lattice points."""
    return hashlib.sha256(np.ascontiguousarray(answers, dtype="<f8").tobytes()).hexdigest()


def _half_box(reach: IntArray) -> IntArray:
    """All integer vectors with \\|v_j\\| <= reach_j, one of each ± pair and without zero."""
    grid: NDArray[Any] = np.indices(tuple(2 * reach + 1), dtype=np.int64).reshape(len(reach), -1).T - reach
    # In lexicographic order the box is symmetric about its middle, which is zero.
    return np.ascontiguousarray(grid[len(grid) // 2 + 1 :])


def _close_pairs(points: FloatArray, distance: float) -> IntArray:
    """Pairs (m, 2), i < j, sorted, at most ``distance`` apart."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    count = (int(tree.count_neighbors(tree, distance)) - len(points)) // 2
    refuse_too_many(count, "r", "a smaller radius, or the complete policy")
    pairs = tree.query_pairs(distance, output_type="ndarray").astype(np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    ranked: IntArray = pairs[order]
    return ranked


def covered_distance(policy: PolicyGraph, space: Any) -> float | None:
    """The distance in metres up to which any two places in cells of a map are hidden from each other.

    They lie in one cell of ``space``, or in two that an edge of ``policy`` joins. It is the least distance between
    points of two cells that no edge joins, rounded down.

    Only edges of the policy itself count, not paths of them. ``math.inf`` where every two cells are joined; 0.0 where
    two cells that touch are not; None where the states are no cells of a map (or H3 cells without the h3 package).
    A grid measures on its map, in the metres that its cells are cut in; ``space.on_the_ground`` of the number is a
    distance on the ground. H3 cells are measured on the ground. Places outside every cell are not spoken of: they are
    answered as the nearest state.

    >>> from dphmm import Grid, policy
    >>> grid = Grid.from_bounds(13.30, 52.48, 13.40, 52.54, cell=340)
    >>> policy.covered_distance(policy.radius(grid, 1000), grid)
    680.0
    >>> grid.on_the_ground(680.0)
    677.248

    Raises InvalidInput for a policy on another number of states.
    """
    if policy.n_states != getattr(space, "n_states", policy.n_states):
        raise InvalidInput("policy", f"one on {policy.n_states} states", f"one on the {space.n_states} of the space")
    if not isinstance(space, MapSpace):
        return None
    # Cells stay where they are, also those that are answered as another one.
    space = space.unmerged
    if isinstance(space, Grid):
        return math.inf if _joins_all(policy) else _of_grid(policy, space)
    if isinstance(space, H3) and space.polygons is not None:
        angle = space.polygons.least_gap(lambda a, b: ~policy.joins(a, b))
        return angle if angle == math.inf else _rounded_down(space.least_metres(angle) - _H3_SLACK)
    return None


def least_radius(space: Any, covers: float) -> Fraction:
    """The radius, in answer units, of the smallest policy that covers places up to ``covers`` metres apart.

    Of the radii with the same edges it is the shortest decimal.

    Raises InvalidInput where the states are no cells of a map, and for a distance that reaches round the earth.
    """
    if isinstance(space, Grid):
        return _of_cells(space, covers)
    if isinstance(space, H3) and space.polygons is not None:
        return _of_polygons(space, covers)
    got = "H3 cells without the h3 package" if isinstance(space, H3) else "states that are no cells of a map"
    raise InvalidInput("covers", f"a distance for {got}", "cells of a map; r, in answer units, elsewhere")


def _joins_all(policy: PolicyGraph) -> bool:
    """True if it is seen at once that every two states are joined."""
    n = policy.n_states
    if isinstance(policy, Union):
        return any(map(_joins_all, policy.parts))
    if isinstance(policy, Listed):
        return len(policy.listed) == n * (n - 1) // 2
    return isinstance(policy, CliqueGraph) and bool((np.diff(policy.indptr) == n).any())


def _of_grid(policy: PolicyGraph, grid: Grid) -> float:
    offsets = _own_offsets(policy, grid)
    checked = 0
    for gap, offset in grid.offsets_by_gap():
        if offsets is not None and offset in offsets:
            continue
        a, b = grid.pairs_at(offset)
        checked += len(a)
        apart = len(a) > 0 and (offsets is not None or not policy.joins(a, b).all())
        if apart or checked > _MOST_PAIRS:
            return min(gap, grid.around_the_earth)
    return math.inf


def _own_offsets(policy: PolicyGraph, grid: Grid) -> set[tuple[int, int]] | None:
    """The offsets whose pairs of cells are joined, all of them, where the policy is made of offsets; else None."""
    if isinstance(policy, Offsets) and policy._is_own(grid.lattice, Constraint.of(None, grid.n_states)):
        return {(columns, rows) for columns, rows in policy.cells.offsets.tolist()}
    return None


def _of_cells(grid: Grid, covers: float) -> Fraction:
    if covers > grid.around_the_earth:
        got = f"{covers:g} m on a map whose sides are {grid.around_the_earth:.0f} m apart round the earth"
        raise InvalidInput("covers", got, "no more than that, or the complete policy")
    near = [offset for gap, offset in _nearer(grid, covers)]
    farthest = _farthest_answers(grid, near) if len(grid.merges) else _farthest_cells(grid, near)
    longer = next(square for square in range(farthest + 1, 2 * farthest + 3) if _is_two_squares(square))
    pitch = grid.frame.exact_pitch[0] ** 2
    return _shortest_root((farthest or Fraction(1, 4)) * pitch, longer * pitch)


def _farthest_cells(grid: Grid, offsets: list[tuple[int, int]]) -> int:
    """The square of the longest of these offsets that two cells have, in cells."""
    by_length = sorted(offsets, key=_square, reverse=True)
    return next((_square(offset) for offset in by_length if len(grid.pairs_at(offset)[0])), 0)


def _farthest_answers(grid: Grid, offsets: list[tuple[int, int]]) -> int:
    """The square of the longest difference between answers of cells with these offsets, in cells.

    A merged cell stays where it is and is answered from elsewhere.
    """
    farthest = 0
    for offset in offsets:
        a, b = grid.unmerged.pairs_at(offset)
        squares = ((grid.lattice[a] - grid.lattice[b]) ** 2).sum(axis=1)
        farthest = max(farthest, int(squares.max(initial=0)))
    return farthest


def _nearer(grid: Grid, covers: float) -> Iterator[tuple[float, tuple[int, int]]]:
    for gap, offset in grid.unmerged.offsets_by_gap():
        if gap >= covers:
            return
        yield gap, offset


def _square(offset: tuple[int, int]) -> int:
    return offset[0] ** 2 + offset[1] ** 2


def _is_two_squares(number: int) -> bool:
    return any(math.isqrt(number - i * i) ** 2 == number - i * i for i in range(math.isqrt(number) + 1))


def _of_polygons(space: H3, covers: float) -> Fraction:
    from scipy.spatial import KDTree

    assert space.polygons is not None
    needed = covers + 2 * _H3_SLACK
    more = needed / _LEAST_EARTH_RADIUS
    a, b = space.polygons.nearer(needed * more / space.least_metres(more))
    answers = space.answers if space.is_lattice else space.raw_answers
    farthest = float(np.linalg.norm(answers[a] - answers[b], axis=1).max(initial=0.0))
    if farthest == 0:
        return _shortest_root(Fraction(covers) ** 2 / 4, Fraction(covers) ** 2)
    pairs = KDTree(answers).query_pairs(farthest * 1.02, output_type="ndarray")
    lengths = np.linalg.norm(answers[pairs[:, 0]] - answers[pairs[:, 1]], axis=1)
    low = farthest * (1 + _SAME_DISTANCE)
    high = float(lengths[lengths > low * (1 + 2 * _SAME_DISTANCE)].min(initial=farthest * 1.02))
    return _shortest_root(Fraction(low) ** 2, Fraction(high * (1 - _SAME_DISTANCE)) ** 2)


def _shortest_root(low: Fraction | int, high: Fraction | int) -> Fraction:
    """The number with the fewest decimal digits, and of those the least, whose square lies in [low, high)."""
    magnitude = math.floor(math.log10(float(low)) / 2)
    for digits in range(400):
        step = Fraction(10) ** (magnitude - digits)
        scaled = math.ceil(Fraction(low) / step**2)
        root = (math.isqrt(scaled - 1) + 1) * step
        if root**2 < high:
            return root
    raise AssertionError("no decimal between two different numbers")


def _rounded_down(metres: float) -> float:
    return max(0.0, math.floor(metres * 1000) / 1000)


#: Squared distances of pairs of states (m,), (m,): integers, or floats.
_Squares: TypeAlias = Callable[[IntArray, IntArray], NDArray[Any]]
#: A tree's float distances are taken to be wrong by at most this share, and this share of the whole span.
_SLACK_OF_SPAN = 2.0**-48
_CANDIDATES_AT_ONCE = 2**20


@registered
class Knn(Listed):
    """The policy of every state and its k nearest others: k, and a hash of the answers."""

    kind: ClassVar[str] = "knn"

    def __init__(self, listed: IntArray, n_states: int, k: int, answers_hash: str) -> None:
        super().__init__(n_states)
        self.listed = read_only(listed)
        self.k = k
        self.answers_hash = answers_hash

    def describe(self) -> dict[str, Any]:
        # The answers are the space's to keep; their hash says whether a space has the same.
        return {"kind": self.kind, "n_states": self.n_states, "k": self.k, "answers": self.answers_hash}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        if space is None:
            raise InvalidInput("space", None, "the space of the knn policy")
        built = knn(space, description["k"])
        if built.describe() != description:
            answers, expected = built.answers_hash, str(description.get("answers"))
            raise InvalidInput("space", f"answers with hash {answers[:16]}", expected[:16])
        return built


def knn(space: Any, k: int) -> Knn:
    """The policy in which every state is a neighbour of its ``k`` nearest other states, by distance of answers.

    All states as near as the k-th are neighbours too, so the order of states decides nothing. Two states are neighbours
    where either is near the other: a lonely state is the neighbour of states that have k nearer ones.

    ``space`` : a StateSpace, whose answers count as they were given, or integers (N, d). States with equal answers are
    at distance 0. Lattice points are compared exactly, the pitch meaning the decimals it prints as; other answers in
    floats, where distances that differ by a share of 1e-12 are equal.

    >>> from dphmm import policy
    >>> policy.knn([0, 1, 3, 9], 1).edges().tolist()
    [[0, 1], [1, 2], [2, 3]]

    Raises InvalidInput for k that is no whole number from 1 to N - 1, and for more than 50,000,000 pairs.
    """

    if isinstance(space, StateSpace) and space.has_labels:
        raise InvalidInput("space", "labels, which have no distances", "policy.complete, .categorical or .from_edges")
    if isinstance(space, StateSpace) and not space.is_lattice:
        answers = space.raw_answers
        return _built(k, answers, _float_squares(answers), floats_hash(answers))
    points, frame = lattice_answers(space)
    metric = LatticeDistance.of(frame.exact_pitch)
    near_origin = points - points.min(axis=0)
    scaled = near_origin * np.array([float(w) for w in metric.weights])

    def squares(a: IntArray, b: IntArray) -> NDArray[Any]:
        return np.asarray(metric.squares(points[b] - points[a]))

    return _built(k, scaled, squares, lattice_hash(points, frame.exact_pitch))


def _built(k: int, coordinates: FloatArray, squares: _Squares, answers_hash: str) -> Knn:
    """The policy of points (N, d) whose distances are nearly those of ``coordinates``, and exactly ``squares``."""
    n = len(coordinates)
    if n == 1:
        raise InvalidInput("space", "one state", "two or more: every state has a nearest other one")
    k = whole(k, "k", 1, n - 1)
    none = np.zeros(0, dtype=np.int64)
    nearest = [_nearest(states, other, squares(states, other), k) for states, other in _candidates(coordinates, k)]
    a, b = (np.concatenate([none, *ends]) for ends in zip(*nearest, strict=True))
    return Knn(sorted_edges(a, b), n, k, answers_hash)


def _candidates(coordinates: FloatArray, k: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs (state, other), the state itself included: at least all as near as the k-th other, state by state."""
    from scipy.spatial import KDTree

    placed = _scaled(coordinates)
    tree = KDTree(placed)
    # Of all states, itself among them at distance 0, the k-th other is the last of k + 1.
    farthest = np.atleast_2d(tree.query(placed, k=[k + 1])[0]).reshape(-1)
    reach = farthest * (1 + _SLACK) + float(placed.max()) * _SLACK_OF_SPAN
    counts = tree.query_ball_point(placed, reach, return_length=True)
    refuse_too_many(int(counts.sum()) - len(placed), "k", "a smaller k, or states with fewer equal distances")
    for states in _runs(counts):
        near = tree.query_ball_point(placed[states], reach[states])
        lengths = np.array([len(row) for row in near], dtype=np.int64)
        others = np.fromiter(chain.from_iterable(near), dtype=np.int64, count=int(lengths.sum()))
        yield np.repeat(states, lengths), others


def _runs(counts: IntArray) -> Iterator[IntArray]:
    """All states in order, in runs of not too many candidates together."""
    run = np.cumsum(counts) // _CANDIDATES_AT_ONCE
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    yield from np.split(np.arange(len(counts), dtype=np.int64), starts[1:])


def _nearest(own: IntArray, other: IntArray, squares: NDArray[Any], k: int) -> tuple[IntArray, IntArray]:
    """The candidates that are as near as the k-th other of their state."""
    # Integers beyond 64 bits are compared by their ranks.
    values = np.unique(squares, return_inverse=True)[1] if squares.dtype == object else squares
    order = np.lexsort((values, own))
    starts = np.searchsorted(own, own)
    limits = values[order][starts + k]
    if values.dtype.kind == "f":
        limits = limits * (1 + DISTANCE_TOLERANCE) ** 2
    near = values <= limits
    return own[near], other[near]


def _scaled(coordinates: FloatArray) -> FloatArray:
    """The points from their least corner, by a power of two within 0..1, so that no square overflows."""
    placed = coordinates - coordinates.min(axis=0)
    _, exponent = math.frexp(float(placed.max()))
    return np.asarray(np.ldexp(placed, -exponent), dtype=np.float64)


def _float_squares(answers: FloatArray) -> _Squares:
    placed = _scaled(answers)

    def squares(a: IntArray, b: IntArray) -> NDArray[Any]:
        return np.asarray(((placed[b] - placed[a]) ** 2).sum(axis=1))

    return squares
