"""What was not tested, in one line at the end of a run; and, for .ci/run, that nothing else was left out.

With ``DPHMM_TESTS_SKIPS=listed`` a run fails where a test is skipped for a reason that `skips.toml` does not allow;
with ``none`` for any reason.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LISTED = "DPHMM_TESTS_SKIPS"
FILE = Path(__file__).with_name("skips.toml")


@dataclass(frozen=True)
class Skip:
    """A reason to skip tests, what is not tested then, and what one does to have it tested."""

    reason: str
    left_out: str
    get: str
    allowed: bool
    source: str = ""


def known() -> list[Skip]:
    """The reasons of `skips.toml`."""
    return [Skip(**entry) for entry in tomllib.loads(FILE.read_text())["skip"]]


def reasons(reports: Iterable[Any]) -> list[str]:
    """Why each test was skipped; a file of tests that was skipped as a whole counts once, in whichever process."""
    told = {report.nodeid: str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports}
    return list(told.values())


def not_tested(told: Iterable[str]) -> str:
    """One line: how many tests of what were left out and how to get them; empty where none were."""
    counts: Counter[Skip | None] = Counter(_of(reason) for reason in told)
    parts = [f"{skip.left_out} ({counts[skip]}: {skip.get})" for skip in known() if counts[skip]]
    others = [f"{counts[None]} more (pytest -rs says why)"] if counts[None] else []
    return "NOT TESTED: " + "; ".join([*parts, *others]) if parts or others else ""


def not_allowed(told: Iterable[str], rule: str = "listed") -> list[str]:
    """The reasons that a run under a rule may not have, each once: "listed", "none", or any other for no rule."""
    if rule not in ("listed", "none"):
        return []
    found = dict.fromkeys(told)
    return [one for one in found if rule == "none" or (skip := _of(one)) is None or not skip.allowed]


def _of(reason: str) -> Skip | None:
    return next((skip for skip in known() if reason.startswith(skip.reason)), None)


def finish(session: pytest.Session) -> None:
    """Fail a run that left out what it may not; called when all reports have arrived."""
    if session.exitstatus == 0 and not_allowed(_told(session.config), os.environ.get(LISTED, "")):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def summarise(config: pytest.Config) -> None:
    """The last lines of a run."""
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    told = _told(config)
    rule = os.environ.get(LISTED, "")
    what = "none may be" if rule == "none" else "for a reason that tests/skips.toml does not allow"
    for reason in not_allowed(told, rule):
        terminal.write_line(f"FAILED: skipped, {what}: {reason}", red=True)
    if line := not_tested(told):
        terminal.write_line(line, yellow=True)


def _told(config: pytest.Config) -> list[str]:
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    return [] if terminal is None else reasons(terminal.stats.get("skipped", ()))
