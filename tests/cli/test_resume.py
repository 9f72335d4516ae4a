"""Interrupted releases: what was committed stays, the same command continues, each row is released once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import dphmm
from commands import going_on
from dphmm.statement.files import load_statement
from dphmm.storage import released, tables
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.sqlite import SqliteLedger
from dphmm.storage.release_folder import ReleaseFolder
from dphmm.storage.released import last_answers

# Kills or interrupts itself right after the third commit of five releases.
DRIVER = """
import os, sys
import dphmm.release.batch
from dphmm.storage.ledger.sqlite import SqliteLedger
from dphmm.cli import main

dphmm.release.batch.CHUNK = 5
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


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_between_commits_and_resumed(town, tmp_path, run, release_of, rows_of, number, code):
    arguments = release_of(town, tmp_path)
    command = [sys.executable, "-c", DRIVER, str(int(number)), *going_on(arguments)]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "released" / "released.csv").exists()
    before = stored_answers(tmp_path / "ledger.db")
    assert len(before) == 15
    if code > 0:
        limit, new, warned, told = done.stderr.splitlines()
        assert limit.startswith("No limit is set") and warned.startswith("note: the model")
        assert new == "note: new ledger ledger.db: nobody in it has an account yet"
        assert told.endswith("; the same command continues after them")
    assert "--new" in run(*arguments, "--new", code=2).stderr
    assert stored_answers(tmp_path / "ledger.db") == before
    run(*arguments)
    after = stored_answers(tmp_path / "ledger.db")
    assert {key: after[key] for key in before} == before
    rows = rows_of(tmp_path / "released" / "released.csv")
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

    monkeypatch.setattr("dphmm.release.batch.CHUNK", 5)
    monkeypatch.setattr(SqliteLedger, "_commit", interrupted)
    result = run(*release_of(town, tmp_path), code=130)
    assert "10 releases" in result.stderr
    monkeypatch.undo()
    assert len(stored_answers(tmp_path / "ledger.db")) == 10


def test_interrupted_after_a_commit_it_tells_what_this_run_stored(town, tmp_path, run, release_of, monkeypatch):
    """The loop has not heard of its last commit; what was stored before the run is not of it."""
    commit, commits = SqliteLedger._commit, []

    def interrupted(self, *args):
        commit(self, *args)
        commits.append(1)
        if len(commits) in (3, 7):
            raise KeyboardInterrupt

    monkeypatch.setattr("dphmm.release.batch.CHUNK", 5)
    monkeypatch.setattr(SqliteLedger, "_commit", interrupted)
    first = run(*release_of(town, tmp_path), code=130)
    stored = len(stored_answers(tmp_path / "ledger.db"))
    assert f"interrupted: {stored} releases of this run are stored in ledger.db" in first.stderr
    again = run(*release_of(town, tmp_path), code=130)
    more = len(stored_answers(tmp_path / "ledger.db")) - stored
    assert stored > 0 and more > 0 and f"interrupted: {more} releases of this run are stored" in again.stderr


def test_a_finished_release_resumed_is_the_same_file_and_costs_nothing(town, tmp_path, run, release_of):
    arguments = release_of(town, tmp_path)
    run(*arguments)
    first = (tmp_path / "released" / "released.csv").read_bytes()
    run(*arguments, "--new", code=2)
    assert "noun: got 'Two'; expected one word" in run(*arguments, "--noun", "Two", code=2).stderr
    assert " vessels, at every step" in run(*arguments, "--noun", "vessel").stderr
    assert load_statement(tmp_path / "released" / "released.csv").subjects.noun == "vessel"
    assert (tmp_path / "released" / "released.csv").read_bytes() == first
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("u1").epsilon == 12


@pytest.mark.parametrize("size", [1, 7])
def test_the_last_answers_of_an_output_are_found_in_parts_of_any_size(tmp_path, monkeypatch, size):
    space, rng = dphmm.StateSpace(np.arange(9)[:, None]), np.random.default_rng(3)
    rows = sorted({(f"u{rng.integers(0, 5)}", int(rng.integers(1, 30))) for _ in range(60)})
    asked = [bool(rng.integers(0, 3)) for _ in rows]
    z = [float(rng.integers(-5, 9)) if some else None for some in asked]
    plans = ["p" if some else None for some in asked]
    columns = {"user": [user for user, _ in rows], "step": [step for _, step in rows], "z_0": z, "plan": plans}
    table = pa.table(columns).take(rng.permutation(len(rows)))
    tables.write_table(tmp_path / "out.parquet", table)
    whole = tables.read_batches
    monkeypatch.setattr(released, "read_batches", lambda path, **how: whole(path, **{**how, "rows": size}))
    expected = {user: (step, [int(at)]) for (user, step), at in zip(rows, z, strict=True) if at is not None}
    found = last_answers(tmp_path / "out.parquet", space)
    assert found == [(user, *expected[user]) for user in sorted(expected)]


def with_ledger(arguments, path):
    """The same command with another ledger."""
    given = list(arguments)
    given[given.index("--ledger") + 1] = str(path)
    return given


def test_a_released_file_is_rewritten_from_its_own_ledger_only(town, tmp_path, run, release_of):
    """A new ledger, an older copy, and one with other answers would give second answers: refused, nothing is lost."""
    arguments = release_of(town, tmp_path)
    first = list(arguments)
    first[1] = str(tmp_path / "begun.csv")
    rows = (town / "walks.csv").read_text().splitlines()
    (tmp_path / "begun.csv").write_text("\n".join(rows[:6]) + "\n")
    run(*first)
    older, backup = tmp_path / "older.db", tmp_path / "backup.db"
    for copy in (older, backup):
        shutil.copy(tmp_path / "ledger.db", copy)
    run(*arguments)
    released, twin = (tmp_path / "released" / "released.csv").read_bytes(), tmp_path / "twin.db"
    elsewhere = with_ledger(arguments, twin)
    elsewhere[elsewhere.index("-o") + 1] = str(tmp_path / "twin")
    run(*elsewhere)
    empty, new = tmp_path / "empty.db", tmp_path / "new.db"
    open_ledger(empty).close()
    missing, another = (
        "which does not exist",
        "which is another ledger; expected the ledger that the answers in released",
    )
    without = "without the releases in released.csv of 3 users, 'u1' among them"
    # A copy is the same ledger, as far as its id tells.
    recorded = {new: missing, empty: another, older: without, twin: another, backup: without}
    unknown = {new: missing, empty: without, older: without, twin: without, backup: without}
    for refusals in (recorded, unknown):
        for ledger, words in refusals.items():
            result = run(*with_ledger(arguments, ledger), "--quiet", code=2)
            assert words in result.stderr
            assert result.stderr.count("\n") == 1
            assert (tmp_path / "released" / "released.csv").read_bytes() == released
            if refusals is unknown:
                # What was refused is recorded nowhere.
                assert not (tmp_path / "released.owner" / "owner.json").exists()
        # Whoever has the folder alone has no record of its ledger: its rows are looked for in the ledger.
        shutil.rmtree(tmp_path / "released.owner")
    assert not new.exists()
    assert stored_answers(empty) == {}
    assert len(stored_answers(older)) == len(stored_answers(backup)) == 5
    assert "query 'again'" in run(*arguments, "--query", "again", code=2).stderr
    run(*arguments)
    assert (tmp_path / "released" / "released.csv").read_bytes() == released


@pytest.mark.parametrize("index", [True, False])
def test_a_file_that_is_no_release_is_not_rewritten(town, tmp_path, run, release_of, index):
    open_ledger(tmp_path / "ledger.db").close()
    place = ReleaseFolder(tmp_path / "released")
    if index:
        place.create()
    place.path.mkdir(exist_ok=True)
    (place.path / "released.csv").write_text("user,thesis\nu1,forty years of work\n")
    told = "which is no released file" if index else "which has files and is no release"
    assert told in run(*release_of(town, tmp_path), code=2).stderr
    assert (place.path / "released.csv").read_text().endswith("forty years of work\n")
