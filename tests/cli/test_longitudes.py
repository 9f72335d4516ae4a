"""Every command that draws or reads a map, near and over the antimeridian, at Greenwich, and far from the equator.

Fails for a page that cannot be made there, for a meridian with another name than its own, for a public map or a region
that is cut in two where longitudes begin again, and for an outline that is drawn as if it went around the earth.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import dphmm
from commands import write_rows
from dphmm.report import read_backdrop
from dphmm.states.maps import ground_distance

pytestmark = [pytest.mark.usefixtures("few_invented_people"), pytest.mark.replayed_words]

shapely = pytest.importorskip("shapely")


def turned(lon):
    """A longitude as files have it, within 180 degrees."""
    return round((lon + 180) % 360 - 180, 6)


def feature(kind, coordinates, **properties):
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def written(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def strip(west, east, south, north):
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def over(west, east, south, north):
    """A zone, in two parts where the antimeridian cuts it, as files must have it."""
    if west < 180 < east:
        return feature(
            "MultiPolygon", [strip(west, 180, south, north), strip(-180, east - 360, south, north)], id=f"{west:.2f}"
        )
    turn = 360 if west >= 180 else 0
    return feature("Polygon", strip(west - turn, east - turn, south, north), id=f"{west:.2f}")


WORLDS = {
    "over the antimeridian": ("grid", 180.0, -16.9, ["179.90° E", "179.95° E", "180°", "179.95° W", "179.90° W"]),
    "east of it": ("grid", -179.88, -16.9, ["179.95° W", "179.90° W", "179.85° W", "179.80° W"]),
    "west of it": ("grid", 179.88, 60.0, ["179.80° E", "179.85° E", "179.90° E", "179.95° E"]),
    "at Greenwich": ("grid", 0.0, 60.0, ["0.10° W", "0.05° W", "0°", "0.05° E", "0.10° E"]),
    # The last name is the equator's.
    "at 0, 0": ("grid", 0.0, 0.0, ["0.10° W", "0.05° W", "0°", "0.05° E", "0.10° E", "0°"]),
    "at -180, 0": ("grid", -180.0, 0.0, ["179.90° E", "179.95° E", "180°", "179.95° W", "179.90° W", "0°"]),
    "H3": ("h3", 180.0, 60.0, ["179.85° E", "179.90° E", "179.95° E", "180°", "179.95° W", "179.90° W"]),
    "zones": ("zones", 180.0, 60.0, ["179.90° E", "179.95° E", "180°", "179.95° W", "179.90° W"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_commands_draw_and_read_a_map_anywhere(name, tmp_path, run, one_json):
    kind, middle, lat, meridians = WORLDS[name]
    south, north = lat - 0.05, lat + 0.05
    moving = ("--step", "10min", "--max-speed", "50km/h", "-o", tmp_path / "m.npz", "-q")
    box = f"{turned(middle - 0.1)},{south},{turned(middle + 0.1)},{north}"
    if kind == "zones":
        zones = [over(middle - 0.1 + k * 0.04, middle - 0.06 + k * 0.04, south, north) for k in range(5)]
        run("model", "zones", written(tmp_path / "zones.geojson", *zones), "--zone-id", "id", *moving)
    else:
        cells = ("--cell", "2km") if kind == "grid" else ("--resolution", 7)
        run("model", kind, "--bbox", box, *cells, *moving)
    public = ("--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json")
    run("policy", "radius", tmp_path / "m.npz", "--radius", "5km", "-o", tmp_path / "p.json", "-q")
    listed = one_json(run("plan", "--details", tmp_path / "m.npz", *public[2:], "--states", "--json"))["states"]
    centres = [[state[name] for state in listed] for name in ("lat", "lon")]
    assert len(listed) >= 5 and (ground_distance(*map(np.array, centres), lat, middle) < 20_000).all()
    run("plan", tmp_path / "m.npz", *public[2:], "--path-epsilon", 6, "--steps", 3, "-o", tmp_path / "plan.json", "-q")
    places = [middle + 0.08 * (k - 1) for k in range(3)]
    rows = [["a", f"2024-05-06T08:{k}0:00Z", lat, turned(lon)] for k, lon in enumerate(places)]
    write_rows(tmp_path / "rows.csv", ["user", "t", "lat", "lon"], rows)
    checked = run("check", tmp_path / "rows.csv", *public, "--plan", tmp_path / "plan.json").stdout
    assert re.search("on the map +100 % of the rows", checked)
    released = tmp_path / "out"
    run("release", tmp_path / "rows.csv", *public, "--epsilon", 5, "-o", released)
    answers = pd.read_csv(released / "released.csv")
    assert (ground_distance(answers.z_lat, answers.z_lon, lat, middle) < 60_000).all()
    water = feature("Polygon", strip(middle - 0.05, middle + 0.05, south, lat), name="Bay")
    for lake in ((), ("--backdrop", written(tmp_path / "lake.geojson", water))):
        page = tmp_path / "page.html"
        run("report", released, "--truth", tmp_path / "rows.csv", "-o", page, "--force", *lake)
        text = page.read_text()
        assert ('class="water"' in text) == bool(lake)
        if not lake:
            maps = [re.findall(r'<text class="degree"[^>]*>([^<]*[EW]|\d+°)<', svg) for svg in text.split("<svg")]
            maps = [named for named in maps if named]
            # Later maps are of a part, at a scale of their own.
            assert maps and all(len(named) > 1 for named in maps)
            assert [word for word in meridians if word in maps[0]] == maps[0]
        assert not re.search(r'="[^"]*\b(nan|inf)\b', text)
    run("read", released)
    run("read", released, "--estimates", "-o", tmp_path / "s.csv")
    smoothed = pd.read_csv(tmp_path / "s.csv")
    assert (ground_distance(smoothed.smoothed_lat, smoothed.smoothed_lon, lat, middle) < 20_000).all()
    halves = [
        feature("Polygon", strip(*sides, south, north), name=name)
        for name, sides in {"west": (middle - 0.1, middle), "east": (middle, middle + 0.1)}.items()
    ]
    regions = written(tmp_path / "regions.geojson", *halves)
    run("read", released, "--by", regions, "-o", tmp_path / "d.csv")
    shares = pd.read_csv(tmp_path / "d.csv").set_index("region")
    assert shares.answerable.tolist() == ["yes", "yes"] and shares.estimate.min() > 0
    run("synthesize", tmp_path / "m.npz", "--people", 3, "--steps", 2, "--seed", 1, "-o", tmp_path / "people.csv")
    invented = pd.read_csv(tmp_path / "people.csv")
    assert (ground_distance(invented.lat, invented.lon, lat, middle) < 20_000).all()
    for file, what in ((released, "z"), (tmp_path / "s.csv", "smoothed")):
        run("export", file, "-o", tmp_path / f"{what}.geojson", "--what", what)
        points = json.loads((tmp_path / f"{what}.geojson").read_text())["features"]
        assert len(points) == 3 and all(abs(point["geometry"]["coordinates"][0]) <= 180 for point in points)


def test_zones_on_both_sides_of_the_antimeridian_are_drawn_as_zones_anywhere():
    def rings_at(middle):
        turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        circle = np.stack([0.05 + 0.04 * np.cos(turn), 0.04 * np.sin(turn)], axis=1)
        shapes = [shapely.Polygon(circle * [side, 1] + [turned(middle + side * 1e-9), 0.0]) for side in (-1, 1)]
        return dphmm.states.Zones(["west", "east"], shapes).rings

    for here, there in zip(rings_at(180.0), rings_at(20.0), strict=True):
        assert len(here) == len(there) > 20
        assert shapely.Polygon(here).area == pytest.approx(shapely.Polygon(there).area, rel=1e-4)


def test_a_public_map_of_the_world_stays_whole_on_a_map_over_the_antimeridian(tmp_path):
    """A lake over Greenwich, the far side of such a map, is not drawn; one written beyond 180 lies where it is."""
    grid = dphmm.Grid.from_bounds(179.9, 50.0, -179.9, 50.1, cell=1000)
    far = feature("Polygon", strip(-10, 10, 40, 60))
    near = feature("Polygon", strip(-180.05, -179.95, 50.0, 50.05))
    found = read_backdrop(written(tmp_path / "world.geojson", far, near), grid)
    (water,) = found.water
    lat, lon = grid.to_latlon(water)
    assert np.abs(lon).min() == pytest.approx(179.95) and lat.max() == pytest.approx(50.05)
