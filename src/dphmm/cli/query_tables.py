"""Columns of the table that is asked about. A cell that cannot be read is told by its line, never by what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


def columns_of(path: str, field: str) -> list[str]:
    """Names of the columns of a table that ``field`` names."""
    from dphmm.storage.inputs import checked_input
    from dphmm.storage.tables import column_names, table_format

    table_format(checked_input(path, field), field)
    return column_names(path)


def numbers(path: str, columns: Sequence[str], option: str, field: str = "DATA") -> FloatArray:
    """The columns (n, d) as finite numbers."""
    from dphmm.storage.columns import decimals

    table = _read(path, columns, option, field)
    found = []
    for name in columns:
        values, bad = decimals(table.column(name), name)
        refuse(path, name, bad, "a finite number in every row")
        found.append(values)
    return np.stack(found, axis=1)


def labels(path: str, column: str, option: str, field: str = "DATA") -> NDArray[Any]:
    """A column of text (n,), no cell empty."""
    from dphmm.storage.columns import as_text

    cells = as_text(_read(path, [column], option, field).column(column), column).to_pylist()
    found = np.array(cells, dtype=object)
    refuse(
        path, column, np.array([cell is None or cell == "" for cell in cells], dtype=np.bool_), "a value in every row"
    )
    return found


def owners(path: str, column: str) -> tuple[tuple[str, ...], IntArray]:
    """Who there is, and whose each row is (n,)."""
    from dphmm.storage.columns import Numbering

    known = Numbering()
    codes, bad = known.add(_read(path, [column], "--user-column", "DATA").column(column), column)
    refuse(path, column, bad, "a user in every row")
    return known.labels, codes


def refuse(path: str, column: str, bad: BoolArray, expected: str) -> None:
    """InvalidInput for the first bad row, by its line where the file has lines."""
    if not bad.any():
        return
    raise InvalidInput(f"{column}, {place(path, int(np.argmax(bad)))}", "a cell that cannot be used", expected)


def place(path: str, row: int) -> str:
    """Where a row (from 0) is, as an editor shows it."""
    from dphmm.storage.line_numbers import lines_of_rows

    if path.lower().endswith((".csv", ".csv.gz")):
        return f"line {lines_of_rows(Path(path), [row + 1])[0]}"
    return f"row {row + 1}"


def _read(path: str, columns: Sequence[str], option: str, field: str) -> Any:
    from dphmm.storage.headers import listed
    from dphmm.storage.tables import read_table

    there = columns_of(path, field)
    missing = next((name for name in columns if name not in there), None)
    if missing is not None:
        raise InvalidInput(option, missing, f"a column of {Path(path).name}: {listed(there)}")
    table = read_table(path, columns=list(dict.fromkeys(columns)), text=None)
    if len(table) == 0:
        raise InvalidInput(Path(path).name, "0 rows", "at least 1 row")
    return table
