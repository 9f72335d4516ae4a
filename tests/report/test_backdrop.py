"""A public map below the map of a page: what is within the box is embedded where it lies, all else is left out or told.

Fails for swapped degrees, for shapes that are drawn beyond the box or in more corners than can be seen, for a name that
becomes markup, and for a file that is believed to be GeoJSON.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.report import backdrop as module
from dphmm.report import read_backdrop
from report.worlds import report

pytestmark = pytest.mark.usefixtures("few_invented_people")

pytest.importorskip("shapely")
GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.056, 50.036, cell=1000)


def written(path, *features):
    told = [{"type": "Feature", "properties": named, "geometry": shape} for shape, named in features]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": told}))
    return path


def lake(corners):
    return {"type": "Polygon", "coordinates": [corners]}


def test_shapes_lie_where_their_degrees_say(tmp_path):
    square = [[10.01, 50.01], [10.02, 50.01], [10.02, 50.02], [10.01, 50.01]]
    path = written(
        tmp_path / "a.geojson",
        (lake(square), {"name": "Lake"}),
        ({"type": "LineString", "coordinates": [[10.0, 50.0], [10.05, 50.03]]}, None),
        ({"type": "Point", "coordinates": [10.03, 50.015]}, {"name": "Harbour"}),
        ({"type": "Point", "coordinates": [10.03, 51.0]}, {"name": "Far away"}),
        (None, {"name": "nothing"}),
    )
    found = read_backdrop(path, GRID)
    due = GRID.projection.to_metres(*np.array(square)[:, ::-1].T)
    assert len(found.water) == len(found.roads) == 1
    assert {tuple(np.round(corner)) for corner in found.water[0]} == {tuple(np.round(corner)) for corner in due}
    ((name, x, y),) = found.names
    assert name == "Harbour" and [x, y] == pytest.approx(GRID.projection.to_metres([50.015], [10.03])[0])


def test_what_is_beyond_the_box_is_cut_and_what_cannot_be_seen_is_left_out(tmp_path):
    turns = np.linspace(0, 2 * np.pi, 20_000)
    ring = np.stack([10.03 + 0.5 * np.cos(turns), 50.02 + 0.3 * np.sin(turns)], axis=1).tolist()
    found = read_backdrop(written(tmp_path / "a.geojson", (lake([*ring, ring[0]]), None)), GRID)
    points = GRID.own_answers
    room = np.ptp(points, axis=0).max() * 0.2 + 2
    corners = np.concatenate(found.water)
    assert (corners >= points.min(axis=0) - room).all() and (corners <= points.max(axis=0) + room).all()
    assert len(corners) < 100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no JSON"),
        ("[]", "without features"),
        ('{"features": []}', "nothing within the box"),
        ('{"features": [{"geometry": {"type": "Polygon", "coordinates": "x"}}]}', "cannot be read"),
        ('{"features": [{"geometry": {"type": "Point", "coordinates": [5e6, 6e6]}}]}', "no degrees"),
        ('{"features": [{"geometry": {"type": "Point", "coordinates": [50.0, 10.0]}, "properties": {"name": "x"}}]}',
         "nothing within the box"),
        ("[" * 100_000, "no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_map_is_refused_in_one_line(text, told, tmp_path):
    (tmp_path / "a.geojson").write_text(text)
    with pytest.raises(InvalidInput, match=told) as raised:
        read_backdrop(tmp_path / "a.geojson", GRID)
    assert raised.value.field == "backdrop" and "\n" not in str(raised.value)


def test_too_much_to_embed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EMBEDDED", 24)
    square = [[10.01, 50.01], [10.02, 50.01], [10.02, 50.02], [10.01, 50.01]]
    with pytest.raises(InvalidInput, match="corners after it was simplified and 0 names"):
        read_backdrop(written(tmp_path / "a.geojson", (lake(square), None)), GRID)
    monkeypatch.setattr("dphmm.storage.geo_files.LARGEST", 10)
    with pytest.raises(InvalidInput, match="at most 10"):
        read_backdrop(tmp_path / "a.geojson", GRID)


def test_states_without_places_have_no_map(tmp_path):
    with pytest.raises(InvalidInput, match="states on a map"):
        read_backdrop(written(tmp_path / "a.geojson"), dphmm.StateSpace([0, 1, 2]))


def test_a_page_draws_it_and_its_names_stay_text(world, tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    square = [[10.01, 50.01], [10.02, 50.01], [10.02, 50.02], [10.01, 50.01]]
    path = written(
        tmp_path / "a.geojson",
        (lake(square), None),
        ({"type": "Point", "coordinates": [10.02, 50.015]}, {"name": evil}),
    )
    report(world("grid"), tmp_path / "a.html", "--backdrop", path)
    text = (tmp_path / "a.html").read_text()
    # Once, whatever the number of maps.
    assert text.count('class="water"') == 1 < text.count('<use href="#backdrop"') and 'class="graticule"' not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text and "<img" not in text


def test_a_hole_stays_a_hole(tmp_path):
    """An island: its ring stands after a row of NaN in the same shape, so that the even-odd rule leaves it dry."""
    outer = [[10.01, 50.01], [10.04, 50.01], [10.04, 50.03], [10.01, 50.03], [10.01, 50.01]]
    inner = [[10.02, 50.015], [10.03, 50.015], [10.03, 50.02], [10.02, 50.02], [10.02, 50.015]]
    path = written(tmp_path / "a.geojson", ({"type": "Polygon", "coordinates": [outer, inner]}, None))
    ((water),) = read_backdrop(path, GRID).water
    gap = np.flatnonzero(np.isnan(water).any(axis=1))
    assert len(gap) == 1 and len(water[: gap[0]]) >= 4 and len(water[gap[0] + 1 :]) >= 4


@pytest.mark.slow
def test_a_ring_that_crosses_itself_is_drawn_or_refused_at_once(tmp_path):
    """200,000 corners at random: making such a ring valid took for ever. A bow tie is drawn as it is."""
    rng = np.random.default_rng(3)
    ring = np.stack([rng.uniform(10.0, 10.05, 200_000), rng.uniform(50.0, 50.03, 200_000)], axis=1).tolist()
    with pytest.raises(InvalidInput, match="corners within the box"):
        read_backdrop(written(tmp_path / "a.geojson", (lake([*ring, ring[0]]), None)), GRID)
    tie = [[10.01, 50.01], [10.04, 50.03], [10.04, 50.01], [10.01, 50.03], [10.01, 50.01]]
    assert len(read_backdrop(written(tmp_path / "b.geojson", (lake(tie), None)), GRID).water) == 1


def test_names_count_as_corners_do(tmp_path):
    point = {"type": "Point", "coordinates": [10.03, 50.015]}
    with pytest.raises(InvalidInput, match="2,000 names"):
        read_backdrop(written(tmp_path / "a.geojson", *[(point, {"name": "x" * 200})] * 2000), GRID)


def test_a_ring_is_cut_as_shapely_cuts_it(tmp_path):
    """Triangles with corners in and out of the box: the areas agree."""
    import shapely

    rng, low, high = np.random.default_rng(4), np.zeros(2), np.ones(2)
    for _ in range(200):
        corners = rng.uniform(-1, 2, (3, 2))
        own = module._ring(np.concatenate([corners, corners[:1]]), low, high)
        due = shapely.clip_by_rect(shapely.Polygon(corners), 0, 0, 1, 1).area
        assert (shapely.Polygon(own).area if len(own) else 0.0) == pytest.approx(due, abs=5e-3)
