"""Rows of CSV for people's records, by any delimiter: every cell as text, and no row decides about another one.

A row with another number of cells than the header is left out and numbered; a byte that is not UTF-8 makes the cell
that it is in unreadable. Only a broken header or a quote that nothing closes refuses the file.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import _unescape_columns, csv_header, csv_names, ragged_row
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.line_numbers import Layout
from dphmm.storage.tables import ROWS, column_names, read_batches, table_format
from dphmm.storage.unpacking import Legible, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 24


class Rows(NamedTuple):
    """The rows of a table in parts, and the numbers, from 1, of those with another number of cells (not in parts)."""

    parts: Iterable[pa.Table]
    ragged: tuple[int, ...]


def delimited_names(path: PathLike, delimiter: str = ",") -> list[str]:
    """Names of a table's columns, in order."""
    file = checked_input(path)
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise InvalidInput("delimiter", delimiter, "one character, such as ; or a tab")
    if table_format(file) != ".parquet":
        return csv_names(file, delimiter)
    if delimiter != ",":
        raise InvalidInput("delimiter", delimiter, "a .csv or .csv.gz file with it")
    return column_names(file)


def read_rows(path: PathLike, columns: Sequence[str], delimiter: str = ",") -> Rows:
    """Some columns of a table: of Parquet as they are, of CSV as text.

    Raises InvalidInput as read_table does for Parquet; of CSV for a file that is none, a header that cannot be read
    and, with the line, for a quote that is never closed.
    """
    file = checked_input(path)
    names = delimited_names(file, delimiter)
    if table_format(file) == ".parquet":
        return Rows(read_batches(file, columns=columns), ())
    with steady(file):
        written = dict(zip(names, csv_header(file, delimiter), strict=True))
        table, ragged = _cells(file, delimiter, list(written.values()), [written[name] for name in columns])
    table = _unescape_columns(table.rename_columns(list(columns)))
    return Rows((table.slice(start, ROWS) for start in range(0, max(1, len(table)), ROWS)), ragged)


def _cells(
    file: Path, delimiter: str, names: list[str], columns: list[str], threads: bool = True
) -> tuple[pa.Table, tuple[int, ...]]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    ragged: list[Any] = []

    def leave_out(row: Any) -> str:
        ragged.append(row)
        return "skip"

    try:
        with open_bytes(file) as opened:
            table = arrow_csv.read_csv(
                Legible(opened),
                read_options=arrow_csv.ReadOptions(use_threads=threads, block_size=_BLOCK),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=leave_out
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=columns, column_types=dict.fromkeys(names, pa.string())
                ),
            )
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row, which is somebody's.
        raise InvalidInput(str(file), "rows that cannot be read", "CSV with closed quotes") from None
    if ragged and threads:
        # Only one thread knows the numbers of the rows.
        return _cells(file, delimiter, names, columns, threads=False)
    if ragged and ragged[-1].number == len(table) + len(ragged) + 1 and _is_open(ragged[-1].text, delimiter):
        raise ragged_row(file, ragged[-1].number, ragged[-1].actual_columns, len(names), Layout(delimiter))
    return table, tuple(row.number - 1 for row in ragged)


def _is_open(text: str, delimiter: str) -> bool:
    """Whether a quote in the last row of a file is never closed, so that the row holds whatever came after it."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False
