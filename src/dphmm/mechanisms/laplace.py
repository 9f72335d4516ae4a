"""The Laplace mechanism with l1 sensitivity, in floats: the papers' baseline.

Proof: docs/proofs/laplace.md.
"""

from __future__ import annotations

import numbers
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import Mechanism, hull_field, rows, vector
from dphmm.samplers.continuous import exponentials
from dphmm.samplers.entropy import default_bits
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray


class Laplace(Mechanism):
    """Independent Laplace noise of scale S_f/ε on every axis: the K-norm mechanism of a cross-polytope.

    Not for release.

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

    name: ClassVar[str] = "laplace"
    exact: ClassVar[bool] = False

    def __init__(self, sensitivity: SensitivityHull | Exact, epsilon: Exact, dimension: int | None = None) -> None:
        super().__init__(epsilon)
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
        table, one = rows(answer, self._dimension or (np.shape(answer) or (1,))[-1], "answer")
        z = table + self.noise(len(table), table.shape[1], bits)
        return np.asarray(z[0] if one else z)

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
        given = np.atleast_1d(np.asarray(v, dtype=np.float64))
        return float(np.abs(vector(given, len(given))).sum()) / self._scale

    def describe(self) -> dict[str, str]:
        return super().describe() | {"sensitivity": repr(self.sensitivity)}

    @property
    def _scale(self) -> float:
        return self.sensitivity / float(self.epsilon)
