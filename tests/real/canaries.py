"""Whether the numbers of private places occur in bytes, as text or as eight-byte floats."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

# A coordinate of a person has at least this many decimals; fewer could be anything.
_DECIMALS = 5
_DECIMAL = re.compile(rb"\d+\.\d{%d,}" % _DECIMALS)


def unmistakable(values: ArrayLike) -> np.ndarray:
    """The values with enough digits to be told from any other number."""
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    told = [len(repr(float(value)).partition(".")[2]) >= _DECIMALS for value in distinct]
    return distinct[np.array(told, dtype=bool)]


def found_in(data: bytes, private: np.ndarray) -> set[float]:
    """The private values that occur in some bytes."""
    texts = {repr(abs(float(value))): float(value) for value in private}
    found = {texts[text.decode()] for text in _DECIMAL.findall(data) if text.decode() in texts}
    for shift in range(8):
        whole = (len(data) - shift) // 8 * 8
        for order in ("<f8", ">f8"):
            numbers = np.frombuffer(data, dtype=order, offset=shift, count=whole // 8) if whole > 0 else np.array([])
            found |= set(numbers[np.isin(numbers, private)].tolist())
    return found
