"""The catalogue as a table: ``python tests/faults/page.py`` prints docs/results/faults.csv."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "results" / "faults.csv"

#: Modules with a table of faults, and the numbers in it.
AREAS = {
    "test_model_faults": range(1, 29),
    "test_policy_faults": range(29, 46),
    "test_answer_faults": range(46, 66),
    "test_epsilon_faults": range(66, 81),
    "test_sequence_faults": range(81, 105),
    "test_command_faults": range(128, 130),
}


def tables() -> Iterator[tuple[str, list[object]]]:
    """Each module's table."""
    for module in AREAS:
        yield module, import_module(f"faults.{module}").FAULTS


def page() -> str:
    """The table, as the site shows it."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["", "what comes in", "what happens", "tested in"])
    for module, faults in tables():
        rows.writerows([fault.number, fault.comes, _happens(fault), f"`{module}`"] for fault in faults)
    return text.getvalue()


def _happens(fault: object) -> str:
    return "; ".join([fault.happens, *(f"**not yet**: {case.known}" for case in fault.cases if case.known)])


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.stdout.write(page())
