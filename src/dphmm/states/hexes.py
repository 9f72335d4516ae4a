"""Hexagonal cells of Uber's H3 index (https://h3geo.org), an optional extra: ``pip install dphmm[h3]``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.states.lattice import snap
from dphmm.states.maps import LARGEST_LATITUDE, MapSpace, Polygons, Projection, as_places, least_metres_north
from dphmm.states.space import Description, registered
from dphmm.types import FloatArray, IntArray

#: Default pitch, as a share of the mean edge of a cell of the resolution.
_PITCH_SHARE = 0.01
_CELL_NAME = re.compile("8[0-9a-f]{14}")
#: Base cells are 0 to 121; of these have five sides, and their cells no first digit 1 (h3geo.org, H3 Indexing).
_BASE_CELLS = 122
#: Most cells over a box. Points over it lie closer than edges, in this share of one; that of resolution 0, in metres.
MOST_OVER, _SPACING, _EDGE = 3_000, 0.4, 1_281_256.0
_PENTAGONS = frozenset({4, 14, 24, 38, 49, 58, 63, 72, 83, 97, 107, 117})


@registered
class H3(MapSpace):
    """The H3 cells that cover some public places, in the order of their numbers; named by their hex strings.

    Answers are cell centres in metres east and north of the middle of the cover (N, 2), in the same
    projection as a Grid. The default pitch is 1 % of the mean edge of the resolution, to two digits: it
    depends on nothing else.
    """

    kind: ClassVar[str] = "h3"

    #: H3 cell numbers uint64 (N,), increasing.
    cells: NDArray[np.uint64]
    resolution: int

    def __init__(self, lat: ArrayLike, lon: ArrayLike, resolution: int = 8, pitch: ArrayLike | None = None) -> None:
        h3 = _h3()
        self.resolution = _check_resolution(resolution)
        latitudes, longitudes, _ = as_places(lat, lon)
        if not latitudes.size:
            raise InvalidInput("lat", "no places", "at least 1")
        if not (np.abs(latitudes) <= LARGEST_LATITUDE).all() or not np.isfinite(longitudes).all():
            raise InvalidInput("lat, lon", "a place without a cell", "finite degrees, latitude within 89.9")
        self.cells = np.unique(_cells_of(h3, latitudes.ravel(), longitudes.ravel(), self.resolution))
        centres = np.array([h3.cell_to_latlng(int(cell)) for cell in self.cells])
        self.projection = Projection.about_the_middle(centres[:, 0], centres[:, 1])
        raw = self.projection.to_metres(centres[:, 0], centres[:, 1])
        lattice, frame = snap(raw, _default_pitch(h3, self.resolution) if pitch is None else pitch)
        self._place(lattice, frame, raw, None)

    @classmethod
    def covering(cls, lat: ArrayLike, lon: ArrayLike, resolution: int = 8, pitch: ArrayLike | None = None) -> H3:
        """The distinct cells of a resolution (0 to 15) that contain the given places, which must be public.

        ``pitch`` in metres. Raises InvalidInput without the h3 package, for no places and for bad ones.
        """
        return cls(lat, lon, resolution, pitch)

    @classmethod
    def over(cls, west: float, south: float, east: float, north: float, resolution: int = 8) -> H3:
        """The cells of a resolution (0 to 15) over a box in degrees: those of points laid closely over it.

        ``west`` above ``east`` is a box across the antimeridian. Raises InvalidInput as `covering`, and for a box of
        more than `MOST_OVER` cells.
        """
        metres = _SPACING * _EDGE / 7.0 ** (min(max(resolution, 0), 15) / 2)
        lats = _points(south, north, metres / 111_000.0)
        widest = float(np.cos(np.radians(0.0 if south < 0 < north else min(abs(south), abs(north)))))
        last = east if east > west else east + 360.0
        lons = _points(west, last, metres / (111_400.0 * max(widest, 1e-3)))
        # Some 16 points fall into a cell.
        few = len(lats) * len(lons) <= 40 * MOST_OVER
        lat, lon = np.meshgrid(lats, (lons + 180.0) % 360.0 - 180.0, indexing="ij") if few else (lats, lats)
        space = cls.covering(lat.ravel(), lon.ravel(), resolution) if few else None
        if space is None or space.n_states > MOST_OVER:
            fault = f"{resolution}, with more than {MOST_OVER} cells in the box"
            raise InvalidInput("resolution", fault, "a coarser one, or a smaller box")
        return space

    def _default_names(self) -> tuple[str, ...]:
        return tuple(f"{int(cell):x}" for cell in self.cells)

    def well_formed(self, name: str) -> bool:
        """True if a text is the index of an H3 cell of this resolution, anywhere on earth, as H3 writes it."""
        return _CELL_NAME.fullmatch(name) is not None and _is_cell(int(name, 16), self.resolution)

    _names_follow_lattice: ClassVar[bool] = True  # from the cells, that is, which a subset carries

    def _locate(self, lat: FloatArray, lon: FloatArray) -> IntArray:
        cells = _cells_of(_h3(), lat.ravel(), lon.ravel(), self.resolution)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where(self.cells[at] == cells, at, -1).reshape(lat.shape)

    def _share_with(self, part: Self, kept: IntArray) -> None:
        super()._share_with(part, kept)
        part.cells, part.resolution = self.cells[kept], self.resolution

    @cached_property
    def corners(self) -> tuple[FloatArray, ...] | None:
        """The corners (k, 2) of every cell in order, in metres from its own answer.

        Six, five of a pentagon, more where a cell lies across an edge of the icosahedron.

        None without the h3 package, and for a file whose cells are not those of its answers.
        """
        if self._centres is None or self._rings is None:
            return None
        edge = _h3().average_hexagon_edge_length(self.resolution, unit="m")
        # A cell is drawn around its answer; where that was moved by much, as far from it as it is.
        near = (np.abs(self._centres - self.own_answers) <= edge / 50).all()
        middles = self._centres if near else self.own_answers
        return tuple(self.projection.to_metres(*ring.T) - at for ring, at in zip(self._rings, middles, strict=True))

    @cached_property
    def outlines(self) -> tuple[FloatArray, ...] | None:
        """The corners (k, 2) of every cell where it lies, in metres of the map; None where `corners` is.

        Cells that touch have the same corners, whatever their answers were moved to.
        """
        if self._rings is None:
            return None
        return tuple(np.asarray(self.projection.to_metres(*ring.T)) for ring in self._rings)

    @cached_property
    def polygons(self) -> Polygons | None:
        """The cells as polygons of the sphere; None where `corners` is."""
        return None if self._rings is None else Polygons(self._rings)

    def least_metres(self, angle: float) -> float:
        """The least distance in metres on the ground between two places of cells that are ``angle`` radians apart."""
        assert self._rings is not None
        latitudes = np.concatenate([ring[:, 0] for ring in self._rings])
        lowest, highest = float(latitudes.min()), float(latitudes.max())
        nearest = 0.0 if lowest < 0 < highest else min(abs(lowest), abs(highest))
        # No shortest way leaves the cells' latitudes by as much as its own length.
        return angle * math.degrees(least_metres_north(max(0.0, nearest - 2 * math.degrees(angle))))

    @cached_property
    def _rings(self) -> tuple[FloatArray, ...] | None:
        """The corners (k, 2) of every cell in degrees."""
        if self._centres is None:
            return None
        h3 = _h3()
        return tuple(np.array(h3.cell_to_boundary(cell)) for cell in self.cells.tolist())

    @cached_property
    def _centres(self) -> FloatArray | None:
        """The centres (N, 2) of the cells in metres; None without h3, and where they are not those of the answers."""
        try:
            h3 = _h3()
        except InvalidInput:
            return None
        cells = self.cells.tolist()
        if not all(h3.is_valid_cell(cell) and h3.get_resolution(cell) == self.resolution for cell in cells):
            return None
        centres = self.projection.to_metres(*np.array([h3.cell_to_latlng(cell) for cell in cells]).T)
        edge = h3.average_hexagon_edge_length(self.resolution, unit="m")
        return centres if (np.abs(centres - self.unmerged.raw_answers) <= edge).all() else None

    def describe(self) -> Description:
        """The cells, their centres and the projection: enough to restore without the h3 package."""
        meta, arrays = super().describe()
        place = self.projection
        meta |= {"resolution": self.resolution, "latitude": place.south, "longitude": place.west}
        return meta, arrays | {"cells": self.cells}

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = super()._restore({k: v for k, v in meta.items() if k != "names"}, arrays)
        latitude, longitude = float(meta["latitude"]), float(meta["longitude"])
        space.projection = Projection.about(latitude, longitude, latitude, longitude)
        space.resolution = _check_resolution(meta["resolution"])
        space.cells = arrays["cells"]
        increasing = space.cells.dtype == np.uint64 and (space.cells[:-1] < space.cells[1:]).all()
        if not increasing or space.cells.shape != (space.n_states,):
            raise InvalidInput("cells", f"{space.cells.dtype} {space.cells.shape}", "increasing uint64 (N,)")
        return space


def _points(low: float, high: float, spacing: float) -> FloatArray:
    count = min(int(np.ceil((high - low) / spacing)) + 1, 10**6)
    return np.linspace(low, high, max(count, 2))


def _h3() -> ModuleType:
    try:
        import h3.api.basic_int as h3
    except ImportError:
        raise InvalidInput("H3", "no h3 package", "it installed: pip install 'dphmm[h3]'") from None
    module: ModuleType = h3
    return module


def _check_resolution(resolution: object) -> int:
    whole = isinstance(resolution, (int, np.integer)) and not isinstance(resolution, bool)
    if not whole or not 0 <= int(resolution) <= 15:  # type: ignore[call-overload]
        raise InvalidInput("resolution", resolution, "an integer from 0 to 15")
    return int(resolution)  # type: ignore[call-overload, no-any-return]


def _is_cell(index: int, resolution: int) -> bool:
    """True if 64 bits are a cell of a resolution: its base cell, then a digit for each resolution, 7 for those beyond.

    By the bits alone: models of H3 cells are used without the h3 package too.
    """
    base = index >> 45 & 127
    digits = [index >> 3 * (15 - level) & 7 for level in range(1, 16)]
    first = next((digit for digit in digits[:resolution] if digit), 0)
    return (
        index >> 52 & 15 == resolution
        and base < _BASE_CELLS
        and 7 not in digits[:resolution]
        and all(digit == 7 for digit in digits[resolution:])
        and not (base in _PENTAGONS and first == 1)
    )


def _cells_of(h3: ModuleType, lat: FloatArray, lon: FloatArray, resolution: int) -> NDArray[np.uint64]:
    # H3 is called once per place, so repeated places are looked up once.
    places, inverse = np.unique(lat + 1j * lon, return_inverse=True)
    cells = (h3.latlng_to_cell(p.real, p.imag, resolution) for p in places.tolist())
    return np.fromiter(cells, np.uint64, len(places))[inverse]


def _default_pitch(h3: ModuleType, resolution: int) -> float:
    edge = h3.average_hexagon_edge_length(resolution, unit="m")
    return float(f"{_PITCH_SHARE * edge:.2g}")
