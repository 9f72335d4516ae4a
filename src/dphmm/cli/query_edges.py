"""Edges of people on the command line: the public friendships, and the private edges that are counted.

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

from dphmm.cli.query_tables import Aside, place
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Who there is: people numbered from 0, or their names.
People = int | Sequence[str]
_TEXT = (".txt", ".txt.gz")


def largest_circle(path: str, field: str) -> int:
    """How many people the largest circle of friends has: people who are joined, directly or not.

    DATA have no part in it. Raises InvalidInput, without a name, for a file without friendships, a line that is none,
    and a loop.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from dphmm.storage.edges import read_edges
    from dphmm.storage.tables import column_names

    header = [] if path.lower().endswith(_TEXT) else column_names(_checked(path, field))
    _check_two(header, None, path, field)
    edges = read_edges(path, None, field)
    ends: list[Any] = [edges.column(side).to_pylist() for side in ("a", "b")]
    names = sorted({name for side in ends for name in side if name})
    if path.lower().endswith((".csv", ".csv.gz")) and any(_is_a_person(name.strip(), names) for name in header):
        raise _a_header_names(field)
    if not len(edges):
        raise InvalidInput(field, f"{Path(path).name}, without a friendship", "edges, or --dependence independent")
    number = {name: at for at, name in enumerate(names)}
    pairs = np.array([[number.get(name, -1) for name in side] for side in ends])
    for wrong, came in (((pairs < 0).any(axis=0), "nobody"), (pairs[0] == pairs[1], "a loop")):
        if wrong.any():
            where = place(path, int(np.argmax(wrong)))
            raise InvalidInput(f"{field}, {where}", came, "pairs of different people")
    graph = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(len(names), len(names)))
    _, circle = connected_components(graph, directed=False)
    return int(np.bincount(circle).max())


def private_edges(path: str, people: People, columns: Sequence[str] | None) -> tuple[IntArray, Aside]:
    """The edges (m, 2) of DATA as numbers of people, and the rows that are no edges of two of them.

    InvalidInput for a table of more than two columns if none are named, and for a first line that names people and is
    no header.
    """
    from dphmm.storage.edges import edge_rows
    from dphmm.storage.private_rows import private_names

    header = [] if _checked(path, "DATA").lower().endswith(_TEXT) else private_names(path)
    _check_two(header, columns, path, "DATA")
    if columns is None and path.lower().endswith((".csv", ".csv.gz")):
        known = _is_number_below(people) if isinstance(people, int) else set(people).__contains__
        if any(known(name.strip()) for name in header):
            raise _a_header_names("DATA")
    rows = edge_rows(path, columns)
    aside = Aside.of(rows)
    pairs = _ends(rows.table, people)
    unknown, loops = (pairs < 0).any(axis=1), pairs[:, 0] == pairs[:, 1]
    aside.add(rows.places[unknown], "unknown_person")
    aside.add(rows.places[loops], "loop")
    return pairs[~unknown & ~loops], aside


def _ends(edges: pa.Table, people: People) -> IntArray:
    """Numbers (m, 2) of people, -1 for whoever is not among them."""
    from dphmm.storage.columns import integers
    from dphmm.storage.edges import ends_among

    if not isinstance(people, int):
        return ends_among(edges, people)
    ends = []
    for side in ("a", "b"):
        values, bad = integers(edges.column(side), "DATA")
        outside: BoolArray = bad | (values < 0) | (values >= people)
        ends.append(np.where(outside, -1, values))
    return np.stack(ends, axis=1)


def _checked(path: str, field: str) -> str:
    from dphmm.storage.inputs import checked_input

    return str(checked_input(path, field))


def _check_two(header: Sequence[str], columns: Sequence[str] | None, path: str, field: str) -> None:
    """Two columns of a table must be meant; a text has none."""
    from dphmm.storage.headers import listed

    if path.lower().endswith(_TEXT):
        return
    unknown = next((name for name in columns or () if name not in header), None)
    if unknown is not None:
        raise InvalidInput("--columns", unknown, f"a column of {Path(path).name}: {listed(header)}")
    if columns is not None and len(columns) != 2:
        raise InvalidInput("--columns", ",".join(columns), "two columns, one for each end: a,b")
    if columns is None and len(header) != 2:
        expected = "two columns, one for each end" + (", or --columns" if field == "DATA" else "")
        raise InvalidInput(field, f"{Path(path).name}: {listed(header)}", expected)


def _a_header_names(field: str) -> InvalidInput:
    """A file without a header would lose its first edge without a word."""
    return InvalidInput(f"{field}, line 1", "people", "a header that names nobody, as a,b, and edges after it")


def _is_a_person(name: str, names: Sequence[str]) -> bool:
    return name in names or re.fullmatch("[0-9]+", name) is not None


def _is_number_below(people: int) -> Callable[[str], bool]:
    return lambda name: re.fullmatch("[0-9]{1,18}", name) is not None and int(name) < people
