"""Location history of Google, in its two forms: a point that was recorded is a row.

- Records.json of Takeout: each of its locations. A coordinate beyond what it can be lost 2**32 by an overflow.
- Timeline.json, which phones export: the points of the path of each segment, and positions among raw signals. Android
  writes an object and the time of each point; iPhones write a list of segments, and minutes since the segment's start.

Visits and activities are no rows: they are Google's guesses at what was recorded. So the months of Semantic Location
History, which Takeout has beside Records.json, have none. All rows are one person's.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import IO, Any

from dphmm.storage.importers.documents import Document, DocumentKind, DocumentRows
from dphmm.storage.json_lines import cell, json_document, part
from dphmm.storage.layouts import Layout

_DEGREES = r"(-?[0-9]{1,3}(?:\.[0-9]{1,20})?)°?"
_WRITTEN = re.compile(rf"(?:geo:)?{_DEGREES}, ?{_DEGREES}")
_WHOLE = re.compile(r"-?[0-9]{1,10}")
_PER_DEGREE = 10**7
_GUESSES = "visits and activities are no rows: they are guesses at what was recorded"
_Cells = list[str | None]


def _points(layout: Layout, name: str, stream: IO[bytes]) -> Document:
    """The points of a file of any of the forms."""
    history = json_document(name, stream, "JSON of a location history, in UTF-8")
    rows, guesses = DocumentRows(("t", "lat", "lon")), 0
    for location in part(history, "locations", list):
        rows.add([_time(location), *_counted(location, "latitudeE7", "longitudeE7")])
    for segment in history if isinstance(history, list) else part(history, "semanticSegments", list):
        guesses += bool(part(segment, "visit", dict) or part(segment, "activity", dict))
        for point in part(segment, "timelinePath", list):
            rows.add([_time_on_path(segment, point), *_written(point, "point")])
    for signal in part(history, "rawSignals", list):
        if position := part(signal, "position", dict):
            rows.add([_time(position), *_written(position, "LatLng")])
    return rows.document({_GUESSES: guesses} if guesses else None)


def _member_text(value: Any, name: str) -> str | None:
    return cell(value.get(name)) if isinstance(value, dict) else None


def _time(point: Any) -> str | None:
    """A time as ISO text, or in milliseconds since 1970."""
    return _member_text(point, "timestamp") or _member_text(point, "timestampMs")


def _time_on_path(segment: Any, point: Any) -> str | None:
    """The time of a point, or the start of its segment and the minutes since."""
    minutes = _member_text(point, "durationMinutesOffsetFromStartTime")
    if minutes is None:
        return _member_text(point, "time")
    try:
        start = datetime.fromisoformat(_member_text(segment, "startTime") or "")
        return (start + timedelta(minutes=int(minutes))).isoformat()
    except (ValueError, OverflowError):
        return None


def _counted(point: Any, *names: str) -> _Cells:
    """Coordinates, latitude first, of counts of 1e-7 degrees."""
    return [_degrees(_member_text(point, name) or "", most) for name, most in zip(names, (90, 180), strict=True)]


def _degrees(count: str, most: int) -> str | None:
    if not _WHOLE.fullmatch(count):
        return None
    number = int(count)
    # Some are written without their sign, as unsigned numbers of 32 bits.
    number -= 2**32 if number > most * _PER_DEGREE else 0
    return str(number / _PER_DEGREE)


def _written(point: Any, name: str) -> _Cells:
    """Coordinates, latitude first, as "geo:lat,lon" or "lat°, lon°" has them."""
    degrees = _WRITTEN.fullmatch(_member_text(point, name) or "")
    return [None, None] if degrees is None else [degrees[1], degrees[2]]


GOOGLE = DocumentKind(
    ("json",),
    "Google's location history: Records.json, or Timeline.json of a phone; points that were recorded are rows.",
    ("user",),
    _points,
)
