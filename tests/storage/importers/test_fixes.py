"""Fixes of animals, ships and vehicles by the names of their columns; those without a place, and outliers, left out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

ANIMALS = """event-id,visible,timestamp,location-long,location-lat,behavioural-classification,manually-marked-outlier,sensor-type,individual-taxon-canonical-name,tag-local-identifier,individual-local-identifier,study-name
170635808,true,2011-02-11 17:30:00.000,,,,,"gps","Martes pennanti","1072","F1","Martes pennanti LaPoint New York"
170635809,true,2011-02-11 17:40:00.000, , ,,,"gps","Martes pennanti","1072","F1","Martes pennanti LaPoint New York"
170635812,true,2011-02-11 18:06:13.999,-73.8601516,42.7952815,,,"gps","Martes pennanti","1072","F1","Martes pennanti LaPoint New York"
170635813,true,2011-02-11 18:10:08.999,-73.8600106,42.7953403,,,"gps","Martes pennanti","1072","F1","Martes pennanti LaPoint New York"
"""  # noqa: E501 (as it is published)


def read(path, kind, **options):
    """The rows, with the clock of UTC, what is rejected, and the notes."""
    imported = IMPORTERS[kind](path, **options)
    rows = [tuple(row.values()) for row in imported.trajectories.placed.to_arrow().to_pylist()]
    rejected = [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()]
    return [(row[0], row[1].strftime("%H:%M:%S"), *row[2:]) for row in rows], rejected, imported.report.notes


def written(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    return tmp_path / "x.csv"


def test_animals_without_a_place_are_left_out_and_none_is_rejected(tmp_path):
    rows, rejected, notes = read(written(tmp_path, ANIMALS), "movebank")
    assert rows == [("F1", "18:06:13", 42.7952815, -73.8601516), ("F1", "18:10:08", 42.7953403, -73.8600106)]
    assert rejected == [] and notes == ("left out: 2 rows without a place: none was recorded",)


@pytest.mark.parametrize("between", "-_")
def test_outliers_are_left_out_by_any_of_their_marks(tmp_path, between):
    header = "visible,timestamp,location-lat,location-long,individual-local-identifier,manually-marked-outlier"
    path = written(
        tmp_path,
        header.replace("-", between)
        + """,algorithm-marked-outlier
true,2011-02-11 18:00:00.000,42,-73,a,,false
TRUE,2011-02-11 18:01:00.000,42,-73,a,,true
false,2011-02-11 18:02:00.000,42,-73,a,,
,2011-02-11 18:03:00.000,42,-73,a,TRUE,
,2011-02-11 18:04:00.000,42,,a,,
,2011-02-11 18:05:00.000,420,-73,a,,
,soon,42,-73,a,,
,soon,,,a,,
,2011-02-11 18:06:00.000,42,-73,,,
x,2011-02-11 18:07:00.000,42,-73,b,x,x
""".replace("algorithm-marked-outlier", "algorithm-marked-outlier".replace("-", between)),
    )
    rows, rejected, notes = read(path, "movebank")
    assert rows == [("a", "18:00:00", 42.0, -73.0), ("b", "18:07:00", 42.0, -73.0)]
    assert rejected == [
        (5, "invalid_place"), (6, "invalid_place"), (7, "invalid_time"), (9, "missing_user")
    ]  # fmt: skip
    assert notes == (
        "left out: 1 rows without a place: none was recorded", "left out: 3 rows that are marked as outliers"
    )  # fmt: skip


def test_types_of_parquet_are_read_alike(tmp_path):
    table = pa.table(
        {
            "visible": [True, False, None],
            "timestamp": pa.array([0, 10**15, 10**15], pa.timestamp("us")),
            "location-lat": [42.0, 42.0, None],
            "location-long": pa.array([7, 7, None], pa.int32()),
            "individual-local-identifier": pa.array([5, 5, 5], pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    rows, rejected, notes = read(tmp_path / "x.parquet", "movebank")
    assert rows == [("5", "00:00:00", 42.0, 7.0)] and rejected == [] and len(notes) == 2
    pq.write_table(table.set_column(0, "visible", pa.array([[1], [], None])), tmp_path / "y.parquet")
    with pytest.raises(InvalidInput, match="visible: got a column of type list"):
        read(tmp_path / "y.parquet", "movebank")


@pytest.mark.parametrize(
    "text",
    [
        "MMSI,BaseDateTime,LAT,LON,SOG\n367,2020-01-31T23:59:58,40.5,-74.1,0\n367,2020-02-01T00:00:00,91,181,0\n",
        "mmsi,base_date_time,longitude,latitude\n367,2025-01-31 23:59:58,-74.1,40.5\n"
        "367,2025-01-31 23:59:59,181,91.0\n",
        "# Timestamp,Type of mobile,MMSI,Latitude,Longitude\n31/01/2024 23:59:58,Class A,367,40.5,-74.1\n"
        "31/01/2024 23:59:58,Class A,367,91.000000,0.000000\n",
    ],
)
def test_ships_by_the_columns_of_their_publishers(tmp_path, text):
    rows, rejected, notes = read(written(tmp_path, text), "ais")
    assert rows == [("367", "23:59:58", 40.5, -74.1)] and rejected == []
    assert notes == ("left out: 1 rows without a place: none was recorded",)


def test_days_come_before_months_in_danish_tables(tmp_path):
    text = "# Timestamp,MMSI,Latitude,Longitude\n02/01/2024 00:00:00,1,55,10\n01/31/2024 00:00:00,1,55,10\n"
    imported = IMPORTERS["ais"](written(tmp_path, text))
    assert imported.trajectories.to_arrow().column("t").to_pylist()[0].isoformat() == "2024-01-02T00:00:00+00:00"
    assert imported.rejected.to_pylist() == [{"row": 2, "reason": "invalid_time"}]


@pytest.mark.parametrize(
    "names",
    [
        "vehicle_id,timestamp,latitude,longitude",
        "vehicle.id,timestamp,latitude,longitude",
        "Vehicle_ID,TIMESTAMP,Latitude,Longitude",
        "vehicle.vehicle.id,vehicle.timestamp,vehicle.position.latitude,vehicle.position.longitude",
    ],
)
def test_vehicles_have_unix_times_or_a_zone(tmp_path, names):
    path = written(tmp_path, f"id,{names}\n1,bus,1715000000,52.5,13.4\n2,bus,2024-05-06T15:00:00,52.5,13.4\n")
    rows, rejected, _ = read(path, "avl")
    assert rows == [("bus", "12:53:20", 52.5, 13.4)] and rejected == [(2, "time_without_zone")]
    assert [row[1] for row in read(path, "avl", timezone="Europe/Berlin")[0]] == ["12:53:20", "13:00:00"]


@pytest.mark.parametrize("kind", ["movebank", "ais", "avl"])
def test_other_tables_are_refused_by_their_columns(tmp_path, kind):
    with pytest.raises(InvalidInput, match="source: got columns user, t, lat, lon; expected columns "):
        read(written(tmp_path, "user,t,lat,lon\na,1,2,3\n"), kind)


def test_a_published_set_of_animals_is_read_whole(data_folder):
    rows, rejected, notes = read(data_folder / "tracks" / "fishers_movebank.csv.gz", "movebank")
    assert (len(rows), len({row[0] for row in rows}), rejected) == (32904, 8, [])
    assert notes == ("left out: 14,443 rows without a place: none was recorded",)
