"""Wide tables: one person a row, one step a column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.counts import Counts
from dphmm.states.trajectory import Trajectories
from dphmm.storage.columns import Numbering
from dphmm.storage.headers import listed
from dphmm.storage.importers.imported import Imported, ImportReport
from dphmm.storage.tables import column_names, read_table
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


def read_wide(path: Path, columns: str, user_column: str | None) -> Imported:
    """The states in the columns "first:last"; a column is a step, numbered from 0; empty cells are gaps."""
    import pyarrow as pa

    names = column_names(path)
    chosen = _range(columns, names)
    if user_column is not None and user_column not in names:
        raise InvalidInput("user_column", user_column, "one of " + listed(names))
    wanted = chosen if user_column is None else [user_column, *chosen]
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("user_column", user_column, "a column outside those of the states")
    table = read_table(path, columns=wanted, text=None)
    if not len(table):
        raise InvalidInput(str(path), "0 rows", "one row per person")
    users, owner, anonymous = _owners(table, user_column)
    labels = Numbering()
    states = np.stack([labels.add(table.column(name), name)[0] for name in chosen], axis=1)
    known = (states >= 0) & ~anonymous[:, None]
    if not known.any():
        raise InvalidInput(str(path), "0 states", "names of states in " + columns)
    person, step = np.nonzero(known)
    state = np.array(labels.labels, dtype=object)[states[known]]
    rows = Trajectories(users, owner[person].astype(np.int32), step=step.astype(np.int64), state=state)
    lost = Counts(
        {
            "missing_user": int(anonymous.sum()) * len(chosen),
            "missing_state": int((states < 0)[~anonymous].sum()),
        }
    )
    report = ImportReport("sequences", 1, states.size, len(rows), len(np.unique(rows.user)), lost)
    aside = np.flatnonzero(anonymous) + 1
    reasons = pa.array(["missing_user"] * len(aside), pa.string())
    return Imported(rows, report, pa.table({"row": pa.array(aside, pa.int64()), "reason": reasons}))


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


def _owners(table: pa.Table, user_column: str | None) -> tuple[tuple[str, ...], IntArray, BoolArray]:
    n = len(table)
    if user_column is None:
        return tuple(str(row) for row in range(1, n + 1)), np.arange(n), np.zeros(n, dtype=np.bool_)
    users = Numbering()
    owner, anonymous = users.add(table.column(user_column), user_column)
    if len(np.unique(owner[~anonymous])) != int((~anonymous).sum()):
        raise InvalidInput(user_column, "a person in two rows", "one row per person")
    return users.labels, owner, anonymous
