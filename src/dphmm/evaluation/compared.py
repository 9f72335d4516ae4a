"""What a measure compares: points and states of the truth and of a release, checked and never echoed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray


def points(values: ArrayLike, field: str, like: FloatArray | None = None) -> FloatArray:
    """Finite points (n, d), shaped ``like`` others. Raises InvalidInput; values are never echoed."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuf" or given.ndim != 2:
        raise InvalidInput(field, f"{given.dtype} of shape {given.shape}", "numbers of shape (n, d)")
    if like is not None and given.shape != like.shape:
        raise InvalidInput(field, f"shape {given.shape}", f"{like.shape}, as the truth")
    found = given.astype(np.float64)
    if not np.isfinite(found).all():
        raise InvalidInput(field, "NaN or an infinity", "finite numbers")
    return found


def states(values: ArrayLike, field: str, n_states: int, like: IntArray | None = None) -> IntArray:
    """State numbers (n,) from 0 to ``n_states`` - 1. Raises InvalidInput; values are never echoed."""
    if isinstance(n_states, bool) or not isinstance(n_states, (int, np.integer)) or n_states < 1:
        raise InvalidInput("n_states", type(n_states).__name__, "the number of states, 1 or more")
    given = np.asarray(values)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise InvalidInput(field, f"{given.dtype} of shape {given.shape}", "state numbers of shape (n,)")
    if like is not None and given.shape != like.shape:
        raise InvalidInput(field, f"shape {given.shape}", f"{like.shape}, as the truth")
    found = given.astype(np.int64)
    if len(found) and not 0 <= found.min() <= found.max() < n_states:
        raise InvalidInput(field, "a number that is no state", f"state numbers from 0 to {n_states - 1}")
    return found
