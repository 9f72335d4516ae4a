"""`check_release_table` checks each job of a release table against its statement and against the table's own ledger.

Claims: a right table of every kind of job has nothing wrong, and says that how its ledger is written was not looked at;
a forged answer, statement, column, member of a commit, file or gap is convicted, by the number of its job; of several
queries one is named. Jobs are committed as a cluster commits them, without one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from audit.test_released import OF_LABELS, walks
from commands import run
from crafted_bits import keyed_system_bits
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit import check_release_table
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.session.releases import Releases
from dphmm.statement.parts import document
from dphmm.storage.release_table import ReleaseTable, table_file, write_rows
from dphmm.storage.released import FileSums, released_table
from dphmm.storage.table_ledger import with_ledger
from dphmm.storage.trajectories import load_trajectories

pytestmark = pytest.mark.replayed_words

KINDS = [
    {},
    {"constraint": "delta=0.2"},
    {"epsilon": None, "promise": dphmm.SequencePromise(6, window=3)},
    {"epsilon": None, "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=4, passed=0), 1, [2, 4])},
    OF_LABELS,
]


def commit(folder, ledger, query="state", change=None, rows=None, **kind):
    """Two jobs, the second of which goes on where the first ended, and what they were made under.

    ``change`` spoils what the second one commits: the rows of its file and its document.
    """
    public = (kind.pop("model", MODEL), kind.pop("policy", POLICY), kind.pop("space", SPACE))
    rows, epsilon = kind.pop("table", walks() if rows is None else rows), kind.pop("epsilon", 1)
    table, last = ReleaseTable.open(folder), {}
    for job, own in enumerate((rows[rows.step < 4], rows[rows.step >= 4])):
        batch = Batch(*public, epsilon, query=query, ledger=ledger, bits=keyed_system_bits(5 + job), **kind)
        loaded = load_trajectories(own, space=public[2]).trajectories
        found = Releases.joined([part for part in batch.run(loaded, resume=True) if isinstance(part, Releases)])
        found = found.taken(np.array([t > last.get(user, 0) for user, t in zip(found.users, found.t, strict=True)]))
        content = with_ledger(released_table(found, public[2]), found, ledger, query, last)
        last = {user: ledger.entries(user, query)[-1].through for user, own in ledger.sessions() if own == query}
        published = FileSums()
        published.add(found)
        told = document(batch.statement(published, "others", words="job key"))
        told = {
            "query": query,
            "spelling": "same",
            "rows": len(content),
            "subjects": published.subjects,
            "statement": told,
        }
        if job and change is not None:
            content = change(content, told) or content
        turn = table.begin({}, holder="driver", seconds=60)
        turn.commit([write_rows(content, turn.entry_path(0))], told)
    return public


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: ",".join(kind))
def test_a_right_table_is_not_convicted(tmp_path, kind):
    public = commit(tmp_path / "table", MemoryLedger(), **kind)
    verdict = check_release_table(tmp_path / "table", *public)
    assert verdict.findings == () and verdict.code == 5, verdict.findings
    assert {note.partition(": of the columns of the ledger")[0] for note in verdict.notes} == {
        "bytes: job 2",
        "bytes: job 4",
    }
    assert verdict.users == (2 if kind is OF_LABELS else 4) and len(verdict.verdicts) == verdict.plans
    assert any(line == ("ok", "file", line[2]) and line[2].startswith("job 4: the commit") for line in verdict.checks)


def another_answer(content, told):
    at = content.column_names.index("z_0")
    z = content.column("z_0").to_pylist()
    return content.set_column(at, "z_0", pa.array([z[0] + 1, *z[1:]]))


def another_total(content, told):
    told["statement"]["totals"]["epsilon_sum"] = "1"


def a_row_less(content, told):
    return content.slice(1)


def no_statement(content, told):
    told["statement"] = None


def a_column_of_the_ledger_too_many(content, told):
    return content.append_column("ledger_truth", pa.array(["x"] * len(content)))


def a_column_too_many(content, told):
    return content.append_column("mood", pa.array(["x"] * len(content)))


def a_member_of_the_commit_too_many(content, told):
    told["note"] = "u1 sleeps at 3"


def notes_in_the_file(content, told):
    return content.replace_schema_metadata({"truth": "here"})


CHANGES = {
    another_answer: "ledger: job 4: not those of",
    another_total: "sum of epsilons: job 4: totals.epsilon_sum",
    a_row_less: "rows: job 4: published.rows",
    no_statement: "statement: job 4: of another form",
    a_column_of_the_ledger_too_many: "columns: job 4: columns or members",
    a_column_too_many: "columns: job 4: columns that no release has: mood",
    a_member_of_the_commit_too_many: "columns: job 4: columns or members",
    notes_in_the_file: "bytes: job 4: notes beside the columns: truth",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_forged_job_is_convicted(tmp_path, change):
    public = commit(tmp_path / "table", MemoryLedger(), change=change)
    verdict = check_release_table(tmp_path / "table", *public)
    assert any(found.startswith(CHANGES[change]) for found in verdict.findings), verdict.lines
    assert verdict.code == 1 and not any(": job 2: " in found for found in verdict.findings)


def test_files_that_are_not_as_committed_are_convicted(tmp_path):
    public = commit(tmp_path / "table", MemoryLedger())
    (one, _) = ReleaseTable.open(tmp_path / "table").paths()
    data = one.read_bytes()
    for spoiled in (data[:-9] + b"123456789", data[:60] + b"u1" + data[60:], b""):
        one.write_bytes(spoiled)
        verdict = check_release_table(tmp_path / "table", *public)
        assert verdict.code == 1 and [found for found in verdict.findings if found.startswith("file: job 2: files: ")]


def test_text_in_a_gap_of_a_file_of_a_table_is_convicted(tmp_path):
    def gap(path):
        data = path.read_bytes()
        footer = int.from_bytes(data[-8:-4], "little") + 8
        path.write_bytes(data[:-footer] + b"u1 sleeps at x1y2" + data[-footer:])

    public = commit(tmp_path / "from", MemoryLedger())
    kept = ReleaseTable.open(tmp_path / "from")
    table = ReleaseTable.open(tmp_path / "table")
    turn = table.begin({}, holder="driver", seconds=60)
    path = turn.entry_path(0)
    write_rows(pq.read_table(kept.paths()[0]), path)
    gap(path)
    turn.commit([table_file(path)], kept.entries()[1].document)
    verdict = check_release_table(tmp_path / "table", *public)
    assert any(found.startswith("bytes: job 2: 17 bytes of the Parquet file") for found in verdict.findings)


def test_of_several_queries_one_is_named(tmp_path):
    ledger, other = MemoryLedger(), dphmm.StateSpace([[0], [3], [1], [5], [4], [9]])
    commit(tmp_path / "table", ledger)
    commit(tmp_path / "table", ledger, "other", space=other)
    with pytest.raises(InvalidInput, match=r"^query: got none of several; .*: other, state"):
        check_release_table(tmp_path / "table", MODEL, POLICY, SPACE)
    for query, space in (("state", SPACE), ("other", other)):
        verdict = check_release_table(tmp_path / "table", MODEL, POLICY, space, query=query)
        assert verdict.findings == () and verdict.rows > 20, verdict.lines


def test_another_folder_is_refused_and_nothing_is_made_in_it(tmp_path):
    with pytest.raises(InvalidInput, match="the folder of a release table"):
        check_release_table(tmp_path, MODEL, POLICY, SPACE)
    assert list(tmp_path.iterdir()) == []


def test_the_command_checks_a_folder(tmp_path):
    dphmm.storage.save_model(
        dphmm.MarkovModel(MODEL.initial, MODEL.transition.toarray(), space=SPACE), tmp_path / "model.npz"
    )
    dphmm.storage.save_policy(POLICY, tmp_path / "policy.json", SPACE, MODEL)
    commit(tmp_path / "table", MemoryLedger())
    command = ("check-release", tmp_path / "table", "--model", tmp_path / "model.npz")
    told = run(*command, "--policy", tmp_path / "policy.json", "--plain", tmp_path / "plain", code=5).stdout
    assert "nothing is wrong, and not everything was looked at" in told and "wrong: " not in told
    assert (tmp_path / "plain/job-2/plans.json").exists() and (tmp_path / "plain/job-4/facts.json").exists()
    assert "--model: got nothing" in run(*command[:2], code=2).stderr
