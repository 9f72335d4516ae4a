"""The result of every importer: trajectories sorted by user and time, a report, and the rejected rows.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from dphmm.states.trajectory import Counts, Trajectories
from dphmm.storage.cells import explained
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import Layout
from dphmm.storage.trajectories import SourceRows

if TYPE_CHECKING:
    import pyarrow as pa


#: What clocks show that were never set: up to GPS's first moment, or from the last second that 32 bits can count.
_FIRST, _LAST = (np.datetime64(moment, "us").astype(np.int64) for moment in ("1980-01-06T00:00", "2038-01-19T03:14:07"))

#: importer(source, *, progress=None, **options of the format) -> Imported
Importer: TypeAlias = "Callable[..., Imported]"


@dataclass(frozen=True)
class ImportReport:
    """The numbers of rows that were read and kept, and the reasons for dropping the others. No values.

    ``notes`` : remarks on how they were read. ``layout`` : the cut of the text into lines; None without lines.
    ``alike`` : spellings of names, and the names that they were taken for; for the owner, and not shown.
    """

    format: str
    files: int
    rows: int
    kept: int
    users: int
    dropped: Counts
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    layout: Layout | None = None
    alike: Mapping[str, str] = field(default_factory=dict, repr=False)

    def lines(self) -> list[str]:
        """The report for people, one fact a line."""
        users = f"{self.users} user" if self.users == 1 else f"{self.users} users"
        # A trip, or an interval, becomes several rows.
        became = f"became {self.kept} rows" if self.kept > self.rows else f"{self.kept} kept"
        facts = [f"{self.rows} rows in {self.files} file(s), {became}, {users}", *self.notes]
        return facts + [f"dropped {rows}: {explained(reason)}" for reason, rows in self.dropped.items()]


class Imported(NamedTuple):
    """Trajectories, their report, and ``rejected`` (row, reason): rejected rows, numbered from 1 as read.

    In a folder or an archive the rows of each file are numbered, and ``rejected`` has its name first.
    """

    trajectories: Trajectories
    report: ImportReport
    rejected: pa.Table

    def __repr__(self) -> str:
        """The numbers of rows alone: the rows are people's, so none of them is shown."""
        return f"Imported({self.trajectories!r}, report, {len(self.rejected):,} rejected rows)"


def imported_rows(format_: str, found: SourceRows, layout: Layout | None, source: PathLike) -> Imported:
    """Sort what was read of a source and report it, with its notes; ``layout`` as of `ImportReport`."""
    rows = sorted_by_name_and_time(found.loaded.trajectories)
    lines = None if Path(source).suffix.lower() == ".parquet" else layout
    dropped, alike, notes = found.loaded.dropped, found.loaded.alike, found.notes
    if alike:
        names = f"{len(alike):,} of {len(alike) + rows.n_users:,} names are spellings of others"
        notes += (f"{names}, and taken for the same people (spelling exact takes them for several)",)
    read = format_, found.files, found.rows
    unset = 0 if rows.time is None else int(((rows.time <= _FIRST) | (rows.time >= _LAST)).sum())
    warning = (
        f"rows with times that clocks show which were never set: {unset:,} (up to 1980-01-06, or from "
        "2038-01-19T03:14:07Z on); they were kept: check them, for rows of one such moment are asked once"
    )
    warnings = (warning,) if unset else ()
    report = ImportReport(*read, len(rows.placed), rows.n_users, dropped, warnings, notes, lines, alike)
    return Imported(rows, report, found.loaded.rejected)


def sorted_by_name_and_time(trajectories: Trajectories) -> Trajectories:
    """Rows by user and time, users numbered in the order of their names: whole numbers by value, then the others."""
    names = sorted(trajectories.users, key=_place_of)
    place = {name: number for number, name in enumerate(names)}
    number = np.array([place[name] for name in trajectories.users], dtype=np.int32)
    return replace(trajectories, users=tuple(names), user=number[trajectories.user]).sort()[0]


def _place_of(name: str) -> tuple[bool, int, str]:
    """The sort key of a name: nobody else's name decides how it is compared."""
    whole = name.isascii() and name.isdigit()
    return not whole, int(name) if whole else 0, name
