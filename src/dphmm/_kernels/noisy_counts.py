"""Noisy counts: their likelihood and the expected true rates, under a rank-one prior and the exact law of the noise.

The mean mu of a cell is a product: a base, a level, a factor of its row and one of its column. The true
rate is exponential with that mean, or with one of several multiples of it, and the count Poisson, so that the count is
geometric with ratio r = mu / (1 + mu). The noise is discrete Laplace, proportional to exp(-decay |z|). Given the noisy
count, the sums over the true count are geometric series: likelihood and expected count have closed forms.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray

#: Logs of means are kept in this range, where no term overflows.
LOWEST, HIGHEST = -30.0, 60.0
#: Below this exponent a geometric series is taken from its expansion.
_FLAT = 1e-4


@kernel
def count_given(value: float, log_mean: float, decay: float) -> tuple[float, float]:
    """(log-likelihood of a noisy count but for the noise's constant, expected true count)."""
    log_ratio = -math.log1p(math.exp(-log_mean))
    log_none = log_ratio - log_mean
    # From the noisy count upwards every term is exp(log_ratio - decay) of the one before.
    missing = -math.expm1(log_ratio - decay)
    log_rest, rest = -math.log(missing), (1.0 - missing) / missing
    if value < 0.0:
        return log_none + value * decay + log_rest, rest
    terms, tilt = value + 1.0, log_ratio + decay
    steep = abs(tilt)
    if steep * terms < _FLAT:
        log_below = value * log_ratio + math.log(terms) - 0.5 * tilt * value
        below = 0.5 * value + tilt * value * (value + 2.0) / 12.0
    else:
        single, many = -math.expm1(-steep), -math.expm1(-steep * terms)
        away = (1.0 - single) / single - terms * (1.0 - many) / many
        below = value - away if tilt > 0.0 else away
        log_below = (value * log_ratio if tilt > 0.0 else -value * decay) + math.log(many / single)
    log_above = terms * log_ratio - decay + log_rest
    smaller = math.exp(-abs(log_above - log_below))
    share = (smaller if log_above < log_below else 1.0) / (1.0 + smaller)
    count = below * (1.0 - share) + (terms + rest) * share
    return log_none + max(log_below, log_above) + math.log1p(smaller), count


@kernel
def rates_given(
    values: FloatArray,
    base: FloatArray,
    rows: IntArray,
    columns: IntArray,
    level: float,
    left: FloatArray,
    right: FloatArray,
    decay: float,
    multiples: FloatArray,
    chances: FloatArray,
    slopes: FloatArray,
    rates: FloatArray,
) -> float:
    """Fill ``rates`` (m,) of a noisy table ``values`` (m,); return its log-likelihood, add its slopes.

    The log mean of cell c is ``base[c] + level + left[rows[c]] + right[columns[c]]``, plus one of the ``multiples``
    (logs, ascending) by its log in ``chances``. ``slopes`` has those by level, left and right, one after another.
    """
    total = 0.0
    for c in range(len(values)):
        likelihood, rate, slope, largest = 0.0, 0.0, 0.0, -np.inf
        for k in range(len(multiples)):
            log_mean = base[c] + level + left[rows[c]] + right[columns[c]] + multiples[k]
            log_mean = min(max(log_mean, LOWEST), HIGHEST)
            loglik, count = count_given(values[c], log_mean, decay)
            loglik += chances[k]
            if loglik > largest:
                # What was added up is told beside the likeliest multiple.
                smaller = math.exp(largest - loglik)
                likelihood, rate, slope, largest = likelihood * smaller, rate * smaller, slope * smaller, loglik
            part, mean = math.exp(loglik - largest), math.exp(log_mean)
            likelihood += part
            # The rate given the count: of an exponential and a Poisson law.
            rate += part * (count + 1.0) * mean / (1.0 + mean)
            slope += part * ((count + 1.0) / (1.0 + mean) - 1.0)
        total += largest + math.log(likelihood)
        rates[c] = rate / likelihood
        slope /= likelihood
        slopes[0] += slope
        slopes[1 + rows[c]] += slope
        slopes[1 + len(left) + columns[c]] += slope
    return total
