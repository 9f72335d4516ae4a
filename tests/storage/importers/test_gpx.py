"""GPX: the points of tracks, waypoints or routes, each from its own element; no text of one changes another's row."""

from __future__ import annotations

import io

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers.gpx import gpx_points
from dphmm.storage.importers.rows import import_geo
from storage.importers.test_rows import write_folder


def read(inner, root='gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"'):
    text = f'<?xml version="1.0"?><{root}>{inner}</{root.split()[0]}>'
    return gpx_points("x.gpx", io.BytesIO(text.encode())).table.to_pylist()


def test_points_are_those_of_tracks_else_of_waypoints_else_of_routes():
    route = '<rte><rtept lat="3" lon="3"/></rte>'
    waypoint = '<wpt lat="2" lon="2"><ele>8</ele></wpt>'
    track = '<trk><name>t</name><trkseg><trkpt lat="1" lon="1"><time> 2024 \n</time></trkpt></trkseg></trk>'
    (of_route,), (of_waypoint,), of_tracks = (read(inner) for inner in (route, waypoint + route, waypoint + track * 2))
    assert [of_route["lat"], of_waypoint["lat"], *(row["lat"] for row in of_tracks)] == ["3", "2", "1", "1"]
    assert of_route["track_fid"] is of_waypoint["track_fid"] is None
    assert len({row["track_fid"] for row in of_tracks}) == 2
    assert of_waypoint["ele"] == "8" and [row["time"] for row in of_tracks] == ["2024", "2024"]
    # A name of a track is no name of its points, and the columns are the same of every file.
    columns = ["lat", "lon", "track_fid", "time", "ele", "name", "cmt", "desc", "sym", "type"]
    assert list(of_route) == list(of_waypoint) == list(of_tracks[0]) == columns
    assert [row["name"] for row in of_tracks] == [None, None]


def test_a_point_has_its_own_children_and_nothing_deeper_or_beside_it():
    beside = "<name>b</name><time>1</time><extensions><wpt lat='9' lon='9'><name>c</name></wpt></extensions>"
    deeper = "<extensions><name>d</name><trk><trkseg><trkpt lat='9' lon='9'/></trkseg></trk></extensions>"
    first, second = f'<wpt lat="1" lon="1"><name>a</name>{deeper}</wpt>', '<wpt lat="2" lon="2"/>'
    rows = read(f'{beside}{first}{beside}{second}<wpt><wpt lat="9"/></wpt>')
    found = [(row["lat"], row["name"], row["time"]) for row in rows]
    assert found == [("1", "a", None), ("2", None, None), (None, None, None)]


@pytest.mark.parametrize("root", ["OGRVRTDataSource", "OGRWFSDataSource", "kml", "x"])
def test_what_is_no_gpx_is_refused_in_one_line(root):
    with pytest.raises(InvalidInput, match=r"source: got x.gpx, a file that is not GPX; expected a whole GPX file$"):
        read('<gpx><wpt lat="1" lon="1"/></gpx>', root)


def waypoint(name, minute, inside=""):
    time = f"<time>2024-05-06T08:0{minute}:00Z</time>"
    return f'<wpt lat="5{minute}" lon="13">{time}<name>{name}</name>{inside}</wpt>'


HOSTILE = {
    "a place as text": "<desc>lat='</desc><cmt>lon=\"</cmt>",
    "a long text": f"<desc>{'x' * 300_000}</desc>",
    "lines": f"<desc>{chr(10) * 20_000}</desc>",
    "entities": f"<desc>{'&lt;' * 40_000}</desc>",
    "a long comment": f"<!--{'x' * 300_000}-->",
    "a long instruction": f"<?a {'x' * 300_000}?>",
    "a long attribute": f'<extensions><a b="{"x" * 300_000}"/></extensions>',
    "another format": "<desc>OGRVRTDataSource</desc><!-- <OGRWFSDataSource> -->",
    "another point": waypoint("ann", 9),
    "a track": '<extensions><trk><trkseg><trkpt lat="1" lon="2"/></trkseg></trk></extensions>',
    "another name": "<extensions><name>ann</name></extensions><link><name>ann</name></link>",
}


@pytest.mark.replayed_words
@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("inside", HOSTILE.values(), ids=HOSTILE)
def test_text_of_one_person_changes_no_row_of_others(tmp_path, kind, inside):
    def others(hostile):
        points = [waypoint("ann", 1), waypoint("bob", 2), *hostile, waypoint("ann", 3), waypoint("bob", 4)]
        data = f'<gpx version="1.1" creator="x">{"".join(points)}</gpx>'.encode()
        source = write_folder(tmp_path, {"people/all.gpx": data})
        found = import_geo(source / "people" / ("all.gpx" if kind == "file" else ""), user_column="name")
        assert not found.report.dropped
        return [row for row in found.trajectories.to_arrow().to_pylist() if row["user"] != "eve"]

    expected = others([])
    assert len(expected) == 4
    assert others([waypoint("eve", 5, inside)]) == expected
