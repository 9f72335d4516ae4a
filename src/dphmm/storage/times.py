"""A column of times to microseconds since 1970 UTC: what cannot be read is marked, never guessed, never quoted.

Each cell is read by itself. Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.storage.columns import plain_type
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

# Every text that matches is a moment that exists, so that no cell decides how another one is read.
_LEAP = r"(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|(?:12|16|20|24|28)00)-02-29"
_DAY = (
    r"[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_CLOCK = rf"^(?:{_DAY}|{_LEAP})[T ]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:\.[0-9]{{1,9}})?)?"
_ZONED = rf"{_CLOCK}(?:Z|[+-]{_HOUR}(?::?{_SIXTY})?)$"
_NAIVE = _CLOCK + "$"
_NANOSECONDS = r"(\.[0-9]{6})[0-9]+"
# Years that every library's timestamps hold; others are sentinels such as 0001-01-01 and 9999-12-31.
_EARLIEST = int(np.datetime64("1678-01-01", "us").astype(np.int64))
_LATEST = int(np.datetime64("2262-01-01", "us").astype(np.int64))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_REMEDY = "times with a zone (timezone), such as 2008-10-23T02:53:04Z; or assume_utc=True, or timezone='Europe/Berlin'"

#: Why a time is set aside.
REASONS = ("time_without_zone", "nonexistent_time", "ambiguous_time", "invalid_time")
Marks = dict[str, BoolArray]


class Times:
    """Reads the parts of one column of timestamps, or of ISO 8601 text.

    Times without a zone are UTC with ``assume_utc``, on the clocks of ``timezone`` (an IANA name) if that is given,
    else set aside. How a cell is read depends on that cell and on the column's type alone. Raises InvalidInput for
    both options together and for a zone that is not known here.
    """

    def __init__(self, field: str, assume_utc: bool = False, timezone: str | None = None) -> None:
        if assume_utc and timezone is not None:
            raise InvalidInput("timezone", timezone, "either a zone or assume_utc, not both")
        self._field = field
        self._zone = "UTC" if assume_utc else _known(timezone)

    def add(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        """Microseconds (n,), 0 where a mark (n,) says that there are none.

        Marks: time_without_zone; nonexistent_time and ambiguous_time (the clock was put forward or back);
        invalid_time (missing, no such moment as 31 February or a leap second, years outside 1678 to 2261).
        Raises InvalidInput for a column of another type, and for the type of timestamps without a zone.
        """
        import pyarrow as pa

        column = plain_type(column)
        if pa.types.is_null(column.type):
            return np.zeros(len(column), dtype=np.int64), {"invalid_time": np.ones(len(column), dtype=np.bool_)}
        if pa.types.is_string(column.type):
            micros, marks = self._text(column)
        elif pa.types.is_timestamp(column.type):
            micros, marks = self._stamps(column)
        else:
            raise InvalidInput(self._field, f"a column of type {column.type}", _REMEDY)
        marks["invalid_time"] |= (micros < _EARLIEST) | (micros >= _LATEST)
        micros[np.logical_or.reduce(list(marks.values()))] = 0
        return micros, marks

    def zone_missing(self) -> InvalidInput:
        """The error of a table in which no row is left because of times without a zone."""
        return InvalidInput(self._field, "times without a zone", _REMEDY)

    def _text(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        import pyarrow as pa
        import pyarrow.compute as pc

        zoned, naive = _matches(column, _ZONED), _matches(column, _NAIVE)
        micros, bad = _parsed(pc.if_else(pa.array(zoned), column, None), "UTC")
        if not naive.any():
            return micros, {"invalid_time": bad}
        if self._zone is None:
            return micros, {"time_without_zone": naive, "invalid_time": bad & ~naive}
        clocks, unreadable = _parsed(pc.if_else(pa.array(naive), column, None), None)
        local, marks = self._local(clocks)
        marks = {reason: mark & naive & ~unreadable for reason, mark in marks.items()}
        return np.where(naive, local, micros), {**marks, "invalid_time": np.where(naive, unreadable, bad)}

    def _stamps(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        micros, bad = _counted(column)
        if column.type.tz is not None:
            return micros, {"invalid_time": bad}
        if self._zone is None:
            raise self.zone_missing()
        local, marks = self._local(micros)
        return local, {**{reason: mark & ~bad for reason, mark in marks.items()}, "invalid_time": bad}

    def _local(self, clocks: IntArray) -> tuple[IntArray, Marks]:
        """What clocks (n,), in microseconds since 1970, showed in the zone; clocks put back show a time twice."""
        first = self._placed(clocks, "earliest", "earliest")
        marks = {
            "nonexistent_time": first != self._placed(clocks, "earliest", "latest"),
            "ambiguous_time": first != self._placed(clocks, "latest", "earliest"),
        }
        return first, marks

    def _placed(self, clocks: IntArray, ambiguous: str, nonexistent: str) -> IntArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        stamps = pa.array(clocks, pa.timestamp("us"))
        try:
            placed = pc.assume_timezone(stamps, self._zone, ambiguous=ambiguous, nonexistent=nonexistent)
        except pa.ArrowInvalid:
            raise _unknown(self._zone) from None
        return np.array(placed.cast(pa.int64()), dtype=np.int64)


def _known(timezone: str | None) -> str | None:
    if timezone is not None:
        try:
            ZoneInfo(timezone)
        except (LookupError, ValueError, OSError):
            raise _unknown(timezone) from None
    return timezone


def _unknown(timezone: object) -> InvalidInput:
    return InvalidInput("timezone", timezone, "a zone of the IANA database, such as Europe/Berlin")


def _parsed(text: pa.ChunkedArray, zone: str | None) -> tuple[IntArray, BoolArray]:
    """Microseconds of moments that exist, all with a zone or all without one; digits beyond them are cut off."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return _counted(pc.replace_substring_regex(text, _NANOSECONDS, r"\1").cast(pa.timestamp("us", zone)))


def _counted(column: pa.ChunkedArray) -> tuple[IntArray, BoolArray]:
    import pyarrow as pa
    import pyarrow.compute as pc

    missing: BoolArray = column.is_null().to_numpy().astype(np.bool_)
    counts = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    per_second = _PER_SECOND[column.type.unit]
    beyond = (counts < _EARLIEST // 10**6 * per_second) | (counts > _LATEST // 10**6 * per_second)
    counts = np.where(beyond, 0, counts).astype(np.int64)
    finer = max(1, per_second // 10**6)
    coarser = max(1, 10**6 // per_second)
    return counts * coarser // finer, missing | beyond


def _matches(column: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    found: Any = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.asarray(found.to_numpy()).astype(np.bool_)
