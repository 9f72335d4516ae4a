"""Degrees of protection (Def. 5.2 of the DPHMM paper), counted pair by pair in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dphmm.audit.law import CONSTANT, STAIRCASE, Law, exact
from dphmm.audit.reach import Bodies
from dphmm.audit.table import Table
from dphmm.types import BoolArray, IntArray

_ROOM = 2**61


def degrees(bodies: Bodies, images: IntArray, support: BoolArray, epsilon: Fraction) -> IntArray:
    """How many possible states each possible state (N,) loses at most ε against, itself counted; 0 for the others."""
    found = np.zeros(len(images), dtype=np.int64)
    for number, law in enumerate(bodies.laws):
        own = np.flatnonzero(support & (bodies.law_of == number))
        if len(own):
            points, back, counts = np.unique(images[own], axis=0, return_inverse=True, return_counts=True)
            found[own] = _among(law, points, counts, epsilon)[back.reshape(-1)]
    return found


def _among(law: Law | Table, points: IntArray, counts: IntArray, epsilon: Fraction) -> IntArray:
    if isinstance(law, Table):
        rows = law.numbers(points)
        kept = law.kept_at(epsilon)[np.ix_(rows, rows)] & (rows >= 0) & (rows >= 0)[:, None]
        return np.asarray(np.maximum(kept @ counts, counts))
    if law.kind == CONSTANT or not law.rank:
        return counts
    from_first = points - points[0]
    y = law.y_of(from_first)
    # Two points are in one coset of the span if and only if what their coordinates leave over is the same.
    coset = _numbered(from_first - exact(y, law.basis.T))
    values = exact(y, law.normals.T)
    limits = [math.floor(offset * _norm_of(law, epsilon)) for offset in law.offsets.tolist()]
    found = np.zeros(len(points), dtype=np.int64)
    for number in range(int(coset.max()) + 1):
        own = np.flatnonzero(coset == number)
        found[own] = _counted(values[own], limits, counts[own])
    return found


def _numbered(rows: IntArray) -> IntArray:
    """Numbers (n,) that are equal for equal rows; Python integers are rows too."""
    if not rows.any():
        return np.zeros(len(rows), dtype=np.int64)
    numbers: dict[tuple[int, ...], int] = {}
    return np.array([numbers.setdefault(tuple(row), len(numbers)) for row in rows.tolist()], dtype=np.int64)


def _norm_of(law: Law, epsilon: Fraction) -> Fraction:
    """The largest norm at which two answers lose no more than ε."""
    ratio = epsilon / law.epsilon
    return Fraction(math.floor(ratio)) if law.kind == STAIRCASE else ratio


def _counted(values: IntArray, limits: list[int], weights: IntArray) -> IntArray:
    if values.dtype == object or max(limits) >= _ROOM or int(np.abs(values).max()) >= _ROOM:
        return _counted_plainly(values.astype(object), limits, weights)
    from dphmm._kernels.audit import count_within

    # The facet that leaves fewest others near goes first.
    spread = np.ptp(values, axis=0) / np.maximum(np.array(limits, dtype=np.float64), 0.5)
    facets = np.argsort(-spread, kind="stable")
    order = np.argsort(values[:, facets[0]], kind="stable")
    counts = np.zeros(len(values), dtype=np.int64)
    rows = np.ascontiguousarray(values[order][:, facets])
    count_within(rows, np.array(limits, dtype=np.int64)[facets], weights[order], counts)
    found = np.empty_like(counts)
    found[order] = counts
    return found


def _counted_plainly(values: IntArray, limits: list[int], weights: IntArray) -> IntArray:
    inside = [np.all(np.abs(values - row) <= np.array(limits, dtype=object), axis=1) for row in values]
    return np.array([int(weights[near.astype(np.bool_)].sum()) for near in inside], dtype=np.int64)
