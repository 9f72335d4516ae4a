"""How far apart answers lie: the l1 sensitivity, and the largest norm between any two of them.

Proofs: docs/proofs/composition.md (cost), docs/proofs/laplace.md.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dphmm import _kernels
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.differences import PolicyDifferences, dot
from dphmm.sensitivity.hull import SensitivityHull, as_constraint, check_sizes
from dphmm.states.space import StateSpace, lattice_answers
from dphmm.types import IntArray, Loss, States


def l1_sensitivity(
    policy: PolicyGraph, answers: StateSpace | ArrayLike, constraint: States | Constraint = None
) -> float:
    """S_f = max ‖f(s_j) - f(s_k)‖₁ over the policy edges in a constraint (Def. 3.2), in answer units.

    Exact where the pitches are multiples of a common unit (up to 2**24 of it), otherwise up to 1e-7 above; 0.0 without
    edges.
    """
    lattice, frame = lattice_answers(answers)
    check_sizes(policy, lattice)
    source = PolicyDifferences.of(policy, lattice, as_constraint(constraint, policy.n_states))
    unit, weights = _integer_weights(frame.exact_pitch)
    signs = itertools.product((1, -1), repeat=len(weights) - 1)
    directions = [np.array([s * w for s, w in zip((1, *sign), weights, strict=True)], dtype=np.int64) for sign in signs]
    return float(unit * max(source.extreme(direction)[0] for direction in directions))


#: Weights up to here fit a 64-bit product with any difference of answers.
_LARGEST_WEIGHT = 2**24


def _integer_weights(pitches: tuple[Fraction, ...]) -> tuple[Fraction, list[int]]:
    """A unit and whole numbers of it for each pitch; rounded up, never down, where no short ones exist."""
    common = math.lcm(*(p.denominator for p in pitches))
    divisor = math.gcd(*(int(p * common) for p in pitches))
    unit = max(Fraction(divisor, common), max(pitches) / _LARGEST_WEIGHT)
    return unit, [math.ceil(p / unit) for p in pitches]


def largest_norm(hull: SensitivityHull, points: IntArray) -> Loss:
    """max ‖p - q‖_K over pairs of lattice points (n, d), exactly: the factor of Theorem 6.3; inf across cosets."""
    if len(hull.equations) and any(_extent(dot(points, equation)) for equation in hull.equations):
        return math.inf
    extents = _extents(hull.coordinates_of(points), hull.normals)
    largest = (0, 1)
    for extent, offset in zip(extents, hull.offsets.tolist(), strict=True):
        if extent * largest[1] > largest[0] * offset:
            largest = (extent, offset)
    return Fraction(*largest)


def _extents(points: IntArray, directions: IntArray) -> list[int]:
    """Largest minus smallest of points·direction for each direction (m, d), exactly."""
    # Coordinates that came from beyond 64 bits are Python integers.
    if points.dtype == np.int64:
        found: list[int] = _kernels.polygon.outer_extents(points, directions).tolist()
        if len(found) == len(directions):
            return found
    return [_extent(dot(points, direction)) for direction in directions]


def _extent(values: IntArray) -> int:
    """Largest minus smallest, in Python integers: ``np.ptp`` takes none beyond 64 bits."""
    return int(values.max()) - int(values.min())
