"""Fixes of animals, ships and vehicles: tables of published names of columns, with rows that have no place to tell.

A `Dialect` names the columns of one publisher; a table is read by the first whose columns it has. A receiver writes a
row also where it has no fix: with empty cells, or, of ships, with the latitude 91. Such rows, and those that a
publisher marks as outliers, are left out and counted: they are as they should be, and nothing is to mend.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.cells import Roles
from dphmm.storage.columns import Times, as_words, decimals, matches, nothing
from dphmm.storage.csv_files import listed
from dphmm.storage.layouts import Layout
from dphmm.storage.trajectories import Expansion
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


class Dialect(NamedTuple):
    """The columns of a publisher, in small letters; for those of ``marks`` the text that marks an outlier."""

    user: str
    time: str
    lat: str
    lon: str
    time_format: str = "auto"
    marks: tuple[tuple[str, str], ...] = ()


NO_PLACE = "rows without a place: none was recorded"
OUTLIERS = "rows that are marked as outliers"
#: The latitude of ships that do not know where they are (ITU-R M.1371).
_UNKNOWN = 91


def fixes(dialects: Sequence[Dialect], left_out: Counter[str], names: Sequence[str], layout: Layout) -> Expansion:
    """The rows of a table that have a place to tell; ``left_out`` counts the others by the words for them.

    Raises InvalidInput for a table that has the columns of no dialect.
    """
    called = {name.lower(): name for name in reversed(names)}
    dialect = next((each for each in dialects if called.keys() >= set(each[:4])), None)
    if dialect is None:
        expected = " or ".join(listed(each[:4]) for each in dialects)
        raise InvalidInput("source", "columns " + listed(names), "columns " + expected)
    user, time, lat, lon = (called[name] for name in dialect[:4])
    times = Times(time, layout.timezone, dialect.time_format, layout.fold)
    marked = [(called[name], text) for name, text in dialect.marks if name in called]

    def expand(rows: pa.Table) -> tuple[pa.Table, IntArray, dict[str, IntArray]]:
        import pyarrow as pa

        micros, marks = times.add(rows.column(time))
        nowhere = np.logical_and(*(nothing(rows.column(name)) for name in (lat, lon)))
        nowhere |= decimals(rows.column(lat), lat)[0] == _UNKNOWN
        outlier = np.zeros(len(rows), dtype=np.bool_)
        for name, text in marked:
            outlier |= matches(as_words(rows.column(name), name), f"^(?i:{text})$")
        outlier &= ~nowhere
        for words, left in ((NO_PLACE, nowhere), (OUTLIERS, outlier)):
            left_out[words] += int(left.sum())
        keep = ~nowhere & ~outlier
        lost = {reason: np.flatnonzero(mark & keep) for reason, mark in marks.items()}
        keep[np.concatenate(list(lost.values()))] = False
        origin = np.flatnonzero(keep)
        chosen = rows.take(pa.array(origin))
        columns = {"user": chosen.column(user), "lat": chosen.column(lat), "lon": chosen.column(lon)}
        return pa.table({**columns, "t": micros[origin]}), origin, lost

    read = (user, time, lat, lon, *(name for name, _ in marked))
    return Expansion(tuple(dict.fromkeys(read)), Roles(user="user", time="t", lat="lat", lon="lon"), expand, times)
