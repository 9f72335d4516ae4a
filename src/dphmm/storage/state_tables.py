"""Public tables about states by name: which there are, their answers, their labels; and groups of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace, check_names
from dphmm.storage.columns import as_text, is_number, plain_type
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input
from dphmm.storage.tables import column_names, read_table


def space_of_answers(path: str, field: str = "answers") -> StateSpace:
    """The space of a table: names in column ``state`` or the first one, numbers in all others.

    Raises InvalidInput about ``field`` for a table with names only, a row without a name, and a cell that is no number.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> table = Path(mkdtemp()) / "pages.csv"
    >>> _ = table.write_text("state,x,y\\nalpha,1,2\\nbeta,0.5,3\\n")
    >>> space_of_answers(str(table)).answers.tolist()
    [[1.0, 2.0], [0.5, 3.0]]
    """
    names, columns = _by_name(path, field)
    if not columns:
        raise InvalidInput(field, f"{path}, with names only", "a column of numbers beside the names")
    rows = zip(*columns.values(), strict=True)
    answers = [
        [_number(value, f"{column} of state {name!r}") for column, value in zip(columns, row, strict=True)]
        for name, row in zip(names, rows, strict=True)
    ]
    return StateSpace(answers, names)


def labels_by_state(path: str, space: StateSpace, field: str = "labels") -> list[str]:
    """One label per state of the space, from a table of names and labels; other names are passed over.

    Raises InvalidInput for a state without a label, and for one with two.
    """
    names, columns = _by_name(path, field)
    if len(columns) != 1:
        raise InvalidInput(field, f"{path}, with {len(columns)} columns beside the names", "one column of labels")
    (column,) = columns
    labels: dict[str, str] = {}
    for name, label in zip(names, columns[column], strict=True):
        if label is None or str(label) == "":
            raise InvalidInput(field, f"no label for state {name!r}", "a label in every row")
        if labels.setdefault(name, str(label)) != str(label):
            raise InvalidInput(field, f"two labels for state {name!r}", "one")
    missing = next((name for name in space.names if name not in labels), None)
    if missing is not None:
        raise InvalidInput(field, f"no label for state {missing!r}", "one for every state of the model")
    return [labels[name] for name in space.names]


def listed_columns(path: str, field: str, columns: Sequence[str]) -> list[list[Any]]:
    """The texts in these columns of a public table with rows, in its order; None for an empty cell."""
    found = column_names(checked_input(path, field))
    for column in columns:
        if column not in found:
            raise InvalidInput(field, f"columns {listed(found)}", f"a column {column} that lists the names")
    table = read_table(path, columns=list(columns), text=None)
    if not table.num_rows:
        raise InvalidInput(field, f"{path}, with no rows", f"the names there can be, in column {columns[0]}")
    return [as_text(table.column(column), column).to_pylist() for column in columns]


def listed_names(path: str, field: str, column: str) -> list[str]:
    """The names in one column of a table, in its order; no message repeats one, in case the table is the data."""
    (names,) = listed_columns(path, field, (column,))
    try:
        return list(check_names(names, len(names)))
    except InvalidInput:
        expected = "each name once, with no control characters: a list of the names there can be, not data"
        raise InvalidInput(field, f"{path}, with names that cannot be or that repeat", expected) from None


def read_groups(path: PathLike, field: str = "groups") -> dict[str, str]:
    """The group of every subject, by name, from a public table with columns subject (or user) and group.

    Raises InvalidInput for a missing column, an empty cell, and a subject in two groups.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> table = Path(mkdtemp()) / "families.csv"
    >>> _ = table.write_text("subject,group\\nanna,one\\nben,one\\n")
    >>> read_groups(table)
    {'anna': 'one', 'ben': 'one'}
    """
    named_so = "user" if "user" in column_names(checked_input(path, field)) else "subject"
    name = Path(path).name
    found: dict[str, str] = {}
    for subject, group in zip(*listed_columns(str(path), field, (named_so, "group")), strict=True):
        if not subject or not group:
            raise InvalidInput(field, f"{name}, with an empty cell", "a subject and a group in every row")
        if found.setdefault(subject, group) != group:
            raise InvalidInput(field, f"{name}, with a subject in two groups", "one group a subject")
    return found


def _by_name(path: str, field: str) -> tuple[list[str], dict[str, list[Any]]]:
    columns = column_names(path)
    if not columns:
        raise InvalidInput(field, f"{path}, without columns", "names of states, and a column beside them")
    name = "state" if "state" in columns else columns[0]
    table = read_table(path, text=None)
    names = as_text(table.column(name), name).to_pylist()
    if not names or None in names:
        raise InvalidInput(field, f"{path}, with no rows or a row without a name", f"names of states in column {name}")
    return names, {other: _values(table.column(other), other) for other in columns if other != name}


def _values(column: Any, field: str) -> list[Any]:
    column = plain_type(column)
    if not (is_number(column.type) or str(column.type) == "string"):
        raise InvalidInput(field, f"a column of type {column.type}", "numbers or text")
    values: list[Any] = column.to_pylist()
    return values


def _number(value: Any, field: str) -> float:
    return finite_number(value, field)
