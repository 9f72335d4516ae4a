"""Queries of a frame: the answers of one process, drawn once for an id, stored before they are shown.

It could fail where executors count other records or edges than one process, where a repeated or restarted driver draws
a second time for an id, where a job starts before public options and caps are checked, where an answer is shown
unstored, or where a row is in an error or in what a job prints.
"""

from __future__ import annotations

import json
import tracemalloc
import unicodedata
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dphmm
from dphmm import MarkovModel, StateSpace
from dphmm.accounting import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.samplers.entropy import ReplayBits
from dphmm.spark import counting, queries, tasks
from dphmm.spark.tasks import ByName, CountRecords
from dphmm.states import Grid
from plain_rows import N, rows_of
from spark.deaths import drawn_by_dying_drivers
from spark.worlds import Unread

pytestmark = pytest.mark.replayed_words

NAMES = ["home", "work", "gym", "café"]
SPACE = StateSpace.categories(NAMES)
VISITS = "user string, step long, state string"


def cells(rows):
    """Rows with names: of people, and of states; an unknown one, and none."""
    names = {**dict(enumerate(NAMES)), -1: None, N: "nowhere"}
    return [(f"ü{owner}", step, names[state]) for owner, step, state in rows]


def spelt(rows, seed):
    """Rows whose first cell, a name, is in a spelling that each of them draws."""
    source = np.random.default_rng(seed)
    spellings = [str, str.upper, " {}\u00a0".format, lambda name: unicodedata.normalize("NFD", name)]
    return [(spellings[source.integers(4)](name), *others) for name, *others in rows]


def table_of(rows, *names):
    """The table of one process, sorted so that of equal steps and times the last row is that of the least state."""

    def order(row):
        state = NAMES.index(row[2]) if row[2] in NAMES else N
        return (*("" if cell is None else cell for cell in (row[0],)), *(c or 0 for c in (row[1], *row[3:])), -state)

    columns = zip(*sorted(rows, key=order), strict=True)
    return pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})


def same(found, expected):
    """Whether two answers, and all that is said of them, are equal."""
    assert found.table.to_csv() == expected.table.to_csv()
    assert json.dumps(found.statement, sort_keys=True) == json.dumps(expected.statement, sort_keys=True)
    assert (found.event, found.epsilon, found.details) == (expected.event, expected.epsilon, expected.details)


def asked(question, frame, table, dependence, epsilon, **options):
    """An answer on Spark and its publication, which must be those of one process under the same words."""
    ledger, other = MemoryLedger(), MemoryLedger()
    call = {"histogram": queries.histogram, "degree": queries.degrees}[question]
    found = call(frame, dependence, epsilon, ledger=ledger, event_id="one", bits=ReplayBits(5), **options)
    expected = dphmm.query(
        question, table, dependence, epsilon, ledger=other, event_id="one", bits=ReplayBits(5), **options
    )
    same(found, expected)
    (here,), (there,) = ledger.publications(), other.publications()
    assert here.statement == there.statement and here.loss == there.loss
    return found


class TestNames:
    def test_people_whose_names_are_no_text_do_not_share_a_name(self, spark):
        """Replaced, both would be one name under one cap, and one person would decide which rows of the other count."""
        cells = "(X'FF', 2L, 'home'), (X'FE', 1L, 'work'), (X'61', 1L, 'gym')"
        columns = "CAST(user AS STRING) AS user, step, state"
        found = spark.sql(f"SELECT {columns} FROM VALUES {cells} AS t(user, step, state)")
        answer = queries.histogram(
            found, "group", 1000, states=NAMES, max_rows_per_user=1, ledger=MemoryLedger(), event_id="one",
            bits=ReplayBits(5),
        )  # fmt: skip
        counts = {row["state"]: row["count"] for row in answer.table.to_dict("records")}
        assert counts == {**dict.fromkeys([*NAMES, "other"], 0), "gym": 1}


class TestHistograms:
    @pytest.mark.parametrize(
        ("dependence", "options"),
        [
            ("independent", {"states": NAMES}),
            ("group:2", {"states": ["gym", "other", "home"]}),
            (("group", 3), {"states": SPACE, "times": 8, "windows": [(0, 5), (3, 8)], "consistent": True}),
            ("group", {"states": "home,work,gym", "times": 9, "windows": 4, "first": -2, "max_rows_per_user": 5}),
        ],
    )
    def test_it_is_the_answer_of_one_process(self, spark, dependence, options):
        rows = cells(rows_of(3, 200, 12))
        frame = spark.createDataFrame(rows, VISITS).repartition(5)
        asked("histogram", frame, table_of(rows, "user", "step", "state"), dependence, 2, **options)

    @pytest.mark.parametrize("most", [2, 40])
    def test_spellings_of_a_name_are_one_person_with_one_cap(self, spark, most):
        rows = cells(rows_of(3, 200, 12))
        frame = spark.createDataFrame(spelt(rows, 0), VISITS).repartition(5)
        table = table_of(rows, "user", "step", "state")
        asked("histogram", frame, table, ("group", most), 2, states=SPACE, times=9)

    def test_names_are_compared_by_the_rule_of_the_ledger(self, spark):
        """Ann and ann at one step are two records where names are exact, and one where they are not."""
        frame = spark.createDataFrame([("Ann", 0, "gym"), ("ann", 0, "gym")], VISITS)
        counts = []
        for rule in ("same", "exact"):
            options = {"states": NAMES, "ledger": MemoryLedger(rule), "event_id": "one", "bits": ReplayBits(5)}
            counts.append(queries.histogram(frame, "group:1", 1000, **options).table.set_index("state")["count"]["gym"])
            other = "exact" if rule == "same" else "same"
            with pytest.raises(InvalidInput, match=f"^spelling: got {other}; expected {rule}"):
                queries.histogram(frame, "group:1", 1000, spelling=other, **options)
        assert counts == [1, 2]

    def test_of_a_chain_and_of_its_states(self, spark):
        model = MarkovModel(np.full(N, 0.25), np.full((N, N), 0.25), space=SPACE)
        rows = cells(rows_of(4, 80))
        frame = spark.createDataFrame(rows, VISITS)
        table = table_of(rows, "user", "step", "state")
        found = asked("histogram", frame, table, model, 1, times=6, model_people="others")
        assert found.event.mechanism == "markov" and found.model is model
        asked("histogram", frame, table, "group:3", 1, states=model, model_people="others")

    def test_bins_of_times_and_rows_that_are_no_record(self, spark):
        """A name that is none, a missing time, a year that no library holds; of one bin the latest row counts."""
        hours = [0, 10, 3599, 3600, 7300, 90000, None, -(10**10), -1]
        rows = [("ann", hour, NAMES[k % N]) for k, hour in enumerate(hours)]
        rows += [("", 5, "home"), (None, 5, "home"), ("a\nb", 5, "gym"), ("n" * 201, 5, "gym"), ("b", 40, "gym")]
        frame = spark.createDataFrame(rows, "user string, t long, state string").repartition(3)
        stamped = frame.selectExpr("user", "state", "timestamp_seconds(t) AS t")
        table = table_of(rows, "user", "t", "state")
        moments = table["t"].cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
        table = table.set_column(1, "t", moments)
        options = {"states": NAMES, "times": 30, "step": "1h", "windows": 2}
        for first in (None, "1970-01-01T00:00:00Z"):
            found = asked("histogram", stamped, table, "group:9", 4, first=first, **options)
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        try:
            again = asked("histogram", stamped, table, "group:9", 4, first=first, **options)
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        assert again.table.equals(found.table)

    def test_of_one_step_the_latest_row_counts(self, spark):
        rows = [("ann", 1, "gym", 5), ("ann", 1, "work", 9), ("ann", 1, "home", 7), ("ann", 2, "gym", None)]
        frame = spark.createDataFrame(rows, "who string, step int, at string, seconds long").repartition(3)
        frame = frame.selectExpr("who", "step", "at", "timestamp_seconds(seconds) AS t")
        table = table_of(rows, "who", "step", "at", "t")
        table = table.set_column(3, "t", table["t"].cast(pa.timestamp("s", "UTC")))
        asked("histogram", frame, table, "group:2", 9, states=NAMES, user_column="who", state_column="at")

    def test_places_on_a_map(self, spark):
        grid = Grid.from_bounds(0.0, 0.0, 0.03, 0.03, cell=1000.0)
        places = [
            (0.001, 0.001),
            (0.012, 0.012),
            (45.0, 9.0),
            (0.02, 360.0),
            (float("nan"), 0.0),
            (91.0, 0.0),
            (None, 0.0),
        ]
        rows = [(7, step, lat, lon) for step, (lat, lon) in enumerate(places)]
        frame = spark.createDataFrame(rows, "user short, step int, lat double, lon double")
        columns = zip(*rows, strict=True)
        table = pa.table(dict(zip(["user", "step", "lat", "lon"], map(pa.array, columns), strict=True)))
        asked("histogram", frame, table, "group:7", 2, states=grid)

    def test_numbers_as_names_and_a_collation(self, spark):
        rows = [(name, step, step % 3) for step, name in enumerate("aAaAaAaA")]
        frame = spark.createDataFrame(rows, "user string, step long, state long")
        mixed = frame.selectExpr("user COLLATE UTF8_LCASE AS user", "step", "state")
        table = pa.table({"user": list("aAaAaAaA"), "step": range(8), "state": [k % 3 for k in range(8)]})
        asked("histogram", mixed, table, "group:2", 2, states="0,1,2")

    @pytest.mark.parametrize("partitions", [1, 7])
    def test_fault_67_the_bound_holds_over_all_partitions_of_a_person(self, spark, partitions):
        rows = [("ann", step, NAMES[step % 2]) for step in range(100)] + [("bob", 0, "gym")]
        frame = spark.createDataFrame(rows, VISITS).repartition(partitions, "step")
        seen = []

        def exact(self, counts, bits):
            seen.append(counts.values.tolist())
            return plainly(self, counts, bits)

        plainly = queries.Histogram.drawn
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(queries.Histogram, "drawn", exact)
            given = {"ledger": MemoryLedger(), "event_id": "one", "states": NAMES}
            queries.histogram(frame, "group:3", 1, **given)
        assert seen == [[[2, 1, 1, 0, 0]]]

    def test_fault_66_and_70_other_orders_and_a_person_of_very_many_rows(self, spark, tmp_path, monkeypatch):
        """A map task gives its rows in another order at each run; with a small bound Spark sorts by step itself."""
        marker = tmp_path / "runs"

        def shuffled(batches):
            with marker.open("a") as file:
                file.write("x")
            for batch in batches:
                order = np.random.default_rng(marker.stat().st_size).permutation(len(batch))
                yield batch.take(pa.array(order))

        class Overfull(CountRecords):
            def __call__(self, batches):
                held = tasks.MOST_HELD, tasks._SORTED_TOGETHER
                tasks.MOST_HELD, tasks._SORTED_TOGETHER = 3, 0
                try:
                    yield from super().__call__(batches)
                finally:
                    tasks.MOST_HELD, tasks._SORTED_TOGETHER = held

        rows = cells(rows_of(5, 300, 8))
        frame = spark.createDataFrame(rows, VISITS).repartition(3)
        frame = frame.mapInArrow(shuffled, frame.schema)
        table, options = table_of(rows, "user", "step", "state"), {"states": NAMES, "times": 9, "windows": 3}
        one = asked("histogram", frame, table, "group:4", 1, **options)
        sorted_by_step, plainly = [], counting._sums

        def sums(columns, task, spelling):
            sorted_by_step.append(task.by_step)
            overfull = Overfull(*(getattr(task, name) for name in task.__dataclass_fields__))
            return plainly(columns, overfull, spelling)

        monkeypatch.setattr(counting, "_sums", sums)
        assert asked("histogram", frame, table, "group:4", 1, **options).table.equals(one.table)
        assert sorted_by_step == [False, True] and marker.stat().st_size >= 9


def graph(seed, n=30, rows=150):
    """Rows (a, b): a few people with very many edges, repeated edges both ways, loops, and ends that are nobody."""
    ends = np.random.default_rng(seed).integers(-1, n + 1, (rows, 2)) ** 2 // n
    return [*ends.tolist(), *ends[:20, ::-1].tolist(), *([0, b] for b in range(n)), [3, n], [-1, 2]]


class TestDegrees:
    @pytest.mark.parametrize(
        ("level", "cap", "dependence", "raw"),
        [("node", 3, "independent", False), ("node", 40, "group:2", True), ("edge", 4, "group:3", False)],
    )
    def test_it_is_the_answer_of_one_process(self, spark, level, cap, dependence, raw):
        rows = graph(cap)
        frame = spark.createDataFrame(rows, "a long, b int").repartition(5)
        table = pa.table({side: pa.array([row[k] for row in rows]) for k, side in enumerate("ab")})
        options = {"people": 30, "level": level, "cap": cap, "consistent": not raw}
        asked("degree", frame, table, dependence, 2, **options)

    def test_of_names_and_of_chosen_columns(self, spark):
        names = [f"ü{k}" for k in range(12)]
        rows = [(names[a % 12], names[b % 12], "x") for a, b in graph(2, 12)] + [("ü1", None, "x"), ("zoe", "ü1", "x")]
        frame = spark.createDataFrame(rows, "one string, other string, note string")
        frame = frame.selectExpr("one COLLATE UTF8_LCASE AS one", "other", "note")
        table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("one", "other"))})
        asked("degree", frame, table, "group:2", 2, people=names, level="node", cap=2, columns=["one", "other"])

    def test_ends_in_any_spelling_are_those_of_the_people(self, spark):
        names = [f"\u00fc{k}" for k in range(12)]
        rows = [(names[a % 12], names[b % 12]) for a, b in graph(2, 12)]
        table = pa.table({side: [row[k] for row in rows] for k, side in enumerate("ab")})
        frame = spark.createDataFrame(
            [row[::-1] for row in spelt([row[::-1] for row in spelt(rows, 0)], 1)], "a string, b string"
        )
        asked("degree", frame, table, "group:2", 2, people=names, level="node", cap=2)

    @pytest.mark.parametrize("rows", [[(1, 1)], []])
    def test_no_edge_at_all(self, spark, rows):
        frame = spark.createDataFrame(rows, "a long, b long")
        table = pa.table({name: pa.array([row[0] for row in rows], pa.int64()) for name in "ab"})
        asked("degree", frame, table, "independent", 1, people=5, level="node", cap=2)


PLAIN = {"user": "StringType", "step": "LongType", "state": "StringType"}
EDGES = {"a": "LongType", "b": "StringType"}


@pytest.mark.parametrize(
    ("call", "types", "options", "told"),
    [
        (queries.histogram, PLAIN, {"epsilon": 0}, "epsilon: got 0"),
        (queries.histogram, PLAIN, {"states": None}, "states: got nothing"),
        (queries.histogram, PLAIN, {"dependence": "group"}, "max_rows_per_user: got nothing"),
        (queries.histogram, PLAIN, {"windows": 3}, "times: got nothing"),
        (queries.histogram, PLAIN, {"times": 4, "windows": "3:9"}, "windows: got 3:9"),
        (queries.histogram, PLAIN, {"mechanism": "markov"}, "options: got mechanism"),
        (queries.histogram, PLAIN, {"user_column": "who"}, "user_column: got who"),
        (queries.histogram, PLAIN, {"times": 4, "step": "1h"}, "step: got 1h"),
        (queries.histogram, PLAIN, {"colour": 1}, "options: got colour"),
        (queries.histogram, PLAIN, {"event_id": ""}, "event_id: got"),
        (queries.histogram, PLAIN, {"event_id": None}, "event_id: got nothing"),
        (queries.histogram, {**PLAIN, "user": "BinaryType"}, {}, "column user: got BinaryType"),
        (queries.histogram, {"user": "LongType", "state": "LongType"}, {}, "expected a column step"),
        (queries.degrees, EDGES, {"level": None}, "level: got nothing"),
        (queries.degrees, EDGES, {"cap": 0}, "cap: got 0"),
        (queries.degrees, EDGES, {"people": None}, "people: got nothing"),
        (queries.degrees, EDGES, {"columns": "a,c"}, "columns: got c"),
        (queries.degrees, {**EDGES, "c": "LongType"}, {}, "expected two columns"),
        (queries.degrees, {**EDGES, "b": "DoubleType"}, {}, "column b: got DoubleType"),
    ],
)
def test_public_checks_come_before_any_job(call, types, options, told):
    own = {"states": NAMES} if call is queries.histogram else {"people": 9, "level": "node", "cap": 3}
    ledger = MemoryLedger()
    given = {"dependence": "independent", "epsilon": 1, "ledger": ledger, "event_id": "one", **own, **options}
    with pytest.raises(InvalidInput) as error:
        call(Unread(**types), **given)
    assert told in str(error.value) and "\n" not in str(error.value)
    assert ledger.publications() == []


def test_a_cap_refuses_before_any_job():
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        transaction.bind_publications(Fraction(1))
    frame = Unread(**EDGES)
    given = {"ledger": ledger, "event_id": "one", "people": 9, "level": "node", "cap": 3}
    with pytest.raises(BudgetExceeded, match="nothing was drawn or spent"):
        queries.degrees(frame, "independent", 2, **given)


def test_who_said_nothing_of_dependence_is_warned_where_the_call_is(monkeypatch):
    monkeypatch.setattr(queries, "key_totals", lambda *_: (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)))
    monkeypatch.setattr(queries, "_records", lambda *_: None)
    with pytest.warns(UserWarning, match="dependence was not given") as told:
        queries.histogram(Unread(**PLAIN), None, 1, ledger=MemoryLedger(), event_id="one", states=NAMES)
    assert told[0].filename == __file__


def test_fault_69_the_same_id_gives_the_stored_answer_whatever_the_frame_is(spark):
    ledger, options = MemoryLedger(), {"event_id": "one", "states": NAMES}
    frame = spark.createDataFrame(cells(rows_of(1)), VISITS)
    first = queries.histogram(frame, "group:3", 1, ledger=ledger, **options)
    assert first.kept.fresh and first.epsilon == 1 and ledger.publications()[0].epsilon == Fraction(1, 6)
    other = Unread(**PLAIN)
    again = queries.histogram(other, "group:3", 1, ledger=ledger, **options)
    assert not again.kept.fresh
    same(again, first)
    with pytest.raises(InvalidInput, match=r"^event_id: got \"one\""):
        queries.histogram(other, "group:3", 2, ledger=ledger, **options)
    with pytest.raises(InvalidInput, match=r"^event_id: got \"one\""):
        given = {"ledger": ledger, "event_id": "one", "people": 9, "level": "node", "cap": 3}
        queries.degrees(Unread(**EDGES), "independent", 1, **given)


def test_of_two_that_count_at_once_one_draws(monkeypatch):
    """Somebody else stores the id while this driver counts."""
    ledger, options = MemoryLedger(), {"event_id": "one", "states": NAMES}
    none = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    stored = []

    def slow(*_):
        if not stored:
            stored.append(None)
            stored[0] = queries.histogram(Unread(**PLAIN), "group:3", 1, ledger=ledger, **options)
        return none

    monkeypatch.setattr(queries, "key_totals", slow)
    monkeypatch.setattr(queries, "_records", lambda *_: None)
    found = queries.histogram(Unread(**PLAIN), "group:3", 1, ledger=ledger, **options)
    same(found, stored[0])
    assert (found.kept.fresh, stored[0].kept.fresh, len(ledger.publications())) == (False, True, 1)


def test_a_job_that_fails_leaves_nothing(spark):
    def broken(batches):
        raise ValueError("no rows today")

    frame, ledger = spark.createDataFrame(graph(1), "a long, b long"), MemoryLedger()
    given = {"ledger": ledger, "event_id": "one", "people": 9, "level": "node", "cap": 3}
    with pytest.raises(Exception, match="no rows today"):
        queries.degrees(frame.mapInArrow(broken, frame.schema), "independent", 1, **given)
    assert ledger.publications() == []


#: A driver that ends, without a word, before or after the commit of the transaction that drew.
DRIVER = """
import os, sys
import numpy as np
from dphmm.spark import queries
from dphmm.dependent._question import Question
from dphmm.storage.ledger import open_ledger
from spark.deaths import in_turn

path, drawn, *whens = sys.argv[1:]
plainly, storing = queries.Histogram.drawn, Question._stored

class Schema:
    fields = [
        type("Field", (), {"name": n, "dataType": type(k, (), {})()})
        for n, k in (("user", "LongType"), ("step", "LongType"), ("state", "StringType"))
    ]

def traced(self, counts, bits):
    found = plainly(self, counts, bits)
    with open(drawn, "a") as file:
        file.write(",".join(map(str, found.answered.table["count"])) + "\\n")
    if when == "before":
        os._exit(9)
    return found

def dying(*given):
    result = storing(*given)
    if when == "after":
        os._exit(9)
    return result

queries.Histogram.drawn, Question._stored = traced, dying
queries.key_totals = lambda *_: (np.array([0, 1]), np.array([500, 200]))
queries._records = lambda *_: None
frame = type("Frame", (), {"schema": Schema})

def job(then):
    global when
    when = then
    with open_ledger(path) as ledger:
        found = queries.histogram(frame, "group:2", 1, ledger=ledger, event_id="one", states="a,b")
    return ",".join(map(str, found.table["count"]))

in_turn(job, whens)
"""


def test_fault_68_a_driver_that_dies_after_drawing(tmp_path):
    """Before the commit nothing is stored, and the next driver draws; after it the id gives the stored answer."""

    assert len(drawn_by_dying_drivers(DRIVER, tmp_path)) == 2


def test_fault_70_one_person_with_all_rows_needs_no_more_memory_than_a_few_batches():
    def peak(n_batches):
        def batches():
            for k in range(n_batches):
                step = np.arange(10_000) + 10_000 * k
                columns = [pa.array(np.full(10_000, 7)), pa.array(step), pa.array([b"home"] * 10_000)]
                yield pa.RecordBatch.from_arrays(columns, ["owner", "step", "state"])

        task = CountRecords(((0, 10**7),), N, 10**7, None, 3, 0, None, ByName(tuple(NAMES)), by_step=True)
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        ((_, _, keys, totals),) = task.parts.read(task(batches()))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (keys.tolist(), totals.tolist()) == ([0], [3])
        return highest + pa.total_allocated_bytes() - before

    # What the first run loads is no row.
    peak(10)
    assert peak(100) < 1.1 * peak(10) + 200_000


def test_nothing_of_the_rows_is_shown(spark, capfd):
    """Canary: state "canary-home" of person "canary-ann", in errors, plans, reprs and what a job prints."""
    frame = spark.createDataFrame([("canary-ann", step, "canary-home") for step in range(4)], VISITS)
    frame = spark.createDataFrame(frame.toArrow())
    told, seen = [], []
    plainly = queries.Histogram.drawn

    def exact(self, counts, bits):
        seen.append(counts)
        return plainly(self, counts, bits)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries.Histogram, "drawn", exact)
        given = {"ledger": MemoryLedger(), "event_id": "one", "states": ["away", "canary-home"]}
        found = queries.histogram(frame, "group:3", 1, **given)
    told += [repr(found.rejected), repr(found.kept), json.dumps(found.statement), *map(repr, seen)]
    with pytest.raises(TypeError, match="are not written"):
        seen[0].__reduce_ex__(4)
    edges = frame.selectExpr("user AS a", "state AS b")
    people = ["canary-ann", "canary-home"]
    queries.degrees(edges, "independent", 1, ledger=MemoryLedger(), event_id="one", people=people, level="edge", cap=1)
    twice = edges.selectExpr("1L AS turn", "CAST('7 bytes' AS BINARY) || X'00' AS edges").coalesce(1)
    unsorted = twice.mapInArrow(queries.TakeEdges(2, 2, 2), queries.DEGREES)
    with pytest.raises(Exception, match="edges are out of order") as error:
        unsorted.collect()
    told += [str(error.value), repr(error.value)]
    printed = capfd.readouterr()
    for text in [*told, printed.out, printed.err]:
        assert "canary" not in text, text
