"""Questions about a graph on lattice points whose edges are all pairs that lie one of some offsets apart.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm.policy._points import Cells, hull_points
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import (
    PolicyGraph,
    projected,
    read_only,
    refuse_too_many,
    sorted_edges,
    symmetric,
)
from dphmm.types import BoolArray, IntArray

#: Testing offsets one by one may cost this many look-ups; beyond it one Fourier transform finds all of them.
_LOOKUPS = 2**26
_LARGEST_TRANSFORM = 2**25


@dataclass(frozen=True)
class _Possible:
    """Per cell, whether it holds a possible state, and the least and largest surrogates of those it holds."""

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
        own = np.flatnonzero(active)
        best = max((high[c] - low[c], int(c), int(c)) for c in own)
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
        found = [sorted_edges(a, b) for a, b in self._state_pairs(within)]
        edges = np.concatenate([np.zeros((0, 2), dtype=np.int64), *found])
        return sorted_edges(edges[:, 0], edges[:, 1])

    def _around(self, states: IntArray) -> IntArray:
        cells = self.cells
        own = np.unique(cells.cell_of[states])
        beside = [cells.beside(own, sign * int(delta)) for delta in cells.deltas for sign in (1, -1)]
        all_cells = np.unique(np.concatenate([own, *beside]))
        return cells.states_in(all_cells[all_cells >= 0])[0]

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        # Axes are padded so that no other difference of two points has an offset's linear step.
        steps = self.cells.linear[self.cells.cell_of[a]] - self.cells.linear[self.cells.cell_of[b]]
        found: BoolArray = np.isin(np.abs(steps), np.append(np.abs(self.cells.deltas), 0))
        return found

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
        found, rows = _kernels.columns.differences_of_cells(
            *where, within.support, within.surrogate, within.plan_states, lattice
        )
        return rows if found else None

    def _is_own(self, lattice: IntArray, within: Constraint) -> bool:
        """Whether differences of answers are the offsets themselves: the graph's own points, perhaps translated."""
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
        found = self.cells.offsets[near][self._occur(near, active)]
        return found if found.shape[1] == 2 else symmetric(found)

    def _occur(self, near: BoolArray, active: BoolArray) -> BoolArray:
        """Which of the offsets that are ``near`` enough lie between active cells."""
        cells = self.cells
        if np.count_nonzero(active) * np.count_nonzero(near) > _LOOKUPS:
            points = cells.points[active]
            if int(np.prod(2.0 * np.ptp(points, axis=0) + 1)) <= _LARGEST_TRANSFORM:
                return _autocorrelated(points, cells.offsets[near])
        return _kernels.policy.occurring(cells.linear, active, cells.deltas[near], cells.table)

    def _cell_pairs(self, active: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Pairs of different active cells, offset by offset; only offsets that occur."""
        own = np.flatnonzero(active)
        for delta in self.cells.deltas:
            other = self.cells.beside(own, int(delta))
            both = other >= 0
            both[both] = active[other[both]]
            if both.any():
                yield own[both], other[both]

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
    """Which offsets lie between two of the points: where their autocorrelation, a count of pairs, is not 0.

    The counts are integers below 2**25 and the transform's error is far below 1/2, so rounding decides
    exactly.
    """
    from scipy.fft import irfftn, next_fast_len, rfftn

    shape = tuple(next_fast_len(2 * int(side) + 1, real=True) for side in np.ptp(points, axis=0))
    mask = np.zeros(shape)
    mask[tuple((points - points.min(axis=0)).T)] = 1.0
    transform = rfftn(mask)
    pairs = irfftn(transform * transform.conj(), s=shape)
    found: BoolArray = pairs[tuple((offsets % np.array(shape)).T)] > 0.5
    return found
