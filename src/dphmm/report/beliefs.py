"""A reader's belief at each step, as the smallest sets of cells that hold half, 80 % and 95 % of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.space import StateSpace
from dphmm.states.zones import Zones
from dphmm.types import BoolArray, FloatArray, IntArray

#: Shares of the belief, the innermost set last: a cell of level 3 lies in the smallest set that holds half of it.
SHARES = (0.95, 0.80, 0.50)
#: More cells than these are drawn four as one, until they fit.
MOST_CELLS = 2500
#: From so many times as far as its places are from its middle on, the mean distance of a cell is told by its middle and
#: by how wide it is.
_FAR = 3.0
#: Of so rare a state its middle stands for all places, however near; so many distances are taken together.
_NOTHING, _TOGETHER = 1e-12, 2**20
#: A share is reached although the sum of floats is a little below it.
_ROUNDING = 1e-9
#: The mark that begins a run of cells of each level; its length follows in base 36, none for one cell.
_MARKS = bytes.maketrans(bytes(range(4)), b".-+=")

Levels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """The cells of a planar space as they are drawn, in answer units.

    ``of`` (N,): the number of each state's cell; ``rings``: the corners of each. A grid's cells are numbered row by row
    from the south-west, ``columns`` x ``rows`` of them with sides of ``side``; others as their states. ``joined``: the
    number of states on a side of a drawn cell; 1 unless there are too many to see.
    """

    of: IntArray
    side: float
    rings: tuple[FloatArray, ...]
    columns: int = 0
    rows: int = 0
    joined: int = 1

    @classmethod
    def of_space(cls, space: StateSpace) -> DrawnCells:
        """The cells of a grid, of H3 or zones as they are; for other answers in the plane, squares around them.

        Raises InvalidInput for zones without the shapely package.
        """
        cells, points = space.unmerged, space.own_answers[:, :2]
        if isinstance(cells, Grid):
            return cls._of_grid(cells)
        side = _spacing(points)
        if isinstance(cells, H3) and cells.outlines is not None:
            rings = cells.outlines
        elif isinstance(cells, Zones):
            rings = cells.rings
        else:
            square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * side / 2
            rings = tuple(point + square for point in points)
        return cls(np.arange(len(points)), side, rings)

    @classmethod
    def _of_grid(cls, grid: Grid) -> DrawnCells:
        points, joined = grid.own_answers, 1
        low = points.min(axis=0) - grid.cell / 2
        at = np.rint((points - low) / grid.cell - 0.5).astype(np.int64)
        while np.prod(at.max(axis=0) // joined + 1) > MOST_CELLS:
            joined *= 2
        column, row = (at // joined).T
        columns, rows, side = int(column.max()) + 1, int(row.max()) + 1, grid.cell * joined
        square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        rings = (low + side * (np.array([column, row]) + square) for row in range(rows) for column in range(columns))
        return cls(row * columns + column, side, tuple(rings), columns, rows, joined)

    def __len__(self) -> int:
        return len(self.rings)

    @cached_property
    def low(self) -> FloatArray:
        """The south-west corner of all cells."""
        return np.asarray(np.min([ring.min(axis=0) for ring in self.rings], axis=0))

    @cached_property
    def high(self) -> FloatArray:
        """The north-east corner of all cells."""
        return np.asarray(np.max([ring.max(axis=0) for ring in self.rings], axis=0))

    @cached_property
    def at_edge(self) -> BoolArray:
        """A mask of the cells at the edge of the box of all."""
        grain = self.side * 1e-3
        return np.array([((at < self.low + grain) | (at > self.high - grain)).any() for at in self.rings])

    def gathered(self, marginals: FloatArray) -> FloatArray:
        """Probabilities of states (n, N) as those of drawn cells (n, cells)."""
        masses = np.zeros((len(marginals), len(self)))
        np.add.at(masses.T, self.of, marginals.T)
        return masses

    def outline(self, cells: IntArray) -> list[tuple[FloatArray, FloatArray]]:
        """The sides that just one of some cells has, as pairs of points."""
        sides: dict[Any, tuple[FloatArray, FloatArray]] = {}
        grain = self.side * 1e-3
        for cell in cells.tolist():
            for a, b in zip(self.rings[cell], np.roll(self.rings[cell], -1, axis=0), strict=True):
                key = frozenset([tuple(np.rint(a / grain).tolist()), tuple(np.rint(b / grain).tolist())])
                if key in sides:
                    del sides[key]
                else:
                    sides[key] = (a, b)
        return list(sides.values())


def levels(marginals: FloatArray) -> Levels:
    """The level of each cell (n, cells): 1, 2, 3 in the smallest sets of 95, 80 and 50 %; 0 in none of them.

    Ties go to the lowest number.
    """
    order = np.argsort(-marginals, axis=1, kind="stable")
    ranked = np.take_along_axis(marginals, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    inside = sum((before < share - _ROUNDING).astype(np.uint8) for share in SHARES)
    level = np.empty(marginals.shape, dtype=np.uint8)
    np.put_along_axis(level, order, np.where(ranked > 0, inside, 0).astype(np.uint8), axis=1)
    return level


def written(row: Levels) -> str:
    """The levels of cells as runs, those of the last cells of level 0 left out: "..-3=" is 0 0 1 1 1 3."""
    marks = row.tobytes().translate(_MARKS).decode().rstrip(".")
    return re.sub(r"(.)\1+", lambda run: run[1] + np.base_repr(len(run[0]), 36).lower(), marks)


def spreads(space: StateSpace, there: FloatArray, marginals: FloatArray, guesses: FloatArray) -> FloatArray:
    """The error (n,) that a reader expects of guesses (n, d): the mean distance under the belief.

    Somebody may be at any of the places ``there`` (N, k, d) of their state. For a cell that is far off, the distance to
    its middle stands for them; their spread across the line to it adds to that.
    """
    middles = there.mean(axis=1)
    shifts = there - middles[:, None]
    reach = _FAR * np.linalg.norm(shifts, axis=2).max(axis=1)
    spans = np.einsum("nki,nkj->ijn", shifts, shifts) / there.shape[1]
    errors, size = np.empty(len(guesses)), max(1, _TOGETHER // len(there))
    for first in range(0, len(guesses), size):
        weights, guess = marginals[first : first + size], guesses[first : first + size]
        off = space.distances(middles[None], guess[:, None])
        if there.shape[1] > 1:
            x, y = np.moveaxis(guess[:, None] - middles[None], 2, 0)
            squares = x**2 + y**2
            row, state = np.nonzero((squares < reach**2) & (weights > _NOTHING))
            beside = spans[0, 0] * y**2 - 2 * spans[0, 1] * x * y + spans[1, 1] * x**2
            off *= 1 + beside / (2 * np.maximum(squares, reach**2) ** 2)
            off[row, state] = _mean_distances(space, there[state], middles[state], guess[row])
        errors[first : first + size] = (weights * off).sum(axis=1)
    return errors


def _mean_distances(space: StateSpace, there: FloatArray, middles: FloatArray, guesses: FloatArray) -> FloatArray:
    """The mean distance (n,) of guesses (n, 2) from places (n, k, 2) around middles near them.

    So near a map has one scale in each direction: that halfway between the two.
    """
    half, step = (middles + guesses) / 2, float(np.abs(there[:1] - middles[:1, None]).max(initial=0.0)) or 1.0
    scales = [space.distances(half - step * way, half + step * way) / (2 * step) for way in np.eye(2)]
    gaps = (there - guesses[:, None]) * np.stack(scales, axis=-1)[:, None]
    return np.asarray(np.linalg.norm(gaps, axis=2).mean(axis=1))


def bands(answers: FloatArray, found: Levels) -> FloatArray:
    """The least and the largest answer (n, 3, 2) of the states (N,) in the sets of 95, 80 and 50 % of each step."""
    rows = []
    for row in found:
        inside = [answers[row >= level] for level in (1, 2, 3)]
        rows.append([[part.min(), part.max()] for part in inside])
    return np.array(rows).reshape(-1, len(SHARES), 2)


def _spacing(points: FloatArray) -> float:
    """A little less than the typical distance between neighbouring answers."""
    from scipy.spatial import cKDTree

    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 1.0
    return 0.8 * float(np.median(cKDTree(distinct).query(distinct, k=2)[0][:, 1]))
