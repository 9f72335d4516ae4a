"""Lines of JSON objects: what ``dphmm release -`` prints, read with line numbers, and journals of long runs.

A `Journal` writes one object a line, each on the disk before the next is begun. What a crash leaves is whole lines and
at most one torn one, which is cut off when the journal is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import PathLike, checked_input, checked_output, steady

SUFFIXES = (".jsonl", ".ndjson")
#: Bytes of one line: no answer is near that long.
_LONGEST = 1 << 16


class JsonLine(NamedTuple):
    """One line: its number from 1, its text with the end of the line, and its members."""

    number: int
    text: str
    members: dict[str, Any]


def is_json_lines(path: PathLike) -> bool:
    """Whether a file's name says that it has lines of JSON."""
    return Path(path).name.lower().endswith(SUFFIXES)


def read_json_lines(path: PathLike, field: str = "path") -> Iterator[JsonLine]:
    """The objects of a file, line by line.

    Raises InvalidInput, with the number of the line and nothing else of it, for one that is no JSON object: cut short,
    empty, too long, of another encoding, with a member twice, with NaN or an infinity.
    """
    file = checked_input(path, field)
    with steady(file), file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LONGEST + 1):
            number += 1
            yield _parsed(number, line)


def _parsed(number: int, line: bytes) -> JsonLine:
    try:
        if len(line) > _LONGEST:
            raise ValueError
        text = line.decode("utf-8")
        members = strict_json(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise InvalidInput(f"line {number}", "text that is no JSON object", "lines as dphmm release - prints them")
    return JsonLine(number, text, members)


def strict_json(text: str | bytes) -> Any:
    """What a text of JSON says. Raises ValueError, also for a member twice, NaN or an infinity; RecursionError."""
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


class Journal:
    """Lines of a file, read at once and appended one by one."""

    def __init__(self, path: PathLike) -> None:
        self.path = checked_output(path)
        self.path.touch()
        self.lines = list(self._read())

    def append(self, line: dict[str, Any]) -> None:
        """Add a line; it survives whatever happens after this returns."""
        written = json.dumps(line, allow_nan=False) + "\n"
        with self.path.open("ab") as file:
            file.write(written.encode())
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(json.loads(written))

    def _read(self) -> Iterator[dict[str, Any]]:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise InvalidInput(
                    str(self.path), f"line {number}, which is no JSON object", "a journal as it was written"
                )
            yield found
