"""Sets, numbers and graphs as short JSON: what a page carries of every step, written once however often it is used."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.types import BoolArray, IntArray

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Shelf:
    """Things numbered in the order in which they were first put there; equal keys are one thing."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.things: list[Any] = []

    def put(self, key: Hashable, thing: Any) -> int:
        """The number of a thing."""
        if key not in self._numbers:
            self._numbers[key] = len(self.things)
            self.things.append(thing)
        return self._numbers[key]


def runs(mask: BoolArray) -> str:
    """Lengths in base 36 of the runs of a mask, outside and inside by turns, beginning outside."""
    changes = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    lengths = np.diff(changes, prepend=0)
    return " ".join(_base36(length) for length in lengths.tolist())


def repeated(numbers: IntArray) -> list[list[int]]:
    """(number, how often) of every run of equal numbers."""
    if not len(numbers):
        return []
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    return np.stack([numbers[starts], np.diff(starts, append=len(numbers))], axis=1).tolist()  # type: ignore[no-any-return]


def adjacency(edges: IntArray, n: int) -> dict[str, Any]:
    """Edges i < j by how far j is from i: on a grid most states have one and the same row of gaps."""
    patterns, rows = Shelf(), np.zeros(n, dtype=np.int64)
    patterns.put((), [])
    parts = np.split(edges[:, 1] - edges[:, 0], np.searchsorted(edges[:, 0], np.arange(1, n)))
    for state, gaps in enumerate(parts):
        rows[state] = patterns.put(tuple(gaps.tolist()), gaps.tolist())
    return {"patterns": patterns.things, "rows": repeated(rows)}


def scaled(values: NDArray[Any], scale: float) -> list[int | None]:
    """Numbers as integers of ``1 / scale``; None for NaN."""
    whole = np.rint(values * scale)
    return [None if np.isnan(value) else int(value) for value in whole.tolist()]


def script_json(document: Any) -> str:
    """JSON that can stand inside a script element, whatever its texts say."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _base36(number: int) -> str:
    digits = _DIGITS[number % 36]
    while number := number // 36:
        digits = _DIGITS[number % 36] + digits
    return digits
