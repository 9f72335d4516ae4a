"""Turn what users pass into exact values, or say in one line what is wrong with it."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, States

#: Longest number that is read as text; Python itself refuses to convert more than a few thousand digits.
LONGEST_NUMBER = 400
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_WRITTEN = re.compile(r"-?[0-9]+(/[0-9]+)?", re.ASCII)
#: Smallest and largest epsilon accepted: the range that ADR 0002 samples exactly in.
EPSILON_MIN = Fraction(1, 2**20)
EPSILON_MAX = Fraction(2**10)


def exact_number(value: object, field: str) -> Fraction:
    """The exact value of a number as it prints: 0.1 is 1/10, "0.25" is 1/4.

    Raises InvalidInput for bools, NaN, infinities and anything that is not a plain decimal.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise InvalidInput(field, value, "a number, a Fraction or a decimal string")
    if isinstance(value, (int, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise InvalidInput(field, value, "a finite number")
        return Fraction(str(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InvalidInput(field, value, "a finite number")
        return Fraction(value)
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER and _DECIMAL.fullmatch(value):
        return Fraction(value)
    raise InvalidInput(field, value, "a number, a Fraction or a decimal string such as 0.5")


def written_fraction(text: str) -> Fraction:
    """A Fraction as ``str`` writes it, ``3`` or ``-1/3``; ValueError for anything else.

    `Fraction` itself reads "1e999999999" too, and would be years about it.
    """
    if not _WRITTEN.fullmatch(text):
        raise ValueError("no fraction as it is written")
    return Fraction(text)


def stated_epsilon(epsilon: str) -> Fraction | str:
    """The epsilon of a release as its statement writes it: the share of a step may be 1/12, which no decimal is."""
    try:
        return written_fraction(epsilon) if "/" in epsilon and len(epsilon) <= LONGEST_NUMBER else epsilon
    except (ValueError, ZeroDivisionError):
        return epsilon


def finite_number(value: object, field: str) -> float:
    """The float nearest to a number; InvalidInput as `exact_number`, and where it would become infinite or 0."""
    exact = exact_number(value, field)
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest) or (nearest == 0) != (exact == 0):
        raise InvalidInput(field, value, "a number within float64's range")
    return nearest


def whole(value: object, field: str, least: int, most: int | None = None) -> int:
    """A whole number, at least ``least`` and at most ``most``; InvalidInput for bools, floats, text and others."""
    plain = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    number = int(value) if plain else least - 1  # type: ignore[call-overload]
    if number < least or (most is not None and number > most):
        expected = f"a whole number, at least {least}" if most is None else f"a whole number from {least} to {most}"
        raise InvalidInput(field, value, expected)
    return number


def exact_epsilon(value: object, field: str = "epsilon") -> Fraction:
    """A privacy parameter, exactly; between 2**-20 and 2**10."""
    epsilon = exact_number(value, field)
    above, below = epsilon.as_integer_ratio()
    if above <= 0:
        raise InvalidInput(field, value, "a number greater than 0")
    # Whole numbers: comparing Fractions would be a good part of making a mechanism.
    if above * EPSILON_MIN.denominator < below or above > below * EPSILON_MAX.numerator:
        raise InvalidInput(field, value, "a number from 2**-20 to 2**10")
    return epsilon


def state_mask(states: States, n: int, field: str = "constraint") -> BoolArray:
    """The boolean mask (n,) of some states given as a mask, as state numbers, or as None for all."""
    if states is None:
        return np.ones(n, dtype=np.bool_)
    entries = np.asarray(states)
    if entries.ndim != 1:
        raise InvalidInput(field, f"an array of shape {entries.shape}", f"a mask ({n},) or state numbers")
    if entries.dtype == np.bool_:
        if len(entries) != n:
            raise InvalidInput(field, f"a mask of {len(entries)}", f"one of {n} states")
        return entries.copy()
    mask = np.zeros(n, dtype=np.bool_)
    if len(entries) == 0:
        return mask
    if not np.issubdtype(entries.dtype, np.integer):
        raise InvalidInput(field, f"dtype {entries.dtype}", "booleans or integer state numbers")
    outside = (entries < 0) | (entries >= n)
    if outside.any():
        raise InvalidInput(field, int(entries[outside][0]), f"state numbers from 0 to {n - 1}")
    if n > 2 and len(entries) == n and entries.max() <= 1:
        # Read as numbers it would be the states 0 and 1, which is hardly what was meant.
        raise InvalidInput(field, f"{n} numbers, all 0 or 1", "a mask of booleans (astype(bool)), or state numbers")
    mask[entries] = True
    return mask


def one_of(value: object, choices: tuple[str, ...], field: str) -> str:
    """A named option, or the list of names there are."""
    if isinstance(value, str) and value in choices:
        return value
    raise InvalidInput(field, value, "one of " + ", ".join(choices))
