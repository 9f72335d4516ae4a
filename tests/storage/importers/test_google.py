"""Google's location history in its forms: a point that was recorded is a row; all are one person's."""

from __future__ import annotations

import json

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

RECORDS = """{"locations": [
 {"latitudeE7": 473766094, "longitudeE7": 85484732, "accuracy": 20, "timestamp": "2012-12-18T21:30:35.352Z"},
 {"latitudeE7": 473768130, "longitudeE7": 85475402, "accuracy": 36, "timestamp": "2012-12-18T21:29:34.352Z"},
 {"latitudeE7": 473731094, "longitudeE7": 85384732, "accuracy": 20, "timestamp": "2012-12-18T20:30:35.352Z"}
]}"""


def read(tmp_path, history, **options):
    """(clock, lat, lon) of the rows, what is rejected, and the notes."""
    path = tmp_path / "x.json"
    path.write_text(history if isinstance(history, str) else json.dumps(history, ensure_ascii=False))
    imported = IMPORTERS["google"](path, **(options or {"user": "ann"}))
    assert imported.trajectories.users == ("ann",)
    placed = imported.trajectories.placed.to_arrow().to_pylist()
    rows = [(row["t"].strftime("%H:%M:%S"), row["lat"], row["lon"]) for row in placed]
    return rows, [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()], imported.report.notes


def test_locations_of_records(tmp_path):
    rows, rejected, notes = read(tmp_path, RECORDS)
    assert rows == [
        ("20:30:35", 47.3731094, 8.5384732),
        ("21:29:34", 47.376813, 8.5475402),
        ("21:30:35", 47.3766094, 8.5484732),
    ]
    assert rejected == [] and notes == ()
    with pytest.raises(InvalidInput, match="user_name: got nothing; expected user_name= for one person, or user_from="):
        read(tmp_path, RECORDS, spelling="same")


def test_numbers_that_overflowed_are_mended_and_others_are_no_places(tmp_path):
    def location(lat, lon, **more):
        return {"latitudeE7": lat, "longitudeE7": lon, "timestampMs": "1355866235352", **more}

    rows, rejected, notes = read(
        tmp_path,
        {
            "locations": [
                location(2**32 - 338688197, 1512092955),
                location(473766094, 2**32 - 739541000),
                location(1800000001, 85484732),
                location(473766094, 1800000001),
                location(10**11, 85484732),
                location("473766094", 1.5),
                location(None, []),
                location(1, -1),
                {"timestampMs": "1355866235352"},
                location(473766094, 85484732, timestamp="soon"),
                location(473766094, 85484732, timestampMs=""),
                "x",
            ]
        },
    )
    assert [row[1:] for row in rows] == [(-33.8688197, 151.2092955), (47.3766094, -73.9541), (1e-7, -1e-7)]
    reasons = dict(rejected)
    assert {reasons[row] for row in (3, 4, 5, 6, 7, 9)} == {"invalid_place"}
    assert {reasons[row] for row in (10, 11, 12)} == {"invalid_time"}
    assert notes == ("t: taken as Unix milliseconds (9 rows)",)


def test_the_timeline_of_an_android_phone(tmp_path):
    path = [
        {"point": "47.3766094°, 8.5484732°", "time": "2024-05-06T10:00:00.000+02:00"},
        {"point": "47.37°, 8.54", "time": "2024-05-06T10:05:00.000+02:00"},
        {"point": "47.37°", "time": "2024-05-06T10:05:00.000+02:00"},
        {"point": "-91.0°, 8.54°", "time": "2024-05-06T10:05:00.000+02:00"},
        {"point": "47.37°, 8.54°"},
        None,
    ]
    start = {"startTime": "2024-05-06T10:00:00.000+02:00", "endTime": "2024-05-06T12:00:00.000+02:00"}
    visit = {"topCandidate": {"placeLocation": {"latLng": "1.0°, 2.0°"}}}
    history = {
        "semanticSegments": [
            {**start, "timelinePath": path}, {**start, "visit": visit}, {**start, "activity": {"start": {}}}, 7
        ],
        "rawSignals": [
            {"position": {"LatLng": "-47.5°, -8.5°", "timestamp": "2024-05-06T08:30:00.000Z"}},
            {"wifiScan": {"deliveryTime": "2024-05-06T08:30:00.000Z"}},
        ],
    }  # fmt: skip
    rows, rejected, notes = read(tmp_path, history)
    assert rows == [("08:00:00", 47.3766094, 8.5484732), ("08:05:00", 47.37, 8.54), ("08:30:00", -47.5, -8.5)]
    assert rejected == [(3, "invalid_place"), (4, "invalid_place"), (5, "invalid_time"), (6, "invalid_time")]
    assert notes == ("2 visits and activities are no rows: they are guesses at what was recorded",)


def test_the_timeline_of_an_iphone(tmp_path):
    offsets = ["0", "34", "x", "9" * 400]
    path = [{"point": "geo:47.376609,8.548473", "durationMinutesOffsetFromStartTime": text} for text in offsets]
    history = [
        {"startTime": "2024-05-06T10:00:00.000+02:00", "timelinePath": path},
        {"startTime": "soon", "timelinePath": path[:1]},
        {"startTime": "2024-05-06T10:00:00.000+02:00", "visit": {"topCandidate": {"placeLocation": "geo:1.0,2.0"}}},
        {"timelinePath": path[:1]},
    ]
    rows, rejected, _ = read(tmp_path, history)
    assert rows == [("08:00:00", 47.376609, 8.548473), ("08:34:00", 47.376609, 8.548473)]
    assert [row for row, _ in rejected] == [3, 4, 5, 6]


def test_other_files_are_refused_and_left_out_of_a_folder(tmp_path):
    for text in ("{}", "[]", "5", '{"locations": {}}', '{"timelineObjects": [{}]}'):
        with pytest.raises(InvalidInput, match="without a row that can be read"):
            read(tmp_path, text)
    for text in ("", "[" * 100_000, '{"locations": [', "\0"):
        with pytest.raises(InvalidInput, match="which cannot be read; expected JSON of a location history"):
            read(tmp_path, text)
    for name, text in (("ann/a.json", RECORDS), ("ann/b.json", RECORDS), ("bob/a.json", RECORDS), ("c/x.json", "{")):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_text(text)
    imported = IMPORTERS["google"](tmp_path / "all", user_from="folder-name")
    assert imported.trajectories.users == ("ann", "bob") and imported.report.kept == 9
    assert imported.rejected.to_pylist() == [{"file": "all/c/x.json", "row": 1, "reason": "unreadable_file"}]
