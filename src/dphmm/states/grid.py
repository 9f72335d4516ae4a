"""A square grid of cells over a box of the map."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.states.lattice import Lattice
from dphmm.states.maps import (
    LARGEST_LATITUDE,
    MapSpace,
    Projection,
    least_metres_east,
    least_metres_north,
    metres_per_degree,
    offsets_by_gap,
    parse_length,
)
from dphmm.states.space import Description, registered
from dphmm.types import FloatArray, IntArray

#: Most cells of a grid, and most by which a degree of longitude may differ from that in the middle.
MOST_CELLS = 10**7
MOST_STRETCH = 0.02
# A side this close to a whole number of cells has that many: no sliver for a rounding error.
_SLIVER = 1e-9
_LEAST_METRES_OF_A_DEGREE = 110_000.0
_CELL_NAME = re.compile("x(0|[1-9][0-9]*)y(0|[1-9][0-9]*)")


@registered
class Grid(MapSpace):
    """Square cells over a box: states row-major from the south-west, x fastest.

    Answers are cell centres in metres from the south-west corner (N, 2); the lattice is (column, row), the
    pitch the cell size and the origin half a cell. Names are "x{column}y{row}". A subset keeps its cells'
    names and places.
    """

    kind: ClassVar[str] = "grid"
    _names_follow_lattice: ClassVar[bool] = True

    west: float
    south: float
    east: float
    north: float
    #: Side of a cell, metres.
    cell: float
    columns: int
    rows: int

    def __init__(self, west: float, south: float, east: float, north: float, cell: object = 340.0) -> None:
        self._set_box(west, south, east, north, finite_number(parse_length(cell, "cell"), "cell"))
        row, column = np.divmod(np.arange(self.columns * self.rows, dtype=np.int64), self.columns)
        self._place(np.stack([column, row], axis=1), self._cell_frame(), None, None)

    @classmethod
    def from_bounds(cls, west: float, south: float, east: float, north: float, cell: object = 340.0) -> Grid:
        """The grid over a box in degrees, with cells of ``cell`` metres (or "340m", "1km").

        A box with west > east crosses the antimeridian. The projection is equirectangular about the box's
        middle latitude with WGS84 radii.

        Raises InvalidInput for an empty box, one that reaches beyond 89.9 degrees of latitude or on which the
        length of a degree of longitude differs by more than 2 % from that in the middle, and above 10**7
        cells.
        """
        return cls(west, south, east, north, cell)

    def _set_box(self, west: float, south: float, east: float, north: float, cell: float) -> None:
        corners = {"west": west, "south": south, "east": east, "north": north}
        self.west, self.south, self.east, self.north = (finite_number(value, field) for field, value in corners.items())
        _check_box(self.west, self.south, self.east, self.north)
        self.cell = cell
        middle = (self.south + self.north) / 2
        _check_stretch(self.south, self.north)
        self.projection = Projection.about(self.south, self.west, middle, self.west + self._width / 2)
        self.columns = _cells(self._width * self.projection.metres_east, cell)
        self.rows = _cells((self.north - self.south) * self.projection.metres_north, cell)
        if self.columns * self.rows > MOST_CELLS:
            fault = f"{self.columns} x {self.rows} cells"
            raise InvalidInput("cell", fault, "at most 10**7 cells; a larger cell or a smaller box")

    @property
    def _width(self) -> float:
        """Degrees of longitude across."""
        return self.east - self.west if self.east > self.west else self.east - self.west + 360.0

    def _cell_frame(self) -> Lattice:
        return Lattice(np.full(2, self.cell), np.full(2, self.cell / 2))

    def _default_names(self) -> tuple[str, ...]:
        return tuple(f"x{column}y{row}" for column, row in self.lattice.tolist())

    def well_formed(self, name: str) -> bool:
        """True if a text names a cell of some grid: x3y14, whole numbers from 0 without leading zeros."""
        return _CELL_NAME.fullmatch(name) is not None

    def _locate(self, lat: FloatArray, lon: FloatArray) -> IntArray:
        degrees_east = lon - self.west
        if not ((degrees_east >= 0) & (degrees_east < 360)).all():
            degrees_east = np.mod(degrees_east, 360.0)
        inside = (lat >= self.south) & (lat <= self.north) & (degrees_east <= self._width)
        # A point on the far edge of the last cell belongs to that cell.
        column = np.minimum(
            (degrees_east * (self.projection.metres_east / self.cell)).astype(np.int64), self.columns - 1
        )
        row = ((lat - self.south) * (self.projection.metres_north / self.cell)).astype(np.int64)
        row = np.minimum(row, self.rows - 1)
        cells = np.where(inside, row * self.columns + column, -1)
        return cells if self._state_of_cell is None else self._state_of_cell[cells]

    @cached_property
    def _state_of_cell(self) -> IntArray | None:
        """State of each cell, and -1 at the end for "outside"; None when every cell is a state."""
        if self.n_states == self.columns * self.rows:
            return None
        states = np.full(self.columns * self.rows + 1, -1, dtype=np.int64)
        cells = self.unmerged.lattice
        states[cells[:, 1] * self.columns + cells[:, 0]] = np.arange(self.n_states)
        return states

    def offsets_by_gap(self) -> Iterator[tuple[float, tuple[int, int]]]:
        """Offsets (columns, rows) between two cells, one of each ± pair, by the gap of such cells.

        With each the least distance between a point of one and a point of the other in metres of the map, rounded down.
        """
        return offsets_by_gap(self.columns, self.rows, self.frame.exact_pitch[0])

    def pairs_at(self, offset: tuple[int, int]) -> tuple[IntArray, IntArray]:
        """The states a and b (m,) whose cells are an offset (columns >= 0, rows) apart."""
        right, up = offset
        states = self._states_of_cells
        low, high = (states[: self.rows - up], states[up:]) if up >= 0 else (states[-up:], states[:up])
        a, b = low[:, : self.columns - right], high[:, right:]
        both = (a >= 0) & (b >= 0)
        return a[both], b[both]

    @property
    def around_the_earth(self) -> float:
        """Metres of the map from the box's east side on to its west side: places there are near each other too."""
        return max(0.0, (360.0 - self._width) * self.projection.metres_east)

    def on_the_ground(self, metres: float) -> float:
        """The distance of `MapSpace.on_the_ground`: the map's metres, true at its middle, are shorter elsewhere."""
        # No way of this length leaves the box by more degrees.
        beyond = metres / _LEAST_METRES_OF_A_DEGREE
        south, north = self.south - beyond, self.north + beyond
        nearest = 0.0 if south < 0 < north else min(abs(south), abs(north))
        farthest = max(abs(south), abs(north))
        if farthest >= LARGEST_LATITUDE:
            return 0.0
        shortest = min(
            1.0,
            least_metres_north(nearest) / self.projection.metres_north,
            least_metres_east(farthest) / self.projection.metres_east,
        )
        # A micrometre for the cells' borders, which are decided in floats.
        return max(0.0, math.floor((metres * shortest - 1e-6) * 1000) / 1000)

    @cached_property
    def _states_of_cells(self) -> IntArray:
        """State (rows, columns) of each cell; -1 where it is none."""
        states = self._state_of_cell
        flat = np.arange(self.n_states) if states is None else states[:-1]
        return flat.reshape(self.rows, self.columns)

    def _share_with(self, part: Self, kept: IntArray) -> None:
        part._set_box(self.west, self.south, self.east, self.north, self.cell)

    def describe(self) -> Description:
        """The box, the cell size and the cells that are states."""
        meta, arrays = super().describe()
        meta |= {"west": self.west, "south": self.south, "east": self.east, "north": self.north}
        return meta | {"cell": self.cell}, arrays

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = super()._restore({k: v for k, v in meta.items() if k != "names"}, arrays)
        cell = finite_number(parse_length(meta["cell"], "cell"), "cell")
        space._set_box(meta["west"], meta["south"], meta["east"], meta["north"], cell)
        inside = (space.lattice >= 0) & (space.lattice < [space.columns, space.rows])
        cells = space.lattice[:, 1] * space.columns + space.lattice[:, 0]
        if space.frame != space._cell_frame() or not inside.all() or (np.diff(cells) <= 0).any():
            raise InvalidInput("lattice", "cells that are not those of the box", "increasing cells of the grid")
        return space


def _check_box(west: float, south: float, east: float, north: float) -> None:
    for field, value in (("south", south), ("north", north)):
        if abs(value) > 90:
            raise InvalidInput(field, value, "a latitude; are lat and lon swapped (west,south,east,north)?")
        if abs(value) > LARGEST_LATITUDE:
            raise InvalidInput(field, value, f"at most {LARGEST_LATITUDE} degrees from the equator")
    for field, value in (("west", west), ("east", east)):
        if abs(value) > 180:
            raise InvalidInput(field, value, "a longitude from -180 to 180")
    if not south < north:
        raise InvalidInput("north", north, f"more than south, {south}")
    if west == east:
        raise InvalidInput("east", east, "another longitude than west")


def _check_stretch(south: float, north: float) -> None:
    """Refuse boxes so tall that a metre east in the middle is not one at the edge."""
    middle = metres_per_degree((south + north) / 2)[1]
    widest = 0.0 if south < 0 < north else min(abs(south), abs(north))
    narrowest = max(abs(south), abs(north))
    stretch = max(abs(metres_per_degree(lat)[1] / middle - 1) for lat in (widest, narrowest))
    if stretch > MOST_STRETCH:
        raise InvalidInput(
            "north",
            f"a box from {south} to {north}, on which a degree of longitude varies by {stretch:.1%}",
            "at most 2 %: a smaller box, or H3",
        )


def _cells(metres: float, cell: float) -> int:
    # Of more than there may be, how many does not matter.
    return max(1, math.ceil(min(metres / cell, 1e15) - _SLIVER))
