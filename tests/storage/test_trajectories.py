"""Trajectories read from files and tables, whole or in parts of any size.

Claims: what becomes of a row depends on the row, the types of columns and the options; a file read in parts gives the
rows that the whole file gives, in 12 to 20 bytes a row. It would fail for a reader that guesses a cell's meaning from
other cells, that loses a row at the end of a part, or that holds the rows of a file in memory.
"""

from __future__ import annotations

import datetime as dt
import gzip
import inspect
import os
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.states import Trajectories, visit_table
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import true_states
from dphmm.states.visit_table import VisitTable
from dphmm.storage import csv_files, inputs, tables, trajectories
from dphmm.storage.columns import Times
from dphmm.storage.importers import import_trajectories
from dphmm.storage.ledger import open_ledger
from dphmm.storage.tables import convert_frame, to_arrow, to_kind, write_table
from dphmm.storage.trajectories import (
    load_trajectories,
    load_visits,
    save_trajectories,
)
from random_seeds import seeds

UTC = dt.UTC
SUFFIXES = (".parquet", ".csv", ".csv.gz")
CANARY = "CANARY_7f3a"


def times(column, *zone):
    reader = Times("t", *zone)
    values, marks = reader.add(column)
    return values, marks["invalid_time"]


def text_times(*written):
    return times(pa.chunked_array([pa.array(written, pa.string())]))


def csv(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text)
    return load_trajectories(tmp_path / "x.csv", **options)


def reasons(loaded):
    return dict(
        zip(
            loaded.rejected.column("row").to_pylist(),
            loaded.rejected.column("reason").to_pylist(),
            strict=True,
        )
    )


columns = st.fixed_dictionaries(
    {},
    optional={
        "time": st.integers(-(10**15), 10**15),
        "step": st.integers(-(2**53), 2**53),
        "trip": st.integers(-1, 10**6),
        "state": st.sampled_from(["=a", "b", "-5", "ñ x"]),
    },
)


@settings(max_examples=30)
@given(st.data(), columns, st.sampled_from(SUFFIXES))
def test_trajectories_come_back(tmp_path_factory, data, shape, suffix):
    n = data.draw(st.integers(1, 6))
    made = {name: data.draw(st.lists(_like(value), min_size=n, max_size=n)) for name, value in shape.items()}
    lat = data.draw(st.lists(st.floats(-90, 90), min_size=n, max_size=n))
    users = data.draw(st.lists(st.sampled_from(["001", "=x", "a b"]), min_size=n, max_size=n))
    arrays = {name: np.array(v, object if name == "state" else np.int64) for name, v in made.items()}
    given_rows = Trajectories.from_labels(users, lat=np.array(lat), lon=np.array(lat), **arrays)
    path = tmp_path_factory.mktemp("t") / f"x{suffix}"
    save_trajectories(path, given_rows)
    back, rejected, *_ = load_trajectories(path)
    assert rejected.num_rows == 0
    assert [back.users[u] for u in back.user] == users
    assert np.array_equal(back.lat, given_rows.lat) and np.array_equal(back.lon, given_rows.lon)
    for name in ("time", "step", "state"):
        if name in made:
            assert getattr(back, name).tolist() == made[name]
    if "trip" in made and min(made["trip"]) >= 0:
        assert back.trip.tolist() == made["trip"]


def _like(value):
    if isinstance(value, str):
        return st.sampled_from(["=a", "b", "-5", "ñ x"])
    return st.integers(0, abs(value))


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2008-10-23T02:53:04Z", (2008, 10, 23, 2, 53, 4)),
        ("2008-10-23 02:53:04+00:00", (2008, 10, 23, 2, 53, 4)),
        ("2008-10-23T10:53:04+08:00", (2008, 10, 23, 2, 53, 4)),
        ("2008-10-23T10:53:04+0800", (2008, 10, 23, 2, 53, 4)),
        ("2008-10-23T10:53:04+08", (2008, 10, 23, 2, 53, 4)),
        ("2008-10-23T02:53Z", (2008, 10, 23, 2, 53, 0)),
        ("2008-10-23T02:53:04.25Z", (2008, 10, 23, 2, 53, 4, 250_000)),
        ("2008-10-23T02:53:04.123456789Z", (2008, 10, 23, 2, 53, 4, 123_456)),
        ("1950-02-28T23:59:59Z", (1950, 2, 28, 23, 59, 59)),
    ],
)
def test_times_with_a_zone_are_read(written, moment):
    expected = dt.datetime(*moment, tzinfo=UTC)
    values, bad = text_times(written, "1970-01-01T00:00:00Z")
    assert not bad.any() and values[1] == 0
    assert dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=int(values[0])) == expected


@pytest.mark.parametrize(
    "written",
    [
        "2008-10-23T25:00:00Z",
        "2008-10-23",
        "23/10/2008 02:53Z",
        "2008-10-23T02:53:04 Europe/Berlin",
    ],
)
def test_times_that_cannot_be_read_are_marked(written):
    values, bad = text_times("2008-10-23T02:53:04Z", written, "2008-10-23T02:53:04.5Z")
    assert bad.tolist() == [False, True, False] and values[2] - values[0] == 500_000


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_timestamps_of_every_unit(unit):
    moment = np.array(["2008-10-23T02:53:04", "1950-01-01T00:00:01", "NaT"], "datetime64[s]")
    column = pa.chunked_array([pa.array(moment.astype(f"datetime64[{unit}]"))])
    zoned = column.cast(pa.timestamp(unit, "Asia/Shanghai"))
    values, bad = times(zoned)
    assert bad.tolist() == [False, False, True]
    assert values[:2].tolist() == moment[:2].astype("datetime64[us]").astype(np.int64).tolist()
    with pytest.raises(InvalidInput, match="zone"):
        times(column)
    assert times(column, "UTC")[0].tolist() == values.tolist()


@pytest.mark.parametrize(
    "column", [pa.array([1, 2]), pa.array([1.5]), pa.array([dt.date(2008, 1, 1)]), pa.array([True])]
)
def test_other_types_are_no_times(column):
    with pytest.raises(InvalidInput, match="timezone"):
        times(pa.chunked_array([column]), "UTC")


def test_bad_rows_are_set_aside_with_a_reason_and_no_value(tmp_path):
    loaded = csv(
        tmp_path,
        "user,t,lat,lon,step\n"
        "a,2008-10-23T02:53:04Z,39.9,116.3,1\n"
        ",2008-10-23T02:53:04Z,39.9,116.3,1\n"
        "a,never,39.9,116.3,1\n"
        f"a,2008-10-23T02:53:04Z,{CANARY},116.3,1\n"
        "a,2008-10-23T02:53:04Z,90.5,116.3,1\n"
        "a,2008-10-23T02:53:04Z,39.9,nan,1\n"
        "a,2008-10-23T02:53:04Z,39.9,116.3,1.5\n"
        "a,2008-10-23T02:53:04Z,39.9,116.3,9223372036854775808\n"
        "a\x01,2008-10-23T02:53:04Z,39.9,116.3,1\n"
        "a,2008-10-23T02:53:04Z,1_0,116.3,1\n"
        "a,2008-10-23T02:53:04Z,٣,116.3,1\n"
        "b,2008-10-23T02:53:05Z,-39.9,-116.3,2\n",
    )
    assert reasons(loaded) == {
        2: "missing_user",
        3: "invalid_time",
        4: "invalid_place",
        5: "invalid_place",
        6: "invalid_place",
        7: "invalid_step",
        8: "invalid_step",
        9: "missing_user",
        10: "invalid_place",
        11: "invalid_place",
    }
    assert loaded.rejected.column_names == ["row", "reason"]
    assert loaded.dropped == {"missing_user": 2, "invalid_time": 1, "invalid_place": 5, "invalid_step": 2}
    assert loaded.trajectories.users == ("a", "b") and loaded.trajectories.lon.tolist() == [116.3, -116.3]


def test_users_that_have_no_good_row_are_no_users(tmp_path):
    loaded = csv(tmp_path, "user,t,lat,lon\nb,never,1,1\na,2008-10-23T02:53:04Z,1,1\n")
    assert loaded.trajectories.users == ("a",)
    with pytest.raises(InvalidInput, match="got 0 rows; expected at least one row with its columns"):
        csv(tmp_path, "user,t,lat,lon\n")


def test_a_place_that_exists_is_kept_wherever_it_is(tmp_path):
    loaded = csv(tmp_path, "user,t,lat,lon\na,2008-10-23T02:53:04Z,-89.9,-179.9\na,2008-10-23T02:53:04Z,0,359\n")
    assert loaded.trajectories.lon.tolist() == [-179.9, -1.0]


def test_columns_may_have_other_names(tmp_path):
    found = csv(
        tmp_path,
        "uid,when,lng,latitude,leg\n7,2008-10-23T02:53:04Z,116.3,39.9,out\n",
        user_column="uid",
        time_column="when",
        trip_column="leg",
    ).trajectories
    assert found.users == ("7",) and found.lat.tolist() == [39.9] and found.lon.tolist() == [116.3]
    assert found.trip.tolist() == [0]


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        ("uid,t,lat,lon", {}, "user_column"),
        ("user,t,x", {}, "place"),
        ("user,t,lat", {}, "place"),
        ("user,t,lat,lon", {"time_column": "when"}, "time_column: got when"),
        ("user,t,lat,lon", {"state_column": "page"}, "state_column: got page"),
    ],
)
def test_columns_that_are_not_there_are_named(tmp_path, header, options, words):
    with pytest.raises(InvalidInput, match=words):
        csv(tmp_path, header + "\n" + ",".join("1" for _ in header.split(",")) + "\n", **options)


def test_an_order_column_sorts_and_numbers_the_rows(tmp_path):
    text = "user,t,k,state\na,,30,x\nb,,2,y\na,,10,z\nb,,1,w\na,,10,v\n"
    found = csv(tmp_path, text, order_column="k").trajectories
    assert found.time is None and found.users == ("a", "b")
    assert found.state.tolist() == ["z", "v", "x", "w", "y"]
    assert found.user.tolist() == [0, 0, 0, 1, 1] and found.step.tolist() == [0, 1, 2, 0, 1]


def test_a_state_column_makes_places_unnecessary(tmp_path):
    loaded = csv(tmp_path, "user,page,lat,lon\na,news,,\na,\x07,1,1\na,,1,1\n", state_column="page")
    assert loaded.trajectories.state.tolist() == ["news", None, None] and loaded.trajectories.lat is None
    assert reasons(loaded) == {2: "missing_state"} and loaded.without_place == 1


def test_trips_that_are_numbers_stay_and_others_are_numbered(tmp_path):
    def trips(*rows):
        return csv(tmp_path, "user,state,trip\n" + "\n".join(rows)).trajectories.trip.tolist()

    assert trips("a,x,7", "a,x,3", "a,x,-1", "a,x,") == [7, 3, -1, -1]
    assert trips("a,x,7", "a,x,07", "a,x,") == [0, 1, -1]
    # Within each user: b's names are b's alone.
    assert trips("a,x,7", "b,x,out", "a,x,3", "b,x,back", "b,x,out", "c,x,9", "c,x,x", "c,x,9") == [
        7, 0, 3, 1, 0, 0, 1, 0,
    ]  # fmt: skip
    # A row without a state is of a trip, too.
    assert trips("a,,out", "a,x,back") == [0, 1]


@seeds(30)
def test_trips_and_their_order_are_those_of_a_loop_over_each_user(tmp_path, seed):
    """Brute force: each user's rows by trip, then by order, then as they stand; the rank is the step.

    A row without a state has a rank and a trip like all others.
    """
    rng = np.random.default_rng(seed)
    labels = [["3", "1", "2"], ["out", "3", "back", ""]]
    rows = [
        (f"u{(who := rng.integers(0, 3))}", str(rng.choice(labels[who % 2])), int(rng.integers(0, 3)))
        for _ in range(12)
    ]
    lost = set(np.flatnonzero(rng.random(12) < 0.3).tolist()) if seed % 2 else set()
    states = ["" if i in lost else f"s{i}" for i in range(12)]
    lines = (f"{user},{trip},{k},{state}\n" for (user, trip, k), state in zip(rows, states, strict=True))
    text = "user,trip,k,state\n" + "".join(lines)
    found = csv(tmp_path, text, order_column="k").trajectories
    expected = {}
    for user in {user for user, _, _ in rows}:
        mine = [(trip, k, i) for i, (who, trip, k) in enumerate(rows) if who == user]
        plain = all(trip.isdigit() for trip, _, _ in mine if trip)
        seen = dict.fromkeys(trip for trip, _, _ in mine if trip)
        numbers = {trip: int(trip) for trip in seen} if plain else {trip: n for n, trip in enumerate(seen)}
        number = {"": -1} | numbers
        ordered = sorted(mine, key=lambda row, number=number: (number[row[0]], row[1]))
        expected |= {(user, step): (states[i] or None, number[trip]) for step, (trip, _, i) in enumerate(ordered)}
    columns = (found.user, found.step, found.state, found.trip)
    got = {(found.users[u], int(step)): (state, int(trip)) for u, step, state, trip in zip(*columns, strict=True)}
    assert got == expected


def test_whole_floats_and_integers_are_one_kind_of_user(tmp_path):
    write_table(tmp_path / "x.parquet", pa.table({"user": [3.0, 4.5, None], "state": ["a", "b", "c"]}))
    loaded = load_trajectories(tmp_path / "x.parquet")
    assert loaded.trajectories.users == ("3",) and set(reasons(loaded).values()) == {"missing_user"}
    write_table(tmp_path / "x.parquet", pa.table({"user": [True], "state": ["a"]}))
    with pytest.raises(InvalidInput, match="user: got a column of type bool"):
        load_trajectories(tmp_path / "x.parquet")


def test_codes_with_a_point_are_the_listed_ones_in_every_kind_of_file(tmp_path):
    """A column of codes with an empty cell is written as floats by the programs that make such files."""
    codes, space = ("10.0", "0", "0.00", "10"), StateSpace.labels(["0", "10"])
    cells = "".join(f"<event><{kind} key='concept:name' value='{code}'/></event>"
                    for kind, code in zip(("float", "int", "string", "string"), codes, strict=True))  # fmt: skip
    (tmp_path / "x.xes").write_text(f"<log><trace><string key='concept:name' value='ann'/>{cells}</trace></log>")
    (tmp_path / "x.csv").write_text("user,state\n" + "".join(f"ann,{code}\n" for code in codes))
    (tmp_path / "x.jsonl").write_text("".join(f'{{"user": "ann", "state": {code}}}\n' for code in codes))
    write_table(tmp_path / "x.parquet", pa.table({"user": ["ann"] * 4, "state": list(map(float, codes))}))
    for name in ("x.xes", "x.csv", "x.jsonl", "x.parquet"):
        options = {"no_times": True} if name == "x.xes" else {}
        kind = "csv" if name == "x.parquet" else name.removeprefix("x.")
        rows = import_trajectories(tmp_path / name, kind, **options).trajectories
        states, outside = true_states(rows, space)
        assert states.tolist() == [1, 0, 0, 1] and not outside.any(), name


def frame():
    return pd.DataFrame(
        {
            "user": ["b", "a", "b"],
            "t": pd.to_datetime(["2008-10-23T02:53:04Z"] * 3, utc=True),
            "lat": [1.0, 2, 3],
            "lon": [4.0, 5, 6],
        },
        index=[10, 5, 7],
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
def test_tables_of_every_kind_are_read_and_given_back(kind):
    given_frame = frame()
    table = {
        "pandas": lambda: given_frame,
        "polars": lambda: pl.from_pandas(given_frame),
        "lazy": lambda: pl.from_pandas(given_frame).lazy(),
        "arrow": lambda: pa.Table.from_pandas(given_frame, preserve_index=False),
    }[kind]()
    found = load_trajectories(table).trajectories
    assert found.users == ("b", "a") and found.user.tolist() == [0, 1, 0] and found.lat.tolist() == [1, 2, 3]
    back = to_kind(pa.table({"z": [1, 2, 3]}), table)
    assert type(back) is type(table)
    if kind == "pandas":
        assert back.index.tolist() == [10, 5, 7]
        assert to_kind(pa.table({"z": [1]}), table).index.tolist() == [0]
    pd.testing.assert_frame_equal(given_frame, frame())


def test_mixed_pandas_columns_are_judged_cell_by_cell():
    mixed = pd.DataFrame({"user": [3, "3", None], "state": ["a", "b", "c"]})
    loaded = load_trajectories(mixed)
    assert loaded.trajectories.users == ("3",) and reasons(loaded) == {3: "missing_user"}
    place = pd.DataFrame({"user": ["a", "a"], "lat": pd.Series([39.9, CANARY], dtype=object), "lon": [1.0, 1.0]})
    assert reasons(load_trajectories(place)) == {2: "invalid_place"}


def test_naive_pandas_times_are_refused():
    naive = frame().assign(t=lambda f: f["t"].dt.tz_localize(None))
    with pytest.raises(InvalidInput, match="timezone"):
        load_trajectories(naive)
    assert len(load_trajectories(naive, timezone="UTC").trajectories) == 3


def test_other_objects_are_no_tables():
    with pytest.raises(InvalidInput, match="list"):
        load_trajectories([1, 2])
    with pytest.raises(InvalidInput, match="text"):
        load_trajectories(pd.DataFrame({0: [1]}))
    with pytest.raises(InvalidInput, match="two columns"):
        load_trajectories(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidInput):
        to_arrow(object())


def test_scikit_mobility_frames_are_recognised():
    skmob = pd.DataFrame(
        {
            "uid": [1, 1],
            "lat": [39.9, 39.8],
            "lng": [116.3, 116.4],
            "datetime": pd.to_datetime(["2008-10-23 05:53:05", "2008-10-23 05:53:06"]),
            "tid": [0, 1],
        }
    )
    before = skmob.copy()
    with pytest.raises(InvalidInput, match="times without a zone"):
        convert_frame(skmob)
    local = convert_frame(skmob, timezone="Asia/Shanghai")
    assert local["t"].iloc[0] == pd.Timestamp("2008-10-22T21:53:05Z")
    made = convert_frame(skmob, timezone="UTC")
    assert list(made.columns) == ["user", "t", "lat", "lon", "trip"]
    assert str(made["t"].dt.tz) == "UTC" and made["t"].iloc[0] == pd.Timestamp("2008-10-23T05:53:05Z")
    pd.testing.assert_frame_equal(skmob, before)
    assert len(load_trajectories(made).trajectories) == 2


def test_trackintel_frames_are_recognised():
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy([116.3, 116.4], [39.9, 39.8], crs=4326)
    data = {"user_id": [0, 0], "tracked_at": pd.to_datetime(["2008-10-23T10:53:05+08:00"] * 2)}
    fixes = geopandas.GeoDataFrame(data, geometry=points)
    for given_fixes in (fixes, fixes.rename_geometry("geom"), fixes.to_crs(3857)):
        made = convert_frame(given_fixes)
        assert made["lat"].to_numpy() == pytest.approx([39.9, 39.8]) and made["lon"].to_numpy() == pytest.approx(
            [116.3, 116.4]
        )
        assert made["t"].iloc[0] == pd.Timestamp("2008-10-23T02:53:05Z")
        assert len(load_trajectories(made).trajectories) == 2
    with pytest.raises(InvalidInput, match="not points"):
        convert_frame(fixes.set_geometry(fixes.to_crs(3857).buffer(1).array))


def test_points_and_columns_that_are_elsewhere_are_refused():
    """Neither is taken in silence; the same places, rounded, are one thing said twice."""
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy([116.31234, 116.4], [39.91234, 39.8], crs=4326)
    data = {"user": ["a", "b"], "step": [1, 1], "lat": [39.9123, 39.8], "lon": [116.3123, 116.4]}
    twice = geopandas.GeoDataFrame(data, geometry=points)
    assert len(load_trajectories(twice).trajectories) == 2
    moved = twice.assign(lat=[39.9123, 39.7])
    with pytest.raises(InvalidInput, match=r"a column beside points that are elsewhere; expected one of both"):
        load_trajectories(moved)


def test_movingpandas_frames_are_recognised():
    geopandas = pytest.importorskip("geopandas")
    index = pd.to_datetime(["2008-10-23 05:53:05", "2008-10-23 05:53:06"])
    points = geopandas.points_from_xy([116.3, 116.4], [39.9, 39.8], crs=4326)
    moving = geopandas.GeoDataFrame({"traj_id": ["x", "y"]}, geometry=points, index=index)
    with pytest.raises(InvalidInput, match="timezone"):
        convert_frame(moving)
    made = convert_frame(moving, timezone="UTC")
    assert made["user"].tolist() == ["x", "y"] and "trip" not in made
    owned = convert_frame(moving.assign(user_id=["u", "u"]).tz_localize("UTC"))
    assert owned["user"].tolist() == ["u", "u"] and owned["trip"].tolist() == ["x", "y"]
    assert len(load_trajectories(owned).trajectories) == 2


def test_unknown_frames_are_refused():
    with pytest.raises(InvalidInput, match="traj_id"):
        convert_frame(frame())
    with pytest.raises(InvalidInput, match="pandas"):
        convert_frame(pl.from_pandas(frame()))


def test_real_check_ins_load(data_folder):
    loaded = load_trajectories(data_folder / "gowalla_la.parquet")
    assert len(loaded.trajectories) == 22_536 and loaded.trajectories.n_users == 1_354
    blocks = load_trajectories(data_folder / "gowalla_la_sequence.parquet", user_column="block", order_column="k")
    assert len(blocks.trajectories) == 100_580 and blocks.rejected.num_rows == 0


def test_real_scikit_mobility_data_is_recognised(data_folder):
    skmob = pd.read_csv(data_folder / "raw" / "skmob_geolife_sample.txt.gz", dtype={"uid": str}, nrows=5000)
    found = load_trajectories(convert_frame(skmob, timezone="UTC")).trajectories
    assert len(found) == 5000 and found.users == ("001",)


NAMES = dphmm.StateSpace.categories(("a", "b", "c"))
MAP = Grid.from_bounds(0.0, 0.0, 0.1, 0.1, cell=4000)
MINUTE = 60


@pytest.fixture(
    params=[pytest.param((64, 1), marks=pytest.mark.slow), (97, 7), (2**24, 2**18)],
    ids=["1", "7", "whole"],
)
def in_parts(request, monkeypatch):
    """Text is read in blocks of so many bytes, and rows are looked at in parts of so many."""
    block, rows = request.param
    monkeypatch.setattr(csv_files, "_ROW_BLOCK", block)
    monkeypatch.setattr(visit_table, "_PART", rows)
    whole = tables.read_batches
    monkeypatch.setattr(tables, "read_batches", lambda path, **how: whole(path, **{**how, "rows": rows}))


def told(table: VisitTable) -> tuple:
    n = table.n_visits
    times = None if table.times is None else table.times[range(n)].tolist()
    columns = (table.owners(0, n), table.states(0, n), table.placed(0, n), table.steps[range(n)])
    counts = (table.n_rows, table.same_step, table.outside, table.in_steps, table.in_bins, table.clock)
    return (table.users, times, *(column.tolist() for column in columns), *counts)


def read(path, space, seconds, answer):
    """What was read in parts, or the error, beside the same of the whole file."""
    found = []
    for in_turn in (True, False):
        try:
            if in_turn:
                table, rejected, *_ = load_visits(path, space, seconds, answer)
            else:
                loaded = load_trajectories(path, bins=seconds, space=space)
                table, rejected = VisitTable.of(loaded.trajectories, space, seconds, answer), loaded.rejected
            found.append((told(table), rejected.to_pydict(), rejected.schema))
        except InvalidInput as error:
            found.append(str(error))
    return found


def some_rows(columns: str, n: int = 90) -> list[dict[str, object]]:
    """Rows of a few users in no order: several of one step and of one time, gaps, and some that cannot be read."""
    rng = np.random.default_rng(8)
    rows = []
    for _ in range(n):
        minute = int(rng.integers(0, 60)) + 20 * int(rng.integers(0, 2)) * 1440
        second = 20 * int(rng.integers(0, 3))
        day, hour = f"2024-05-{6 + minute // 1440:02d}", f"{8 + minute % 1440 // 60:02d}:{minute % 60:02d}"
        at = int(np.datetime64(f"{day}T{hour}").astype("datetime64[s]").astype(int)) // MINUTE
        row = {"user": f"u{rng.integers(0, 4)}", "t": f"{day}T{hour}:{second:02d}Z", "step": str(at)}
        row |= {"state": "abcx"[rng.integers(0, 4)], "trip": str(rng.integers(0, 9))}
        row |= {"lat": str(round(float(rng.uniform(0, 0.12)), 3)), "lon": str(round(float(rng.uniform(0, 0.12)), 3))}
        broken = {"user": "", "t": "noon", "step": "1.5", "state": "", "lat": "91", "lon": "no"}
        if rng.random() < 0.15:
            name = list(broken)[rng.integers(0, len(broken))]
            row[name] = broken[name]
        rows.append({name: row[name] for name in columns.split()})
    return rows


def write(path, rows, in_order):
    """The rows as CSV, packed or not, or as Parquet."""
    rows = sorted(rows, key=lambda row: (row["user"], row.get("t", ""), row.get("step", ""))) if in_order else rows
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=11)
        return
    lines = [",".join(row.values()) for row in rows]
    text = "\n".join([",".join(rows[0]), *lines]).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


KINDS_OF_ROWS = [
    ("user t state", MINUTE),
    ("user t state", None),
    ("user t step state trip", MINUTE),
    ("user t step state", None),
    ("user step state", MINUTE),
    ("user step state", None),
    ("user state", None),
    ("user t lat lon", MINUTE),
    ("user t step lat lon state", None),
]


@pytest.mark.parametrize("name", ["rows.csv", pytest.param("rows.csv.gz", marks=pytest.mark.slow), "rows.parquet"])
@pytest.mark.parametrize(("columns", "seconds"), KINDS_OF_ROWS)
def test_a_file_in_parts_is_the_whole_file(in_parts, tmp_path, name, columns, seconds):
    space = MAP if "lat" in columns else NAMES
    for in_order in (False, True):
        write(tmp_path / name, some_rows(columns), in_order)
        for answer in ("last", "first"):
            in_turn, whole = read(tmp_path / name, space, seconds, answer)
            assert in_turn == whole and isinstance(whole, tuple)
            assert 0 < len(whole[1]["row"]) < 90


def kept(table: VisitTable) -> tuple:
    """What is kept of the rows, as it is."""
    return tuple(None if c is None else c.tolist() for c in (table.first, table.codes, table.time, table.step))


@pytest.mark.parametrize(("columns", "seconds"), KINDS_OF_ROWS)
def test_rows_of_a_table_are_those_of_its_trajectories(columns, seconds):
    space = MAP if "lat" in columns else NAMES
    rows = some_rows(columns)
    if (columns, seconds) == ("user step state", MINUTE):
        rows = [row for row in rows if row["step"] != "1.5"]
    table = pa.Table.from_pylist(rows)
    for answer in ("last", "first"):
        loaded = load_trajectories(table, space=space, bins=seconds, may_be_empty=True)
        expected = VisitTable.of(loaded.trajectories, space, seconds, answer)
        found = load_visits(table, space, seconds, answer, may_be_empty=True)
        assert told(found.visits) == told(expected)
        # A column of steps that are those of the times is not kept.
        assert kept(found.visits) == kept(expected) or ("t step" in columns and seconds is not None)
        assert found.rejected.equals(loaded.rejected) and len(found.rejected)
        none = load_visits(table.slice(0, 0), space, seconds, answer, may_be_empty=True)
        assert (none.visits.n_visits, len(none.rejected)) == (0, 0)


def test_steps_that_are_none_of_a_table_s_times_are_refused_together():
    table = pa.table({"user": ["u1", "u1"], "step": [1, 2], "state": ["a", "b"]})
    with pytest.raises(InvalidInput, match="make times in 1970"):
        load_visits(table, NAMES, MINUTE)


HEAD = "user,step,state\n"
LINES = [f"u{k % 3},{k},a" for k in range(40)]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "\n".join(f'"u\n{k % 3}",{k},b' for k in range(40)),
        HEAD + "\n".join([*LINES, "u1,3"]),
        HEAD + "\n".join(["u1", *LINES, "u1,1,a,b", *LINES]) + "\n",
        HEAD + "\n".join([*LINES, 'u1,3,"a', *LINES]),
        HEAD + "\n".join([*LINES, "u1", 'u1,"3']),
        HEAD + "\r\n\r\n".join(LINES) + "\r\n",
        HEAD + "\n".join(["u1,x,a", "u1"] * 20),
        HEAD,
        "user,state\n" + "\n".join(["u1,a,b"] * 20),
    ],
    ids=["line ends in quotes", "torn line", "ragged rows", "open quote", "torn quote", "empty lines", "none left",
         "no rows", "all ragged"],
)  # fmt: skip
def test_hostile_text_over_the_end_of_a_part_is_read_as_in_the_whole(in_parts, tmp_path, monkeypatch, text):
    for name, data in (("rows.csv", text.encode()), ("rows.csv.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(data)
        in_turn, whole = read(tmp_path / name, NAMES, None, "last")
        assert in_turn == whole
    monkeypatch.setattr(csv_files, "_ROW_BLOCK", 2**24)
    assert read(tmp_path / name, NAMES, None, "last")[1] == whole


def test_rows_set_aside_have_the_numbers_that_they_have_in_the_file(in_parts, tmp_path):
    (tmp_path / "rows.csv").write_text(HEAD + "u1\nu1,1,a\nu1,2,\a\nu1\nu1\nu1,3,\a\nu1,4,a\nu1\n")
    rejected = load_visits(tmp_path / "rows.csv", NAMES).rejected
    ragged = [(row, "ragged_row") for row in (1, 4, 5, 8)]
    expected = sorted([*ragged, (3, "missing_state"), (6, "missing_state")])
    assert list(zip(*rejected.to_pydict().values(), strict=True)) == expected


def test_a_file_that_changes_is_refused(in_parts, tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(HEAD + "\n".join(LINES))
    digests = iter("ab")
    monkeypatch.setattr(inputs, "file_digest", lambda path: next(digests))
    with pytest.raises(InvalidInput, match="changed while it was read"):
        load_visits(tmp_path / "rows.csv", NAMES)


def growth(measured, sizes=(30_000, 60_000)) -> float:
    """Bytes of peak memory that each further row takes, as Python and NumPy count what they ask for."""
    peaks = []
    for n in sizes:
        tracemalloc.start()
        measured(n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])


def large(path, n):
    """Rows of 500 steps of each user by time, as people's rows come: everybody's rows are all over the file."""
    k, users = np.arange(n), n // 500
    stamps = pa.array(1_700_000_000_000_000 + k // users * 60_000_000, pa.timestamp("us", "UTC"))
    names = pa.array([f"u{number}" for number in (k % users).tolist()])
    table = pa.table({"user": names, "t": stamps, "state": pa.array(np.array(list("abc"))[k % 3].tolist())})
    tables.write_table(path, table)


@pytest.fixture
def small_parts(monkeypatch):
    """So little at a time that what is held for a part is far below what is held of all rows."""
    monkeypatch.setattr(visit_table, "_PART", 2**10)
    monkeypatch.setattr(visit_table, "_LEAST", 2**10)
    monkeypatch.setattr(csv_files, "_ROW_BLOCK", 2**14)
    whole = tables.read_batches
    monkeypatch.setattr(tables, "read_batches", lambda path, **how: whole(path, **{**how, "rows": 2**10}))
    monkeypatch.setattr(Batch, "_chunk", property(lambda self: 2**10))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_takes_no_more_than_twenty_bytes(small_parts, tmp_path, monkeypatch, suffix):
    cells, arrow = trajectories.CellReader.read, list[int]()

    def watched(self, part):
        arrow.append(pa.total_allocated_bytes())
        return cells(self, part)

    monkeypatch.setattr(trajectories.CellReader, "read", watched)
    for n in (1000, 30_000, 60_000):
        large(tmp_path / f"{n}{suffix}", n)
    load_visits(tmp_path / f"1000{suffix}", NAMES, MINUTE)
    arrow.clear()
    assert 12 < growth(lambda n: load_visits(tmp_path / f"{n}{suffix}", NAMES, MINUTE)) <= 20
    # What Arrow holds while a part is read does not grow, but for what is read ahead.
    assert max(arrow) - min(arrow) < 2**19


def test_a_release_holds_no_row_after_it_has_been_told(small_parts, tmp_path):
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), step=MINUTE)
    policy = dphmm.policy.complete(3)
    for n in (5_000, 30_000, 60_000):
        large(tmp_path / f"{n}.parquet", n)

    def released(n):
        with open_ledger(tmp_path / f"{n}.db") as ledger:
            batch = Batch(model, policy, NAMES, 1, ledger=ledger, bits=dphmm.ReplayBits(1))
            rows = load_visits(tmp_path / f"{n}.parquet", NAMES, MINUTE).visits
            assert sum(len(chunk) for chunk in batch.run(rows)) == n

    released(5_000)
    assert 12 < growth(released) <= 20


def test_a_reader_does_not_run_ahead_of_who_takes_its_parts(monkeypatch):
    """At most as many parts are parsed at the same time as there are processors, and one is read ahead."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    taken = []

    def parts():
        for number in range(20):
            taken.append(number)
            yield b"%d\n" % number

    parsed = csv_files._in_turn(parts(), lambda part: part)
    for number in range(20):
        assert next(parsed) == b"%d\n" % number and len(taken) <= number + 4
    assert next(parsed, None) is None


def test_the_reading_of_parts_has_no_option_that_the_whole_reading_lacks():
    # Who reads the whole has its rows to watch.
    named = set(inspect.signature(load_visits).parameters) - {"seconds", "answer", "watch"}
    assert named <= set(inspect.signature(load_trajectories).parameters)


@pytest.mark.parametrize("block", [64, 2**24])
@pytest.mark.parametrize("clock", ["t", "order", None])
def test_a_row_without_a_place_leaves_a_gap_in_its_order(tmp_path, monkeypatch, block, clock):
    """No move is made up between the rows around it, and no later step is shifted; a late row is at its place.

    Whether its cell is empty, unreadable, or made empty by `import`: that decides alone what is rejected.
    """
    monkeypatch.setattr(csv_files, "_ROW_BLOCK", block)
    states = ["home", None, "work", "home", "\a", "work"]
    rows = [("a", state) for state in states] + [(None, "home"), ("b", "work"), ("a", "home"), ("b", None)]
    table = pa.table({"user": [user for user, _ in rows], "state": [state for _, state in rows]})
    moments = {"t": pa.array(range(10), pa.timestamp("s", "UTC")), "order": pa.array(range(10))}
    if clock is not None:
        table = table.append_column(clock, moments[clock])[::-1]
    write_table(tmp_path / "rows.csv", table)
    options = {"t": {}, "order": {"order_column": "order"}, None: {"no_times": True}}
    imported = import_trajectories(tmp_path / "rows.csv", "csv", **options[clock])
    assert imported.report.kept == 6 and imported.report.dropped == {"missing_state": 3, "missing_user": 1}
    for source in (tmp_path / "rows.csv", table, imported.trajectories):
        trips, rejected, _, without = load_trajectories(source)
        assert (len(rejected), without) == ((0, 3) if source is imported.trajectories else (2, 2))
        placed, steps = ~trips.blank, trips.steps()
        found = {user: steps[placed & (trips.user == number)] for number, user in enumerate(trips.users)}
        assert {user: sorted(own.tolist()) for user, own in found.items()} == {"a": [0, 2, 3, 5, 6], "b": [0]}
        numbers = [-1 if state is None else ["home", "work"].index(state) for state in trips.state]
        assert sorted(list(cut) for cut in trips.sequences(numbers).sequences) == [[0], [1], [1, 0], [1, 0]]
    caps = {"epsilon": 1000, "max_length": 9, "max_sequences": 3}
    space = dphmm.StateSpace.labels(["home", "work"])
    cut = dphmm.MarkovModel.fit_private(
        [[0], [1, 0], [1, 0], [1]], 2, owners=[0, 0, 0, 1], **caps, bits=dphmm.ReplayBits(1)
    )
    private = dphmm.storage.fit(table, space, **caps, bits=dphmm.ReplayBits(1))
    assert np.array_equal(private.matrix.toarray(), cut.matrix.toarray())
    assert dphmm.storage.fit(imported.trajectories, space).matrix[1, 0] == 1
