"""Ledgers that are wrong, and one that is right, each in a few statements: the harness must tell them apart.

A  sample, return, commit: what was returned may never be spent, and is drawn again.
B  spend, sample, return: spent in time, but nothing remembers the answer, so it is drawn again.
C  read, check, write without a lock: two processes release the same step and overwrite each other's total.
E  one immediate transaction that stores the answer and spends, then returns.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COST = "1/10"
#: Seconds between the read and the write of C, as of a database on another machine.
ROUND_TRIP = 0.004
Row = dict[str, Any]
Show = Callable[[Row], object]


class Protocol:
    """One subject's steps in a table, and a count of what was spent, each release counting one."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = FULL")
        # The tables appear at once: two processes may start together.
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("CREATE TABLE IF NOT EXISTS release (t INTEGER PRIMARY KEY, z INTEGER)")
        self.connection.execute("CREATE TABLE IF NOT EXISTS account (one INTEGER PRIMARY KEY, spent INTEGER)")
        self.connection.execute("INSERT OR IGNORE INTO account VALUES (1, 0)")
        self.connection.execute("COMMIT")

    def release(self, t: int, show: Show) -> None:
        """Show the answer of a step."""
        raise NotImplementedError

    def last_step(self) -> int:
        """The last step in the table."""
        return int(self._one("SELECT max(t) FROM release") or 0)

    def spent(self) -> int:
        """How many releases were spent."""
        return int(self._one("SELECT spent FROM account"))

    def rows(self) -> list[tuple[int, int | None]]:
        """The stored steps with their answers."""
        return self.connection.execute("SELECT t, z FROM release ORDER BY t").fetchall()

    def _one(self, statement: str, *values: int) -> Any:
        row = self.connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def _stored(self, t: int) -> int | None:
        return self._one("SELECT z FROM release WHERE t = ?", t)

    def _put(self, t: int, z: int | None) -> None:
        self.connection.execute("INSERT OR REPLACE INTO release VALUES (?, ?)", (t, z))

    def _spend(self) -> None:
        self.connection.execute("UPDATE account SET spent = spent + 1")


class ShowsBeforeCommit(Protocol):
    """A."""

    def release(self, t: int, show: Show) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        z = self._stored(t)
        if z is not None:
            self.connection.execute("ROLLBACK")
            show(shown(t, z))
            return
        z = sample()
        show(shown(t, z))
        self._put(t, z)
        self._spend()
        self.connection.execute("COMMIT")


class ForgetsTheAnswer(Protocol):
    """B."""

    def release(self, t: int, show: Show) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        if self._one("SELECT t FROM release WHERE t = ?", t) is None:
            self._put(t, None)
            self._spend()
        self.connection.execute("COMMIT")
        show(shown(t, sample()))


class TakesNoLock(Protocol):
    """C."""

    def release(self, t: int, show: Show) -> None:
        z, spent = self._stored(t), self.spent()
        if z is None:
            z = sample()
            time.sleep(ROUND_TRIP)
            self.connection.execute("UPDATE account SET spent = ?", (spent + 1,))
            self._put(t, z)
        show(shown(t, z))


class StoresThenShows(Protocol):
    """E."""

    def release(self, t: int, show: Show) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        z = self._stored(t)
        if z is None:
            z = sample()
            self._put(t, z)
            self._spend()
        self.connection.execute("COMMIT")
        show(shown(t, z))


PROTOCOLS: dict[str, type[Protocol]] = {
    "A": ShowsBeforeCommit,
    "B": ForgetsTheAnswer,
    "C": TakesNoLock,
    "E": StoresThenShows,
}


def sample() -> int:
    """An answer that no other draw gives."""
    return secrets.randbits(62)


def shown(t: int, z: int) -> Row:
    """What the client sees."""
    return {"key": ["ann", t, "state"], "z": [z], "epsilon": COST, "cost": COST, "plan": None}
