"""Ledger files of format 1 are read for ever, and continued: nothing is lost, whatever stops it.

The file is kept in the tree as the statements that make it (tests/ledger_formats.py); what it said to the code that
wrote it, and what that code answered next under given words, is kept beside it.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dphmm.accounting import Caps, Request
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger import schema as migrate_module
from dphmm.storage.ledger.schema import migrate_ledger
from ledger_formats import contents, proceed
from storing import store

DATA = Path(__file__).parents[1] / "data"
SAID = json.loads((DATA / "format1.json").read_text())


def as_json(found: Any) -> Any:
    return json.loads(json.dumps(found))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "ledger.db"
    with closing(sqlite3.connect(made)) as connection:
        connection.executescript((DATA / "format1.sql").read_text())
        connection.execute("PRAGMA journal_mode = WAL")
    return made


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def run(*arguments: object) -> Result:
    from dphmm.cli.app import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_file_of_format_1_is_read_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    with open_ledger(path, read_only=True) as ledger:
        assert as_json(contents(ledger)) == SAID["contents"]
        assert ledger.snapshot("ann", "state") is None
        assert ledger.spent_of(["eve", "ann"]) == [ledger.spent("eve"), ledger.spent("ann")]
        assert [header.query for header in ledger.headers_of(["ann"])] == ["state", "work"]
        assert len(ledger.plans_at("ann", 1, "state")) == 1
        ledger.check()
    assert path.read_bytes() == before


def test_a_file_of_format_1_is_written_by_no_other_command(path: Path) -> None:
    before = dump(path)
    with pytest.raises(InvalidInput, match=r"dphmm ledger migrate ledger\.db") as caught:
        open_ledger(path)
    assert "\n" not in str(caught.value)
    assert dump(path) == before


def test_a_file_of_format_1_that_does_not_add_up_is_found(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE account SET epsilon = '1' WHERE subject = 'ann'")
        connection.commit()
    before = dump(path)
    with open_ledger(path, read_only=True) as ledger, pytest.raises(DphmmError, match='"ann" is not that of'):
        ledger.check()
    with pytest.raises(DphmmError, match='"ann" is not that of'):
        migrate_ledger(path)
    assert dump(path) == before


def test_everything_moves_and_every_session_goes_on(path: Path) -> None:
    assert migrate_ledger(path)
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db.commands.lock"]
    with open_ledger(path) as ledger:
        ledger.check()
        assert as_json(contents(ledger)) == SAID["contents"]
        with ledger.transaction() as transaction:
            # A session, or a row, each: what nobody knows to have changed must not look changed.
            looked = transaction.look(["ann", "bob", "eve"], "state")
        assert [one.version for one in looked] == [2 + 12, 1 + 6, 1]
    with open_ledger(path) as ledger:
        assert as_json(proceed(ledger)) == SAID["proceed"]
        assert as_json(contents(ledger)) == SAID["after"]
        ledger.check()
    assert not migrate_ledger(path)


def test_a_ledger_of_today_says_the_same_as_one_that_moved(path: Path, tmp_path: Path) -> None:
    """Of files that began in either format, no row and no version tells which; format 1 stored no caps."""
    from ledger_formats import begin

    migrate_ledger(path)
    with open_ledger(tmp_path / "new.db") as ledger:
        begin(ledger)
        assert as_json(contents(ledger)) == SAID["contents"]
    tables = ("account", "session", "release")
    query = (
        "SELECT subject, version - (SELECT count(*) FROM change WHERE change.account = account.id), account.epsilon, "
        "cost_nanos, query, text, t, steps, z, hash, kind, terms.epsilon, "
        "cost FROM account JOIN session ON account = account.id JOIN document ON options = document.id "
        "LEFT JOIN release ON session = session.id LEFT JOIN terms ON terms = terms.id "
        "LEFT JOIN plan ON plan = plan.id ORDER BY subject, query, t"
    )
    found = []
    for file in (path, tmp_path / "new.db"):
        with closing(sqlite3.connect(file)) as connection:
            counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]
            found.append((connection.execute(query).fetchall(), counts))
    assert found[0] == found[1]


def test_a_copy_that_differs_is_not_committed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a statement that moves rows wrong, the file would stay as it was."""
    before = dump(path)
    copy = migrate_module._COPY
    charged = [statement.replace("coalesce(max(epsilon), '0')", "'1'") for statement in copy]
    shorter = [statement.replace("through - t + 1, z", "1, z") for statement in copy]
    fewer = [*copy[:-1], copy[-1] + " WHERE t > 1"]
    for wrong in (charged, shorter, fewer):
        assert wrong != list(copy)
        with monkeypatch.context() as patched:
            patched.setattr(migrate_module, "_COPY", wrong)
            with pytest.raises(DphmmError, match="copy in the new format differs"):
                migrate_ledger(path)
        assert dump(path) == before
    assert migrate_ledger(path)


def test_others_wait_or_are_refused(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy, match="try again"):
        migrate_ledger(path, timeout=0.05)
    other.execute("ROLLBACK")
    other.close()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with migrate_module.held(path):
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    with pytest.raises(LedgerBusy, match="another dphmm command"):
        migrate_ledger(path)
    done.set()
    holder.join()


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="exists and can be read"):
        migrate_ledger(tmp_path / "none.db")
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE t (x)")
    before = foreign.read_bytes()
    with pytest.raises(InvalidInput, match="something else"):
        migrate_ledger(foreign)
    assert foreign.read_bytes() == before


def test_a_damaged_file_is_refused_in_one_line_and_left_alone(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    whole, bad = path.read_bytes(), tmp_path / "bad.db"
    spoiled = [whole[:length] for length in (1, 50, 100, 4096, 5000, len(whole) // 2, len(whole) - 1)]
    at = whole.index(b"CREATE TABLE release") + 30
    spoiled += [whole[:at] + byte + whole[at + 1 :] for byte in (b"\x89", b"}", b"\x00")]
    for came in spoiled:
        bad.write_bytes(came)
        with pytest.raises(DphmmError) as refused:
            migrate_ledger(bad)
        assert len(str(refused.value).splitlines()) == 1
        assert bad.read_bytes() == came


DYING = """
import os, signal, sqlite3, sys
path, point = sys.argv[1:]
connect = sqlite3.connect
def watched(*args, **choices):
    connection = connect(*args, **choices)
    connection.set_trace_callback(lambda said: said.startswith(point) and os.kill(os.getpid(), signal.SIGKILL))
    return connection
sqlite3.connect = watched
from dphmm.storage.ledger.schema import migrate_ledger
migrate_ledger(path)
if point == "committed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
POINTS = [
    "BEGIN IMMEDIATE",
    "ALTER TABLE session",
    "ALTER TABLE account",
    "CREATE TABLE account",
    "INSERT INTO account",
    "INSERT OR IGNORE INTO document",
    "INSERT INTO plan",
    "INSERT INTO session",
    "INSERT INTO terms",
    "INSERT INTO release",
    "INSERT OR REPLACE INTO meta",
    "DROP TABLE release_format1",
    "DROP TABLE plan_format1",
    "COMMIT",
    "VACUUM",
    "committed",
]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_at_named_points_the_old_file_or_the_new_one_is_whole(path: Path) -> None:
    made = dump(path)
    for point in POINTS:
        for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
            path.with_name(name).unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("\n".join(made))
            connection.execute("PRAGMA journal_mode = WAL")
        killed = subprocess.run([sys.executable, "-c", DYING, str(path), point], capture_output=True, check=False)
        assert killed.returncode == -9, (point, killed.stderr)
        new = point in ("VACUUM", "committed")
        if not new:
            assert dump(path) == made, point
        assert migrate_ledger(path) == (not new), point
        with open_ledger(path) as ledger:
            assert as_json(contents(ledger)) == SAID["contents"], point
            ledger.check()


def test_a_program_of_the_older_format_that_has_the_file_open_writes_nothing_more(path: Path) -> None:
    """Its statements name columns that are gone: its transaction fails, and it shows nothing."""
    older = sqlite3.connect(path, isolation_level=None)
    find = "SELECT id, options, (SELECT max(through) FROM release WHERE session = session.id) FROM session "
    find += "WHERE subject = ? AND query = ?"
    assert older.execute(find, ("ann", "state")).fetchone()[2] == 8
    assert migrate_ledger(path)
    older.execute("BEGIN IMMEDIATE")
    for statement, values in (
        (find, ("ann", "state")),
        ("INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (1, 9, 9, "release", "1", "1", "1", 1, 1, 0)),
        ("INSERT INTO account VALUES (?, ?, ?, ?)", ("ann", "1", "1", 0)),
    ):
        with pytest.raises(sqlite3.OperationalError):
            older.execute(statement, values)
    older.close()


def test_the_command(path: Path) -> None:
    done = run("ledger", "migrate", path)
    assert (done.exit_code, done.output) == (0, f"{path}: continued in format 2\n")
    again = run("ledger", "migrate", path)
    assert again.exit_code == 0 and "already" in again.output
    missing = run("ledger", "migrate", path.with_name("none.db"))
    assert missing.exit_code == 2 and missing.output.count("\n") == 1
    assert not path.with_name("none.db").exists()


def test_accounts_are_printed_from_either_format(path: Path) -> None:
    before = run("account", path, "--json").output
    run("ledger", "migrate", path)
    assert run("account", path, "--json").output == before
    assert json.loads(before)["subjects"]


def test_a_step_of_format_1_is_asked_again_and_stays_as_it_was(path: Path) -> None:
    migrate_ledger(path)
    with open_ledger(path) as ledger:
        for entry in ledger.entries("bob", "state"):
            plan = None if entry.plan_hash is None else ledger.plan(entry.plan_hash)
            shared = entry.epsilon, entry.cost, plan, entry.secure, entry.constant, entry.steps
            with ledger.transaction() as transaction:
                again = Request("bob", "state", entry.t, entry.kind, *shared)
                assert store(transaction, again, lambda: (0, 0), Caps()) == entry
