"""Places of KML: tracks, points with a time stamp, and lines; whose they are is said by an option."""

from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS


def track(*fixes, name=""):
    """A Placemark with a track of (clock, place)."""
    whens = "".join(f"<when>2024-05-06T{clock}Z</when>" for clock, _ in fixes if clock)
    coords = "".join(f"<gx:coord>{place}</gx:coord>" for _, place in fixes if place)
    return f"<Placemark><name>{name}</name><gx:Track>{whens}{coords}</gx:Track></Placemark>"


def point(clock, place, name=""):
    stamp = f"<TimeStamp><when>2024-05-06T{clock}</when></TimeStamp>"
    return f"<Placemark><name>{name}</name>{stamp}<Point><coordinates>{place}</coordinates></Point></Placemark>"


def line(places):
    return f"<Placemark><LineString><coordinates>{places}</coordinates></LineString></Placemark>"


def document(*parts):
    spaces = 'xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"'
    return f'<?xml version="1.0"?><kml {spaces}><Document>{"".join(parts)}</Document></kml>'


def read(tmp_path, *parts, **options):
    """(user, clock if any, lat, lon, trip) of the rows, and what is rejected."""
    (tmp_path / "x.kml").write_text(document(*parts))
    imported = IMPORTERS["kml"](tmp_path / "x.kml", **options)
    rows = [
        (row["user"], row["t"].strftime("%H:%M") if "t" in row else None, row["lat"], row["lon"], row["trip"])
        for row in imported.trajectories.placed.to_arrow().to_pylist()
    ]
    return rows, [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()]


def test_a_track_has_times_and_places_in_turn(tmp_path):
    first = track(("08:00:00", "13.4 52.5 30"), ("08:05:00", "13.5 52.6 30"), name="walk")
    second = track(("09:00:00", "13.4 52.5"), ("09:05:00", ""), name="back")
    rows, rejected = read(tmp_path, first, second, user="ann")
    assert rows == [("ann", "08:00", 52.5, 13.4, 0), ("ann", "08:05", 52.6, 13.5, 0), ("ann", "09:00", 52.5, 13.4, 1)]
    assert rejected == [(4, "invalid_place")]
    # Each person's tracks are numbered from 0, and the name of a Placemark is a person only where that is said.
    rows, _ = read(tmp_path, first, second, user_column="name")
    assert [(row[0], row[4]) for row in rows] == [("back", 0), ("walk", 0), ("walk", 0)]
    with pytest.raises(InvalidInput, match="user: got no such column among name, t, lat, lon, trip"):
        read(tmp_path, first)


def test_places_that_are_left_over_lack_a_time(tmp_path):
    rows, rejected = read(tmp_path, track(("08:00:00", "13.4 52.5"), ("", "13.5 52.6")), user="ann")
    assert len(rows) == 1 and rejected == [(2, "invalid_time")]


def test_points_have_their_time_stamp(tmp_path):
    good, zoneless = point("08:00:00+02:00", "13.4,52.5,0"), point("08:10:00", " 13.4,52.5 ")
    wrong = [point("08:00:00Z", place) for place in ("13.4", "", "13.4,91", "x,52", "52.5;13.4")]
    rows, rejected = read(tmp_path, good, zoneless, *wrong, user="ann")
    assert rows == [("ann", "06:00", 52.5, 13.4, -1)]
    assert rejected == [(2, "time_without_zone"), *((row, "invalid_place") for row in (3, 4, 5, 6))]
    rows, _ = read(tmp_path, good, zoneless, user="ann", timezone="UTC")
    assert [row[1] for row in rows] == ["06:00", "08:10"]


def test_a_line_has_no_times_and_is_read_in_its_order(tmp_path):
    with pytest.raises(InvalidInput, match="source: got places without times; expected no_times=True to take them"):
        read(tmp_path, line("13.4,52.5,0 13.5,52.6,0"), user="ann")
    rows, rejected = read(tmp_path, line("13.4,52.5,0\n 13.5,52.6,0"), line("13.4,52.5"), user="ann", no_times=True)
    assert rows == [("ann", None, 52.5, 13.4, 0), ("ann", None, 52.6, 13.5, 0), ("ann", None, 52.5, 13.4, 1)]
    assert rejected == []
    # Beside places with times those of a line are set aside.
    rows, rejected = read(tmp_path, line("13.4,52.5,0 13.5,52.6,0"), point("08:00:00Z", "13.4,52.5"), user="ann")
    assert len(rows) == 1 and rejected == [(1, "invalid_time"), (2, "invalid_time")]


def test_what_is_no_place_is_no_row(tmp_path):
    ring = "<Polygon><outerBoundaryIs><LinearRing><coordinates>1,2 3,4 5,6 1,2</coordinates></LinearRing>"
    ring = f"<Placemark>{ring}</outerBoundaryIs></Polygon></Placemark>"
    rows, rejected = read(tmp_path, ring, "<Placemark/>", point("08:00:00Z", "13.4,52.5"), user="ann")
    assert len(rows) == 1 and rejected == []
    with pytest.raises(InvalidInput, match="without a row that can be read"):
        read(tmp_path, ring, user="ann")


def test_tracks_of_two_files_of_one_person_are_two_trips(tmp_path):
    (tmp_path / "ann").mkdir()
    for name, clock in (("1.kml", "08:00:00"), ("2.kml", "09:00:00")):
        (tmp_path / "ann" / name).write_text(document(track((clock, "13.4 52.5"))))
    (tmp_path / "ann" / "3.kml").write_text(document(line("13.4,52.5")))
    imported = IMPORTERS["kml"](tmp_path, user_from="folder-name")
    rows = imported.trajectories
    assert rows.users == ("ann",) and rows.trip.tolist() == [0, 1]
    assert imported.rejected.column("reason").to_pylist() == ["unreadable_file"]
