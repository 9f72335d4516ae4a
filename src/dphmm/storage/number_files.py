"""Files of nothing but numbers, one row a draw: .npy, .parquet, .csv, .csv.gz."""

from __future__ import annotations

import re
import stat
import tokenize
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.columns import decimals
from dphmm.storage.csv_files import Layout, first_row, lines_of_rows, read_headless
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.tables import read_table, table_format
from dphmm.types import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

#: What some program may have written for a number, NaN and the infinities among it.
_NUMBER = re.compile(r"\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)\s*", re.IGNORECASE)

#: What NumPy raises for a damaged array.
_DAMAGED = (ValueError, TypeError, OverflowError, EOFError, OSError, SyntaxError, MemoryError, tokenize.TokenError)


def read_numbers(path: PathLike, field: str = "samples") -> FloatArray:
    """The numbers (n, d) of a file: an array, or all columns of a table.

    A CSV file may have a header or none: a first row that is numbers throughout is a row like all others. Raises
    InvalidInput for a file that cannot be read, a cell that is no number, a first row that is numbers in part, and a
    column without a name.
    """
    file = Path(path)
    if file.suffix.lower() == ".npy":
        return _array(file, field)
    file = checked_input(file, field)
    if table_format(file, field) == ".parquet":
        return _columns(read_table(file), file, field)
    with steady(file):
        head = [bool(_NUMBER.fullmatch(cell)) for cell in first_row(file)]
        if all(head):
            table = read_headless(file, [f"column {j}" for j in range(1, len(head) + 1)])
            return _columns(table, file, field, header=False)
        _check_names(first_row(file), head, f"{field}, {file.name}")
        return _columns(read_table(file), file, field)


def _check_names(names: list[str], numbers: list[bool], field: str) -> None:
    """A first row that is neither names nor numbers would lose a row, or count rows as a coordinate."""
    if any(numbers):
        came = f"a first row with {sum(numbers)} of {len(numbers)} cells numbers"
        raise InvalidInput(field, came, "names of all columns, or numbers throughout")
    if not all(name.strip() for name in names):
        raise InvalidInput(field, "a column without a name", "a name for each, and no column that numbers the rows")


def _columns(table: pa.Table, path: Path, field: str, header: bool = True) -> FloatArray:
    columns = []
    for name in table.column_names:
        values, bad = decimals(table.column(name), name)
        if bad.any():
            where = f"{field}, {path.name}, {_place(path, int(np.argmax(bad)), header)}"
            more = f", and {int(bad.sum()) - 1} more" if bad.sum() > 1 else ""
            raise InvalidInput(where, f"a cell of {name!r} that is no number{more}", "a number in every row")
        columns.append(values)
    if not columns:
        raise InvalidInput(field, f"{path}, without columns", "a column of numbers per dimension")
    return np.stack(columns, axis=1)


def _place(path: Path, row: int, header: bool) -> str:
    """Where a row (from 0) is: its line where a file has lines."""
    if path.suffix.lower() == ".parquet":
        return f"row {row + 1}"
    return f"line {lines_of_rows(path, [row + 1], Layout(header=header))[0]}"


def _array(path: Path, field: str) -> FloatArray:
    """An array that numpy.save wrote, (n,) or (n, d)."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise InvalidInput(field, str(path), "a file that exists") from None
    if not stat.S_ISREG(mode):
        raise InvalidInput(field, str(path), "a plain file, not a folder, a device or a pipe")
    try:
        # Mapped, so that a shape that the file does not have takes no memory.
        with np.errstate(over="ignore"), warnings.catch_warnings(action="ignore"):
            given = np.lib.format.open_memmap(path, mode="r")
    except _DAMAGED:
        raise InvalidInput(field, str(path), "an array of numbers as numpy.save writes it") from None
    if given.dtype.kind not in "iufb" or given.ndim not in (1, 2):
        came = f"{path}: {given.dtype} of shape {given.shape}"
        raise InvalidInput(field, came, "whole or real numbers of shape (n,) or (n, d)")
    numbers = np.array(given, dtype=np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers
