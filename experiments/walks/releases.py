"""Walks released by simulation, and what is known of every step: to the public, and to whoever knows the truth.

Answers are drawn as a session draws them, or by one of the papers' continuous mechanisms. A session knows exact
mechanisms alone. The continuous ones are put on the same bodies here, with the same beliefs, so that two simulated
releases differ in the noise and in nothing else. Nothing here releases anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dphmm import MarkovModel

# A mechanism of one's own checks its arguments as those of the package do.
from dphmm._checks import exact_epsilon
from dphmm.errors import InvalidInput
from dphmm.markov import Belief

# `smooth` smooths what a session released, and there is no session here.
from dphmm.markov.filtering import ObservationTable, likeliest_path
from dphmm.markov.smoothing import Observed, marginals
from dphmm.mechanisms import KNorm, Laplace, PlanarIsotropic

# The answer loop of these mechanisms is here: no session takes them.
from dphmm.mechanisms.base import hull_field, rows, vector
from dphmm.policy import DeltaSet, PolicyGraph, Support, complete, radius, transition
from dphmm.samplers import default_bits

# Floats from the words of `Bits`, for a continuous mechanism.
from dphmm.samplers.uniform import exponentials, unit_floats
from dphmm.sensitivity import SensitivityHull
from dphmm.session import Position, Setting, StepPlan, estimate

# The session's own draw and likelihood, step by step: `ReleaseSession` takes no continuous mechanism beside them.
from dphmm.session.answer import answer_under
from dphmm.session.smoothing import likelihood_rows
from dphmm.states import Lattice
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray
from experiments.walks.studies import OTHERS, Fold, Study


class PlanarLaplace:
    """Density ∝ exp(-ε|z - answer|/r), r the longest required difference: distance instead of the body's norm.

    The mechanism of geo-indistinguishability (Andrés et al., CCS 2013) at ε/r, so that every pair that K asks for loses
    at most ε. In the plane; floats, for comparison.
    """

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        self.epsilon = exact_epsilon(epsilon)
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
    "planar-isotropic": PlanarIsotropic,
    "knorm": KNorm,
    "laplace": Laplace,
    "planar-laplace": PlanarLaplace,
}


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

    def __init__(self, plan: StepPlan, frame: Lattice) -> None:
        self._plan, self._frame = plan, frame

    def answer(self, position: Position, state: int, bits: Bits) -> Answer:
        z = answer_under(self._plan, np.array([state]), bits)[0][0]
        rows, posterior = likelihood_rows(self._plan, z[None]), position.condition(self._plan, z)
        return Answer(self._frame.to_answers(z), posterior, rows.values[0], bool(rows.logged[0]))


class ContinuousLaw:
    """Algorithm 2 of the DPHMM paper with another mechanism on the plan's body."""

    def __init__(self, plan: StepPlan, frame: Lattice, mechanism: KNorm | Laplace | PlanarLaplace) -> None:
        self._answers = frame.to_answers(plan.image)
        self._support = plan.constraint.support
        self._mechanism = mechanism

    def answer(self, position: Position, state: int, bits: Bits) -> Answer:
        z = self._mechanism.sample(self._answers[state], bits)
        logs = self._mechanism.log_likelihood(z, self._answers)
        row = np.where(self._support, logs, -np.inf)
        return Answer(z, position.prior.condition(logs, self._support), row, True)


def law_of(name: str, plan: StepPlan, frame: Lattice) -> Law:
    """The law of a plan's answers. A public constant stays one, whatever the mechanism."""
    if name not in CONTINUOUS or plan.constant:
        return ExactLaw(plan, frame)
    return ContinuousLaw(plan, frame, CONTINUOUS[name](plan.hull, plan.epsilon))


def planned_with(name: str) -> str:
    """The mechanism that bodies are planned for: they do not hang on it, so a continuous one has any."""
    return "discrete-knorm" if name in CONTINUOUS else name


#: Policies by the papers' names; DPLS is differential privacy on location sets (CCS 2015).
UTIL, TRANS, COMPLETE = "Gutil", "Gtrs", "complete"


@dataclass(frozen=True)
class Choices:
    """How walks are released. ``delta`` None: the plan set is the support. ``radius`` in metres, for Gutil alone."""

    policy: str
    mechanism: str
    epsilon: str = "1"
    delta: str | None = None
    radius: float | None = None
    fit: str = OTHERS

    def graph(self, fold: Fold) -> PolicyGraph:
        """The policy over the states of a fold."""
        if self.policy == UTIL:
            return radius(fold.space, self.radius)
        return transition(fold.model) if self.policy == TRANS else complete(fold.model.n_states)

    def setting(self, fold: Fold) -> Setting:
        """The setting of a fold."""
        constraint = Support() if self.delta is None else DeltaSet(float(self.delta))
        mechanism = planned_with(self.mechanism)
        return Setting.of(
            *(fold.model, self.graph(fold), fold.space, self.epsilon),
            start="before",
            constraint=constraint,
            mechanism=mechanism,
            protection="nearest",  # Algorithm 1 of the paper
        )


@dataclass(frozen=True, eq=False)
class Released:
    """Steps (n,) of walks, one walk after another.

    Places (n, 2) in metres: ``truth``, ``z``, ``estimate`` (posterior mean), ``smoothed`` (the mean given the whole
    release), ``blind`` (the mean by start and model alone, as if nothing were released). Cells (n,) of the whole grid:
    ``cell`` is the true one, ``estimate_cell`` the likeliest now, ``smoothed_cell`` given all answers, ``path_cell``
    on the likeliest path. ``degree``: how many plan states the true one, or its surrogate, hides among;
    ``degree_possible``: how many possible states. ``drift``: the true state was outside the plan set.
    """

    walk: IntArray
    t: IntArray
    truth: FloatArray
    z: FloatArray
    estimate: FloatArray
    smoothed: FloatArray
    blind: FloatArray
    cell: IntArray
    estimate_cell: IntArray
    smoothed_cell: IntArray
    path_cell: IntArray
    degree: IntArray
    degree_possible: IntArray
    plan_size: IntArray
    support_size: IntArray
    drift: BoolArray
    constant: BoolArray
    cost: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[Released]) -> Released:
        """The steps of several releases."""
        return cls(
            **{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)}
        )


def release(study: Study, choices: Choices, bits: Sequence[Bits]) -> Released:
    """Release every walk of a study, each with bits of its own."""
    settings: dict[int, Setting] = {}
    parts = []
    for number in range(len(study.walks)):
        place = study.fold_of(number, choices.fit)
        fold = study.fold(place, choices.fit)
        if place not in settings:
            settings[place] = choices.setting(fold)
        parts.append(release_walk(study, fold, settings[place], choices.mechanism, number, bits[number]))
    return Released.joined(parts)


def release_walk(study: Study, fold: Fold, setting: Setting, mechanism: str, number: int, bits: Bits) -> Released:
    """Release one walk, its first cell known to everybody."""
    walk = study.walks[number]
    model = fold.known_start(int(walk.cells[0]))
    states = fold.state_of[walk.cells[1:]]
    setting = setting.with_model(model)
    position = start = setting.first()
    seen = _Seen(fold, len(states), mechanism)
    for at, state in enumerate(states.tolist()):
        position = seen.step(at, model, setting.plan(position), position, state, bits)
    return seen.released(number, study.truth(walk), walk.cells[1:], model, start)


class _Seen:
    """The steps of one walk as they come."""

    def __init__(self, fold: Fold, steps: int, mechanism: str) -> None:
        self._fold, self._steps, self._mechanism = fold, steps, mechanism
        self._z, self._estimate = np.empty((steps, 2)), np.empty((steps, 2))
        self._rows, self._logged = np.empty((steps, fold.model.n_states)), np.empty(steps, dtype=np.bool_)
        self._counts = np.empty((6, steps), dtype=np.int64)
        self._constant, self._cost = np.empty(steps, dtype=np.bool_), np.empty(steps)
        self._law: tuple[StepPlan, Law] | None = None

    def step(self, at: int, model: MarkovModel, plan: StepPlan, position: Position, state: int, bits: Bits) -> Position:
        """Release one step; the position of the next."""
        if self._law is None or self._law[0] is not plan:
            self._law = plan, law_of(self._mechanism, plan, self._fold.space.frame)
        answer = self._law[1].answer(position, state, bits)
        said = estimate(answer.posterior, self._fold.space)
        self._z[at], self._estimate[at] = answer.z, said.answer
        self._rows[at], self._logged[at] = answer.row, answer.logged
        constraint = plan.constraint
        degrees = [degree(plan, state, among) for among in (constraint.plan, constraint.support)]
        sizes = [int(constraint.plan.sum()), int(constraint.support.sum()), not constraint.plan[state]]
        self._counts[:, at] = [said.state, *degrees, *sizes]
        self._constant[at], self._cost[at] = plan.constant, float(plan.cost)
        return position.predict(model, answer.posterior)

    def released(
        self, number: int, truth: FloatArray, cells: IntArray, model: MarkovModel, start: Position
    ) -> Released:
        """All of it, with what the whole says of every step."""
        seen, cell_of = ObservationTable.of(self._rows, logged=self._logged), self._fold.cell_of
        belief, path = marginals(model, Observed(start.prior, seen)), likeliest_path(model, start.prior, seen)
        likeliest, degree_, possible, plan_size, support_size, drift = self._counts
        return Released(
            walk=np.full(self._steps, number),
            t=np.arange(1, self._steps + 1),
            truth=truth,
            z=self._z,
            estimate=self._estimate,
            smoothed=belief @ self._fold.space.answers,
            blind=_unseen(model, start, self._steps) @ self._fold.space.answers,
            cell=cells,
            estimate_cell=cell_of[likeliest],
            smoothed_cell=cell_of[np.argmax(belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-12), axis=1)],
            path_cell=cell_of[path],
            degree=degree_,
            degree_possible=possible,
            plan_size=plan_size,
            support_size=support_size,
            drift=drift.astype(np.bool_),
            constant=self._constant,
            cost=self._cost,
        )


def _unseen(model: MarkovModel, start: Position, steps: int) -> FloatArray:
    """The beliefs (T, N) of somebody who sees no answer."""
    belief, rows = start.prior, np.empty((steps, model.n_states))
    for at in range(steps):
        rows[at] = belief.probability
        belief = belief.predict(model, t=at + 2)
    return rows


def degree(plan: StepPlan, state: int, among: BoolArray) -> int:
    """How many states of a set a state hides among (Def. 5.2); the state itself, or its surrogate, counts."""
    return int(plan.mechanism.degrees(plan.image, np.array([state]), np.flatnonzero(among))[0])
