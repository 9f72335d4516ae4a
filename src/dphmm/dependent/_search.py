"""The largest rate at which a loss keeps what was promised: found by root finding, then checked from outside.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from scipy.optimize import brentq

#: Binary digits that a rate keeps.
_DIGITS = 44
#: What is this near below the promise is taken.
_NEAR = 2.0**-37
#: For a loss that is infinite.
_LARGE = 1e300


def largest_rate(loss: Callable[[float], float], epsilon: Fraction, low: float, high: float) -> Fraction:
    """A rate with loss(rate) <= epsilon, as large as about 10⁻¹¹ of it allows. ``loss`` never falls; loss(low) does.

    Rates are rounded down to short binary fractions before the loss is evaluated: what is returned was looked at, and
    is not taken from the root finder on trust.
    """
    goal = rounded_down(epsilon)
    known: dict[float, tuple[Fraction, float]] = {}

    def looked_at(at: float, rate: float) -> float:
        if at not in known:
            rounded = short(Fraction(rate))
            known[at] = rounded, loss(float(rounded))
        return known[at][1]

    def over(at: float) -> float:
        # Nearly a straight line where there is much noise. Nothing infinite goes into an interpolation.
        found = looked_at(at, math.exp(at))
        near = goal * (1.0 - _NEAR) <= found <= goal
        return 0.0 if near else math.log(min(max(found, 1 / _LARGE), _LARGE) / goal)

    below, above = None, low
    while looked_at(math.log(above), above) <= goal and above < high:
        found = known[math.log(above)][1]
        below, above = above, min(high, above * max(2.0, 1.1 * goal / found if found else math.inf))
    if known[math.log(above)][1] > goal:
        if below is None:
            raise ArithmeticError("the loss at the least rate is above epsilon")
        brentq(over, math.log(below), math.log(above), xtol=1e-11, rtol=1e-13, maxiter=200)
    return max(rate for rate, found in known.values() if found <= goal)


def rounded_down(value: Fraction) -> float:
    """The largest float that is not above it."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def short(rate: Fraction) -> Fraction:
    """The rate, rounded down to 44 binary digits."""
    shift = _DIGITS - (rate.numerator.bit_length() - rate.denominator.bit_length())
    return Fraction(math.floor(rate * Fraction(2) ** shift)) / Fraction(2) ** shift
