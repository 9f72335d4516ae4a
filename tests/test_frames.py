"""Every call that takes a table takes pandas, polars, Arrow tables and GeoDataFrames, and answers alike.

Claims: what is computed is the same for every kind, tables come back in kind, input stays as it is; a value of another
type is named as that, in one line.
"""

from __future__ import annotations

from contextlib import nullcontext
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage.tables import column_list, to_arrow, write_table
from dphmm.storage.trajectories import load_trajectories, load_visits

GRID = dphmm.Grid.from_bounds(13.30, 52.48, 13.34, 52.50, cell=500.0)
FAR = np.abs(GRID.lattice[:, None] - GRID.lattice[None]).max(axis=2)
MOVES = np.where(FAR == 0, 4.0, np.where(FAR == 1, 1.0, 0.0))
MODEL = dphmm.MarkovModel(np.ones(GRID.n_states) / GRID.n_states, MOVES / MOVES.sum(axis=1, keepdims=True), space=GRID)
POLICY = dphmm.policy.radius(GRID, covers=500)
WORLD = (MODEL, POLICY, GRID, 1)
KINDS = ["pandas", "polars", "arrow", "geopandas"]
#: What is read where it is taken: a polars query, and Arrow streams, which give their rows once.
READ_HERE = ["lazy", "reader", "stream"]


def people():
    rng = np.random.default_rng(3)
    times = list(pd.date_range("2024-05-06T08:00Z", periods=6, freq="10min")) * 4
    places = {"lat": 52.481 + 0.015 * rng.random(24), "lon": 13.301 + 0.035 * rng.random(24)}
    return pd.DataFrame({"user": np.repeat(list("abcd"), 6), "t": times, **places})


class Stream:
    """An Arrow stream of a library that is not known here; it gives its rows once."""

    def __init__(self, table):
        self.reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


def made(kind, frame):
    """The same rows as a table of a kind; points in place of columns in a GeoDataFrame."""
    if kind == "polars":
        return pytest.importorskip("polars", reason="polars is not installed").from_pandas(frame)
    if kind == "lazy":
        return made("polars", frame).lazy()
    if kind == "reader":
        return to_arrow(frame).to_reader(max_chunksize=5)
    if kind == "stream":
        return Stream(to_arrow(frame))
    if kind == "arrow":
        return to_arrow(frame)
    if kind == "geopandas" and "lat" in frame:
        geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
        points = geopandas.points_from_xy(frame.lon, frame.lat)
        return geopandas.GeoDataFrame(frame.drop(columns=["lat", "lon"]), geometry=points, crs=4326)
    return frame


def test_categories_of_polars_are_names():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.from_pandas(people())
    named = frame.with_columns(polars.col("user").cast(polars.Categorical))
    assert dphmm.storage.fit(named, GRID, step="10min").digest == dphmm.storage.fit(frame, GRID, step="10min").digest


def plain(kind):
    """The same people, in columns: a query takes no geometry."""
    return made("pandas" if kind == "geopandas" else kind, people())


def totals(kind):
    """Public totals of two cells, as a table of a kind; zones with shapes in a GeoDataFrame."""
    frame = pd.DataFrame({"state": list(GRID.names[:2]), "people": [3, 1]})
    if kind != "geopandas":
        return made(kind, frame)
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    return geopandas.GeoDataFrame(frame, geometry=geopandas.points_from_xy([13.3, 13.3], [52.4, 52.4]), crs=4326)


MODULES = {"arrow": "pyarrow", "polars": "polars", "lazy": "polars", "reader": "pyarrow", "stream": "pyarrow"}
RELEASED = dphmm.release_many(people(), *WORLD, bits=dphmm.ReplayBits(1))
CALLS = {
    "release_many": lambda kind: dphmm.release_many(made(kind, people()), *WORLD, bits=dphmm.ReplayBits(1)),
    "fit": lambda kind: dphmm.storage.fit(made(kind, people()), GRID, step="10min").digest,
    "private fit": lambda kind: (
        dphmm.storage.fit(
            made(kind, people()), GRID, step="10min", epsilon=1, max_length=4, bits=dphmm.ReplayBits(1)
        ).digest
    ),
    "query": lambda kind: (
        dphmm.query("histogram", plain(kind), "group:2", 1000, states=GRID, bits=dphmm.ReplayBits(1)).table
    ),
    "smooth": lambda kind: dphmm.reconstruction.smooth(made(kind, RELEASED), *WORLD),
    "synthesize": lambda kind: dphmm.evaluation.synthesize(MODEL, 3, 4, seed=2, like=totals(kind)),
    "check_release": lambda kind: dphmm.audit.check_release(made(kind, RELEASED), *WORLD).document(),
    "attack": lambda kind: dphmm.audit.attack(RELEASED, made(kind, people()), *WORLD).document(),
    "population": lambda kind: dphmm.reconstruction.population(made(kind, RELEASED), *WORLD).records(),
    "read": lambda kind: dphmm.audit.read(made(kind, RELEASED)).document(),
}


@pytest.mark.parametrize("kind", [*KINDS[1:], *READ_HERE])
@pytest.mark.parametrize("call", CALLS)
def test_tables_of_every_kind_give_the_same(call, kind):
    found, expected = CALLS[call](kind), CALLS[call]("pandas")
    if isinstance(expected, pd.DataFrame):
        own = kind if call == "synthesize" else "pandas"
        assert type(found).__module__.partition(".")[0] == ("pandas" if call == "query" else MODULES.get(kind, own))
        if hasattr(found, "geometry"):
            assert np.array_equal(found.geometry.x, expected.lon) and found.crs.to_epsg() == 4326
            found = found.drop(columns="geometry")
        found, expected = to_arrow(found).to_pylist(), to_arrow(expected).to_pylist()
    assert found == expected


def test_a_stream_that_was_read_is_refused_rather_than_empty():
    """Read again it would look like a table of nobody: zeros would be stored and paid for."""
    reader = made("reader", people())
    ask = {"states": GRID, "bits": dphmm.ReplayBits(1)}
    dphmm.query("histogram", reader, "group:2", 1000, **ask)
    for again in (
        lambda: dphmm.query("histogram", reader, "group:2", 1000, **ask),
        lambda: dphmm.storage.fit(reader, GRID, step="10min", epsilon=1, max_length=4),
        lambda: dphmm.release_many(reader, *WORLD),
        lambda: dphmm.storage.split_people(reader, 0.5),
        lambda: to_arrow(reader, ["user"]),
        lambda: column_list(reader),
    ):
        with pytest.raises(InvalidInput, match=r"^table: got .*read_all\(\)$"):
            again()


@pytest.mark.parametrize("kind", [*KINDS, *READ_HERE])
@pytest.mark.parametrize("column", ["user", "t", "lat"])
def test_one_row_that_cannot_be_read_is_set_aside_in_every_kind(kind, column):
    """It decides neither whether there is an answer nor what the rows of others count for."""
    frame = people().astype({"t": str})
    odd = frame.assign(**{column: frame[column].where(frame.index != 7)})
    if kind == "geopandas" and column == "lat":
        odd["lon"] = odd["lon"].where(frame.index != 7)
    caps = {"step": "10min", "epsilon": 1, "max_length": 4}
    models = [
        dphmm.storage.fit(rows, GRID, **caps, bits=dphmm.ReplayBits(1)).digest
        for rows in (made(kind, odd), frame.drop(index=7))
    ]
    assert models[0] == models[1]
    # No point at all is a row without a place.
    refused = pytest.raises(InvalidInput, match=r"^table: got 1 rows that cannot be read")
    with nullcontext() if kind == "geopandas" and column == "lat" else refused:
        dphmm.release_many(made(kind, odd), *WORLD, bits=dphmm.ReplayBits(1))


#: Rows of text with every kind of cell that cannot be read, blanks, and spellings of one person.
BAD = pd.DataFrame(
    [
        ("ann", "2024-05-06T08:00:00Z", "52.481", "13.301"),
        ("Ann ", " 2024-05-06T08:10:00Z", " 52.482 ", "+13.302"),
        (None, "2024-05-06T08:10:00Z", "52.481", "13.301"),
        ("bob", "2024-05-06T08:00:00", "52.481", "13.301"),
        ("bob", "never", "52.481", "13.301"),
        ("bob", "2024-05-06T10:00:00+02:00", "91", "13.301"),
        ("bob", "2024-05-06T10:10:00+02:00", "52.485", "north"),
        ("bob", "2024-05-06T10:20:00+02:00", "52.485", "13.31"),
        ("bob", "2024-05-06T08:20:00Z", "52.486", "13.311"),
        ("cy\x01", "2024-05-06T08:20:00Z", "52.486", "13.311"),
        ("dee", None, "52.486", ""),
        ("7", "2024-05-06T08:30:00.123456789Z", "5e1", "359.3"),
    ],
    columns=["user", "t", "lat", "lon"],
)
CONTAINERS = ["pandas", "polars", "lazy", "arrow", "reader", "stream", "csv", "parquet"]


def contained(kind, folder):
    """The bad table in a container: a frame, a stream, or the path of a file."""
    if kind == "csv":
        BAD.to_csv(folder / "bad.csv", index=False)
    elif kind == "parquet":
        write_table(folder / "bad.parquet", to_arrow(BAD))
    else:
        return made(kind, BAD)
    return folder / f"bad.{kind}"


def loaded(table):
    rows = load_trajectories(table)
    return rows.trajectories.to_arrow().to_pylist(), rows.rejected.to_pylist(), rows.alike


def counted(table, **how):
    return dphmm.query(
        "histogram", table, "group:9", 1000, states=GRID, **how, bits=dphmm.ReplayBits(1)
    ).table.to_dict()


CAPS = {"step": "10min", "epsilon": 1, "max_length": 4}
JUDGED = {
    "load_trajectories": loaded,
    "load_visits": lambda table: load_visits(table, GRID, 600).rejected.to_pylist(),
    "check_table": lambda table: dphmm.evaluation.check_table(table, *WORLD[:3]).lines(),
    "query": counted,
    "query by times": lambda table: counted(table, times=4, first="2024-05-06T08:00Z", step="10min"),
    "fit": lambda table: dphmm.storage.fit(table, GRID),
    "private fit": lambda table: (
        dphmm.storage.fit(table, GRID, **CAPS, bits=dphmm.ReplayBits(1)).matrix.toarray().tolist()
    ),
    "release_many": lambda table: dphmm.release_many(table, *WORLD, bits=dphmm.ReplayBits(1)),
    "split_people": lambda table: [
        to_arrow(part).to_pylist() for part in dphmm.storage.split_people(table, 0.5, seed=4)
    ],
}
#: Calls that take no path of a file: a command reads it.
FRAMES_ALONE = ("fit", "private fit", "release_many", "split_people")


@pytest.mark.parametrize("kind", CONTAINERS[1:])
@pytest.mark.parametrize("call", JUDGED)
def test_a_bad_table_gets_the_same_answer_or_the_same_refusal_in_every_container(call, kind, tmp_path):
    if call in FRAMES_ALONE and kind in ("csv", "parquet"):
        with pytest.raises(InvalidInput, match=r"^table: got (Posix|Windows)Path"):
            JUDGED[call](contained(kind, tmp_path))
        return
    answers = []
    for each in (kind, "pandas"):
        try:
            answers.append(JUDGED[call](contained(each, tmp_path)))
        except InvalidInput as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
    assert isinstance(answers[0], str) == (call in ("fit", "release_many"))


@pytest.mark.parametrize("odd", [1, ("a", 2), 10**30, b"x"], ids=repr)
def test_a_category_of_another_type_is_a_name_like_all_others(odd):
    """It decided whether a release crashed, and the error had somebody's state in it."""
    space = dphmm.StateSpace.labels(["canary", "w"])
    model, policy = dphmm.MarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), space=space), dphmm.policy.complete(2)
    states = pd.Series(["canary", "w", odd], dtype="object").astype("category")
    frame = pd.DataFrame({"user": list("abc"), "step": [1, 1, 1], "state": states})
    assert load_trajectories(frame.iloc[:2], space=space).trajectories.state.tolist() == ["canary", "w"]
    try:
        released = dphmm.release_many(frame, model, policy, space, 1, bits=dphmm.ReplayBits(1), progress=False)
        # What cannot be printed is an empty cell.
        assert len(released) == 3 - (odd == b"x")
    except InvalidInput as error:
        assert str(error).startswith("table: got 1 rows that cannot be read")


def test_points_beside_other_columns_are_refused_without_a_place():
    table = made("geopandas", people())
    table = table.assign(lat=table.geometry.y + 0.01, lon=table.geometry.x)
    with pytest.raises(InvalidInput, match=r"^lat: got a column beside points that are elsewhere;") as refused:
        dphmm.release_many(table, *WORLD, bits=dphmm.ReplayBits(1))
    assert "52." not in str(refused.value)


def test_what_cannot_be_read_of_the_bad_table_is_told_by_its_reason():
    rows, rejected, alike = loaded(BAD)
    assert [row["user"] for row in rows if row["lat"]] == ["ann", "ann", "bob", "bob", "7"] and alike == {"Ann ": "ann"}
    assert rows[-1]["lon"] == pytest.approx(-0.7) and rows[-1]["t"].microsecond == 123456
    assert [(row["row"], row["reason"]) for row in rejected] == [
        (3, "missing_user"), (4, "time_without_zone"), (5, "invalid_time"), (6, "invalid_place"), (7, "invalid_place"),
        (10, "missing_user"), (11, "invalid_time"),
    ]  # fmt: skip


def test_trajectories_are_a_table_wherever_one_is_taken():
    """What is loaded or imported goes into every call as it is, and comes back as Arrow."""
    rows = load_trajectories(people())
    trips = rows.trajectories
    found = dphmm.release_many(trips, *WORLD, bits=dphmm.ReplayBits(1))
    assert found.to_pylist() == to_arrow(RELEASED).to_pylist()
    assert dphmm.storage.fit(trips, GRID, step="10min").digest == CALLS["fit"]("pandas")
    assert dphmm.audit.attack(RELEASED, trips, *WORLD).document() == CALLS["attack"]("pandas")
    first, second = dphmm.storage.split_people(trips, 0.5, seed=4)
    assert first.num_rows + second.num_rows == 24 and first.column_names == trips.to_arrow().column_names
    step = dphmm.MarkovModel(MODEL.initial, MODEL.matrix, space=GRID, step=600)
    assert dphmm.release_many(trips, step, *WORLD[1:], bits=dphmm.ReplayBits(1)).num_rows == 24
    with pytest.raises(InvalidInput, match=r"table: got Loaded; .* Trajectories, such as its .trajectories"):
        dphmm.storage.fit(rows, GRID)


@pytest.mark.parametrize("kind", KINDS)
def test_people_are_split_into_tables_of_the_same_kind(kind):
    table = made(kind, people())
    parts = dphmm.storage.split_people(table, 0.5, seed=4)
    assert [type(part) for part in parts] == [type(table)] * 2
    users = [set(part["user"].to_pylist() if kind == "arrow" else part["user"]) for part in parts]
    assert users == [set(part["user"]) for part in dphmm.storage.split_people(people(), 0.5, seed=4)]
    assert sum(map(len, parts)) == 24


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["z", "smoothed", "path", "place"])
def test_tables_of_places_become_points(what, kind):
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    table = {"place": people(), "z": RELEASED}.get(what)
    table = dphmm.reconstruction.smooth(RELEASED, *WORLD, path=True) if table is None else table
    points = dphmm.storage.to_geopandas(made(kind, table), what=what)
    lat, lon = ("lat", "lon") if what == "place" else (f"{what}_lat", f"{what}_lon")
    assert points.crs.to_epsg() == 4326 and len(points) == 24
    if lat in points:
        assert np.array_equal(points.geometry.y, table[lat]) and np.array_equal(points.geometry.x, table[lon])


def test_points_are_of_the_first_places_that_there_are_and_of_rows_that_have_one():
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    assert np.array_equal(dphmm.storage.to_geopandas(RELEASED).geometry.x, RELEASED.z_lon)
    some = RELEASED.assign(z_lat=RELEASED.z_lat.where(RELEASED.step % 2 == 0))
    assert len(dphmm.storage.to_geopandas(some, what="z")) == (RELEASED.step % 2 == 0).sum()
    found = dphmm.evaluation.synthesize(MODEL, 2, 3, seed=1)
    assert np.array_equal(dphmm.storage.to_geopandas(found).geometry.x, found.lon)
    trips = dphmm.states.Trajectories.from_labels(["a"], lat=np.array([1.0]), lon=np.array([2.0]))
    assert dphmm.storage.to_geopandas(trips).geometry.x[0] == 2.0
    with pytest.raises(InvalidInput, match="smoothed_lat and smoothed_lon; or what=z"):
        dphmm.storage.to_geopandas(RELEASED, what="smoothed")


def test_projected_points_are_brought_to_degrees_and_the_frame_stays():
    table = made("geopandas", people()).to_crs(32633)
    before = table.copy()
    found = dphmm.storage.fit(table, GRID, step="10min")
    assert found.digest == dphmm.storage.fit(people(), GRID, step="10min").digest
    assert table.equals(before) and table.crs == before.crs


LISTED = ["release_many", "reconstruction.smooth", "reconstruction.population"]


@pytest.mark.parametrize("given", [[1, 2], None, "rows.parquet", 7, {"user": ["a"]}], ids=repr)
@pytest.mark.parametrize(
    "call",
    ["release_many", "storage.fit", "reconstruction.smooth", "reconstruction.population", "storage.split_people"],
)
def test_what_is_no_table_is_named(call, given):
    others = {"storage.fit": (GRID,), "storage.split_people": (0.5,)}.get(call, WORLD)
    with pytest.raises(
        InvalidInput, match=r"^table: got (list|NoneType|str|int|dict); expected a pandas, polars"
    ) as said:
        attrgetter(call)(dphmm)(given, *others)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("world", "field"),
    [
        ((GRID, POLICY, GRID, 1), "model: got Grid"),
        (("model.npz", POLICY, GRID, 1), "model: got str"),
        ((MODEL, GRID, GRID, 1), "policy: got Grid"),
        ((MODEL, POLICY, MODEL, 1), "space: got MarkovModel"),
    ],
    ids=["grid", "path", "policy", "space"],
)
@pytest.mark.parametrize("call", LISTED)
def test_a_wrong_argument_is_named_by_its_type(call, world, field):
    table = people() if call == "release_many" else RELEASED
    with pytest.raises(InvalidInput, match=f"^{field}; expected a "):
        attrgetter(call)(dphmm)(table, *world)


def spelt():
    """The same rows, each person's under three spellings of the name, the plain one first."""
    frame = people()
    spellings = ["{}", " {} ", "\u200b{}"]
    return frame.assign(user=[spellings[k % 3].format(user) for k, user in enumerate(frame["user"])])


@pytest.mark.parametrize("kind", [*KINDS, "csv", "parquet"])
def test_spellings_of_a_name_are_one_person_in_every_container(kind, tmp_path):
    frame = spelt()
    if kind in ("csv", "parquet"):
        path = tmp_path / f"rows.{kind}"
        getattr(frame, f"to_{kind}")(path, index=False)
        table = load_trajectories(path).trajectories
    else:
        table = made(kind, frame)
    found = dphmm.release_many(table, *WORLD, bits=dphmm.ReplayBits(1), progress=False)
    assert to_arrow(found).to_pylist() == to_arrow(RELEASED).to_pylist()
    models = [
        dphmm.storage.fit(rows, GRID, step="10min", epsilon=1, max_length=4, bits=dphmm.ReplayBits(1)).digest
        for rows in (table, people())
    ]
    assert models[0] == models[1]
    first, second = dphmm.storage.split_people(table, 0.5, seed=4)
    both = [
        {name.strip(" \u200b") for name in to_arrow(part, ["user"])["user"].to_pylist()} for part in (first, second)
    ]
    assert not both[0] & both[1] and both[0] | both[1] == set("abcd")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_ids_that_were_floats_are_whole_numbers_or_refused(kind):
    """7.0 is 7; from 2^53 on a float stands for several ids."""
    frame = people().assign(user=np.repeat([7.0, 8.0, 9.0, 10.0], 6))
    found = to_arrow(dphmm.release_many(made(kind, frame), *WORLD, bits=dphmm.ReplayBits(1), progress=False))
    assert found["user"].unique().to_pylist() == ["7", "8", "9", "10"]
    texts = made(kind, frame.assign(user=frame["user"].astype(str)))
    again = to_arrow(dphmm.release_many(texts, *WORLD, bits=dphmm.ReplayBits(1), progress=False))
    assert again["z_0"].to_pylist() == found["z_0"].to_pylist()
    assert again["user"].unique().to_pylist() == ["7.0", "8.0", "9.0", "10.0"]
    large = made(kind, frame.assign(user=np.repeat([2.0**53, 8.0, 9.0, 10.0], 6)))
    with pytest.raises(InvalidInput, match=r"^table: got 6 rows that cannot be read"):
        dphmm.release_many(large, *WORLD, bits=dphmm.ReplayBits(1), progress=False)


def test_names_in_bytes_and_numbers_that_arrow_lacks_are_no_names():
    """Printed, bytes would be the user b'a'."""
    rows = pd.DataFrame({"user": ["a", b"a"], "state": ["x", "y"]})
    loaded = load_trajectories(rows)
    assert loaded.trajectories.users == ("a",) and loaded.rejected.to_pylist() == [{"row": 2, "reason": "missing_user"}]
    polars = pytest.importorskip("polars", reason="polars is not installed")
    large = polars.DataFrame({"user": polars.Series([1], dtype=polars.Int128), "state": ["x"]})
    with pytest.raises(InvalidInput, match=r"^table: got columns of types Int128, String; expected types that Arrow"):
        load_trajectories(large)
