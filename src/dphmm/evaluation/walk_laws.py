"""How a simulated release draws its answers: as a session does, or by one of the papers' continuous mechanisms.

A session knows exact mechanisms alone. The continuous ones are put on the same bodies here, with the same beliefs, so
that what differs between two simulated releases is the noise and nothing else. Nothing here releases anything.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.mechanisms import MECHANISM_CHOICES, KNorm, Laplace, Mechanism, PlanarIsotropic
from dphmm.mechanisms.base import hull_field, rows, vector
from dphmm.samplers.entropy import default_bits
from dphmm.samplers.uniform import exponentials, unit_floats
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.session.answer import answer_under
from dphmm.session.plan import Plan
from dphmm.session.smoothing import likelihood_row
from dphmm.session.step import Position
from dphmm.states.lattice import Lattice
from dphmm.types import Bits, Exact, FloatArray


class PlanarLaplace(Mechanism):
    """Density ∝ exp(-ε|z - answer|/r), r the longest required difference: distance instead of the body's norm.

    The mechanism of geo-indistinguishability (Andrés et al., CCS 2013) at ε/r, so that every pair that K asks for loses
    at most ε. In the plane; floats, for comparison.
    """

    name: ClassVar[str] = "planar-laplace"
    exact: ClassVar[bool] = False

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(epsilon)
        hull = hull_field(K)
        if hull.dimension != 2 or hull.rank == 0:
            raise InvalidInput("K", f"rank {hull.rank} in {hull.dimension} dimensions", "a body in the plane")
        self.radius = float(np.linalg.norm(hull.vertices, axis=1).max())

    @property
    def expected_error(self) -> float:
        """E‖noise‖² = 6r²/ε²."""
        return 6.0 * self.radius**2 / float(self.epsilon) ** 2

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """A noisy copy of one answer (2,) or of each row (m, 2): a length of law Gamma(2, r/ε) in any direction."""
        table, one = rows(answer, 2, "answer")
        source, m = default_bits(bits), len(table)
        length = exponentials(source, 2 * m).reshape(2, m).sum(axis=0) * self.radius / float(self.epsilon)
        angle = 2 * np.pi * unit_floats(source, m)
        z = table + length[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.asarray(z[0] if one else z)

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """-ε|z - answer|/r for each row of ``answers`` (N, 2)."""
        differences = vector(z, 2, "z") - rows(answers, 2, "answers")[0]
        return np.asarray(-float(self.epsilon) / self.radius * np.linalg.norm(differences, axis=1))

    def loss(self, v: ArrayLike) -> float:
        """ε|v|/r."""
        return float(self.epsilon) * float(np.linalg.norm(vector(v, 2))) / self.radius


CONTINUOUS: dict[str, type[KNorm] | type[Laplace] | type[PlanarLaplace]] = {
    law.name: law for law in (PlanarIsotropic, KNorm, Laplace, PlanarLaplace)
}
LAWS = (*MECHANISM_CHOICES, *CONTINUOUS)


class Answer(NamedTuple):
    """An answer (d,), the belief after it, and how likely each state (N,) makes it, in logs where ``logged``."""

    z: FloatArray
    posterior: Belief
    row: FloatArray
    logged: bool


class Law(Protocol):
    """How the answers of one plan are drawn."""

    def answer(self, position: Position, state: int, bits: Bits) -> Answer:
        """An answer about a state, at a position."""
        ...


class ExactLaw:
    """What a session does."""

    def __init__(self, plan: Plan, frame: Lattice) -> None:
        self._plan, self._frame = plan, frame

    def answer(self, position: Position, state: int, bits: Bits) -> Answer:
        z = answer_under(self._plan, np.array([state]), bits)[0][0]
        row = np.empty(len(self._plan.image))
        logged = likelihood_row(self._plan, z, row, f"step {position.t}")
        return Answer(self._frame.to_answers(z), position.posterior(self._plan, z), row, logged)


class ContinuousLaw:
    """Algorithm 2 of the DPHMM paper with another mechanism on the plan's body."""

    def __init__(self, plan: Plan, frame: Lattice, mechanism: Mechanism) -> None:
        self._answers = frame.to_answers(plan.image)
        self._support = plan.constraint.support
        self._mechanism = mechanism

    def answer(self, position: Position, state: int, bits: Bits) -> Answer:
        z = self._mechanism.sample(self._answers[state], bits)
        logs = self._mechanism.log_likelihood(z, self._answers)
        row = np.where(self._support, logs, -np.inf)
        return Answer(z, position.prior.condition(logs, self._support), row, True)


def law_of(name: str, plan: Plan, frame: Lattice) -> Law:
    """The law of a plan's answers. A public constant stays one, whatever the mechanism."""
    if name not in CONTINUOUS or plan.constant:
        return ExactLaw(plan, frame)
    if len(plan.hulls) > 1:
        raise InvalidInput("mechanism", name, "an exact one: these plans have several bodies")
    return ContinuousLaw(plan, frame, CONTINUOUS[name](plan.hulls[0], plan.epsilon))


def planned_with(name: str) -> str:
    """The mechanism that bodies are planned for: they do not hang on it, so a continuous one has any."""
    return "discrete-knorm" if name in CONTINUOUS else name
