"""What may lie beside a released file: its smoothed rows, and for the data owner the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.audit.released_file import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input
from dphmm.storage.tables import column_names, read_table
from dphmm.types import FloatArray

#: Means of answers are sums of floats.
_RELATIVE = 1e-7


def smoothed_answers(path: PathLike, file: ReleasedFile, space: StateSpace) -> FloatArray:
    """The smoothed answers (n, d) of a released file's rows, from what dphmm smooth wrote.

    Raises InvalidInput for a table without these columns, a cell that is no number, and rows of another release.
    """
    file_path = checked_input(path, "smoothed")
    values = ["smoothed"] if space.has_labels else [f"smoothed_{j}" for j in range(space.dimension)]
    names = column_names(file_path)
    missing = next((name for name in ["user", "step", *values] if name not in names), None)
    if missing is not None or f"smoothed_{0 if space.has_labels else space.dimension}" in names:
        expected = f"a table that dphmm smooth wrote from this release, with {', '.join(['user', 'step', *values])}"
        raise InvalidInput("smoothed", f"columns {listed(list(names))}", expected)
    table = read_table(file_path, columns=["user", "step", *values], text=("user", "smoothed"))
    steps, bad = integers(table.column("step"), "step")
    _refuse("step", bad)
    users = as_text(table.column("user"), "user").to_pylist()
    where = {key: row for row, key in enumerate(zip(users, steps.tolist(), strict=True))}
    wanted = list(zip(file.users, file.step.tolist(), strict=True))
    without = sum(key not in where for key in wanted)
    if without:
        came = f"no row for {without} of {len(wanted)} released rows"
        raise InvalidInput("smoothed", came, "what dphmm smooth wrote from this release")
    order = np.array([where[key] for key in wanted], dtype=np.int64)
    if space.has_labels:
        cells = as_text(table.column("smoothed"), "smoothed").to_pylist()
        labels = space.indices_of([cell or "" for cell in cells])
        _refuse("smoothed", labels < 0)
        return labels[order].astype(np.float64)[:, None]
    found = np.stack([_column(table, name)[order] for name in values], axis=1)
    answers = space.own_answers
    low, high = answers.min(axis=0), answers.max(axis=0)
    slack = _RELATIVE * (np.abs(answers).max() + 1)
    if not ((found >= low - slack) & (found <= high + slack)).all():
        raise InvalidInput("smoothed", "an answer beyond all states", "what dphmm smooth wrote from this release")
    return found


def _column(table: Any, name: str) -> FloatArray:
    values, bad = decimals(table.column(name), name)
    _refuse(name, bad)
    return np.asarray(values, dtype=np.float64)


def _refuse(name: str, bad: Any) -> None:
    if bad.any():
        raise InvalidInput(name, f"{int(bad.sum())} cells that cannot be read", "a number in every row, as smoothed")
