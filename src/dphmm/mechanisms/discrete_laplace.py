"""Laplace noise on the lattice, exactly: a discrete Laplace noise of its own on every axis, for one l1 sensitivity.

It is the discrete K-norm mechanism of a cross-polytope around the sensitivity hull (Section 5.1 of the DPHMM paper).

Proof: docs/proofs/discrete-laplace.md.
"""

from __future__ import annotations

import itertools
import math
from typing import ClassVar, Self

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import hull_field
from dphmm.mechanisms.knorm import DiscreteKNorm
from dphmm.policy._points import LatticeDistance
from dphmm.sensitivity.exact_hull import MOST_DIMENSIONS_OF_A_HULL, Body, PointDifferences
from dphmm.sensitivity.hull import SensitivityHull, hull_of
from dphmm.types import Exact

_INT64 = 2**62


class DiscreteLaplace(DiscreteKNorm):
    """P(z | answer) ∝ exp(-ε·Σ|z_i - answer_i|/s_i) on the lattice: independent discrete Laplace noise on every axis.

    `for_hull` takes s_i, in lattice steps, as S/pitch_i rounded up, S the l1 sensitivity in answer units. ``hull`` is
    the body of this mechanism, {Σ|v_i|/s_i <= 1}: it decides who is hidden and what is lost. It is never flat.

    Parameters
    ----------
    K : a cross-polytope with its corners on the axes, as `cross_polytope` makes it.
    epsilon : from 2**-20 to 2**10.

    Raises
    ------
    InvalidInput : a hull of rank 0, any other body, or an ε out of range.
    """

    name: ClassVar[str] = "discrete-laplace"
    fills_space: ClassVar[bool] = True

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if not _is_cross_polytope(K):
            raise InvalidInput("K", repr(K), "a cross-polytope; DiscreteLaplace.for_hull(K, epsilon) makes it")

    @classmethod
    def for_hull(cls, K: SensitivityHull, epsilon: Exact) -> Self:
        """The mechanism that hides the differences in K, with the cross-polytope around it."""
        return cls(cross_polytope(hull_field(K)), epsilon)


def cross_polytope(K: SensitivityHull) -> SensitivityHull:
    """{v : Σ|v_i|/s_i <= 1} around K, s_i the l1 sensitivity in answer units as steps of axis i, rounded up.

    A hull of rank 0 stays what it is. Raises InvalidInput for more than 6 axes, and where a facet has numbers beyond 64
    bits: long axes whose pitches have no common measure.
    """
    if K.rank == 0:
        return K
    d = K.dimension
    if d > MOST_DIMENSIONS_OF_A_HULL:
        raise InvalidInput("mechanism", f"discrete-laplace for {d} axes", f"at most {MOST_DIMENSIONS_OF_A_HULL}")
    weights = LatticeDistance.of(K.frame.exact_pitch).weights
    sensitivity = _largest_l1(K, weights)
    widths = [-(-sensitivity // weight) for weight in weights]
    offset = math.lcm(*widths)
    if offset >= _INT64:
        got = "discrete-laplace for axes whose pitches have no common measure"
        raise InvalidInput("mechanism", got, "another mechanism, or one pitch for all axes")
    return _polytope(K, widths, offset)


def _polytope(K: SensitivityHull, widths: list[int], offset: int) -> SensitivityHull:
    d = len(widths)
    if d <= 2:
        return hull_of(PointDifferences(np.diag(widths).astype(np.int64)), K.frame)
    signs = list(itertools.product((1, -1), repeat=d))
    # The first half has a positive first sign: one of each ± pair.
    normals = [[sign * (offset // s) for sign, s in zip(row, widths, strict=True)] for row in signs[: len(signs) // 2]]
    corners = np.vstack([np.diag(widths), -np.diag(widths)])
    simplices = [[i if sign > 0 else i + d for i, sign in enumerate(row)] for row in signs]
    body = Body(
        normals=np.array(normals, dtype=np.int64),
        offsets=np.full(len(normals), offset, dtype=np.int64),
        vertices=corners.astype(np.int64),
        simplices=np.array(simplices, dtype=np.int64),
        exact=True,
    )
    whole = np.eye(d, dtype=np.int64)
    return SensitivityHull(K.frame, whole, whole, np.zeros((0, d), dtype=np.int64), body)


def _largest_l1(K: SensitivityHull, weights: tuple[int, ...]) -> int:
    """The largest Σ weight_i·|v_i| of a difference v in K: at its corners, or a bound where only facets are known."""
    basis = [[int(x) for x in row] for row in K.basis]
    if K.exact and K.hull_vertices is not None:
        corners = K.hull_vertices.astype(object) @ np.array(basis, dtype=object).T
        return max(sum(w * abs(int(x)) for w, x in zip(weights, corner, strict=True)) for corner in corners)
    widest = []
    for signs in itertools.product((1, -1), repeat=len(weights)):
        direction = [
            sum(s * w * row[j] for s, w, row in zip(signs, weights, basis, strict=True)) for j in range(K.rank)
        ]
        widest.append(K.half_width(np.array(direction, dtype=object)))
    # Differences are lattice vectors: theirs are whole numbers.
    return math.floor(max(widest))


def _is_cross_polytope(K: SensitivityHull) -> bool:
    """True if the facets are ±a_1 v_1 ±a_2 v_2 .. <= b, with every choice of signs once."""
    d, normals = K.dimension, K.normals
    if K.rank < d or len(normals) != 2 ** (d - 1) or not (K.basis == np.eye(d, dtype=np.int64)).all():
        return False
    alike = (np.abs(normals) == np.abs(normals[0])).all() and (K.offsets == K.offsets[0]).all()
    # A facet and its mirror image are one.
    signs = {tuple(row) for row in np.sign(normals * np.sign(normals[:, :1])).tolist()}
    return bool(alike and (normals != 0).all() and len(signs) == len(normals))
