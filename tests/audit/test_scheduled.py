"""`check_release` of releases by a schedule: right ones are acquitted, and every row asked out of turn is found.

Claims: a planned or paced release is acquitted with its ledger and statement, as Parquet, CSV and lines, and smoothed
row by row; a row whose answer was taken away or made up, an estimate of a row that was not asked that does not follow,
another schedule in the statement, the ledger or the audit, and a row that costs without an answer are each convicted.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from audit.test_released import Finished as Release
from dphmm.errors import InvalidInput
from dphmm.session.smoothing import AnswerHistory as Answers
from dphmm.session.smoothing import Smoother
from dphmm.statement.files import read_statement, statement_path
from dphmm.storage.tables import read_table, write_table

PLANNED = dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=4), 1, [2, 4])
PACED = dphmm.accounting.Schedule(dphmm.SequencePromise(3, steps=20), 1, range(1, 21), (0.5, 1.0, 1.5, 1.6, 1.7))
STAGGERED = dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=6), 1, [2, 5], seed="3")
SCHEDULES = pytest.mark.parametrize("schedule", [PLANNED, STAGGERED, PACED], ids=lambda schedule: schedule.kind)


def walks(users=4, steps=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        (f"u{user}", step, str(rng.integers(6)))
        for user in range(users)
        for step in range(user, steps + user)
        if step == user or rng.random() < 0.8
    ]
    return pd.DataFrame(rows, columns=["user", "step", "state"])


class Finished(Release):
    """A release by a schedule with its ledger, as a file with a statement, which alone tells an audit the schedule."""

    def __init__(self, folder, schedule, suffix=".parquet", **options):
        super().__init__(folder, suffix=suffix, table=walks(), schedule=schedule, **options)
        self.options = options

    def edited(self, change, ledger=True):
        """The verdict on the file with some rows changed, its statement sealed again."""
        frame = self.table.to_pandas()
        change(frame)
        table = pa.Table.from_pandas(frame, schema=self.table.schema, preserve_index=False)
        write_table(self.path, table.replace_schema_metadata(None))
        self.stated(lambda told: None)
        return self.check(ledger=ledger)

    @property
    def schedule(self):
        return read_statement(statement_path(self.path)).asking


@SCHEDULES
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("constraint", ["support", "delta=0.2"])
def test_a_right_release_is_acquitted(tmp_path, schedule, suffix, constraint):
    made = Finished(tmp_path, schedule, suffix, constraint=constraint)
    for ledger in (True, False):
        verdict = made.check(ledger=ledger)
        assert not verdict.convicted, verdict.lines
    unasked = made.table.column("plan").null_count
    assert 0 < unasked < len(made.table)
    stated = json.loads(statement_path(made.path).read_text())
    assert stated["schedule"]["not_asked"] == unasked and stated["schedule"]["name"] == schedule.kind
    assert made.schedule == schedule


@SCHEDULES
def test_smoothing_tells_of_every_row(tmp_path, schedule):
    """As many rows as were released; where an answer follows, a row that was not asked is told by it, too."""
    made = Finished(tmp_path, schedule)
    smoothed = dphmm.reconstruction.smooth(read_table(made.path), MODEL, POLICY, SPACE, progress=False).to_pandas()
    frame = made.table.to_pandas()
    assert (smoothed.user == frame.user).all() and (smoothed.step == frame.step).all()
    assert smoothed.smoothed_0.notna().all() and frame.plan.isna().any()


@pytest.mark.parametrize(
    "schedule", [PLANNED, dphmm.accounting.Schedule(PACED.promise, 1, PACED.at, (0.5, 0.74))], ids=["planned", "paced"]
)
def test_smoothed_rows_are_those_of_all_paths(schedule):
    """Every path of three states over five steps, weighed by the model and the answers: marginals to 1e-12."""
    model = dphmm.MarkovModel([0.5, 0.3, 0.2], [[0.7, 0.3, 0.0], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]])
    space = dphmm.StateSpace([0, 1, 2])
    policy = dphmm.policy.complete(3)
    session = dphmm.ReleaseSession(model, policy, space, schedule=schedule, bits=dphmm.ReplayBits(2))
    rows = [session.release(s) for s in (0, 1, 1, 2, 2)]
    weights = np.ones((5, 3))
    for k, row in enumerate(rows):
        if row.asked:
            plan = session.setting.planner.plan(np.ones(3, dtype=bool), np.ones(3, dtype=bool))
            assert plan.hash == row.plan_hash
            weights[k] = np.exp(plan.log_likelihood(row.z_lattice))
    assert 0 < sum(row.asked for row in rows) < 5
    matrix = np.array([[0.7, 0.3, 0.0], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]])
    first = np.array([0.5, 0.3, 0.2]) @ matrix
    marginals = np.zeros((5, 3))
    for path in itertools.product(range(3), repeat=5):
        p = first[path[0]] * np.prod([matrix[a, b] for a, b in itertools.pairwise(path)])
        p *= np.prod([weights[k, s] for k, s in enumerate(path)])
        for k, s in enumerate(path):
            marginals[k, s] += p
    marginals /= marginals.sum(axis=1, keepdims=True)
    z = np.array([row.z_lattice if row.asked else [0] for row in rows])
    answers = Answers("", np.arange(1, 6), z, [row.plan_hash for row in rows])
    found = Smoother(session.setting).smooth(answers, marginals=True)
    assert np.allclose(found.marginals, marginals, atol=1e-12)


def without_an_answer(table):
    """The first row that was asked has no answer."""
    asked = table.index[table.plan.notna()][0]
    table.loc[asked, ["z_0", "z_1", "plan"]] = [np.nan, np.nan, None]
    table.loc[asked, ["epsilon", "cost"]] = 0.0


@SCHEDULES
def test_a_row_asked_out_of_turn_is_convicted(tmp_path, schedule):
    made = Finished(tmp_path, schedule)
    frame = made.table.to_pandas()
    asked = frame.index[frame.plan.notna()][0]
    unasked = frame.index[frame.plan.isna()][-1]

    def with_answer(table):
        row = table.loc[asked]
        for name in ("z_0", "z_1", "plan", "epsilon", "cost"):
            table.loc[unasked, name] = row[name]

    def costly(table):
        table.loc[unasked, "cost"] = 1.0

    kinds = {
        without_an_answer: "ledger: not those of",
        with_answer: "ledger: not those of",
        costly: "rows: a cost without a plan",
    }
    assert not made.edited(lambda table: None).convicted
    for change, kind in kinds.items():
        verdict = made.edited(change)
        assert any(kind in finding for finding in verdict.findings), (change.__name__, verdict.lines)


def test_a_second_query_is_not_convicted_where_nobody_knows_of_the_first(tmp_path):
    """Its steps may be left out for answers to the other query, which the ledger alone has."""
    Finished(tmp_path, PACED).ledger.close()
    second = Finished(tmp_path, PACED, query="two")
    assert second.check(ledger=False).findings == () and second.check().findings == ()


def test_without_a_ledger_the_schedule_alone_convicts(tmp_path):
    verdict = Finished(tmp_path, PLANNED).edited(without_an_answer, ledger=False)
    assert any("asked, or not asked, other than it says" in told for told in verdict.findings), verdict.lines


@SCHEDULES
def test_another_schedule_is_convicted(tmp_path, schedule):
    made = Finished(tmp_path, schedule)
    other = dphmm.accounting.Schedule(schedule.promise, 1, [1, 3], schedule.spreads)
    verdict = made.check(schedule=other)
    assert any("under other choices than were given" in finding for finding in verdict.findings), verdict.lines
    path = statement_path(made.path)
    told = json.loads(path.read_text())
    for change in (
        lambda s: s.pop("schedule"),
        lambda s: s["schedule"].update(at="1,3"),
        lambda s: s["schedule"].update(not_asked=s["schedule"]["not_asked"] + 1),
        lambda s: s["schedule"].update(releases=1 + s["schedule"]["releases"]),
        lambda s: s["schedule"].update(at="3,1"),
        lambda s: s["schedule"].update(name="every"),
    ):
        changed = json.loads(json.dumps(told))
        change(changed)
        path.write_text(json.dumps(changed))
        assert made.check().convicted
    path.write_text(json.dumps(told))
    assert not made.check().convicted


def test_a_row_with_an_answer_and_no_plan_is_convicted(tmp_path):
    made = Finished(tmp_path, PLANNED)
    frame = made.table.to_pandas()
    frame.loc[frame.index[frame.plan.isna()][0], "z_0"] = 1.0
    table = pa.Table.from_pandas(frame, schema=made.table.schema, preserve_index=False)
    write_table(made.path, table.replace_schema_metadata(None))
    assert any("answers: not so" in finding for finding in made.check().findings)
    with pytest.raises(InvalidInput, match=r"^z_0: "):
        dphmm.reconstruction.smooth(table, MODEL, POLICY, SPACE, progress=False)


def test_a_file_without_a_statement_tells_of_no_schedule(tmp_path):
    made = Finished(tmp_path, PLANNED)
    statement_path(made.path).unlink()
    verdict = made.check(ledger=False)
    assert verdict.code == 5 and any(note.startswith("schedule: no privacy statement") for note in verdict.notes)
