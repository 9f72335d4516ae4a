"""The figures of a table, and the tables that a release does not begin.

Claims: figures are coarse, the same for a table of any kind and for its file, and true of small tables whose figures
are known; a table is refused with nothing drawn or spent where less than one row in 20 is in a state, where none is at
a step of the schedule, and where people are too few; whether it is refused, and with which words, is the same for all
tables with the same people, moments and rows in states.

It would fail for a share that is exact, a threshold on the other side, a refusal after an answer is stored, and for
words that follow from where a row is.
"""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.evaluation.table_check import percent
from dphmm.release.batch import Batch
from dphmm.statement.files import load_statement
from dphmm.storage.importers.events import import_events
from dphmm.storage.trajectories import load_trajectories

GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.042, 50.027, cell=1000.0)
TOWN = dphmm.MarkovModel.from_geometry(GRID, step="5min", max_speed="12.5km/h")
PAGES = dphmm.StateSpace.labels(["0", "1", "2"])
SITE = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), space=PAGES)
#: Places in the first and the last cell, the first with its axes swapped, and others off the map.
HERE, THERE, SWAPPED, FAR, SOUTH = (50.004, 10.006), (50.023, 10.036), (10.006, 50.004), (51.0, 10.0), (-33.9, 151.2)


def places(*where, people=("ann", "bob"), start="2024-05-06T08:00Z"):
    """A table in which everybody is at these places, one every five minutes."""
    times = pd.date_range(start, periods=len(where), freq="5min")
    rows = [(name, time, *place) for name in people for time, place in zip(times, where, strict=True)]
    return pd.DataFrame(rows, columns=["user", "t", "lat", "lon"])


def names(*states, **more):
    return pd.DataFrame({"user": "ann", "step": range(1, len(states) + 1), "state": states, **more})


def budget(known, adds, left, left_after, of="4 per 1d"):
    return {"known": known, "adds": adds, "left": left, "left_after": left_after, "of": of}


def rows_of(table):
    return load_trajectories(table).trajectories


def released(table, model, ledger, **choices):
    policy = dphmm.policy.complete(model.n_states)
    more = {"ledger": ledger, "bits": dphmm.ReplayBits(3), "progress": False, "epsilon": 1, **choices}
    return dphmm.release_many(table, model, policy, model.space, **more)


def test_shares_are_told_in_steps_of_5_per_cent_and_are_0_or_100_only_if_exactly_so():
    assert [percent(part, 1000) for part in (0, 1, 70, 80, 524, 999, 1000)] == [0, 5, 5, 10, 50, 95, 100]


class TestFigures:
    def test_a_table_of_swapped_places(self):
        found = dphmm.evaluation.check_table(places(SWAPPED, SWAPPED, SOUTH), TOWN)
        assert (found.rows, found.people, found.most_rows) == (6, 2, 3)
        assert (found.on_map, found.in_states, found.swapped) == (True, 0, 65)
        assert len(found.stops) == 1 and found.stops[0].startswith("less than 5 % of its rows on the map")
        assert found.kilometres_away == float(f"{found.kilometres_away:.1e}") > 5000

    def test_a_table_on_the_map_has_no_word_of_swapped_axes(self):
        found = dphmm.evaluation.check_table(places(HERE, HERE, SOUTH, FAR), TOWN)
        assert (found.in_states, found.swapped, found.kilometres_away, found.stops) == (50, None, None, [])

    def test_names_that_are_no_states_with_the_commonest_first(self):
        found = dphmm.evaluation.check_table(names(*["00"] * 15, *["01"] * 30, "x", "2"), SITE)
        assert (found.in_states, found.other_names[:3]) == (5, ["01", "00", "x"])
        assert "in states        hardly any (under 8 %) of the rows" in found.lines()
        assert len(found.stops) == 1 and "to the letter" in found.stops[0]
        assert '"01", "00", "x"' in repr(found)

    def test_moves_faster_than_the_model_knows(self):
        slow, fast = places(HERE, HERE, HERE), places(HERE, THERE, HERE)
        assert dphmm.evaluation.check_table(slow, TOWN).too_fast == 0
        assert dphmm.evaluation.check_table(fast, TOWN).too_fast == 100
        assert dphmm.evaluation.check_table(fast.iloc[::2], TOWN).too_fast == 0
        assert dphmm.evaluation.check_table(names("0", "1"), SITE).too_fast is None

    def test_a_column_that_is_hardly_the_persons_is_the_first_that_is_told_of(self):
        """As buses whose row number was taken for them, one vehicle, and as two routes with the rows of many."""
        rows = places(HERE, people=[str(number) for number in range(1, 9)])
        found = dphmm.evaluation.check_table(rows.assign(vehicle_id="V1", route="14"), TOWN)
        assert repr(found).startswith("who              each person has 1 row: is this column the person, or")
        assert 'is it "vehicle_id"? The promise' in found.lines()[0] and found.other_people == ["vehicle_id"]
        assert (
            dphmm.evaluation.check_table(rows.assign(route="14"), TOWN)
            .lines()[0]
            .endswith("holds for each of its values")
        )
        many = names(*["1"] * 20_000, vehicle=range(20_000), person="x").assign(user=["14", "15"] * 10_000)
        found = dphmm.evaluation.check_table(many, SITE)
        assert found.lines()[0].startswith("who              2 people have 20,000 rows: ") and "vehicle" in repr(found)
        assert found.other_people == ["vehicle"]
        several = places(*[HERE] * 9).assign(vehicle_id="V1")
        for plain in (several, many.assign(user="14"), many[1:], places(HERE, people=["ann"])):
            assert not dphmm.evaluation.check_table(plain, SITE if "state" in plain else TOWN).is_doubtful

    def test_rows_of_one_moment_rows_set_aside_and_spellings(self):
        rows = pd.concat([places(HERE, HERE), places(HERE), places(HERE, people=["Ann "]), places((95.0, 10.0))])
        found = dphmm.evaluation.check_table(rows, TOWN)
        assert (found.rows, dict(found.rejected), found.same_moment) == (9, {"invalid_place": 2}, 3)
        assert found.alike == '1 of 3 names are spellings of others: "Ann " and "ann"'

    def test_steps_of_a_schedule_that_have_rows(self):
        promise = dphmm.SequencePromise(4, per="1d")
        schedule = dphmm.accounting.Schedule(promise, 1, hours=["08:00", "08:10", "20:00"])
        rows = pd.concat([places(HERE, HERE, HERE), places(HERE, people=["eve"], start="2024-05-06T09:00Z")])
        found = dphmm.evaluation.check_table(rows, TOWN, schedule=schedule)
        assert (found.steps, found.steps_with_rows, found.unanswered, found.stops) == (3, 2, 1, [])
        late = dphmm.evaluation.check_table(places(HERE, start="2024-05-06T22:00Z"), TOWN, schedule=schedule)
        assert (late.steps, late.steps_with_rows, late.unanswered) == (3, 0, 2) and "no limit" not in repr(late)
        assert late.stops[0].startswith("no row at a step that the schedule asks")

    def test_what_is_left_for_these_people_and_would_be_afterwards(self):
        ledger, promise = MemoryLedger(), dphmm.SequencePromise(4, per="1d")
        released(places(HERE, HERE), TOWN, ledger, promise=promise)
        more = {"epsilon": 1, "promise": promise, "ledger": ledger}
        rows = pd.concat([places(HERE, HERE, HERE), places(HERE, people=["eve"])])
        found = dphmm.evaluation.check_table(rows, TOWN, **more)
        assert budget(2, "3", "2", "1") == found.budget and found.stops == []
        passed = dphmm.evaluation.check_table(places(*[HERE] * 5), TOWN, **more)
        assert budget(2, "5", "2", "0") == passed.budget and "promise: step 5" in passed.stops[0]
        paced = dphmm.accounting.Schedule(promise, 1, at=range(1, 288), spreads=[0.0])
        asked = dphmm.evaluation.check_table(places(*[HERE] * 5), TOWN, schedule=paced)
        assert asked.budget == budget(0, "4", "4", "0") and asked.stops == []
        capped = dphmm.evaluation.check_table(names("0", "1"), SITE, epsilon=1, cap_epsilon=3)
        assert capped.budget == budget(0, "2", "3", "1", "3 in all")
        assert dphmm.evaluation.check_table(names("0", "1"), SITE, epsilon=1).budget == {"known": 0, "adds": "2"}
        assert dphmm.evaluation.check_table(names("0", "1"), SITE).budget is None
        assert {entry.epsilon for entry in ledger.entries("ann", "state")} == {Fraction(1)}, "nothing was spent"

    def test_what_is_left_is_that_of_the_fullest_block_with_new_rows(self):
        """Of the day that is nearly spent, though the last day asked is free; days without a new row do not count."""
        ledger, promise = MemoryLedger(), dphmm.SequencePromise(4, per="1d")
        first, night = places(HERE, HERE, HERE, HERE), places(HERE, HERE, HERE, start="2024-05-07T23:30Z")
        released(pd.concat([first, night]), TOWN, ledger, promise=promise)
        late = places(HERE, start="2024-05-07T23:50Z")
        more = {"epsilon": 1, "promise": promise, "ledger": ledger}
        rows = pd.concat([first, night, late, places(HERE, HERE, start="2024-05-08T08:00Z")])
        found = dphmm.evaluation.check_table(rows, TOWN, **more)
        assert found.budget == budget(2, "10", "1", "0") and found.stops == []
        assert "epsilon 1 of 4 per 1d, the least of any person and step; 0 afterwards" in repr(found)
        # Another query has the rest of both days; without a new row there is that of the days asked.
        second = dphmm.evaluation.check_table(rows, TOWN, query="second", **more | {"epsilon": "0.5"})
        assert second.budget == budget(2, "5", "0", "0") and "promise: step 1 " in second.stops[0]
        assert dphmm.evaluation.check_table(night, TOWN, **more).budget == budget(2, "3", "1", "1")
        # Everybody is looked up together, and each has an account.
        free = dphmm.evaluation.check_table(places(HERE, people=["eve", "bob"]), TOWN, **more)
        assert free.budget == budget(1, "1", "0", "0")

    def test_a_table_of_any_kind_and_its_file_give_the_same_figures(self, tmp_path):
        for rows, model in ((places(HERE, SWAPPED, SOUTH), TOWN), (names("0", "1.0", "1.0"), SITE)):
            rows.to_parquet(tmp_path / "rows.parquet")
            rows.to_csv(tmp_path / "rows.csv", index=False)
            tables = (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows), tmp_path / "rows.parquet")
            first, *others = [
                dphmm.evaluation.check_table(table, model) for table in (*tables, str(tmp_path / "rows.csv"))
            ]
            assert all(found == first for found in others)


class TestStops:
    """Of `dphmm.release_many`: nothing is in the ledger where it stops."""

    @pytest.mark.parametrize(
        ("table", "model", "choices", "words"),
        [
            (
                places(SWAPPED),
                TOWN,
                {},
                "rows on the map of the model; expected rows on it, with latitude and longitude",
            ),
            (names("00", "01"), SITE, {}, "rows in states of the model; expected names as the model has them"),
            (names("0"), SITE, {"min_people": 2}, "got 1 people; expected at least 2, as min_people says"),
            (
                places(HERE),
                TOWN,
                {
                    "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(4, per="1d"), 1, hours=["02:00"]),
                    "epsilon": None,
                },
                "got no row at a step that the schedule asks; expected rows at such steps",
            ),
        ],
    )
    def test_a_table_that_cannot_be_meant(self, table, model, choices, words, tmp_path):
        ledger, output = MemoryLedger(), tmp_path / "out.parquet"
        with pytest.raises(InvalidInput, match=r"^table: got ") as stopped:
            released(table, model, ledger, output=output, **choices)
        assert words in str(stopped.value)
        assert str(stopped.value).endswith(
            "dphmm.evaluation.check_table() says more; although=True releases it as it is"
        )
        assert ledger.sessions() == [] and list(tmp_path.iterdir()) == []
        for more in ({"although": True}, {"check": False}):
            ledger = MemoryLedger()
            with pytest.warns(UserWarning, match="no answer") if "schedule" in choices else nullcontext():
                assert len(released(table, model, ledger, **choices, **more)) == len(table)
            assert ledger.sessions() != []

    @pytest.mark.parametrize(("rows", "stops"), [(19, False), (20, False), (21, True)])
    def test_one_row_in_20_is_enough(self, rows, stops):
        table = rows_of(names(*["9"] * (rows - 1), "1"))
        assert bool(Batch(SITE, dphmm.policy.complete(3), PAGES, 1).stops(table)) == stops

    def test_a_statement_says_that_it_was_checked_and_no_more(self, tmp_path):
        for number, (more, said) in enumerate([({}, True), ({"although": True}, False), ({"check": False}, False)]):
            output = tmp_path / f"{number}.parquet"
            released(names("0", "1", "9"), SITE, MemoryLedger(), output=output, **more)
            assert load_statement(output).checked == said

    def test_neighbouring_tables_are_stopped_alike(self):
        """Every table of 1 to 3 rows with the same rows on the map is stopped with the same words, or is not."""
        inside, outside = (HERE, THERE, (50.013, 10.02)), (SWAPPED, FAR, SOUTH)
        batch = Batch(TOWN, dphmm.policy.radius(GRID, 1500), GRID, 1)
        for n in (1, 2, 3):
            for pattern in product((inside, outside), repeat=n):
                told = {tuple(batch.stops(rows_of(places(*where)))) for where in product(*pattern)}
                assert told == {() if inside in pattern else tuple(batch.stops(rows_of(places(FAR))))}

    def test_people_who_have_rows_too_late_alone_are_no_matter_of_the_schedule(self):
        """Moments before one that is stored: no plan of other steps would help."""
        ledger = MemoryLedger()
        model = dphmm.MarkovModel(SITE.initial, SITE.matrix, space=PAGES)
        rows = names("0", "1").drop(columns="step").assign(t=pd.date_range("2024-05-06T08:00Z", periods=2))
        schedule = dphmm.accounting.Schedule(dphmm.SequencePromise(4, steps=4), 1, at=[1, 2])
        released(rows, model, ledger, schedule=schedule, epsilon=None)
        earlier = rows.assign(t=pd.date_range("2024-05-01T08:00Z", periods=2))
        assert len(released(earlier, model, ledger, schedule=schedule, epsilon=None, resume=True)) == 0

    def test_a_cap_that_would_be_passed_is_no_matter_of_the_check(self):
        with pytest.raises(BudgetExceeded):
            released(names("0", "1"), SITE, MemoryLedger(), cap_epsilon=1)


def test_the_owner_hears_what_published_times_of_events_tell(tmp_path):
    """The time until the next event tells which of three it is; of the day alone nobody could say."""
    pytest.importorskip("sklearn")
    random, rows = np.random.default_rng(1), []
    for case in range(80):
        time = pd.Timestamp("2026-03-02T08:00Z") + pd.Timedelta(days=case % 5)
        for page in random.integers(3, size=6).tolist():
            rows.append((f"case {case:02}", str(page), time))
            time += pd.Timedelta(minutes=10 * (page + 1))
    columns = ["case:concept:name", "concept:name", "time:timestamp"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "log.csv", index=False)
    events = import_events(tmp_path / "log.csv", case_names="kept").trajectories
    told = {
        times: dphmm.evaluation.check_table(events, SITE, epsilon=1, times=times).by_times
        for times in ("exact", "day", "none")
    }
    assert told["none"] is None
    shares = {times: [int(word) for word in told[times].split() if word.isdigit()] for times in ("exact", "day")}
    # Of the last event of a case no next one tells: five of six, and one of three of the sixth, is 89 %.
    assert shares["exact"][0] in (85, 90) and all(25 <= share <= 45 for share in (*shares["day"], shares["exact"][1]))
