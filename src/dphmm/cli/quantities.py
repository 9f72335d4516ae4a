"""Lengths, durations and speeds of the command line: a number must come with its unit."""

from __future__ import annotations

import re
from fractions import Fraction

from dphmm.errors import InvalidInput

_BARE = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?")


def length(text: str, option: str) -> Fraction:
    """Metres; InvalidInput for a number without m or km."""
    from dphmm.states.units import parse_length

    _check_unit(text, option, "m or km", "340m or 1km")
    return parse_length(text, option)


def duration(text: str, option: str) -> int:
    """Seconds; InvalidInput for a number without s, min, h or d."""
    from dphmm.states.units import parse_duration

    _check_unit(text, option, "s, min, h or d", "30s or 5min")
    return parse_duration(text, option)


def speed(text: str, option: str) -> Fraction:
    """Metres per second; InvalidInput for a number without m/s or km/h."""
    from dphmm.states.units import parse_speed

    _check_unit(text, option, "m/s or km/h", "40m/s or 150km/h")
    return parse_speed(text, option)


def _check_unit(text: str, option: str, units: str, examples: str) -> None:
    if _BARE.fullmatch(text.strip()):
        raise InvalidInput(option, text, f"a unit after the number, {units}: {examples}")
