"""Where a process dies: kinds of death, and what arms them inside the process itself.

A point is the beginning of an SQL statement, by its first words; which points there are is learnt by running the
work once and listing what it comes to, so nothing here knows how the ledger does its work.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

WORDS = 3


@dataclass(frozen=True)
class Death:
    """One way to die.

    ``kind`` is "none", "delay" (killed from outside after ``seconds``), "statement" (itself, before its n-th SQL
    statement), "point" (before the n-th statement that begins with ``name``), "call" (at the n-th place where Python
    looks for signals, in the function ``name``, file.py:function, or in any) or "syscall" (before its n-th call that
    writes; with ``error`` that call fails instead). ``signal`` is what is sent. One that Python handles must not be
    sent at a statement: SQLite's trace swallows what a handler raises.
    """

    kind: str = "none"
    n: int = 0
    name: str = ""
    seconds: float = 0.0
    signal: int = signal.SIGKILL
    error: int | None = None
    calls: tuple[str, ...] = ()
    seen: str = ""


@dataclass(frozen=True)
class Points:
    """What one whole run of a work came to, and how long it took."""

    seconds: float
    statements: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    #: Statements that a later run in the same folder comes to as well.
    later: frozenset[str] = frozenset()

    def draw(self, kind: str, rng: random.Random, first: bool = True) -> Death:
        """A death somewhere in such a run, all places of the kind alike; ``first`` says that nothing was done yet."""
        if kind == "delay":
            return Death("delay", seconds=rng.uniform(0, self.seconds))
        if kind == "statement":
            return Death("statement", n=rng.randint(1, self.statements.total()))
        if kind == "point":
            # Each name alike, however often it comes: the rare ones are where commits happen.
            name = rng.choice(sorted(self.statements if first else self.later))
            return Death("point", n=rng.randint(1, self.statements[name]), name=name)
        assert kind == "syscall", kind
        return Death("syscall", n=rng.randint(1, self.calls.total()), calls=tuple(sorted(self.calls)))


def arm(death: Death) -> None:
    """Make this process die at its SQL statement, or list its statements in ``death.seen``."""
    if death.kind in ("statement", "point"):
        _on_statements(_Countdown(death))
    elif death.kind == "call":
        sys.setprofile(_Calls(death))
    elif death.kind == "record":
        _on_statements(_Record(Path(death.seen)))


def head(statement: str) -> str:
    """The name of a statement: its first words."""
    return " ".join(statement.split()[:WORDS])


class _Countdown:
    def __init__(self, death: Death) -> None:
        self.left, self.name, self.signal = death.n, death.name, death.signal

    def __call__(self, statement: str) -> None:
        if self.name and head(statement) != self.name:
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.signal)


class _Calls:
    def __init__(self, death: Death) -> None:
        self.left, self.name, self.signal = death.n, death.name, death.signal

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        # Between calls Python does not look whether a signal came.
        code = frame.f_code
        if event not in ("call", "c_return") or not f"{code.co_filename}:{code.co_name}".endswith(self.name):
            return
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            os.kill(os.getpid(), self.signal)


class _Record:
    def __init__(self, path: Path) -> None:
        self.file = path.open("a", encoding="utf-8")

    def __call__(self, statement: str) -> None:
        self.file.write(head(statement) + "\n")
        self.file.flush()


def _on_statements(hook: Callable[[str], None]) -> None:
    connect = sqlite3.connect

    def watched(*args: Any, **choices: Any) -> sqlite3.Connection:
        connection = connect(*args, **choices)
        connection.set_trace_callback(hook)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]
