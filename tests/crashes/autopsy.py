"""Read what a dead process left: its lines, its files, and a copy of its ledger (the next process finds the crash)."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import dphmm
from crashes import protocols, work, world
from crashes.checker import Escape, Findings, Key, Row, View


@cache
def space() -> Any:
    """The space of the world."""
    return world.parts()[2]


def ledger_view(folder: Path) -> View:
    """What the ledger of a folder says once it has recovered; the ledger's own check must pass too."""
    if not (folder / "ledger.db").exists():
        return View({}, {})
    with tempfile.TemporaryDirectory() as copy:
        path = Path(copy) / "ledger.db"
        for suffix in ("", "-wal", "-journal"):
            if (folder / f"ledger.db{suffix}").exists():
                shutil.copy(folder / f"ledger.db{suffix}", f"{path}{suffix}")
        with dphmm.open_ledger(path) as ledger:
            ledger.check()
            return view_of(ledger)


def view_of(ledger: Any) -> View:
    """What an open ledger says."""
    rows = {
        (entry.subject, entry.t, entry.query): Row(
            entry.z, entry.epsilon or Fraction(0), entry.cost or Fraction(0), entry.through, entry.plan_hash
        )
        for key in ledger.sessions()
        for entry in ledger.entries(*key)
    }
    spent = {subject: ledger.spent(subject) for subject, _ in ledger.sessions()}
    return View(rows, {subject: (total.epsilon, total.cost) for subject, total in spent.items()})


def given_answers(view: View, constraint: str) -> dict[Key, Row]:
    """The rows of one session per subject that is never interrupted and draws the answers of the view."""
    model, policy, own_space = world.parts()
    ledger = _Dictated({key: row.z for key, row in view.rows.items()})
    sessions: dict[tuple[str, str], Any] = {}
    for subject, t, query in sorted(view.rows):
        if (subject, query) not in sessions:
            sessions[subject, query] = dphmm.ReleaseSession(
                model, policy, own_space, work.EPSILON, constraint=work.constraint_of(constraint), subject=subject,
                query=query, ledger=ledger,
            )  # fmt: skip
        row = view.rows[subject, t, query]
        if row.z is None:
            sessions[subject, query].skip(row.through - t + 1)
        else:
            sessions[subject, query].release(0)
    return dict(view_of(ledger).rows)


class _Dictated(dphmm.accounting.MemoryLedger):
    """A ledger in memory that stores given answers in place of what would be drawn."""

    def __init__(self, answers: dict[Key, Any]) -> None:
        super().__init__()
        self._answers = answers

    @contextmanager
    def transaction(self, subjects: Sequence[str] = ()) -> Iterator[Any]:
        with super().transaction(subjects) as transaction:
            add = transaction.add

            def dictated(admitted: Any, z: Any) -> Any:
                asked = admitted.request
                return add(admitted, None if z is None else self._answers[asked.subject, asked.t, asked.query])

            transaction.add = dictated  # type: ignore[method-assign]
            yield transaction


def protocol_view(folder: Path) -> View:
    """What one of the simulated ledgers says."""
    if not (folder / "ledger.db").exists():
        return View({}, {})
    ledger = protocols.Protocol(folder / "ledger.db")
    cost = Fraction(protocols.COST)
    rows = {
        ("ann", t, "state"): Row(None if z is None else (z,), cost, cost, t) for t, z in ledger.rows()
    }  # B has rows without an answer: they were charged all the same
    total = ledger.spent() * cost
    ledger.connection.close()
    return View(rows, {"ann": (total, total)})


def escapes_of(lines: Iterable[str]) -> tuple[Escape, ...]:
    """The escapes of the lines of a work, or of dphmm release -."""
    return tuple(_escape(json.loads(line)) for line in lines)


def escapes_in_files(folder: Path) -> dict[str, tuple[Escape, ...]]:
    """Every row that can be read in what killed writers left, and in the output file, which comes last."""
    place = folder / "out"
    parts = [file for file in place.glob(".released.csv.*.part") if ".privacy.json." not in file.name]
    return {file.name: _rows_of(file) for file in [*parts, *place.glob("released.csv")]}


def judge_files(folder: Path, rows: int) -> Findings:
    """An output file is there with all its rows or not at all; a statement beside it is about that very file."""
    findings = Findings()
    output, statement = folder / "out" / "released.csv", folder / "out" / "released.csv.privacy.json"
    if output.exists() and len(_rows_of(output)) != rows:
        findings.add("file", output.name, f"{len(_rows_of(output))} rows of {rows}")
    if statement.exists() and not (output.exists() and statement_is_of(output)):
        findings.add("file", statement.name, "it is about another file")
    return findings


def statement_is_of(output: Path) -> bool:
    """Whether the statement beside a file names its hash."""
    stated = json.loads(Path(f"{output}.privacy.json").read_text())["file"]["sha256"]
    return bool(stated == hashlib.sha256(output.read_bytes()).hexdigest())


def _rows_of(file: Path) -> tuple[Escape, ...]:
    # The last line of a killed writer may be cut anywhere.
    text = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return tuple(_escape(row) for row in csv.DictReader(text.splitlines()))


def _escape(row: dict[str, Any]) -> Escape:
    if "key" in row:
        subject, t, query = row["key"]
        return Escape((subject, t, query), tuple(row["z"]), Fraction(row["epsilon"]), Fraction(row["cost"]))
    z = world.lattice(space(), [float(row["z_0"]), float(row["z_1"])])
    # A file shows a cost as the float not below it: what was charged lies above the float before.
    least = Fraction(math.nextafter(float(row["cost"]), 0))
    step = int(row["step"])
    return Escape((row["user"], step, "state"), z, Fraction(str(row["epsilon"])), least)
