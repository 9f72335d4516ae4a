"""Edges of people on the command line: the two columns that say them, no first edge taken for a header, lines told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.cli.query_tables import place
from dphmm.errors import InvalidInput
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Who there is: people numbered from 0, or their names.
People = int | Sequence[str]


def edges_between(
    path: str, people: People, field: str, columns: Sequence[str] | None = None, remedy: str = ""
) -> IntArray:
    """The edges (m, 2) of a file as numbers of people.

    InvalidInput, without a name, for a table of more than two columns if none are named, for a first line that is an
    edge and no header, for somebody who is not among the people, and for an edge from somebody to themselves.
    """
    from dphmm.storage.edges import numbered, read_edges

    header = _header(path, columns, field)
    if columns is None and path.lower().endswith((".csv", ".csv.gz")):
        _refuse_edge(header, people, field)
    edges = read_edges(path, columns, field)
    where = partial(place, path)
    if isinstance(people, int):
        pairs = _numbers(edges, people, field, where)
    else:
        pairs = numbered(edges, people, field, where, remedy)
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise InvalidInput(f"{field}, {where(int(np.argmax(loops)))}", "a loop", "pairs of different people")
    return pairs


def _header(path: str, columns: Sequence[str] | None, field: str) -> list[str]:
    """The names of a table's columns, of which two must be meant; none of a text."""
    from dphmm.storage.headers import listed
    from dphmm.storage.inputs import checked_input
    from dphmm.storage.tables import column_names

    if checked_input(path, field).name.lower().endswith((".txt", ".txt.gz")):
        return []
    there = column_names(path)
    unknown = next((name for name in columns or () if name not in there), None)
    if unknown is not None:
        raise InvalidInput("--columns", unknown, f"a column of {Path(path).name}: {listed(there)}")
    if columns is not None and len(columns) != 2:
        raise InvalidInput("--columns", ",".join(columns), "two columns, one for each end: a,b")
    if columns is None and len(there) != 2:
        expected = "two columns, one for each end" + (", or --columns" if field == "DATA" else "")
        raise InvalidInput(field, f"{Path(path).name}: {listed(there)}", expected)
    return there


def _refuse_edge(header: Sequence[str], people: People, field: str) -> None:
    """A file without a header would lose its first edge without a word."""
    known = _is_number_below(people) if isinstance(people, int) else set(people).__contains__
    if any(known(name.strip()) for name in header):
        raise InvalidInput(f"{field}, line 1", "people", "a header that names nobody, as a,b, and edges after it")


def _is_number_below(people: int) -> Callable[[str], bool]:
    return lambda name: re.fullmatch("[0-9]{1,18}", name) is not None and int(name) < people


def _numbers(edges: pa.Table, people: int, field: str, where: Callable[[int], str]) -> IntArray:
    from dphmm.storage.columns import integers

    ends: list[Any] = [integers(edges.column(side), field) for side in ("a", "b")]
    wrong = np.logical_or.reduce([bad | (values < 0) | (values >= people) for values, bad in ends])
    if wrong.any():
        expected = f"people from 0 to {people - 1}"
        raise InvalidInput(f"{field}, {where(int(np.argmax(wrong)))}", "nobody's number", expected)
    return np.stack([values for values, _ in ends], axis=1)
