"""What a machine may refuse a process: room, pages, the right to write, the right time, a commit in time."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
from collections.abc import Callable
from typing import Any


def file_size(most: int) -> None:
    """No file may grow beyond so many bytes, as on a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def pages(most: int) -> None:
    """No database may have more pages: SQLite's own "disk full"."""
    connect = sqlite3.connect

    def limited(*args: Any, **choices: Any) -> sqlite3.Connection:
        connection = connect(*args, **choices)
        connection.execute(f"PRAGMA max_page_count = {most}")
        return connection

    sqlite3.connect = limited  # type: ignore[assignment]


def powerless(_: int) -> None:
    """Root obeys the modes of files like anybody else."""
    if os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    override, search = 1, 2
    for index in (0, 1):
        sets[index] &= ~(1 << override | 1 << search)
    assert libc.capset(header, sets) == 0


def clock(seconds: int) -> None:
    """The clock shows another time, and each look at it is a day earlier than the one before."""
    shown = [float(seconds)]

    def earlier() -> float:
        shown[0] -= 86_400.0
        return shown[0]

    time.time = earlier
    time.time_ns = lambda: int(earlier() * 1e9)


class _Late(sqlite3.Connection):
    """Says that it has committed, and does so when the next transaction begins."""

    owes = False

    @property
    def in_transaction(self) -> bool:
        return super().in_transaction and not self.owes

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.owes = True
            return super().execute("SELECT 1")
        if self.owes:
            self.owes = False
            super().execute("COMMIT")
        return super().execute(statement, *values)

    def close(self) -> None:
        if self.owes:
            super().execute("COMMIT")
        super().close()


def late_commits(_: int) -> None:
    """The database breaks its word: what it said it had committed is gone if the process dies soon."""
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **choices: connect(*args, **{**choices, "factory": _Late})  # type: ignore[assignment]


LIMITS: dict[str, Callable[[int], None]] = {
    "file_size": file_size,
    "pages": pages,
    "powerless": powerless,
    "clock": clock,
    "late_commits": late_commits,
}
