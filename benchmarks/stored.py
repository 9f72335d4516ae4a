"""Keep a table that a benchmark printed: `python -m benchmarks.stored NAME < printed.md` writes docs/results/NAME.csv.

The pages of results show these files. A table that is stored already keeps its columns, in their order.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def printed(text: str) -> list[list[str]]:
    """The header and the rows of the one table of a Markdown text."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    header, rule, *rows = [[cell.strip().replace("\\|", "|") for cell in _cells(line)] for line in lines]
    if not all(re.fullmatch(":?-+:?", cell) for cell in rule) or any(len(row) != len(header) for row in rows):
        raise ValueError("expected one table of Markdown, with as many cells in every row")
    return [header, *rows]


def _cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line.removeprefix("|").removesuffix("|"))


def store(name: str, table: list[list[str]], folder: Path = RESULTS) -> Path:
    """Write a table, with the columns that are stored under its name, or all."""
    path = folder / f"{name}.csv"
    header = stored(path)[0] if path.exists() else table[0]
    missing = [column for column in header if column not in table[0]]
    if missing:
        raise ValueError(f"{name}: expected a column {missing[0]!r}, got {', '.join(table[0])}")
    at = [table[0].index(column) for column in header]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([row[column] for column in at] for row in table)
    return path


def stored(path: Path) -> list[list[str]]:
    """The header and the rows of a stored table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


if __name__ == "__main__":
    print(store(sys.argv[1], printed(sys.stdin.read())))
