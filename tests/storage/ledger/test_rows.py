"""A stored answer is a fact for ever: the file itself keeps it single, age does not remove it, size does not blunt it.

Claims. Whatever program writes to the file, a second row for a stored step is refused by the table's own key. An answer
of the first of thousands of steps is given again like that of the last, for no charge and without a draw. Answers of
any size that noise can have come back digit by digit, one by one and in columns. They would fail for a wider key, for
keys that expire or caches that forget, and for numbers that pass through floats or shortened text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm.accounting import Caps, Ledger, MemoryLedger, PlanRecord, Request, Requests, SessionHeader
from dphmm.storage.ledger import open_ledger
from dphmm.types import IntArray
from storing import store, store_many

FREE = Caps()
PLAN = PlanRecord("p1", b"\xf0", 5, "{}")
TERM = Request("", "", 1, "release", Fraction(1, 2), Fraction(4, 3), PLAN, True, False)
STEPS = 3000


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = MemoryLedger() if request.param == "memory" else open_ledger(tmp_path / "ledger.db", timeout=5)
    with made.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", "state", {}))
    yield made
    made.close()


def asked(t: int) -> Request:
    return Request("ann", "state", t, "release", Fraction(1, 2), Fraction(4, 3), PLAN, True, False)


def many(steps: int) -> Requests:
    rows = np.zeros(steps, dtype=np.int64)
    return Requests("state", ("ann",), [TERM], rows, rows, np.arange(1, steps + 1), rows + 1)


def never(wanted: IntArray | None = None) -> tuple[int, ...]:
    raise AssertionError("drew although it must not")


CHANGES = ["z = '9'", "steps = 1", "plan = 2", "terms = 2", "plan = NULL, z = NULL", "plan = NULL, z = NULL, steps = 9"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_file_itself_refuses_a_second_answer_to_a_step(tmp_path: Path, change: str) -> None:
    with open_ledger(tmp_path / "ledger.db") as ledger, ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", "state", {}))
        store(transaction, asked(1), lambda: (3,), FREE)
    connection = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    connection.execute("CREATE TEMP TABLE other AS SELECT * FROM release")
    connection.execute(f"UPDATE other SET {change}")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute("INSERT INTO release SELECT * FROM other")
    connection.execute("UPDATE other SET t = 2")
    connection.execute("INSERT INTO release SELECT * FROM other")  # it was the step that was in the way
    connection.close()


def test_no_answer_is_too_old_to_be_given_again(ledger: Ledger) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(-1000, 1000, (STEPS, 1))
    with ledger.transaction() as transaction:
        store_many(transaction, many(STEPS), lambda wanted: drawn[wanted], FREE)
    spent = ledger.spent("ann")
    with ledger.transaction() as transaction:
        again = [store(transaction, asked(t), never, FREE).z for t in range(1, STEPS + 1)]
        assert again == [tuple(answer) for answer in drawn.tolist()]
        assert store_many(transaction, many(STEPS), never, FREE).z.tolist() == drawn.tolist()  # type: ignore[arg-type]
    assert ledger.spent("ann") == spent


@pytest.mark.parametrize("size", [2**53 - 1, 2**61, -(2**61) + 1, 123_456_789_012_345_678])
def test_large_answers_come_back_digit_by_digit(ledger: Ledger, size: int) -> None:
    drawn = np.array([[size, 1], [-7, -size]], dtype=np.int64)
    with ledger.transaction() as transaction:
        stored = store_many(transaction, many(2), lambda wanted: drawn[wanted], FREE)
        third = store(transaction, asked(3), lambda: (size, 0), FREE)
    assert stored.z.tolist() == drawn.tolist()
    assert [entry.z for entry in ledger.entries("ann", "state")] == [(size, 1), (-7, -size), (size, 0)]
    assert third.z == (size, 0)


def test_many_may_be_skips_alone(ledger: Ledger) -> None:
    skip = Request("", "", 1, "skip", None, None, None, True, False)
    one = np.array([0, 0]), np.array([0, 0]), np.array([1, 4]), np.array([3, 2])
    for _ in range(2):
        with ledger.transaction() as transaction:
            stored = store_many(transaction, Requests("state", ("ann",), [skip], *one), never, FREE)  # type: ignore[arg-type]
            assert not stored.z.any()
            assert transaction.last_step("ann", "state") == 5
