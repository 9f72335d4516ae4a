"""Edges of people: the public friendships, and the private edges that are counted.

Of friendships every line must be right. Of DATA no row decides anything: a row that is no edge of two of the public
people is passed over, and listed for the owner.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.dependent._options import Called
from dphmm.dependent._tables import Rejected, place
from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input
from dphmm.storage.private_tables import TEXT, PrivateRows, PrivateTable, edge_rows, ends_among, read_edges
from dphmm.storage.tables import column_names
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Who there is: people numbered from 0, or their names.
People = int | Sequence[str]


def largest_circle(path: str, field: str, called: Called) -> int:
    """How many people the largest circle of friends has: people who are joined, directly or not.

    DATA have no part in it. Raises InvalidInput, without a name, for a file without friendships, a line that is none,
    and a loop.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    header = None if _is_text(path) else column_names(checked_input(path, field))
    if header is not None and len(header) != 2:
        raise InvalidInput(field, f"{Path(path).name}: {listed(header)}", "two columns, one for each end")
    edges = read_edges(path, None, field)
    ends: list[Any] = [edges.column(side).to_pylist() for side in ("a", "b")]
    names = sorted({name for side in ends for name in side if name})
    _check_header(path, header or (), field, lambda name: name in names or re.fullmatch("[0-9]+", name) is not None)
    if not len(edges):
        raise InvalidInput(
            field, f"{Path(path).name}, without a friendship", f"edges, or {called('dependence')} independent"
        )
    number = {name: at for at, name in enumerate(names)}
    pairs = np.array([[number.get(name, -1) for name in side] for side in ends])
    for wrong, came in (((pairs < 0).any(axis=0), "nobody"), (pairs[0] == pairs[1], "a loop")):
        if wrong.any():
            where = place(path, int(np.argmax(wrong)))
            raise InvalidInput(f"{field}, {where}", came, "pairs of different people")
    graph = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(len(names), len(names)))
    _, circle = connected_components(graph, directed=False)
    return int(np.bincount(circle).max())


def private_edges(
    data: PrivateTable, people: People, columns: Sequence[str] | None, called: Called
) -> tuple[IntArray, Rejected]:
    """The edges (m, 2) of DATA as numbers of people, and the rows that are no edges of two of them.

    InvalidInput for a table of more than two columns if none are named, and for a first line that names people and is
    no header.
    """
    if data.path is not None:
        checked_input(data.path, "DATA")
    header = None if data.path is not None and _is_text(data.path) else data.columns()
    if header is not None:
        ends_of(header, columns, data, called)
    if columns is None and data.path is not None:
        known = _is_number_below(people) if isinstance(people, int) else set(people).__contains__
        _check_header(data.path, header or (), "DATA", known)
    rows = edge_rows(data.path, columns) if data.path is not None else _edges_of_frame(data, columns)
    rejected = Rejected.of(rows)
    pairs = ends_among_people(rows.table, people)
    unknown, loops = (pairs < 0).any(axis=1), pairs[:, 0] == pairs[:, 1]
    rejected.add(rows.places[unknown], "unknown_person")
    rejected.add(rows.places[loops], "loop")
    return pairs[~unknown & ~loops], rejected


def _edges_of_frame(data: PrivateTable, columns: Sequence[str] | None) -> PrivateRows:
    """Two columns of text, a and b."""
    import pyarrow as pa

    from dphmm.storage.columns import as_text

    chosen = data.columns() if columns is None else list(columns)
    rows = data.read(chosen)
    table = pa.table([as_text(rows.table.column(name), name) for name in chosen], names=["a", "b"])
    return PrivateRows(table, rows.places, rows.odd, rows.word)


def ends_among_people(edges: pa.Table, people: People) -> IntArray:
    """Numbers (m, 2) of people of two columns of text, a and b; -1 for whoever is not among them."""
    from dphmm.storage.columns import integers

    if not isinstance(people, int):
        return ends_among(edges, people)
    ends = []
    for side in ("a", "b"):
        values, bad = integers(edges.column(side), "DATA")
        outside: BoolArray = bad | (values < 0) | (values >= people)
        ends.append(np.where(outside, -1, values))
    return np.stack(ends, axis=1)


def _is_text(path: PathLike) -> bool:
    return str(path).lower().endswith(TEXT)


def ends_of(
    header: Sequence[str], columns: Sequence[str] | None, data: PrivateTable, called: Called
) -> tuple[str, str]:
    """The two columns of a table that are meant. Raises InvalidInput where they are not two, or not there."""
    option = called("columns")
    unknown = next((name for name in columns or () if name not in header), None)
    if unknown is not None:
        raise InvalidInput(option, unknown, f"a column of {data.name}: {listed(header)}")
    if columns is not None and len(columns) != 2:
        raise InvalidInput(option, ",".join(columns), "two columns, one for each end: a,b")
    if columns is None and len(header) != 2:
        raise InvalidInput("DATA", f"{data.name}: {listed(header)}", f"two columns, one for each end, or {option}")
    first, second = header if columns is None else columns
    return first, second


def _check_header(path: PathLike, header: Sequence[str], field: str, known: Callable[[str], bool]) -> None:
    """A file without a header would lose its first edge without a word."""
    if str(path).lower().endswith((".csv", ".csv.gz")) and any(known(name.strip()) for name in header):
        raise InvalidInput(f"{field}, line 1", "people", "a header that names nobody, as a,b, and edges after it")


def _is_number_below(people: int) -> Callable[[str], bool]:
    return lambda name: re.fullmatch("[0-9]{1,18}", name) is not None and int(name) < people
