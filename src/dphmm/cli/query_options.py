"""What the options of a query say: numbers, lists, boxes, starting centroids. All of it is public."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphmm.errors import InvalidInput

_FARTHEST = 10**15


def number(text: str, option: str) -> float:
    """A finite number of an option."""
    from dphmm._checks import exact_number

    exact = exact_number(text.strip(), option)
    if abs(exact) > _FARTHEST:
        raise InvalidInput(option, text, "a number within 1e15 of 0")
    return float(exact)


def names(text: str, option: str, what: str) -> list[str]:
    """A list a,b,c without repetitions."""
    found = [name.strip() for name in text.split(",")]
    if "" in found or len(set(found)) < len(found):
        raise InvalidInput(option, text, what)
    return found


def box(text: str, columns: Sequence[str], option: str = "--box") -> tuple[list[float], list[float]]:
    """LOW:HIGH for each column, as two lists."""
    what = f"LOW:HIGH for each of {len(columns)} columns, as 0:1,-5:5"
    parts = [part.split(":") for part in text.split(",")]
    if len(parts) != len(columns) or any(len(part) != 2 for part in parts):
        raise InvalidInput(option, text, what)
    low, high = ([number(part[side], option) for part in parts] for side in (0, 1))
    if not all(a < b for a, b in zip(low, high, strict=True)):
        raise InvalidInput(option, text, f"{what}, LOW < HIGH")
    return low, high


def centroids(text: str, columns: Sequence[str]) -> list[list[float]]:
    """The public start of k-means: x,y;x,y or a table with these columns."""
    if Path(text).suffix.lower() in (".csv", ".parquet", ".gz"):
        return _centroids_of(text, columns)
    rows = [row.split(",") for row in text.split(";")]
    if any(len(row) != len(columns) for row in rows):
        expected = f"a table of centroids, or {len(columns)} numbers for each: 0,0;1,1"
        raise InvalidInput("--start", text, expected)
    return [[number(cell, "--start") for cell in row] for row in rows]


def _centroids_of(path: str, columns: Sequence[str]) -> list[list[float]]:
    from dphmm.cli.query_tables import numbers

    found: list[list[float]] = numbers(path, columns, "--start").tolist()
    return found


def windows(text: str | None, times: int) -> list[tuple[int, int]]:
    """Time windows [first, end): all times, a length, or FIRST:END,FIRST:END."""
    if text is None:
        return [(0, times)]
    what = f"a number of steps, or windows FIRST:END,FIRST:END within 0:{times}"
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        length = int(text)
        if not 1 <= length <= times:
            raise InvalidInput("--windows", text, what)
        return [(first, min(first + length, times)) for first in range(0, times, length)]
    found = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,9}):([0-9]{1,9})\s*", part)
        if ends is None or not int(ends[1]) < int(ends[2]) <= times:
            raise InvalidInput("--windows", part, what)
        found.append((int(ends[1]), int(ends[2])))
    return found


def counting(value: int | None, option: str, what: str, least: int = 1, most: int = 10**9) -> int:
    """A whole number that must be given."""
    if value is None or not least <= value <= most:
        raise InvalidInput(option, "nothing" if value is None else value, what)
    return value


def epsilon(text: str) -> Any:
    """The promise, checked before any data is read."""
    from dphmm._checks import exact_epsilon

    return exact_epsilon(text, "--epsilon")
