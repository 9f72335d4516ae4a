"""Places of the OwnTracks Recorder: lines of .rec files, which lie in folders USER/DEVICE.

A line has the time at which it came, a kind, and a JSON object, by tabs. A line of an object of _type location is a
row, with its own time ``tst`` in Unix seconds; other objects (wills, waypoints, transitions, what is encrypted) are no
rows.
All devices of a user are one person's.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import IO

from dphmm.storage.importers.documents import Document, DocumentKind, DocumentRows
from dphmm.storage.json_lines import cell, lines, written_object
from dphmm.storage.layouts import Layout


class _Store(Layout):
    """Files in folders USER/DEVICE: the user is the folder above that of the device."""

    def owner_of(self, name: str) -> str | None:
        """The user of a file; no name, so that its rows are nobody's, where it lies in fewer folders."""
        above = str(PurePosixPath(name).parent.parent / "file")
        return super().owner_of(above if self.user_from == "folder-name" else name)


def _locations(layout: Layout, name: str, stream: IO[bytes]) -> Document:
    """The locations of a file; the other objects are counted."""
    rows, others = DocumentRows(("t", "lat", "lon")), 0
    for line in lines(name, stream):
        report = written_object(line.split(b"\t", 2)[-1])
        if report is None:
            rows.add(None)
        elif report.get("_type") != "location":
            others += 1
        else:
            rows.add([cell(report.get(each)) for each in ("tst", "lat", "lon")])
    return rows.document({"lines of another _type than location are no rows": others} if others else None)


OWNTRACKS = DocumentKind(
    ("rec",),
    "The OwnTracks Recorder: .rec; with --user-from folder-name the user is USER of USER/DEVICE/*.rec.",
    ("user",),
    _locations,
    layout=_Store(time_format="unix-s"),
)
