"""The catalogue as a page: ``python tests/faults/page.py`` prints docs/faults.md, made from the tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "faults.md"

#: Modules with a table of faults, the numbers in it, and what they are about.
AREAS = {
    "test_model_faults": (range(1, 29), "Markov models"),
    "test_policy_faults": (range(29, 46), "Policies"),
    "test_answer_faults": (range(46, 66), "Answers of states"),
    "test_epsilon_faults": (range(66, 81), "Privacy parameters"),
    "test_sequence_faults": (range(81, 105), "Rows and files"),
    "test_command_faults": (range(128, 130), "Commands that are killed, or run at the same time"),
}

_TOP = """\
# Faults

What happens when something wrong, or odd, comes in. Each row is tested on the surfaces it can come in by: calls of the
library, and commands of `dphmm`. Everywhere

- *refused* means: one line that names the field, what came and what was expected; exit 2 (1 where the promise refuses);
  no traceback, and nothing written or spent;
- *set aside* means: the row is left out and listed by number and reason, without its values, in a file for the owner
  alone; all other rows are released; exit 3;
- no message, table or ledger repeats a private value: every case looks for names, places and moments that occur only in
  its input.

`python tests/faults/page.py > docs/faults.md` makes this page from the tables in `tests/faults`.

`tests/fuzz` spoils every format that is read at random, by bytes and by structure. A file loads or is refused as above;
no other error, no code run, nothing written, within 10 s and 256 MB. `python tests/fuzz/guided.py --seconds 60` looks
further, guided by coverage, where Atheris is installed.
"""


def tables() -> Iterator[tuple[str, list[object]]]:
    """Each module's table."""
    for module in AREAS:
        yield module, import_module(f"faults.{module}").FAULTS


def page() -> str:
    """The page."""
    parts = [_TOP]
    for module, faults in tables():
        _, title = AREAS[module]
        head = "| | what comes in | what happens |\n|---|---|---|\n"
        parts.append(f"\n## {title}\n\n`tests/faults/{module}.py`\n\n{head}")
        parts.extend(_row(fault) for fault in faults)
    return "".join(parts)


def _row(fault: object) -> str:
    known = "; ".join(f"**not yet**: {case.known}" for case in fault.cases if case.known)
    happens = f"{fault.happens}; {known}" if known else fault.happens
    cells = (str(fault.number), fault.comes, happens)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.stdout.write(page())
