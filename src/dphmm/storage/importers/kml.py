"""Places of KML: tracks with times (gx:Track), points with a time stamp, and lines without times.

A track has times and places in turn: the k-th of one is of the k-th of the other, and those left over lack a time or a
place. A point of a Placemark has its time stamp; the points of a line have no times, and are rows in their order. A
track and a line are a trip; points that stand alone are of none. Polygons are no rows.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import IO

from dphmm.errors import InvalidInput
from dphmm.storage.importers.documents import Document, DocumentKind, DocumentRows, short_digest
from dphmm.storage.layouts import Layout
from dphmm.storage.xml_files import elements


def _places(layout: Layout, name: str, stream: IO[bytes]) -> Document:
    """The places of a file, with the names of their Placemarks. Raises InvalidInput where none has a time it needs."""
    rows, timed = DocumentRows(("name", "t", "lat", "lon", "trip")), False
    file, tracks = short_digest(name), 0
    title, stamp = None, None
    whens, coords, points = list[str](), list[list[str]](), list[list[str]]()
    fixes = list[tuple[str | None, list[str] | None, str | None]]()
    for path, _, text in elements(name, stream):
        if "Placemark" not in path:
            # Nobody's: a time of a folder, say, is not that of the next Placemark.
            continue
        match path:
            case (*_, "Placemark", "name"):
                title = text
            case (*_, "TimeStamp", "when"):
                stamp = text.strip()
            case (*_, "Track", "when"):
                whens.append(text.strip())
            case (*_, "Track", "coord"):
                coords.append(text.split())
            case (*_, "Track"):
                fixes += [(when, place, f"{file} {tracks}") for when, place in zip_longest(whens, coords)]
                whens, coords, tracks = [], [], tracks + 1
            case (*_, "Point", "coordinates"):
                points += [place.split(",") for place in text.split()]
            case (*_, "LineString", "coordinates"):
                fixes += [(None, place.split(","), f"{file} {tracks}") for place in text.split()]
                tracks += 1
            case (*_, "Placemark"):
                for when, place, trip in (*((stamp, place, None) for place in points), *fixes):
                    lon, lat = place[:2] if place is not None and len(place) > 1 else (None, None)
                    rows.add((title, when, lat, lon, trip))
                    timed |= when is not None
                title, stamp, points, fixes = None, None, [], []
                whens, coords = [], []
    document = rows.document()
    if not timed and not layout.no_times and len(document.table):
        raise InvalidInput("source", "places without times", "no_times=True to take them in the order of the file")
    return document


KML = DocumentKind(
    ("kml",),
    "Places of .kml: tracks, points with a time stamp, lines; --user-column name is that of the Placemark.",
    ("user_column", "user", "times", "no_times"),
    _places,
    {"time_column": "t", "trip_column": "trip"},
)
