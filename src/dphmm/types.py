"""Names shared by every layer: array aliases and the small protocols that let low layers take high things."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
WordArray: TypeAlias = NDArray[np.uint64]

#: A number given for an exact quantity: a float means the decimal it prints as.
Exact: TypeAlias = int | float | str | Fraction
#: A loss that may be unbounded: a Fraction, or ``math.inf``.
Loss: TypeAlias = Fraction | float

#: Which states: a boolean mask (N,), state numbers, or None for all of them.
States: TypeAlias = NDArray[Any] | Sequence[int] | None


@runtime_checkable
class Bits(Protocol):
    """A source of random words. System bits release; replayable bits test and simulate."""

    #: False for bits that anyone could replay: releases made with them are marked.
    secure: bool

    def uint64(self, n: int) -> WordArray:
        """The next ``n`` uniform 64-bit words."""
        ...
