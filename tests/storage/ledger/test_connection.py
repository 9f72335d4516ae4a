"""A ledger that is opened to read alone: nothing of it changes, and it may lie where nothing can be written.

What fails if looking at a ledger could make one, change one, draw from one, or miss what its log holds.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.ledger import SqliteLedger, open_ledger
from storing import FREE, open_all, release, store


def keep(ledger: SqliteLedger, t: int) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        store(transaction, release(t), lambda: (t,), FREE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a ledger?#%.db"
    with open_ledger(made) as ledger:
        keep(ledger, 1)
    return made


def refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        open_ledger(path, read_only=True)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_reading_alone_changes_nothing_and_draws_nothing(path: Path) -> None:
    before = path.read_bytes()
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.sessions() == [("ann", "state")]
        assert ledger.spent("ann").epsilon == Fraction(1, 2)
        ledger.check()
        with pytest.raises(InvalidInput, match="opened to read alone"), ledger.transaction():
            pytest.fail("a transaction began")
        with pytest.raises(InvalidInput, match="opened to read alone"), ledger.lease("commands"):
            pytest.fail("it was held")
    assert path.read_bytes() == before
    assert "exists and can be read" in refused(path.with_name("none.db"))
    assert not path.with_name("none.db").exists()


def test_reading_alone_sees_what_a_writer_commits(path: Path) -> None:
    with open_ledger(path, read_only=True) as reader, open_ledger(path) as writer:
        before = reader.spent("ann")
        keep(writer, 2)
        assert reader.spent("ann") == writer.spent("ann") != before


def test_a_reader_that_closes_last_leaves_one_whole_file(path: Path) -> None:
    reader = open_ledger(path, read_only=True)
    assert reader.sessions()
    with open_ledger(path) as writer:
        keep(writer, 2)
    reader.close()
    assert [file for file in path.parent.iterdir() if file.name.endswith(("-wal", "-shm"))] == []
    assert open_ledger(path).spent("ann").epsilon == 1


def powerless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this user might write neither file nor folder."""
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)


def test_where_nothing_can_be_written_nothing_is_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the system would let this user make files: a log of somebody else's would lock the owner out."""
    powerless(monkeypatch)
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.sessions()
        assert list(path.parent.iterdir()) == [path]


def test_an_empty_log_is_none_and_a_part_of_one_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    powerless(monkeypatch)
    log = path.with_name(f"{path.name}-wal")
    log.touch()
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.sessions()
    log.write_bytes(b"frames")
    assert "-wal beside" in refused(path) and "-shm with it" in refused(path)


def test_an_empty_or_foreign_file_is_not_made_a_ledger_by_reading(tmp_path: Path) -> None:
    empty, foreign = tmp_path / "empty.db", tmp_path / "foreign.db"
    empty.touch()
    with closing(sqlite3.connect(foreign)) as other:
        other.execute("CREATE TABLE t (x)")
    for file in (empty, foreign):
        before = file.read_bytes()
        assert "database of something else" in refused(file)
        assert file.read_bytes() == before


@pytest.mark.slow
@pytest.mark.replayed_words
def test_a_ledger_that_cannot_be_written_can_be_read() -> None:
    """As a user without rights: closed in order, or left with its log by a writer that was killed."""
    code = """
import os, pathlib, sys, tempfile
from dphmm.cli import main
from dphmm.storage.ledger import open_ledger
import dphmm, numpy as np
import dphmm.cli.account  # what the command loads when it runs, loaded while every folder can still be read
import dphmm.statement.learning
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ledger = open_ledger(folder / "ledger.db")
    parts = dphmm.MarkovModel(np.ones(2) / 2, np.ones((2, 2)) / 2), dphmm.policy.complete(2), dphmm.StateSpace([0, 1])
    session = dphmm.ReleaseSession(*parts, 1, subject="ann", ledger=ledger)
    session.release(0)
    if sys.argv[1] == "closed":
        ledger.close()
    else:
        pid = os.fork()
        if pid == 0:
            session.release(1)
            os._exit(0)
        os.waitpid(pid, 0)
        assert (folder / "ledger.db-wal").exists()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    pid = os.fork()
    if pid == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        sys.argv = ["dphmm", "account", str(folder / "ledger.db")]
        try:
            print(open_ledger(folder / "ledger.db", read_only=True).spent("ann").epsilon, flush=True)
            main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code or 0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        os._exit(70)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    folder.chmod(0o755)
    sys.exit(code)
"""
    for left, spent in (("closed", "1"), ("killed", "2")):
        done = subprocess.run([sys.executable, "-c", code, left], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == spent
        assert f"epsilon {spent}" in done.stdout
