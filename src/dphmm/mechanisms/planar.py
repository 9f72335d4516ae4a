"""The planar isotropic mechanism of the location-sets paper (CCS 2015, Alg. 2), in floats: for comparison.

Proof: docs/proofs/planar-isotropic.md.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from dphmm.errors import DegenerateHull
from dphmm.mechanisms.knorm import KNorm
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray


class PlanarIsotropic(KNorm):
    """K-norm noise drawn in isotropic position, TK with T = E[uuᵀ]^(-1/2), and carried back. Floats: not for release.

    Equal in law to KNorm (docs/theory.md (e)): it changes numerics, not error. Exact second moments instead of the
    paper's samples. Raises DegenerateHull for a flat hull, whose second moment has no inverse.
    """

    name: ClassVar[str] = "planar-isotropic"

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if K.rank < K.dimension:
            raise DegenerateHull(f"the planar isotropic mechanism needs a hull of full rank; this one has {K.rank}")

    def noise(self, m: int, bits: Bits | None = None) -> FloatArray:
        """m independent noises (m, d) in answer units."""
        inward, back = self._transform
        return np.asarray(self._cone_noise(self._simplices[0] @ inward, m, bits) @ back)

    @cached_property
    def _transform(self) -> tuple[FloatArray, FloatArray]:
        """T and its inverse, symmetric (d, d)."""
        values, axes = np.linalg.eigh(self._hull.second_moment)
        return np.asarray((axes / np.sqrt(values)) @ axes.T), np.asarray((axes * np.sqrt(values)) @ axes.T)
