"""Event logs in XES (IEEE 1849): an event is a row, a trace is a person or whatever the log is kept of.

The columns are keys of attributes: of the event itself, or of its trace with ``case:`` before the key. Attributes
inside another one, or inside a list, are not the event's. If an element has a key twice, the first one counts. An
event without a name is rejected (missing_state), and so are those of a trace without one (missing_user).
"""

from __future__ import annotations

from typing import IO

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.documents import Document, DocumentKind, DocumentRows
from dphmm.storage.layouts import LIFECYCLE, Layout
from dphmm.storage.xml_files import elements

_TRACE = "case:"
#: So many keys of a log are listed where none is the one that an option names.
_LISTED = 100


def _events(layout: Layout, name: str, stream: IO[bytes]) -> Document:
    """The events of a log with the attributes that are columns. Raises InvalidInput for a key that none has."""
    columns = {column: role for role, column in layout.columns.items() if column is not None}
    needed = list(columns)
    if layout.lifecycle is not None:
        columns.setdefault(LIFECYCLE, "lifecycle")
    rows, seen = DocumentRows(tuple(columns)), dict[str, None]()
    trace, event, events = dict[str, str | None](), dict[str, str | None](), list[dict[str, str | None]]()

    def add(owner: dict[str, str | None], key: str, value: str | None) -> None:
        if key in columns:
            owner.setdefault(key, value)
        if len(seen) < _LISTED or key in columns:
            seen.setdefault(key)

    for path, attributes, _ in elements(name, stream):
        key, value = attributes.get("key", ""), attributes.get("value")
        match path:
            case ("log", "trace", "event", _):
                add(event, key, value)
            case ("log", "trace", "event"):
                events.append(event)
                event = {}
            case ("log", "trace", _):
                add(trace, _TRACE + key, value)
            case ("log", "trace"):
                for each in events:
                    rows.add([(trace if key.startswith(_TRACE) else each).get(key) for key in columns])
                trace, events = {}, []
    document = rows.document()
    missing = next((column for column in needed if column not in seen), None)
    if missing is not None and len(document.table):
        raise InvalidInput(f"{columns[missing]}_column", missing, "one of " + listed(list(seen)))
    return document


XES = DocumentKind(
    ("xes",),
    "Event logs: an event is a row, a trace a person. Columns are keys; case: begins those of the trace.",
    ("user_column", "time_column", "order_column", "trip_column", "state_column", "user", "times", "no_times"),
    _events,
    {"user_column": "case:concept:name", "state_column": "concept:name", "time_column": "time:timestamp"},
)
