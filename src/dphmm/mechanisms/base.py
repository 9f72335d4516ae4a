"""The mechanism protocol: one object samples and says how likely each answer makes what it sampled.

Release, inference, audit and attack all use this object, so they cannot disagree about the distribution.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_epsilon
from dphmm.errors import DphmmError, InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.body import add_noise
from dphmm.sensitivity.hull import SensitivityHull, largest_norm
from dphmm.sensitivity.protection import degree_among
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Bits, BoolArray, Exact, FloatArray, FloatLaw, IntArray, Loss


class Words(NamedTuple):
    """The sentences of statements about releases by one kind of mechanism.

    ``noise``: the law that answers each state. ``not_protected``: further facts that answers tell.
    """

    noise: str = (
        "One noise distribution for all states of a step. Where the answers of policy neighbours differ along one line "
        "or plane only, the noise is widened to all directions: no release excludes a possible state for certain."
    )
    not_protected: tuple[str, ...] = ()


class LatticeMechanism(ABC):
    """A mechanism that answers with lattice points, each with exactly the stated probability: what a release uses.

    Immutable; everything about it is public. A new one is one file that says all of this, a line in
    `dphmm.mechanisms.registry`, a proof page, and a word in docs/commands.md. Tests that try every mechanism fail then,
    and say what each of them needs.
    """

    #: What `describe` and the registry call it.
    name: ClassVar[str]
    #: Its input: the hull of the differences to hide, or the answers of a plan and the edges between them.
    made_from: ClassVar[Literal["hull", "answers"]] = "hull"
    #: Whether its law asks nothing of answers but which they are, so that they may be names.
    for_labels: ClassVar[bool] = False
    #: Whether a release may ask for it by name.
    choosable: ClassVar[bool] = True
    words: ClassVar[Words] = Words()
    #: The law that an audit knows how to judge from its integers, where it is not named as the mechanism is.
    law_name: ClassVar[str | None] = None
    #: Whether it makes a body of full dimension of a flat hull by itself, so that nothing has to be thickened.
    fills_space: ClassVar[bool] = False

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
    def loss(self, v: ArrayLike) -> float:
        """The largest log-ratio between two answers that differ by v (d,), over everything that can come out."""

    def describe(self) -> dict[str, str]:
        """The facts that tell this mechanism from another on the same hull."""
        return {"name": self.name, "epsilon": str(self.epsilon)}

    def __repr__(self) -> str:
        parameters = (f"{key}={value}" for key, value in self.describe().items() if key != "name")
        return f"{type(self).__name__}({', '.join(parameters)})"

    @property
    @abstractmethod
    def frame(self) -> Lattice:
        """The lattice of its answers."""

    @abstractmethod
    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """The published answers (m, d) for lattice answers (m, d), each drawn by itself."""

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """The published answer for one answer (d,) or for each row (m, d), in answer units; drawn in lattice integers.

        ``bits``: None for secure bits. Raises InvalidInput for answers that are not on the lattice.
        """
        table, single = rows(answer, self.frame.dimension, "answer")
        z = self.frame.to_answers(self.answer(self.frame.to_lattice(table), bits))
        return z[0] if single else z

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """log P(z | answer) for each row of ``answers`` (N, d), up to a common constant; -inf where impossible."""
        d = self.frame.dimension
        point = self.frame.to_lattice(vector(z, d, "z"))
        return self.log_likelihood_lattice(point, self.frame.to_lattice(rows(answers, d, "answers")[0]))

    @abstractmethod
    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """`log_likelihood` of the lattice point z (d,) for lattice answers (N, d)."""

    @property
    @abstractmethod
    def log_normaliser(self) -> float:
        """log of the sum of exp(`log_likelihood_lattice`) over all z, for comparing laws of different hulls."""

    @abstractmethod
    def loss_lattice(self, v: ArrayLike) -> Loss:
        """`loss` of a lattice vector (d,), exactly; ``math.inf`` where the two answers share no output."""

    @abstractmethod
    def largest_loss_among(self, points: IntArray) -> Loss:
        """A bound on the loss of any two lattice answers (n, d) that it was made for."""

    @abstractmethod
    def possible(self, z: IntArray, images: IntArray) -> BoolArray:
        """True where the lattice point z (d,) does not exclude a lattice answer (N, d), decided in integers."""

    @abstractmethod
    def degrees(self, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
        """With how many of the states ``among`` (k,) each of ``targets`` (m,) loses at most ε.

        ``image`` (N, d) is the lattice answer of every state.
        """

    @property
    def float_law(self) -> FloatLaw | None:
        """The law as the compiled filter reads it; None where floats do not serve it."""
        return None


class NoiseMechanism(LatticeMechanism):
    """A lattice mechanism that adds noise, a lattice vector, whose law does not depend on the answer."""

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(epsilon)
        self._hull: SensitivityHull = hull_field(K)

    @classmethod
    def for_hull(cls, K: SensitivityHull, epsilon: Exact) -> Self:
        """The mechanism that hides the differences in K."""
        return cls(K, epsilon)

    @property
    def frame(self) -> Lattice:
        """The lattice of the hull."""
        return self._hull.frame

    @property
    def hull(self) -> SensitivityHull:
        """The body that shapes the noise: answers whose difference is in it lose at most ε."""
        return self._hull

    def largest_loss_among(self, points: IntArray) -> Loss:
        """The largest loss between two of the lattice answers (n, d) (Theorem 6.3 with the mechanism's own loss)."""
        return self.loss_of_norm(largest_norm(self.hull, points))

    def possible(self, z: IntArray, images: IntArray) -> BoolArray:
        """True where lattice answers (N, d) lie on the line or plane of z."""
        if not len(self.hull.equations):
            return np.ones(len(images), dtype=np.bool_)
        return np.asarray(~np.any(((z - images) @ self.hull.equations.T) != 0, axis=1))

    def degrees(self, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
        """For each target how many states differ from it by a vector of the body."""
        return degree_among(self.hull, image, targets, among)

    @abstractmethod
    def noise(self, m: int, bits: Bits | None = None) -> IntArray:
        """m independent noises (m, d) in lattice steps, within ±2**62; add them with `samplers.add_noise`."""

    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """Lattice answers (m, d), each with noise of its own."""
        return add_noise(images, self.noise(len(images), bits))

    @abstractmethod
    def loss_of_norm(self, norm: Loss) -> Loss:
        """`loss` of any two answers whose difference has this norm; ``math.inf`` where the norm is."""


class AnswerMechanism(LatticeMechanism):
    """A lattice mechanism over the answers of a plan: each has a law of its own over the same set."""

    made_from: ClassVar[Literal["hull", "answers"]] = "answers"

    @classmethod
    @abstractmethod
    def for_policy(
        cls, policy: PolicyGraph, space: StateSpace, epsilon: Exact, *, constraint: Constraint
    ) -> AnswerMechanism:
        """The mechanism for the answers of the plan states and the policy's contracted edges between them."""


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
    floats = np.asarray(values, dtype=np.float64)
    if floats.ndim == 0 and d == 1:
        floats = floats[None]
    single = floats.ndim == 1
    table = floats[None] if single else floats
    if table.ndim != 2 or table.shape[1] != d:
        raise InvalidInput(field, f"shape {floats.shape}", f"({d},) or (m, {d})")
    if not np.isfinite(table).all():
        raise InvalidInput(field, "NaN or an infinity", "finite numbers")
    return table, single


def hull_field(hull: Any) -> SensitivityHull:
    """A SensitivityHull, or a one-line refusal of anything else."""
    if not isinstance(hull, SensitivityHull):
        raise InvalidInput("K", type(hull).__name__, "a SensitivityHull (see sensitivity_hull)")
    return hull


class Uncertified(DphmmError):
    """Weights that lose more than ε, or could not be shown not to: they are never drawn from."""
