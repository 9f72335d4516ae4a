"""JSON: lines of objects that ``dphmm release -`` takes and prints, and documents of others as they are written.

In others' documents a number is the text that stands there, and a byte that is not UTF-8 is a character that no name,
number or time has: nothing in one place decides what is read of another.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from dphmm.errors import InvalidInput
from dphmm.states.space import whole_name
from dphmm.storage.inputs import MOST_MEMBER, PathLike, legible

T = TypeVar("T", dict[str, Any], list[Any])
SUFFIXES = (".jsonl", ".ndjson")
#: Most bytes of a line, as of a row of text.
MOST_LINE = 1 << 23


def is_json_lines(path: PathLike) -> bool:
    """True if a file's name has a suffix of JSON lines."""
    return Path(path).name.lower().endswith(SUFFIXES)


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, also for a member twice, NaN or an infinity; RecursionError."""
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member twice")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def lines(name: str, stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a text that are not blank. Raises InvalidInput for one of more than `MOST_LINE` bytes."""
    while line := stream.readline(MOST_LINE + 1):
        if len(line) > MOST_LINE:
            raise InvalidInput("source", f"{name}, with a line of more than {MOST_LINE} bytes", "shorter lines")
        if line.strip():
            yield line


class Number(str):
    """A number of JSON as it is written: no digit of a name or a time is rounded."""

    __slots__ = ()


# Characters that no text may have are kept, so that a name with one is that of its own row.
_WRITTEN = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number, strict=False)


def written_json(data: bytes) -> Any:
    """A document with its numbers as they are written. Raises ValueError, also for one that is nested too deeply."""
    try:
        return _WRITTEN.decode(legible(data).decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def written_object(line: bytes) -> dict[str, Any] | None:
    """The object of a line with its numbers as they are written; None where it is none."""
    try:
        value = written_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def json_document(name: str, stream: IO[bytes], needed: str) -> Any:
    """The same of a file. Raises InvalidInput for one that is none, or of more than `MOST_MEMBER` bytes."""
    data = stream.read(MOST_MEMBER + 1)
    if len(data) > MOST_MEMBER:
        raise InvalidInput("source", f"{name} of more than {MOST_MEMBER} bytes", f"at most {MOST_MEMBER}")
    try:
        return written_json(data)
    except ValueError:
        raise InvalidInput("source", f"{name}, which cannot be read", needed) from None


def part(value: Any, name: str, kind: type[T]) -> T:
    """The object (dict) or the list that a member of an object is; an empty one where it is none."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, kind) else kind()


def cell(value: Any) -> str | None:
    """A value as text; none of a list or an object, and the sign of bytes that are no text of half a character."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return None
    if isinstance(value, Number):
        return whole_name(str(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        return "\x1a"
    return value
