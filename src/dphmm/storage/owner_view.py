"""Files for the data owner alone: counts that depend on where people are, and rows that could not be read.

What is printed depends on no count. Of a row the file says where it is and why it was left out, never a value.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dphmm.storage.csv_files import CSV, TextLayout, lines_of_rows
from dphmm.storage.inputs import replacing
from dphmm.storage.layouts import Layout, lines_by_file
from dphmm.storage.trajectories import explained

_MEANING = "counts for the data owner alone: they depend on where people are, and are never to be published"


def owner_path(output: str) -> Path:
    """Where the counts of a release to ``output`` are; of a stream, which has none, they are beside its ledger."""
    return Path(f"{output}.owner.json")


def owner_counts(rows: int, outside: int, releases: int, drifted: int, rejected: Mapping[str, int]) -> dict[str, Any]:
    """The document: of ``rows`` in no state of the model, of new ``releases`` drifted from their plan set."""
    return {
        "meaning": _MEANING,
        "rows": rows,
        "rows_in_no_state": outside,
        "share_in_no_state": outside / rows if rows else None,
        "new_releases": releases,
        "drifted": drifted,
        "share_drifted": drifted / releases if releases else None,
        "rejected": dict(rejected),
    }


def write_counts(path: Path, counts: Mapping[str, Any]) -> None:
    """Write the counts, at once or not at all, readable by their owner only."""
    with replacing(path, private=True) as temporary:
        temporary.write_text(json.dumps(counts, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def rejected_path(output: str) -> Path:
    """Where the rows set aside on the way to ``output`` are listed."""
    return Path(f"{output}.rejected.csv")


def write_rejected(
    path: Path, rejected: Any, source: str, layout: TextLayout | None = None, *, always: bool = False
) -> None:
    """Write (line, reason), of a folder or an archive (file, line, reason), at once or not at all, for the owner only.

    No file where no row was set aside, unless ``always``.

    The line is that of the text file ``source``, as an editor shows it; of a source without lines it is the row.
    ``layout`` says how a text that is not CSV is cut into rows.
    """
    if not len(rejected) and not always:
        # What an earlier run has left there is not about this one.
        path.unlink(missing_ok=True)
        return
    if isinstance(layout, Layout) and "file" in rejected.column_names:
        write_list(path, "file,line", lines_by_file(source, rejected, layout))
        return
    word, numbers = _places(source, rejected.column("row").to_pylist(), layout)
    write_list(path, word, zip(numbers, rejected.column("reason").to_pylist(), strict=True))


def write_list(path: Path, word: str, rows: Iterable[Sequence[object]]) -> None:
    """Write (place, reason), at once or not at all, for the owner only; also where there are none.

    ``word``: line or row, or of several files "file,line".
    """
    with replacing(path, private=True) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*word.split(","), "reason"))
        writer.writerows(rows)


def list_rejected(output: str, rejected: Any, source: Path) -> None:
    """The same file, which is also there where no row was set aside: that there is one says nothing."""
    write_rejected(rejected_path(output), rejected, str(source), always=True)


def _places(source: str, rows: list[int], layout: TextLayout | None) -> tuple[str, list[int]]:
    if layout is None and source.lower().endswith((".csv", ".csv.gz")):
        layout = CSV
    return ("row", rows) if layout is None else ("line", lines_of_rows(Path(source), rows, layout))


def by_reason(rejected: Any) -> dict[str, int]:
    """How many rows were set aside for each reason."""
    counted = rejected.column("reason").value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in sorted(counted, key=lambda each: str(each["values"]))}


def in_words(counts: dict[str, int]) -> str:
    """Counts as a line says them: 2 invalid_time, 1 missing_user."""
    return ", ".join(f"{rows} {explained(reason)}" for reason, rows in counts.items())
