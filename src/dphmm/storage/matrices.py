"""Matrices of moves as tables: all weights, a column for each state, or one move a row; and tables of costs.

Weights are what moves are to each other: each row is divided by its sum. What is in such a file is taken to be public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import DENSE_STATES, divided, row_sums
from dphmm.states.space import check_names, ordered_labels
from dphmm.storage.columns import as_text, decimals
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input
from dphmm.storage.tables import column_names, read_table
from dphmm.types import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

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
