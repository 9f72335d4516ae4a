"""Lines of JSON objects: what ``dphmm release -`` takes and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dphmm.storage.inputs import PathLike

SUFFIXES = (".jsonl", ".ndjson")


def is_json_lines(path: PathLike) -> bool:
    """Whether a file's name says that it has lines of JSON."""
    return Path(path).name.lower().endswith(SUFFIXES)


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
