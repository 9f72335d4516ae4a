"""A task of a release: attempts that nobody can tell apart, refusals as data, and no value of a row in what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.samplers.entropy import JobKey
from dphmm.spark import bucket as bucket_module
from dphmm.spark.bucket import BucketJob, Outcome, ReleaseBuckets, StoredFile
from dphmm.spark.tasks import PlaceUsers
from dphmm.storage.release_table import ReleaseTable
from spark.worlds import WORLD, people, rows

pytestmark = pytest.mark.replayed_words


def job_of(folder: Path, **choices: Any) -> BucketJob:
    """A job on a table in which nothing is committed, as the driver makes it."""
    if not (folder / "log").exists():
        ReleaseTable.open(folder)
    return BucketJob(
        job="0" * 32,
        table=str(folder),
        world=(*WORLD, 1),
        choices=choices,
        spelling="same",
        resume=False,
        history={},
        versions=bucket_module.versions(),
    )


def answers(folder: Path, outcome: Outcome) -> pd.DataFrame:
    assert outcome.file is not None
    return pq.read_table(folder / "data" / outcome.file.name).to_pandas()


TEXTS = ["b", "", "a", "ü", "z" * 9, "\x00", "ab", None]
COLUMNS = {
    "user": lambda source: TEXTS[source.integers(len(TEXTS))],
    "t": lambda source: int(source.integers(-3, 4)),
    "step": lambda source: int(source.integers(-3, 4)) * 2**60,
    "lat": lambda source: float(source.integers(-2, 3)) / 3,
    "state": lambda source: int(source.integers(5)) or None,
}
TYPES = {"user": pa.string(), "t": pa.timestamp("us", "UTC"), "step": pa.int64(), "lat": pa.float64()}


@pytest.mark.parametrize("names", ["user step state", "user t state", "user t step lat", "user step user_name"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_put_in_the_order_of_all_their_columns(names, seed):
    """Of text by its bytes, of numbers as they are; what is missing comes last."""
    source, chosen = np.random.default_rng(seed), [name if name in COLUMNS else "user" for name in names.split()]
    cells = [[COLUMNS[name](source) for _ in range(9 if seed else 300)] for name in chosen]
    arrays = [pa.array(own, TYPES.get(name, pa.int64())) for own, name in zip(cells, chosen, strict=True)]
    table = pa.table(dict(zip(names.split(), arrays, strict=True)))
    expected = table.sort_by([(name, "ascending") for name in table.column_names])
    parts = pa.concat_tables([table.slice(0, 4), table.slice(4)])
    for given in (table, parts, table.take(source.permutation(len(table)))):
        assert bucket_module.in_order(given).equals(expected)


class TestAttempts:
    """A task that is run again, without Spark: attempts differ in nothing that is seen."""

    def test_rows_in_any_order_and_any_cut_give_the_same_file(self, tmp_path):
        table = pa.Table.from_pandas(rows(1, people(8), 1, 6), preserve_index=False)
        outcomes = []
        for seed in range(4):
            order = np.random.default_rng(seed).permutation(len(table))
            shuffled = table.take(order)
            outcomes.append(job_of(tmp_path).run(JobKey.replayed(1), 3, shuffled))
        files = [(tmp_path / "data" / outcome.file.name).read_bytes() for outcome in outcomes]
        assert len(set(files)) == 1 and len({outcome.tag for outcome in outcomes}) == 1
        assert len({outcome.file.name for outcome in outcomes}) == 4

    def test_several_rows_of_one_time_are_put_in_an_order_of_their_own(self, tmp_path):
        times = pd.to_datetime(["2026-01-01T00:00Z"] * 3)
        table = pa.table({"user": ["ann"] * 3, "t": times, "state": ["a", "c", "e"]})
        found = [
            answers(tmp_path, job_of(tmp_path).run(JobKey.replayed(1), 0, table.take(order)))
            for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0])
        ]
        for other in found[1:]:
            pd.testing.assert_frame_equal(found[0], other)

    @pytest.mark.parametrize("changed", ["state", "user", "step"])
    def test_other_rows_draw_other_words_under_another_tag(self, tmp_path, changed):
        table = rows(1, people(8), 1, 6, skipped=0)
        other = table.copy()
        other.loc[0, changed] = {"state": "f" if table.loc[0, "state"] != "f" else "a", "user": "eve", "step": 99}[
            changed
        ]
        outcomes = [
            job_of(tmp_path).run(JobKey.replayed(1), 0, pa.Table.from_pandas(one, preserve_index=False))
            for one in (table, other)
        ]
        assert outcomes[0].tag != outcomes[1].tag
        own, others = (answers(tmp_path, outcome) for outcome in outcomes)
        both = own.merge(others, on=["user", "step"])
        # Of 40 and more answers with noise, all would be equal under the same words.
        assert len(both) > 40 and (both["z_0_x"] != both["z_0_y"]).mean() > 0.2

    @pytest.mark.parametrize("other", ["job", "bucket", "query", "history", "versions"])
    def test_everything_that_a_draw_depends_on_is_in_its_context(self, tmp_path, other):
        table = pa.Table.from_pandas(rows(1, people(4), 1, 3), preserve_index=False)
        job, number = job_of(tmp_path), 0
        tag = job.run(JobKey.replayed(1), number, table).tag
        if other == "bucket":
            number = 1
        elif other == "query":
            job = job_of(tmp_path, query="another")
        else:
            changes = {"job": "1" * 32, "versions": {**job.versions, "more": "1"}, "history": {}}
            job = BucketJob(**{**vars(job_of(tmp_path)), other: changes[other]})
            if other == "history":
                stored = job_of(tmp_path).run(
                    JobKey.replayed(1), 0, pa.table({"user": ["zoe"], "step": [1], "state": ["a"]})
                )
                job = BucketJob(**{**vars(job), "history": {0: [bucket_module.StoredFile("state", stored.file)]}})
        original = bucket_module.versions
        try:
            bucket_module.versions = lambda: dict(job.versions)  # what the executor is, too
            assert job.run(JobKey.replayed(1), number, table).tag != tag
        finally:
            bucket_module.versions = original

    def test_the_tag_is_there_before_anything_is_drawn(self, tmp_path, monkeypatch):
        seen = []

        def look(self, batch, number, tag, visits):
            seen.append(sorted(path.name for path in (tmp_path / "attempts").iterdir()))
            raise MemoryError

        monkeypatch.setattr(BucketJob, "_draw", look)
        table = pa.table({"user": ["ann"], "step": [1], "state": ["a"]})
        with pytest.raises(MemoryError):
            job_of(tmp_path).run(JobKey.replayed(1), 5, table)
        (names,) = seen
        assert len(names) == 1 and names[0].startswith(f"{'0' * 32}-00005-")

    def test_another_version_is_refused_before_it_draws(self, tmp_path):
        job = BucketJob(**{**vars(job_of(tmp_path)), "versions": {**bucket_module.versions(), "numba": "0.1"}})
        outcome = job.run(JobKey.replayed(1), 0, pa.table({"user": ["ann"], "step": [1], "state": ["a"]}))
        assert not outcome.drew and outcome.file is None
        assert re.fullmatch(
            r"spark: got numba [\d.]+ on an executor; expected numba 0\.1 on all .*", outcome.refused.message
        )
        assert list((tmp_path / "attempts").iterdir()) == []

    def test_what_a_task_pickles_has_no_plans_and_what_it_prints_no_key(self, tmp_path):
        job = job_of(tmp_path)
        assert job.batch is job.batch
        assert "batch" not in job.__getstate__()
        key = JobKey.replayed(1)
        assert repr(ReleaseBuckets(None, key)) == "ReleaseBuckets(job=None, key=JobKey(...))"


class TestErrors:
    """What a task says never has a value of a row in it."""

    def test_an_unexpected_error_is_told_by_its_kind_and_place_alone(self, tmp_path, monkeypatch):
        def broken(self, *_):
            raise ValueError("the state of ann is a")

        monkeypatch.setattr(BucketJob, "run", broken)
        held = type("Held", (), {"value": job_of(tmp_path)})()
        batch = pa.record_batch({"user": ["ann"], "step": [1], "state": ["a"], "bucket": pa.array([0], pa.int32())})
        with pytest.raises(RuntimeError) as raised:
            list(ReleaseBuckets(held, JobKey.replayed(1))([batch]))
        assert re.fullmatch(r"ValueError at test_bucket\.py:\d+; nothing of this task is shown", str(raised.value))
        assert raised.value.__cause__ is None and raised.value.__suppress_context__

    def test_rows_of_two_buckets_in_one_task_are_refused(self, tmp_path):
        held = type("Held", (), {"value": job_of(tmp_path)})()
        batch = pa.record_batch(
            {"user": ["ann", "bob"], "step": [1, 1], "state": ["a", "b"], "bucket": pa.array([0, 1], pa.int32())}
        )
        with pytest.raises(RuntimeError, match="several buckets"):
            list(ReleaseBuckets(held, JobKey.replayed(1))([batch]))

    @pytest.mark.parametrize(
        ("column", "value"), [("user", None), ("step", None), ("state", "\a"), ("state", "nowhere at all")]
    )
    def test_rows_that_cannot_be_read_refuse_the_job_by_their_number(self, tmp_path, column, value):
        table = {"user": ["ann", "bob"], "step": [1, 1], "state": ["a", "b"]}
        table[column] = [table[column][0], value]
        outcome = job_of(tmp_path).run(JobKey.replayed(1), 0, pa.table(table))
        assert not outcome.drew or value == "nowhere at all"
        if outcome.refused is not None:
            assert "nowhere" not in outcome.refused.message and "bob" not in outcome.refused.message


class TestRefusals:
    """What refuses rows before anything is drawn refuses the job; what comes later keeps what was drawn."""

    def test_a_cap_that_a_user_would_pass_is_refused_before_the_tag(self, tmp_path):
        table = pa.Table.from_pandas(rows(1, people(3), 1, 6, skipped=0), preserve_index=False)
        outcome = job_of(tmp_path, cap_epsilon=5).run(JobKey.replayed(1), 0, table)
        assert outcome.refused.kind == "BudgetExceeded" and not outcome.drew and outcome.file is None
        assert list((tmp_path / "attempts").iterdir()) == []

    def test_what_was_drawn_before_a_refusal_is_in_the_file(self, tmp_path):
        """Costs of delta-sets depend on answers: a cap on them is met while rows are drawn."""
        table = pa.Table.from_pandas(rows(1, people(3), 1, 12, skipped=0), preserve_index=False)
        job = job_of(tmp_path, constraint=dphmm.policy.DeltaSet(0.02), cap_cost=10)
        outcome = job.run(JobKey.replayed(1), 0, table)
        assert outcome.refused.kind == "BudgetExceeded" and outcome.drew
        found = answers(tmp_path, outcome)
        assert 0 < len(found) < 36 and outcome.counted.rows == len(found)
        again = job.run(JobKey.replayed(1), 0, table)
        assert (tmp_path / "data" / again.file.name).read_bytes() == (
            tmp_path / "data" / outcome.file.name
        ).read_bytes()


@pytest.mark.parametrize("buckets", [1, 7, 10**5])
def test_spellings_of_a_name_are_placed_in_one_bucket(buckets):
    """Where names are exact, in several; rows of nobody are in the first one."""
    names = ["Zo\u00eb", "zoe\u0308", " ZO\u00cb", "zo\u200b\u00eb", "ann", None, "a\u0378"]
    batch = pa.record_batch({"user": pa.array(names), "step": pa.array(range(7))})
    placed = {
        rule: next(PlaceUsers(buckets, rule)(iter([batch]))).column("bucket").to_pylist() for rule in ("same", "exact")
    }
    assert len(set(placed["same"][:4])) == 1 and placed["same"][5:] == [0, 0] == placed["exact"][5:]
    assert placed["same"][4] == placed["exact"][4] and all(0 <= place < buckets for place in placed["exact"])
    if buckets == 10**5:
        assert placed["same"][0] != placed["same"][4] and len(set(placed["exact"][:4])) == 4


class TestHistory:
    """A job after others plans from what they committed, and writes what is new."""

    def test_stored_rows_are_not_written_again_and_later_ones_go_on(self, tmp_path):
        table = rows(1, people(3), 1, 6, skipped=0)
        early = table[table["step"] <= 3]
        first = job_of(tmp_path).run(JobKey.replayed(1), 0, pa.Table.from_pandas(early, preserve_index=False))
        job = BucketJob(**{**vars(job_of(tmp_path)), "resume": True, "history": {0: [StoredFile("state", first.file)]}})
        again = job.run(JobKey.replayed(2), 0, pa.Table.from_pandas(table, preserve_index=False))
        found = answers(tmp_path, again)
        assert sorted(zip(found["user"], found["step"], strict=True)) == [
            (user, step) for user in people(3) for step in (4, 5, 6)
        ]
        assert found["ledger_session"].isna().all()
        assert again.counts["replayed"] == 9 and again.counted.rows == 9

    def test_a_person_goes_on_under_the_name_that_was_committed(self, tmp_path):
        table = rows(1, ["Zo\u00eb"], 1, 6, skipped=0)
        early, later = table[table["step"] <= 3], table.assign(user="zoe\u0308 ")
        first = job_of(tmp_path).run(JobKey.replayed(1), 0, pa.Table.from_pandas(early, preserve_index=False))
        job = BucketJob(**{**vars(job_of(tmp_path)), "resume": True, "history": {0: [StoredFile("state", first.file)]}})
        again = job.run(JobKey.replayed(2), 0, pa.Table.from_pandas(later, preserve_index=False))
        found = answers(tmp_path, again).sort_values("step")
        assert (found["user"].tolist(), found["step"].tolist()) == (["Zo\u00eb"] * 3, [4, 5, 6])
        assert again.counts["replayed"] == 3 and found["ledger_session"].isna().all()
        refused = replace(job, resume=False)
        told = refused.run(JobKey.replayed(3), 0, pa.Table.from_pandas(later, preserve_index=False)).refused
        assert told.message.startswith("ledger: got releases of 1 of these users already")

    def test_a_file_that_is_not_as_the_log_says_refuses_the_job(self, tmp_path):
        table = pa.Table.from_pandas(rows(1, people(3), 1, 3), preserve_index=False)
        stored = job_of(tmp_path).run(JobKey.replayed(1), 0, table)
        path = tmp_path / "data" / stored.file.name
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        job = BucketJob(**{**vars(job_of(tmp_path)), "history": {0: [StoredFile("state", stored.file)]}})
        outcome = job.run(JobKey.replayed(2), 0, table)
        assert outcome.refused.message.startswith("files: got ") and not outcome.drew
