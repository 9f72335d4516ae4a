"""What is no whole ledger is refused: other files, other tables, newer formats, damaged pages, rows and accounts.

It could fail where a check stops early, looks at one table alone, or changes the file that it looks at.

A stored answer is a fact for ever: the file itself keeps it single, age does not remove it, size does not blunt it.

Claims. Whatever program writes to the file, a second row for a stored step is refused by the table's own key. An answer
of the first of thousands of steps is given again like that of the last, for no charge and without a draw. Answers of
any size that noise can have come back digit by digit, one by one and in columns. They would fail for a wider key, for
keys that expire or caches that forget, and for numbers that pass through floats or shortened text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dphmm.accounting import Ledger, Request, Requests
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.ledger import SqliteLedger, open_ledger
from storage.ledger.test_sqlite import fill, many_of, refusal
from storing import FREE, never, open_all, release, store, store_many


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("content", [b"user,t,lat\n" * 100, b"SQLite format 3\0" + b"\1" * 200, b"\0" * 4096])
def test_a_file_that_is_no_database_is_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "ledger" in refusal(lambda: open_ledger(path))
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_another_programs_database_is_left_as_it_is(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE meta (name TEXT)")
    other.commit()
    other.close()
    content = path.read_bytes()
    assert "something else" in refusal(lambda: open_ledger(path))
    assert path.read_bytes() == content


def altered(path: Path, *statements: str) -> None:
    fill(path, 3)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_newer_format_asks_for_an_upgrade(path: Path) -> None:
    altered(path, "UPDATE meta SET value = '4' WHERE key = 'format'")
    for read_only in (False, True):
        text = refusal(lambda read_only=read_only: open_ledger(path, read_only=read_only))  # type: ignore[misc]
        assert "format 4" in text and "upgrade dphmm" in text


def test_a_file_that_needs_a_feature_of_later_asks_for_an_upgrade(path: Path) -> None:
    """What a later version keeps with the account would be passed by a version that does not look for it."""
    altered(path, "UPDATE meta SET value = 'caps labels promise' WHERE key = 'features'")
    for read_only in (False, True):
        text = refusal(lambda read_only=read_only: open_ledger(path, read_only=read_only))  # type: ignore[misc]
        assert "'labels'" in text and "upgrade dphmm" in text


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'x' WHERE key = 'format'",
        "UPDATE meta SET value = '1' WHERE key = 'format'",
        "DELETE FROM meta WHERE key = 'features'",
        "DELETE FROM meta",
        "CREATE TRIGGER free AFTER INSERT ON release BEGIN DELETE FROM account; END",
        "DROP TABLE account",
        "ALTER TABLE account ADD COLUMN gift TEXT",
        "CREATE VIEW v AS SELECT 1",
    ],
)
def test_a_ledger_with_other_tables_is_refused(path: Path, statement: str) -> None:
    altered(path, statement)
    assert "ledger" in refusal(lambda: open_ledger(path))


def test_a_damaged_page_is_found_on_opening(path: Path) -> None:
    fill(path, 40)
    content = bytearray(path.read_bytes())
    found = 0
    for page in range(1, len(content) // 4096):
        damaged = content.copy()
        damaged[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
        path.write_bytes(damaged)
        try:
            open_ledger(path).close()
        except InvalidInput as error:
            assert "undamaged" in str(error) and "\n" not in str(error)
            found += 1
    assert found > 40  # every page of a tree; what is left lies inside one long value
    path.write_bytes(content[: len(content) // 2])
    assert "undamaged" in refusal(lambda: open_ledger(path))


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE terms SET epsilon = 'x'", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE terms SET cost = '1/0'", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE terms SET cost = 'inf'", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE terms SET kind = 'skip', epsilon = NULL, cost = NULL", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE terms SET kind = 'decide'", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE release SET z = NULL, plan = NULL", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE release SET z = '1,,2' WHERE t = 2", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE release SET z = CAST(x'ff' AS TEXT)", lambda ledger: ledger.entries("ann", "state")),
        ("UPDATE account SET epsilon = ''", lambda ledger: ledger.spent("ann")),
        ("UPDATE document SET text = '[1]'", lambda ledger: ledger.header("ann", "state")),
        ("UPDATE plan SET states = x'00'", lambda ledger: ledger.plan("p1")),
        ("UPDATE plan SET n_states = 7", lambda ledger: ledger.plan("p1")),
    ],
)
def test_a_damaged_row_is_one_line(path: Path, statement: str, read: Callable[[SqliteLedger], object]) -> None:
    altered(path, statement)
    with open_ledger(path) as ledger:
        assert "undamaged" in refusal(lambda: read(ledger))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE account SET epsilon = '0'",
        "UPDATE account SET cost_nanos = '1'",
        "DELETE FROM account",
        "INSERT INTO account VALUES (9, 'eve', 'eve', 0, '1', '0', NULL, NULL, NULL, NULL, NULL, 0, NULL)",
        "UPDATE account SET version = version + 1",
        "UPDATE account SET version = 3",
        "INSERT INTO session (account, query, options) VALUES (1, 'work', 1)",
        "DELETE FROM release WHERE t = 2",
        "DELETE FROM plan",
    ],
)
def test_the_check_recounts_every_account(path: Path, statement: str) -> None:
    altered(path, statement)
    with open_ledger(path) as ledger:
        assert "ledger ledger.db: " in refusal(ledger.check, DphmmError)


STEPS = 3000
CHANGES = ["z = '9'", "steps = 1", "plan = 2", "terms = 2", "plan = NULL, z = NULL", "plan = NULL, z = NULL, steps = 9"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_file_itself_refuses_a_second_answer_to_a_step(tmp_path: Path, change: str) -> None:
    fill(tmp_path / "ledger.db", 1)
    connection = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    connection.execute("CREATE TEMP TABLE other AS SELECT * FROM release")
    connection.execute(f"UPDATE other SET {change}")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute("INSERT INTO release SELECT * FROM other")
    connection.execute("UPDATE other SET t = 2")
    connection.execute("INSERT INTO release SELECT * FROM other")  # it was the step that was in the way
    connection.close()


def test_no_answer_is_too_old_to_be_given_again(ledger: Ledger) -> None:
    open_all(ledger)
    drawn = np.random.default_rng(0).integers(-1000, 1000, (STEPS, 1))
    with ledger.transaction() as transaction:
        store_many(transaction, many_of(STEPS), lambda wanted: drawn[wanted], FREE)
    spent = ledger.spent("ann")
    with ledger.transaction() as transaction:
        again = [store(transaction, release(t), never, FREE).z for t in range(1, STEPS + 1)]
        assert again == [tuple(answer) for answer in drawn.tolist()]
        assert store_many(transaction, many_of(STEPS), never, FREE).z.tolist() == drawn.tolist()  # type: ignore[arg-type]
    assert ledger.spent("ann") == spent


@pytest.mark.parametrize("size", [2**53 - 1, 2**61, -(2**61) + 1, 123_456_789_012_345_678])
def test_large_answers_come_back_digit_by_digit(ledger: Ledger, size: int) -> None:
    open_all(ledger)
    drawn = np.array([[size, 1], [-7, -size]], dtype=np.int64)
    with ledger.transaction() as transaction:
        stored = store_many(transaction, many_of(2), lambda wanted: drawn[wanted], FREE)
        third = store(transaction, release(3), lambda: (size, 0), FREE)
    assert stored.z.tolist() == drawn.tolist()
    assert [entry.z for entry in ledger.entries("ann", "state")] == [(size, 1), (-7, -size), (size, 0)]
    assert third.z == (size, 0)


def test_many_may_be_skips_alone(ledger: Ledger) -> None:
    skip = Request("", "", 1, "skip", None, None, None, True, False)
    one = np.array([0, 0]), np.array([0, 0]), np.array([1, 4]), np.array([3, 2])
    open_all(ledger)
    for _ in range(2):
        with ledger.transaction() as transaction:
            stored = store_many(transaction, Requests("state", ("ann",), [skip], *one), never, FREE)  # type: ignore[arg-type]
            assert not stored.z.any()
            assert transaction.last_step("ann", "state") == 5
