"""Regions: sets of states by name, from a public table or GeoJSON, or blocks of neighbouring cells.

A region of which the model has only a part is not told as if it were whole: it stays in the regions, with the reason
why no share of it can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dphmm._checks import state_mask
from dphmm.choose.simulated import middles
from dphmm.errors import InvalidInput
from dphmm.session.plan import StepPlan
from dphmm.states.grid import Grid
from dphmm.states.space import FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.storage.columns import as_text
from dphmm.storage.csv_files import listed
from dphmm.storage.geo_files import written_features
from dphmm.storage.inputs import PathLike
from dphmm.storage.public_tables import listed_columns
from dphmm.storage.tables import column_list, to_arrow
from dphmm.types import BoolArray, IntArray

#: Regions, at most.
MOST_REGIONS = 1000
#: Cells along the side of a block of a grid, blocks along a side of other maps, and states that are a region each.
BLOCK = 5
_BLOCKS = 4
_FEW = 30
_GEOJSON = "GeoJSON: a FeatureCollection of polygons with a property name, in degrees"
#: Properties that name a polygon, the first of them that it has.
_NAMES = ("region", "name", "NAME", "id")

#: Places along each side of the box around a polygon that are looked up in the map; the share of its area that may lie
#: beyond the map: cells count by their middles, so a border may be off by part of a cell.
_ALONG = 24
_BEYOND = 0.05
#: States and regions that are named in a message.
_NAMED = 5


class Regions(dict[str, BoolArray]):
    """States (N,) by the name of their region, in order.

    ``why`` says of the regions of which the model has a part or nothing why no share of them can be told; ``notes``
    tell a user what of the regions that were given is none of the model's.
    """

    def __init__(self, regions: Mapping[str, BoolArray] | None = None) -> None:
        super().__init__(regions or {})
        self.why: dict[str, str] = {}
        self.notes: list[str] = []

    def beside(self, name: str, states: BoolArray) -> Regions:
        """These regions and one more."""
        regions = Regions({**self, name: states})
        regions.why, regions.notes = self.why, self.notes
        return regions


def checked_regions(regions: Any, space: StateSpace) -> Regions:
    """Regions as a user passes them: names with states, as numbers, names, or masks (N,); or what a file has.

    A pandas, polars or Arrow table has the columns state and region, a GeoDataFrame polygons, as `read_regions` has
    them. Raises InvalidInput for a region without a state, for states that there are not, and for too many regions.
    """
    if isinstance(regions, Regions):
        return regions
    if hasattr(regions, "geometry"):
        return _few(_polygons(_features_of(regions), space, "regions"))
    if not isinstance(regions, Mapping):
        if not hasattr(regions, "columns") and not hasattr(regions, "column_names"):
            expected = "a mapping of names to states, a table of state and region, or a GeoDataFrame of polygons"
            raise InvalidInput("regions", type(regions).__name__, expected)
        names = ("state", "region")
        if not set(names) <= set(columns := column_list(regions)):
            raise InvalidInput("regions", "columns " + listed(columns), "columns state and region")
        table = to_arrow(regions, names)
        states, named = (as_text(table.column(name), name).to_pylist() for name in names)
        return _few(_listed(states, named, space, "regions"))
    masks = Regions()
    for key, states in regions.items():
        name, members = _name(str(key), "regions"), np.asarray(states)
        if members.size and members.dtype.kind in "OU":
            members = space.indices_of(members)
            if (members < 0).any():
                raise InvalidInput("regions", f"{name!r}, with a name that no state has", "names of states")
        masks[name] = state_mask(members, space.n_states, f"regions[{name!r}]")
        if not masks[name].any():
            expected = f"state numbers from 0 to {space.n_states - 1}, or a mask"
            raise InvalidInput("regions", f"{name!r}, with no state", expected)
    return _few(masks)


def read_regions(path: PathLike, space: StateSpace, field: str = "regions") -> Regions:
    """Regions from a public file: a table with columns state and region, or GeoJSON polygons by the middle of a cell.

    A state may be in several regions. A region with names of states that the space does not have, or with a part of its
    area beyond the map, is kept with the reason (``why``) that no share of it can be told. Raises InvalidInput for
    another file, a cell without a name, and where no region has any state.

    Examples
    --------
    >>> import dphmm
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from dphmm.reconstruction.regions import read_regions
    >>> table = Path(mkdtemp()) / "regions.csv"
    >>> _ = table.write_text("state,region\\na,left\\nb,left\\nc,right\\n")
    >>> found = read_regions(table, dphmm.StateSpace([0, 1, 2], ["a", "b", "c"]))
    >>> {name: mask.tolist() for name, mask in found.items()}
    {'left': [True, True, False], 'right': [False, False, True]}
    """
    if Path(path).suffix.lower() in (".geojson", ".json"):
        return _few(_polygons(written_features(path, field, _GEOJSON), space, field), field)
    states, names = listed_columns(str(path), field, ("state", "region"))
    return _few(_listed(states, names, space, field), field)


def _listed(states: Sequence[str | None], names: Sequence[str | None], space: StateSpace, field: str) -> Regions:
    """The regions of rows of a state and a region."""
    masks, lacking, sizes = Regions(), dict[str, dict[str, None]](), dict[str, set[str]]()
    for number, (state, name) in enumerate(zip(states, names, strict=True), start=1):
        if not state or not name:
            raise InvalidInput(field, f"row {number} with an empty cell", "a state and a region in every row")
        mask = masks.setdefault(_name(name, field), np.zeros(space.n_states, dtype=np.bool_))
        sizes.setdefault(name, set()).add(state)
        place = space.index_of(state)
        if place >= 0:
            mask[place] = True
        else:
            lacking.setdefault(name, {})[state] = None
    if not any(mask.any() for mask in masks.values()):
        raise InvalidInput(field, "no state of the model", f"names of states, such as {space.names[0]}")
    masks.why = {name: _lacks(list(unknown), len(sizes[name])) for name, unknown in lacking.items()}
    unknown = list(dict.fromkeys(state for states in lacking.values() for state in states))
    if unknown:
        count = "1 name is no state" if len(unknown) == 1 else f"{len(unknown):,} names are no states"
        masks.notes.append(
            f"regions: {count} of the model: {_first(unknown)}; not answerable for it: {_first(list(lacking))}"
        )
    return masks


def _lacks(unknown: Sequence[str], size: int) -> str:
    """The reason why a region with states that the model lacks has no estimate."""
    if len(unknown) == size:
        return f"no state of the model: {_first(unknown)}; see to the spelling, or use a model that has a state of it"
    verb = "is none" if len(unknown) == 1 else "are none"
    return (
        f"{len(unknown):,} of its {size:,} states {verb} of the model's: {_first(unknown)}; "
        "see to the spelling, or leave out what the model does not have"
    )


def _first(names: Sequence[str]) -> str:
    """Names for a message, the first few, without anything that a terminal would obey."""
    legible = [re.sub(FORBIDDEN, "?", name)[:LONGEST_NAME] for name in names[:_NAMED]]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(legible) + more


def default_regions(space: StateSpace, plans: Sequence[StepPlan] = ()) -> Regions:
    """Every state where they are few or labels; else blocks of cells: 5 by 5 of a grid, 4 by 4 of the box of others.

    States that one of the plans, or the space, answers alike are in one region: that of the state that they are
    answered as.
    """
    answered_as = _answered_as(space, plans)
    if space.has_labels or space.n_states <= _FEW:
        answered = np.unique(answered_as).tolist()
        return _few({space.names[state]: answered_as == state for state in answered})
    if isinstance(space, Grid):
        blocks = space.lattice[answered_as] // BLOCK
        column, row = (BLOCK * blocks).T
        names = [f"x{x}-{x + BLOCK - 1}y{y}-{y + BLOCK - 1}" for x, y in zip(column, row, strict=True)]
    else:
        low, high = space.answers.min(axis=0), space.answers.max(axis=0)
        wide = np.where(high > low, high - low, 1.0)
        blocks = np.minimum(((space.answers[answered_as] - low) / wide * _BLOCKS).astype(np.int64), _BLOCKS - 1)
        names = ["block " + ",".join(map(str, block)) for block in blocks.tolist()]
    order = np.lexsort(blocks.T)
    every = np.array(names, dtype=object)
    return _few({name: every == name for name in dict.fromkeys(every[order].tolist())})


def _answered_as(space: StateSpace, plans: Sequence[StepPlan]) -> IntArray:
    """For every state (N,) one of those that some plan answers like it: the first that is answered as itself."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = space.n_states
    joined = [space.merges] + [
        np.column_stack([np.arange(n), plan.constraint.surrogate])[plan.constraint.surrogate != np.arange(n)]
        for plan in plans
    ]
    a, b = np.concatenate(joined).T
    _, group = connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(n, n)), directed=False)
    # The last to be written is the first of those that nothing answers as another, if there is one.
    order = np.lexsort((-np.arange(n), ~np.isin(np.arange(n), a)))[::-1]
    first = np.empty(n, dtype=np.int64)
    first[group[order]] = order
    return np.asarray(first[group])


def _few(regions: Mapping[str, BoolArray], field: str = "regions") -> Regions:
    if len(regions) > MOST_REGIONS:
        raise InvalidInput(field, f"{len(regions):,} regions", f"at most {MOST_REGIONS:,}")
    return regions if isinstance(regions, Regions) else Regions(regions)


def _name(name: str, field: str) -> str:
    if not name or len(name) > LONGEST_NAME or re.search(FORBIDDEN, name):
        raise InvalidInput(
            field, "a name of a region that cannot be", f"1 to {LONGEST_NAME} characters, none of control"
        )
    return name


def _polygons(features: list[Any], space: StateSpace, field: str) -> Regions:
    # A cell that the box of a grid cuts counts by the middle of its part in the box.
    places = space.to_latlon(middles(space) if isinstance(space.unmerged, Grid) else space.own_answers)
    if places is None:
        raise InvalidInput(field, f"GeoJSON, and states of kind {space.kind}", "a table with columns state and region")
    try:
        import shapely
    except ImportError:
        raise InvalidInput(field, "a Python without shapely", "pip install 'dphmm[geo]'") from None
    # A polygon over the antimeridian may go on beyond 180 degrees; one over Greenwich may have degrees up to 360.
    points = [shapely.points(places[1] + turn, places[0]) for turn in (-360.0, 0.0, 360.0)]
    masks, parts = Regions(), dict[str, list[_Part]]()
    for number, feature in enumerate(features, start=1):
        try:
            shape = shapely.geometry.shape(feature["geometry"])
            inside = np.any([shapely.intersects(shape, turned) for turned in points], axis=0)
            corners = shapely.get_coordinates(shape)
        except Exception:
            # Whatever is wrong with the numbers, shapely has an error of its own for it.
            raise InvalidInput(field, f"feature {number}, whose geometry cannot be read", _GEOJSON) from None
        if shape.geom_type not in ("Polygon", "MultiPolygon") or not len(corners):
            raise InvalidInput(field, f"feature {number}, which is no polygon", _GEOJSON)
        if not np.isfinite(corners).all() or (np.abs(corners) > [360, 90]).any():
            raise InvalidInput(field, f"feature {number}, whose coordinates are no degrees", _GEOJSON)
        fields = feature.get("properties")
        fields = fields if isinstance(fields, dict) else {}
        name = next((str(fields[key]) for key in _NAMES if fields.get(key) not in (None, "")), f"region {number}")
        name = _name(name, field)
        masks[name] = masks.get(name, False) | inside
        parts.setdefault(name, []).append(_part(shapely, shape, space))
    if not any(mask.any() for mask in masks.values()):
        raise InvalidInput(field, "no polygon with the middle of a cell in it", _GEOJSON)
    _tell_what_lies_beyond(masks, parts)
    return masks


class _Part(NamedTuple):
    """The area of a polygon, in square degrees, and its parts beyond the map and in gaps of the map."""

    area: float
    beyond: float
    gaps: float


def _part(shapely: ModuleType, shape: Any, space: Any) -> _Part:
    """The area of a polygon, and its parts beyond the map and in gaps, by places of it, evenly apart.

    Beyond the map are places in no state that lie outside the box around the middles of all states; other places in no
    state are gaps: cells that a fit left out.
    """
    shapely.prepare(shape)
    west, south, east, north = shape.bounds
    steps = (np.arange(_ALONG) + 0.5) / _ALONG
    lon, lat = (axis.ravel() for axis in np.meshgrid(west + steps * (east - west), south + steps * (north - south)))
    inside = shapely.contains_xy(shape, lon, lat)
    if not inside.any():
        middle = shapely.point_on_surface(shape)
        lon, lat, inside = np.array([middle.x]), np.array([middle.y]), np.array([True])
    lon, lat = lon[inside], lat[inside]
    stateless = space.locate(lat, lon) < 0
    metres, middles = space.projection.to_metres(lat, lon), space.own_answers
    outside = ((metres < middles.min(axis=0)) | (metres > middles.max(axis=0))).any(axis=1)
    return _Part(shape.area, shape.area * (stateless & outside).mean(), shape.area * (stateless & ~outside).mean())


def _tell_what_lies_beyond(found: Regions, parts: Mapping[str, Sequence[_Part]]) -> None:
    """Say of regions of polygons why no share of them can be told, and where gaps of the map lie in others."""
    gaps = []
    for name, mask in found.items():
        area, beyond, gap = (sum(column) for column in zip(*parts[name], strict=True))
        if area and beyond / area > _BEYOND:
            found.why[name] = _lies_beyond(beyond / area)
        elif not mask.any():
            found.why[name] = (
                "the middle of no cell of the model is in it; a larger polygon, or a model of smaller cells"
            )
        elif area and gap / area > _BEYOND:
            gaps.append(f"{name} {gap / area:.0%}")
    if found.why:
        found.notes.append(f"regions: not answerable, as the map does not have them whole: {_first(list(found.why))}")
    if gaps:
        found.notes.append(
            f"regions: parts in no state of the model, whose visits count at the nearest state: {_first(gaps)}"
        )


def _lies_beyond(share: float) -> str:
    if share > 1 - 1e-9:
        return "beyond the map of the model; are latitude and longitude swapped?"
    return (
        f"{share:.0%} of its area lies beyond the map of the model: cut it to the map, or use a model of a larger map"
    )


def _features_of(frame: Any) -> list[Any]:
    """The features of a GeoDataFrame, in degrees, with the properties that name them."""
    if frame.crs is None:
        raise InvalidInput("regions", "shapes without a CRS", "a GeoDataFrame that says its coordinates: set_crs(4326)")
    shapes = frame.geometry.to_crs(4326)
    names = {key: frame[key].astype(str).where(frame[key].notna(), "") for key in _NAMES if key in frame.columns}
    features: list[Any] = json.loads(type(frame)(names, geometry=shapes).to_json())["features"]
    return features
