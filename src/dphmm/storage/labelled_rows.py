"""Rows with two names each, a hidden state and a symbol: read, cut and left out as rows of one state, their pair.

A pair is a number, ``state * symbols + symbol``, in a column of its own. The reading of a row depends on that row and
on public names alone.

Proof: docs/proofs/records.md, docs/proofs/labelled.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states import StateSpace, ordered_labels
from dphmm.storage.columns import Numbering, nothing
from dphmm.storage.csv_files import listed
from dphmm.storage.tables import Rows, read_rows
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: The column of the pairs: no header holds a tab. A pair of names that are not listed, and a cell that is none.
PAIR, _OUTSIDE, _UNREADABLE = "\tpair", "-", "\x1f"
#: Most pairs of a state and a symbol.
MOST_PAIRS = 2**20


def names_in(source: Any, column: str) -> StateSpace:
    """The names in a column, in order. Raises InvalidInput where there are none."""
    names = Numbering()
    for table in _rows(source, [column]).parts([column]):
        names.add(table.column(column), column)
    return StateSpace.categories(ordered_labels(list(names.labels)))


@dataclass(frozen=True)
class Labelled:
    """The columns of states and of symbols, and the names that there can be."""

    states: tuple[str, StateSpace]
    symbols: tuple[str, StateSpace]

    def __post_init__(self) -> None:
        if self.pairs > MOST_PAIRS:
            raise InvalidInput("states", f"{self.pairs} pairs with a symbol", f"at most {MOST_PAIRS}")

    @property
    def pairs(self) -> int:
        """The number of possible pairs."""
        return self.states[1].n_states * self.symbols[1].n_states

    @property
    def space(self) -> StateSpace:
        """The pairs as states of their own."""
        return StateSpace.categories([str(pair) for pair in range(self.pairs)])

    def rows(self, source: Any) -> Rows:
        """The rows of a table, with a column `PAIR`."""
        columns, v = [self.states[0], self.symbols[0]], self.symbols[1].n_states
        rows = _rows(source, columns)

        def parts(wanted: Sequence[str]) -> Iterator[pa.Table]:
            import pyarrow as pa

            for table in rows.parts(list(dict.fromkeys([*(name for name in wanted if name != PAIR), *columns]))):
                (state, no_state), (symbol, no_symbol) = (
                    _states(table.column(name), name, space) for name, space in (self.states, self.symbols)
                )
                pair = np.where((state >= 0) & (symbol >= 0), state * v + symbol, -1).astype(object)
                pair = np.where(pair == -1, _OUTSIDE, pair.astype(str)).astype(object)
                pair[no_state | no_symbol] = _UNREADABLE
                pair[nothing(table.column(columns[0])) & nothing(table.column(columns[1]))] = None
                yield table.append_column(PAIR, pa.array(pair, pa.string())).select(list(wanted))

        return replace(rows, names=(*rows.names, PAIR), parts=parts)

    def apart(self, sequences: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The states and the symbols of sequences of pairs."""
        both = [np.divmod(np.asarray(sequence), self.symbols[1].n_states) for sequence in sequences]
        return [states for states, _ in both], [symbols for _, symbols in both]


def _states(column: pa.ChunkedArray, field: str, space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The state (n,) of each cell, -1 for a name that is not listed, and which cells are no names."""
    names = Numbering()
    numbers, bad = names.add(column, field)
    return np.append(space.indices_of(names.labels), -1)[numbers], bad


def _rows(source: Any, columns: Sequence[str]) -> Rows:
    rows = read_rows(source, private=True)
    for name in columns:
        if name not in rows.names:
            raise InvalidInput(name, "no such column", "one of " + listed(list(rows.names)))
    return rows
