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
def least_of_fewest(
    masses: FloatArray, within: BoolArray, large: float, enough: float, drift: float
) -> tuple[float, int]:
    """As `holding`, of the masses (N,) of the states ``within``; those below ``large`` are not among them."""
    candidates = np.empty(masses.size)
    size = 0
    for state in range(masses.size):
        if within[state] and masses[state] >= large:
            candidates[size] = masses[state]
            size += 1
    return holding(candidates[:size], enough, drift)


#: Halving as good pivots do, a million masses need some twenty.
MOST_PIVOTS = 48


@kernel
def holding(masses: FloatArray, enough: float, drift: float) -> tuple[float, int]:
    """The least of the fewest masses (n,) that hold ``enough`` together, and how many they are. Reorders the masses.

    (0.0, 0) where a sum that decides comes as near to it as ``drift``, all of them do not hold it, or pivots were bad:
    they are then to be sorted.
    """
    first, last = 0, masses.size
    held = 0.0
    for _ in range(MOST_PIVOTS):
        if first >= last:
            break
        quarter = (last - first) // 4
        pivot = middle_of(masses[first + quarter], masses[(first + last) // 2], masses[last - 1 - quarter])
        larger, smaller, more = split(masses, first, last, pivot)
        if held + more >= enough + drift:
            last = larger
            continue
        held += more
        count = larger
        while held < enough - drift and count < smaller:
            held += pivot
            count += 1
        if held >= enough - drift:
            return (pivot, count) if count > larger and held >= enough + drift else (0.0, 0)
        first = smaller
    return 0.0, 0


@kernel
def middle_of(a: float, b: float, c: float) -> float:
    """The middle one of three numbers."""
    return max(min(a, b), min(max(a, b), c))


@kernel
def split(masses: FloatArray, first: int, last: int, pivot: float) -> tuple[int, int, float]:
    """Reorder masses[first:last] into those larger than the pivot, equal ones, smaller ones.

    Returns where the equal and where the smaller ones begin, and the sum of the larger ones.
    """
    larger, at, smaller = first, first, last
    more = 0.0
    while at < smaller:
        mass = masses[at]
        if mass > pivot:
            masses[at], masses[larger] = masses[larger], mass
            more += mass
            larger += 1
            at += 1
        elif mass < pivot:
            smaller -= 1
            masses[at], masses[smaller] = masses[smaller], mass
        else:
            at += 1
    return larger, smaller, more


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
        if missing <= 0:
            break
        if within[state] and not out[state] and masses[state] >= equal:
            out[state] = True
            missing -= 1
    return out
