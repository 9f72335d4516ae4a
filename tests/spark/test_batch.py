"""A release on Spark: what `release_many` gives, into a table that is committed once, without the truth anywhere."""

from __future__ import annotations

import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput, LedgerBusy
from dphmm.samplers.keyed import JobKey
from dphmm.storage.release_table import ReleaseTable
from spark.worlds import WORLD, in_order, people, rows

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def release(spark):
    import dphmm.spark

    def run(table, into, epsilon=1, seed=1, **choices):
        key = JobKey.replayed(seed)
        frame = spark.createDataFrame(table).repartition(3)
        return dphmm.spark.release(frame, *WORLD, epsilon, into=into, key=key, **choices)

    return run


#: What is not random: the same whatever was drawn.
FIXED = ["user", "step", "epsilon", "cost", "plan"]
KINDS = {
    "support": {},
    "promise": {"epsilon": None, "promise": dphmm.SequencePromise(6, window=3)},
    "schedule": {"epsilon": None, "schedule": dphmm.Schedule(dphmm.SequencePromise(2, per=5, passed=0), 1, [2, 5])},
    "caps": {"cap_epsilon": 40},
    "no estimates": {"estimates": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_not_random_is_that_of_release_many(release, tmp_path, kind):
    choices = {"epsilon": 1, **KINDS[kind]}
    epsilon = choices.pop("epsilon")
    table = rows(1, people(40), 1, 5)
    expected = dphmm.release_many(table, *WORLD, epsilon, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), **choices)
    found = release(table, tmp_path / "table", epsilon, **choices)
    told = in_order(found.table())
    expected = expected.sort_values(["user", "step"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(told[FIXED], expected[FIXED], check_dtype=False)
    assert list(told.columns) == list(expected.columns)
    assert found.report.released == int(expected["plan"].notna().sum())
    assert found.statement.published.rows == len(expected) and found.statement.published.subjects == 40


def test_a_job_that_goes_on_leaves_stored_rows_and_adds_the_others(release, tmp_path):
    into = tmp_path / "table"
    first = release(rows(1, people(20), 1, 4), into)
    before = in_order(first.table())
    with pytest.raises(InvalidInput, match=r"^ledger: got releases of \d+ of these users already"):
        release(rows(2, people(20), 1, 8), into)
    assert len(ReleaseTable.open(into).committed()) == len({f.partition for f in ReleaseTable.open(into).committed()})
    again = release(rows(2, people(25), 1, 8), into, seed=2, resume=True)
    after = in_order(again.table())
    both = after.merge(before, on=["user", "step"], suffixes=("", "_before"))
    assert len(both) == len(before) and (both["z_0"] == both["z_0_before"]).all()
    assert again.report.replayed + again.report.late > 0
    assert len(after) == len(before) + again.statement.published.rows
    assert after.groupby(["user", "step"]).size().max() == 1


def test_the_same_rows_again_draw_nothing(release, tmp_path):
    table = rows(1, people(10), 1, 4)
    before = in_order(release(table, tmp_path / "table").table())
    again = release(table, tmp_path / "table", seed=2, resume=True)
    assert again.statement is None and again.report.replayed == len(before)
    pd.testing.assert_frame_equal(in_order(again.table()), before)


def test_queries_of_one_table_share_the_accounts(release, tmp_path):
    table = rows(1, people(10), 1, 4, skipped=0)
    release(table, tmp_path / "table", cap_epsilon=6)
    with pytest.raises(BudgetExceeded, match=r"^cap_epsilon: user "):
        release(table, tmp_path / "table", query="again")
    fewer = release(rows(1, people(10), 1, 2, skipped=0), tmp_path / "table", query="again")
    assert len(in_order(fewer.table())) == 20
    assert [type(entry).__name__ for entry in ReleaseTable.open(tmp_path / "table").entries()] == [
        *("Begun", "Committed"),
        *("Begun", "Abandoned"),
        *("Begun", "Committed"),
    ]


def test_one_user_over_a_cap_refuses_the_whole_job(release, tmp_path):
    table = pd.concat([rows(1, people(30), 1, 2), rows(2, ["greedy"], 1, 9, skipped=0)])
    with pytest.raises(BudgetExceeded, match="user 'greedy' needs 9"):
        release(table, tmp_path / "table", cap_epsilon=5)
    found = ReleaseTable.open(tmp_path / "table")
    assert found.committed() == [] and list((tmp_path / "table" / "data").iterdir()) == []


def test_two_jobs_at_once_are_refused(release, tmp_path):
    table = ReleaseTable.open(tmp_path / "table")
    table.begin({}, holder="another", seconds=60)
    with pytest.raises(LedgerBusy, match="'another'"):
        release(rows(1, people(3), 1, 2), table)


def test_without_a_replayed_key_rows_are_secure(spark, tmp_path):
    import dphmm.spark

    frame = spark.createDataFrame(rows(1, people(3), 1, 2))
    found = dphmm.spark.release(frame, *WORLD, 1, into=tmp_path / "table", model_people="others")
    assert found.statement.randomness.secure and found.statement.randomness.words == "job key"
    assert found.statement.private is True
    assert dphmm.spark.statements(tmp_path / "table") == [found.statement]
