"""No noise at all: for a plan set whose answers are one public constant.

Proof: docs/proofs/constant.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import NoiseMechanism, rows, vector
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray, IntArray, Loss


class Constant(NoiseMechanism):
    """Releases the answer itself.

    Safe only where all answers of the plan set are equal, which is the planner's to check.

    Raises InvalidInput for a hull that has an edge between different answers.
    """

    name: ClassVar[str] = "constant"
    choosable: ClassVar[bool] = False

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if K.rank != 0:
            raise InvalidInput("K", f"a hull of rank {K.rank}", "a hull of rank 0, without different answers")

    @property
    def expected_error(self) -> float:
        return 0.0

    @property
    def log_normaliser(self) -> float:
        return 0.0

    def noise(self, m: int, bits: Bits | None = None) -> IntArray:
        """Zeros (m, d). No bits are read."""
        return np.zeros((m, self._hull.dimension), dtype=np.int64)

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """The answer (d,) or answers (m, d), in answer units."""
        table, one = rows(answer, self._hull.dimension, "answer")
        z = self._hull.frame.to_answers(self._hull.frame.to_lattice(table))
        return z[0] if one else z

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """0 for the answers (N, d) equal to z, -inf for others."""
        d, frame = self._hull.dimension, self._hull.frame
        point = frame.to_lattice(vector(z, d, "z"))
        return self.log_likelihood_lattice(point, frame.to_lattice(rows(answers, d, "answers")[0]))

    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """0 for the lattice answers (N, d) equal to z, -inf for others."""
        return np.where(np.all(np.asarray(images) == np.asarray(z), axis=1), 0.0, -np.inf)

    def loss(self, v: ArrayLike) -> float:
        """0 for v = 0, else inf."""
        return math.inf if np.any(vector(v, self._hull.dimension) != 0.0) else 0.0

    def loss_of_norm(self, norm: Loss) -> Loss:
        """0 for equal answers, else inf."""
        return math.inf if norm else Fraction(0)

    def loss_lattice(self, v: ArrayLike) -> Loss:
        """0 for v = 0, else inf."""
        return math.inf if np.any(np.asarray(v) != 0) else Fraction(0)
