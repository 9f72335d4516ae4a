"""Integer noise for counts: discrete Laplace and discrete Gaussian, with exactly the stated probabilities.

Both read words from `Bits` and decide on them as the lattice mechanisms do: in integers, with as many digits of a
uniform real number as a decision needs. What is added to a count is an integer, so the sum has no low-order bits to
tell which count it came from.

Proof: docs/proofs/discrete-noise.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.samplers.body import LatticeBody, LatticeSampler
from dphmm.samplers.uniform import LazyUniform, WordReader
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray, WordArray

#: Largest scale of the noise in steps: kept noise (2**62) is then further out than 2**12 times the scale.
LARGEST_SCALE = 2**50
#: Smallest: below, the noise is 0 but for one draw in e**1024.
SMALLEST_SCALE = Fraction(1, 2**10)
_ULP = 2.0**-53
#: Room for the rounding of an exponent and of exp, of which a few hundred times 2**-53 is needed.
_MARGIN = 2.0**-40


class DiscreteLaplace:
    """Integers z with P(z) = (1 - q)/(1 + q)·q**|z|, q = exp(-1/scale), for a rational scale. Immutable."""

    def __init__(self, scale: Exact) -> None:
        self.scale = _between(exact_number(scale, "scale"), "scale", SMALLEST_SCALE, Fraction(LARGEST_SCALE))
        # |z| / scale = epsilon·N(z) on the interval ±width, with an epsilon the lattice sampler is proved for.
        width = math.ceil(self.scale)
        interval = LatticeBody(((1,),), (width,), (Fraction(width),), ((1,),))
        self._sampler = LatticeSampler.knorm(interval, width / self.scale)

    @property
    def deviation(self) -> float:
        """The standard deviation, sqrt(2q)/(1 - q)."""
        rate = float(1 / self.scale)
        return math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent integers (m,), within ±2**62; add them with ``add_noise``."""
        return self._sampler.draw(m, bits)[:, 0]


class DiscreteGaussian:
    """Integers z with P(z) ∝ exp(-z²/(2·variance)), for a rational variance. Immutable.

    By refusal from a discrete Laplace of scale t = floor(sigma) + 1: z is kept with probability
    exp(-(|z| - variance/t)²/(2·variance)) (Canonne, Kamath and Steinke 2020, Algorithm 3).
    """

    def __init__(self, variance: Exact) -> None:
        least, most = SMALLEST_SCALE**2, Fraction(LARGEST_SCALE) ** 2 / 4
        self.variance = _between(exact_number(variance, "variance"), "variance", least, most)
        self._t = math.isqrt(math.floor(self.variance)) + 1
        self._proposals = DiscreteLaplace(Fraction(self._t))

    @property
    def deviation(self) -> float:
        """The square root of ``variance``; the true standard deviation is never larger."""
        return math.sqrt(self.variance)

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent integers (m,), within ±2**62; add them with ``add_noise``."""
        parts = [np.empty(0, dtype=np.int64)]
        missing = m
        while missing:
            proposed = self._proposals.draw(missing, bits)
            parts.append(proposed[self._kept(proposed, bits)])
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _kept(self, proposed: IntArray, bits: Bits) -> BoolArray:
        """Which proposals are kept: one word each, and more from after them where one leaves it open."""
        words = bits.uint64(len(proposed))
        kept, open_ = self._certain(words, proposed)
        reader = WordReader(bits)
        for i in np.flatnonzero(open_).tolist():
            kept[i] = LazyUniform(int(words[i]), reader).below_exp(self.exponent(int(proposed[i])))
        return kept

    def exponent(self, z: int) -> Fraction:
        """x of the acceptance exp(-x) of a proposal."""
        distance = abs(z) - self.variance / self._t
        return distance * distance / (2 * self.variance)

    def _certain(self, words: WordArray, proposed: IntArray) -> tuple[BoolArray, BoolArray]:
        """(surely kept, left open) by floats."""
        low = (words >> np.uint64(11)).astype(np.float64) * _ULP
        size = np.abs(proposed).astype(np.float64)
        chance = np.exp(-self._exponents(size))
        kept = low + _ULP <= chance - _MARGIN
        return kept, ~kept & (low < chance + _MARGIN)

    def _exponents(self, size: FloatArray) -> FloatArray:
        distance = (size - float(self.variance / self._t)) / self.deviation
        return np.asarray(0.5 * distance * distance)


def _between(value: Fraction, field: str, least: Fraction, most: Fraction) -> Fraction:
    if not least <= value <= most:
        raise InvalidInput(field, value, f"a number from {float(least):g} to {float(most):g}")
    return value
