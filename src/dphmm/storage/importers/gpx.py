"""Points of GPX: those of tracks, else of waypoints, else of routes.

The columns are always the same, whatever elements the points of a file have. Each point is a row of its own: its
attributes and its own children, and nothing of what stands beside it or deeper in it. If a point has a child twice,
the last one counts. A point of a track is of that track; waypoints and points of routes are of none.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from typing import IO

from dphmm.errors import InvalidInput
from dphmm.storage.importers.documents import Document, DocumentRows, short_digest
from dphmm.storage.xml_files import elements

#: The columns that are read, by option, if no option names others.
GPX_COLUMNS = {"time_column": "time", "trip_column": "track_fid"}
_CHILDREN = ("time", "ele", "name", "cmt", "desc", "sym", "type")
_TRACK = ("gpx", "trk")
_TRACK_POINT = (*_TRACK, "trkseg", "trkpt")
#: Elements that are points, in the order in which a file is searched for them.
_POINTS = (_TRACK_POINT, ("gpx", "wpt"), ("gpx", "rte", "rtept"))


def gpx_points(name: str, stream: IO[bytes]) -> Document:
    """The points of a file, in degrees. Raises InvalidInput for one that is no GPX, and as `elements`."""
    points = {path: DocumentRows(("lat", "lon", "track_fid", *_CHILDREN)) for path in _POINTS}
    file, tracks, cells = short_digest(name), 0, dict[str, str]()
    for path, attributes, text in elements(name, stream):
        if path[0] != "gpx":
            raise InvalidInput("source", f"{name}, a file that is not GPX", "a whole GPX file")
        if path[:-1] in points and path[-1] in _CHILDREN:
            cells[path[-1]] = text.strip() if path[-1] == "time" else text
        elif path in points:
            # Its number counts other people's tracks too: as text it is numbered within each person.
            track = f"{file} {tracks}" if path == _TRACK_POINT else None
            points[path].add([attributes.get("lat"), attributes.get("lon"), track, *map(cells.get, _CHILDREN)])
            cells = {}
        elif path == _TRACK:
            tracks += 1
    documents = [rows.document() for rows in points.values()]
    return next((document for document in documents if len(document.table)), documents[0])
