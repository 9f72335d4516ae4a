"""CSV whose cells are separated by another character than a comma, such as ; or a tab: every cell as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import Encoding, _unescape_columns, csv_header, ragged_row
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.line_numbers import Layout
from dphmm.storage.tables import table_format
from dphmm.storage.unpacking import Tapped, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 24


def delimited_names(path: PathLike, delimiter: str) -> list[str]:
    """Names of the columns, in order."""
    file = checked_input(path)
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise InvalidInput("delimiter", delimiter, "one character, such as ; or a tab")
    if table_format(file) == ".parquet":
        raise InvalidInput("delimiter", delimiter, "a .csv or .csv.gz file with it")
    return csv_header(file, delimiter)


def read_delimited(path: PathLike, delimiter: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of the table, as text. Raises InvalidInput for encodings and, with the line, for ragged rows."""
    import pyarrow as pa
    from pyarrow import csv

    names = delimited_names(path, delimiter)
    file = checked_input(path)
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append((row.number, row.actual_columns))
        return "error"

    try:
        with steady(file), open_bytes(file) as opened:
            table = csv.read_csv(
                Tapped(opened, Encoding(file)),
                # Only one thread knows the numbers of the rows.
                read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=list(columns), column_types=dict.fromkeys(names, pa.string())
                ),
            )
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row, which is somebody's.
        if ragged:
            number, came = ragged[0]
            raise ragged_row(file, number, came, len(names), Layout(delimiter)) from None
        raise InvalidInput(str(file), "rows that cannot be read", "CSV with closed quotes") from None
    return _unescape_columns(table)
