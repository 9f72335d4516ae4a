"""Columns of a table to arrays, cell by cell: what cannot be read is marked, never guessed, never quoted.

Each function gives values and a mask of the bad cells. A column whose type cannot be meant raises
InvalidInput with the column's name and type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.states.naming import FORBIDDEN, LONGEST_NAME
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

_UNREADABLE = re.compile(FORBIDDEN)
_DECIMAL = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?$"
_INTEGER = r"^[+-]?[0-9]{1,18}$"
_CLOCK = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONED = _CLOCK + r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_NAIVE = _CLOCK + "$"
# Years that every library's timestamps hold; others are sentinels such as 0001-01-01 and 9999-12-31.
_EARLIEST = int(np.datetime64("1678-01-01", "us").astype(np.int64))
_LATEST = int(np.datetime64("2262-01-01", "us").astype(np.int64))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME_REMEDY = "times with a zone (timezone), such as 2008-10-23T02:53:04Z, or assume_utc=True"


class Numbering:
    """Numbers for labels in the order in which they first appear, over all parts of a table."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, by number."""
        return tuple(self.codes)

    def add(self, column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
        """Number (n,) of each cell's label, -1 and bad where it is missing, too long or has control
        characters.
        """
        import pyarrow.compute as pc

        encoded = pc.dictionary_encode(as_text(column, field)).combine_chunks()
        found = [self._number(label) for label in encoded.dictionary.to_pylist()]
        table = np.array([*found, -1], dtype=np.int64)
        numbers = table[pc.fill_null(encoded.indices, len(found)).to_numpy(zero_copy_only=False)]
        return numbers, numbers < 0

    def _number(self, label: str) -> int:
        if not 0 < len(label) <= LONGEST_NAME or _UNREADABLE.search(label):
            return -1
        return self.codes.setdefault(label, len(self.codes))


def as_text(column: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    """Labels as text; whole numbers as they print (3.0 is "3"), other floats as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))
        return pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string())
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    raise InvalidInput(field, f"a column of type {kind}", "text or whole numbers")


def times(column: pa.ChunkedArray, field: str, assume_utc: bool) -> tuple[IntArray, BoolArray]:
    """Microseconds since 1970 UTC of timestamps with a zone or of ISO 8601 text with one.

    Raises InvalidInput for a column with any time without a zone, unless ``assume_utc``. Bad: missing, no
    such moment (31 February, a leap second), years outside 1678 to 2261.
    """
    import pyarrow as pa

    column = _plain(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64), np.ones(len(column), dtype=np.bool_)
    if pa.types.is_string(column.type):
        micros, bad = _text_times(column, field, assume_utc)
    elif pa.types.is_timestamp(column.type):
        if column.type.tz is None and not assume_utc and column.null_count < len(column):
            raise InvalidInput(field, "times without a zone", _TIME_REMEDY)
        micros, bad = _stamp_times(column)
    else:
        raise InvalidInput(field, f"a column of type {column.type}", _TIME_REMEDY)
    bad |= (micros < _EARLIEST) | (micros >= _LATEST)
    micros[bad] = 0
    return micros, bad


def decimals(column: pa.ChunkedArray, field: str) -> tuple[FloatArray, BoolArray]:
    """Finite numbers; bad: missing, NaN, infinite, or text that is not a plain decimal."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    if pa.types.is_string(column.type):
        plain = pc.match_substring_regex(column, _DECIMAL)
        column = pc.if_else(plain, column, None)
    elif not _is_number(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    bad = ~np.isfinite(values)
    return values, bad


def integers(column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
    """Whole numbers within 2**53; bad: missing, fractions, or text that is not a plain integer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.match_substring_regex(column, _INTEGER), column, None).cast(pa.int64())
    elif not _is_number(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "whole numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    bad = ~((np.abs(values) <= 2**53) & (values == np.rint(values)))
    return np.where(bad, 0, values).astype(np.int64), bad


def _text_times(column: pa.ChunkedArray, field: str, assume_utc: bool) -> tuple[IntArray, BoolArray]:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    zoned = _matches(column, _ZONED)
    naive = _matches(column, _NAIVE)
    if naive.any() and not assume_utc:
        raise InvalidInput(field, "times without a zone", _TIME_REMEDY)
    readable = zoned | naive
    text = pc.if_else(pa.array(readable), column, None)
    if not naive.any():
        try:
            return _stamp_times(text.cast(pa.timestamp("us", "UTC")))
        except pa.ArrowInvalid:
            # A moment that does not exist, or nanoseconds: pandas sets aside the one and takes the other.
            pass
    stamps = pd.to_datetime(text.to_pandas(), utc=True, format="ISO8601", errors="coerce")
    return _stamp_times(pa.chunked_array([pa.Array.from_pandas(stamps)]))


def _stamp_times(column: pa.ChunkedArray) -> tuple[IntArray, BoolArray]:
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


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries decoded and every kind of text as one."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def _matches(column: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    found: Any = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.asarray(found.to_numpy()).astype(np.bool_)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))
