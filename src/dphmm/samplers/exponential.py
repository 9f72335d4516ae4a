"""exp(-x) of a rational x, between two integers as close as asked: rigorous, in integer arithmetic only.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

from fractions import Fraction


def exp_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers (lo, hi) with lo / 2**bits <= exp(-x) <= hi / 2**bits and hi - lo <= 2, for rational x >= 0.

    exp(-x) = exp(-x / 2**s)**(2**s) with x / 2**s <= 1/2: the alternating series brackets the inner value by
    two partial sums, and every squaring is rounded outward.
    """
    if x < 0:
        raise ValueError("exp_bracket is for x >= 0")
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits + 1:
        return 0, 1  # exp(-x) < 2**-x
    halvings = max(0, int(x).bit_length() + 1)
    scale = bits + 2 * halvings + 16
    low, high = _series(x / (1 << halvings), scale)
    for _ in range(halvings):
        low, high = _squares(low, high, scale)
    drop = scale - bits
    return low >> drop, -(-high >> drop)


def _squares(low: int, high: int, scale: int) -> tuple[int, int]:
    """The squares of two numbers over 2**scale, the first rounded down and the second up."""
    return (low * low) >> scale, -((-high * high) >> scale)


def _series(x: Fraction, scale: int) -> tuple[int, int]:
    """exp(-x) for 0 < x <= 1/2 between integers over 2**scale: sums of the alternating series, rounded outward."""
    low_sum = high_sum = low_term = high_term = 1 << scale
    n = 0
    while high_term > 0:
        n += 1
        low_term = low_term * x.numerator // (x.denominator * n)
        high_term = -(-high_term * x.numerator // (x.denominator * n))
        if high_term == 1:
            break
        if n % 2:
            low_sum -= high_term
            high_sum -= low_term
        else:
            low_sum += low_term
            high_sum += high_term
    # What is left out alternates and shrinks, so it is at most its first term, which is at most 1.
    return low_sum - 1, min(high_sum + 1, 1 << scale)
