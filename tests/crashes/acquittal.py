"""Assertions that the tests share: a history is clean, and a work goes on to the end of a run without crashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from crashes import autopsy
from crashes.arena import Arena, Ended
from crashes.campaign import Trial
from crashes.checker import Row, Run, judge, judge_final
from crashes.death import Death


def run_of(ended: Ended) -> Run:
    """What escaped of one process."""
    return Run(autopsy.escapes_of(ended.lines), str(ended.code))


def acquitted(runs: Iterable[Run], folder: Path, caps: Mapping[str, Fraction] | None = None) -> None:
    """No finding in a history and the ledger after it."""
    found = judge(runs, autopsy.ledger_view(folder), caps)
    assert not found, found


def ends_as_undisturbed(
    arena: Arena, trial: Trial, folder: Path, runs: list[Run], reference: Mapping[Any, Row]
) -> None:
    """The same work without a fault goes on to the end of a run without crashes."""
    ended = trial.start(arena, folder, Death()).finish()
    assert ended.code == 0, ended.errors
    acquitted([*runs, run_of(ended)], folder)
    found = judge_final(autopsy.ledger_view(folder), reference, answers=trial.compare == "all")
    assert not found, found
