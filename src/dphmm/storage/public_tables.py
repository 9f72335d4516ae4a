"""Public tables that an audit or a model takes: numbers, moves, costs, answers and labels.

The content of such a file is taken to be public.

`read_numbers` reads files of nothing but numbers, one row a draw: .npy, .parquet, .csv, .csv.gz. `read_matrix`,
`read_moves` and `read_costs` read weights of moves (each row is divided by its sum) and costs of answers.
`space_of_answers`, `labels_by_state` and `listed_names` read which states there are, their answers and labels.
"""

from __future__ import annotations

import re
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import DENSE_STATES, divided, row_sums
from dphmm.states.space import StateSpace, check_names, ordered_labels
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.csv_files import CSV, RecordParts, TextLayout, lines_of_rows, listed, text_parts, typed
from dphmm.storage.inputs import PathLike, checked_input, plain_file, steady
from dphmm.storage.tables import column_names, is_path, read_table, table_format, table_of
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
        return _array(plain_file(file, field), field)
    file = checked_input(file, field)
    if table_format(file, field) == ".parquet":
        return _columns(read_table(file), file, field)
    with steady(file):
        first = RecordParts(file).first()
        head = [bool(_NUMBER.fullmatch(cell)) for cell in first]
        if all(head):
            import pyarrow as pa

            plain = replace(CSV, names=tuple(f"column {j}" for j in range(1, len(head) + 1)))
            table = typed(pa.concat_tables(text_parts(file, plain, None, [], strict=True)), ())
            return _columns(table, file, field, plain)
        # A first row that is neither names nor numbers would lose a row, or count rows as a coordinate.
        where = f"{field}, {file.name}"
        if any(head):
            fault = f"a first row with {sum(head)} of {len(head)} cells numbers"
            raise InvalidInput(where, fault, "names of all columns, or numbers throughout")
        if not all(name.strip() for name in first):
            raise InvalidInput(where, "a column without a name", "a name for each, and no column that numbers the rows")
        return _columns(read_table(file), file, field)


def _columns(table: pa.Table, path: Path, field: str, layout: TextLayout = CSV) -> FloatArray:
    columns = []
    for name in table.column_names:
        values, bad = decimals(table.column(name), name)
        if bad.any():
            row = int(np.argmax(bad)) + 1
            lined = path.suffix.lower() != ".parquet"
            place = f"line {lines_of_rows(path, [row], layout)[0]}" if lined else f"row {row}"
            where = f"{field}, {path.name}, {place}"
            more = f", and {int(bad.sum()) - 1} more" if bad.sum() > 1 else ""
            raise InvalidInput(where, f"a cell of {name!r} that is no number{more}", "a number in every row")
        columns.append(values)
    if not columns:
        raise InvalidInput(field, f"{path}, without columns", "a column of numbers per dimension")
    return np.stack(columns, axis=1)


def _array(path: Path, field: str) -> FloatArray:
    """An array that numpy.save wrote, (n,) or (n, d)."""
    try:
        # Mapped, so that a shape that the file does not have takes no memory.
        with np.errstate(over="ignore"), warnings.catch_warnings(action="ignore"):
            array = np.lib.format.open_memmap(path, mode="r")
    except _DAMAGED:
        raise InvalidInput(field, str(path), "an array of numbers as numpy.save writes it") from None
    if array.dtype.kind not in "iufb" or array.ndim not in (1, 2):
        fault = f"{path}: {array.dtype} of shape {array.shape}"
        raise InvalidInput(field, fault, "whole or real numbers of shape (n,) or (n, d)")
    numbers = np.array(array, dtype=np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers


_ROW_NAMES = "state"
#: Least weight above 0; one over it is the largest. What is divided by a sum of such is still above 0.
_LEAST = 1e-100


class MoveTable(NamedTuple):
    """States by name, and the probabilities of moves between them, a csr matrix whose rows sum to 1."""

    names: tuple[str, ...]
    matrix: Any


def read_matrix(path: PathLike, field: str = "FILE") -> MoveTable:
    """A table of N rows and N columns of weights, named by their states; a column ``state`` may name the rows, too.

    Raises InvalidInput naming row and column: weights that are negative, missing or no numbers, a row of zeros, rows
    that are not those of the columns.
    """
    columns = column_names(checked_input(path, field))
    names = [column for column in columns if column != _ROW_NAMES]
    if len(names) < 2:
        fault = f"{path}, with columns {listed(columns)}"
        raise InvalidInput(field, fault, "a column of weights for each of two or more states, by name")
    if len(names) > DENSE_STATES:
        expected = f"at most {DENSE_STATES}: dphmm model edges takes more states"
        raise InvalidInput(field, f"{len(names)} columns", expected)
    states = _states(names, field)
    return MoveTable(states, _rows_divided(_square(path, states, field, "a weight"), states, field))


def read_costs(path: PathLike, names: tuple[str, ...], field: str = "FILE") -> FloatArray:
    """Costs (N, N) of naming each state (column) where each (row) is true, in the order of ``names``.

    A table of N rows and N columns named by the states, in any order; a column ``state`` names the rows, without it
    they are in the order of the columns. Raises InvalidInput naming row and column: other states, or costs that are
    negative, missing or no numbers.
    """
    columns = [column for column in column_names(checked_input(path, field)) if column != _ROW_NAMES]
    if set(columns) != set(names):
        missing = [name for name in names if name not in set(columns)]
        lacking = f" ({listed(missing)} missing)" if missing else ""
        fault = f"{path}, with columns {listed(columns)}"
        raise InvalidInput(field, fault, f"a column of costs for each of the {len(names)} states, by name{lacking}")
    return _square(path, names, field, "a cost")


def _square(path: PathLike, names: tuple[str, ...], field: str, what: str) -> FloatArray:
    """The numbers (N, N) of a table with a row and a column for each state, in the order of ``names``."""
    table = read_table(path)
    if len(table) != len(names):
        raise InvalidInput(field, f"{path}, with {len(table)} rows", f"a row for each of the {len(names)} states")
    rows = [name for name in table.column_names if name != _ROW_NAMES]
    if _ROW_NAMES in table.column_names:
        rows = as_text(table.column(_ROW_NAMES), _ROW_NAMES).to_pylist()
    at = {name: row for row, name in enumerate(rows)}
    unknown = next((name for name in names if name not in at), None)
    if unknown is not None:
        raise InvalidInput(field, f"{path}, without a row for {unknown!r}", "a row for each state, by name")
    numbers = np.stack([_weights(table.column(name), name, field, what) for name in names], axis=1)
    return np.asarray(numbers[[at[name] for name in names]])


def read_moves(
    path: PathLike, stay: float = 0.0, names: tuple[str, ...] | None = None, field: str = "FILE"
) -> MoveTable:
    """A table with columns ``from``, ``to`` and, if weights are not all 1, ``weight``: one move a row.

    stay : the probability of staying put, beside moves of a state to itself
    names : the states there are; by default those that are in the file, in order
    Weights of repeated rows add up.

    Raises InvalidInput for what is missing, for names that are none of the states, and where no move leaves a state.
    """
    from scipy import sparse

    columns = column_names(checked_input(path, field))
    if not {"from", "to"} <= set(columns):
        expected = "columns from, to and, if moves are not all alike, weight"
        raise InvalidInput(field, f"{path}, with columns {listed(columns)}", expected)
    weighted = "weight" in columns
    table = read_table(path, columns=["from", "to", *(["weight"] if weighted else [])], text=("from", "to"))
    ends = [_names_in(table.column(side), side, path, field) for side in ("from", "to")]
    states = _states(ordered_labels({*ends[0], *ends[1]}), field) if names is None else names
    a, b = (StateSpace.labels(states).indices_of(side) for side in ends)
    unknown = next((ends[0][row] if a[row] < 0 else ends[1][row] for row in np.flatnonzero((a < 0) | (b < 0))), None)
    if unknown is not None:
        raise InvalidInput(field, f"a move from or to {unknown!r}", "states that --states-file or --answers names")
    weights = _weights(table.column("weight"), "weight", field, "a weight") if weighted else np.ones(len(table))
    n = len(states)
    moves = _rows_divided(sparse.csr_array((weights, (a, b)), shape=(n, n)), states, field, stay)
    return MoveTable(states, sparse.csr_array((1.0 - stay) * moves + stay * sparse.eye_array(n)) if stay else moves)


def _names_in(column: pa.ChunkedArray, name: str, path: PathLike, field: str) -> list[str]:
    """The name in each row of a column."""
    names: list[str] = as_text(column, name).to_pylist()
    if not all(names) or not names:
        fault = f"{path}, with no rows" if not names else f"{path}, with a row without a name"
        raise InvalidInput(field, fault, f"the name of a state in every row of column {name}")
    return names


def _states(names: Sequence[str], field: str) -> tuple[str, ...]:
    try:
        return check_names(names, len(names))
    except InvalidInput as error:
        fault = f"names of states that cannot be: {error}"
        raise InvalidInput(field, fault, "1 to 200 characters, each once") from None


def _weights(column: pa.ChunkedArray, name: str, field: str, what: str) -> FloatArray:
    values, bad = decimals(column, f"{field} column {name}")
    wrong = bad | (values != 0) & ~((values >= _LEAST) & (values <= 1 / _LEAST))
    if wrong.any():
        row = int(np.argmax(wrong))
        fault = "no number" if bad[row] else f"{values[row]:g}"
        expected = f"{what}: 0, or a number from {_LEAST:g} to {1 / _LEAST:g}"
        raise InvalidInput(f"{field} row {row + 1}, column {name}", fault, expected)
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
        fault = f"no move out of state {names[int(empty[0])]!r} ({len(empty)} such in all)"
        raise InvalidInput(field, fault, "a weight above 0 in every row; of a state that is never left, one to itself")
    if len(empty):
        matrix = sparse.csr_array(matrix + sparse.diags_array((sums == 0).astype(np.float64)))
        sums[empty] = 1.0
    return divided(matrix, sums)


def totals_of(table: Any, names: tuple[str, ...], field: str = "like") -> dict[int, FloatArray]:
    """Public totals (N,) of people at each state, by step from 1: a table of state, people and perhaps step.

    ``table`` : a file, a pandas, polars or Arrow table, or a GeoDataFrame, whose shapes are not looked at. Without a
    column step they are of step 1. A state without a row has nobody. Raises InvalidInput for other columns, a state
    that there is not or that a step has twice, and totals that are no numbers or below 0.
    """
    name = Path(table).name if is_path(table) else "a table"
    if hasattr(table, "geometry"):
        table = table.drop(columns=table.geometry.name)
    table = table_of(table, text=("state", "step"))
    columns = table.column_names
    # A column of something else, such as lat, is a sign that the table is the private one.
    other = next((column for column in columns if column not in ("state", "people", "step")), None)
    if other is not None:
        raise InvalidInput(field, f"{name} with a column {other!r}", "a public table of state, people, step alone")
    if "state" not in columns or "people" not in columns:
        raise InvalidInput(field, f"{name}, with columns {listed(columns)}", "columns state and people")
    if not table.num_rows:
        raise InvalidInput(field, f"{name}, with no rows", "at least one")
    states = as_text(table.column("state"), f"{field}, state").to_pylist()
    totals, unreadable = decimals(table.column("people"), "people")
    steps, bad = integers(table.column("step"), f"{field}, step") if "step" in columns else (np.ones(len(table)), False)
    if np.any(bad):
        raise InvalidInput(field, "a step that is no whole number", "numbers of steps, as in the table")
    numbers = StateSpace.labels(names).indices_of(states).tolist()
    by_step: dict[int, dict[int, float]] = {}
    for row, (state, number, step) in enumerate(zip(states, numbers, steps.tolist(), strict=True)):
        where = f"{name}, row {row + 1}"
        if number < 0:
            raise InvalidInput(field, f"{where}, with a state that there is not", f"one such as {names[0]!r}")
        if unreadable[row] or totals[row] < 0:
            raise InvalidInput(field, f"{where}, with people {totals[row]:g}", "a number of people, 0 or more")
        if number in by_step.setdefault(int(step), {}):
            fault = f"{name}, step {int(step)} with more than one total of state {state!r}"
            raise InvalidInput(field, fault, "one for a step")
        by_step[int(step)][number] = float(totals[row])
    return {step: np.array([row.get(state, 0.0) for state in range(len(names))]) for step, row in by_step.items()}


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
    answers = []
    for column, cells in columns.items():
        numbers, bad = decimals(cells, column)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(
                f"{column} of state {names[row]!r}", cells[row].as_py() or "nothing", "a number, and finite"
            )
        answers.append(numbers)
    return StateSpace(np.stack(answers, axis=1), names)


def labels_by_state(path: str, space: StateSpace, field: str = "labels") -> list[str]:
    """One label per state of the space, from a table of names and labels; other names are passed over.

    Raises InvalidInput for a state without a label, and for one with two.
    """
    names, columns = _by_name(path, field)
    if len(columns) != 1:
        raise InvalidInput(field, f"{path}, with {len(columns)} columns beside the names", "one column of labels")
    ((column, cells),) = columns.items()
    labels: dict[str, str] = {}
    for name, label in zip(names, as_text(cells, column).to_pylist(), strict=True):
        if not label:
            raise InvalidInput(field, f"no label for state {name!r}", "a label in every row")
        if labels.setdefault(name, label) != label:
            raise InvalidInput(field, f"two labels for state {name!r}", "one")
    missing = next((name for name in space.names if name not in labels), None)
    if missing is not None:
        raise InvalidInput(field, f"no label for state {missing!r}", "one for every state of the model")
    return [labels[name] for name in space.names]


def listed_columns(path: str, field: str, columns: Sequence[str]) -> list[list[Any]]:
    """The texts in these columns of a public table with rows, in its order; None for an empty cell."""
    there = column_names(checked_input(path, field))
    for column in columns:
        if column not in there:
            raise InvalidInput(field, f"columns {listed(there)}", f"a column {column} that lists the names")
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


def _by_name(path: str, field: str) -> tuple[list[str], dict[str, pa.ChunkedArray]]:
    """The names of states in a table, and its other columns."""
    table = read_table(path, text=None)
    columns = table.column_names
    if not columns:
        raise InvalidInput(field, f"{path}, without columns", "names of states, and a column beside them")
    name = "state" if "state" in columns else columns[0]
    names = _names_in(table.column(name), name, path, field)
    return names, {other: table.column(other) for other in columns if other != name}
