"""Public tables that an audit or a model takes: numbers, moves, costs, answers and labels.

What is in such a file is taken to be public.

`read_numbers` reads files of nothing but numbers, one row a draw: .npy, .parquet, .csv, .csv.gz. `read_matrix`,
`read_moves` and `read_costs` read weights of moves (each row is divided by its sum) and costs of answers.
`space_of_answers`, `labels_by_state` and `listed_names` read which states there are, their answers and labels.
"""

from __future__ import annotations

import re
import stat
import tokenize
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import DENSE_STATES, divided, row_sums
from dphmm.states.space import StateSpace, check_names, ordered_labels
from dphmm.storage.columns import as_text, decimals, is_number, plain_type
from dphmm.storage.csv_files import first_row, lines_of_records, listed, read_headless
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.tables import column_list, column_names, read_table, read_whole, table_format, to_arrow
from dphmm.types import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Texts that programs write for numbers, NaN and the infinities included.
_NUMBER = re.compile(r"\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)\s*", re.IGNORECASE)

#: What NumPy raises for a damaged array.
_DAMAGED = (ValueError, TypeError, OverflowError, EOFError, OSError, SyntaxError, MemoryError, tokenize.TokenError)


def read_numbers(path: PathLike, field: str = "samples") -> FloatArray:
    """The numbers (n, d) of a file: an array, or all columns of a table.

    A CSV file may have a header or none: a first row that is numbers throughout is a row like all others. Raises
    InvalidInput for a file that cannot be read, a cell that is no number, a first row that is numbers in part, and a
    column without a name.
    """
    file = Path(path)
    if file.suffix.lower() == ".npy":
        return _array(file, field)
    file = checked_input(file, field)
    if table_format(file, field) == ".parquet":
        return _columns(read_table(file), file, field)
    with steady(file):
        head = [bool(_NUMBER.fullmatch(cell)) for cell in first_row(file)]
        if all(head):
            table = read_headless(file, [f"column {j}" for j in range(1, len(head) + 1)])
            return _columns(table, file, field, header=False)
        _check_names(first_row(file), head, f"{field}, {file.name}")
        return _columns(read_table(file), file, field)


def _check_names(names: list[str], numbers: list[bool], field: str) -> None:
    """A first row that is neither names nor numbers would lose a row, or count rows as a coordinate."""
    if any(numbers):
        came = f"a first row with {sum(numbers)} of {len(numbers)} cells numbers"
        raise InvalidInput(field, came, "names of all columns, or numbers throughout")
    if not all(name.strip() for name in names):
        raise InvalidInput(field, "a column without a name", "a name for each, and no column that numbers the rows")


def _columns(table: pa.Table, path: Path, field: str, header: bool = True) -> FloatArray:
    columns = []
    for name in table.column_names:
        values, bad = decimals(table.column(name), name)
        if bad.any():
            where = f"{field}, {path.name}, {_place(path, int(np.argmax(bad)), header)}"
            more = f", and {int(bad.sum()) - 1} more" if bad.sum() > 1 else ""
            raise InvalidInput(where, f"a cell of {name!r} that is no number{more}", "a number in every row")
        columns.append(values)
    if not columns:
        raise InvalidInput(field, f"{path}, without columns", "a column of numbers per dimension")
    return np.stack(columns, axis=1)


def _place(path: Path, row: int, header: bool) -> str:
    """Where a row (from 0) is: its line where a file has lines."""
    if path.suffix.lower() == ".parquet":
        return f"row {row + 1}"
    return f"line {lines_of_records(path, [row + 1 + header])[0]}"


def _array(path: Path, field: str) -> FloatArray:
    """An array that numpy.save wrote, (n,) or (n, d)."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise InvalidInput(field, str(path), "a file that exists") from None
    if not stat.S_ISREG(mode):
        raise InvalidInput(field, str(path), "a plain file, not a folder, a device or a pipe")
    try:
        # Mapped, so that a shape that the file does not have takes no memory.
        with np.errstate(over="ignore"), warnings.catch_warnings(action="ignore"):
            given = np.lib.format.open_memmap(path, mode="r")
    except _DAMAGED:
        raise InvalidInput(field, str(path), "an array of numbers as numpy.save writes it") from None
    if given.dtype.kind not in "iufb" or given.ndim not in (1, 2):
        came = f"{path}: {given.dtype} of shape {given.shape}"
        raise InvalidInput(field, came, "whole or real numbers of shape (n,) or (n, d)")
    numbers = np.array(given, dtype=np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers


_ROW_NAMES = "state"
#: Least weight above 0; one over it is the largest. What is divided by a sum of such is still above 0.
_LEAST = 1e-100


class Moves(NamedTuple):
    """States by name, and the probabilities of moves between them, a csr matrix whose rows sum to 1."""

    names: tuple[str, ...]
    matrix: Any


def read_matrix(path: PathLike, field: str = "FILE") -> Moves:
    """A table of N rows and N columns of weights, named by their states; a column ``state`` may name the rows, too.

    Raises InvalidInput naming row and column: weights that are negative, missing or no numbers, a row of zeros, rows
    that are not in the order of the columns.
    """
    columns = column_names(checked_input(path, field))
    names = [column for column in columns if column != _ROW_NAMES]
    if len(names) < 2:
        came = f"{path}, with columns {listed(columns)}"
        raise InvalidInput(field, came, "a column of weights for each of two or more states, by name")
    if len(names) > DENSE_STATES:
        raise InvalidInput(
            field, f"{len(names)} columns", f"at most {DENSE_STATES}: dphmm model edges takes more states"
        )
    states = _checked(names, field)
    table = read_table(path)
    if len(table) != len(states):
        raise InvalidInput(field, f"{path}, with {len(table)} rows", f"a row for each of its {len(states)} columns")
    if _ROW_NAMES in columns:
        _check_order(as_text(table.column(_ROW_NAMES), _ROW_NAMES).to_pylist(), states, field)
    weights = np.stack([_weights(table.column(name), name, field) for name in names], axis=1)
    return Moves(states, _rows_divided(weights, states, field))


def read_moves(path: PathLike, stay: float = 0.0, names: tuple[str, ...] | None = None, field: str = "FILE") -> Moves:
    """A table with columns ``from``, ``to`` and, if weights are not all 1, ``weight``: one move a row.

    stay : the probability of staying put, beside moves of a state to itself
    names : the states there are; by default those that are in the file, in order
    Weights of repeated rows add up.

    Raises InvalidInput for what is missing, for names that are none of the states, and where no move leaves a state.
    """
    from scipy import sparse

    columns = column_names(checked_input(path, field))
    missing = [name for name in ("from", "to") if name not in columns]
    if missing:
        expected = "columns from, to and, if moves are not all alike, weight"
        raise InvalidInput(field, f"{path}, with columns {listed(columns)}", expected)
    weighted = "weight" in columns
    table = read_table(path, columns=["from", "to", *(["weight"] if weighted else [])], text=("from", "to"))
    ends = [as_text(table.column(side), side).to_pylist() for side in ("from", "to")]
    for side, found in zip(("from", "to"), ends, strict=True):
        if not found or None in found or "" in found:
            came = f"{path}, with no rows" if not found else f"{path}, with a row without a name"
            raise InvalidInput(field, came, f"the name of a state in every row of column {side}")
    states = _checked(ordered_labels({*ends[0], *ends[1]}), field) if names is None else names
    number = {name: state for state, name in enumerate(states)}
    unknown = next((name for found in ends for name in found if name not in number), None)
    if unknown is not None:
        raise InvalidInput(field, f"a move from or to {unknown!r}", "states that --states-file or --answers names")
    weights = _weights(table.column("weight"), "weight", field) if weighted else np.ones(len(table))
    a, b = ([number[name] for name in found] for found in ends)
    n = len(states)
    moves = _rows_divided(sparse.csr_array((weights, (a, b)), shape=(n, n)), states, field, stay)
    return Moves(states, sparse.csr_array((1.0 - stay) * moves + stay * sparse.eye_array(n)) if stay else moves)


def read_costs(path: PathLike, names: tuple[str, ...], field: str = "FILE") -> FloatArray:
    """Costs (N, N) of naming each state (column) where each (row) is true, in the order of ``names``.

    A table of N rows and N columns named by the states, in any order; a column ``state`` names the rows, without it
    they are in the order of the columns. Raises InvalidInput naming row and column: other states, or costs that are
    negative, missing or no numbers.
    """
    columns = [column for column in column_names(checked_input(path, field)) if column != _ROW_NAMES]
    missing = [name for name in names if name not in set(columns)]
    if missing or len(columns) != len(names):
        came = f"{path}, with columns {listed(columns)}"
        lacking = f" ({listed(missing)} missing)" if missing else ""
        raise InvalidInput(field, came, f"a column of costs for each of the {len(names)} states, by name{lacking}")
    table = read_table(path)
    if len(table) != len(names):
        raise InvalidInput(field, f"{path}, with {len(table)} rows", f"a row for each of the {len(names)} states")
    rows = columns
    if _ROW_NAMES in table.column_names:
        rows = [str(name) for name in as_text(table.column(_ROW_NAMES), _ROW_NAMES).to_pylist()]
    at = {name: row for row, name in enumerate(rows)}
    unknown = [name for name in names if name not in at]
    if unknown:
        raise InvalidInput(field, f"{path}, without a row for {unknown[0]!r}", "a row for each state, by name")
    costs = np.stack([_weights(table.column(name), name, field, "a cost") for name in names], axis=1)
    return np.asarray(costs[[at[name] for name in names]])


def _checked(names: Any, field: str) -> tuple[str, ...]:
    try:
        return check_names(names, len(names))
    except InvalidInput as error:
        raise InvalidInput(
            field, f"names of states that cannot be: {error}", "1 to 200 characters, each once"
        ) from None


def _check_order(rows: list[str | None], names: tuple[str, ...], field: str) -> None:
    for row, (came, name) in enumerate(zip(rows, names, strict=True)):
        if came != name:
            raise InvalidInput(field, f"row {row + 1} of {came!r}", f"{name!r}: rows in the order of the columns")


def _weights(column: pa.ChunkedArray, name: str, field: str, what: str = "a weight") -> FloatArray:
    values, bad = decimals(column, f"{field} column {name}")
    wrong = bad | (values != 0) & ~((values >= _LEAST) & (values <= 1 / _LEAST))
    if wrong.any():
        row = int(np.argmax(wrong))
        came = "no number" if bad[row] else f"{values[row]:g}"
        expected = f"{what}: 0, or a number from {_LEAST:g} to {1 / _LEAST:g}"
        raise InvalidInput(f"{field} row {row + 1}, column {name}", came, expected)
    return values


def _rows_divided(weights: Any, names: tuple[str, ...], field: str, stay: float = 0.0) -> Any:
    """A csr matrix of rows with sum 1. A row of zeros is refused, or one that stays put where ``stay`` is above 0."""
    from scipy import sparse

    matrix = sparse.csr_array(weights)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    sums = row_sums(matrix)
    empty = np.flatnonzero(sums == 0)
    if len(empty) and not stay:
        came = f"no move out of state {names[int(empty[0])]!r} ({len(empty)} such in all)"
        raise InvalidInput(field, came, "a weight above 0 in every row; of a state that is never left, one to itself")
    if len(empty):
        matrix = sparse.csr_array(matrix + sparse.diags_array((sums == 0).astype(np.float64)))
        sums[empty] = 1.0
    return divided(matrix, sums)


def read_totals(path: PathLike, names: tuple[str, ...], field: str = "like") -> dict[int, FloatArray]:
    """Public totals (N,) of people at each state, by step from 1: a table of state, people and perhaps step.

    Without a column step they are of step 1. A state without a row has nobody. Raises InvalidInput for other columns, a
    state that there is not or that a step has twice, and totals that are no numbers or below 0.
    """
    checked_input(path, field)
    return totals_of(read_table(path, text=("state", "step")), names, field, Path(path).name)


def totals_of(table: Any, names: tuple[str, ...], field: str, name: str = "a table") -> dict[int, FloatArray]:
    """The same of a pandas, polars or Arrow table, or a GeoDataFrame, whose shapes are not looked at."""
    table = read_whole(table)
    shapes = {table.geometry.name} if hasattr(table, "geometry") else set()
    columns = [column for column in column_list(table) if column not in shapes]
    _check_columns(field, name, columns, ("state", "people", "step"))
    if "state" not in columns or "people" not in columns:
        raise InvalidInput(field, f"{name}, with columns {listed(columns)}", "columns state and people")
    rows = to_arrow(table, columns)
    if not rows.num_rows:
        raise InvalidInput(field, f"{name}, with no rows", "at least one")
    texts = {
        column: _cells(rows.column(column), column, f"{field}, {column}") for column in columns if column != "people"
    }
    totals = decimals(rows.column("people"), "people")[0]
    steps = _steps(texts["step"], field) if "step" in texts else [1] * len(totals)
    numbers = {state: number for number, state in enumerate(names)}
    found: dict[int, dict[int, float]] = {}
    for row, (state, step, total) in enumerate(zip(texts["state"], steps, totals.tolist(), strict=True), 1):
        number = numbers.get(state or "")
        if number is None:
            raise InvalidInput(field, f"{name}, row {row}, with a state that there is not", f"one such as {names[0]!r}")
        if not 0 <= total < float("inf"):
            raise InvalidInput(field, f"{name}, row {row}, with people {total:g}", "a number of people, 0 or more")
        if number in found.setdefault(step, {}):
            raise _twice(field, name, step, f"total of state {state!r}")
        found[step][number] = total
    return {step: np.array([row.get(state, 0.0) for state in range(len(names))]) for step, row in found.items()}


def _cells(column: Any, name: str, field: str) -> list[str | None]:
    import pyarrow as pa

    column = plain_type(column)
    kind = column.type
    if name == "t" and pa.types.is_timestamp(kind):
        # Without a zone they have none as text either.
        return [None if time is None else time.isoformat() for time in column.cast(kind).to_pylist()]
    if name in ("epsilon", "probability", "people") and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        numbers = column.to_numpy() if pa.types.is_floating(kind) else column.to_pylist()
        return [None if number is None or number != number else str(number) for number in numbers]
    texts: list[str | None] = as_text(column, field).to_pylist()
    known = column.is_null(nan_is_null=True).to_pylist()
    if any(text is None and not missing for text, missing in zip(texts, known, strict=True)):
        raise InvalidInput(field, "a number that is not whole", "text or whole numbers")
    return texts


def _check_columns(field: str, name: str, found: Sequence[str], known: Sequence[str]) -> None:
    """A column of something else, such as lat, is a sign that the table is the private one."""
    other = next((column for column in found if column not in known), None)
    if other is not None:
        raise InvalidInput(field, f"{name} with a column {other!r}", f"a public table of {', '.join(known)} alone")


def _steps(cells: Sequence[str | None], field: str) -> list[int]:
    texts = [text or "" for text in cells]
    if not all(text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 18 for text in texts):
        raise InvalidInput(field, "a step that is no whole number", "numbers of steps, as in the table")
    return [int(text) for text in texts]


def _twice(field: str, name: str, number: int, what: str) -> InvalidInput:
    return InvalidInput(field, f"{name}, step {number} with more than one {what}", "one for a step")


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
