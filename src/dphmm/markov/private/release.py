"""The one door from counts to what may be published: integers, plus the integer noise that the event describes.

The noise is made from the very ``NoisyCounts`` that is accounted for, so the two cannot disagree.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.accounting.event import NoisyCounts
from dphmm.errors import InvalidInput
from dphmm.samplers.body import add_noise
from dphmm.samplers.discrete import LARGEST_SCALE, DiscreteGaussian, DiscreteLaplace
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
    law: DiscreteLaplace | DiscreteGaussian
    if part.noise == "laplace":
        law = DiscreteLaplace(part.scale * 2**grid)
    else:
        law = DiscreteGaussian(part.scale * 4**grid)
    kept = np.clip(counts, 0, _LARGEST_SUM)
    noisy = add_noise(kept, law.draw(len(kept), bits))
    return NoisyTable(noisy.astype(np.float64) * 2.0**-grid, law.deviation * 2.0**-grid)
