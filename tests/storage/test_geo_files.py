"""Geo files: zones and points in degrees whatever their coordinates, and releases as points, at once or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage import inputs
from dphmm.storage.geo_files import read_areas, read_features, read_points, read_zones, write_released
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.importers.folders import list_left_out
from dphmm.storage.importers.rows import import_geo
from storage.importers.test_rows import write_folder, write_zip

gpd = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")


@pytest.fixture
def wards():
    shapes = [shapely.box(13.3, 52.4, 13.4, 52.5), shapely.box(13.4, 52.4, 13.5, 52.5)]
    return gpd.GeoDataFrame({"ward": [7, 12], "n": ["a", None]}, geometry=shapes, crs=4326)


def outlines(*features):
    """GeoJSON of (name, rings) in degrees, the first ring the outline, others holes."""
    shapes = [{"type": "Polygon", "coordinates": [[*ring, ring[0]] for ring in rings]} for _, rings in features]
    parts = zip(features, shapes, strict=True)
    found = [{"type": "Feature", "properties": {"name": name}, "geometry": shape} for (name, _), shape in parts]
    return collection(*found)


def crossings(ring, lat, lon):
    """How many edges of a ring a ray to the east crosses: by hand, for one place."""
    found = 0
    for (x, y), (u, v) in zip(ring, [*ring[1:], ring[0]], strict=True):
        if (y > lat) != (v > lat) and lon < x + (lat - y) * (u - x) / (v - y):
            found += 1
    return found


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_an_area_are_those_whose_centre_lies_in_it(tmp_path, seed):
    """Stars that are not convex, one with a hole, that overlap; against rays, cell by cell."""
    rng = np.random.default_rng(seed)
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.06, 50.04, cell=300)

    def star(x, y, radius):
        angles = np.sort(rng.uniform(0, 2 * np.pi, 11))
        far = radius * rng.uniform(0.4, 1, 11)
        return [[x + 1.5 * f * np.cos(a), y + f * np.sin(a)] for a, f in zip(angles, far, strict=True)]

    hole = [[10.029, 50.019], [10.031, 50.019], [10.031, 50.021], [10.029, 50.021]]
    square = [[10.02, 50.01], [10.04, 50.01], [10.04, 50.03], [10.02, 50.03]]
    drawn = {"star": [star(10.02, 50.02, 0.012)], "other": [star(10.03, 50.018, 0.012)], "ring": [square, hole]}
    (tmp_path / "areas.geojson").write_text(outlines(*drawn.items()))
    found = read_areas(tmp_path / "areas.geojson", grid)
    places = list(zip(*grid.to_latlon(grid.answers), strict=True))
    for name, rings in drawn.items():
        inside = [k for k, (lat, lon) in enumerate(places) if sum(crossings(r, lat, lon) for r in rings) % 2]
        assert found[name].tolist() == inside and inside
    assert list(found) == list(drawn) and set(found["star"]) & set(found["other"])


@pytest.mark.parametrize(
    ("rings", "told"),
    [
        ([[[10.0, 51.0], [10.1, 51.0], [10.1, 51.1]]], "ward 7, in which no cell has its centre"),
        ([[[10.0, 50.0], [10.06, 50.04], [10.06, 50.0], [10.0, 50.04]]], "ward 7, which is no polygon without cross"),
    ],
)
def test_an_area_that_cannot_be_meant_is_refused_by_name(tmp_path, rings, told):
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.06, 50.04, cell=300)
    whole = [[[10.0, 50.0], [10.06, 50.0], [10.06, 50.04], [10.0, 50.04]]]
    (tmp_path / "areas.geojson").write_text(outlines(("all", whole), ("ward 7", rings)))
    with pytest.raises(InvalidInput, match=told):
        read_areas(tmp_path / "areas.geojson", grid)
    (tmp_path / "areas.geojson").write_text(outlines(("all", whole), ("all", whole)))
    with pytest.raises(InvalidInput, match="two areas called all"):
        read_areas(tmp_path / "areas.geojson", grid)
    with pytest.raises(InvalidInput, match="these states are no places"):
        read_areas(tmp_path / "areas.geojson", dphmm.StateSpace.labels(["a", "b"]))


# pyogrio draws a name for a GeoPackage in memory.
@pytest.mark.replayed_words
@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".shp", ".fgb"])
@pytest.mark.parametrize("crs", [4326, 25833])
def test_zones_are_in_degrees_whatever_a_file_s_coordinates(tmp_path, wards, suffix, crs):
    path = tmp_path / f"wards{suffix}"
    wards.to_crs(crs).to_file(path)
    zones = read_zones(path, "ward")
    places = dict(zip(zones.names, zip(*zones.to_latlon(zones.answers), strict=True), strict=True))
    assert set(places) == {"7", "12"}
    assert places["7"][1] == pytest.approx(13.35, abs=1e-3)
    assert zones.names[zones.locate(52.45, 13.45)] == "12"


def test_files_that_say_too_little_or_are_damaged_are_refused_in_one_line(tmp_path, wards):
    wards.to_file(tmp_path / "x.shp")
    (tmp_path / "x.prj").unlink()
    with pytest.raises(InvalidInput, match=r"crs: got none in x.shp; expected .*crs=EPSG:4326"):
        read_zones(tmp_path / "x.shp", "ward")
    assert read_zones(tmp_path / "x.shp", "ward", crs="EPSG:4326").n_states == 2
    with pytest.raises(InvalidInput, match="crs: got klingon; expected coordinates that are known"):
        read_zones(tmp_path / "x.shp", "ward", crs="klingon")
    wards.to_file(tmp_path / "x.geojson")
    with pytest.raises(InvalidInput, match="zone_id: got id; expected one of ward, n"):
        read_zones(tmp_path / "x.geojson", "id")
    with pytest.raises(InvalidInput, match=r"names\[1\]: got 0 characters"):
        read_zones(tmp_path / "x.geojson", "n")
    data = (tmp_path / "x.geojson").read_bytes()
    (tmp_path / "x.geojson").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_features(tmp_path / "x.geojson")
    with pytest.raises(InvalidInput, match="a name ending in"):
        (tmp_path / "x.kml").write_text("")
        read_features(tmp_path / "x.kml")
    empty = {"type": "FeatureCollection", "features": []}
    (tmp_path / "e.geojson").write_text(json.dumps(empty))
    with pytest.raises(InvalidInput, match=r"without features|cannot be read"):
        read_features(tmp_path / "e.geojson")


RELEASED = pd.DataFrame(
    {
        "user": ["007", "a"],
        "t": pd.to_datetime(["2024-05-06T08:00Z", "2024-05-06T08:05Z"]),
        "z_lat": [52.4, None],
        "z_lon": [13.3, None],
        "smoothed_lat": [52.41, 52.42],
        "smoothed_lon": [13.31, 13.32],
        "plan": ["ab", None],
    }
)


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".fgb"])
def test_a_release_becomes_points_with_its_columns(tmp_path, suffix):
    RELEASED.to_parquet(tmp_path / "r.parquet")
    out = tmp_path / f"r{suffix}"
    assert write_released(tmp_path / "r.parquet", out) == (2, "smoothed")
    read = gpd.read_file(out)
    assert read.crs.to_epsg() == 4326 and sorted(read["user"]) == ["007", "a"]
    assert sorted(read.geometry.x.round(6)) == [13.31, 13.32]
    assert write_released(tmp_path / "r.parquet", out, what="z") == (1, "z")
    assert {path.name for path in tmp_path.iterdir()} == {"r.parquet", f"r{suffix}"}


def test_a_release_without_places_and_another_name_are_refused(tmp_path):
    RELEASED[["user", "t"]].to_parquet(tmp_path / "r.parquet")
    with pytest.raises(InvalidInput, match="released: got columns user, t; expected a table of a map"):
        write_released(tmp_path / "r.parquet", tmp_path / "r.geojson")
    with pytest.raises(InvalidInput, match=r"output: got .*r.shp; expected a name ending in .geojson"):
        write_released(tmp_path / "r.parquet", tmp_path / "r.shp")
    with pytest.raises(InvalidInput, match="what: got x"):
        write_released(tmp_path / "r.parquet", tmp_path / "r.geojson", what="x")
    assert {path.name for path in tmp_path.iterdir()} == {"r.parquet"}


GPX = """<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="52.45" lon="13.35"><time>2024-05-06T08:00:00Z</time></trkpt>
<trkpt lat="52.46" lon="13.36"><time>2024-05-06T08:05:00Z</time></trkpt>
</trkseg></trk></gpx>"""


@pytest.mark.replayed_words
def test_points_become_trajectories_and_what_is_no_point_is_rejected(tmp_path, wards):
    def rows(path, **options):
        imported = IMPORTERS["geo"](path, **options)
        return imported.trajectories.placed.to_arrow().to_pylist(), imported.rejected.to_pylist()

    times = pd.to_datetime(["2024-05-06T08:00Z", "2024-05-06T08:05Z", "2024-05-06T08:10Z"])
    shapes = [shapely.Point(13.35, 52.45), shapely.Point(13.36, 52.46), shapely.box(13, 52, 14, 53)]
    frame = gpd.GeoDataFrame({"user": ["a", "b", "b"], "t": times}, geometry=shapes, crs=4326)
    for name, crs in (("x.gpkg", 25833), ("x.geojson", 4326)):
        frame.to_crs(crs).to_file(tmp_path / name)
        read, rejected = rows(tmp_path / name)
        assert [(row["user"], round(row["lat"], 6), round(row["lon"], 6)) for row in read] == [
            ("a", 52.45, 13.35), ("b", 52.46, 13.36),
        ]  # fmt: skip
        assert rejected == [{"row": 3, "reason": "invalid_place"}]
    (tmp_path / "x.gpx").write_text(GPX)
    read, _ = rows(tmp_path / "x.gpx", user_name="me")
    assert [(row["user"], row["lat"], row["t"].minute) for row in read] == [("me", 52.45, 0), ("me", 52.46, 5)]
    wards.to_file(tmp_path / "w.geojson")
    with pytest.raises(InvalidInput, match="without points"):
        rows(tmp_path / "w.geojson")


VRT = """<OGRVRTDataSource><OGRVRTLayer name="{layer}"><SrcDataSource>{other}</SrcDataSource><SrcLayer>other</SrcLayer>
<GeometryType>wkbPoint</GeometryType><LayerSRS>WGS84</LayerSRS>
<GeometryField encoding="PointFromColumns" x="lon" y="lat"/></OGRVRTLayer></OGRVRTDataSource>"""
OTHER_FORMATS = {
    "VRT": VRT,
    "VRT of tracks": VRT.replace("{layer}", "track_points"),
    "VRT after a GPX": VRT.replace(">", "><!-- <gpx > -->", 1),
    "a pipeline": '{{"type": "gdal_streamed_alg", "command_line": "gdal vector convert {gpkg} --of stream x"}}',
    "text": "user,lat,lon\nann,52.5,13.4\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", OTHER_FORMATS.values(), ids=OTHER_FORMATS)
@pytest.mark.parametrize("suffix", [".gpx", ".gpkg", ".shp", ".fgb", ".geojson", ".json"])
def test_a_file_that_is_another_format_reads_no_other_file(tmp_path, wards, text, suffix):
    """GDAL goes by what is in a file: a VRT or a pipeline that is called .gpx would copy another file's rows."""
    (tmp_path / "other.csv").write_text("user,lat,lon\nann,52.5,13.4\n")
    wards.to_file(tmp_path / "other.gpkg")
    path = tmp_path / f"x{suffix}"
    path.write_text(text.format(layer="x", other=tmp_path / "other.csv", gpkg=tmp_path / "other.gpkg"))
    said = "is not|cannot be read|has no list of features|without a row|a name ending in"
    with pytest.raises(InvalidInput, match=f"^source: got [^\n]*(?:{said})[^\n]*$"):
        import_geo(path, user="ann", no_times=True)
    with pytest.raises(InvalidInput, match=f"^zones: got [^\n]*(?:{said})[^\n]*$"):
        read_zones(path, "user")


@pytest.mark.parametrize("suffix", [".gpx", ".gpkg", ".shp", ".fgb", ".geojson", ".json"])
@pytest.mark.parametrize("service", ["WFS", "CSW", "OAPIF"])
def test_a_file_that_is_a_service_asks_no_address(tmp_path, suffix, service):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        path = tmp_path / f"x{suffix}"
        path.write_text(f"<OGR{service}DataSource><!-- <gpx > --><URL>{address}</URL></OGR{service}DataSource>")
        for read in (lambda: import_geo(path, user="ann"), lambda: read_zones(path, "user")):
            with pytest.raises(InvalidInput):
                read()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def changed_database(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.replayed_words
def test_a_geopackage_is_its_tables_and_their_indexes_alone(tmp_path, wards):
    path = tmp_path / "x?#%41.gpkg"
    wards.to_file(tmp_path / "whole.gpkg", layer="wards")
    whole = (tmp_path / "whole.gpkg").read_bytes()
    other = "CREATE VIRTUAL TABLE \"a USING rtree(\" USING VirtualOGR('/other.csv')"
    made = "INSERT INTO sqlite_master VALUES ('table', 'a USING rtree(', 'a USING rtree(', 0, ?)"
    for statement in ("CREATE VIEW v AS SELECT * FROM wards", "CREATE VIRTUAL TABLE v USING fts3(x)", None):
        path.write_bytes(whole)
        assert read_zones(path, "ward").n_states == 2
        if statement is None:
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute("PRAGMA writable_schema = ON")
                database.execute(made, (other,))
        else:
            changed_database(path, statement)
        for read in (lambda: read_zones(path, "ward"), lambda: read_points(path)):
            with pytest.raises(InvalidInput, match="with views or virtual tables; expected a GeoPackage of tables"):
                read()
    changed_database(tmp_path / "plain.gpkg", "CREATE TABLE wards (ward, geom)")
    with pytest.raises(InvalidInput, match="a file that is not a GeoPackage"):
        read_zones(tmp_path / "plain.gpkg", "ward")


@pytest.mark.replayed_words
def test_a_geopackage_is_read_without_logs_beside_it(tmp_path, wards):
    path = tmp_path / "x.gpkg"
    wards.to_file(path)
    changed_database(path, "PRAGMA journal_mode = WAL")
    assert read_zones(path, "ward").n_states == 2
    assert {each.name for each in tmp_path.iterdir()} == {"x.gpkg"}
    for log in ("x.gpkg-wal", "x.gpkg-journal"):
        (tmp_path / log).write_bytes(b"x")
        with pytest.raises(InvalidInput, match=f"with {log} beside it; expected a file that no program has open"):
            read_zones(path, "ward")
        (tmp_path / log).unlink()


def test_what_is_beside_a_shapefile_is_plain_files_that_do_not_change(tmp_path, monkeypatch, wards):
    wards.to_file(tmp_path / "x.shp")
    digests = iter("ab")
    monkeypatch.setattr(inputs, "file_digest", lambda path: next(digests) if path.suffix == ".dbf" else "")
    with pytest.raises(InvalidInput, match=r"x\.dbf: got a file that changed while it was read"):
        read_zones(tmp_path / "x.shp", "ward")
    (tmp_path / "x.dbf").unlink()
    os.mkfifo(tmp_path / "x.dbf")
    with pytest.raises(InvalidInput, match=r"x\.dbf; expected a plain file, not a device or a pipe"):
        read_zones(tmp_path / "x.shp", "ward")


def test_zones_of_geojson_are_named_by_properties_or_by_ids(tmp_path):
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    east = {"type": "Polygon", "coordinates": [[[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]]]}
    features = [
        {
            "type": "Feature",
            "id": "w",
            "properties": {"n": 7, "geometry": "x", "day": "2024-05-06"},
            "geometry": square,
        },
        {"type": "Feature", "id": "e", "properties": {"n": "8", "day": "2024-05-07"}, "geometry": east},
    ]
    path = tmp_path / "x.geojson"
    path.write_bytes(b"\xef\xbb\xbf \n" + json.dumps({"type": "FeatureCollection", "features": features}).encode())
    for column, names in (("id", ["w", "e"]), ("n", ["7", "8"]), ("day", ["2024-05-06", "2024-05-07"])):
        assert sorted(read_zones(path, column).names) == sorted(names)


def gpx_of(*places, tracks=1):
    points = "".join(
        f'<trkpt lat="{lat}" lon="13.35"><time>2024-05-06T08:0{minute}:00Z</time></trkpt>'
        for minute, lat in enumerate(places)
    )
    track = f"<trk><trkseg>{points}</trkseg></trk>"
    return f'<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">{track * tracks}</gpx>'


@pytest.mark.replayed_words
@pytest.mark.parametrize("written", ["50,5", "abc", "0x10", "50N", "50°30'", "nan", ""])
def test_a_latitude_of_gpx_that_is_no_number_is_of_no_place(tmp_path, written):
    """50,5 is not 50, which is 55 km off."""
    path = tmp_path / "x.gpx"
    rows = [f'<wpt lat="{lat}" lon="-.5"><name>ann</name></wpt>' for lat in (" 5.05E1", written, "51")]
    path.write_text(f'<gpx version="1.1" creator="x">{"".join(rows)}</gpx>', encoding="utf-8")
    found = import_geo(path, user_column="name", no_times=True)
    assert found.trajectories.placed.lat.tolist() == [50.5, 51.0]
    assert found.report.dropped == {"invalid_place": 1}


def test_the_time_of_gpx_needs_no_name_and_may_be_left_out(tmp_path):
    path = tmp_path / "ann.gpx"
    path.write_text(GPX)
    # As the command gives them: options that were not given are None.
    read = IMPORTERS["geo"](path, user_from="file-name", time_column=None, trip_column=None, no_times=None)
    assert read.trajectories.time is not None and read.trajectories.trip.tolist() == [0, 0]
    without = IMPORTERS["geo"](path, user_from="file-name", no_times=True)
    assert without.trajectories.time is None and without.trajectories.steps().tolist() == [0, 1]
    assert without.report.notes == ("time: not read, rows are in the order of the file",)


def test_swapped_places_of_a_geo_file_have_no_option_that_mends_them(tmp_path):
    frame = gpd.GeoDataFrame({"user": ["a"]}, geometry=[shapely.Point(13.35, 152.45)], crs=4326)
    frame.to_file(tmp_path / "x.geojson")
    said = r"are they swapped \(the file has to be written again; GeoJSON has the longitude first\)"
    with pytest.raises(InvalidInput, match=said):
        IMPORTERS["geo"](tmp_path / "x.geojson", no_times=True)


@pytest.mark.replayed_words
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_gpx_files_of_a_folder_or_an_archive_are_one_persons_each(tmp_path, kind):
    """Spoiled files decide about no others, and their rows are listed by file."""
    other = '<OGRVRTDataSource><OGRVRTLayer name="track_points"><!-- <gpx > --></OGRVRTLayer></OGRVRTDataSource>'
    files = {
        "ann.gpx": gpx_of(52.1, 52.2, tracks=2), "bob.GPX": gpx_of(52.3, 400, 52.5), "cut.gpx": GPX[:150], "no.gpx": "",
        "other.gpx": other, "notes.txt": "x", ".hidden.gpx": GPX,
    }  # fmt: skip
    written = {f"people/{name}": text.encode() for name, text in files.items()}
    if kind == "folder":
        source = write_folder(tmp_path, written) / "people"
    else:
        source = write_zip(tmp_path / "people.zip", written)
    found = IMPORTERS["geo"](source, user_from="file-name", time_column=None, user_pattern=None)
    rows = found.trajectories.placed
    assert rows.users == ("ann", "bob") and rows.lat.tolist() == [52.1, 52.1, 52.2, 52.2, 52.3, 52.5]
    assert sorted(rows.trip[:4].tolist()) == [0, 0, 1, 1] and rows.time is not None
    assert found.report.files == 4 and found.report.notes == ("1 file without a row: 'people/no.gpx'",)
    list_left_out(tmp_path / "rejected.csv", found.rejected, str(source), found.report.layout)
    assert (tmp_path / "rejected.csv").read_text().splitlines() == [
        "file,row,reason",
        "people/bob.GPX,2,invalid_place",
        "people/cut.gpx,1,unreadable_file",
        "people/other.gpx,1,unreadable_file",
    ]


@pytest.mark.replayed_words
def test_tracks_of_two_files_of_one_person_are_two_trips(tmp_path):
    source = write_folder(tmp_path / "x", dict.fromkeys(("ann/1.gpx", "ann/2.gpx", "bob/1.gpx"), GPX.encode()))
    rows = IMPORTERS["geo"](source, user_from="folder-name").trajectories
    assert rows.users == ("ann", "bob") and sorted(rows.trip.tolist()) == [0, 0, 0, 0, 1, 1]


@pytest.mark.replayed_words
def test_a_folder_without_gpx_files_or_without_people_is_refused(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "a.geojson").write_text("{}")
    with pytest.raises(InvalidInput, match=r"without a file that has rows; expected files named \*.gpx"):
        IMPORTERS["geo"](folder, user_from="file-name")
    (folder / "a.gpx").write_text(GPX)
    with pytest.raises(InvalidInput, match="user_from=file-name"):
        IMPORTERS["geo"](folder)


def test_no_place_is_told_of_a_file_that_is_half_readable(tmp_path, capfd, recwarn):
    points = ["[13.35, 52.45]", "[52.01937465]", '"52.01937465"']
    features = [
        f'{{"type": "Feature", "properties": {{"user": "a"}}, "geometry": {{"type": "Point", "coordinates": {point}}}}}'
        for point in points
    ]
    (tmp_path / "x.geojson").write_text(f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}')
    found = IMPORTERS["geo"](tmp_path / "x.geojson", no_times=True)
    assert found.rejected.to_pylist() == [{"row": row, "reason": "invalid_place"} for row in (2, 3)]
    told = capfd.readouterr()
    assert "01937465" not in told.out + told.err + "".join(str(each.message) for each in recwarn)


def collection(*features, **members):
    return json.dumps({"type": "FeatureCollection", "features": list(features), **members})


def point(coordinates, **properties):
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": coordinates}}


def test_geojson_is_read_as_its_text_is_written(tmp_path):
    """No digit is rounded, and 7.0 is 7; the first feature says which properties there are."""
    path = tmp_path / "x.geojson"
    path.write_text(collection(point([1, 2], a=7), point([3, 4], a=1, b=2)).replace("7", "7.0", 1))
    points = read_points(path)
    assert points.table.to_pylist() == [{"a": "7", "lat": 2, "lon": 1}, {"a": "1", "lat": 4, "lon": 3}]
    assert points.notes == (
        "1 features have properties that the first one does not have: a role option such as time_column= reads one",
    )
    named = read_points(path, None, ["b", "c"])
    assert named.table["b"].to_pylist() == [None, "2"] and not named.notes
    assert "c" not in named.table.column_names
    path.write_text(collection(point([1.5, 2.5], user=9007199254740993, t=1714957200.123456789)))
    (row,) = read_points(path).table.to_pylist()
    assert row["user"] == "9007199254740993" and row["t"].startswith("1714957200.123456")


def test_geojson_in_other_coordinates_is_brought_to_degrees(tmp_path):
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25833"}}
    path = tmp_path / "x.geojson"
    path.write_text(collection(point([391779.0, 5819994.0], user="a"), point([1e30, 1e30], user="b"), crs=named))
    first, second = read_points(path).table.to_pylist()
    assert first["lat"] == pytest.approx(52.519, abs=1e-3) and first["lon"] == pytest.approx(13.405, abs=1e-2)
    assert not np.isfinite([second["lat"], second["lon"]]).any()
    named["properties"]["name"] = "klingon"
    path.write_text(collection(point([1, 2]), crs=named))
    with pytest.raises(InvalidInput, match="crs: got klingon"):
        read_points(path)


def test_coordinates_that_are_no_text_are_refused_without_a_word_of_them(tmp_path):
    path = tmp_path / "x.geojson"
    path.write_text(collection(point([1, 2], user="a"), crs={"type": "name", "properties": {"name": {"user": "ann"}}}))
    for read in (read_points, read_features):
        with pytest.raises(InvalidInput, match=r"^crs: got no text; expected a name of coordinates"):
            read(path)


@pytest.mark.parametrize("name", ["+init=/x:y", "+proj=longlat +nadgrids=/x", "/x", "http://x.test/y", "EPSG:4326\n"])
def test_coordinates_of_geojson_are_a_name_and_no_definition(tmp_path, name):
    """PROJ opens the file that a definition names."""
    path = tmp_path / "x.geojson"
    path.write_text(collection(point([1, 2], user="a"), crs={"type": "name", "properties": {"name": name}}))
    for read in (read_points, read_features):
        with pytest.raises(InvalidInput, match=r"^crs: got .*; expected a name of coordinates, such as EPSG:25833$"):
            read(path)
    for known in ("urn:ogc:def:crs:OGC:1.3:CRS84", "http://www.opengis.net/def/crs/OGC/1.3/CRS84"):
        path.write_text(collection(point([1, 2], user="a"), crs={"type": "name", "properties": {"name": known}}))
        assert read_points(path).table["lon"].to_pylist() == read_features(path).geometry.x.tolist() == [1.0]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", '{"type": "Topology"}', '{"features": {}}', '{"features": ' + "[" * 10**5, "\xff\xfe{\x00"],
)
def test_what_is_no_collection_of_features_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "x.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"source: got .*expected JSON: a FeatureCollection, in UTF-8"):
        read_points(tmp_path / "x.json")


def test_a_geojson_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dphmm.storage.json_lines.MOST_MEMBER", 50)
    (tmp_path / "x.json").write_text(collection(point([1, 2], user="a")))
    with pytest.raises(InvalidInput, match="bytes; expected at most 50"):
        read_points(tmp_path / "x.json")
