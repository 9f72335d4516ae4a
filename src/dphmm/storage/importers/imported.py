"""What every importer gives: trajectories sorted by user and time, a report, and the rows set aside.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from dphmm.states.trajectory import Counts, Trajectories
from dphmm.storage.trajectories import Loaded, explained

if TYPE_CHECKING:
    import pyarrow as pa

#: Called with (done, total), in files or bytes, as the work goes on.
Progress: TypeAlias = Callable[[int, int], object]
#: importer(source, *, progress=None, **options of the format) -> Imported
Importer: TypeAlias = "Callable[..., Imported]"


@dataclass(frozen=True)
class ImportReport:
    """How many rows were read and kept, and why the others were dropped. No values."""

    format: str
    files: int
    rows: int
    kept: int
    users: int
    dropped: Counts
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The report for people, one fact a line."""
        facts = [f"{self.rows} rows in {self.files} file(s), {self.kept} kept, {self.users} users"]
        return facts + [f"dropped {rows}: {explained(reason)}" for reason, rows in self.dropped.items()]


class Imported(NamedTuple):
    """Trajectories, their report, and ``rejected`` (row, reason): rows set aside, numbered from 1 as read."""

    trajectories: Trajectories
    report: ImportReport
    rejected: pa.Table


def finished(format_: str, loaded: Loaded, files: int, lost: Counts | None = None) -> Imported:
    """Sort what was loaded and report; ``lost`` counts rows that never came as far as the table."""
    lost = Counts() if lost is None else lost
    rows = sorted_by_name_and_time(loaded.trajectories)
    read = len(rows) + len(loaded.rejected) + lost.total
    dropped = loaded.dropped + lost
    return Imported(rows, ImportReport(format_, files, read, len(rows), rows.n_users, dropped), loaded.rejected)


def sorted_by_name_and_time(trajectories: Trajectories) -> Trajectories:
    """Rows by user and time, users numbered in the order of their names: whole numbers by value, then the others."""
    names = sorted(trajectories.users, key=_place_of)
    place = {name: number for number, name in enumerate(names)}
    number = np.array([place[name] for name in trajectories.users], dtype=np.int32)
    return replace(trajectories, users=tuple(names), user=number[trajectories.user]).sort()[0]


def _place_of(name: str) -> tuple[bool, int, str]:
    """Where a name stands among any others: nobody else's name decides how it is compared."""
    whole = name.isascii() and name.isdigit()
    return not whole, int(name) if whole else 0, name
