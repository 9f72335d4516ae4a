"""Floats that are not below what they stand for.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np


def float_above(value: Fraction | float) -> float:
    """The smallest float that is not below an exact number."""
    nearest = float(value)
    return nearest if nearest == math.inf or Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def sum_above(a: Any, b: Any) -> Any:
    """The smallest floats that are not below a + b."""
    total = np.asarray(a + b)
    with np.errstate(invalid="ignore"):
        part = total - a
        lost = (a - (total - part)) + (b - part)
    return np.where(lost > 0, np.nextafter(total, np.inf), total)
