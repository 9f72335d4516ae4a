"""Columns of tables: of public ones, refused with the line of a bad cell; of DATA, where no cell decides anything.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dphmm.storage.private_rows import PrivateRows


@dataclass
class Aside:
    """Rows of DATA that do not count as they are written, for the owner's list: where, and the first reason."""

    word: str
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, places: Any, reason: str) -> None:
        """These rows (of which some may be there already) for this reason."""
        for place in np.asarray(places, dtype=np.int64).tolist():
            self.reasons.setdefault(place, reason)

    @classmethod
    def of(cls, rows: PrivateRows) -> Aside:
        """Begun with the rows of another number of fields than the header."""
        found = cls(rows.word)
        found.add(rows.odd, "ragged_row")
        return found


def data_rows(path: str, columns: Sequence[tuple[str, str]]) -> PrivateRows:
    """The rows of DATA; ``columns`` are pairs (name, the option that names it)."""
    from dphmm.storage.headers import listed
    from dphmm.storage.private_rows import private_names, read_private

    there = private_names(path)
    for name, option in columns:
        if name not in there:
            raise InvalidInput(option, name, f"a column of {Path(path).name}: {listed(there)}")
    return read_private(path, [name for name, _ in columns])


def data_numbers(rows: PrivateRows, columns: Sequence[str], aside: Aside) -> FloatArray:
    """The columns (n, d), NaN for a cell that is no number, infinite ones as they are."""
    from dphmm.storage.columns import decimals

    found = np.stack([decimals(rows.table.column(name), name)[0] for name in columns], axis=1)
    aside.add(rows.places[np.isnan(found).any(axis=1)], "invalid_number")
    return found


def data_labels(rows: PrivateRows, column: str) -> NDArray[Any]:
    """A column of text (n,), None for an empty cell."""
    from dphmm.storage.columns import as_text

    return np.array(as_text(rows.table.column(column), column).to_pylist(), dtype=object)


def data_users(rows: PrivateRows, column: str, most: int, aside: Aside) -> NDArray[Any]:
    """Whose each row is (n,), None where it is nobody's; rows beyond the first ``most`` of a person are listed."""
    from dphmm.dependent._contributions import first_of_each
    from dphmm.storage.columns import Numbering

    known = Numbering()
    codes, bad = known.add(rows.table.column(column), column)
    aside.add(rows.places[bad], "missing_user")
    aside.add(rows.places[~bad & ~first_of_each(codes, most)], "beyond_max_rows")
    return np.array([*known.labels, None], dtype=object)[codes]


def columns_of(path: str, field: str) -> list[str]:
    """Names of the columns of a public table that ``field`` names."""
    from dphmm.storage.inputs import checked_input
    from dphmm.storage.tables import column_names, table_format

    table_format(checked_input(path, field), field)
    return column_names(path)


def numbers(path: str, columns: Sequence[str], option: str) -> FloatArray:
    """The columns (n, d) of a public table as finite numbers."""
    from dphmm.storage.columns import decimals

    table = _read(path, columns, option)
    found = []
    for name in columns:
        values, bad = decimals(table.column(name), name)
        _refuse(path, name, bad, "a finite number in every row")
        found.append(values)
    return np.stack(found, axis=1)


def labels(path: str, column: str, option: str) -> list[str]:
    """A column of text (n,) of a public table, no cell empty."""
    from dphmm.storage.columns import as_text

    cells: list[str] = as_text(_read(path, [column], option).column(column), column).to_pylist()
    _refuse(path, column, np.array([not cell for cell in cells], dtype=np.bool_), "a value in every row")
    return cells


def place(path: str, row: int) -> str:
    """Where a row (from 0) of a public file is, as an editor shows it."""
    from dphmm.storage.line_numbers import lines_of_rows

    if path.lower().endswith((".csv", ".csv.gz")):
        return f"line {lines_of_rows(Path(path), [row + 1])[0]}"
    return f"row {row + 1}"


def _refuse(path: str, column: str, bad: BoolArray, expected: str) -> None:
    if bad.any():
        raise InvalidInput(f"{column}, {place(path, int(np.argmax(bad)))}", "a cell that cannot be used", expected)


def _read(path: str, columns: Sequence[str], option: str) -> Any:
    from dphmm.storage.headers import listed
    from dphmm.storage.tables import read_table

    there = columns_of(path, option)
    missing = next((name for name in columns if name not in there), None)
    if missing is not None:
        raise InvalidInput(option, missing, f"a column of {Path(path).name}: {listed(there)}")
    table = read_table(path, columns=list(dict.fromkeys(columns)), text=None)
    if len(table) == 0:
        raise InvalidInput(Path(path).name, "0 rows", "at least 1 row")
    return table
