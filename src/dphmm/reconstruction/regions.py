"""Regions: sets of states by name, from a public table or GeoJSON, or blocks of neighbouring cells."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.session.plan import Plan
from dphmm.states.grid import Grid
from dphmm.states.space import FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.storage.columns import as_text
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input
from dphmm.storage.public_tables import listed_columns
from dphmm.storage.tables import column_list, to_arrow
from dphmm.types import BoolArray, IntArray

#: Regions, at most, and bytes of a GeoJSON file.
MOST_REGIONS = 1000
_LARGEST = 64_000_000
#: Cells along the side of a block of a grid, blocks along a side of other maps, and states that are a region each.
BLOCK = 5
_BLOCKS = 4
_FEW = 30
_GEOJSON = "GeoJSON: a FeatureCollection of polygons with a property name, in degrees"
#: Properties that name a polygon, the first of them that it has.
_NAMES = ("region", "name", "NAME", "id")

#: States (N,) by the name of their region, in order.
Regions = dict[str, BoolArray]


def checked_regions(regions: Any, space: StateSpace) -> Regions:
    """Regions as a user passes them: names with states, as numbers, names, or masks (N,); or what a file has.

    A pandas, polars or Arrow table has the columns state and region, a GeoDataFrame polygons, as `read_regions` has
    them. Raises InvalidInput for a region without a state, for states that there are not, and for too many regions.
    """
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
    found: Regions = {}
    for key, states in regions.items():
        name, given = _name(str(key), "regions"), np.asarray(states)
        if given.size and given.dtype.kind in "OU":
            given = space.indices_of(given)
            if (given < 0).any():
                raise InvalidInput("regions", f"{name!r}, with a name that no state has", "names of states")
        found[name] = state_mask(given, space.n_states, f"regions[{name!r}]")
        if not found[name].any():
            expected = f"state numbers from 0 to {space.n_states - 1}, or a mask"
            raise InvalidInput("regions", f"{name!r}, with no state", expected)
    return _few(found)


def read_regions(path: PathLike, space: StateSpace, field: str = "regions") -> Regions:
    """Regions from a public file: a table with columns state and region, or GeoJSON polygons by the middle of a cell.

    A state may be in several regions. Names of states that the space does not have are passed over. Raises InvalidInput
    for another file, a cell without a name, and regions without any state.

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
        return _few(_polygons(_features(path, field), space, field), field)
    states, names = listed_columns(str(path), field, ("state", "region"))
    return _few(_listed(states, names, space, field), field)


def _listed(states: Sequence[str | None], names: Sequence[str | None], space: StateSpace, field: str) -> Regions:
    """The regions of rows of a state and a region."""
    found: Regions = {}
    for number, (state, name) in enumerate(zip(states, names, strict=True), start=1):
        if not state or not name:
            raise InvalidInput(field, f"row {number} with an empty cell", "a state and a region in every row")
        place = space.index_of(state)
        if place >= 0:
            found.setdefault(_name(name, field), np.zeros(space.n_states, dtype=np.bool_))[place] = True
    if not found:
        raise InvalidInput(field, "no state of the model", f"names of states, such as {space.names[0]}")
    return found


def default_regions(space: StateSpace, plans: Sequence[Plan] = ()) -> Regions:
    """Every state where they are few or labels; else blocks of cells: 5 by 5 of a grid, 4 by 4 of the box of others.

    States that one of the plans, or the space, answers alike are in one region: that of the state that they are
    answered as.
    """
    answered_as = _answered_as(space, plans)
    if space.has_labels or space.n_states <= _FEW:
        own = np.unique(answered_as).tolist()
        return _few({space.names[state]: answered_as == state for state in own})
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


def _answered_as(space: StateSpace, plans: Sequence[Plan]) -> IntArray:
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


def _few(regions: Regions, field: str = "regions") -> Regions:
    if len(regions) > MOST_REGIONS:
        raise InvalidInput(field, f"{len(regions):,} regions", f"at most {MOST_REGIONS:,}")
    return regions


def _name(name: str, field: str) -> str:
    if not name or len(name) > LONGEST_NAME or re.search(FORBIDDEN, name):
        raise InvalidInput(
            field, "a name of a region that cannot be", f"1 to {LONGEST_NAME} characters, none of control"
        )
    return name


def _polygons(features: list[Any], space: StateSpace, field: str) -> Regions:
    places = space.to_latlon(space.own_answers)
    if places is None:
        raise InvalidInput(field, f"GeoJSON, and states of kind {space.kind}", "a table with columns state and region")
    try:
        import shapely
    except ImportError:
        raise InvalidInput(field, "a Python without shapely", "pip install 'dphmm[geo]'") from None
    points = shapely.points(places[1], places[0])
    found: Regions = {}
    for number, feature in enumerate(features, start=1):
        try:
            shape = shapely.geometry.shape(feature["geometry"])
            inside = np.asarray(shapely.intersects(shape, points), dtype=np.bool_)
            corners = shapely.get_coordinates(shape)
        except Exception:
            # Whatever is wrong with the numbers, shapely has an error of its own for it.
            raise InvalidInput(field, f"feature {number}, whose geometry cannot be read", _GEOJSON) from None
        if shape.geom_type not in ("Polygon", "MultiPolygon") or not len(corners):
            raise InvalidInput(field, f"feature {number}, which is no polygon", _GEOJSON)
        if not np.isfinite(corners).all() or (np.abs(corners) > [360, 90]).any():
            raise InvalidInput(field, f"feature {number}, whose coordinates are no degrees", _GEOJSON)
        told = feature.get("properties")
        told = told if isinstance(told, dict) else {}
        name = next((str(told[key]) for key in _NAMES if told.get(key) not in (None, "")), f"region {number}")
        if inside.any():
            name = _name(name, field)
            found[name] = found.get(name, False) | inside
    if not found:
        raise InvalidInput(field, "no polygon with the middle of a cell in it", _GEOJSON)
    return found


def _features_of(frame: Any) -> list[Any]:
    """The features of a GeoDataFrame, in degrees, with the properties that name them."""
    if frame.crs is None:
        raise InvalidInput("regions", "shapes without a CRS", "a GeoDataFrame that says its coordinates: set_crs(4326)")
    shapes = frame.geometry.to_crs(4326)
    names = {key: frame[key].astype(str).where(frame[key].notna(), "") for key in _NAMES if key in frame.columns}
    features: list[Any] = json.loads(type(frame)(names, geometry=shapes).to_json())["features"]
    return features


def _features(path: PathLike, field: str) -> list[Any]:
    file = checked_input(path, field)
    if file.stat().st_size > _LARGEST:
        raise InvalidInput(field, f"{file.stat().st_size:,} bytes", f"at most {_LARGEST:,}")
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InvalidInput(field, "a file that is no JSON", _GEOJSON) from None
    found = told.get("features") if isinstance(told, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidInput(field, "a file without features", _GEOJSON)
    return found
