"""Released tables as arrays: the rows of one subject, or of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.csv_files import listed
from dphmm.storage.tables import column_list, to_arrow
from dphmm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers of a released table, row by row; ``rows`` are those that were asked for, by step."""

    table: Any
    rows: IntArray
    step: IntArray
    whose: str
    first_user: str

    @classmethod
    def of(cls, released: Any, user: str | None) -> Columns:
        """The rows of a user, or of all. Raises InvalidInput for a table that is no released one."""
        names = column_list(released)
        for name in ("user", "step"):
            if name not in names:
                raise InvalidInput("released", f"columns {listed(list(names))}", f"a released table, with {name}")
        table = to_arrow(released, list(names))
        users = np.array(as_text(table.column("user"), "user").to_pylist(), dtype=object)
        step, bad = integers(table.column("step"), "step")
        if bad.any() or not len(users):
            raise InvalidInput("released", "no rows, or steps that are no numbers", "a released table")
        mine = np.arange(len(users)) if user is None else np.flatnonzero(users == user)
        if not len(mine):
            raise InvalidInput("user", user, f"a user of the table, such as {users[0]!r}")
        rows = mine[np.argsort(step[mine], kind="stable")]
        return cls(table, rows, step[rows], "all subjects" if user is None else user, str(users[0]))

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers at the rows; infinite for a cost without bound."""
        if name not in self.table.column_names:
            raise InvalidInput("released", "a table without the column " + name, "a released table")
        import pyarrow as pa

        column = self.table.column(name)
        if pa.types.is_floating(column.type):
            return np.asarray(column.to_numpy(), dtype=np.float64)[self.rows]
        values, bad = decimals(column, name)
        if bad.any():
            raise InvalidInput(name, f"{int(bad.sum())} cells that cannot be read", "a number in every row")
        return np.asarray(values, dtype=np.float64)[self.rows]

    def answers(self, name: str, space: StateSpace) -> FloatArray:
        """Answers (n, d) at the rows; of labels the numbers of their states, NaN for a row that was not asked."""
        if space.has_labels and name in self.table.column_names:
            cells = [cell or "" for cell in as_text(self.table.column(name), name).to_pylist()]
            numbers = space.indices_of(cells).astype(np.float64)
            numbers[numbers < 0] = np.nan
            return numbers[self.rows][:, None]
        return np.stack([self.numbers(f"{name}_{j}") for j in range(space.dimension)], axis=1)

    def published(self, space: StateSpace) -> dict[str, FloatArray]:
        """The released answers (n, d), and the estimates where the table has them."""
        found = {"released": self.answers("z", space)}
        if {"estimate_0", "estimate" if space.has_labels else "estimate_0"} & set(self.table.column_names):
            found["estimate"] = self.answers("estimate", space)
        return found

    def given(self, answers: Any, name: str, space: StateSpace) -> FloatArray:
        """Answers (n, d), or states (n,), of every row of the table, at the rows; NaN for a state of -1."""
        values = np.asarray(answers)
        n = len(self.table)
        if values.shape == (n,) and values.dtype.kind in "iu" and (values < space.n_states).all():
            found = space.own_answers[values].astype(np.float64)
            found[values < 0] = np.nan
            return np.asarray(found[self.rows])
        if values.shape != (n, space.dimension) or values.dtype.kind not in "iuf":
            expected = f"({n}, {space.dimension}) answers or ({n},) state numbers, one for each row"
            raise InvalidInput(name, f"an array of shape {values.shape}", expected)
        return np.asarray(values[self.rows], dtype=np.float64)
