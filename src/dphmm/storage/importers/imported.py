"""What every importer gives: trajectories sorted by user and time, a report, and the rejected rows.

`RowReader` reads headerless delimited text: it leaves out and counts rows with another number of cells, and a byte that
is not UTF-8 makes its cell unreadable. No row decides about another one.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Counts, Trajectories
from dphmm.storage.inputs import Legible, legible
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
    """Trajectories, their report, and ``rejected`` (row, reason): rejected rows, numbered from 1 as read."""

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


_BLOCK = 1 << 23


class RowReader:
    """Reads text of fixed columns; ``ragged`` counts the rows that were left out so far."""

    def __init__(self, names: Sequence[str], keep: Sequence[str], delimiter: str) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self.ragged = 0
        self._keep = list(keep)
        self._options: dict[str, Any] = {
            "read_options": csv.ReadOptions(column_names=list(names), block_size=_BLOCK, use_threads=False),
            "parse_options": csv.ParseOptions(
                delimiter=delimiter, quote_char=False, double_quote=False, invalid_row_handler=self._skip
            ),
            "convert_options": csv.ConvertOptions(
                include_columns=self._keep, column_types=dict.fromkeys(names, pa.string())
            ),
        }

    def read(self, data: bytes, name: str) -> pa.Table:
        """The table of a text in memory, perhaps without rows."""
        import pyarrow as pa
        from pyarrow import csv

        # A mark of UTF-8 with nothing behind it is an empty file to Arrow, which refuses those.
        if not data.removeprefix(codecs.BOM_UTF8).strip():
            return pa.table({column: pa.array([], pa.string()) for column in self._keep})
        try:
            return csv.read_csv(pa.BufferReader(legible(data)), **self._options)
        except pa.ArrowInvalid:
            raise InvalidInput(name, "rows that cannot be read", "the format's own files") from None

    def stream(self, file: IO[bytes], name: str) -> Iterator[pa.Table]:
        """Tables of some 8 MiB of text each."""
        import pyarrow as pa
        from pyarrow import csv

        try:
            for batch in csv.open_csv(Legible(file), **self._options):
                yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid:
            raise InvalidInput(name, "an empty file or rows that cannot be read", "the format's own files") from None

    def _skip(self, row: Any) -> str:
        self.ragged += 1
        return "skip"
