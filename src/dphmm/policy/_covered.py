"""How far apart two places may be and still be hidden from each other, wherever on the map they lie.

A policy joins cells; people are at places. Two places are hidden from each other where they lie in one cell, or in
cells that an edge joins.

Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.policy._cliques import CliqueGraph
from dphmm.policy._edges import Listed
from dphmm.policy._offsets import Offsets
from dphmm.policy._union import Union
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import MapSpace

#: After so many pairs of cells of a grid the distance that is covered for certain by then is taken.
_MOST_PAIRS = 2 * 10**9
#: H3's own geometry is in floats: polygons are taken to be this much nearer to each other, in metres.
_H3_SLACK = 2e-3
_LEAST_EARTH_RADIUS = 6.3e6
#: Distances of H3 answers that differ by less, as a share, count as one.
_SAME_DISTANCE = 1e-8


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
    came = "H3 cells without the h3 package" if isinstance(space, H3) else "states that are no cells of a map"
    raise InvalidInput("covers", f"a distance for {came}", "cells of a map; r, in answer units, elsewhere")


def _joins_all(policy: PolicyGraph) -> bool:
    """Whether it is seen at once that every two states are joined."""
    n = policy.n_states
    if isinstance(policy, Union):
        return any(map(_joins_all, policy.parts))
    if isinstance(policy, Listed):
        return len(policy.listed) == n * (n - 1) // 2
    return isinstance(policy, CliqueGraph) and bool((np.diff(policy.indptr) == n).any())


def _of_grid(policy: PolicyGraph, grid: Grid) -> float:
    own = _own_offsets(policy, grid)
    checked = 0
    for gap, offset in grid.offsets_by_gap():
        if own is not None and offset in own:
            continue
        a, b = grid.pairs_at(offset)
        checked += len(a)
        apart = len(a) > 0 and (own is not None or not policy.joins(a, b).all())
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
        came = f"{covers:g} m on a map whose sides are {grid.around_the_earth:.0f} m apart round the earth"
        raise InvalidInput("covers", came, "no more than that, or the complete policy")
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
