"""Inputs of a question: public options, columns of tables, and the rows of a person that count.

*Options.* The description of each, and the meaning of its text (command line) or its Python value. ``option`` is the
caller's name of a choice, for messages.

*Columns.* A bad cell of a public table is refused with its line. No cell of DATA decides whether there is an answer.

*Contributions.* At most K records of one person count, and a cell that cannot be used counts as a public value. A rule
looks at one person's own records, or at one cell alone. So nobody's record decides what another record counts as.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm._checks import exact_number, whole
from dphmm.accounting.person import key_by, person_key
from dphmm.errors import InvalidInput
from dphmm.storage.columns import Numbering, as_text, decimals
from dphmm.storage.csv_files import lines_of_rows, listed
from dphmm.storage.inputs import checked_input
from dphmm.storage.private_tables import PrivateRows, PrivateTable, refuse_private
from dphmm.storage.tables import SUFFIXES, column_names, read_table, table_format
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


_FARTHEST = 10**15
#: How a caller writes the name of an option: "windows" in Python, "--windows" on the command line.
Called: TypeAlias = Callable[[str], str]
BOX = "the public box, LOW:HIGH for each column: unbounded numbers cannot be protected"


@dataclass(frozen=True)
class Option:
    """A public choice of a question, as Python and the command line offer it.

    ``kind``: the type of its value on the command line; a bool is a flag. ``flags``: how the command line writes it,
    "--name" if not given. ``shown``: True if help tells the default.
    """

    name: str
    help: str
    metavar: str | None = None
    kind: type = str
    default: Any = None
    flags: tuple[str, ...] = ()
    shown: bool = False

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.flags[0].partition("/")[0] if self.flags else "--" + self.name.replace("_", "-")


SPELLING = Option(
    "spelling",
    "Whether different spellings of a name are the same person, or exact names are several  [default: the ledger's, "
    "else same]",
    "same|exact",
)
CONSISTENT = Option(
    "consistent",
    "No counts below 0, the same noisy totals (post-processing).",
    kind=bool,
    default=False,
    flags=("--consistent/--raw",),
)
MAX_ROWS = Option(
    "max_rows_per_user",
    "A public number: the first K rows of each person count. Needed with group and friends; group:K says it too.",
    "K",
    int,
)

RELATION = Option(
    "neighbours",
    "Whether epsilon is of a person or record that is replaced (in any way), or there or not (half the noise).",
    "replace|add-remove",
    default="replace",
    shown=True,
)


def needed(value: Any, option: str, expected: str) -> Any:
    """A choice that must be made."""
    if value is None:
        raise InvalidInput(option, "nothing", expected)
    return value


def counting(value: Any, option: str, expected: str, least: int = 1, most: int = 10**9) -> int:
    """A whole number that must be given."""
    plain = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not plain or not least <= value <= most:
        raise InvalidInput(option, "nothing" if value is None else value, expected)
    return int(value)


def finite(value: Any, option: str) -> float:
    """A finite number."""
    exact = exact_number(value.strip() if isinstance(value, str) else value, option)
    if abs(exact) > _FARTHEST:
        raise InvalidInput(option, value, "a number within 1e15 of 0")
    return float(exact)


def names(value: Any, option: str, expected: str) -> list[str]:
    """A list without repetitions, or as text: a,b,c."""
    parts = [name.strip() for name in value.split(",")] if isinstance(value, str) else list(sequence(value))
    if not parts or not all(isinstance(name, str) and name for name in parts) or len(set(parts)) < len(parts):
        raise InvalidInput(option, value, expected)
    return parts


def box(value: Any, columns: Sequence[str], option: str) -> tuple[list[float], list[float]]:
    """(low, high), two lists of a number for each column; as text LOW:HIGH for each."""
    expected = f"LOW:HIGH for each of {len(columns)} columns, as 0:1,-5:5"
    if isinstance(value, str):
        parts: list[Sequence[Any]] = [part.split(":") for part in value.split(",")]
    else:
        low, high = (list(sequence(side)) for side in value) if len(sequence(value)) == 2 else ([], [None])
        parts = list(zip(low, high, strict=True)) if len(low) == len(high) else []
    if len(parts) != len(columns) or any(len(part) != 2 for part in parts):
        raise InvalidInput(option, value, expected)
    low, high = ([finite(part[side], option) for part in parts] for side in (0, 1))
    if not all(a < b for a, b in zip(low, high, strict=True)):
        raise InvalidInput(option, value, f"{expected}, LOW < HIGH")
    return low, high


def sequence(value: Any) -> Sequence[Any]:
    """A list, tuple or array as a sequence; () for any other value."""
    return value.tolist() if isinstance(value, np.ndarray) else value if isinstance(value, (list, tuple)) else ()


def grouped(dependence: Any, most: int | None) -> Any:
    """The dependence, where "group" (all records of one person depend on each other) is ("group", ``most``).

    Raises InvalidInput for "group" without a public number of records that one person may have.
    """
    if most is not None:
        whole(most, "max_rows_per_user", 1)
    if not (isinstance(dependence, str) and dependence == "group"):
        return dependence
    if most is None:
        expected = 'a public number: how many records of one person count, with dependence "group"'
        raise InvalidInput("max_rows_per_user", None, expected)
    return ("group", most)


def owned(users: Any, n: int, most: int | None) -> BoolArray:
    """True where one of ``n`` rows counts: all, or of each of ``users`` (n,) the first ``most``.

    Raises InvalidInput where one of the two is given without the other, and for another number of users than of rows.
    """
    if most is None and users is None:
        return np.ones(n, dtype=np.bool_)
    if most is None or users is None:
        missing = "users" if users is None else "max_rows_per_user"
        raise InvalidInput(missing, None, "both users and max_rows_per_user, or neither")
    codes = people(users)
    if len(codes) != n:
        raise InvalidInput("users", f"{len(codes)}", f"one for each of {n} rows")
    return first_of_each(codes, most)


def people(users: Any) -> IntArray:
    """Numbers (n,) of people from names or numbers, -1 where a row is nobody's; names of one key are one person."""
    import pandas as pd

    labels = np.asarray(users)
    if labels.ndim != 1:
        raise InvalidInput("users", f"shape {labels.shape}", "one name or number for each row")
    names, number = np.unique(labels.astype(str), return_inverse=True)
    numbering = Numbering(person_key)
    codes = np.array([numbering.number(name) for name in names.tolist()], dtype=np.int64)[number]
    codes[np.asarray(pd.isna(labels))] = -1
    return codes


def first_of_each(codes: IntArray, most: int, order: IntArray | None = None) -> BoolArray:
    """True where a row (n,) is among the first ``most`` of its person, by ``order`` (n,) and else as they stand.

    ``codes`` (n,): the person of each row. A row with a negative number is nobody's, and does not count.
    """
    by_person = np.lexsort((np.arange(len(codes)),) + (() if order is None else (order,)) + (codes,))
    ordered = codes[by_person]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    first = np.zeros(len(codes), dtype=np.bool_)
    first[by_person] = (rank < most) & (ordered >= 0)
    return first


def last_of_each(codes: IntArray, place: IntArray) -> BoolArray:
    """True where a row (n,) is the last, as they stand, of its person at its ``place`` (n,)."""
    order = np.lexsort((np.arange(len(codes)), place, codes))
    ordered, at = codes[order], place[order]
    last = np.r_[(ordered[1:] != ordered[:-1]) | (at[1:] != at[:-1]), True][: len(ordered)]
    marked = np.zeros(len(codes), dtype=np.bool_)
    marked[order] = last
    return marked


def plain_numbers(values: Any, field: str) -> FloatArray:
    """Values as floats, NaN for each that is no number; InvalidInput for a type that holds none."""
    cells = np.asarray(values)
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    if cells.dtype.kind not in "OUS":
        raise InvalidInput(field, f"dtype {cells.dtype}", "numbers")
    floats = np.array([_number(value) for value in cells.ravel().tolist()], dtype=np.float64)
    return floats.reshape(cells.shape)


def whole_numbers(values: Any, field: str) -> tuple[IntArray, BoolArray]:
    """Values as integers, exactly, and which of them are whole numbers from -2**53 to 2**53; 0 for all others.

    Of floats only those within 2**53: from there on a float stands for several whole numbers.
    """
    cells = np.asarray(values)
    if cells.dtype.kind in "OUS":
        parsed = [_whole(value) for value in cells.ravel().tolist()]
        cells = np.array([2**54 if number is None else number for number in parsed], np.int64).reshape(cells.shape)
    if cells.dtype.kind in "iu":
        good = (cells >= -(2**53)) & (cells <= 2**53)
        return np.where(good, cells, 0).astype(np.int64), good
    floats = plain_numbers(cells, field)
    with np.errstate(invalid="ignore"):
        good = (np.abs(floats) < 2**53) & (floats == np.rint(floats))
    return np.where(good, floats, 0).astype(np.int64), good


def _whole(value: Any) -> int | None:
    """A cell of any kind as a whole number from -2**53 to 2**53, None for all others."""
    try:
        if isinstance(value, (str, bytes)):
            try:
                value = int(value)
            except ValueError:
                value = float(value)
        most = 2**53 - 1 if isinstance(value, (float, np.floating)) else 2**53
        return int(value) if -most <= value <= most and int(value) == value else None
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return None


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


@dataclass(repr=False)
class Rejected:
    """Rows of DATA that do not count as they are written, for the owner alone: the place, and the first reason.

    ``word``: the owner's word for a place, "line" or "row". ``text``: the CSV file whose rows ``reasons`` number.
    """

    word: str
    reasons: dict[int, str] = field(default_factory=dict)
    text: Path | None = None

    def add(self, places: Any, reason: str) -> None:
        """Add these rows (some may be there already) for this reason."""
        for place in np.asarray(places, dtype=np.int64).tolist():
            self.reasons.setdefault(place, reason)

    def sorted(self) -> list[tuple[int, str]]:
        """(place, reason) in the order of the table."""
        listed = sorted(self.reasons.items())
        if self.text is None:
            return listed
        lines = lines_of_rows(self.text, [row for row, _ in listed])
        return [(line, reason) for line, (_, reason) in zip(lines, listed, strict=True)]

    @classmethod
    def of(cls, rows: PrivateRows) -> Rejected:
        """Begun with the rows of another number of fields than the header."""
        rejected = cls(rows.word, text=rows.text)
        rejected.add(rows.odd, "ragged_row")
        return rejected


def data_rows(data: PrivateTable, columns: Sequence[tuple[str, str]]) -> PrivateRows:
    """The rows of DATA; ``columns`` are pairs (name, the option that names it)."""
    there = data.columns()
    for name, option in columns:
        if name not in there:
            raise InvalidInput(option, name, f"a column of {data.name}: {listed(there)}")
    return data.read([name for name, _ in columns])


def data_numbers(rows: PrivateRows, columns: Sequence[str], rejected: Rejected) -> FloatArray:
    """The columns (n, d), NaN for a cell that is no number, infinite ones as they are."""
    floats = np.stack([decimals(rows.table.column(name), name)[0] for name in columns], axis=1)
    rejected.add(rows.places[np.isnan(floats).any(axis=1)], "invalid_number")
    return floats


def data_labels(rows: PrivateRows, column: str) -> NDArray[Any]:
    """A column of text (n,), None for an empty cell."""
    return np.array(as_text(rows.table.column(column), column).to_pylist(), dtype=object)


def data_users(rows: PrivateRows, column: str, most: int, rejected: Rejected) -> NDArray[Any]:
    """The person of each row (n,), as a number; None for nobody.

    Rows beyond the first ``most`` of a person are listed.
    """
    known = Numbering(key_by(rows.spelling))
    codes, bad = known.add(rows.table.column(column), column)
    rejected.add(rows.places[bad], "missing_user")
    rejected.add(rows.places[~bad & ~first_of_each(codes, most)], "beyond_max_rows")
    # Not by name: names of several people by the rule of these rows may be of one by another.
    return np.array([*range(len(known.labels)), None], dtype=object)[codes]


def is_table(text: Any) -> bool:
    """True if an option names a table by its suffix."""
    return isinstance(text, str) and text.lower().endswith(SUFFIXES)


def numbers(path: str, columns: Sequence[str], option: str) -> FloatArray:
    """The columns (n, d) of a public table as finite numbers."""
    table = _read(path, columns, option)
    floats = []
    for name in columns:
        values, bad = decimals(table.column(name), name)
        _refuse(path, name, bad, "a finite number in every row")
        floats.append(values)
    return np.stack(floats, axis=1)


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
    """The place of a row (from 0) in a public file, as an editor shows it."""
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
