"""The papers' mechanisms in floats, for research: Laplace, K-norm, planar isotropic (CCS 2015, Alg. 2).

Not for publication: the low-order bits of a float sum say what was added (docs/theory.md 5). No release takes one;
`DiscreteLaplace` and `DiscreteKNorm` are exact.

Proofs: docs/proofs/laplace.md, docs/proofs/knorm.md, docs/proofs/planar-isotropic.md.
"""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, exact_number
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import hull_field, rows, vector
from dphmm.samplers.entropy import default_bits
from dphmm.samplers.uniform import choices, exponentials
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray, IntArray


class Laplace:
    """Independent Laplace noise of scale S_f/ε on every axis: the K-norm mechanism of a cross-polytope.

    Floats: not for publication.

    Parameters
    ----------
    sensitivity : S_f, the l1 sensitivity in answer units (see `l1_sensitivity`), or the SensitivityHull to
        take it from.
    epsilon : from 2**-20 to 2**10.
    dimension : d; only ``expected_error`` needs it. Taken from the hull where there is one.

    Raises
    ------
    InvalidInput : a sensitivity that is not positive, an ε out of range.
    """

    def __init__(self, sensitivity: SensitivityHull | Exact, epsilon: Exact, dimension: int | None = None) -> None:
        self.epsilon = exact_epsilon(epsilon)
        if isinstance(sensitivity, (str, numbers.Number)):
            self.sensitivity = float(exact_number(sensitivity, "sensitivity"))
            self._dimension = dimension
        else:
            hull = hull_field(sensitivity)
            self.sensitivity = float(np.abs(hull.vertices).sum(axis=1).max())
            self._dimension = hull.dimension
        if not self.sensitivity > 0:
            raise InvalidInput("sensitivity", self.sensitivity, "a number greater than 0")

    @cached_property
    def expected_error(self) -> float:
        """E‖noise‖² = 2d·S_f²/ε²."""
        if self._dimension is None:
            raise InvalidInput("dimension", "None", "the number of axes, given to Laplace(...)")
        return 2.0 * self._dimension * self._scale**2

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """A noisy copy of one answer (d,) or of each row (m, d), in answer units."""
        table, single = rows(answer, self._dimension or (np.shape(answer) or (1,))[-1], "answer")
        z = table + self.noise(len(table), table.shape[1], bits)
        return np.asarray(z[0] if single else z)

    def noise(self, m: int, d: int, bits: Bits | None = None) -> FloatArray:
        """m independent noises (m, d) in answer units: differences of two exponentials."""
        steps = exponentials(default_bits(bits), 2 * m * d).reshape(2, m, d)
        return np.asarray((steps[0] - steps[1]) * self._scale)

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """-ε‖z - answer‖₁/S_f for each row of ``answers`` (N, d): the log density up to a common constant."""
        point = np.atleast_1d(np.asarray(z, dtype=np.float64))
        d = len(point)
        differences = vector(point, d, "z") - rows(answers, d, "answers")[0]
        return np.asarray(-np.abs(differences).sum(axis=1) / self._scale)

    def loss(self, v: ArrayLike) -> float:
        """ε‖v‖₁/S_f."""
        difference = np.atleast_1d(np.asarray(v, dtype=np.float64))
        return float(np.abs(vector(difference, len(difference))).sum()) / self._scale

    @property
    def _scale(self) -> float:
        return self.sensitivity / float(self.epsilon)


class KNorm:
    """Density ∝ exp(-ε‖z - answer‖_K) on answer + span K (Eq. 1 of the DPHMM paper). Floats: not for publication.

    The exponent of the radius is the rank k of K, not d (Eq. 1 divides by a volume that is 0 for a flat
    hull).
    Raises InvalidInput for a hull of rank 0 or one that is not known exactly.
    """

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        self.epsilon = exact_epsilon(epsilon)
        self._hull: SensitivityHull = hull_field(K)
        if K.rank == 0:
            raise InvalidInput("K", "a hull of rank 0", "a hull with an edge; mechanisms.Constant for one answer")
        if not K.exact or K.hull_vertices is None:
            raise InvalidInput(
                "K", "a body around its hull", "a hull known exactly; mechanisms.DiscreteKNorm for others"
            )

    @property
    def hull(self) -> SensitivityHull:
        return self._hull

    @cached_property
    def expected_error(self) -> float:
        """E‖noise‖² = (k+1)(k+2)/ε²·tr E[uuᵀ], u uniform on K (docs/theory.md F3)."""
        k = self._hull.rank
        return float((k + 1) * (k + 2) * self._hull.squared_size / self.epsilon**2)

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """A noisy copy of one answer (d,) or of each row (m, d), in answer units."""
        table, single = rows(answer, self._hull.dimension, "answer")
        z = table + self.noise(len(table), bits)
        return np.asarray(z[0] if single else z)

    def noise(self, m: int, bits: Bits | None = None) -> FloatArray:
        """m independent noises (m, d) in answer units."""
        return self._cone_noise(self._simplices[0], m, bits)

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """-ε‖z - answer‖_K for each row of ``answers`` (N, d): the log density up to a common constant."""
        d = self._hull.dimension
        differences = vector(z, d, "z") - rows(answers, d, "answers")[0]
        return np.asarray(-float(self.epsilon) * np.asarray(self._hull.norm(differences)))

    def loss(self, v: ArrayLike) -> float:
        """ε‖v‖_K; inf off the span."""
        return float(self.epsilon) * float(self._hull.norm(vector(v, self._hull.dimension)))

    def _cone_noise(self, corners: FloatArray, m: int, bits: Bits | None) -> FloatArray:
        """Exponential steps along the corners (s, k, d) of a simplex of the boundary, picked by its weight.

        On the cone of a simplex a point sum c_i v_i has norm sum c_i, so independent exponential c_i of rate
        ε have density ∝ exp(-ε‖x‖_K) there. The same law as r·u, r ~ Gamma(k+1), u uniform on K
        (docs/theory.md F2).
        """
        source = default_bits(bits)
        k = self._hull.rank
        chosen = choices(source, self._simplices[1], m)
        steps = exponentials(source, m * k).reshape(m, k) / float(self.epsilon)
        return np.asarray(np.einsum("mk,mkd->md", steps, corners[chosen]))

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners (s, k, d) in answer units of the simplices that make the boundary, and their weights (s,)."""
        lattice_corners = boundary(self._hull)
        weights = np.abs(np.linalg.det(lattice_corners.astype(np.float64)))
        corners = (lattice_corners @ self._hull.basis.T) * self._hull.frame.pitch
        return np.asarray(corners), weights / weights.sum()


def boundary(hull: SensitivityHull) -> IntArray:
    """The simplices (s, k, k) of the boundary of a hull of rank k, in the coordinates of its span."""
    vertices = np.asarray(hull.hull_vertices)
    if hull.rank == 1:
        return vertices[:, None, :]
    if hull.rank == 2:
        return np.stack([vertices, np.roll(vertices, -1, axis=0)], axis=1)
    return np.asarray(vertices[hull.body.simplices])


class PlanarIsotropic(KNorm):
    """K-norm noise drawn in isotropic position, TK with T = E[uuᵀ]^(-1/2), and carried back.

    Floats: not for publication.
    Equal in law to KNorm (docs/theory.md (e)): it changes numerics, not error. Exact second moments instead of the
    paper's samples. Raises InvalidInput for a flat hull, whose second moment has no inverse.
    """

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if K.rank < K.dimension:
            raise InvalidInput("K", f"a hull of rank {K.rank}", f"rank {K.dimension}: a flat one has no inverse moment")

    def noise(self, m: int, bits: Bits | None = None) -> FloatArray:
        """m independent noises (m, d) in answer units."""
        inward, back = self._transform
        return np.asarray(self._cone_noise(self._simplices[0] @ inward, m, bits) @ back)

    @cached_property
    def _transform(self) -> tuple[FloatArray, FloatArray]:
        """T and its inverse, symmetric (d, d)."""
        values, axes = np.linalg.eigh(self._hull.second_moment)
        return np.asarray((axes / np.sqrt(values)) @ axes.T), np.asarray((axes * np.sqrt(values)) @ axes.T)
