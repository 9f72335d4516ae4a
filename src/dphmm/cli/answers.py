"""Tables about states by name: their answers, their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace


def space_of_answers(path: str) -> StateSpace:
    """The space of a table: names in column ``state`` or the first one, numbers in all others."""
    from dphmm.states.space import StateSpace

    names, columns = _by_name(path, "--answers")
    if not columns:
        raise InvalidInput("--answers", f"{path}, with names only", "a column of numbers beside the names")
    rows = zip(*columns.values(), strict=True)
    answers = [
        [_number(value, f"{column} of state {name!r}") for column, value in zip(columns, row, strict=True)]
        for name, row in zip(names, rows, strict=True)
    ]
    return StateSpace(answers, names)


def labels_by_state(path: str, space: StateSpace) -> list[str]:
    """One label per state of the space, from a table of names and labels; other names are passed over.

    Raises InvalidInput for a state without a label, and for one with two.
    """
    names, columns = _by_name(path, "--labels")
    if len(columns) != 1:
        raise InvalidInput("--labels", f"{path}, with {len(columns)} columns beside the names", "one column of labels")
    (column,) = columns
    labels: dict[str, str] = {}
    for name, label in zip(names, columns[column], strict=True):
        if label is None or str(label) == "":
            raise InvalidInput("--labels", f"no label for state {name!r}", "a label in every row")
        if labels.setdefault(name, str(label)) != str(label):
            raise InvalidInput("--labels", f"two labels for state {name!r}", "one")
    missing = next((name for name in space.names if name not in labels), None)
    if missing is not None:
        raise InvalidInput("--labels", f"no label for state {missing!r}", "one for every state of the model")
    return [labels[name] for name in space.names]


def _by_name(path: str, option: str) -> tuple[list[str], dict[str, list[Any]]]:
    from dphmm.storage.columns import as_text
    from dphmm.storage.tables import column_names, read_table

    columns = column_names(path)
    if not columns:
        raise InvalidInput(option, f"{path}, without columns", "names of states, and a column beside them")
    name = "state" if "state" in columns else columns[0]
    table = read_table(path, text=None)
    names = as_text(table.column(name), name).to_pylist()
    if not names or None in names:
        raise InvalidInput(option, f"{path}, with no rows or a row without a name", f"names of states in column {name}")
    return names, {other: _values(table.column(other), other) for other in columns if other != name}


def _values(column: Any, field: str) -> list[Any]:
    from dphmm.storage.columns import is_number, plain_type

    column = plain_type(column)
    if not (is_number(column.type) or str(column.type) == "string"):
        raise InvalidInput(field, f"a column of type {column.type}", "numbers or text")
    values: list[Any] = column.to_pylist()
    return values


def _number(value: Any, field: str) -> float:
    from dphmm._checks import finite_number

    return finite_number(value, field)
