"""Columns of a table to arrays, cell by cell. A cell that cannot be read is marked, never guessed, never quoted.

Each function returns values and a mask of the bad cells. A column of a wrong type raises InvalidInput with the column's
name and type. Times become microseconds since 1970 UTC. Each cell is read by itself.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.states.space import FORBIDDEN, LONGEST_NAME
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

_UNREADABLE = re.compile(FORBIDDEN)
_DECIMAL = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?$"
_INTEGER = r"^[+-]?[0-9]{1,18}$"


class Numbering:
    """Numbers for labels in the order in which they first appear, over all parts of a table.

    ``key`` : the key that labels of one number share, as `person_key` for people; by default the label. The first label
    of each number stands for all. One of which there is no key is bad.
    """

    def __init__(self, key: Callable[[str], str] = str) -> None:
        self._key = key
        self._numbers: dict[str, int] = {}
        self._labels: list[str] = []
        #: Labels that are not the first of their number, and the number.
        self.others: dict[str, int] = {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, by number."""
        return tuple(self._labels)

    def add(self, column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
        """Number (n,) of each cell's label, -1 and bad where it is missing, too long or has control characters."""
        numbers = _of_each(as_text(column, field), self.number)
        return numbers, numbers < 0

    def find(self, column: pa.ChunkedArray, field: str) -> IntArray:
        """Number (n,) of each cell's label among those that were added; -1 for every other cell."""
        return _of_each(as_text(column, field), self.known)

    def number(self, label: str) -> int:
        """The number of a label; -1 for one that is too long, has control characters, or has no key."""
        key = self._key_of(label)
        if key is None:
            return -1
        number = self._numbers.setdefault(key, len(self._labels))
        if number == len(self._labels):
            self._labels.append(label)
        elif label != self._labels[number]:
            self.others[label] = number
        return number

    def known(self, label: str) -> int:
        """The number of a label, if one of its number was added; else -1."""
        key = self._key_of(label)
        return -1 if key is None else self._numbers.get(key, -1)

    def _key_of(self, label: str) -> str | None:
        """The key of a label; None for one that has none."""
        if not 0 < len(label) <= LONGEST_NAME or _UNREADABLE.search(label):
            return None
        try:
            return self._key(label)
        except InvalidInput:
            return None


def _of_each(texts: pa.ChunkedArray, number: Callable[[str], int]) -> IntArray:
    """The number (n,) of each text, -1 where it is missing."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(texts).combine_chunks()
    by_code = np.array([*map(number, encoded.dictionary.to_pylist()), -1], dtype=np.int64)
    numbers: IntArray = by_code[pc.fill_null(encoded.indices, len(by_code) - 1).to_numpy(zero_copy_only=False)]
    return numbers


def as_text(column: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    """Labels as text; whole numbers as they print (3.0 is "3"), other floats as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_type(column)
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))
        return pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string())
    raise InvalidInput(field, f"a column of type {kind}", "text or whole numbers")


def as_words(column: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    """As `as_text`, and truth values as true and false."""
    import pyarrow as pa

    return column.cast(pa.string()) if pa.types.is_boolean(column.type) else as_text(column, field)


def decimals(column: pa.ChunkedArray, field: str, decimal: str = ".") -> tuple[FloatArray, BoolArray]:
    """Finite numbers; bad: missing, NaN, infinite, or text that is not a plain decimal. ``decimal``: its point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_type(column)
    if pa.types.is_string(column.type):
        if decimal != ".":
            # A number that is written with another point is none.
            column = pc.replace_substring(pc.replace_substring(column, ".", "?"), decimal, ".")
        column = trimmed(column)
        plain = pc.match_substring_regex(column, _DECIMAL)
        column = pc.if_else(plain, column, None)
    elif not is_number(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    return values, ~np.isfinite(values)


def finite(column: pa.ChunkedArray, field: str, rows: BoolArray | slice = slice(None)) -> FloatArray:
    """The finite numbers of some rows (default all). Raises InvalidInput for a cell that has none."""
    values, bad = decimals(column, field)
    if bad[rows].any():
        raise InvalidInput(field, f"{int(bad[rows].sum())} cells that cannot be read", "a number in every row")
    return values[rows]


def integers(column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
    """Whole numbers from -2**53 to 2**53, exactly; bad: missing, fractions, or text that is not a plain integer.

    Floats have to be within 2**53: from there on a float stands for several whole numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_type(column)
    if pa.types.is_string(column.type):
        column = trimmed(column)
        plain = pc.if_else(pc.match_substring_regex(column, _INTEGER), column, None)
        # Arrow takes no plus sign before a whole number.
        column = pc.utf8_ltrim(plain, "+").cast(pa.int64())
    elif pa.types.is_floating(column.type) or pa.types.is_null(column.type):
        floats = column.cast(pa.float64()).to_numpy().astype(np.float64)
        bad = ~((np.abs(floats) < 2**53) & (floats == np.rint(floats)))
        return np.where(bad, 0, floats).astype(np.int64), bad
    elif pa.types.is_decimal(column.type):
        column = _whole_decimals(column)
    elif not pa.types.is_integer(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "whole numbers")
    missing = column.is_null().to_numpy().astype(np.bool_)
    values = pc.fill_null(column, 0).to_numpy()
    bad = missing | (values < -(2**53)) | (values > 2**53)
    return np.where(bad, 0, values).astype(np.int64), bad


def _whole_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The whole ones as 64-bit integers, others and those that are far beyond 2**53 as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type.bit_width < 128:
        # Arrow rounds no smaller ones.
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if column.type.scale < 0:
        # Whole, and Arrow casts none of them.
        whole = [None if value is None or abs(value) > 2**53 else int(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(whole, pa.int64())])
    near = pc.less(pc.abs(column.cast(pa.float64())), 2.0**54)
    return pc.if_else(pc.and_(near, pc.equal(pc.floor(column), column)), column, None).cast(pa.int64())


def trimmed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts without the blanks at their ends, which say nothing."""
    import pyarrow.compute as pc

    return pc.ascii_trim(texts, characters=" \t")


def nothing(column: pa.ChunkedArray) -> BoolArray:
    """A mask (n,) of the empty cells: missing, NaN, or text of blanks alone."""
    import pyarrow as pa

    column = plain_type(column)
    if pa.types.is_string(column.type):
        return ~matches(column, r"\S")
    return np.asarray(column.is_null(nan_is_null=True).to_numpy())


def plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries decoded, every kind of text as one, and no half floats."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        if pa.types.is_string_view(kind):
            # As polars makes them; Arrow cannot take from such text.
            decoded = [part.dictionary.cast(pa.string()).take(part.indices) for part in column.chunks]
            column = pa.chunked_array(decoded, pa.string())
        else:
            column = column.cast(kind)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_float16(column.type):
        # Arrow computes nothing on half floats.
        column = column.cast(pa.float32())
    return column


def without_views(table: pa.Table) -> pa.Table:
    """The table with views of text as text: Arrow can neither take nor filter rows of views."""
    import pyarrow as pa

    for at, column in enumerate(table.columns):
        if pa.types.is_string_view(column.type):
            table = table.set_column(at, table.column_names[at], column.cast(pa.large_string()))
    return table


def is_number(kind: pa.DataType) -> bool:
    """Integers, floats, decimals, and columns without any value."""
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


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
EARLIEST = int(np.datetime64("1678-01-01", "us").astype(np.int64))
LATEST = int(np.datetime64("2262-01-01", "us").astype(np.int64))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_REMEDY = "timezone='UTC' or 'Europe/Berlin', of times without a zone; or times such as 2008-10-23T02:53:04Z"

#: Why a time is rejected.
REASONS = ("time_without_zone", "nonexistent_time", "ambiguous_time", "unclear_unit", "invalid_time")
Marks = dict[str, BoolArray]
#: Units of Unix times, per second, and what they are called.
UNIX = {"unix-s": (1, "Unix seconds"), "unix-ms": (10**3, "Unix milliseconds"), "unix-us": (10**6, "Unix microseconds")}
#: ISO 8601; ISO 8601 and Unix times whose unit is plain from their size; both of one unit.
FORMATS = ("iso", "auto", *UNIX)
# A number is in the one unit that makes a moment of these years of it. In no two units any number does.
_PLAIN = tuple(int(np.datetime64(f"{year}-01-01", "s").astype(np.int64)) for year in (1980, 2100))
_UNIX = r"^[+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?$"
_DIRECTIVES = re.compile("%(.)")


def zoned_times(texts: Sequence[str | None], field: str) -> tuple[IntArray, BoolArray]:
    """Microseconds (n,) since 1970 UTC of times with a zone, such as 2024-05-06T00:00Z, and which texts are none."""
    import pyarrow as pa

    micros, marks = Times(field).add(pa.chunked_array([list(texts)], pa.string()))
    return micros, np.logical_or.reduce(list(marks.values()))


class Times:
    """Reads the parts of one column of timestamps, of ISO 8601 text, of Unix times or of another ``format``.

    ``format``: one of `FORMATS`, or a format of strptime such as %d/%m/%Y %H:%M. Times without a zone are
    those of ``timezone`` (UTC, or another IANA name) if that is given, else rejected; ``fold``: the first or the second
    of an hour that clocks show twice, else rejected. The reading of a cell depends on that cell and on the column's
    type alone. Raises InvalidInput for a zone that is not known here, and for a format without a year, a
    month and a day.
    """

    def __init__(
        self,
        field: str,
        timezone: str | None = None,
        format: str = "iso",
        fold: str | None = None,
    ) -> None:
        self.field, self._fold = field, None if fold is None else one_of(fold, ("first", "second"), "fold")
        self._zone, self._format = timezone, format
        if timezone is not None:
            try:
                ZoneInfo(timezone)
            except (LookupError, ValueError, OSError):
                raise _unknown(timezone) from None
        directives = set(_DIRECTIVES.findall(format))
        dated = bool(directives & set("Yy")) and bool(directives & set("mbBj"))
        if format not in FORMATS and (not dated or directives - set("YymbBdjHIMSfpzaA%")):
            expected = ", ".join(FORMATS) + ", or a format such as %d/%m/%Y %H:%M:%S (directives YymbBdjHIMSfpzaA)"
            raise InvalidInput("time_format", format, expected)
        #: How many cells were read in each unit of Unix times.
        self.units: dict[str, int] = {}

    def add(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        """Microseconds (n,), 0 where a mark (n,) says that there are none.

        Marks: time_without_zone; nonexistent_time and ambiguous_time (the clock was put forward or back);
        invalid_time (missing, no such moment as 31 February or a leap second, years outside 1678 to 2261).
        unclear_unit (a number that no unit, or none for certain, makes a time of).
        Raises InvalidInput for a column of another type, and for the type of timestamps without a zone.
        """
        import pyarrow as pa

        column = plain_type(column)
        if pa.types.is_null(column.type):
            return np.zeros(len(column), dtype=np.int64), {"invalid_time": np.ones(len(column), dtype=np.bool_)}
        if pa.types.is_string(column.type):
            micros, marks = self._written(trimmed(column))
        elif pa.types.is_timestamp(column.type):
            micros, bad = _counted(column)
            marks = {"invalid_time": bad}
            if column.type.tz is None:
                if self._zone is None:
                    raise self.zone_missing()
                micros, marks = self._local(micros, bad)
        elif is_number(column.type) and (self._format == "auto" or self._format in UNIX):
            micros, marks = self._numbers(column)
        else:
            raise InvalidInput(self.field, f"a column of type {column.type}", _REMEDY)
        marks["invalid_time"] |= (micros < EARLIEST) | (micros >= LATEST)
        micros[np.logical_or.reduce(list(marks.values()))] = 0
        return micros, marks

    def zone_missing(self) -> InvalidInput:
        """The error of a table in which no row is left because of times without a zone."""
        return InvalidInput(self.field, "times without a zone", _REMEDY)

    def _written(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._format.find("%") >= 0:
            return self._formatted(column)
        if self._format == "iso":
            return self._text(column)
        counted = matches(column, _UNIX)
        if self._format == "auto" and not counted.any():
            return self._text(column)
        micros, marks = self._in_units(pc.if_else(pa.array(counted), column, None))
        if self._format == "auto" and not counted.all():
            texts, others = self._text(pc.if_else(pa.array(counted), None, column))
            micros = np.where(counted, micros, texts)
            none = np.zeros(len(micros), dtype=np.bool_)
            marks = {reason: np.where(counted, marks.get(reason, none), others.get(reason, none)) for reason in REASONS}
        else:
            marks["invalid_time"] |= ~counted
        return micros, marks

    def _numbers(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        """Unix times that a column has as numbers; fractions of a microsecond are rounded."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_floating(column.type):
            finite = pc.and_(pc.is_finite(column), pc.less(pc.abs(column), 1e18))
            column = pc.round(pc.if_else(finite, column, None), 6).cast(pa.decimal128(38, 6), safe=False)
        return self._in_units(column.cast(pa.string()))

    def _in_units(self, text: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        """Unix times (n,) of text that has their form; missing is invalid."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing = np.asarray(text.is_null().to_numpy()).astype(np.bool_)
        beyond = matches(text, r"^[+-]?[0-9]{19,}")
        if beyond.any():
            text = pc.if_else(pa.array(beyond), None, text)
        long = matches(text, r"\.[0-9]{7,}$")
        if long.any():
            # Rounded as a column of floats is: one row in two files is of one moment.
            floats = pc.round(pc.if_else(pa.array(long), text, None).cast(pa.float64()), 6)
            rounded = floats.cast(pa.decimal128(38, 6), safe=False).cast(pa.string())
            text = pc.if_else(pa.array(long), rounded, text)
        # Six digits behind the point, whatever is there.
        parts = pc.extract_regex(text, r"^[+-]?(?P<whole>[0-9]+)\.?(?P<part>[0-9]{0,6})[0-9]*$")
        padded = pc.utf8_rpad(pc.struct_field(parts, [1]), 6, "0")
        whole, millionths = (
            pc.fill_null(digits.cast(pa.int64()), 0).to_numpy() for digits in (pc.struct_field(parts, [0]), padded)
        )
        negative = matches(text, "^-")
        readable, first, end = ~missing & ~beyond, 0, LATEST // 10**6
        if self._format == "auto":
            readable, (first, end) = readable & ~negative, _PLAIN
        units = [self._format] if self._format in UNIX else list(UNIX)
        micros, unclear = np.zeros(len(whole), dtype=np.int64), ~missing
        for unit in units:
            per_second, called = UNIX[unit]
            inside = readable & (whole >= first * per_second) & (whole < end * per_second)
            scale = 10**6 // per_second
            micros = np.where(inside, np.where(inside, whole, 0) * scale + millionths * scale // 10**6, micros)
            unclear &= ~inside
            if inside.any():
                self.units[called] = self.units.get(called, 0) + int(inside.sum())
        return np.where(negative, -micros, micros), {"unclear_unit": unclear, "invalid_time": missing}

    def _formatted(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        """Texts of a format of strptime, which is read exactly; digits beyond microseconds are cut off."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.compute as pc

        # Pandas takes these words for the moment of reading, in any format.
        words = matches(column, "(?i)^\\s*(now|today)\\s*$")
        texts = pc.if_else(pa.array(words), None, column).to_pandas().astype(object)
        has_zone = "%z" in self._format
        read = pd.to_datetime(texts, format=self._format, errors="coerce", utc=has_zone, exact=True)
        stamps = read.dt.tz_localize(None) if has_zone else read
        bad = np.asarray(stamps.isna()).astype(np.bool_)
        micros = np.array(stamps.to_numpy().astype("datetime64[us]").astype(np.int64))
        micros[bad] = 0
        return (micros, {"invalid_time": bad}) if has_zone else self._local(micros, bad)

    def _text(self, column: pa.ChunkedArray) -> tuple[IntArray, Marks]:
        import pyarrow as pa
        import pyarrow.compute as pc

        zoned, naive = matches(column, _ZONED), matches(column, _NAIVE)
        micros, bad = _parsed(pc.if_else(pa.array(zoned), column, None), "UTC")
        if not naive.any():
            return micros, {"invalid_time": bad}
        if self._zone is None:
            return micros, {"time_without_zone": naive, "invalid_time": bad & ~naive}
        clocks, unreadable = _parsed(pc.if_else(pa.array(naive), column, None), None)
        local, marks = self._local(clocks, unreadable)
        return np.where(naive, local, micros), {**marks, "invalid_time": np.where(naive, unreadable, bad)}

    def _local(self, clocks: IntArray, bad: BoolArray) -> tuple[IntArray, Marks]:
        """The instants of local times (n,), in microseconds since 1970; clocks that are put back show a time twice."""
        if self._zone is None:
            return clocks, {"time_without_zone": ~bad, "invalid_time": bad}
        first, second = (self._placed(clocks, which, "earliest") for which in ("earliest", "latest"))
        marks = {"nonexistent_time": ~bad & (first != self._placed(clocks, "earliest", "latest")), "invalid_time": bad}
        if self._fold is None:
            marks["ambiguous_time"] = ~bad & (first != second)
        return second if self._fold == "second" else first, marks

    def _placed(self, clocks: IntArray, ambiguous: str, nonexistent: str) -> IntArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        stamps = pa.array(clocks, pa.timestamp("us"))
        try:
            placed = pc.assume_timezone(stamps, self._zone, ambiguous=ambiguous, nonexistent=nonexistent)
        except pa.ArrowInvalid:
            raise _unknown(self._zone) from None
        return np.array(placed.cast(pa.int64()), dtype=np.int64)


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
    beyond = (counts < EARLIEST // 10**6 * per_second) | (counts > LATEST // 10**6 * per_second)
    counts = np.where(beyond, 0, counts).astype(np.int64)
    finer = max(1, per_second // 10**6)
    coarser = max(1, 10**6 // per_second)
    return counts * coarser // finer, missing | beyond


def matches(column: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    """A mask (n,) of the texts that match; missing ones do not."""
    import pyarrow.compute as pc

    mask: Any = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.asarray(mask.to_numpy()).astype(np.bool_)
