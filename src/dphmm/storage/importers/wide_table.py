"""Wide tables: one person a row, one step a column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Counts, Trajectories, ranks
from dphmm.storage.columns import Numbering
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.imported import Imported, ImportReport
from dphmm.storage.tables import delimited_names, read_rows
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


def read_wide(path: Path, columns: str, user_column: str | None) -> Imported:
    """The states in the columns "first:last"; a column is a step, numbered from 0; empty cells are gaps.

    Of a person's rows the first one counts.
    """
    import pyarrow as pa

    names = delimited_names(path)
    chosen = _range(columns, names)
    if user_column is not None and user_column not in names:
        raise InvalidInput("user_column", user_column, "one of " + listed(names))
    wanted = chosen if user_column is None else [user_column, *chosen]
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("user_column", user_column, "a column outside those of the states")
    found = read_rows(path, wanted)
    table = pa.concat_tables(found.parts)
    if not len(table):
        raise InvalidInput(str(path), "0 rows", "one row per person")
    at = np.delete(np.arange(1, len(table) + len(found.ragged) + 1), np.array(found.ragged, dtype=np.int64) - 1)
    users, owner = _owners(table, user_column, at)
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
            "ragged_row": len(found.ragged),
        }
    )
    read = states.size + len(found.ragged)
    report = ImportReport("sequences", 1, read, len(rows), len(np.unique(rows.user)), lost)
    aside = dict.fromkeys(found.ragged, "ragged_row")
    aside |= dict.fromkeys(at[anonymous].tolist(), "missing_user") | dict.fromkeys(at[again].tolist(), "repeated_user")
    listed_rows = sorted(aside)
    reasons = pa.array([aside[row] for row in listed_rows], pa.string())
    return Imported(rows, report, pa.table({"row": pa.array(listed_rows, pa.int64()), "reason": reasons}))


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


def _owners(table: pa.Table, user_column: str | None, at: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """Names, and the number of each row's person, -1 for nobody. Without names a person is the number of a row."""
    if user_column is None:
        return tuple(str(row) for row in at.tolist()), np.arange(len(table))
    users = Numbering()
    owner, _ = users.add(table.column(user_column), user_column)
    return users.labels, owner
