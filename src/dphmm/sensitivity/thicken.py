"""Give a flat hull a little width in every direction, so that no release excludes a state for certain.

A flat hull's noise stays on a line or plane through the true answer, and z then tells which one (docs/theory.md (b)).
The thickened body contains the flat one, so every required difference keeps its ε.

Proof: docs/proofs/thickening.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from dphmm.sensitivity.differences import PolicyDifferences
from dphmm.sensitivity.hull import SensitivityHull, hull_of
from dphmm.types import IntArray

#: By default a thickened body is at least this fraction of its largest half-width wide on every axis.
LEAST_RELATIVE_THICKNESS = Fraction(1, 20)


def thicken(
    source: PolicyDifferences, flat: SensitivityHull, thickness: Sequence[Fraction] | None = None
) -> SensitivityHull:
    """The hull of the same differences and ± ``thickness`` along each axis (answer units, rounded up to the lattice).

    Default: the pitch, and at least 5 % of the flat hull's largest half-width.
    """
    steps = _default_steps(flat) if thickness is None else _given_steps(flat, thickness)
    return hull_of(source.with_points(np.diag(steps)), flat.frame)


def _default_steps(flat: SensitivityHull) -> IntArray:
    pitches = flat.frame.exact_pitch
    widest = max(flat.half_width(row) * pitch for row, pitch in zip(flat.basis, pitches, strict=True))
    least = widest * LEAST_RELATIVE_THICKNESS
    return np.array([max(1, ceil(least / pitch)) for pitch in pitches], dtype=np.int64)


def _given_steps(flat: SensitivityHull, thickness: Sequence[Fraction]) -> IntArray:
    pitches = flat.frame.exact_pitch
    return np.array([max(1, ceil(t / p)) for t, p in zip(thickness, pitches, strict=True)], dtype=np.int64)
