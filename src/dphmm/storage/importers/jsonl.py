"""JSON lines: an object a line, each read by itself.

The columns are the names in the first object that has any, and those that options name; a name inside an object is
joined to that of the object by a dot: ``place.lat``. A number is the text that stands there; a list is no cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from dphmm.errors import InvalidInput
from dphmm.storage.importers.documents import Document, DocumentKind, DocumentRows
from dphmm.storage.json_lines import cell, lines, written_object
from dphmm.storage.layouts import ROLES, Layout

#: Most objects inside each other whose names are joined.
_MOST_DEPTH = 20
#: Most names of the first object that are columns.
_MOST_COLUMNS = 1000


def _objects(layout: Layout, name: str, stream: IO[bytes]) -> Document:
    """The rows of a file; a column that an option names is there if an object has it."""
    objects = map(written_object, lines(name, stream))
    values = (None if value is None else dict(_cells(value)) for value in objects)
    before = list[dict[str, str | None] | None]()
    for cells in values:
        before.append(cells)
        if cells:
            break
    else:
        raise InvalidInput("source", f"{name}, without an object", "a JSON object a line")
    header = columns_of(cells)
    named, seen = {column for column in layout.columns.values() if column is not None}, set(header)
    header += sorted(named - seen)
    rows = DocumentRows(header)
    for cells in chain(before, values):
        rows.add(None if cells is None else [cells.get(each) for each in header])
        seen |= named & (cells or {}).keys()
    document = rows.document()
    return document._replace(table=document.table.select([each for each in header if each in seen]))


def _cells(value: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str | None]]:
    """The names and cells of an object, and of those in it."""
    for name, inner in value.items():
        if not isinstance(inner, dict):
            yield prefix + name, cell(inner)
        elif depth < _MOST_DEPTH:
            yield from _cells(inner, f"{prefix}{name}.", depth + 1)


def columns_of(value: dict[str, Any]) -> list[str]:
    """The names of an object, and of those in it, that are columns."""
    names = dict(_cells(value))
    return [name for name in names if name.isprintable() and cell(name) == name][:_MOST_COLUMNS]


JSONL = DocumentKind(
    ("jsonl", "ndjson"),
    "JSON lines: an object a line; a column is a name, or of one within an object place.lat.",
    (*(f"{role}_column" for role in ROLES), "user", "times", "no_times"),
    _objects,
)
