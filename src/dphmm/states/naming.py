"""Names of states and users: what may stand at the edges."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dphmm.errors import InvalidInput

#: Longest name, in characters.
LONGEST_NAME = 200
# Control characters, line and paragraph separators, and the marks that reorder text on a screen.
FORBIDDEN = "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
_FORBIDDEN = re.compile(FORBIDDEN)


def check_names(names: Sequence[str], n: int) -> tuple[str, ...]:
    """Names as a tuple: ``n`` distinct printable strings of 1 to 200 characters, or InvalidInput."""
    if isinstance(names, str):
        raise InvalidInput("names", "one string", f"a list of {n} strings")
    given = tuple(names)
    if len(given) != n:
        raise InvalidInput("names", f"{len(given)} names", f"{n}, one per state")
    first: dict[str, int] = {}
    for state, name in enumerate(given):
        _check_name(name, state)
        if first.setdefault(str(name), state) != state:
            raise InvalidInput(f"names[{state}]", name, f"a name other than that of state {first[name]}")
    return tuple(map(str, given))


def _check_name(name: object, state: int) -> None:
    field = f"names[{state}]"
    if not isinstance(name, str):
        raise InvalidInput(field, type(name).__name__, "a string")
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput(field, f"{len(name)} characters", f"1 to {LONGEST_NAME}")
    if _FORBIDDEN.search(name):
        raise InvalidInput(field, ascii(name), "no control characters or text-direction marks")
