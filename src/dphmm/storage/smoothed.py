"""Released rows read back, and what smoothing makes of them as a table of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.session.smoothing import Smoothed
from dphmm.states.space import StateSpace
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.csv_files import listed
from dphmm.storage.tables import column_list, to_arrow
from dphmm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows (n,) of a released table in its order; ``times`` is its column t as it came, None without one.

    A row that was not asked has no plan, "", and 0 as z.
    """

    users: list[str]
    times: Any
    step: IntArray
    z: IntArray
    epsilon: FloatArray
    plans: list[str]

    def by_user(self) -> list[tuple[str, IntArray]]:
        """Each user's row numbers in order of step, users in order of their names."""
        _, first, number = np.unique(np.array(self.users, dtype=object), return_index=True, return_inverse=True)
        order = np.lexsort((self.step, number))
        parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
        return [(self.users[at], rows) for at, rows in zip(first.tolist(), parts, strict=True)]


def columns_needed(space: StateSpace) -> list[str]:
    """The columns of a released table that smoothing reads, t apart."""
    return ["user", "step", *answer_columns(space), "epsilon", "plan"]


def answer_columns(space: StateSpace) -> list[str]:
    """The columns of released answers: z for labels, z_0.. for numbers."""
    return ["z"] if space.has_labels else [f"z_{j}" for j in range(space.dimension)]


def read_answers(table: Any, space: StateSpace, asked: BoolArray) -> IntArray:
    """The lattice answers (n, d) in the columns of an Arrow table; 0 where a row was not ``asked`` (n,).

    Raises InvalidInput for a cell that cannot be read, or is none of the space's, and for an answer that was not asked.
    """
    values: list[Any] = []
    for name in answer_columns(space):
        if space.has_labels:
            cells = [cell or "" for cell in as_text(table.column(name), name).to_pylist()]
            column: Any = space.indices_of(np.array(cells, dtype=object))
            empty = np.array([not cell for cell in cells], dtype=np.bool_)
            bad = column < 0
        else:
            column, bad = decimals(table.column(name), name)
            empty = bad
        _refuse(name, bad & asked)
        if (~empty & ~asked).any():
            came = f"{int((~empty & ~asked).sum())} answers in rows without a plan"
            raise InvalidInput(name, came, "none in a row that was not asked, as released")
        values.append(column)
    z = np.stack(values, axis=1)
    found = np.zeros(z.shape, dtype=np.int64)
    found[asked] = _lattice(z[asked].astype(np.float64), space)
    return found


def check_columns(names: Sequence[str], space: StateSpace) -> None:
    """Refuse a table that is no released table of this space."""
    missing = next((name for name in columns_needed(space) if name not in names), None)
    if missing is not None:
        raise InvalidInput(missing, f"columns {listed(list(names))}", "a released table, with the column " + missing)
    if not space.has_labels and f"z_{space.dimension}" in names:
        came = f"answers of more than {space.dimension} dimensions"
        raise InvalidInput(f"z_{space.dimension}", came, "a table released from this space")


def released_rows(table: Any, space: StateSpace) -> ReleasedRows:
    """The rows of a released pandas, polars or Arrow table.

    Raises InvalidInput for a missing column, a cell that cannot be read, answers off the lattice, and no row at all.
    """
    names = column_list(table)
    check_columns(names, space)
    timed = ["t"] if "t" in names else []
    arrow = to_arrow(table, [*columns_needed(space), *timed])
    if not len(arrow):
        raise InvalidInput("table", "0 rows", "at least one released row")
    steps, bad = integers(arrow.column("step"), "step")
    _refuse("step", bad)
    plans = [plan or "" for plan in as_text(arrow.column("plan"), "plan").to_pylist()]
    asked = np.array([plan != "" for plan in plans], dtype=np.bool_)
    z = read_answers(arrow, space, asked)
    epsilon, bad = decimals(arrow.column("epsilon"), "epsilon")
    _refuse("epsilon", bad)
    users = as_text(arrow.column("user"), "user").to_pylist()
    _refuse("user", np.array([user is None for user in users]))
    times = arrow.column("t") if timed else None
    return ReleasedRows(users, times, steps, z, epsilon, plans)


def smoothed_table(rows: ReleasedRows, smoothed: Smoothed, space: StateSpace) -> Any:
    """An Arrow table of the released rows, smoothed.

    user, t (where there are times), step, smoothed_0.. (posterior mean, answer units; not of labels), smoothed (the
    likeliest state's name), probability (of that state), path (the state on the likeliest path), for maps
    smoothed_lat, smoothed_lon, path_lat, path_lon, and marginals (a list of N), where they were asked for.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {"user": pa.array(rows.users, pa.string())}
    if rows.times is not None:
        columns["t"] = rows.times
    columns["step"] = pa.array(rows.step, pa.int64())
    if not space.has_labels:
        columns |= {f"smoothed_{j}": smoothed.mean[:, j] for j in range(space.dimension)}
    names = np.array(space.names, dtype=object)
    columns["smoothed"] = pa.array(names[smoothed.state], pa.string())
    columns["probability"] = smoothed.probability
    columns["path"] = pa.array(names[smoothed.path], pa.string())
    for name, points in (("smoothed", smoothed.mean), ("path", space.own_answers[smoothed.path])):
        place = space.to_latlon(points)
        if place is not None:
            columns[f"{name}_lat"], columns[f"{name}_lon"] = place
    if smoothed.marginals is not None:
        flat = pa.array(smoothed.marginals.ravel(), pa.float64())
        columns["marginals"] = pa.FixedSizeListArray.from_arrays(flat, space.n_states).cast(pa.list_(pa.float64()))
    return pa.table(columns)


def _lattice(z: FloatArray, space: StateSpace) -> IntArray:
    try:
        return space.frame.to_lattice(z)
    except InvalidInput:
        came = "an answer off the lattice of the space"
        raise InvalidInput("z_0", came, "answers as they were released, from this space") from None


def _refuse(name: str, bad: Any) -> None:
    if bad.any():
        raise InvalidInput(name, f"{int(bad.sum())} cells that cannot be read", "a value in every row, as released")
