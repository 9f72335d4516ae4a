"""What of a table counts: at most K records of one person, and a public value for a cell that cannot be used.

Every rule looks at one person's own records, and a rule for a cell at that cell alone. So nobody's record decides
whether there is an answer, or what somebody else's record counts as.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray


def grouped(dependence: Any, most: int | None) -> Any:
    """The dependence, where "group" (all records of one person depend on each other) is ("group", ``most``).

    Raises InvalidInput for "group" without a public number of records that one person may have.
    """
    if most is not None:
        whole(most, "max_rows_per_user", 1)
    if not (isinstance(dependence, str) and dependence == "group"):
        return dependence
    if most is None:
        expected = 'a public number: how many records of one person count, with dependence "group"'
        raise InvalidInput("max_rows_per_user", None, expected)
    return ("group", most)


def owned(users: Any, n: int, most: int | None) -> BoolArray:
    """Which of ``n`` rows count: all, or of each of ``users`` (n,) the first ``most``.

    Raises InvalidInput where one of the two is given without the other, and for another number of users than of rows.
    """
    if most is None and users is None:
        return np.ones(n, dtype=np.bool_)
    if most is None or users is None:
        missing = "users" if users is None else "max_rows_per_user"
        raise InvalidInput(missing, None, "both users and max_rows_per_user, or neither")
    codes = people(users)
    if len(codes) != n:
        raise InvalidInput("users", f"{len(codes)}", f"one for each of {n} rows")
    return first_of_each(codes, most)


def people(users: Any) -> IntArray:
    """Numbers (n,) of people from names or numbers, -1 where a row is nobody's."""
    import pandas as pd

    given = np.asarray(users)
    if given.ndim != 1:
        raise InvalidInput("users", f"shape {given.shape}", "one name or number for each row")
    codes = np.unique(given.astype(str), return_inverse=True)[1].astype(np.int64)
    codes[np.asarray(pd.isna(given))] = -1
    return codes


def first_of_each(codes: IntArray, most: int, order: IntArray | None = None) -> BoolArray:
    """Which rows (n,) are among the first ``most`` of their person, by ``order`` (n,) and else as they stand.

    ``codes`` (n,): whose each row is; a negative number is nobody, and such a row does not count.
    """
    by_person = np.lexsort((np.arange(len(codes)),) + (() if order is None else (order,)) + (codes,))
    own = codes[by_person]
    starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]][: len(own)])
    rank = np.arange(len(own)) - np.repeat(starts, np.diff(np.r_[starts, len(own)]))
    kept = np.zeros(len(codes), dtype=np.bool_)
    kept[by_person] = (rank < most) & (own >= 0)
    return kept


def last_of_each(codes: IntArray, place: IntArray) -> BoolArray:
    """Which rows (n,) are the last, as they stand, of their person at their ``place`` (n,)."""
    order = np.lexsort((np.arange(len(codes)), place, codes))
    own, at = codes[order], place[order]
    last = np.r_[(own[1:] != own[:-1]) | (at[1:] != at[:-1]), True][: len(own)]
    kept = np.zeros(len(codes), dtype=np.bool_)
    kept[order] = last
    return kept


def plain_numbers(values: Any, field: str) -> FloatArray:
    """Values as floats, NaN for each that is no number; InvalidInput for a type that holds none."""
    given = np.asarray(values)
    if given.dtype.kind in "biuf":
        return given.astype(np.float64)
    if given.dtype.kind not in "OUS":
        raise InvalidInput(field, f"dtype {given.dtype}", "numbers")
    found = np.array([_number(value) for value in given.ravel().tolist()], dtype=np.float64)
    return found.reshape(given.shape)


def whole_numbers(values: Any, field: str) -> tuple[IntArray, BoolArray]:
    """Values as integers, and which of them are whole numbers within 2**53; 0 for all others."""
    given = np.asarray(values)
    if given.dtype.kind in "iu":
        good = (given >= -(2**53)) & (given <= 2**53)
        return np.where(good, given, 0).astype(np.int64), good
    found = plain_numbers(given, field)
    with np.errstate(invalid="ignore"):
        good = (np.abs(found) <= 2**53) & (found == np.rint(found))
    return np.where(good, found, 0).astype(np.int64), good


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
