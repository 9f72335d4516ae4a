"""Edge lists: two people a row, in a table or in SNAP's text (two names, a tab or blanks between, # before remarks).

Of a text each line is read by itself: parted at tabs where it has one, else at commas, else at blanks.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.columns import as_text
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input, open_bytes, steady
from dphmm.storage.private_rows import PrivateRows, private_names, read_private, text_rows
from dphmm.storage.tables import column_names, read_table
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = (".txt", ".txt.gz")


def read_edges(path: PathLike, columns: Sequence[str] | None = None, field: str = "edges") -> pa.Table:
    """An Arrow table of two columns of text, the names of both ends; a table's first two columns if not named.

    Raises InvalidInput, without a name of anybody, for what `read_table` refuses, columns that are not there, and lines
    of a text that are not two names.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    if file.name.lower().endswith(TEXT):
        _check_no_columns(columns)
        with steady(file):
            try:
                rows = _text(file, errors="strict")
            except UnicodeDecodeError:
                raise InvalidInput(field, f"{file.name}, with bytes that are not UTF-8", "encoding UTF-8") from None
        if rows.odd:
            expected = "two names a line, a tab or a blank between them, and # before remarks"
            raise InvalidInput(field, f"{file.name}, with a line that is not two names", expected)
        return rows.table
    chosen = _chosen(column_names(file), columns, file, field)
    table = read_table(file, columns=chosen, text=chosen)
    return pa.table([as_text(table.column(name), name) for name in chosen], names=["a", "b"])


def edge_rows(path: PathLike, columns: Sequence[str] | None = None, field: str = "DATA") -> PrivateRows:
    """The same of a private file: two columns of text, a and b, and the places of rows that cannot be read.

    Raises InvalidInput for what is wrong with the file as a whole.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    if file.name.lower().endswith(TEXT):
        _check_no_columns(columns)
        with steady(file):
            return _text(file, errors="replace")
    chosen = _chosen(private_names(file, field), columns, file, field)
    rows = read_private(file, chosen, field)
    table = pa.table([as_text(rows.table.column(name), name) for name in chosen], names=["a", "b"])
    return PrivateRows(table, rows.places, rows.odd, rows.word)


def ends_among(edges: pa.Table, names: Sequence[str]) -> IntArray:
    """Edges as numbers (m, 2) of people, -1 for a missing name and for an unknown one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(names, pa.string())
    ends = [pc.fill_null(pc.index_in(edges.column(side), value_set=known), -1).to_numpy() for side in ("a", "b")]
    return np.stack(ends, axis=1).astype(np.int64)


def _check_no_columns(columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise InvalidInput("--columns", ",".join(columns), "no columns: this text has none")


def _chosen(names: Sequence[str], columns: Sequence[str] | None, file: Path, field: str) -> list[str]:
    chosen = list(names[:2]) if columns is None else list(columns)
    if len(chosen) != 2 or not set(chosen) <= set(names) or chosen[0] == chosen[1]:
        raise InvalidInput(field, f"{file.name}, with columns {listed(names)}", "two columns, one for each end")
    return chosen


def _text(file: Path, errors: str) -> PrivateRows:
    cells: tuple[list[str], list[str]] = ([], [])
    places: list[int] = []
    odd: list[int] = []
    with io.TextIOWrapper(open_bytes(file), "utf-8-sig", errors=errors) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith("#") or not line.strip():
                continue
            ends = _ends(line)
            if len(ends) != 2 or not all(ends):
                odd.append(number)
                continue
            places.append(number)
            for column, end in zip(cells, ends, strict=True):
                column.append(end)
    return text_rows(("a", "b"), cells, places, odd)


def _ends(line: str) -> list[str]:
    between = next((sign for sign in ("\t", ",") if sign in line.strip()), None)
    return [end.strip() for end in line.strip().split(between)]
