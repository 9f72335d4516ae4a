"""Rows that could not be read: where they are and why, in a file for the owner alone, never a value."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.storage.line_numbers import Layout


def rejected_path(output: str) -> Path:
    """Where the rows set aside on the way to ``output`` are listed."""
    return Path(f"{output}.rejected.csv")


def write_rejected(
    path: Path, rejected: Any, source: str, layout: Layout | None = None, *, always: bool = False
) -> None:
    """Write (line, reason), at once or not at all, for the owner only.

    No file where no row was set aside, unless ``always``.

    The line is that of the text file ``source``, as an editor shows it; of a source without lines it is the row.
    ``layout`` says how a text that is not CSV is cut into rows.
    """
    if not len(rejected) and not always:
        # What an earlier run has left there is not about this one.
        path.unlink(missing_ok=True)
        return
    word, numbers = _places(source, rejected.column("row").to_pylist(), layout)
    write_list(path, word, zip(numbers, rejected.column("reason").to_pylist(), strict=True))


def write_list(path: Path, word: str, rows: Iterable[tuple[int, str]]) -> None:
    """Write (place, reason), at once or not at all, for the owner only; also where there are none.

    ``word``: line or row.
    """
    from dphmm.storage.inputs import replacing

    with replacing(path, private=True) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((word, "reason"))
        writer.writerows(rows)


def list_rejected(output: str, rejected: Any, source: Path) -> None:
    """The same file, which is also there where no row was set aside: that there is one says nothing."""
    write_rejected(rejected_path(output), rejected, str(source), always=True)


def _places(source: str, rows: list[int], layout: Layout | None) -> tuple[str, list[int]]:
    from dphmm.storage.line_numbers import CSV, lines_of_rows

    if layout is None and source.lower().endswith((".csv", ".csv.gz")):
        layout = CSV
    return ("row", rows) if layout is None else ("line", lines_of_rows(Path(source), rows, layout))


def by_reason(rejected: Any) -> dict[str, int]:
    """How many rows were set aside for each reason."""
    reasons = rejected.column("reason").to_pylist()
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}


def in_words(counts: dict[str, int]) -> str:
    """Counts as a line says them: 2 invalid_time, 1 missing_user."""
    from dphmm.storage.assembling import explained

    return ", ".join(f"{rows} {explained(reason)}" for reason, rows in counts.items())
