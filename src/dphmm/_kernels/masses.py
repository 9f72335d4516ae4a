"""Loops over the masses of a prior: their sum, the large ones among them, the heaviest states.

Proof: docs/proofs/delta-sets.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray


@kernel
def total_mass(masses: FloatArray, within: BoolArray) -> tuple[float, int]:
    """The sum of the masses (N,) of the states ``within``, NaN where one is negative, and how many states they are."""
    total = 0.0
    count = 0
    for state in range(masses.size):
        if within[state]:
            total += masses[state] if masses[state] >= 0.0 else np.nan
            count += 1
    return total, count


@kernel
def masses_from(masses: FloatArray, within: BoolArray, least: float) -> FloatArray:
    """The masses of at least ``least`` of the states ``within``, in the order of the states."""
    out = np.empty(masses.size)
    size = 0
    for state in range(masses.size):
        if within[state] and masses[state] >= least:
            out[size] = masses[state]
            size += 1
    return out[:size].copy()


@kernel
def heaviest(masses: FloatArray, within: BoolArray, least: float, count: int, tolerance: float) -> BoolArray:
    """So many of the states ``within`` (N,): those above ``least``, then those equal to it, by lowest number.

    Masses within the relative tolerance are equal.
    """
    out = np.zeros(masses.size, np.bool_)
    above, equal = least * (1 + tolerance), least * (1 - tolerance)
    missing = count
    for state in range(masses.size):
        if within[state] and masses[state] > above:
            out[state] = True
            missing -= 1
    for state in range(masses.size):
        if missing > 0 and within[state] and not out[state] and masses[state] >= equal:
            out[state] = True
            missing -= 1
    return out
