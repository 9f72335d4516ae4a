"""Zero-concentrated differential privacy: rho of Gaussian noise, added up, and as (epsilon, delta).

Every rounding goes towards privacy: epsilon is rounded up, rho down. The search for the best order is done in floats
and decides only how good a bound is: any order gives a bound that holds, and it is computed to 60 digits.

Proof: docs/proofs/zcdp.md.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from dphmm.errors import InvalidInput

_DIGITS = 60
#: Epsilons are rounded up to this unit.
_UNIT = Decimal(1).scaleb(-12)
#: More than the error of evaluating the bound to 60 digits for any order up to e**40 and delta from 1e-300.
_MARGIN = Decimal(1).scaleb(-30)
_RHO_BITS = 40
SMALLEST_DELTA = Fraction(1, 10**300)


def check_delta(delta: Fraction, field: str = "delta") -> Fraction:
    """A delta that the conversion takes: from 1e-300 to below 1."""
    if not SMALLEST_DELTA <= delta < 1:
        raise InvalidInput(field, delta, "a number from 1e-300 to below 1 for Gaussian noise")
    return delta


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon known for rho-zCDP at this delta, rounded up (Canonne, Kamath and Steinke 2020, v4, Prop. 12).

    min over orders a > 1 of a·rho + (log(1/delta) + (a - 1)·log(1 - 1/a) - log a)/(a - 1).
    """
    check_delta(delta)
    if rho == 0:
        return Fraction(0)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    order = 1.0 + math.exp(_best_log_excess(float(rho), log_delta))
    return _bound(rho, delta, order)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (to 40 binary digits, rounded down) whose ``epsilon_of`` is at most epsilon."""
    check_delta(delta)
    exponent = math.floor(math.log2(_simple_rho(float(epsilon), delta)))
    unit = Fraction(2) ** (exponent - _RHO_BITS)
    low, high = 0, 1 << _RHO_BITS
    while epsilon_of(high * unit, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_of(middle * unit, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * unit


def _simple_rho(epsilon: float, delta: Fraction) -> float:
    """The rho with rho + 2·sqrt(rho·log(1/delta)) = epsilon: a first guess."""
    log = math.log(delta.denominator) - math.log(delta.numerator)
    # (sqrt(log + epsilon) - sqrt(log))**2 without cancellation.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def _best_log_excess(rho: float, log_delta: float) -> float:
    """log(a - 1) of about the best order a: golden section."""

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        logs = excess * math.log(excess / (1.0 + excess)) if log_excess < 30 else -1.0
        return (1.0 + excess) * rho + (-log_delta + logs - math.log1p(excess)) / excess

    low, high = -12.0, 40.0
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        width = ratio * (high - low)
        if bound(high - width) < bound(low + width):
            high = low + width
        else:
            low = high - width
    return (low + high) / 2.0


def _bound(rho: Fraction, delta: Fraction, order: float) -> Fraction:
    with localcontext() as context:
        context.prec = _DIGITS
        a = Decimal(order)
        log_inverse_delta = Decimal(delta.denominator).ln() - Decimal(delta.numerator).ln()
        logs = (a - 1) * (1 - 1 / a).ln() - a.ln()
        exact = a * rho.numerator / rho.denominator + (log_inverse_delta + logs) / (a - 1)
        up = (exact + _MARGIN).quantize(_UNIT, rounding=ROUND_CEILING)
    return max(Fraction(0), Fraction(up))
