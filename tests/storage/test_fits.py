"""`dphmm.storage.fit` makes of a table the model that `dphmm fit` makes of its file.

Claims: model and states are those of the command, with privacy and without; with privacy no cell refuses a table, and
what cannot be read counts for nobody else; steps, speed limit and places count as there; a table that is none,
and rows that cannot be read, are refused by name.

A table in two by person: nobody in both, nobody's side by anybody else, by a chance that is the share.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import dphmm
from commands import run
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.person import person_key
from dphmm.errors import InvalidInput
from dphmm.storage import fits
from dphmm.storage.fits import split_file, split_people

GRID = dphmm.Grid.from_bounds(13.30, 52.48, 13.34, 52.50, cell=500.0)


def rows(seed=1):
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.normal(0, 0.002, (40, 2)), axis=0)
    times = list(pd.date_range("2024-05-06T08:00Z", periods=20, freq="5min")) * 2
    places = {"lat": 52.49 + 0.3 * steps[:, 0], "lon": 13.32 + 0.3 * steps[:, 1]}
    return pd.DataFrame({"user": ["a"] * 20 + ["b"] * 20, "t": times, **places})


@pytest.mark.replayed_words
def test_it_is_the_model_of_the_command(tmp_path):
    table = rows()
    table.loc[7, "lat"] = 52.4999
    table.to_parquet(tmp_path / "rows.parquet")
    box = ["--grid", "500m", "--bbox", "13.30,52.48,13.34,52.50", "--step", "10min", "--max-speed", "5km/h"]
    names = ["fit", str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "model.npz"), *box]
    run(*names)
    model = dphmm.storage.fit(table, GRID, step="10min", max_speed="5km/h")
    assert model.digest == dphmm.storage.load_model(tmp_path / "model.npz").digest
    assert model.space.digest == dphmm.storage.load_model(tmp_path / "model.npz").space.digest
    # Smoothed, of all cells: moves to neighbours become possible, not to every cell.
    run(*names, "--smoothing", "1", "--all-cells", "--force")
    smoothed = dphmm.storage.fit(table, GRID, step="10min", max_speed="5km/h", smoothing=1, all_cells=True)
    assert smoothed.digest == dphmm.storage.load_model(tmp_path / "model.npz").digest
    assert smoothed.n_transitions < GRID.n_states**2 / 2
    assert dphmm.storage.fit(table, GRID, step=600, max_speed=None).digest != model.digest
    assert dphmm.storage.fit(table, GRID, step=600, all_cells=True).n_states == GRID.n_states


PRIVATE_CAPS = {"epsilon": 1, "max_length": 5}
PRIVATE = {"step": "10min", "max_speed": "5km/h", **PRIVATE_CAPS}


@pytest.mark.replayed_words
@pytest.mark.parametrize("more", [{}, {"initial": "first", "moves": "neighbours", "max_sequences": 2}])
def test_with_privacy_it_is_the_model_of_the_command(tmp_path, more):
    table = rows()
    table.to_parquet(tmp_path / "rows.parquet")
    box = ["--grid", "500m", "--bbox", "13.30,52.48,13.34,52.50", "--step", "10min", "--max-speed", "5km/h"]
    names = [word for name, value in more.items() for word in ("--" + name.replace("_", "-"), str(value))]
    said = [*box, "--epsilon", "1", "--max-length", "5", "--seed", "3", *names]
    run("fit", tmp_path / "rows.parquet", "-o", tmp_path / "m.npz", *said)
    model = dphmm.storage.fit(table, GRID, **PRIVATE, **more, bits=dphmm.ReplayBits(3))
    assert model.digest == dphmm.storage.load_model(tmp_path / "m.npz").digest
    assert model.n_states == GRID.n_states and model.provenance["privacy"]["unit"] == "owner"
    for same in (pl.from_pandas(table), pa.Table.from_pandas(table)):
        assert dphmm.storage.fit(same, GRID, **PRIVATE, **more, bits=dphmm.ReplayBits(3)).digest == model.digest


@pytest.mark.replayed_words
def test_with_privacy_a_state_called_end_ends_each_sequence(tmp_path):
    """Of rows that are positions, whether it stands in them or not; so does the command. Steps have no end."""
    space = dphmm.StateSpace.labels(["a", "END", "b"])
    cases = pd.DataFrame({"user": list("xxxyyz"), "state": ["a", "b", "b", "b", "END", "a"]})
    made = dphmm.storage.fit(cases, space, epsilon=1, max_length=2, bits=dphmm.ReplayBits(3))
    known = dphmm.MarkovModel.fit_private(
        [[0, 2, 2], [2], [0]], 3, 1, 2, end=1, owners=["x", "y", "z"], space=space, bits=dphmm.ReplayBits(3)
    )
    assert made.digest == known.digest and made.transition.toarray()[1].tolist() == [0, 1, 0]
    cases.to_csv(tmp_path / "cases.csv", index=False)
    pd.DataFrame({"state": space.names}).to_csv(tmp_path / "states.csv", index=False)
    names = ["--state-column", "state", "--states-file", str(tmp_path / "states.csv")]
    noise = ["--epsilon", "1", "--max-length", "2", "--seed", "3"]
    said = run("fit", str(tmp_path / "cases.csv"), "-o", str(tmp_path / "model.npz"), *names, *noise).stderr
    assert dphmm.storage.load_model(tmp_path / "model.npz").digest == made.digest
    assert "noise of scale 3 on each" in " ".join(said.split())
    timed = dphmm.storage.fit(
        cases.assign(t=pd.date_range("2024-05-06T08:00Z", periods=6, freq="5min")), space, step=300, **PRIVATE_CAPS
    )
    assert "end" not in timed.provenance


def test_with_privacy_no_cell_decides_whether_a_table_is_refused():
    """Nor what it is of others: the type of a column of a frame follows from all of its cells."""
    table = rows()
    model = dphmm.storage.fit(table, GRID, **PRIVATE, bits=dphmm.ReplayBits(3))
    for column, cell in (
        ("lat", "north"),
        ("lat", 1e308),
        ("t", "soon"),
        ("t", 5),
        ("lon", b"\xff"),
        ("user", object()),
    ):
        odd = pd.concat([table.iloc[:1].astype(object).assign(user="c"), table.astype(object)], ignore_index=True)
        odd.loc[0, column] = cell
        assert dphmm.storage.fit(odd, GRID, **PRIVATE, bits=dphmm.ReplayBits(3)).digest == model.digest
    # Without a state of somebody whole numbers become floats.
    states = pd.DataFrame(
        {"user": ["a"] * 4 + ["b"] * 3, "step": [*range(4), *range(3)], "state": [0, 1, 0, 0, 1, 1, 0]}
    )
    public = {"space": dphmm.StateSpace.labels(["0", "1"]), "epsilon": 50, "max_length": 5}
    floats = pd.concat([states, pd.DataFrame({"user": ["c"], "step": [0], "state": [None]})], ignore_index=True)
    floats["state"] = floats.state.astype(float)
    one, other = (dphmm.storage.fit(some, **public, bits=dphmm.ReplayBits(3)).digest for some in (states, floats))
    assert one == other != dphmm.storage.fit(states.iloc[:4], **public, bits=dphmm.ReplayBits(3)).digest
    nobody = dphmm.storage.fit(table.iloc[:0], GRID, **PRIVATE, bits=dphmm.ReplayBits(3))
    assert nobody.n_states == GRID.n_states


def test_with_privacy_a_damaged_arrow_table_is_refused_as_such():
    table = pa.table({"user": ["a", "a"], "step": [0, 1], "state": ["x", "y"]})
    column = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    public = {"space": dphmm.StateSpace.labels(["x", "y"]), "epsilon": 1, "max_length": 5}
    with pytest.raises(InvalidInput, match="table: got a damaged Arrow table"):
        dphmm.storage.fit(table.set_column(0, "user", column), **public)


def test_with_privacy_no_shape_decides_whether_a_frame_is_refused():
    """Columns beside points elsewhere, and shapes none of which is a point, raised, and told of somebody's place."""
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    table = rows()
    points = geopandas.points_from_xy(table.lon, table.lat)
    model = dphmm.storage.fit(table, GRID, **PRIVATE, bits=dphmm.ReplayBits(3))

    def learned(frame, geometry, crs=4326):
        made = geopandas.GeoDataFrame(frame, geometry=list(geometry), crs=crs)
        return dphmm.storage.fit(made, GRID, **PRIVATE, bits=dphmm.ReplayBits(3)).digest

    # Beside columns the shapes say nothing, wherever they are.
    for other in (shapely.Point(0, 0), shapely.Point(), shapely.LineString([(0, 0), (1, 1)]), None):
        assert learned(table, [other, *points[1:]]) == model.digest
        assert learned(table, [other] * len(table)) == model.digest
    alone = table.drop(columns=["lat", "lon"])
    assert learned(alone, points) == model.digest
    metres = geopandas.GeoSeries(points, crs=4326).to_crs(32633)
    assert learned(alone, metres, 32633) == model.digest
    # What is no point is no place, of one person, or of everybody.
    of_b = alone[alone.user == "b"]
    without_a = dphmm.storage.fit(table[table.user == "b"], GRID, **PRIVATE, bits=dphmm.ReplayBits(3)).digest
    nobody = dphmm.storage.fit(table.iloc[:0], GRID, **PRIVATE, bits=dphmm.ReplayBits(3)).digest
    for other in (shapely.Point(), shapely.LineString([(0, 0), (1, 1)]), None, shapely.Point(float("inf"), 50)):
        assert learned(alone, [*[other] * 20, *points[20:]]) == without_a
        assert learned(of_b, [other] * 20) == nobody


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"epsilon": 1}, "max_length"),
        ({**PRIVATE, "min_count": 2}, "min_count: got it with epsilon"),
        ({**PRIVATE, "all_cells": True}, "all_cells: got it with epsilon"),
        ({**PRIVATE, "merge_rare": 3}, "merge_rare: got it with epsilon"),
        ({**PRIVATE, "moves": "some"}, "moves: got some"),
        ({**PRIVATE, "gap": 60.0}, "gap: got 60 s; expected at least the step, 600 s"),
        ({**PRIVATE, "gap": 7200.0}, "gap: got 7200 s; expected at most 5 steps of 600 s, the longest record"),
        ({"max_length": 5}, "max_length: got it without epsilon"),
        ({"moves": "all"}, "moves: got it without epsilon"),
        ({"bits": dphmm.ReplayBits(1)}, "bits: got it without epsilon"),
    ],
)
def test_choices_of_the_other_kind_of_fit_are_refused_by_name(more, said):
    with pytest.raises(InvalidInput, match=said):
        dphmm.storage.fit(rows(), GRID, **more)


def test_a_ledger_keeps_a_private_fit_of_a_table():
    ledger, table = MemoryLedger(), rows()
    learned = [
        dphmm.storage.fit_once(
            ledger, "walks",
            lambda admit: dphmm.storage.fit(table, GRID, **PRIVATE, bits=dphmm.ReplayBits(3), admit=admit),
        )
        for _ in range(2)
    ]  # fmt: skip
    assert learned[0].digest == learned[1].digest and len(list(ledger.publications())) == 1


def test_what_is_no_table_and_what_cannot_be_read_are_refused():
    with pytest.raises(InvalidInput, match="space: got MarkovModel"):
        dphmm.storage.fit(rows(), dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]))
    with pytest.raises(InvalidInput, match="table: got list"):
        dphmm.storage.fit([1], GRID)
    with pytest.raises(InvalidInput, match="table: got 1 rows that cannot be read"):
        dphmm.storage.fit(rows().astype({"user": object}).assign(user=lambda t: [None, *t.user[1:]]), GRID)


ROWS = pd.DataFrame({"user": [f"u{i % 40}" for i in range(200)], "state": ["a", "b"] * 100, "n": range(200)})


def sides(table, share="0.5", seed=1):
    return [set(part["user"]) for part in split_people(table, share, seed=seed)]


def test_every_row_is_in_one_part_with_all_its_cells_and_in_its_order(tmp_path):
    ROWS.to_parquet(tmp_path / "x.parquet")
    found = split_file(tmp_path / "x.parquet", 0.5, tmp_path / "a.parquet", tmp_path / "b.csv", seed=3)
    first, second = pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "b.csv")
    assert set(first["user"]).isdisjoint(second["user"])
    assert (found.first, found.second, found.nameless) == (first["user"].nunique(), second["user"].nunique(), 0)
    assert sorted([*first["n"], *second["n"]]) == list(range(200))
    assert first["n"].is_monotonic_increasing and second["n"].is_monotonic_increasing
    assert list(first.columns) == list(second.columns) == list(ROWS.columns)


def test_parts_of_any_size_are_the_whole(tmp_path, monkeypatch):
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "x.parquet", row_group_size=7)
    expected = split_people(ROWS, "0.3", seed=5)[0]["n"].tolist()
    split_file(tmp_path / "x.parquet", "0.3", tmp_path / "a.parquet", tmp_path / "b.parquet", seed=5)
    assert pd.read_parquet(tmp_path / "a.parquet")["n"].tolist() == expected


def test_nobody_s_side_depends_on_anybody_else():
    whole = sides(ROWS)
    for name in sorted(set(ROWS["user"])):
        first, second = sides(ROWS[ROWS["user"] != name])
        assert (first, second) == (whole[0] - {name}, whole[1] - {name})


def test_one_person_under_two_spellings_is_in_one_part():
    names = [spelling for i in range(20) for spelling in (f"jos\u00e9{i}", f" JOSE\u0301{i} ")]
    first, second = split_people(pd.DataFrame({"user": names}), "0.5", seed=2)
    assert len(first) % 2 == 0 and len(second) % 2 == 0 and len(first) + len(second) == 40
    exact, _ = split_people(pd.DataFrame({"user": names}), "0.5", seed=2, spelling="exact")
    apart = {person_key(name) for name in exact["user"]} & {person_key(name) for name in set(names) - {*exact["user"]}}
    assert len(apart) > 3


def test_nobody_s_side_depends_on_the_names_of_one_more_person():
    whole = sides(ROWS)
    names = ("", "x", "\u00e9", "e\u0301", "\ud55c", "\u1112\u1161\u11ab", "n" * 300, "a\x00b", "U1", "=x", "\x1a")
    for name in names:
        added = pd.concat([pd.DataFrame({"user": [name], "n": [-1]}), ROWS], ignore_index=True)
        for side, theirs in zip(sides(added), whole, strict=True):
            assert {user for user in side if user in set(ROWS["user"])} == theirs, name


@pytest.mark.parametrize("spelling", ["same", "exact"])
def test_a_split_that_grows_has_everybody_in_the_second_part_who_was_not_fitted_on(tmp_path, spelling):
    """Against the rows one by one; whoever was fitted on stays so under another spelling of the name."""
    ROWS.to_parquet(tmp_path / "x.parquet")
    split_file(tmp_path / "x.parquet", "0.5", tmp_path / "a.parquet", tmp_path / "b.csv", seed=1, spelling=spelling)
    before = (tmp_path / "a.parquet").read_bytes()
    fitted, released = (
        set(pd.read_parquet(tmp_path / "a.parquet")["user"]),
        set(pd.read_csv(tmp_path / "b.csv")["user"]),
    )
    more = pd.DataFrame({"user": ["new", "", *(name.upper() for name in ROWS["user"])], "state": "a"})
    more["n"] = range(200, 200 + len(more))
    grown = pd.concat([ROWS[ROWS["user"] != "u7"], more], ignore_index=True)
    grown.to_parquet(tmp_path / "y.parquet")
    paths = tmp_path / "y.parquet", "0.5", tmp_path / "a.parquet", tmp_path / "b.csv"
    found = split_file(*paths, spelling=spelling, grow=True)
    rest = pd.read_csv(tmp_path / "b.csv")
    key = str if spelling == "exact" else person_key
    kept = [
        n for n, name in zip(grown["n"], grown["user"], strict=True) if name and key(name) not in {*map(key, fitted)}
    ]
    assert rest["n"].tolist() == kept and released - {"u7"} < set(rest["user"])
    assert (tmp_path / "a.parquet").read_bytes() == before
    assert found == (len(fitted), len({key(name) for name in rest["user"]}), 1)


def test_a_split_grows_from_a_first_part_that_is_there_and_leaves_somebody(tmp_path):
    ROWS.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"a\.parquet"):
        split_file(tmp_path / "x.parquet", "0.5", tmp_path / "a.parquet", tmp_path / "b.parquet", grow=True)
    with pytest.raises(InvalidInput, match=r"40 people, all of them in .*; expected somebody who is not in it"):
        split_file(tmp_path / "x.parquet", "0.5", tmp_path / "x.parquet", tmp_path / "b.parquet", grow=True)
    assert not (tmp_path / "b.parquet").exists()


def test_the_chance_is_the_share():
    many = pd.DataFrame({"user": [str(i) for i in range(2000)]})
    for share in (0.2, 0.5, 0.9):
        count = len(sides(many, share)[0])
        low, high = binom.ppf([1e-9, 1 - 1e-9], 2000, share)
        assert low <= count <= high
        # The test can fail: a share that is less by 30 % lies outside.
        assert not low <= 2000 * (share * 0.7) <= high


def test_without_a_seed_the_system_draws_a_new_key_each_time(monkeypatch):
    drawn = []
    monkeypatch.setattr(fits.secrets, "token_bytes", lambda n: drawn.append(n) or bytes([len(drawn)] * n))
    one, other = sides(ROWS, seed=None), sides(ROWS, seed=None)
    assert drawn == [32, 32] and one != other


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table.from_pandas])
def test_tables_come_back_in_kind(kind):
    first, second = split_people(kind(ROWS), "0.5", seed=1)
    assert type(first) is type(second) is type(kind(ROWS))


REFUSED = [
    ({"share": 0}, "share"), ({"share": "1"}, "share"), ({"share": "half"}, "share"), ({"seed": -1}, "seed"),
    ({"second": "a.parquet"}, "second"), ({"first": "x.parquet"}, "first"), ({"user_column": "who"}, "user_column"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "field"), REFUSED)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, changed, field):
    ROWS.to_parquet(tmp_path / "x.parquet")
    given = {"share": "0.5", "first": "a.parquet", "second": "b.parquet", **changed}
    first, second = tmp_path / given.pop("first"), tmp_path / given.pop("second")
    with pytest.raises(InvalidInput) as refused:
        split_file(tmp_path / "x.parquet", given.pop("share"), first, second, **given)
    assert refused.value.field == field
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_rows_of_nobody_are_in_neither_part_and_one_person_cannot_be_split(tmp_path):
    (tmp_path / "x.csv").write_text("user,state\na,x\n,y\nb,z\n")
    found = split_file(tmp_path / "x.csv", "0.5", tmp_path / "a.csv", tmp_path / "b.csv", seed=1)
    assert found == (1, 1, 1)
    with pytest.raises(InvalidInput, match="user: got 1 people; expected two or more"):
        split_people(pd.DataFrame({"user": ["a", "A "]}), "0.5")
    with pytest.raises(InvalidInput, match="one that leaves somebody of 2 people"):
        split_people(pd.DataFrame({"user": ["a", "b"]}), "0.000000001", seed=1)


def test_a_forecast_is_the_noise_of_the_fit_and_reads_no_row():
    """Of frames of all kinds; a type of a column is refused as in the fit."""
    space = dphmm.StateSpace.labels(["a", "b"])
    table = {"user": ["x", "x"], "state": ["a", "b"]}
    options = {"epsilon": 1, "max_length": 5, "neighbours": "replace"}
    model = dphmm.storage.fit(pd.DataFrame(table), space, bits=dphmm.ReplayBits(1), **options)
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        told = dphmm.storage.forecast_fit(frame, space, about=50, **options)
        (part,) = told.parts
        assert [(part.name, str(part.scale))] == [
            (one["name"], one["scale"]) for one in model.provenance["privacy"]["parts"]
        ]
        assert told.neighbours == "replace" and told.noise[0].share == part.expected_error / 50
    kept = dphmm.storage.forecast_fit(pd.DataFrame(table), space, ledger=MemoryLedger(), event_id="walks", **options)
    assert kept.account.totals.replaced.value == 1
    with pytest.raises(InvalidInput, match="epsilon: got None"):
        dphmm.storage.forecast_fit(pd.DataFrame(table), space)
    with pytest.raises(InvalidInput, match="t: got a column of type bool"):
        dphmm.storage.forecast_fit(pa.table({**table, "t": [True, False]}), space, **options)
