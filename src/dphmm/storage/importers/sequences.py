"""Sequences of states: MSNBC's .seq text, and wide tables with one person a row and one step a column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.states.space import check_names
from dphmm.states.trajectory import Counts, Trajectories, ranks
from dphmm.storage.columns import Numbering
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.imported import Imported, ImportReport
from dphmm.storage.inputs import PathLike, checked_input, open_bytes, steady
from dphmm.storage.layouts import Progress
from dphmm.storage.tables import SUFFIXES, read_rows
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


_SEQ = (".seq", ".seq.gz")


def import_sequences(
    source: PathLike,
    *,
    columns: str | None = None,
    user_column: str | None = None,
    names: bool = True,
    spelling: str = "same",
    progress: Progress | None = None,
) -> Imported:
    """State sequences of a .seq or .seq.gz file, or of a wide .csv, .csv.gz or .parquet table.

    A .seq file (UCI MSNBC Anonymous Web Data) has comment lines that start with %, a line of category names,
    (with ``names=False`` there is none) and one sequence of category numbers from 1 per line; users are the numbers of
    the sequences. In a wide table ``columns`` "A:B" names the first and the last column of states, and ``user_column``
    the one with the person (default: the number of the row), whose names ``spelling`` compares. Dropped: bad_sequence
    (whole, with a number that is no category); missing_state (an empty cell, a gap); missing_user; repeated_user (a
    person's second row); ragged_row.
    Raises InvalidInput for other files.
    """
    path = checked_input(source, "source")
    name = path.name.lower()
    if name.endswith(_SEQ):
        if columns is not None or user_column is not None:
            raise InvalidInput("columns", columns or user_column, "none: a .seq file has no columns")
        with steady(path):
            return _told(read_seq(path, names), progress)
    if not names:
        raise InvalidInput("names", names, "a .seq file with it: a table has names of columns")
    if name.endswith(SUFFIXES):
        if columns is None:
            raise InvalidInput("columns", "nothing", "FIRST:LAST, the first and the last column of states")
        return _told(read_wide(path, columns, user_column, spelling), progress)
    raise InvalidInput("source", str(Path(source)), "a name ending in " + ", ".join((*_SEQ, *SUFFIXES)))


def _told(imported: Imported, progress: Progress | None) -> Imported:
    if progress is not None:
        progress(1, 1)
    return imported


def read_seq(path: Path, named: bool = True) -> Imported:
    """Sequences of a .seq or .seq.gz file; a sequence with anything but category numbers is rejected whole.

    ``named``: the first line has the names of the categories; else it is a sequence like all others.
    """
    import pyarrow as pa

    lines = _lines(path)
    if not lines:
        raise InvalidInput(str(path), "0 sequences", "a line of category names and one line per sequence")
    names = _categories(path, lines[0]) if named else None
    sequences = lines if names is None else lines[1:]
    items = [line.split() for line in sequences]
    most = len(names) if names is not None else np.iinfo(np.int32).max
    good = [all(_is_category(item, most) for item in sequence) for sequence in items]
    accepted = [number for number, fine in enumerate(good) if fine]
    if not accepted:
        raise InvalidInput(str(path), f"0 sequences that can be read of {len(items)}", "numbers of categories")
    numbers = np.array([int(item) for number in accepted for item in items[number]], dtype=np.int64)
    lengths = [len(items[number]) for number in accepted]
    owner = np.repeat(np.arange(len(accepted), dtype=np.int32), lengths)
    users = tuple(str(number + 1) for number in accepted)
    rows = Trajectories(users, owner, step=ranks(owner), state=_labels(numbers, names))
    total = sum(map(len, items))
    lost = Counts({"bad_sequence": total - len(rows)})
    rejected = {
        "row": pa.array([number + 1 for number, fine in enumerate(good) if not fine], pa.int64()),
        "reason": pa.array(["bad_sequence"] * (len(good) - len(accepted)), pa.string()),
    }
    return Imported(rows, ImportReport("sequences", 1, total, len(rows), len(users), lost), pa.table(rejected))


def _lines(path: Path) -> list[str]:
    """Lines that are neither empty nor comments. A byte that is not ASCII becomes a sign that is in no category."""
    with open_bytes(path) as file:
        text = file.read().decode("ascii", errors="replace")
    lines = io.StringIO(text, newline=None)
    return [line for line in lines if line.strip() and not line.lstrip().startswith("%")]


def _categories(path: Path, line: str) -> tuple[str, ...]:
    """The names on the first line, which must not be somebody's sequence."""
    words = line.split()
    if not line.isascii():
        raise InvalidInput(str(path), "bytes that are not ASCII in its names", "a .seq text")
    if all(word.isdigit() for word in words):
        expected = "names of categories; or names=False for a file of sequences alone"
        raise InvalidInput(str(path), "numbers in its first line", expected)
    return check_names(words, len(words))


def _is_category(item: str, most: int) -> bool:
    # Longer numbers are no categories, and thousands of digits would take long to read.
    return item.isdigit() and len(item) <= 9 and 0 < int(item) <= most


def _labels(numbers: NDArray[np.int64], names: tuple[str, ...] | None) -> NDArray[np.object_]:
    if names is not None:
        return np.array(names, dtype=object)[numbers - 1]
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return np.array([str(number) for number in distinct], dtype=object)[inverse]


def read_wide(path: Path, columns: str, user_column: str | None, spelling: str = "same") -> Imported:
    """The states in the columns "first:last"; a column is a step, numbered from 0; empty cells are gaps.

    The first row of a person counts.
    """
    import pyarrow as pa

    source = read_rows(path)
    names = list(source.names)
    chosen = _range(columns, names)
    if user_column is not None and user_column not in names:
        raise InvalidInput("user_column", user_column, "one of " + listed(names))
    wanted = chosen if user_column is None else [user_column, *chosen]
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("user_column", user_column, "a column outside those of the states")
    table = pa.concat_tables(source.parts(wanted))
    if not len(table):
        raise InvalidInput(str(path), "0 rows", "one row per person")
    at = np.delete(np.arange(1, len(table) + len(source.ragged) + 1), np.array(source.ragged, dtype=np.int64) - 1)
    users, owner = _owners(table, user_column, spelling, at)
    labels = Numbering()
    states = np.stack([labels.add(table.column(name), name)[0] for name in chosen], axis=1)
    anonymous, again = owner < 0, (owner >= 0) & (ranks(owner) > 0)
    named = ~anonymous & ~again
    known = (states >= 0) & named[:, None]
    if not known.any():
        raise InvalidInput(str(path), "0 states", "names of states in " + columns)
    person, step = np.nonzero(known)
    state = np.array(labels.labels, dtype=object)[states[known]]
    rows = Trajectories(users, owner[person].astype(np.int32), step=step.astype(np.int64), state=state)
    lost = Counts(
        {
            "missing_user": int(anonymous.sum()) * len(chosen),
            "repeated_user": int(again.sum()) * len(chosen),
            "missing_state": int((states < 0)[named].sum()),
            "ragged_row": len(source.ragged),
        }
    )
    read = states.size + len(source.ragged)
    report = ImportReport("sequences", 1, read, len(rows), len(np.unique(rows.user)), lost)
    why = dict.fromkeys(source.ragged, "ragged_row")
    why |= dict.fromkeys(at[anonymous].tolist(), "missing_user") | dict.fromkeys(at[again].tolist(), "repeated_user")
    rejected = sorted(why)
    reasons = pa.array([why[row] for row in rejected], pa.string())
    return Imported(rows, report, pa.table({"row": pa.array(rejected, pa.int64()), "reason": reasons}))


def _range(columns: str, names: list[str]) -> list[str]:
    """The columns from the first named to the last; names may themselves contain colons."""
    parts = columns.split(":")
    for at in range(1, len(parts)):
        first, last = ":".join(parts[:at]), ":".join(parts[at:])
        if first in names and last in names:
            start, stop = names.index(first), names.index(last)
            if start > stop:
                raise InvalidInput("columns", columns, f"{first} to the left of {last}")
            return names[start : stop + 1]
    raise InvalidInput("columns", columns, "FIRST:LAST, two of " + listed(names))


def _owners(table: pa.Table, user_column: str | None, spelling: str, at: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """Names, and the number of each row's person, -1 for nobody. Without names a person is the number of a row."""
    if user_column is None:
        return tuple(str(row) for row in at.tolist()), np.arange(len(table))
    users = Numbering(key_by(spelling))
    owner, _ = users.add(table.column(user_column), user_column)
    return users.labels, owner
