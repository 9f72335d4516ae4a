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
#: For a loss that is infinite.
_LARGE = 1e300


def largest_rate(loss: Callable[[float], float], epsilon: Fraction, low: float, high: float) -> Fraction:
    """A rate with loss(rate) <= epsilon, as large as about 10⁻¹⁰ of it allows. ``loss`` never falls; loss(low) does.

    The rate is rounded down to a short binary fraction, and the loss is evaluated at what is returned: it is not
    taken from the root finder on trust.
    """
    goal = rounded_down(epsilon)
    at_most, at_least = loss(high), loss(low)
    if at_most <= goal:
        return short(Fraction(high))
    if at_least > goal:
        raise ArithmeticError("the loss at the least rate is above epsilon")
    known = {math.log(low): at_least, math.log(high): at_most}

    def over(at: float) -> float:
        # Nearly a straight line where there is much noise. Nothing infinite goes into an interpolation.
        found = known[at] if at in known else loss(math.exp(at))
        return math.log(min(max(found, 1 / _LARGE), _LARGE) / goal)

    root = brentq(over, min(known), max(known), xtol=1e-11, rtol=1e-13, maxiter=200)
    step = 2.0**-36
    while True:
        rate = short(Fraction(max(low, math.exp(root) * (1.0 - step))))
        if loss(float(rate)) <= goal or float(rate) <= low:
            return rate
        step *= 2


def rounded_down(value: Fraction) -> float:
    """The largest float that is not above it."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def short(rate: Fraction) -> Fraction:
    """The rate, rounded down to 44 binary digits."""
    shift = _DIGITS - (rate.numerator.bit_length() - rate.denominator.bit_length())
    return Fraction(math.floor(rate * Fraction(2) ** shift)) / Fraction(2) ** shift
