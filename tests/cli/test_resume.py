"""Interrupted releases: what was committed stays, --resume continues, each row is released once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.sqlite import SqliteLedger

# Kills or interrupts itself right after the third commit of five releases.
DRIVER = """
import os, sys
import dphmm.batch
from dphmm.storage.ledger.sqlite import SqliteLedger
from dphmm.cli import main

dphmm.batch.CHUNK = 5
number = int(sys.argv.pop(1))
commit, commits = SqliteLedger._commit, []

def counted(self, *args):
    commit(self, *args)
    commits.append(1)
    if len(commits) == 3:
        os.kill(os.getpid(), number)

SqliteLedger._commit = counted
main()
"""


def stored_answers(path):
    with open_ledger(path) as ledger:
        return {
            (subject, entry.t): entry.z
            for subject, query in ledger.sessions()
            for entry in ledger.entries(subject, query)
        }


def stopped_by(number, arguments):
    return subprocess.run(
        [sys.executable, "-c", DRIVER, str(int(number)), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_between_commits_and_resumed(town, tmp_path, run, release_of, rows_of, number, code):
    arguments = release_of(town, tmp_path)
    done = stopped_by(number, arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "released.csv").exists()
    before = stored_answers(tmp_path / "ledger.db")
    assert len(before) == 15
    if code > 0:
        assert done.stderr.count("\n") == 1
        assert "--resume" in done.stderr
    run(*arguments, code=2)
    assert stored_answers(tmp_path / "ledger.db") == before
    run(*arguments, "--resume")
    after = stored_answers(tmp_path / "ledger.db")
    assert {key: after[key] for key in before} == before
    rows = rows_of(tmp_path / "released.csv")
    keys = [(row["user"], int(row["step"])) for row in rows]
    assert keys == [(user, step) for user in ("u1", "u2", "u3") for step in range(1, 13)]
    published = {
        (row["user"], int(row["step"])): tuple(round((float(row[z]) - 500) / 1000) for z in ("z_0", "z_1"))
        for row in rows
    }
    assert published == after
    if code > 0:
        assert list(tmp_path.glob(".*")) == []


def test_interrupted_inside_a_transaction_nothing_of_it_stays(town, tmp_path, run, release_of, monkeypatch):
    commit, commits = SqliteLedger._commit, []

    def interrupted(self, *args):
        commits.append(1)
        if len(commits) == 3:
            raise KeyboardInterrupt
        commit(self, *args)

    monkeypatch.setattr("dphmm.batch.CHUNK", 5)
    monkeypatch.setattr(SqliteLedger, "_commit", interrupted)
    result = run(*release_of(town, tmp_path), code=130)
    assert "10 releases" in result.stderr
    monkeypatch.undo()
    assert len(stored_answers(tmp_path / "ledger.db")) == 10


def test_a_finished_release_resumed_is_the_same_file_and_costs_nothing(town, tmp_path, run, release_of):
    arguments = release_of(town, tmp_path)
    run(*arguments)
    first = (tmp_path / "released.csv").read_bytes()
    run(*arguments, code=2)
    run(*arguments, "--resume")
    assert (tmp_path / "released.csv").read_bytes() == first
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("u1").epsilon == 12


def test_resuming_under_another_promise_is_refused(town, tmp_path, run, release_of):
    arguments = release_of(town, tmp_path)
    run(*arguments)
    arguments[arguments.index("--epsilon") + 1] = "2"
    result = run(*arguments, "--resume", code=2)
    assert "epsilon" in result.stderr
    assert result.stderr.count("\n") == 1
