"""Rows of a private table, each read by itself: a row that cannot be read never decides for another one.

A reader for data that a query asks about. Rows with another number of fields than the header are told by their place;
bytes that are not UTF-8 become signs that are in no public name. Only what is wrong with a file as a whole is refused:
a missing or repeated column, no header, another format.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import Encoding, _unescape, _unescape_columns
from dphmm.storage.headers import listed, repeated_name
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.tables import column_names, read_table, table_format
from dphmm.storage.unpacking import open_bytes
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands for bytes that are not UTF-8.
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
    missing = next((name for name in kept if name not in names), None)
    if missing is not None:
        raise InvalidInput("column", missing, "one of " + listed(names))
    if table_format(file, field) == ".parquet":
        table = read_table(file, columns=kept)
        return PrivateRows(table, np.arange(1, len(table) + 1), (), "row")
    with steady(file):
        return _of_csv(file, names, kept)


def text_rows(columns: Sequence[str], cells: Sequence[Sequence[str]], places: list[int], odd: list[int]) -> PrivateRows:
    """Rows of text: ``cells`` are columns of cells."""
    import pyarrow as pa

    table = pa.table([pa.array(column, pa.string()) for column in cells], names=list(columns))
    return PrivateRows(table, np.array(places, dtype=np.int64), tuple(odd), "line")


def _of_csv(file: Path, names: list[str], kept: list[str]) -> PrivateRows:
    at = [names.index(name) for name in kept]
    columns: list[list[str]] = [[] for _ in kept]
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
                    column.append(record[number])
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
