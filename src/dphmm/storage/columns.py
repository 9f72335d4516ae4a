"""Columns of a table to arrays, cell by cell: what cannot be read is marked, never guessed, never quoted.

Each function gives values and a mask of the bad cells. A column whose type cannot be meant raises
InvalidInput with the column's name and type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.naming import FORBIDDEN, LONGEST_NAME
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

_UNREADABLE = re.compile(FORBIDDEN)
_DECIMAL = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?$"
_INTEGER = r"^[+-]?[0-9]{1,18}$"


class Numbering:
    """Numbers for labels in the order in which they first appear, over all parts of a table."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, by number."""
        return tuple(self.codes)

    def add(self, column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
        """Number (n,) of each cell's label, -1 and bad where it is missing, too long or has control characters."""
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

    column = plain_type(column)
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


def decimals(column: pa.ChunkedArray, field: str) -> tuple[FloatArray, BoolArray]:
    """Finite numbers; bad: missing, NaN, infinite, or text that is not a plain decimal."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_type(column)
    if pa.types.is_string(column.type):
        plain = pc.match_substring_regex(column, _DECIMAL)
        column = pc.if_else(plain, column, None)
    elif not is_number(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    bad = ~np.isfinite(values)
    return values, bad


def integers(column: pa.ChunkedArray, field: str) -> tuple[IntArray, BoolArray]:
    """Whole numbers within 2**53; bad: missing, fractions, or text that is not a plain integer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_type(column)
    if pa.types.is_string(column.type):
        plain = pc.if_else(pc.match_substring_regex(column, _INTEGER), column, None)
        # Arrow takes no plus sign before a whole number.
        column = pc.utf8_ltrim(plain, "+").cast(pa.int64())
    elif not is_number(column.type):
        raise InvalidInput(field, f"a column of type {column.type}", "whole numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    bad = ~((np.abs(values) <= 2**53) & (values == np.rint(values)))
    return np.where(bad, 0, values).astype(np.int64), bad


def plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries decoded, every kind of text as one, and no half floats."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_float16(column.type):
        # Arrow computes nothing on half floats.
        column = column.cast(pa.float32())
    return column


def is_number(kind: pa.DataType) -> bool:
    """Integers, floats, decimals, and columns without any value."""
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))
