"""The doubt that answers leave: a bound on the odds, in a form that shows its use.

Between two places equally likely before, answers of epsilon in all leave a doubt of 1 / (1 + exp(epsilon)) or more. It
is told as "1 in N", N rounded up. A bound that leaves less than 1 in 1,000 is no useful limit.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

#: Bounds that leave less than 1 in so many are no useful limit.
LEAST_USEFUL = 1000


def doubt(epsilon: Fraction) -> int | None:
    """The least N for which answers of so much epsilon in all leave at least 1 in N doubt; None where N passes 1,000.

    >>> doubt(Fraction(2)), doubt(Fraction(0)), doubt(Fraction(7))
    (9, 2, None)
    """
    if epsilon > math.log(LEAST_USEFUL):
        return None
    exact = Context(prec=60)
    power = exact.exp(exact.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    if epsilon > 0:
        # More than all rounding above: what is rounded up stays a bound.
        power = exact.add(power, Decimal("1e-50"))
    least = int(exact.add(1, power).to_integral_value(rounding=ROUND_CEILING))
    return least if least <= LEAST_USEFUL else None
