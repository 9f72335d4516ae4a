"""Rows of a private table, each read by itself: a row that cannot be read never decides for another one.

A reader for data that a query asks about, in a file or in a frame. Rows with another number of fields than the header
are told by their place; bytes that are not UTF-8 become signs that are in no public name. Only what is wrong with a
file as a whole is refused: a missing or repeated column, no header, another format.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import Encoding, _unescape, _unescape_columns, listed, repeated_name
from dphmm.storage.frames import column_list, table_kind, to_arrow
from dphmm.storage.inputs import PathLike, checked_input, open_bytes, steady
from dphmm.storage.tables import column_names, read_table, table_format
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands for bytes that are not UTF-8. A cell with it is a missing one: the names of two people could be the same,
#: and with it a cap that is theirs alone.
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"

#: What csv takes for the length of a cell at most: as much as fits into a C long everywhere.
_LONGEST_CELL = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRows:
    """n rows of the columns that were asked for, and where they are in the file.

    ``places`` (n,): the line on which each row begins, in a text; its number from 1 in Parquet. ``odd``: the places of
    rows that have another number of fields than there are columns. ``word``: "line" or "row".
    """

    table: pa.Table
    places: IntArray
    odd: tuple[int, ...]
    word: str

    @property
    def n_rows(self) -> int:
        """How many rows the file has, those that cannot be read among them."""
        return len(self.places) + len(self.odd)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """The table that a query asks about: a file (``path``), or a pandas, polars or Arrow frame.

    Cells of a pandas frame are read one by one, as the text that they print as: the type of such a column follows from
    its cells. The types of an Arrow or a polars column are public, as those of Parquet.
    """

    source: Any

    @property
    def path(self) -> Path | None:
        """The file, None of a frame."""
        return Path(self.source) if isinstance(self.source, (str, os.PathLike)) else None

    @property
    def name(self) -> str:
        """What messages call it: the name of the file, or "the table"."""
        return "the table" if self.path is None else self.path.name

    def columns(self) -> list[str]:
        """Names of the columns. Raises InvalidInput for what is no table with a header."""
        return column_list(self.source) if self.path is None else private_names(self.source)

    def read(self, columns: Sequence[str]) -> PrivateRows:
        """The rows of these columns, in a frame numbered from 1. Raises InvalidInput for a column that is missing."""
        if self.path is not None:
            return read_private(self.source, columns)
        kept = list(dict.fromkeys(columns))
        _check_columns(self.columns(), kept)
        table = _of_pandas(self.source, kept) if table_kind(self.source) == "pandas" else to_arrow(self.source, kept)
        return PrivateRows(table, np.arange(1, len(table) + 1), (), "row")


def private_names(path: PathLike, field: str = "DATA") -> list[str]:
    """Names of the columns, for which no row is looked at. Raises InvalidInput for what is no table with a header."""
    file = checked_input(path, field)
    if table_format(file, field) == ".parquet":
        return column_names(file)
    with open_bytes(file) as opened:
        Encoding(file)(opened.read(4))
    with _records(file) as text:
        header: list[str] = next((record for record in _cells(text) if record), [])
    names = [_unescape(name) for name in header]
    if any(_NO_TEXT in name for name in names):
        raise InvalidInput(field, f"{file.name}, whose header is not UTF-8", "encoding UTF-8")
    repeated = repeated_name(names)
    if not names or repeated is not None:
        raise InvalidInput(field, f"{file.name}: {repeated or 'an empty file'}", "a header row of distinct names")
    return names


def read_private(path: PathLike, columns: Sequence[str], field: str = "DATA") -> PrivateRows:
    """The rows of a table; of a CSV file all cells are text.

    Raises InvalidInput as private_names, and for a column that is not there.
    """
    file = checked_input(path, field)
    names = private_names(file, field)
    kept = list(dict.fromkeys(columns))
    _check_columns(names, kept)
    if table_format(file, field) == ".parquet":
        table = read_table(file, columns=kept)
        return PrivateRows(table, np.arange(1, len(table) + 1), (), "row")
    with steady(file):
        return _of_csv(file, names, kept)


def _check_columns(there: Sequence[str], wanted: Sequence[str]) -> None:
    missing = next((name for name in wanted if name not in there), None)
    if missing is not None:
        raise InvalidInput("column", missing, "one of " + listed(there))


def text_rows(
    columns: Sequence[str], cells: Sequence[Sequence[str | None]], places: list[int], odd: list[int]
) -> PrivateRows:
    """Rows of text: ``cells`` are columns of cells."""
    import pyarrow as pa

    table = pa.table([pa.array(column, pa.string()) for column in cells], names=list(columns))
    return PrivateRows(table, np.array(places, dtype=np.int64), tuple(odd), "line")


def _of_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    cells = {name: frame[name].astype(object) for name in columns}
    return pa.table(
        {
            name: pa.array(
                [None if missing else _printed(cell) for cell, missing in zip(column, column.isna(), strict=True)],
                pa.string(),
            )
            for name, column in cells.items()
        }
    )


def _printed(cell: Any) -> str | None:
    """A cell as text: 3 and 3.0 are one, an infinite number is beyond all floats; None for what cannot be printed."""
    if isinstance(cell, (float, np.floating)):
        number = float(cell)
        if math.isinf(number):
            return "1e999" if number > 0 else "-1e999"
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    try:
        return str(cell).encode().decode()
    except Exception:
        # Whatever somebody's cell raises, the rows of others are read.
        return None


def _of_csv(file: Path, names: list[str], kept: list[str]) -> PrivateRows:
    at = [names.index(name) for name in kept]
    columns: list[list[str | None]] = [[] for _ in kept]
    places: list[int] = []
    odd: list[int] = []
    width, header, line = len(names), True, 0
    with _records(file) as text, _cells_of_any_length():
        reader = csv.reader(text)
        for record in reader:
            begun, line = line + 1, reader.line_num
            if header and record:
                header = False
            elif len(record) == width:
                places.append(begun)
                for column, number in zip(columns, at, strict=True):
                    cell = record[number]
                    column.append(None if _NO_TEXT in cell else cell)
            elif record:
                odd.append(begun)
    found = text_rows(kept, columns, places, odd)
    return PrivateRows(_unescape_columns(found.table), found.places, found.odd, "line")


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """A reader that gives a long cell up goes on inside its quotes, and takes the lines of others for it."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(file: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_bytes(file), "utf-8-sig", errors="replace", newline="")


def _cells(text: Any) -> Any:
    try:
        yield from csv.reader(text)
    except csv.Error:
        return
