"""Published sets, each in its own layout: one file of invented values in every one, and what of it is rejected."""

from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

HEADER = (
    '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"\n'
)


def trip(number, taxi, line, missing="False", at="1372636858"):
    return f'"{number}","B","","7","{taxi}","{at}","A","{missing}","{line}"\n'


def read(kind, path, **options):
    """Rows as tuples, and what is rejected."""
    imported = IMPORTERS[kind](path, **options)
    rows = [tuple(row.values()) for row in imported.trajectories.placed.to_arrow().to_pylist()]
    return [(r[0], r[1].strftime("%H:%M:%S"), *r[2:]) for r in rows], imported


def test_cabspotting(tmp_path):
    (tmp_path / "new_b.txt").write_text("37.77146 -122.42010 0 1211023883\n37.77 -122.42 1 1211023796\n")
    (tmp_path / "_cabs.txt").write_text('<cab id="b" updates="2"/>\n')
    rows, imported = read("cabspotting", tmp_path)
    assert rows == [("b", "11:29:56", 37.77, -122.42), ("b", "11:31:23", 37.77146, -122.4201)]
    assert not len(imported.rejected) and imported.report.files == 1


def test_tdrive_is_in_beijing_time(tmp_path):
    (tmp_path / "1.txt").write_text("1,2008-02-02 15:36:08,116.40952,39.92000\n1,2008-02-02 15:36:08,39.9,116.4\n")
    (tmp_path / "2.txt").write_text("")
    rows, imported = read("tdrive", tmp_path)
    assert rows == [("1", "07:36:08", 39.92, 116.40952)]
    assert imported.rejected.to_pylist() == [{"file": f"{tmp_path.name}/1.txt", "row": 2, "reason": "invalid_place"}]


def test_foursquare_is_latin_1_and_its_times_are_utc(tmp_path):
    line = "2\tv\tc\tCaf\xe9\t40.681189\t-73.977803\t-240\t{}\n"
    text = line.format("Tue Apr 03 18:00:09 +0000 2012") + line.format("Tue Apr 31 18:00:09 +0000 2012")
    (tmp_path / "x.txt").write_bytes(text.encode("latin-1"))
    rows, imported = read("foursquare", tmp_path / "x.txt")
    assert rows == [("2", "18:00:09", 40.681189, -73.977803)]
    assert imported.rejected.to_pylist() == [{"row": 2, "reason": "invalid_time"}]
    assert read("foursquare", tmp_path / "x.txt", state_column="category")[0] == [("2", "18:00:09", "Café")]
    with pytest.raises(InvalidInput, match="the file of one city"):
        read("foursquare", tmp_path)


def test_porto_has_a_point_every_15_seconds_of_whole_trips(tmp_path):
    (tmp_path / "train.csv").write_text(
        HEADER
        + trip(7, "t2", "[[-8.629,41.15],[-8.63,41.16]]")
        + trip(8, "t1", "[]")
        + trip(9, "t1", "[[-8.5,41.1]]", missing="True")
        + trip(10, "t1", "[[-8.5,41.1],[-8.5]]")
        + trip(11, "t1", "[[-8.5,41.1]]", at="soon")
        + trip(12, "t1", "[[-8.5,141.1],[-8.5,41.1]]")
    )
    rows, imported = read("porto", tmp_path / "train.csv")
    assert rows == [
        ("t1", "00:01:13", 41.1, -8.5, 12),
        ("t2", "00:00:58", 41.15, -8.629, 7),
        ("t2", "00:01:13", 41.16, -8.63, 7),
    ]
    assert imported.rejected.to_pylist() == [
        {"row": 3, "reason": "missing_points"},
        {"row": 4, "reason": "invalid_place"},
        {"row": 5, "reason": "invalid_time"},
        {"row": 6, "reason": "invalid_place"},
    ]
    assert imported.report.rows == 6
    (tmp_path / "x.csv").write_text("user,t\na,b\n")
    with pytest.raises(InvalidInput, match=r"no column TAXI_ID among user, t; expected train.csv"):
        read("porto", tmp_path / "x.csv")


def test_an_option_that_a_set_does_not_have_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("1,2008-02-02 15:36:08,116.40952,39.92000\n")
    with pytest.raises(InvalidInput, match="options: got state_column; expected one of none"):
        read("tdrive", tmp_path / "x.txt", state_column="t")
