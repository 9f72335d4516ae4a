"""Unimodular changes of basis in which a thin or slanted body fills its box.

A body {y} is seen in coordinates x = R y, R integer with determinant ±1, so lattice points stay lattice points. The
rows of R are made short as seen from points that outline the body (Lagrange in two dimensions, LLL in more). Their
length decides only how often a proposal is refused; R is unimodular exactly.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import numpy as np

from dphmm import _kernels
from dphmm.types import FloatArray, IntArray

Matrix = list[list[int]]
_LOVASZ = 0.99
_HALF = 0.5 + 1e-9
_MOST_STEPS = 10_000
PLANAR_SPAN = 2**28


def identity(k: int) -> Matrix:
    """The matrix that changes nothing."""
    return [[int(i == j) for j in range(k)] for i in range(k)]


def reduced_plane(normals: IntArray, vertices: IntArray) -> tuple[IntArray, Matrix, list[int]] | None:
    """For a planar body with its corners: the normals (m, 2) in reduced coordinates x = R·y, R⁻¹, the largest |x_i|.

    None for other bodies, and for corners outside ±2**28.
    """
    if vertices.shape[1] != 2 or vertices.dtype != np.int64:
        return None
    turned, inverse, widths = _kernels.points.reduced_coordinates(normals, vertices, PLANAR_SPAN)
    return (turned, inverse.tolist(), widths.tolist()) if len(widths) else None


def reduced_rows(outline: FloatArray) -> tuple[Matrix, Matrix]:
    """(R, R⁻¹) with R (k, k) unimodular and its rows short and nearly orthogonal on the points ``outline`` (v, k)."""
    k = outline.shape[1]
    change = _Change(outline)
    if k == 2:
        _lagrange(change)
    elif k > 2:
        _lll(change)
    return change.rows, change.inverse


def outline(normals: IntArray, offsets: IntArray, vertices: IntArray | None) -> FloatArray:
    """Points (v, k) spread like the body |normals·y| <= offsets: its vertices, or the axes of an inner ellipsoid."""
    if vertices is not None:
        return vertices.astype(np.float64)
    scaled = normals / offsets[:, None]
    lengths, axes = np.linalg.eigh(scaled.T @ scaled)
    return np.asarray(axes / np.sqrt(lengths)).T


class _Change:
    """R, its inverse, and the outline seen in the new coordinates, changed together."""

    def __init__(self, outline: FloatArray) -> None:
        k = outline.shape[1]
        self.rows, self.inverse = identity(k), identity(k)
        self.seen = outline / max(float(np.abs(outline).max()), 1e-300)

    def subtract(self, i: int, j: int, q: int) -> None:
        """Row i minus q times row j."""
        self.rows[i] = [a - q * b for a, b in zip(self.rows[i], self.rows[j], strict=True)]
        for line in self.inverse:
            line[j] += q * line[i]
        self.seen[:, i] -= q * self.seen[:, j]

    def swap(self, i: int, j: int) -> None:
        self.rows[i], self.rows[j] = self.rows[j], self.rows[i]
        for line in self.inverse:
            line[i], line[j] = line[j], line[i]
        self.seen[:, [i, j]] = self.seen[:, [j, i]]


def _lagrange(change: _Change) -> None:
    for _ in range(_MOST_STEPS):
        gram = change.seen.T @ change.seen
        if gram[0, 0] > gram[1, 1]:
            change.swap(0, 1)
            gram = gram[::-1, ::-1]
        # At a half both rows are as short as they get: rounding would subtract and add the same row for ever.
        if gram[0, 0] <= 0.0 or abs(gram[0, 1]) <= _HALF * gram[0, 0]:
            return
        change.subtract(1, 0, round(float(gram[0, 1] / gram[0, 0])))


def _lll(change: _Change) -> None:
    """The reduction of Lenstra, Lenstra and Lovász; floats decide, integers move.

    Cohen, Computational Algebraic Number Theory, 2.6.3.
    """
    k = len(change.rows)
    at = 1
    for _ in range(_MOST_STEPS):
        if at >= k:
            return
        for j in range(at - 1, -1, -1):
            q = round(float(_orthogonal(change.seen)[0][at, j]))
            if q:
                change.subtract(at, j, q)
        mu, lengths = _orthogonal(change.seen)
        if lengths[at] >= (_LOVASZ - mu[at, at - 1] ** 2) * lengths[at - 1]:
            at += 1
        else:
            change.swap(at, at - 1)
            at = max(at - 1, 1)


def _orthogonal(seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gram-Schmidt coefficients and squared lengths of the columns."""
    triangle = np.linalg.qr(seen, mode="r")
    diagonal = np.where(np.abs(np.diag(triangle)) > 1e-300, np.diag(triangle), 1e-300)
    return np.asarray((triangle / diagonal[:, None]).T), np.asarray(np.diag(triangle) ** 2)
