"""Columns of tables: of public ones, refused with the line of a bad cell; of DATA, where no cell decides anything.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.dependent._contributions import first_of_each
from dphmm.dependent._options import names
from dphmm.errors import InvalidInput
from dphmm.storage.columns import Numbering, as_text, decimals
from dphmm.storage.csv_files import lines_of_rows, listed
from dphmm.storage.inputs import checked_input
from dphmm.storage.private_tables import PrivateRows, PrivateTable, refuse_private
from dphmm.storage.tables import SUFFIXES, column_names, read_table, table_format
from dphmm.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(repr=False)
class Rejected:
    """Rows of DATA that do not count as they are written, for the owner alone: where, and the first reason.

    ``word``: "line" or "row", of which ``reasons`` has the number.
    """

    word: str
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, places: Any, reason: str) -> None:
        """These rows (of which some may be there already) for this reason."""
        for place in np.asarray(places, dtype=np.int64).tolist():
            self.reasons.setdefault(place, reason)

    def sorted(self) -> list[tuple[int, str]]:
        """(place, reason) in the order of the table."""
        return sorted(self.reasons.items())

    @classmethod
    def of(cls, rows: PrivateRows) -> Rejected:
        """Begun with the rows of another number of fields than the header."""
        found = cls(rows.word)
        found.add(rows.odd, "ragged_row")
        return found


def data_rows(data: PrivateTable, columns: Sequence[tuple[str, str]]) -> PrivateRows:
    """The rows of DATA; ``columns`` are pairs (name, the option that names it)."""
    there = data.columns()
    for name, option in columns:
        if name not in there:
            raise InvalidInput(option, name, f"a column of {data.name}: {listed(there)}")
    return data.read([name for name, _ in columns])


def data_numbers(rows: PrivateRows, columns: Sequence[str], rejected: Rejected) -> FloatArray:
    """The columns (n, d), NaN for a cell that is no number, infinite ones as they are."""
    found = np.stack([decimals(rows.table.column(name), name)[0] for name in columns], axis=1)
    rejected.add(rows.places[np.isnan(found).any(axis=1)], "invalid_number")
    return found


def data_labels(rows: PrivateRows, column: str) -> NDArray[Any]:
    """A column of text (n,), None for an empty cell."""
    return np.array(as_text(rows.table.column(column), column).to_pylist(), dtype=object)


def data_users(rows: PrivateRows, column: str, most: int, rejected: Rejected) -> NDArray[Any]:
    """Whose each row is (n,), None where it is nobody's; rows beyond the first ``most`` of a person are listed."""
    known = Numbering()
    codes, bad = known.add(rows.table.column(column), column)
    rejected.add(rows.places[bad], "missing_user")
    rejected.add(rows.places[~bad & ~first_of_each(codes, most)], "beyond_max_rows")
    return np.array([*known.labels, None], dtype=object)[codes]


def is_table(text: Any) -> bool:
    """Whether an option names a table by its suffix."""
    return isinstance(text, str) and text.lower().endswith(SUFFIXES)


def numbers(path: str, columns: Sequence[str], option: str) -> FloatArray:
    """The columns (n, d) of a public table as finite numbers."""
    table = _read(path, columns, option)
    found = []
    for name in columns:
        values, bad = decimals(table.column(name), name)
        _refuse(path, name, bad, "a finite number in every row")
        found.append(values)
    return np.stack(found, axis=1)


def public_names(
    path: str, data: PrivateTable, option: str, *, column: str | None = None, shown: str, expected: str
) -> list[str]:
    """Different names in a column of a public table, which is not DATA: ``column`` if it is there, else the first.

    ``shown``: the table in the message about a name that stands twice.
    """
    refuse_private(path, data, option)
    there = _columns(path, option)
    chosen = column if column in there else there[0]
    assert chosen is not None
    cells: list[str] = as_text(_read(path, [chosen], option).column(chosen), chosen).to_pylist()
    _refuse(path, chosen, np.array([not cell for cell in cells], dtype=np.bool_), "a value in every row")
    if len(set(cells)) < len(cells):
        raise InvalidInput(option, f"{shown}, with a name twice", expected)
    return cells


def feature_columns(value: Any, option: str) -> list[str]:
    """The columns that a question is about, which must be named."""
    if value is None:
        raise InvalidInput(option, "nothing", "the columns, different ones: x,y")
    return names(value, option, "different columns: x,y")


def place(path: str, row: int) -> str:
    """Where a row (from 0) of a public file is, as an editor shows it."""
    if path.lower().endswith((".csv", ".csv.gz")):
        return f"line {lines_of_rows(Path(path), [row + 1])[0]}"
    return f"row {row + 1}"


def _columns(path: str, option: str) -> list[str]:
    table_format(checked_input(path, option), option)
    return column_names(path)


def _refuse(path: str, column: str, bad: BoolArray, expected: str) -> None:
    if bad.any():
        raise InvalidInput(f"{column}, {place(path, int(np.argmax(bad)))}", "a cell that cannot be used", expected)


def _read(path: str, columns: Sequence[str], option: str) -> Any:
    there = _columns(path, option)
    missing = next((name for name in columns if name not in there), None)
    if missing is not None:
        raise InvalidInput(option, missing, f"a column of {Path(path).name}: {listed(there)}")
    table = read_table(path, columns=list(dict.fromkeys(columns)), text=None)
    if len(table) == 0:
        raise InvalidInput(Path(path).name, "0 rows", "at least 1 row")
    return table
