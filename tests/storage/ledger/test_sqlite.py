"""The ledger file: its settings, what its SQL says, paths and files that cannot be written, and who waits for whom."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm.accounting import Caps, PlanRecord, Requests, SessionHeader
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy
from dphmm.storage.ledger import SqliteLedger, open_ledger, schema, stored_spelling
from dphmm.storage.ledger import transaction as transaction_module
from dphmm.storage.ledger.connection import use_wal
from dphmm.types import IntArray
from storing import FREE, open_all, release, store, store_many


def big_plan(t: int) -> PlanRecord:
    """A plan set that does not compress: about one page."""
    return PlanRecord(f"p{t}", np.random.default_rng(t).bytes(4000), 32_000, "{}")


def fill(path: Path, steps: int) -> None:
    with open_ledger(path) as ledger:
        open_all(ledger)
        with ledger.transaction() as transaction:
            for t in range(1, steps + 1):
                store(transaction, release(t, plan=big_plan(t)), lambda t=t: (t,), FREE)  # type: ignore[misc]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    with open_ledger(path, timeout=5) as made:
        open_all(made)
        yield made


def refusal(call: Callable[[], object], kind: type[DphmmError] = InvalidInput) -> str:
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_settings_of_both_connections(ledger: SqliteLedger) -> None:
    for connection in (ledger._writer(), ledger._reader()):
        values = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema")
        }
        full = 2
        assert values == {
            "journal_mode": "wal",
            "synchronous": full,
            "foreign_keys": 1,
            "busy_timeout": 5000,
            "trusted_schema": 0,
        }
    assert ledger._reader().execute("PRAGMA query_only").fetchone()[0] == 1


def test_format_and_maker_are_written_down(ledger: SqliteLedger) -> None:
    meta = dict(ledger._reader().execute("SELECT key, value FROM meta"))
    assert (meta["format"], meta["epoch"], meta["features"]) == ("3", "0", "")
    assert re.fullmatch(r"dphmm \d+\.\d+.*", meta["created_by"])


def test_the_rule_of_spelling_stays(tmp_path: Path) -> None:
    open_ledger(tmp_path / "exact.db", spelling="exact").close()
    with open_ledger(tmp_path / "exact.db") as ledger:
        assert ledger.spelling == "exact"
    for read_only in (False, True):
        with pytest.raises(InvalidInput, match=r"^spelling: got same; expected exact, which this ledger was made with"):
            open_ledger(tmp_path / "exact.db", spelling="same", read_only=read_only)
    with pytest.raises(InvalidInput, match=r"^spelling: got alike"):
        open_ledger(tmp_path / "new.db", spelling="alike")
    assert not (tmp_path / "new.db").exists()


def test_a_ledger_keeps_the_latest_unicode_that_wrote_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"

    def recorded() -> str:
        with sqlite3.connect(path) as file:
            (version,) = file.execute("SELECT value FROM meta WHERE key = 'unicode'").fetchone()
        return str(version)

    open_ledger(path).close()
    assert recorded() == unicodedata.unidata_version
    for running, read_only, kept in (("99.1.0", True, unicodedata.unidata_version), ("99.1.0", False, "99.1.0"),
                                     ("99.0.0", False, "99.1.0")):  # fmt: skip
        monkeypatch.setattr("dphmm.storage.ledger.sqlite.UNICODE", running)
        open_ledger(path, read_only=read_only).close()
        assert recorded() == kept


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM meta WHERE key = 'spelling'",
        "UPDATE meta SET value = 'x' WHERE key = 'spelling'",
        "DELETE FROM meta WHERE key = 'unicode'",
        "UPDATE meta SET value = '?' WHERE key = 'unicode'",
    ],
)
def test_a_ledger_that_does_not_say_how_it_compares_names_is_refused(tmp_path: Path, change: str) -> None:
    open_ledger(tmp_path / "ledger.db").close()
    with sqlite3.connect(tmp_path / "ledger.db") as file:
        file.execute(change)
    with pytest.raises(InvalidInput, match="how it compares names"):
        open_ledger(tmp_path / "ledger.db")


def traced(ledger: SqliteLedger, work: Callable[[], object]) -> list[str]:
    said: list[str] = []
    ledger._writer().set_trace_callback(said.append)
    work()
    ledger._writer().set_trace_callback(None)
    return said


def test_the_sql_says_nothing_but_public_values(tmp_path: Path) -> None:
    """For two true states the SQL is the same but for z; neither it nor any file holds the state."""
    said = {}
    for state, z in (("CANARY_7f3a_one", "31415,-92653"), ("CANARY_7f3a_two", "27182,81828")):
        folder = tmp_path / state[-3:]
        folder.mkdir()
        with open_ledger(folder / "ledger.db") as ledger:
            answers = {state: tuple(map(int, z.split(",")))}

            def work(ledger: SqliteLedger = ledger, state: str = state, answers: dict = answers) -> None:  # type: ignore[type-arg]
                with ledger.transaction() as transaction:
                    transaction.open_session(SessionHeader("ann", "state", {"epsilon": "1/2"}))
                    for t in (1, 2):
                        store(transaction, release(t), lambda: answers[state], Caps(cost=Fraction(9)))
                    store(transaction, release(1), lambda: answers[state], FREE)

            said[state] = "\n".join(traced(ledger, work)).replace(z, "Z")
            content = b"".join(file.read_bytes() for file in folder.iterdir())
        assert b"CANARY" not in content
    one, two = said.values()
    assert one == two
    assert one.count("'Z'") == 2
    assert "CANARY" not in one


def test_a_store_is_two_statements_and_an_account_one(ledger: SqliteLedger) -> None:
    def work() -> None:
        with ledger.transaction() as transaction:
            for t in range(1, 501):
                store(transaction, release(t), lambda: (1, 2), Caps(epsilon=Fraction(1000)))

    said = traced(ledger, work)
    assert len(said) < 2 * 500 + 20
    assert sum(statement.startswith("UPDATE account") for statement in said) == 1


def many_of(count: int) -> Requests:
    steps = np.arange(1, count + 1)
    return Requests("state", ["ann"], [release(1)], steps * 0, steps * 0, steps, steps * 0 + 1)


def doubled(wanted: IntArray) -> IntArray:
    return np.stack([wanted, 2 * wanted], axis=1)


def test_many_are_one_statement_each_and_one_account(ledger: SqliteLedger) -> None:
    def work() -> None:
        with ledger.transaction() as transaction:
            store_many(transaction, many_of(500), doubled, Caps(epsilon=Fraction(1000)))

    said = traced(ledger, work)
    assert len(said) < 500 + 20
    assert sum(statement.startswith("UPDATE account") for statement in said) == 1


def test_many_that_the_file_does_not_hold_as_written_are_not_shown(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a row read back otherwise than written, nothing of its transaction may be committed."""
    other = "SELECT t, replace(z, '7,14', '7,15') FROM release WHERE session = ? AND t BETWEEN ? AND ? ORDER BY t"
    monkeypatch.setattr(transaction_module, "_READ_BACK_MANY", other)

    def work() -> None:
        with ledger.transaction() as transaction, contextlib.suppress(DphmmError):
            store_many(transaction, many_of(9), doubled, FREE)

    assert "failed before" in refusal(work, DphmmError)
    assert ledger.entries("ann", "state") == []
    monkeypatch.undo()
    work()
    assert [entry.z for entry in ledger.entries("ann", "state")] == [(k, 2 * k) for k in range(9)]


def test_reopening_gives_the_same_bytes_of_record(path: Path) -> None:
    fill(path, 20)
    with open_ledger(path) as ledger:
        before = [ledger.entries("ann", "state"), ledger.spent("ann"), ledger.plan("p7")]
        dump = list(ledger._reader().iterdump())
    with open_ledger(path) as ledger:
        ledger.check()
        assert [ledger.entries("ann", "state"), ledger.spent("ann"), ledger.plan("p7")] == before
        open_all(ledger)
        with ledger.transaction() as transaction:
            for entry in before[0]:  # type: ignore[union-attr]
                again = release(entry.t, plan=ledger.plan(entry.plan_hash or ""))
                assert store(transaction, again, lambda: (0,), Caps(epsilon=Fraction(0))) == entry
        assert list(ledger._reader().iterdump()) == dump
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db"]


def test_a_damaged_snapshot_is_none(path: Path) -> None:
    """It can be recomputed. One that is wrong would plan the next step from a belief that nobody ever had."""
    for changed in ("belief = x'00'", "belief = 'text'", "digest = x'00'", "t = 't'"):
        path.unlink(missing_ok=True)
        fill(path, 2)
        with open_ledger(path) as ledger, ledger.transaction() as transaction:
            transaction.put_snapshot("ann", "state", 2, b"belief")
        assert open_ledger(path).snapshot("ann", "state") == (2, b"belief")
        connection = sqlite3.connect(path)
        connection.execute(f"UPDATE snapshot SET {changed}")
        connection.commit()
        connection.close()
        with open_ledger(path) as ledger:
            assert ledger.snapshot("ann", "state") is None
            ledger.check()


@pytest.mark.parametrize(("plans", "most"), [(1, 50), (3000, 150)])
def test_a_row_takes_few_bytes(path: Path, plans: int, most: int) -> None:
    """With one plan for all rows, and with a plan set for each, as delta-sets have; empty tables are set aside."""
    with open_ledger(path):
        empty = path.stat().st_size
    rng = np.random.default_rng(0)
    description = '{"cost": "11", "given_partners": [], "joins": [], "mechanisms": [], "partners": []}'
    made = [PlanRecord(rng.bytes(32).hex(), rng.bytes(18), 144, description) for _ in range(plans)]
    with open_ledger(path) as ledger:
        open_all(ledger)
        with ledger.transaction() as transaction:
            for t in range(1, 3001):
                store(transaction, release(t, plan=made[t % plans]), lambda t=t: (t % 99, -(t % 77)), FREE)  # type: ignore[misc]
    assert (path.stat().st_size - empty) / 3000 <= most


# --- paths and files that are no ledger


def test_paths_that_can_hold_no_ledger(tmp_path: Path) -> None:
    assert "folder that exists" in refusal(lambda: open_ledger(tmp_path / "none" / "ledger.db"))
    assert "regular file" in refusal(lambda: open_ledger(tmp_path))
    assert "path of a file" in refusal(lambda: open_ledger(tmp_path / "a\0b"))
    assert "path of a file" in refusal(lambda: open_ledger(3))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_without_waiting(path: Path) -> None:
    os.mkfifo(path)
    assert "regular file" in refusal(lambda: open_ledger(path))


def test_a_file_or_folder_that_cannot_be_written() -> None:
    """As a user without rights: root may write everywhere."""
    code = """
import os, pathlib, tempfile
from dphmm.errors import InvalidInput
from dphmm.storage.ledger import open_ledger, stored_spelling
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    open_ledger(folder / "ledger.db").close()
    (folder / "ledger.db").chmod(0o444)
    folder.chmod(0o555)
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    for file in ("ledger.db", "new.db"):
        try:
            open_ledger(folder / file)
        except InvalidInput as error:
            print(error)
    if mine == 0:
        os.seteuid(0)
    folder.chmod(0o755)
    (folder / "ledger.db").chmod(0o666)
    folder.chmod(0o555)
    if mine == 0:
        os.seteuid(65534)
    try:
        open_ledger(folder / "ledger.db")
    except InvalidInput as error:
        print(error)
    if mine == 0:
        os.seteuid(0)
    folder.chmod(0o755)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done
    assert [line for line in lines if "can be written" not in line] == []


def test_a_file_that_turns_read_only_lets_nothing_out(ledger: SqliteLedger) -> None:
    ledger._writer().execute("PRAGMA query_only = ON")
    shown = []

    def work() -> None:
        with ledger.transaction() as transaction:
            entry = store(transaction, release(1), lambda: (1,), FREE)
        shown.append(entry)

    assert "can be written" in refusal(work)
    assert shown == []
    assert ledger.entries("ann", "state") == []


# --- a full disk, a lock that is held


def test_a_full_disk_lets_nothing_out_and_a_retry_is_safe(ledger: SqliteLedger) -> None:
    limit = ledger._writer()
    pages = limit.execute("PRAGMA page_count").fetchone()[0]
    limit.execute(f"PRAGMA max_page_count = {pages + 4}")
    plans = {t: big_plan(t) for t in range(1, 21)}
    drawn = []

    def work() -> None:
        with ledger.transaction() as transaction:
            for t, plan in plans.items():
                store(transaction, release(t, plan=plan), lambda t=t: drawn.append(t) or (t,), FREE)  # type: ignore[misc]

    assert "disk is full" in refusal(work, DphmmError)
    assert 1 < len(drawn) < 20
    assert ledger.entries("ann", "state") == []
    assert ledger.spent("ann").epsilon == 0
    ledger._writer().execute("PRAGMA max_page_count = 1000000")
    work()
    ledger.check()
    assert len(ledger.entries("ann", "state")) == 20


def test_a_transaction_that_failed_cannot_go_on(ledger: SqliteLedger) -> None:
    """SQLite may roll back by itself on a full disk: a later store would otherwise commit alone."""
    pages = ledger._writer().execute("PRAGMA page_count").fetchone()[0]
    ledger._writer().execute(f"PRAGMA max_page_count = {pages + 2}")

    def work() -> None:
        with ledger.transaction() as transaction:
            with pytest.raises(DphmmError, match="disk is full"):
                for t in range(1, 21):
                    store(transaction, release(t, plan=big_plan(t)), lambda: (1,), FREE)
            # Nor may it hide why it failed.
            with pytest.raises(DphmmError, match="disk is full"):
                store(transaction, release(1), lambda: (1,), FREE)
            # Leaving normally must not commit what is left of it.

    assert "disk is full" in refusal(work, DphmmError)
    assert ledger.entries("ann", "state") == []
    assert ledger.spent("ann").epsilon == 0


def test_an_interrupt_right_after_the_beginning_locks_nobody_out(ledger: SqliteLedger, path: Path) -> None:
    # Ctrl-C can come when BEGIN has been executed and the block has not been entered.
    ledger._begun()
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (7,), FREE)
    with open_ledger(path, timeout=0.1) as other, other.transaction() as transaction:
        store(transaction, release(2), lambda: (8,), FREE)
    assert [entry.z for entry in ledger.entries("ann", "state")] == [(7,), (8,)]


def test_a_file_held_by_another_is_busy(ledger: SqliteLedger, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with open_ledger(path, timeout=0.05) as waiting:
        text = refusal(lambda: waiting.transaction().__enter__(), LedgerBusy)
        assert "try again" in text
        assert waiting.sessions() == [("ann", "state")]  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        with waiting.transaction() as transaction:
            store(transaction, release(1), lambda: (1,), FREE)


def test_a_thread_waits_no_longer_than_the_timeout(path: Path) -> None:
    with open_ledger(path, timeout=0.05) as ledger, ledger.transaction():
        caught: list[str] = []
        ask = threading.Thread(
            target=lambda: caught.append(refusal(lambda: ledger.transaction().__enter__(), LedgerBusy))
        )
        ask.start()
        ask.join()
    assert "another thread" in caught[0]


def test_a_new_file_that_another_makes_meanwhile(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    schema.create(other)
    commit = threading.Timer(0.15, other.execute, ("COMMIT",))
    commit.start()
    with open_ledger(path, timeout=5) as ledger:
        assert ledger.sessions() == []
    commit.join()
    other.close()


def test_a_switch_to_the_log_waits_for_readers(path: Path) -> None:
    """Two processes open a new file: one has made its tables, the other still reads it without a log."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    schema.prepare(other, path)
    other.execute("BEGIN")
    other.execute("SELECT * FROM meta").fetchall()
    assert "try again" in refusal(lambda: open_ledger(path, timeout=0.05), LedgerBusy)
    end = threading.Timer(0.15, other.execute, ("COMMIT",))
    end.start()
    with open_ledger(path, timeout=5) as ledger:
        assert ledger._writer().execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    end.join()
    other.close()


def test_the_switch_to_the_log_is_tried_again(path: Path) -> None:
    """Of two processes that switch at once SQLite tells one, at once, that the file is busy."""
    with sqlite3.connect(path, isolation_level=None, timeout=0) as real:
        schema.prepare(real, path)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        tried = []

        class Contended:
            def execute(self, statement: str) -> sqlite3.Cursor:
                tried.append(statement)
                if len(tried) == 3:
                    holder.execute("ROLLBACK")
                return real.execute(statement)

        use_wal(Contended(), path, 5.0)  # type: ignore[arg-type]
        assert len(tried) == 3
    holder.close()
    real.close()


def test_one_command_at_a_time(path: Path) -> None:
    with open_ledger(path) as one, open_ledger(path) as two:
        with one.lease("commands"):
            for other in (one, two):
                assert "another dphmm command" in refusal(lambda o=other: o.lease("commands").__enter__(), LedgerBusy)  # type: ignore[misc]
            open_all(two)
        with two.lease("commands"):
            pass


def test_a_ledger_is_called_by_its_file(tmp_path):
    ledger = open_ledger(tmp_path / "ledger.db")
    assert repr(ledger) == "SqliteLedger('ledger.db')"
    ledger.close()


def test_an_interrupt_before_a_transaction_could_end_is_not_hidden(path: Path) -> None:
    """Ctrl-C may come when a block has ended and its transaction has not been told yet."""
    fill(path, 1)
    with pytest.raises(KeyboardInterrupt), open_ledger(path) as ledger:
        begun = ledger.transaction()
        begun.__enter__().open_session(SessionHeader("bob", "state", {}))
        raise KeyboardInterrupt
    assert not path.with_name(f"{path.name}-wal").exists()
    with open_ledger(path) as again:
        assert again.sessions() == [("ann", "state")]


def test_a_file_without_tables_has_no_rule_of_spelling_yet(tmp_path, monkeypatch):
    """A program that was killed while it made the ledger left nothing, however the file is named."""
    monkeypatch.chdir(tmp_path)
    assert stored_spelling("ledger.db") is None
    (tmp_path / "ledger.db").touch()
    assert stored_spelling("ledger.db") is stored_spelling(tmp_path / "ledger.db") is None
    with open_ledger("ledger.db", spelling="exact"):
        pass
    assert stored_spelling("ledger.db") == "exact"
    (tmp_path / "other.db").write_bytes(
        b"no database at all, but as long as a header of one would be, and more than it"
    )
    with pytest.raises(InvalidInput):
        stored_spelling("other.db")
