"""Lengths, durations and speeds as people write them: 340m, 1km, 5min, 150km/h."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from dphmm._checks import LONGEST_NUMBER, exact_number
from dphmm.errors import InvalidInput

_WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?([a-z/]*)", re.ASCII)

_LENGTHS = {"": Fraction(1), "m": Fraction(1), "km": Fraction(1000)}
_DURATIONS = {
    "": Fraction(1),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_SPEEDS = {"": Fraction(1), "m/s": Fraction(1), "km/h": Fraction(1000, 3600)}


def parse_length(value: object, field: str = "length") -> Fraction:
    """Exact metres, more than 0: "340m", "1km", "0.34km"; a bare number is metres."""
    return _parse(value, _LENGTHS, field, "a length such as 340m or 1km")


def parse_duration(value: object, field: str = "duration") -> int:
    """Whole seconds, more than 0: "30s", "5min", "1h", "1d"; a bare number is seconds."""
    seconds = _parse(value, _DURATIONS, field, "a duration such as 30s, 5min or 1h")
    if seconds.denominator != 1:
        raise InvalidInput(field, value, "whole seconds")
    return int(seconds)


def parse_speed(value: object, field: str = "speed") -> Fraction:
    """Exact metres per second, more than 0: "150km/h", "40m/s"; a bare number is metres per second."""
    return _parse(value, _SPEEDS, field, "a speed such as 150km/h or 40m/s")


def _parse(value: object, units: dict[str, Fraction], field: str, expected: str) -> Fraction:
    if isinstance(value, str):
        match = _WRITTEN.fullmatch(value.strip()) if len(value) <= LONGEST_NUMBER else None
        if match is None or match[2] not in units:
            raise InvalidInput(field, value, expected)
        amount = Fraction(match[1]) * units[match[2]]
    elif isinstance(value, (int, float, Fraction, np.number)) and not isinstance(value, bool):
        amount = exact_number(value, field)
    else:
        raise InvalidInput(field, type(value).__name__, expected)
    if amount <= 0:
        raise InvalidInput(field, value, "more than 0")
    return amount
