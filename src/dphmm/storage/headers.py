"""Names of columns in messages: they are public, unless the first row is no header but somebody's data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dphmm.states.naming import LONGEST_NAME

# A cell of a row rather than a name: nothing, a number; or in it a decimal fraction, a date, a time, many digits.
_NUMBER = re.compile(r"\s*([+-]?[0-9]+([eE][+-]?[0-9]+)?)?\s*")
_MEASURED = re.compile(r"[0-9]\.[0-9]{2}|[0-9]:[0-9]{2}|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]|[0-9]{6}")
_LONGEST = 400


def looks_like_data(names: Sequence[str]) -> bool:
    """Whether a first row is a row like any other, or holds several: then nothing of it may be told."""
    return any(
        _NUMBER.fullmatch(name) or _MEASURED.search(name) or len(name) > LONGEST_NAME or not name.isprintable()
        for name in names
    )


def listed(names: Sequence[str]) -> str:
    """The names there are, for a message; only how many, where they look like somebody's row."""
    if looks_like_data(names):
        return f"{len(names)} columns (the first row looks like data: is there a header?)"
    text = ", ".join(names)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(names)} columns)"


def repeated_name(names: Sequence[str]) -> str | None:
    """What to say of a name that stands twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return "two columns of one name" if looks_like_data(names) else f"two columns {name!r}"
        seen.add(name)
    return None
