"""Counting on executors: the counts of plain loops, whatever partitions, batches, attempts and orders brought the rows.

The first tests give a task's function its batches and need no Spark. It could fail where an owner is capped once per
partition or batch, where what is kept follows from the order of arrival, where a name or a null is taken for a state,
where memory grows with one owner's rows, or where a state is in an error, a plan or the output of a job.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dphmm import StateSpace
from dphmm.errors import InvalidInput
from dphmm.markov.private import count_transitions
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.private.transition_counts import counts_of_keys
from dphmm.spark import counting, tasks
from dphmm.spark.counting import FrameColumns
from dphmm.spark.tasks import TOTALS, ByName, ByNumber, CountRows, KeyOwners, PackRows, WithoutValues
from dphmm.states import Grid
from plain_rows import N, rows_of, same, sequences_of
from spark.worlds import Unread

NAMES = ["home", "work", "gym", "café"]
SPACE = StateSpace.categories(NAMES)


def expected_of(rows, caps, shortest=2):
    """The counts of rows (owner, step, state) in the order of their numbers."""
    sequences, owners = sequences_of(rows, shortest)
    return count_transitions(sequences, N, caps.max_length, owners=owners, max_sequences=caps.max_sequences)


def batches_of(rows, parts=(), owner=None, state=None):
    """Rows as batches that end at these places."""
    kinds = {"owner": owner or pa.int64(), "step": pa.int64(), "state": state or pa.int64()}
    for first, end in pairwise([0, *sorted(parts), len(rows)]):
        columns = list(zip(*rows[first:end], strict=True)) or [()] * len(kinds)
        arrays = [pa.array(cells, kind) for cells, kind in zip(columns, kinds.values(), strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, list(kinds))


def brought(task, batches, spelling="same"):
    """Rows as Spark brings them to a task: packed by two tasks, by bucket, in batches of 300 packed rows."""
    given = list(batches)
    packed = [batch for own in (given[::2], given[1::2]) for batch in PackRows(task, spelling)(iter(own))]
    if not packed:
        return []
    rows = pa.Table.from_batches(packed)
    return rows.take(np.argsort(rows["bucket"], kind="stable")).combine_chunks().to_batches(max_chunksize=300)


def given_back(task, batches, spelling="same"):
    """{key: total} of a task; None where it wants its rows in another order."""
    rows = list(task.parts.read(task(iter(batches if task.by_step else brought(task, batches, spelling)))))
    assert [part for part, *_ in rows] == list(range(task.parts.count))
    if any(again for _, again, _, _ in rows):
        assert all(again and len(keys) == 0 for _, again, keys, _ in rows)
        return None
    return {
        part * task.parts.size + key: total
        for part, _, keys, totals in rows
        for key, total in zip(keys.tolist(), totals.tolist(), strict=True)
    }


def task_of(caps, shortest=2, states=None, by_step=False):
    return CountRows(N, caps, shortest, states or ByNumber(), by_step)


def counted(task, batches, spelling="same"):
    totals_of = given_back(task, batches, spelling)
    keys, totals = (np.array(column, dtype=np.int64) for column in zip(*totals_of.items(), strict=True))
    return counts_of_keys(keys, totals, N, task.caps)


class TestATask:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("shortest", [1, 2])
    @pytest.mark.parametrize("by_step", [False, True])
    def test_batches_of_any_size_give_the_counts_of_plain_loops(self, seed, shortest, by_step):
        source, rows, caps = np.random.default_rng(seed), rows_of(seed), RecordBounds(3, 2)
        for parts in ([], range(1, len(rows)), [5, 5, 40]):
            given = [rows[k] for k in source.permutation(len(rows))]
            if by_step:
                given.sort(key=lambda row: row[:2])
            found = counted(task_of(caps, shortest, by_step=by_step), batches_of(given, parts))
            same(found, expected_of(rows, caps, shortest))
            assert found.n_owners == len({owner for owner, _, _ in rows})

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
    @pytest.mark.parametrize(("packed", "held"), [(1, 1), (7, 5), (2**18, 2**16)])
    def test_names_of_owners(self, monkeypatch, seed, packed, held):
        """However few rows are packed together, and put in order together."""
        monkeypatch.setattr(tasks, "_PACKED_TOGETHER", packed)
        monkeypatch.setattr(tasks, "_SORTED_TOGETHER", held)
        source, caps = np.random.default_rng(seed), RecordBounds(3, 2)
        rows = [(f"ü{owner}".encode(), step, state) for owner, step, state in rows_of(seed, 200, 30)]
        given = [rows[k] for k in source.permutation(len(rows))]
        for parts in ([], range(1, len(rows)), [5, 5, 40]):
            same(counted(task_of(caps), batches_of(given, parts, pa.binary())), expected_of(rows, caps))

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("by_step", [False, True])
    def test_spellings_of_a_name_are_one_owner_with_one_cap(self, seed, by_step):
        """The counts are those of the same rows under one spelling; a name without a key is nobody's."""
        source, caps = np.random.default_rng(seed), RecordBounds(3, 2)
        rows = [(f"zo\u00eb {owner}", step, state) for owner, step, state in rows_of(seed, 200, 30)]
        spelt = [lambda name: name, str.upper, lambda name: unicodedata.normalize("NFD", name) + " "]
        given = [(spelt[source.integers(3)](name).encode(), step, state) for name, step, state in rows]
        given += [("zo\u0378".encode(), step, 0) for step in range(4)]
        given = [given[k] for k in source.permutation(len(given))]
        for spelling, expected in (("same", rows), ("exact", [row for row in given if row[0] != "zo\u0378".encode()])):
            batches = list(batches_of(given, [5, 5, 40], pa.binary()))
            if by_step:
                # As Spark sorts them, behind the keys.
                keyed = pa.Table.from_batches(KeyOwners(spelling)(iter(batches)))
                batches = keyed.sort_by([("owner", "ascending"), ("step", "ascending")]).to_batches(max_chunksize=7)
                found = counted(task_of(caps, by_step=True), batches)
            else:
                found = counted(task_of(caps), batches, spelling)
            same(found, expected_of(expected, caps))

    def test_how_many_packed_rows_there_are_and_how_long_they_are_says_nothing_of_states(self):
        """Spark would show it. There are as many for few rows, and for rows that count nowhere."""
        source = np.random.default_rng(1)
        owner, step = source.integers(0, 300, 5000), source.integers(0, 50, 5000)
        shapes = []
        for state in (np.zeros(5000, dtype=np.int64), source.integers(-3, 2**40, 5000)):
            batch = pa.RecordBatch.from_arrays([*map(pa.array, (owner, step, state))], ["owner", "step", "state"])
            (packed,) = PackRows(task_of(RecordBounds(9)))(iter([batch]))
            lengths = {name: [len(cell.as_py()) for cell in packed.column(name)] for name in ("key", "step", "state")}
            assert lengths["key"] == lengths["step"] == lengths["state"]
            assert sum(lengths["key"]) == 8 * 5000 and sum(map(bool, lengths["key"])) > 200
            shapes.append((packed.schema, len(packed), packed.nbytes, lengths))
        assert shapes[0] == shapes[1]
        for rows in ([(None, 1, 1)], [(1, 1, 1)]):
            (few,) = PackRows(task_of(RecordBounds(9)))(batches_of(rows))
            assert few.column("bucket").to_pylist() == list(range(1024)) == packed.column("bucket").to_pylist()

    def test_bytes_of_cells_do_not_tell_which_rows_came_together(self):
        """Spark fills each of them up to eight bytes, and adds up how long they are."""
        rows = [(b"n" * length, step, step % N) for length in range(1, 20) for step in range(9)]
        sums = set()
        for count in (1, 2, 5):
            several = [batches_of(rows[k::count], (), pa.binary()) for k in range(count)]
            cells = [
                cell for own in several for packed in PackRows(task_of(RecordBounds(9)))(own) for cell in packed["name"]
            ]
            assert [cell for cell in cells if len(cell.as_py()) % 8 != 0] == []
            sums.add(sum(len(cell.as_py()) for cell in cells))
        assert sums == {sum(8 * -(-len(row[0]) // 8) for row in rows)}

    def test_how_often_rows_are_packed_follows_from_how_many_there_are(self, monkeypatch):
        """Spark ends a batch by its bytes, too."""
        monkeypatch.setattr(tasks, "_PACKED_TOGETHER", 7)
        rows = rows_of(1)
        for parts in ([], range(1, len(rows)), [1], [3, 20, 21, 59]):
            made = list(PackRows(task_of(RecordBounds(9)))(batches_of(rows, parts)))
            came = [sum(batch["left_out"].to_pylist()) + sum(map(len, batch["key"].to_pylist())) // 8 for batch in made]
            assert came == [7] * 8 + [4]

    @pytest.mark.parametrize("by_step", [False, True])
    def test_names_of_states(self, by_step):
        """Of one step the state of the least number counts, not the least name; "3.0" is the state "3"."""
        rows, caps = rows_of(5), RecordBounds(3, 2)
        names = [str(N - z) for z in range(N)]
        written = [[f"{name}.0".encode(), name.encode()] for name in names]
        given = sorted((owner, step, written[z][owner % 2] if 0 <= z < N else b"\xff") for owner, step, z in rows)
        for parts in ([], [7, 30]):
            task = task_of(caps, states=ByName(tuple(names)), by_step=by_step)
            same(counted(task, batches_of(given, parts, state=pa.binary())), expected_of(rows, caps))

    @pytest.mark.parametrize("by_step", [False, True])
    def test_rows_of_nobody_and_at_no_step_count_nowhere(self, by_step):
        rows = [(None, 1, 0), (None, 2, 1), (3, None, 1), (3, 1, 0), (3, 2, 1), (3, 3, None)]
        for parts in ([], [1], [3], [2]):
            found = counted(task_of(RecordBounds(9), by_step=by_step), batches_of(rows, parts))
            assert found.transitions.toarray().tolist()[0] == [0, 1, 0, 0] and found.transitions.sum() == 1
            assert (found.n_owners, found.left_out) == (1, 4)

    def test_no_batch_and_empty_batches(self):
        for batches in ([], list(batches_of([])), list(batches_of([(None, 1, 1)]))):
            assert given_back(task_of(RecordBounds(9)), iter(batches)).keys() <= {N * N + N + 1}

    @pytest.mark.parametrize(
        "rows", [[(2, 1, 0), (1, 1, 0)], [(1, 2, 0), (1, 1, 0)], [(1, 1, 0), (2, 1, 0), (1, 2, 0)]]
    )
    def test_rows_out_of_order_are_refused_and_not_shown(self, rows):
        for parts in ([], [1], [2]):
            with pytest.raises(ValueError, match=r"^rows are out of order: sort them by owner and step$"):
                given_back(task_of(RecordBounds(9), by_step=True), batches_of(rows, parts[: len(rows) - 1]))

    @pytest.mark.parametrize("size", [1, 5])
    def test_buckets_out_of_order_are_refused(self, size):
        """Else an owner whose bucket comes twice would be two, with caps of their own."""
        task = task_of(RecordBounds(9))
        packed = brought(task, batches_of([(1, 1, 0), (2, 1, 0), (1, 2, 0)]))
        rows = [batch.slice(k, 1) for batch in packed for k in range(len(batch)) if len(batch.column("key")[k].as_py())]
        assert len(rows) == 2
        turned = pa.Table.from_batches([rows[0], rows[1], rows[0]]).combine_chunks().to_batches(max_chunksize=size)
        with pytest.raises(ValueError, match=r"^rows are out of order"):
            list(task(iter(turned)))

    def test_an_order_that_calls_other_bytes_equal_is_refused(self):
        """As a collation does: else "a", "A", "a" would be three owners."""
        rows = [(b"a", 1, 0), (b"A", 2, 1), (b"a", 3, 1)]
        with pytest.raises(ValueError, match="out of order"):
            given_back(task_of(RecordBounds(2), by_step=True), batches_of(rows, (), pa.binary()))

    @pytest.mark.parametrize("parts", [[], [1], [2], [1, 2]])
    def test_two_owners_of_one_hash_are_not_put_in_order_here(self, monkeypatch, parts):
        """Somebody may choose a name with the hash of another: mixed rows would be many owners, each with its caps."""
        monkeypatch.setattr(tasks, "hash_of_key", lambda key: 7)
        rows = [(b"a", 1, 0), (b"b", 2, 1), (b"a", 3, 1)]
        assert given_back(task_of(RecordBounds(2)), batches_of(rows, parts, pa.binary())) is None
        together = counted(task_of(RecordBounds(2), by_step=True), batches_of(sorted(rows), parts, pa.binary()))
        assert together.n_owners == 2

    @pytest.mark.parametrize("parts", [[], [3], range(1, 12)])
    def test_an_owner_of_too_many_rows_is_not_put_in_order_here(self, monkeypatch, parts):
        monkeypatch.setattr(tasks, "MOST_HELD", 9)
        monkeypatch.setattr(tasks, "_SORTED_TOGETHER", 0)
        many = [(7, step % 5, 0) for step in range(12)]
        assert given_back(task_of(RecordBounds(9)), batches_of(many, parts)) is None
        few = [(owner, step, 1) for owner in range(5) for step in range(9)]
        assert counted(task_of(RecordBounds(9)), batches_of(few, [4, 20])).transitions.sum() == 5 * 8

    def test_steps_without_room_for_one_number(self):
        far = 2**53
        rows = [(owner, step, owner % 3) for owner in range(300) for step in (far, -far, far - 1, 1 - far)]
        found = counted(task_of(RecordBounds(9, 9)), batches_of(rows))
        assert found.transitions.toarray().diagonal().tolist() == [200, 200, 200, 0]

    def test_what_a_worker_has_loaded_is_left_out_of_garbage_collection_once(self, monkeypatch):
        """In Spark's workers alone, and not before a task has loaded what it needs."""
        done = []
        monkeypatch.setattr(gc, "collect", lambda: done.append("collect"))
        monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
        monkeypatch.setattr(tasks, "_kept", False)
        monkeypatch.delitem(sys.modules, "pyspark.worker", raising=False)
        task = WithoutValues(lambda batches: (done.append(batch) or batch for batch in batches))
        assert list(task(iter("a"))) == ["a"] == done
        monkeypatch.setitem(sys.modules, "pyspark.worker", sys)
        assert list(task(iter("b"))) == ["b"] and list(task(iter("c"))) == ["c"]
        assert done == ["a", "b", "collect", "freeze", "c"]

    @pytest.mark.parametrize("by_step", [False, True])
    def test_one_owner_with_all_rows_needs_no_more_memory_than_a_few_batches(self, monkeypatch, by_step):
        """Fault 70."""
        for most in ("MOST_HELD", "_PACKED_TOGETHER", "_SORTED_TOGETHER"):
            monkeypatch.setattr(tasks, most, 50_000)

        def peak(n_batches):
            def batches():
                for k in range(n_batches):
                    step = np.arange(10_000) + 10_000 * k
                    columns = [pa.array(np.full(10_000, 7)), pa.array(step), pa.array(step % N)]
                    yield pa.RecordBatch.from_arrays(columns, ["owner", "step", "state"])

            task = task_of(RecordBounds(50, 2), by_step=by_step)
            # One owner is in one bucket.
            packed = (
                batch.filter(pc.greater(pc.binary_length(batch["key"]), 0)) for batch in PackRows(task)(batches())
            )
            brought = batches() if by_step else packed
            before = pa.total_allocated_bytes()
            tracemalloc.start()
            rows = list(task.parts.read(task(brought)))
            highest = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert [again for _, again, _, _ in rows] == [not by_step]
            assert not by_step or sum(totals[keys < N * N].sum() for _, _, keys, totals in rows) == 49
            return highest + pa.total_allocated_bytes() - before

        least = peak(20)
        assert peak(300) < 1.1 * least + 200_000


PLAIN = {"user": "StringType", "step": "LongType", "state": "StringType"}


@pytest.mark.parametrize(
    ("types", "options", "told"),
    [
        ({"step": "LongType", "state": "LongType"}, {}, "columns: got step, state; expected a column user"),
        ({**PLAIN, "user": "DoubleType"}, {}, "column user: got DoubleType"),
        ({**PLAIN, "step": "StringType"}, {}, "column step: got StringType"),
        ({**PLAIN, "state": "DoubleType"}, {}, "column state: got DoubleType"),
        ({**PLAIN, "t": "StringType"}, {}, "column t: got StringType"),
        (PLAIN, {"columns": {"who": "user"}}, "columns: got who; expected a role"),
        (PLAIN, {"columns": {"user": "name"}}, "columns['user']: got name"),
        (PLAIN, {"max_length": 0}, "max_length: got 0"),
        (PLAIN, {"max_sequences": 0}, "max_sequences: got 0"),
        (PLAIN, {"shortest": 3}, "shortest: got 3"),
        (PLAIN, {"shortest": True}, "shortest: got True"),
    ],
)
def test_public_checks_come_before_any_job(types, options, told):
    with pytest.raises(InvalidInput) as error:
        counting.count_transitions(Unread(**types), SPACE, **{"max_length": 5, **options})
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_map_takes_places_where_no_states_are_named():
    grid = Grid.from_bounds(0.0, 0.0, 0.03, 0.03, cell=1000.0)
    places = {"user": "LongType", "step": "IntegerType", "lat": "DoubleType", "lon": "FloatType"}
    roles = FrameColumns.of(Unread(**places), grid, None)
    assert (roles.state, roles.lat, roles.lon, roles.time) == (None, "lat", "lon", None)
    both = Unread(**places, state="LongType", t="TimestampType")
    assert FrameColumns.of(both, grid, None).state is None
    named = FrameColumns.of(both, grid, {"state": "state"})
    assert (named.state, named.lat, named.time) == ("state", None, "t")
    assert FrameColumns.of(both, grid, {"t": "step"}).time == "step"
    with pytest.raises(InvalidInput, match="column state"):
        FrameColumns.of(Unread(**places), SPACE, None)


class Overfull(CountRows):
    """A task that holds next to nothing. Spark's workers import it from here."""

    def __call__(self, batches):
        held = tasks.MOST_HELD, tasks._SORTED_TOGETHER
        tasks.MOST_HELD, tasks._SORTED_TOGETHER = 3, 0
        try:
            yield from super().__call__(batches)
        finally:
            tasks.MOST_HELD, tasks._SORTED_TOGETHER = held


class TestOnSpark:
    """The same on a cluster of one machine."""

    @pytest.fixture
    def framed(self, spark):
        """A frame of rows whose states have names; None stays none."""

        def make(rows, partitions=3):
            cells = [(o, s, (NAMES[z] if 0 <= z < N else "nowhere") if z is not None else None) for o, s, z in rows]
            return spark.createDataFrame(cells, "user long, step long, state string").repartition(partitions)

        return make

    @pytest.mark.parametrize("partitions", [1, 7])
    def test_names_of_states_in_any_order_and_partitions(self, framed, partitions):
        rows, caps = rows_of(1, 90), RecordBounds(3, 2)
        found = counting.count_transitions(framed(rows, partitions), SPACE, max_length=3, max_sequences=2)
        same(found, expected_of(rows, caps))
        assert found.n_owners == len({owner for owner, _, _ in rows})

    SPELT = "IF(step % 2 = 0, CONCAT(' \u00cb', user), CONCAT('e\u0308', user))"

    @pytest.mark.parametrize("owner", ["user", "CAST(user AS STRING)", "CAST(user AS SHORT)", SPELT])
    def test_an_owner_of_very_many_rows_is_put_in_order_by_spark(self, framed, monkeypatch, owner):
        tasks, plainly = [], counting._sums

        def sums(columns, task, spelling):
            few = Overfull(*(getattr(task, name) for name in task.__dataclass_fields__))
            tasks.append(task.by_step)
            return plainly(columns, few, spelling)

        monkeypatch.setattr(counting, "_sums", sums)
        rows = rows_of(2, 90)
        frame = framed(rows).selectExpr(f"{owner} AS user", "step", "state")
        found = counting.count_transitions(frame, SPACE, max_length=3, max_sequences=2)
        same(found, expected_of(rows, RecordBounds(3, 2)))
        assert tasks == [False, True]

    def test_numbers_names_of_owners_and_rows_that_count_nowhere(self, spark):
        rows = [
            ("é", 1, 0),
            ("é", 2, 1),
            ("É", 3, 1),
            (None, 1, 0),
            ("é", None, 2),
            ("é", 3, 9),
            ("", 1, 2),
            ("", 2, 2),
        ]
        frame = spark.createDataFrame(rows, "who string, step int, cell short").repartition(4)
        named = {"user": "who", "state": "cell"}
        found = counting.count_transitions(frame, SPACE, max_length=5, columns=named, spelling="exact")
        assert found.transitions.toarray()[0, 1] == found.transitions.sum() == 1
        assert (found.n_owners, found.left_out) == (2, 5)
        assert found.starts.tolist() == [1, 0, 0, 0]

    def test_of_one_step_the_latest_row_counts(self, spark):
        rows = [(1, 1, 5, "gym"), (1, 1, 9, "work"), (1, 1, 7, "home"), (1, 2, 10, "home"), (1, 2, 10, "café")]
        rows.append((1, 2, None, "gym"))
        for time in ("t", "timestamp_seconds(t)", "date_from_unix_date(CAST(t AS INT))", "CAST(t AS INT)"):
            frame = spark.createDataFrame(rows, "user long, step long, t long, state string")
            frame = frame.selectExpr("user", "step", "state", f"{time} AS t").repartition(3)
            found = counting.count_transitions(frame, SPACE, max_length=5)
            assert found.transitions.toarray()[1, 0] == found.transitions.sum() == 1

    def test_places_on_a_map(self, spark):
        grid = Grid.from_bounds(0.0, 0.0, 0.03, 0.03, cell=1000.0)
        lat, lon = np.array([0.001, 0.012, 0.02, 45.0, 0.001]), np.array([0.001, 0.012, 0.02, 9.0, 0.02])
        rows = [(1, k, float(a), float(b)) for k, (a, b) in enumerate(zip(lat, lon, strict=True))]
        frame = spark.createDataFrame(
            [*rows, (1, 9, float("nan"), 0.0)], "user long, step long, lat double, lon double"
        )
        found = counting.count_transitions(frame, grid, max_length=9)
        states = grid.locate(lat, lon)
        assert states[3] == -1 and found.left_out == 2
        assert found.transitions.toarray()[states[:2], states[1:3]].tolist() == [1, 1]
        assert found.transitions.sum() == 2

    def test_a_collation_makes_nobody_two_owners_in_turn(self, spark):
        """Under it "a" and "A" are equal, and where names are exact their rows would be mixed."""
        rows = [(name, step, 0) for step, name in enumerate("aAaAaAaA")]
        frame = spark.createDataFrame(rows, "user string, step long, state long")
        mixed = frame.selectExpr("user COLLATE UTF8_LCASE AS user", "step", "state")
        found = counting.count_transitions(mixed, SPACE, max_length=2, shortest=1, spelling="exact")
        assert (found.n_owners, found.starts.sum()) == (2, 2)

    def test_fault_66_a_map_task_that_runs_again_in_another_order(self, spark, tmp_path):
        """Its rows come in another order whenever it runs; the counts stay."""
        rows, marker = rows_of(5, 400, 12), tmp_path / "runs"

        def shuffled(batches):
            with marker.open("a") as file:
                file.write("x")
            runs = marker.stat().st_size
            for batch in batches:
                order = np.random.default_rng(runs).permutation(len(batch))
                yield batch.take(pa.array(order))

        plain = spark.createDataFrame(rows, "user long, step long, state long").repartition(3)
        whole = counting.count_transitions(plain, SPACE, max_length=4, max_sequences=2)
        same(whole, expected_of(rows, RecordBounds(4, 2)))
        again = plain.mapInArrow(shuffled, plain.schema)
        for _ in range(3):
            found = counting.count_transitions(again, SPACE, max_length=4, max_sequences=2)
            same(found, whole)
        assert len(marker.read_text()) >= 9

    @pytest.mark.parametrize("partitions", [1, 5, 16])
    def test_fault_67_caps_hold_over_all_partitions_of_an_owner(self, spark, partitions):
        rows = [(7, step, step % 2) for step in range(200)] + [(8, 3 * k + j, 2) for k in range(50) for j in range(2)]
        frame = spark.createDataFrame(rows, "user long, step long, state long").repartition(partitions, "step")
        found = counting.count_transitions(frame, SPACE, max_length=5, max_sequences=3)
        assert found.transitions.toarray().tolist() == [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0]]
        assert (found.n_owners, found.starts.tolist()) == (2, [1, 0, 3, 0])

    def test_fault_70_one_owner_with_all_rows(self, spark):
        frame = spark.range(600_000).selectExpr("1L AS user", "id AS step", "id % 4 AS state")
        found = counting.count_transitions(frame, SPACE, max_length=1000, max_sequences=2)
        assert (found.transitions.sum(), found.n_owners, found.starts.sum()) == (999, 1, 1)

    def test_nothing_of_the_rows_is_shown(self, spark, capfd):
        """Canary: state number 2,718,281 of owner 31,415,926, in plans, errors, and what a job prints."""
        rows = [(31415926, step, 2718281) for step in range(4)]
        frame = spark.createDataFrame(rows, "user long, step long, state long")
        frame = spark.createDataFrame(frame.toArrow())
        counts = counting.count_transitions(frame, SPACE, max_length=4)
        assert counts.left_out == 4
        told = [repr(counts), str(counts)]
        task = task_of(RecordBounds(4), by_step=True)
        backwards = frame.selectExpr("user AS owner", "-step AS step", "state").coalesce(1)
        unsorted = backwards.mapInArrow(task, TOTALS)
        with pytest.raises(Exception, match="rows are out of order") as error:
            unsorted.collect()
        told += [str(error.value), repr(error.value)]
        unsorted.explain(True)
        printed = capfd.readouterr()
        for text in [*told, printed.out, printed.err]:
            assert "31415926" not in text and "2718281" not in text, text
