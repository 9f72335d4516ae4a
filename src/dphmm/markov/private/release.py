"""From exact counts to public probabilities: integer noise as the event describes it, then post-processing.

Counts are published by `release` alone. Its noise is made from the very ``NoisyCounts`` that is accounted for, so the
two cannot disagree. Probabilities are made of noisy counts and public numbers alone, which costs nothing. Rows are runs
of a flat array: row i is ``values[indptr[i]:indptr[i + 1]]``, as in a compressed sparse matrix.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.event import NoisyCounts
from dphmm.errors import InvalidInput
from dphmm.samplers.body import LARGEST_SCALE, DiscreteGaussian, LaplaceSampler, add_noise
from dphmm.types import Bits, FloatArray, IntArray

#: Expected counts are rounded down to multiples of 2**-20, or of more where the noise is very wide.
FINEST_GRID = 20
#: Sums are kept in this range, as `add_noise` asks; keeping moves no two of them further apart.
_LARGEST_SUM = 2**53


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Counts with noise: public. ``deviation`` is the standard deviation of one cell's noise, a public number."""

    values: FloatArray
    deviation: float


def noise_for(name: str, noise: str, sensitivity: Fraction, budget: Fraction) -> NoisyCounts:
    """The part that spends ``budget``: an epsilon for Laplace noise, a rho for Gaussian.

    Raises InvalidInput, from public numbers alone, where the noise would be too wide for 64-bit integers.
    """
    scale = sensitivity / budget if noise == "laplace" else sensitivity / (2 * budget)
    part = NoisyCounts(name, noise, sensitivity, scale)
    grid_bits(part)
    return part


def grid_bits(part: NoisyCounts) -> int:
    """k of the public grid 2**-k for counts that are not whole: as fine as the width of the noise allows."""
    width = math.ceil(part.scale) if part.noise == "laplace" else 2 * (math.isqrt(math.ceil(part.scale)) + 1)
    bits = min(FINEST_GRID, LARGEST_SCALE.bit_length() - 1 - width.bit_length())
    if bits < 0:
        raise InvalidInput(
            "epsilon", f"noise of more than 2**{LARGEST_SCALE.bit_length() - 1}", "a larger epsilon or smaller caps"
        )
    return bits


def release(counts: IntArray, part: NoisyCounts, grid: int, bits: Bits) -> NoisyTable:
    """``counts`` (cells,), in units of 2**-grid, with the noise of ``part``; as counts again."""
    law: LaplaceSampler | DiscreteGaussian
    if part.noise == "laplace":
        law = LaplaceSampler(part.scale * 2**grid)
    else:
        law = DiscreteGaussian(part.scale * 4**grid)
    clipped = np.clip(counts, 0, _LARGEST_SUM)
    noisy = add_noise(clipped, law.draw(len(clipped), bits))
    return NoisyTable(noisy.astype(np.float64) * 2.0**-grid, law.deviation * 2.0**-grid)


PROJECTIONS = ("simplex", "clamp")


def row_totals(values: FloatArray, indptr: NDArray[np.integer]) -> FloatArray:
    """The sum of every row."""
    rows = _rows(indptr)
    return np.asarray(np.bincount(rows, weights=values, minlength=len(indptr) - 1), dtype=np.float64)


def nearest_counts(values: FloatArray, indptr: NDArray[np.integer], projection: str = "simplex") -> FloatArray:
    """Counts of at least 0 from noisy ones.

    "simplex": of all rows of non-negative numbers with the noisy total the nearest one (all zeros where the total is
    not positive). "clamp": negative numbers become 0.
    """
    if projection == "clamp":
        return np.maximum(values, 0.0)
    rows, totals = _rows(indptr), row_totals(values, indptr)
    sizes = np.diff(indptr)
    # Nearest point of a simplex: subtract one number from all and clamp, such that the largest k remain.
    order = np.lexsort((-values, rows))
    ranked = values[order]
    sums = np.cumsum(ranked)
    before = np.concatenate([[0.0], sums])[indptr[:-1]]
    rank = np.arange(len(values)) - np.repeat(indptr[:-1], sizes) + 1
    level = (sums - np.repeat(before + totals, sizes)) / rank
    remaining = np.bincount(rows, weights=ranked > level, minlength=len(totals)).astype(np.int64)
    last = np.asarray(indptr[:-1]) + np.maximum(remaining, 1) - 1
    taken = np.zeros(len(totals))
    nonempty = sizes > 0
    taken[nonempty] = level[last[nonempty]]
    projected = np.maximum(values - np.repeat(taken, sizes), 0.0)
    return np.where(np.repeat(totals > 0.0, sizes), projected, 0.0)


def probabilities(
    counts: FloatArray,
    indptr: NDArray[np.integer],
    fallback: FloatArray,
    *,
    prior: float = 0.0,
    least: float = 0.0,
    floor: float = 0.0,
) -> FloatArray:
    """Rows that sum to 1, from rows of non-negative counts.

    fallback : rows of probabilities, public or already published; ``prior`` is how many counts they weigh, and where
        a row of counts has at most ``least`` they stand alone.
    floor : the share that is spread evenly at the end, so that nothing in a row becomes impossible.
    """
    sizes = np.diff(indptr)
    totals = row_totals(counts, indptr)
    heavy = (totals > least) & (totals > 0.0)
    weight = np.repeat(np.where(heavy, totals + prior, 1.0), sizes)
    mixed = np.where(np.repeat(heavy, sizes), (counts + prior * fallback) / weight, fallback)
    return (1.0 - floor) * mixed + floor / np.repeat(np.maximum(sizes, 1), sizes)


def _rows(indptr: NDArray[np.integer]) -> IntArray:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
