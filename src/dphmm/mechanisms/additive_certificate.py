"""Floats made integers, and the proof by which the integers are released.

What is proved: no two points that differ by a vector of the body weigh more than e^ε times as much as each other.

`rounded` proposes, and raises weights that are too small for a neighbour. `require_certified` decides, from the
integers of a law alone: every pair with a point near the origin is looked at, and those farther out are a lemma.

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dphmm.errors import DphmmError
from dphmm.mechanisms.additive_law import AdditiveLaw
from dphmm.mechanisms.additive_program import Window
from dphmm.samplers.exponential import exp_bracket
from dphmm.types import BoolArray, FloatArray, IntArray

#: Binary digits of the smallest weight, and of the ratio of shells.
_DIGITS = 80
_FLOAT_DIGITS = 53
_MOST_ROUNDS = 10_000


class Uncertified(DphmmError):
    """Weights that lose more than ε, or could not be shown not to: they are never drawn from."""


def falling_ratio(epsilon: Fraction) -> tuple[int, int]:
    """(ratio, bits) with e^-ε <= ratio / 2**bits < 1, as close as is worth having."""
    bits = _DIGITS + math.ceil(epsilon * 3 / 2)
    return exp_bracket(epsilon, bits)[1], bits


def rounded(window: Window, relative: FloatArray, epsilon: Fraction) -> AdditiveLaw:
    """The law in integers nearest to weights (r + 1,) relative to a staircase, raised where a neighbour needs it."""
    ratio, bits = falling_ratio(epsilon)
    scale = _DIGITS + math.ceil(epsilon * int(window.levels.max()) * 3 / 2)
    falls = [exp_bracket(epsilon * level, scale)[0] for level in range(int(window.levels.max()) + 1)]
    shares = np.maximum(relative / relative.max(), 2.0**-_FLOAT_DIGITS)
    given = [
        max(1, round(share * 2.0**_FLOAT_DIGITS) * falls[level] >> _FLOAT_DIGITS)
        for share, level in zip(shares.tolist(), window.levels.tolist(), strict=True)
    ]
    weights = _raised(given, window.pairs, ratio, bits)
    return AdditiveLaw(
        window.facets,
        window.radius,
        window.points,
        tuple(weights[orbit] for orbit in window.orbits.tolist()),
        weights[-1],
        ratio,
        bits,
    )


def _raised(given: list[int], pairs: IntArray, ratio: int, bits: int) -> list[int]:
    """The least integers that are not below the given ones nor, for any pair, below ratio / 2**bits of the other's."""
    weights = np.array(given, dtype=object)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    for _ in range(_MOST_ROUNDS):
        floors = -((-weights * ratio) >> bits)
        low = weights[both[:, 1]] < floors[both[:, 0]]
        if not low.any():
            return [int(w) for w in weights]
        for a, b in both[low].tolist():
            weights[b] = max(weights[b], floors[a])
    raise Uncertified("weights that do not settle")


def require_certified(law: AdditiveLaw, epsilon: Fraction) -> None:
    """Raise Uncertified unless no two points that differ by a vector of the body lose more than ε, of all there are.

    Looked at again from nothing but the law's integers: its points, its shells, the vectors of its body, its ratio.
    """
    k = law.rank
    if not 0 < law.ratio < 1 << law.bits or law.ratio < exp_bracket(epsilon, law.bits)[1]:
        raise Uncertified("shells that fall faster than e^-epsilon")
    if min(law.weights) <= 0 or law.tail <= 0:
        raise Uncertified("weights that are not positive")
    if not np.array_equal(law.points, law.facets.within(law.radius).points(k)):
        raise Uncertified("points that are not those of the window")
    if not law.has_whole_mass:
        raise Uncertified("shells whose sizes are not those of a body with lattice points as corners")
    weights = np.array(law.weights, dtype=object)
    least = weights * law.ratio
    most = weights << law.bits
    for step in law.facets.within(Fraction(1)).points(k):
        there, beyond = _moved(law, step)
        other = np.where(beyond, law.tail, weights[there])
        if (least > other << law.bits).any() or (other * law.ratio > most).any():
            raise Uncertified("weights that lose more than epsilon between points of a required difference")


def _moved(law: AdditiveLaw, step: IntArray) -> tuple[IntArray, BoolArray]:
    """Where points + step are (n,) among the points, and which (n,) are beyond: on the first shell, by the lemma."""
    moved = law.points + step
    shells = law.shells(moved)
    if int(shells.max()) > 1:
        raise Uncertified("points farther out than the first shell")
    beyond = np.asarray(shells == 1)
    there = np.zeros(len(moved), dtype=np.int64)
    there[~beyond] = law.numbers(moved[~beyond])
    return there, beyond
