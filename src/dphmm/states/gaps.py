"""How far cells of a map are from each other: the least distance between a point of one and a point of another.

Grid cells are squares of the projection; their gaps are decided in integers. H3 cells are polygons of great-circle
arcs (https://h3geo.org/docs/core-library/overview); their gaps are angles at the earth's centre.

Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.types import BoolArray, FloatArray, IntArray

#: Pairs of polygons that are measured at once.
_BLOCK = 2048
#: Chords of the unit sphere are at most 2 long.
_ACROSS = 2.0


def offsets_by_gap(columns: int, rows: int, cell: Fraction) -> Iterator[tuple[float, tuple[int, int]]]:
    """Offsets (columns, rows) between two cells of a grid, one of each ± pair, by the gap of such cells in metres.

    Two square cells (i, j) apart leave max(\\|i\\| - 1, 0) and max(\\|j\\| - 1, 0) cells between them, so their gap is
    the length of that vector. It is rounded down, exactly where it is a whole number of cells.
    """
    farthest = max(columns - 2, 0) ** 2 + max(rows - 2, 0) ** 2
    done, reach = -1, 0
    while done < farthest:
        across, up = min(reach + 1, columns - 1), min(reach + 1, rows - 1)
        i, j = (axis.ravel() for axis in np.mgrid[0 : across + 1, -up : up + 1])
        squares = np.maximum(i - 1, 0) ** 2 + np.maximum(np.abs(j) - 1, 0) ** 2
        new = ((i > 0) | (j > 0)) & (squares > done) & (squares <= reach**2)
        order = np.flatnonzero(new)[np.argsort(squares[new], kind="stable")]
        for k in order.tolist():
            yield _root_below(int(squares[k]), cell), (int(i[k]), int(j[k]))
        done, reach = reach**2, max(1, 2 * reach)


def _root_below(square: int, cell: Fraction) -> float:
    root = math.isqrt(square)
    if root * root == square:
        return float(root * cell)
    return math.nextafter(math.sqrt(square) * float(cell) * (1 - 2**-50), 0.0)


class Polygons:
    """Small polygons on the unit sphere, by their corners in degrees: rings (k, 2) of latitudes and longitudes."""

    def __init__(self, rings: Sequence[FloatArray]) -> None:
        from scipy.spatial import cKDTree

        most = max(map(len, rings))
        # A ring that ends on its last corner again and again has arcs of no length there.
        self._corners = np.stack([unit_vectors(*np.vstack([r, *[r[-1:]] * (most - len(r))]).T) for r in rings])
        middles = self._corners.mean(axis=1)
        self._middles = middles / np.linalg.norm(middles, axis=1, keepdims=True)
        self._reach = np.linalg.norm(self._corners - self._middles[:, None], axis=2).max(axis=1)
        self._tree = cKDTree(self._middles)

    def least_gap(self, chosen: Callable[[IntArray, IntArray], BoolArray]) -> float:
        """The least gap of a pair that is ``chosen``, an angle in radians; inf where none is."""
        widest = float(self._reach.max())
        reach = 4 * widest
        while True:
            a, b = self._pairs(reach)
            found = chosen(a, b)
            a, b = a[found], b[found]
            least = math.inf
            if len(a):
                apart = self._between_middles(a, b)
                near = apart - self._reach[a] - self._reach[b] <= apart.min()
                least = float(self._gaps(a[near], b[near]).min())
            # Chords are at most as long as their arcs: no pair beyond the reach has a smaller gap.
            if 2 * math.sin(min(least, math.pi) / 2) <= reach - 2 * widest or reach - 2 * widest > _ACROSS:
                return least
            reach = 2 * reach if least == math.inf else min(least, _ACROSS) + 2 * widest + 1e-9

    def nearer(self, angle: float) -> tuple[IntArray, IntArray]:
        """The pairs of polygons whose gap is less than an angle in radians."""
        chord = 2 * math.sin(min(angle, math.pi) / 2)
        a, b = self._pairs(chord + 2 * float(self._reach.max()) + 1e-12)
        near = self._gaps(a, b) < angle
        return a[near], b[near]

    def _pairs(self, chord: float) -> tuple[IntArray, IntArray]:
        found = self._tree.query_pairs(chord, output_type="ndarray").astype(np.int64)
        return found[:, 0], found[:, 1]

    def _between_middles(self, a: IntArray, b: IntArray) -> FloatArray:
        return np.asarray(np.linalg.norm(self._middles[a] - self._middles[b], axis=1))

    def _gaps(self, a: IntArray, b: IntArray) -> FloatArray:
        """Gaps (m,) in radians; polygons do not overlap, so they are nearest at a corner of one of them."""
        parts = [np.zeros(0)]
        for at in range(0, len(a), _BLOCK):
            one, other = self._corners[a[at : at + _BLOCK]], self._corners[b[at : at + _BLOCK]]
            parts.append(np.minimum(_corner_gaps(one, other), _corner_gaps(other, one)))
        return np.concatenate(parts)


def unit_vectors(lat: FloatArray, lon: FloatArray) -> FloatArray:
    """Places in degrees as points (n, 3) of the unit sphere."""
    phi, lam = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def _corner_gaps(corners: FloatArray, ring: FloatArray) -> FloatArray:
    """The least angle (m,) from a corner (m, k, 3) to a side of a ring (m, k, 3)."""
    chords = np.linalg.norm(corners[:, :, None] - ring[:, None], axis=3)
    ends = 2 * np.arcsin(np.minimum(chords / 2, 1.0)).min(axis=(1, 2))
    after = np.roll(ring, -1, axis=1)
    normal = np.cross(ring, after)
    length = np.linalg.norm(normal, axis=2, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    beside = _dots(corners, np.cross(normal, ring)) > 0, _dots(corners, np.cross(after, normal)) > 0
    feet = np.arcsin(np.minimum(np.abs(_dots(corners, normal)), 1.0))
    inside = beside[0] & beside[1]
    gaps: FloatArray = np.minimum(ends, np.where(inside, feet, math.inf).min(axis=(1, 2)))
    return gaps


def _dots(corners: FloatArray, vectors: FloatArray) -> Any:
    return np.einsum("mic,mjc->mij", corners, vectors)
