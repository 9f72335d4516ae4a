"""Edge lists: two people a row, in a table or in SNAP's text (two names, a tab or blanks between, # before remarks)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.columns import as_text
from dphmm.storage.headers import listed
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.tables import column_names, read_table
from dphmm.storage.unpacking import open_bytes
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = (".txt", ".txt.gz")


def _row(number: int) -> str:
    return f"row {number + 1}"


def read_edges(path: PathLike, columns: Sequence[str] | None = None, field: str = "edges") -> pa.Table:
    """An Arrow table of two columns of text, the names of both ends; a table's first two columns if not named.

    Raises InvalidInput, without a name of anybody, for what `read_table` refuses, columns that are not there, and lines
    of a text that are not two names.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    if file.name.lower().endswith(_TEXT):
        if columns is not None:
            raise InvalidInput("--columns", ",".join(columns), "no columns: this text has none")
        with steady(file):
            return _text(file, field)
    names = column_names(file)
    chosen = names[:2] if columns is None else list(columns)
    if len(chosen) != 2 or not set(chosen) <= set(names) or chosen[0] == chosen[1]:
        raise InvalidInput(field, f"{file.name}, with columns {listed(names)}", "two columns, one for each end")
    table = read_table(file, columns=chosen, text=chosen)
    return pa.table([as_text(table.column(name), name) for name in chosen], names=["a", "b"])


def numbered(
    edges: pa.Table, names: Sequence[str], field: str, place: Callable[[int], str] = _row, remedy: str = ""
) -> IntArray:
    """Edges as numbers (m, 2) of people.

    Raises InvalidInput, with the ``place`` of a row (from 0) and a ``remedy``, for a missing name and for an unknown
    one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(names, pa.string())
    ends = [pc.fill_null(pc.index_in(edges.column(side), value_set=known), -1).to_numpy() for side in ("a", "b")]
    found = np.stack(ends, axis=1).astype(np.int64)
    unknown = (found < 0).any(axis=1)
    if unknown.any():
        came = "nobody, or somebody who is not among the people"
        raise InvalidInput(
            f"{field}, {place(int(np.argmax(unknown)))}", came, f"two of the {len(names)} people{remedy}"
        )
    return found


def _text(file: Path, field: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    remarks, delimiter = _layout(file)
    try:
        with open_bytes(file) as raw:
            table = csv.read_csv(
                pa.PythonFile(raw, mode="r"),
                csv.ReadOptions(column_names=["a", "b"], skip_rows=remarks),
                csv.ParseOptions(delimiter=delimiter, quote_char=False),
                csv.ConvertOptions(column_types=dict.fromkeys("ab", pa.string()), strings_can_be_null=True),
            )
    except pa.ArrowInvalid:
        # Arrow's own words would quote the line.
        expected = "two names a line, a tab or a blank between them, and # before remarks at the top"
        raise InvalidInput(field, f"{file.name}, with a line that is not two names", expected) from None
    return table


def _layout(file: Path) -> tuple[int, str]:
    """How many lines of remarks there are, and what is between two names."""
    remarks = 0
    with open_bytes(file) as raw:
        line: Any = raw.readline()
        while line.startswith(b"#"):
            remarks += 1
            line = raw.readline()
    between = re.search(rb"[\t ,]", line.strip())
    return remarks, "\t" if between is None else between[0].decode()
