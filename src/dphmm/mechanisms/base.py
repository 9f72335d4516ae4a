"""The mechanism protocol: one object samples and says how likely each answer makes what it sampled.

Release, inference, audit and attack all use this object, so they cannot disagree about the distribution.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_epsilon
from dphmm.errors import InvalidInput
from dphmm.samplers.body import add_noise
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray, IntArray, Loss


class Mechanism(ABC):
    """A mechanism for one sensitivity hull and one ε. Immutable; everything about it is public."""

    #: What `describe` and the registry call it.
    name: ClassVar[str]
    #: Whether outputs are lattice points with exactly the stated probabilities: fit for release.
    exact: ClassVar[bool]

    def __init__(self, epsilon: Exact) -> None:
        self._epsilon = exact_epsilon(epsilon)

    @property
    def epsilon(self) -> Fraction:
        return self._epsilon

    @property
    @abstractmethod
    def expected_error(self) -> float:
        """E‖noise‖², in answer units squared."""

    @abstractmethod
    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """A noisy copy of one answer (d,) or of each row (m, d), in answer units. ``bits``: None for secure ones."""

    @abstractmethod
    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """log P(z | answer) for each row of ``answers`` (N, d), up to a constant common to all.

        -inf where z is impossible.
        """

    @abstractmethod
    def loss(self, v: ArrayLike) -> float:
        """The largest log-ratio between two answers that differ by v (d,), over everything that can come out."""

    def describe(self) -> dict[str, str]:
        """What tells this mechanism from another on the same hull."""
        return {"name": self.name, "epsilon": str(self.epsilon)}

    def __repr__(self) -> str:
        parameters = (f"{key}={value}" for key, value in self.describe().items() if key != "name")
        return f"{type(self).__name__}({', '.join(parameters)})"


class LatticeMechanism(Mechanism):
    """A mechanism that answers with lattice points: what a release uses."""

    exact: ClassVar[bool] = True

    @abstractmethod
    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """What is published (m, d) for lattice answers (m, d), each by itself."""

    def prepare(self) -> None:
        """Compute now what the first draw would.

        Where the state decides which mechanism draws, a first draw must not take longer than others.
        """

    @abstractmethod
    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """`log_likelihood` of the lattice point z (d,) for lattice answers (N, d)."""

    @property
    @abstractmethod
    def log_normaliser(self) -> float:
        """log of the sum of exp(`log_likelihood_lattice`) over all z: what laws of different hulls need compared."""

    @abstractmethod
    def loss_lattice(self, v: ArrayLike) -> Loss:
        """`loss` of a lattice vector (d,), exactly; ``math.inf`` where the two answers share no output."""


class NoiseMechanism(LatticeMechanism):
    """A lattice mechanism that adds noise, a lattice vector, whose law does not depend on the answer."""

    @abstractmethod
    def noise(self, m: int, bits: Bits | None = None) -> IntArray:
        """m independent noises (m, d) in lattice steps, within ±2**62; add them with `samplers.add_noise`."""

    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """Lattice answers (m, d), each with noise of its own."""
        return add_noise(images, self.noise(len(images), bits))

    @abstractmethod
    def loss_of_norm(self, norm: Loss) -> Loss:
        """`loss` of any two answers whose difference has this norm; ``math.inf`` where the norm is."""


def vector(v: ArrayLike, d: int, field: str = "v") -> FloatArray:
    """A finite float vector (d,); a plain number where d = 1."""
    values = np.asarray(v, dtype=np.float64)
    if values.ndim == 0 and d == 1:
        values = values[None]
    if values.shape != (d,):
        raise InvalidInput(field, f"shape {values.shape}", f"({d},)")
    if not np.isfinite(values).all():
        raise InvalidInput(field, "NaN or an infinity", "finite numbers")
    return values


def rows(values: ArrayLike, d: int, field: str) -> tuple[FloatArray, bool]:
    """(m, d) finite floats from one vector (d,) or many (m, d), and whether it was one. Values are never echoed."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim == 0 and d == 1:
        given = given[None]
    one = given.ndim == 1
    table = given[None] if one else given
    if table.ndim != 2 or table.shape[1] != d:
        raise InvalidInput(field, f"shape {given.shape}", f"({d},) or (m, {d})")
    if not np.isfinite(table).all():
        raise InvalidInput(field, "NaN or an infinity", "finite numbers")
    return table, one


def hull_field(hull: Any) -> SensitivityHull:
    """A SensitivityHull, or a one-line refusal of anything else."""
    if not isinstance(hull, SensitivityHull):
        raise InvalidInput("K", type(hull).__name__, "a SensitivityHull (see sensitivity_hull)")
    return hull
