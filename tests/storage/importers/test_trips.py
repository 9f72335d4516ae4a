"""Trips with origin and destination in one row: two rows of one trip, of a person that a column or an option says."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

BIKES = """"ride_id","rideable_type","started_at","ended_at","start_station_name","start_station_id","end_station_name","end_station_id","start_lat","start_lng","end_lat","end_lng","member_casual"
"A1","electric_bike","2024-09-06 16:30:38.511","2024-09-06 16:39:13.554","North","1","South","2",40.7423,-73.9541,40.7218,-73.9504,"member"
"A2","classic_bike","2024-09-07 18:03:30.597","2024-09-07 18:10:42.430","South","2","East","3",40.7218,-73.9504,40.7101,-73.9397,"member"
"""  # noqa: E501 (as it is published)
NEW_YORK = {"timezone": "America/New_York"}


def read(path, **options):
    """The rows, with the clock of UTC, and what is rejected."""
    imported = IMPORTERS["trips"](path, **options)
    rows = [
        tuple(value.strftime("%H:%M:%S") if name == "t" else value for name, value in row.items())
        for row in imported.trajectories.placed.to_arrow().to_pylist()
    ]
    return rows, [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()]


def table(tmp_path, *rows, header="user,start,end,from,to"):
    path = tmp_path / "x.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


COLUMNS = {"time_column": "start,end", "state_column": "from,to", "timezone": "UTC"}


def test_a_bike_trip_is_two_rows_of_one_trip(tmp_path):
    (tmp_path / "trips.csv").write_text(BIKES)
    rows, rejected = read(tmp_path / "trips.csv", each_trip=True, **NEW_YORK)
    assert rows == [
        ("1", "20:30:38", 40.7423, -73.9541, 0), ("1", "20:39:13", 40.7218, -73.9504, 0),
        ("2", "22:03:30", 40.7218, -73.9504, 0), ("2", "22:10:42", 40.7101, -73.9397, 0),
    ]  # fmt: skip
    assert rejected == []
    by_name = {"state_column": "start_station_name, end_station_name", "user_column": "ride_id"}
    rows, _ = read(tmp_path / "trips.csv", **by_name, **NEW_YORK)
    assert rows == [
        ("A1", "20:30:38", "North", 0), ("A1", "20:39:13", "South", 0), ("A2", "22:03:30", "South", 0),
        ("A2", "22:10:42", "East", 0),
    ]  # fmt: skip
    assert read(tmp_path / "trips.csv", user="ann", **NEW_YORK)[0][3] == ("ann", "22:10:42", 40.7101, -73.9397, 1)
    with pytest.raises(
        InvalidInput, match=r"user: got no such column among .*; expected user_column=, or each_trip=True"
    ):
        read(tmp_path / "trips.csv", **NEW_YORK)
    with pytest.raises(InvalidInput, match="each_trip: got another rule beside it: ride_id"):
        read(tmp_path / "trips.csv", user_column="ride_id", each_trip=True)
    with pytest.raises(InvalidInput, match="times without a zone"):
        read(tmp_path / "trips.csv", each_trip=True)


def test_the_columns_of_taxis_are_known_in_parquet(tmp_path):
    moments = pa.array([1725633038000000, 1725633638000000], pa.timestamp("us"))
    columns = {"tpep_pickup_datetime": moments, "tpep_dropoff_datetime": moments.cast(pa.int64()).cast(moments.type)}
    taxis = pa.table({"VendorID": [1, 2], **columns, "PULocationID": [132, 7], "DOLocationID": [230.0, None]})
    pq.write_table(taxis, tmp_path / "x.parquet")
    rows, rejected = read(tmp_path / "x.parquet", each_trip=True, **NEW_YORK)
    assert [row[2] for row in rows] == ["132", "230", "7"] and rejected == [(2, "missing_state")]
    places = {"pickup_latitude": [40, 41], "pickup_longitude": [1.5, 1.5], "dropoff_latitude": ["40.5", "x"]}
    older = {name.removeprefix("tpep_"): column for name, column in columns.items()}
    pq.write_table(pa.table({**older, **places, "dropoff_longitude": [2, 2]}), tmp_path / "y.parquet")
    rows, rejected = read(tmp_path / "y.parquet", user="ann", timezone="UTC")
    assert [row[2:] for row in rows] == [(40.0, 1.5, 0), (40.5, 2.0, 0), (41.0, 1.5, 1)]
    assert rejected == [(2, "invalid_place")]


def test_a_trip_is_judged_by_its_row(tmp_path):
    day = "2024-05-06T"
    rows, rejected = read(
        table(
            tmp_path, f"a,{day}08:00,{day}09:00,x,y", f"a,{day}09:00,{day}08:59,x,y", f"b,soon,{day}09:00,x,y",
            f"b,{day}08:00,,x,y", f"b,{day}08:00,{day}08:00,,y", f",{day}08:00,{day}09:00,x,y", "a,b",
            f"a,{day}07:00,{day}07:30,z,x", f"b,{day}10:00,{day}10:30,,",
        ),
        **COLUMNS,
    )  # fmt: skip
    assert rows == [
        ("a", "07:00:00", "z", 1), ("a", "07:30:00", "x", 1), ("a", "08:00:00", "x", 0), ("a", "09:00:00", "y", 0),
        ("b", "08:00:00", "y", 0),
    ]  # fmt: skip
    assert rejected == [
        (2, "invalid_interval"), (3, "invalid_time"), (4, "invalid_time"), (5, "missing_state"), (6, "missing_user"),
        (7, "ragged_row"), (9, "missing_state"),
    ]  # fmt: skip


def test_numbers_of_trips_are_those_of_the_rows_over_all_files(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / "d" / f"{name}.csv").write_text(BIKES)
    rows, _ = read(tmp_path / "d", each_trip=True, **NEW_YORK)
    assert [row[0] for row in rows] == ["1", "1", "2", "2", "3", "3", "4", "4"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "time_column: got nothing; expected START,END, two of user, start, end, from, to"),
        ({"time_column": "start"}, "time_column: got start; expected START,END, two of user, start"),
        ({"time_column": "start,"}, "time_column: got start,; expected START,END"),
        ({"time_column": "start,end,x"}, "time_column: got start,end,x; expected START,END"),
        ({"time_column": "start,end"}, "state_column: got nothing; expected START,END, two of"),
        ({"time_column": "start,nope"}, "time_column: got start,nope; expected START,END, two of user, start"),
        ({"time_column": "start,end", "lat_column": "from,to"}, "state_column: got nothing; expected START,END"),
        ({**COLUMNS, "user_column": "nope"}, "user_column: got nope; expected one of"),
        ({**COLUMNS, "user": "a", "each_trip": True}, "each_trip: got another rule beside it: a"),
    ],
)
def test_options_that_do_not_fit_are_named(tmp_path, options, told):
    with pytest.raises(InvalidInput) as refused:
        read(table(tmp_path, "a,2024-05-06T08:00,2024-05-06T09:00,x,y"), **options)
    assert str(refused.value).startswith(told)


def test_a_text_that_another_delimiter_cuts_says_so(tmp_path):
    path = table(tmp_path, "a;1;2;x;y", header="who;start;end;from;to")
    with pytest.raises(InvalidInput, match="time_column: got start,end; expected START,END, two of"):
        read(path, **COLUMNS)
    assert read(path, delimiter="semicolon", user_column="who", time_format="unix-s", **COLUMNS)[0][1][2] == "y"
