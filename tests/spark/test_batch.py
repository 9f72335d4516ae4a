"""A release on Spark: what `release_many` gives, into a table that is committed once, without the truth anywhere."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.person import UNICODE, person_key
from dphmm.errors import BudgetExceeded, InvalidInput, LedgerBusy
from dphmm.samplers.entropy import JobKey
from dphmm.spark.bucket import Outcome
from dphmm.spark.tasks import hash_of_key
from dphmm.storage.commit_log import Committed
from dphmm.storage.release_table import ReleaseTable
from dphmm.storage.table_ledger import opened_to_read
from spark.worlds import MODEL, SPACE, WORLD, N, in_order, people, rows

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
    "schedule": {
        "epsilon": None,
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=5, passed=0), 1, [2, 5]),
    },
    "staggered": {
        "epsilon": None,
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=5, passed=0), 1, [1, 4], seed="spring"),
    },
    "caps": {"cap_epsilon": 40},
}


# A schedule leaves some people without an answer, and says so.
@pytest.mark.filterwarnings("ignore:.* people have no answer:UserWarning")
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


def test_a_model_is_learned_of_a_table_in_any_order(release, tmp_path):
    """Of people who stay, whom the public model lets move: sums are in one order, whatever Spark's is."""
    stay = pd.DataFrame([(f"user {n}", t, "abcdef"[n % N]) for n in range(30) for t in range(1, 11)])
    found = release(stay.set_axis(["user", "step", "state"], axis=1), tmp_path / "table", 4)
    one, other = (
        dphmm.reconstruction.learn(table.toPandas(), *WORLD, progress=False)
        for table in (found.table(), found.table().repartition(7, "step"))
    )
    assert one.family != "public" and one.model.matrix.diagonal().min() > 0.7
    assert other.model.digest == one.model.digest and other.model.provenance == one.model.provenance


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


def test_fault_47_a_result_used_twice_kept_and_lost_has_one_answer(release, tmp_path):
    """What is evaluated again reads committed files, and draws nothing."""
    found = release(rows(1, people(20), 1, 4), tmp_path / "table")
    files = sorted(path.name for path in (tmp_path / "table" / "data").iterdir())
    table = found.table()
    before = in_order(table)
    kept = table.repartition(4, "user").persist()
    pd.testing.assert_frame_equal(in_order(kept), before)
    kept.unpersist(blocking=True)
    for again in (kept, table, found.table()):
        pd.testing.assert_frame_equal(in_order(again), before)
    assert sorted(path.name for path in (tmp_path / "table" / "data").iterdir()) == files
    assert len(ReleaseTable.open(tmp_path / "table").entries()) == 2


def test_fault_51_a_user_with_many_rows_beside_many_with_one(release, tmp_path):
    many = rows(1, ["busy"], 1, 2000, skipped=0)
    table = pd.concat([many, rows(2, people(2000), 1, 1)]).sample(frac=1, random_state=3)
    expected = dphmm.release_many(table, *WORLD, 1, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1))
    told = in_order(release(table, tmp_path / "table").table())
    expected = expected.sort_values(["user", "step"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(told[FIXED], expected[FIXED], check_dtype=False)


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
    with pytest.raises(BudgetExceeded, match=r"user .greedy. needs 9"):
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


class FakeTurn:
    """A turn whose attempts left these tags."""

    def __init__(self, tags):
        self._tags = tags

    def tags(self):
        return self._tags


@pytest.mark.parametrize(
    ("tags", "sound"),
    [
        ({0: {"aa"}, 1: {"bb"}}, True),
        ({0: {"aa", "cc"}, 1: {"bb"}}, False),
        ({0: {"aa"}, 1: {"cc"}}, False),
        ({0: {"aa"}}, False),
        ({0: {"aa"}, 1: {"bb"}, 2: {"cc"}}, False),
    ],
    ids=["one each", "an attempt that never ended", "another tag", "none", "a bucket that gave no result"],
)
def test_a_job_is_committed_only_where_every_bucket_has_one_tag(tags, sound):
    from dphmm.spark.batch import _require_one_context

    outcomes = [Outcome(0, tag="aa"), Outcome(1, tag="bb"), Outcome(3)]
    if sound:
        _require_one_context(FakeTurn(tags), outcomes)
    else:
        with pytest.raises(InvalidInput, match=r"^frame: got other rows at another attempt; nothing was committed"):
            _require_one_context(FakeTurn(tags), outcomes)


def test_places_and_times_are_read_as_release_many_reads_them(spark, tmp_path):
    import dphmm.spark

    space = dphmm.Grid.from_bounds(2.0, 48.0, 2.05, 48.04, cell=1000)
    model = dphmm.MarkovModel.from_geometry(space, "10min", "60km/h")
    policy = dphmm.policy.radius(space, 1500)
    random = np.random.default_rng(3)
    times = pd.Timestamp("2026-03-01T00:00Z") + pd.to_timedelta(random.integers(0, 6 * 3600, 120), unit="s")
    table = pd.DataFrame(
        {
            "person": [f"p{number % 7}" for number in range(120)],
            "at": times,
            "lat": random.uniform(48.0, 48.04, 120),
            "lon": random.uniform(2.0, 2.05, 120),
        }
    )
    plain = table.rename(columns={"person": "user", "at": "t"})
    expected = dphmm.release_many(
        plain, model, policy, space, 1, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), progress=False
    )
    found = dphmm.spark.release(
        spark.createDataFrame(table),
        *(model, policy, space, 1),
        into=tmp_path / "table",
        columns={"user": "person", "t": "at"},
        key=JobKey.replayed(1),
        buckets=3,
    )
    told = in_order(found.table())
    expected = expected.sort_values(["user", "step"]).reset_index(drop=True)
    assert list(told.columns) == list(expected.columns)
    assert told["user"].tolist() == expected["user"].tolist() and told["plan"].tolist() == expected["plan"].tolist()
    zone = told["t"].dt.tz_localize(spark.conf.get("spark.sql.session.timeZone")).dt.tz_convert("UTC")
    assert (zone.to_numpy() == expected["t"].to_numpy()).all()


def test_labels_are_released_as_names(spark, tmp_path):
    import dphmm.spark

    space = dphmm.StateSpace.labels(list("abcdef"))
    policy = dphmm.policy.complete(N)
    table = rows(1, people(12), 1, 4)
    expected = dphmm.release_many(
        table, MODEL, policy, space, 1, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), progress=False
    )
    frame = spark.createDataFrame(table)
    found = dphmm.spark.release(
        *(frame, MODEL, policy, space, 1), into=tmp_path / "table", key=JobKey.replayed(1), buckets=3
    )
    told = in_order(found.table())
    assert list(told.columns) == list(expected.columns) and set(told["z"]) <= set("abcdef")
    again = dphmm.spark.release(
        *(frame, MODEL, policy, space, 1), into=tmp_path / "table", key=JobKey.replayed(2), resume=True
    )
    assert again.statement is None and again.report.replayed == len(table)


def test_a_user_is_in_one_bucket_whatever_its_column_is_like(spark, tmp_path):
    """In another bucket nothing of its history is known, and a second answer would be drawn."""
    from pyspark.sql import functions

    import dphmm.spark

    table = rows(1, [str(number) for number in range(20)], 1, 2)
    frames = [
        spark.createDataFrame(table),
        spark.createDataFrame(table).withColumn("user", functions.collate("user", "UTF8_LCASE")),
        spark.createDataFrame(table.assign(user=table["user"].astype(int))),
    ]
    for number, frame in enumerate(frames):
        found = dphmm.spark.release(frame, *WORLD, 1, into=tmp_path / "table", resume=True, key=JobKey.replayed(number))
        assert found.report.replayed == (len(table) if number else 0)
    assert found.table().count() == len(table)


def spelt(table, seed):
    """The same rows, with names in spellings that each row draws."""
    source, spellings = np.random.default_rng(seed), [str, str.upper, " {} ".format, "\u200b{}".format]
    return table.assign(user=[spellings[source.integers(4)](name) for name in table["user"]])


def test_spellings_of_a_name_meet_in_one_bucket_and_share_one_account(release, tmp_path):
    """In one frame and in two jobs: rows are those of the same table under one spelling, and so are the numbers."""
    table, later = rows(1, people(40), 1, 5), rows(2, people(40), 6, 8, skipped=0)
    expected = [release(table, tmp_path / "one"), release(later, tmp_path / "one", seed=2, resume=True)]
    found = [
        release(spelt(table, 3), tmp_path / "two"),
        release(spelt(later, 4), tmp_path / "two", seed=2, resume=True),
    ]
    for one, other in zip(expected, found, strict=True):
        assert other.report == one.report
        assert other.statement.totals == one.statement.totals
        assert other.statement.published == one.statement.published
    one, other = (jobs[-1].table().toPandas() for jobs in (expected, found))
    assert other["user"].nunique() == 40
    one, other = (own.assign(user=own["user"].map(person_key)).sort_values(["user", "step"]) for own in (one, other))
    pd.testing.assert_frame_equal(one[FIXED].reset_index(drop=True), other[FIXED].reset_index(drop=True))
    with opened_to_read(tmp_path / "two") as ledger:
        assert len(ledger.sessions()) == 40


def test_exact_names_are_several_people(release, tmp_path):
    table = pd.DataFrame({"user": ["Ann", "ann"] * 2, "step": [1, 1, 2, 2], "state": list("abab")})
    found = release(table, tmp_path / "table", spelling="exact")
    assert (found.statement.published.subjects, found.statement.published.rows) == (2, 4)
    with opened_to_read(tmp_path / "table") as ledger:
        assert ledger.spelling == "exact" and len(ledger.sessions()) == 2


def test_a_table_keeps_its_rule_of_spelling_and_its_version_of_unicode(release, tmp_path, monkeypatch):
    release(rows(1, people(3), 1, 2), tmp_path / "table", spelling="exact")
    (entry,) = [one for one in ReleaseTable.open(tmp_path / "table").entries() if isinstance(one, Committed)]
    assert (entry.document["spelling"], entry.document["unicode"]) == ("exact", UNICODE)
    with pytest.raises(InvalidInput, match=r"^spelling: got same; expected exact, as the table has"):
        release(rows(1, people(3), 1, 4), tmp_path / "table", spelling="same", resume=True)
    found = release(rows(1, people(3), 1, 4), tmp_path / "table", resume=True)
    assert found.into.entries()[-1].document["spelling"] == "exact"
    monkeypatch.setattr("dphmm.spark.batch.UNICODE", "13.0.0")
    with pytest.raises(
        InvalidInput, match=r"^table: got Unicode 13\.0\.0 of this Python; expected Unicode [0-9.]+ or l"
    ):
        release(rows(1, people(3), 1, 6), tmp_path / "table", resume=True)
    with pytest.raises(InvalidInput, match=r"^spelling: got alike; expected one of same, exact"):
        release(rows(1, people(3), 1, 6), tmp_path / "other", spelling="alike")


def test_the_hash_of_a_key_stays():
    """A table that is stored has its users by it."""
    assert hash_of_key(b"dphmm") == -716202802967985745


def test_a_table_whose_users_are_placed_by_another_hash_is_refused(release, tmp_path, monkeypatch):
    release(rows(1, people(3), 1, 2), tmp_path / "table")
    monkeypatch.setattr("dphmm.spark.batch._HASH", 1)
    with pytest.raises(InvalidInput, match=r"^table: got users in buckets of another kind"):
        release(rows(1, people(3), 1, 4), tmp_path / "table", resume=True)


def test_a_job_that_waited_for_its_turn_sees_what_was_committed_meanwhile(release, tmp_path, monkeypatch):
    table, begin = rows(1, people(12), 1, 3, skipped=0), ReleaseTable.begin

    def late(self, *given, **named):
        monkeypatch.setattr(ReleaseTable, "begin", begin)
        release(table, tmp_path / "table", buckets=2)
        return begin(self, *given, **named)

    monkeypatch.setattr(ReleaseTable, "begin", late)
    found = release(rows(2, people(12), 1, 5, skipped=0), tmp_path / "table", seed=2, resume=True)
    assert found.report.replayed == len(table)
    assert {file.partition for file in ReleaseTable.open(tmp_path / "table").committed()} == {0, 1}
    assert found.table().count() == 60 == in_order(found.table()).groupby(["user", "step"]).ngroups


def test_a_cap_stays(release, tmp_path):
    release(rows(1, people(5), 1, 2, skipped=0), tmp_path / "table", cap_epsilon=2)
    table = rows(1, people(5), 1, 4, skipped=0)
    with pytest.raises(InvalidInput, match=r"cap_epsilon: got 9; expected 2, the cap of .* which stays"):
        release(table, tmp_path / "table", resume=True, cap_epsilon=9)
    with pytest.raises(BudgetExceeded, match="of 2"):
        release(table, tmp_path / "table", resume=True)


def test_rows_in_no_state_are_counted_for_the_owner_alone(release, tmp_path):
    """A column in other capitals releases everybody as one state: the owner must see that, and nobody else may."""
    table = rows(1, people(6), 1, 3, skipped=0)
    table.loc[:3, "state"] = ["nowhere", "A", "B", "c "]
    found = release(table, tmp_path / "table", buckets=3)
    assert found.report.outside == 4
    log = "".join(path.read_text() for path in (tmp_path / "table" / "log").iterdir())
    assert '"subjects"' in log and '"outside"' not in log, "the log has the statement, too"
    assert "outside=" not in repr(found) + repr(found.report) + repr(found.statement)


WRONG = {
    "no user": ({"step": [1], "state": ["a"]}, {}, r"^columns: got step, state; expected a column user,"),
    "no step": ({"user": ["u"], "state": ["a"]}, {}, r"^columns: got user, state; expected a column t or step,"),
    "no state": ({"user": ["u"], "step": [1]}, {}, r"^columns: got user, step; expected a column state or lat,"),
    "a role": ({"user": ["u"], "step": [1], "state": ["a"]}, {"columns": {"who": "user"}}, r"^columns: got who; "),
    "a name": ({"user": ["u"], "step": [1], "state": ["a"]}, {"columns": {"user": "who"}}, r"^columns\['user'\]: got"),
    "a type": ({"user": ["u"], "step": ["1"], "state": ["a"]}, {}, r"^column step: got StringType; expected one of"),
    "no lon": (
        {"user": ["u"], "step": [1], "lat": [0.0]},
        {},
        r"^columns: got user, step, lat; expected both lat and lon,",
    ),
    "buckets": ({"user": ["u"], "step": [1], "state": ["a"]}, {"buckets": 0}, r"^buckets: got 0; "),
    "a ledger": (
        {"user": ["u"], "step": [1], "state": ["a"]},
        {"ledger": None},
        r"^ledger: got NoneType; expected none",
    ),
    "people": (
        {"user": ["u"], "step": [1], "state": ["a"]},
        {"model_people": "nobody"},
        r"^model_people: got nobody",
    ),
    "a choice": ({"user": ["u"], "step": [1], "state": ["a"]}, {"mechanism": "tea"}, r"^mechanism: got tea; "),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_public_errors_come_before_the_table_is_touched(spark, tmp_path, wrong):
    import dphmm.spark

    table, choices, message = WRONG[wrong]
    with pytest.raises(InvalidInput, match=message):
        dphmm.spark.release(spark.createDataFrame(pd.DataFrame(table)), *WORLD, 1, into=tmp_path / "table", **choices)
    assert not (tmp_path / "table").exists() or ReleaseTable.open(tmp_path / "table").entries() == []


def test_rows_that_cannot_be_read_commit_nothing(release, tmp_path):
    """Told of the whole frame and by reason, in whatever buckets they are: some have such rows alone, some none.

    A row without a state is none of them: it is a step without an answer.
    """
    bad = pd.DataFrame(
        {"user": [None, "", "q\n", "n" * 201, *people(2)], "step": [1, 1, 1, 1, 1, None], "state": [*"aaaa", None, "a"]}
    )
    words = r"^frame: got 5 rows that cannot be read \(1 invalid_step, 4 missing_user\); expected in every"
    for number, table in enumerate([pd.concat([rows(1, people(20), 1, 2), bad]), bad]):
        with pytest.raises(InvalidInput, match=words) as refused:
            release(table.astype({"step": "Int64"}), tmp_path / f"table{number}", buckets=12)
        assert "user (text of 1 to 200 printable characters)" in str(refused.value)
        assert ReleaseTable.open(tmp_path / f"table{number}").committed() == []


def test_what_only_reads_makes_no_folder(tmp_path):
    from dphmm.spark import released, statements

    for read in (lambda path: released(None, path), statements):
        with pytest.raises(InvalidInput, match=r"^into: got .*mistyped; expected the folder of a table that"):
            read(tmp_path / "mistyped")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("into", "told"),
    [
        ("none/table", "a folder whose parent exists: .*none does not$"),
        ("file", "got .*file, a file; expected a folder of a release table, or a new name$"),
        ("file:///data/table", "a path of a folder, without file://"),
        ("s3a://bucket/table", "an object store or HDFS needs a Store"),
    ],
)
def test_a_table_that_can_be_nowhere_is_refused_by_its_reason(tmp_path, monkeypatch, into, told):
    from dphmm.spark.batch import _table

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=rf"^into: .*{told}") as refused:
        _table(into)
    assert "\n" not in str(refused.value) and [path.name for path in tmp_path.iterdir()] == ["file"]


def test_arguments_of_another_kind_are_told_by_name(tmp_path):
    from dphmm.spark import release as release_frame

    class Frame:
        sparkSession = None

    table = rows(1, people(1), 1, 1)
    with pytest.raises(InvalidInput, match=r"^frame: got DataFrame; expected a Spark frame; dphmm.release_many takes"):
        release_frame(table, *WORLD, 1, into=tmp_path / "table")
    model, policy, space = WORLD
    with pytest.raises(InvalidInput, match=r"^model: got \w+; expected a MarkovModel$"):
        release_frame(Frame(), policy, model, space, 1, into=tmp_path / "table")
    with pytest.raises(InvalidInput, match=r"^colour: got an unknown choice; .*cap_epsilon.*step_choices"):
        release_frame(Frame(), *WORLD, 1, into=tmp_path / "table", colour=1)
    with pytest.raises(InvalidInput, match=r"^progress: got bool; expected none: Spark shows"):
        release_frame(Frame(), *WORLD, 1, into=tmp_path / "table", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_of_other_rows_each_time_is_refused_where_spark_knows_it(spark, tmp_path):
    import dphmm.spark

    frame = spark.createDataFrame(rows(1, people(3), 1, 2)).withColumn("state", spark_choice())
    with pytest.raises(InvalidInput, match=r"^frame: got rows that are others each time"):
        dphmm.spark.release(frame, *WORLD, 1, into=tmp_path / "table")
    assert not (tmp_path / "table").exists()
    with pytest.raises(InvalidInput, match=r"^frame: got rows that are others each time"):
        dphmm.spark.count_transitions(frame, SPACE, max_length=3)


def spark_choice():
    """A state that is drawn whenever it is looked at."""
    from pyspark.sql import functions

    return functions.when(functions.rand() < 0.5, "a").otherwise("b")


def test_settings_that_write_rows_down_are_unsafe(spark):
    import dphmm.spark

    assert dphmm.spark.check(spark) == []
    name = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
    spark.conf.set(name, "false")
    try:
        (found,) = dphmm.spark.check(spark)
    finally:
        spark.conf.set(name, "true")
    assert found == f"{name} is false: an error's traceback goes into the logs; set it to true"


class _Held(dict):
    """Settings that are read as those of a session, or of a context."""


def test_settings_of_a_session_do_not_pass_for_those_of_its_cluster(monkeypatch):
    """What `getOrCreate` writes into a running session encrypts nothing."""
    from dphmm.spark.settings import _ALWAYS, _OUTSIDE, check

    said = _Held({wanted.name: wanted.value for wanted in (*_ALWAYS, *_OUTSIDE)})
    begun = _Held({})

    class Context:
        master = "spark://here:7077"

        def getConf(self):
            return begun

    class Frame:
        def repartitionById(self): ...

    class Session:
        conf, sparkContext = said, Context()

        def range(self, _):
            return Frame()

    # No Spark is needed to ask for settings.
    classic = types.SimpleNamespace(is_remote=lambda: False)
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.utils"):
        monkeypatch.setitem(sys.modules, name, classic)
    assert [line.split(" is false")[0] for line in check(Session())] == [wanted.name for wanted in _OUTSIDE]
    begun.update(said)
    assert check(Session()) == []


@pytest.mark.parametrize("name", ["a[1]", "b{c,d}", "e*", "f?", "g\\h", "i j%20#k"])
def test_a_folder_is_never_taken_for_a_pattern(release, spark, tmp_path, name):
    found = release(rows(1, people(4), 1, 2), tmp_path / name, buckets=2)
    assert found.table().count() == found.report.released


def test_bytes_that_are_no_text_are_a_row_that_cannot_be_read(spark, tmp_path):
    import dphmm.spark

    frame = spark.createDataFrame(rows(1, people(2), 1, 1)).withColumn("user", spark_text("FF61"))
    with pytest.raises(InvalidInput, match=r"2 rows that cannot be read \(2 missing_user\)"):
        dphmm.spark.release(frame, *WORLD, 1, into=tmp_path / "table", buckets=2)


def test_a_state_whose_bytes_are_no_text_is_a_step_without_an_answer(spark, tmp_path):
    """As at every other door: a row without a state keeps its step, and later ones their numbers."""
    from pyspark.sql import functions

    import dphmm.spark

    table = spark.createDataFrame(rows(1, people(2), 1, 3, skipped=0))
    spoiled = functions.when(table["step"] == 2, spark_text("FF61")).otherwise(table["state"])
    key = JobKey.replayed(1)
    found = dphmm.spark.release(
        table.withColumn("state", spoiled), *WORLD, 1, into=tmp_path / "table", key=key, buckets=2
    )
    assert sorted(found.table().toPandas()["step"]) == [1, 1, 3, 3]


def spark_text(digits):
    """Bytes as a column of text, whether they are text or not."""
    from pyspark.sql import functions

    return functions.expr(f"CAST(X'{digits}' AS STRING)")


def test_steps_stand_for_times_where_the_model_has_no_step(release, tmp_path):
    """Rows that come late, twice and under another state: each time has one answer over all jobs and queries."""
    day = pd.Timestamp("2024-05-06T08:00:00")

    def table(*minutes, state="a"):
        return pd.DataFrame(
            [(user, day + pd.Timedelta(minutes=m), state) for m in minutes for user in ("ann", "bob")],
            columns=["user", "t", "state"],
        )

    into = tmp_path / "table"
    release(table(1, 5), into)
    release(table(1, 3, 5, 9, 9, state="f"), into, seed=2, query="other", resume=True)
    found = release(table(9, 5, 3, 1, state="c"), into, seed=3, resume=True)
    assert (found.report.late, found.report.replayed) == (2, 4)
    rows = found.table().toPandas().sort_values(["user", "t"])
    assert rows["t"].dt.minute.tolist() == [1, 5, 9] * 2 and rows["step"].tolist() == [1, 2, 3] * 2
    with opened_to_read(into) as ledger:
        for user in ("ann", "bob"):
            assert (ledger.moments_of([user])[0] // 60_000_000 % 60).tolist() == [1, 5, 9]
            assert ledger.spent(user).epsilon == 6
