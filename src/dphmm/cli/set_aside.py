"""Rows that could not be read: numbers and reasons in a file for the owner alone, never a value."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from dphmm.storage.inputs import replacing


def rejected_path(output: str) -> Path:
    """Where the rows set aside on the way to ``output`` are listed."""
    return Path(f"{output}.rejected.csv")


def write_rejected(path: Path, rejected: Any) -> None:
    """Write (row, reason), at once or not at all, for the owner only; no file where no row was set aside."""
    if not len(rejected):
        # What an earlier run has left there is not about this one.
        path.unlink(missing_ok=True)
        return
    with replacing(path, private=True) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("row", "reason"))
        writer.writerows((row["row"], row["reason"]) for row in rejected.to_pylist())


def by_reason(rejected: Any) -> dict[str, int]:
    """How many rows were set aside for each reason."""
    reasons = rejected.column("reason").to_pylist()
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}


def in_words(counts: dict[str, int]) -> str:
    """2 invalid_time, 1 missing_user"""
    return ", ".join(f"{rows} {reason}" for reason, rows in counts.items())
