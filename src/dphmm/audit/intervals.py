"""Confidence bounds on a probability, and on ε from two of them, without any assumption but independent draws.

Proof: docs/proofs/black-box-audit.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dphmm.types import FloatArray

#: Inverses of the beta function are trusted to this, and bounds moved outwards by it.
_RELATIVE = 1e-9
#: More draws than these nobody has.
MOST_SAMPLES = 2**50


def lowest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies below this with probability at most alpha, over the draws."""
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = np.where(k > 0, betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.asarray(bound * (1 - _RELATIVE))


def highest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies above this with probability at most alpha, over the draws."""
    from scipy.special import betainccinv

    k = np.asarray(successes, dtype=np.float64)
    inner = np.minimum(k, n - 1)
    bound = np.where(k < n, betainccinv(inner + 1, n - inner, alpha), 1.0)
    return np.asarray(np.minimum(1.0, bound * (1 + _RELATIVE)))


def epsilon_below(k1: ArrayLike, n1: int, k0: ArrayLike, n0: int, alpha: float) -> FloatArray:
    """A lower bound on log Pr(E | first) / Pr(E | second), wrong with probability at most alpha.

    ``k1`` of ``n1`` draws of the first were in the event, ``k0`` of ``n0`` of the second. -inf where nothing is known.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(lowest(k1, n1, alpha / 2)) - np.log(highest(k0, n0, alpha / 2)))


def fewest_that_could_convict(epsilon: float, alpha: float) -> int:
    """Below so many draws a side the bound stays at most epsilon whatever comes out.

    The best outcome, all n of the one and none of the other, gives a^(1/n) / (1 - a^(1/n)) with a = alpha / 2. For an
    epsilon of 700 at most: e^epsilon is a float.
    """
    # log(1 + e^-x), small for a large epsilon.
    return math.floor(math.log(2 / alpha) / math.log1p(math.exp(-epsilon))) + 1


def samples_needed(epsilon: float, loss: float, probability: float, alpha: float, power: float = 0.99) -> int | None:
    """Draws a side at which an event of this probability, lost by ``loss`` > epsilon, convicts with this power.

    None where that takes more than MOST_SAMPLES.
    """
    # At least log(2/alpha)·e^epsilon draws, of which an exponential may be beyond all floats.
    if math.log(math.log(2 / alpha)) + epsilon > math.log(MOST_SAMPLES):
        return None
    low = fewest_that_could_convict(epsilon, alpha)
    high = low
    while not _convicts(high, epsilon, loss, probability, alpha, power):
        low, high = high, 2 * high
        if high > MOST_SAMPLES:
            return None
    while low < high - 1:
        middle = (low + high) // 2
        if _convicts(middle, epsilon, loss, probability, alpha, power):
            high = middle
        else:
            low = middle
    return high


def _convicts(n: int, epsilon: float, loss: float, probability: float, alpha: float, power: float) -> bool:
    """Whether even the unlucky counts, each exceeded with probability (1 - power)/2, pass the bound."""
    from scipy.stats import binom

    miss = (1 - power) / 2
    k1 = binom.ppf(miss, n, probability)
    k0 = binom.isf(miss, n, probability * math.exp(-loss))
    return bool(epsilon_below(k1, n, k0, n, alpha) > epsilon)
