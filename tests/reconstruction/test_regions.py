"""Regions from tables, from GeoJSON, from a mapping, and by default; hostile files are refused in one line.

Fails for a cell in another region than its middle is in, for a file that is believed in part, for a region that the
model has in part and that is told as if it were whole, and for a message that does not say what is wrong.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.reconstruction import regions as module
from dphmm.reconstruction.regions import checked_regions, default_regions, read_regions

GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.14, 50.09, "1km")


def square(west, south, east, north, **properties):
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def written(folder, *features):
    path = folder / "districts.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def test_polygons_have_the_cells_whose_middle_is_inside(tmp_path):
    pytest.importorskip("shapely")
    path = written(tmp_path, square(10.0, 50.0, 10.07, 50.2, name="west"), square(10.07, 49.0, 11.0, 51.0))
    found = read_regions(path, GRID)
    _lat, lon = GRID.to_latlon(GRID.answers)
    assert list(found) == ["west", "region 2"]
    assert np.array_equal(found["west"], lon <= 10.07) and np.array_equal(found["region 2"], lon >= 10.07)


def test_the_box_of_a_grid_has_all_of_its_cells(tmp_path):
    """Cells that the box cuts, whose middles lie beyond it, count by their parts in it."""
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.113, 50.076, 1000.0)
    lat, lon = grid.to_latlon(grid.own_answers)
    assert (lat > 50.076).any() or (lon > 10.113).any()
    found = read_regions(written(tmp_path, square(10.0, 50.0, 10.113, 50.076, name="all")), grid)
    assert found["all"].all() and not found.why


def test_polygons_of_one_name_are_one_region(tmp_path):
    pytest.importorskip("shapely")
    parts = square(10.0, 50.0, 10.03, 51.0, name="a"), square(10.1, 50.0, 11.0, 51.0, name="a")
    found = read_regions(written(tmp_path, *parts), GRID)
    lon = GRID.to_latlon(GRID.answers)[1]
    assert np.array_equal(found["a"], (lon < 10.03) | (lon > 10.1))


def test_a_state_may_be_in_several_regions(tmp_path):
    path = tmp_path / "regions.csv"
    path.write_text("state,region\nx0y0,a\nx1y0,a\nx0y0,b\nnowhere,b\n")
    found = read_regions(path, GRID)
    assert np.flatnonzero(found["a"]).tolist() == [0, 1] and np.flatnonzero(found["b"]).tolist() == [0]


def test_a_region_with_states_that_the_model_does_not_have_says_which(tmp_path):
    path = tmp_path / "regions.csv"
    path.write_text("state,region\nx0y0,whole\nx1y0,part\nx1yO,part\nx99y99,part\nx99y99,part\nNowhere,none\n")
    found = read_regions(path, GRID)
    assert list(found) == ["whole", "part", "none"] and set(found.why) == {"part", "none"}
    assert found["part"].sum() == 1 and not found["none"].any()
    assert found.why["part"].startswith("2 of its 3 states are none of the model's: x1yO, x99y99; see to the spelling")
    assert found.why["none"].startswith("no state of the model: Nowhere; see to the spelling")
    (note,) = found.notes
    assert note.startswith("regions: 3 names are no states of the model: x1yO, x99y99, Nowhere;")
    assert note.endswith("not answerable for it: part, none")


def test_states_that_the_model_does_not_have_are_named_on_one_short_line(tmp_path):
    path = tmp_path / "regions.csv"
    rows = [f'"no\x1b[31m\n{number}{"-" * 500}",a' for number in range(400)]
    path.write_text("\n".join(["state,region", "x0y0,a", *rows]))
    found = read_regions(path, GRID)
    for text in (found.why["a"], *found.notes):
        assert text.isprintable() and len(text) < 1500 and "and 395 more" in text


def map_without_a_hole():
    """The map without the 3 by 3 cells in its middle, which nobody visited."""
    column, row = GRID.lattice.T
    return GRID.subset(np.flatnonzero((abs(column - 4) > 1) | (abs(row - 4) > 1)))


BEYOND = {
    "on the map": ((10.0, 50.0, 10.07, 50.09), None),
    "a border off by part of a cell": ((10.0, 49.999, 10.07, 50.09), None),
    "one half beyond": ((10.07, 50.0, 10.21, 50.09), "46% of its area lies beyond the map of the model: cut it"),
    "beyond": ((11.0, 51.0, 12.0, 52.0), "beyond the map of the model; are latitude and longitude swapped?"),
    "smaller than a cell": ((10.0, 50.0, 10.001, 50.001), "the middle of no cell of the model is in it"),
}


@pytest.mark.parametrize("what", BEYOND)
def test_polygons_beyond_the_map_say_so(what, tmp_path):
    pytest.importorskip("shapely")
    box, why = BEYOND[what]
    path = written(tmp_path, square(*box, name="a"), square(10.0, 50.0, 10.14, 50.09, name="all"))
    found = read_regions(path, GRID)
    assert list(found) == ["a", "all"] and "all" not in found.why
    assert found.why.get("a", "").startswith(why or "") and ("a" in found.why) == (why is not None)
    assert found.notes == (["regions: not answerable, as the map does not have them whole: a"] if why else [])


def test_the_parts_of_a_region_count_together(tmp_path):
    pytest.importorskip("shapely")
    far, near = square(11.0, 51.0, 11.001, 51.001, name="a"), square(10.0, 50.0, 10.14, 50.09, name="a")
    assert not read_regions(written(tmp_path, near, far), GRID).why
    assert read_regions(written(tmp_path, near, square(11.0, 51.0, 11.1, 51.1, name="a")), GRID).why


def test_gaps_of_a_map_are_told_and_stay_answerable(tmp_path):
    pytest.importorskip("shapely")
    path = written(
        tmp_path, square(10.0, 50.0, 10.14, 50.09, name="all"), square(10.0, 50.0, 10.03, 50.09, name="west")
    )
    found = read_regions(path, map_without_a_hole())
    (note,) = found.notes
    assert not found.why and "parts in no state of the model, whose visits count at the nearest state: all 9%" in note
    assert "west" not in note


HOSTILE = {
    "no columns of regions": ("a,b\n1,2\n", "a column state"),
    "no rows": ("state,region\n", "with no rows"),
    "an empty cell": ("state,region\nx0y0,\n", "row 1 with an empty cell"),
    "names of no state": ("state,region\nhome,a\n", "no state of the model"),
    "control characters": ('state,region\nx0y0,"a\x1b[31m"\n', "a name of a region that cannot be"),
    "a name without end": (f"state,region\nx0y0,{'a' * 10_000}\n", "a name of a region that cannot be"),
}


POLYGONS = {
    "no JSON": ("{", "a file that is no JSON"),
    "a list": ("[]", "a file without features"),
    "features that are none": ('{"features": [1]}', "a file without features"),
    "no geometry": ('{"features": [{}]}', "feature 1, whose geometry cannot be read"),
    "a point": ('{"features": [{"geometry": {"type": "Point", "coordinates": [10, 50]}}]}', "which is no polygon"),
    "numbers that are none": (
        '{"features": [{"geometry": {"type": "Polygon", "coordinates": [[["a", 1], [2, 3], [4, 5], ["a", 1]]]}}]}',
        "feature 1, whose geometry cannot be read",
    ),
    "deep brackets": ("[" * 100_000, "a file that is no JSON"),
    "metres": (json.dumps({"features": [square(5e5, 5e6, 6e5, 6e6)]}), "whose coordinates are no degrees"),
    "elsewhere": (json.dumps({"features": [square(1, 1, 2, 2)]}), "no polygon with the middle of a cell"),
}


@pytest.mark.parametrize("what", [*HOSTILE, *POLYGONS])
def test_hostile_tables_and_polygons_are_refused(what, tmp_path):
    if what in POLYGONS:
        pytest.importorskip("shapely")
    text, words = (HOSTILE | POLYGONS)[what]
    path = tmp_path / ("districts.geojson" if what in POLYGONS else "regions.csv")
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words) as refused:
        read_regions(path, GRID, "--regions")
    assert str(refused.value).startswith("--regions") and "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_large_files_and_many_regions_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("shapely")
    path = written(tmp_path, square(10.0, 50.0, 10.07, 50.2, name="a"), square(10.0, 50.0, 10.07, 50.2, name="b"))
    monkeypatch.setattr(module, "MOST_REGIONS", 1)
    with pytest.raises(InvalidInput, match="2 regions"):
        read_regions(path, GRID)
    monkeypatch.setattr("dphmm.storage.geo_files.LARGEST", 10)
    with pytest.raises(InvalidInput, match="at most 10"):
        read_regions(path, GRID)


def test_polygons_need_a_map(tmp_path):
    with pytest.raises(InvalidInput, match="a table with columns state and region"):
        read_regions(written(tmp_path, square(0, 0, 1, 1)), dphmm.StateSpace([0, 1]))


def test_a_mapping_takes_numbers_names_and_masks():
    space = dphmm.StateSpace([0, 1, 2], ["a", "b", "c"])
    found = checked_regions({"one": [0, 2], "two": np.array([True, False, True]), "three": ["a", "c"]}, space)
    assert [mask for mask in found.values() if mask.tolist() != [True, False, True]] == []


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_table_is_what_a_file_of_it_is(kind, tmp_path):
    rows = {"state": ["x0y0", "x1y0", "x0y0", "nowhere"], "region": ["a", "a", "b", "b"], "more": [1, 2, 3, 4]}
    make = {
        "pandas": pd.DataFrame,
        "arrow": pa.table,
        "polars": lambda rows: pytest.importorskip("polars").DataFrame(rows),
    }
    pd.DataFrame(rows).drop(columns="more").to_csv(tmp_path / "regions.csv", index=False)
    found, expected = checked_regions(make[kind](rows), GRID), read_regions(tmp_path / "regions.csv", GRID)
    assert list(found) == list(expected) and all(np.array_equal(found[name], expected[name]) for name in found)
    with pytest.raises(InvalidInput, match="regions: got columns state; expected columns state and region"):
        checked_regions(make[kind]({"state": ["x0y0"]}), GRID)
    with pytest.raises(InvalidInput, match="row 1 with an empty cell"):
        checked_regions(make[kind]({"state": ["x0y0"], "region": [None]}), GRID)


def test_polygons_of_a_frame_are_those_of_a_file(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    parts = square(10.0, 50.0, 10.07, 50.2, name="west"), square(10.07, 49.0, 11.0, 51.0)
    path = written(tmp_path, *parts)
    expected, frame = read_regions(path, GRID), geopandas.read_file(path)
    for given in (frame, frame.to_crs(3857)):
        found = checked_regions(given, GRID)
        assert list(found) == ["west", "region 2"] == list(expected)
        assert all(np.array_equal(found[name], expected[name]) for name in found)
    with pytest.raises(InvalidInput, match="shapes without a CRS"):
        checked_regions(frame.set_crs(None, allow_override=True), GRID)
    with pytest.raises(InvalidInput, match="feature 1, which is no polygon"):
        checked_regions(frame.set_geometry(frame.geometry.boundary), GRID)


@pytest.mark.parametrize("states", [[], [3], [-1], ["d"], [0.5], [True], [0, 1, 1]])
def test_regions_of_no_states_are_refused(states):
    with pytest.raises(InvalidInput, match="regions"):
        checked_regions({"one": states}, dphmm.StateSpace([0, 1, 2], ["a", "b", "c"]))
    with pytest.raises(InvalidInput, match="a mapping of names to states"):
        checked_regions(states, dphmm.StateSpace([0, 1, 2]))


def test_by_default_every_cell_is_in_one_block():
    found = default_regions(GRID)
    assert list(found)[:2] == ["x0-4y0-4", "x5-9y0-4"]
    assert (sum(mask.astype(int) for mask in found.values()) == 1).all()
    assert found["x0-4y0-4"].sum() == 25


def test_merged_states_are_in_the_block_of_their_partner():
    merged = GRID.merged({0: GRID.n_states - 1})
    found = [name for name, mask in default_regions(merged).items() if mask[0]]
    assert found == [name for name, mask in default_regions(GRID).items() if mask[-1]]


def test_states_that_a_plan_answers_alike_are_in_one_block():
    """Of a model that excludes two corners: both are answered as a neighbour."""
    n = GRID.n_states
    initial = np.full(n, 1 / (n - 2))
    initial[[0, n - 1]] = 0
    model = dphmm.MarkovModel(initial, np.diag(np.ones(n)), start="at")
    column, row = GRID.lattice.T
    near = (np.abs(column[:, None] - column) <= 1) & (np.abs(row[:, None] - row) <= 1)
    policy = dphmm.policy.from_edges(np.argwhere(np.triu(near, 1)), n)
    plan = dphmm.ReleaseSession(model, policy, GRID, epsilon=1).plan
    found = default_regions(GRID, [plan])
    assert (sum(mask.astype(int) for mask in found.values()) == 1).all()
    for mask in found.values():
        assert not mask[0] or mask[plan.constraint.surrogate[0]]
        assert not mask[n - 1] or mask[plan.constraint.surrogate[n - 1]]


def test_other_maps_have_blocks_of_their_box_and_labels_a_region_each():
    points = np.random.default_rng(1).integers(0, 90, (200, 2))
    found = default_regions(dphmm.StateSpace(points))
    assert len(found) == 16 and (sum(mask.astype(int) for mask in found.values()) == 1).all()
    labels = dphmm.StateSpace.labels([f"page {number:02d}" for number in range(40)])
    assert list(default_regions(labels))[39] == "page 39"
