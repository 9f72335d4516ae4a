"""Ledgers alone: storing releases that were drawn at no cost, in memory and in a SQLite file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure
from benchmarks.speed.timing import timed
from dphmm.accounting.ledger import Caps, Ledger, MemoryLedger, PlanRecord, Request, SessionHeader
from dphmm.release.batch import CHUNK

STEPS = 100
_STATES = 400
_PLAN = PlanRecord("plan", np.packbits(np.ones(_STATES, dtype=bool)).tobytes(), _STATES, "{}")

#: Makes a new ledger in an empty folder.
NewLedger = Callable[[Path], Ledger]
LEDGERS: dict[str, NewLedger] = {
    "memory": lambda folder: MemoryLedger(),
    "SQLite file": lambda folder: dphmm.open_ledger(folder / "ledger.db"),
}


def figures(effort: Effort) -> Iterator[Figure]:
    """Releases of many subjects, as many to a transaction as `release_many` puts there, and one to a transaction."""
    for name, new in LEDGERS.items():
        for rows, chunk in effort.pick(((10_000, CHUNK), (200, 1)), ((50_000, CHUNK), (1000, 1))):
            with tempfile.TemporaryDirectory() as folder:
                yield _figure(name, new, Path(folder), rows, chunk, effort)


def _figure(name: str, new: NewLedger, folder: Path, rows: int, chunk: int, effort: Effort) -> Figure:
    folders = (folder / str(number) for number in range(1000))

    def empty() -> Ledger:
        place = next(folders)
        place.mkdir()
        return new(place)

    def filled(ledger: Ledger) -> None:
        _fill(ledger, rows, chunk)
        ledger.close()

    rate = timed(filled, effort.pick(3, 5), prepare=empty).per_second(rows)
    return Figure("ledger", f"{name}: releases, {chunk:,} to a transaction", rate, "/s")


def _fill(ledger: Ledger, rows: int, chunk: int) -> None:
    caps, cost = Caps(), Fraction(3)
    for first in range(0, rows, chunk):
        with ledger.transaction() as transaction:
            for row in range(first, min(first + chunk, rows)):
                subject, t = f"user{row // STEPS}", row % STEPS + 1
                if t == 1:
                    transaction.open_session(SessionHeader(subject, "state", {"model": "m"}))
                request = Request(subject, "state", t, "release", Fraction(1), cost, _PLAN, True, False)
                transaction.add(transaction.admit(request, caps), (3, 4))
