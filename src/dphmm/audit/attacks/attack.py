"""`attack`: the beliefs of adversaries about a finished release, against the truth: for the data owner alone.

An adversary is a belief about the moves of people, and a use of the published answers. All know the plans,
which are public. Their own chain may be the public model, a wrong one, or a richer one whose hidden states say more
than a state does (the last two places, the hour, the person).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from dphmm._notebook import html_lines
from dphmm.accounting.ledger import Ledger
from dphmm.audit.attacks.truth import answer_of, begins_of, truth_of
from dphmm.audit.findings import Findings
from dphmm.audit.history import law_of_plan
from dphmm.audit.pairs import degrees
from dphmm.audit.released import ReleasedFile
from dphmm.audit.replay import Replay
from dphmm.audit.resampling import Interval, RowSubjects, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief, ObservationTable, likeliest_path
from dphmm.markov.model import MarkovModel
from dphmm.markov.smoothing import Observed, marginals
from dphmm.policy.graph import PolicyGraph
from dphmm.session.believing import believed_model
from dphmm.session.options import PlanChoices
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting, StepChoices, Subjects, checked_steps, names_chosen
from dphmm.statement.files import read_statement, statement_path
from dphmm.statement.release import ReleaseStatement
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray, IntArray

#: prior: the chain, no answers. memoryless: each answer by itself, all possible states alike. tracker: the filter.
#: smoother: all answers, later ones too. viterbi: the states of the likeliest path, certain of them.
METHODS = ("prior", "memoryless", "tracker", "smoother", "viterbi")


class SeenAnswer(NamedTuple):
    """One published answer and the plan it was drawn under."""

    t: int
    z: IntArray
    plan: StepPlan


@dataclass(frozen=True, eq=False)
class Adversary:
    """A method and a chain.

    ``states`` (H,) : the state that each hidden state of the chain is in; None for the states themselves, or the
    secrets of a chain that has them. ``start`` : as of a model; the chain's own by default.
    """

    name: str
    method: str
    chain: MarkovModel
    states: IntArray | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInput("adversary", self.method, f"one of {', '.join(METHODS)}")
        if self.states is None and self.chain.secrets is not None:
            object.__setattr__(self, "states", self.chain.secrets)
        if self.states is not None and len(self.states) != self.chain.n_states:
            got = f"{len(self.states)} states for a chain of {self.chain.n_states}"
            raise InvalidInput("states", got, "the state of every hidden state")

    def beliefs(self, seen: Sequence[SeenAnswer]) -> FloatArray:
        """The belief (T, N) about the state at each answer; rows sum to 1."""
        n = len(seen[0].plan.image)
        if self.states is None and self.chain.n_states != n:
            raise InvalidInput("adversary", f"a chain of {self.chain.n_states} states", f"one of {n}, or states of it")
        if self.method == "memoryless":
            return np.array([_alone(answer) for answer in seen])
        if self.method in ("prior", "tracker"):
            return self._seen(self._forward(seen), n)
        observations = self._observations(seen)
        prior = self._before(seen[0].t)
        if self.method == "smoother":
            smoothed = marginals(self.chain, Observed(prior, observations, seen[0].t))
            return smoothed if self.chain.secrets is not None else self._seen(smoothed, n)
        path = likeliest_path(self.chain, prior, observations, t=seen[0].t)
        certain = np.zeros((len(seen), self.chain.n_states))
        certain[np.arange(len(seen)), path] = 1.0
        return self._seen(certain, n)

    def _before(self, t: int) -> Belief:
        """The chain's belief about step t with nothing seen."""
        initial = Belief.initial(self.chain).latent
        start = self.chain.start if self.start is None else self.start
        moves = t if start == "before" else t - 1
        return initial.predict_many(self.chain, 1 if start == "before" else 2, moves) if moves else initial

    def _forward(self, seen: Sequence[SeenAnswer]) -> FloatArray:
        rows = np.empty((len(seen), self.chain.n_states))
        belief, t = self._before(seen[0].t), seen[0].t
        for number, answer in enumerate(seen):
            if answer.t > t:
                belief, t = belief.predict_many(self.chain, t + 1, answer.t - t), answer.t
            if self.method == "tracker":
                belief = self._learned(belief, answer)
            rows[number] = belief.probability
        return rows

    def _learned(self, belief: Belief, answer: SeenAnswer) -> Belief:
        """Bayes' rule. If a wrong chain leaves no state that the answer allows, it begins anew from the answer."""
        plain = None if self.states is not None else self._plainly(belief, answer)
        if plain is not None:
            return plain
        weights = self._weights(answer)
        possible = np.isfinite(weights)
        if not (possible & belief.support).any():
            belief = Belief(np.where(possible, -np.log(possible.sum()), -np.inf), possible)
        return belief.condition(np.where(possible, weights, 0.0), possible & belief.support)

    def _plainly(self, belief: Belief, answer: SeenAnswer) -> Belief | None:
        """Bayes' rule in plain floats, where they hold everything."""
        from dphmm.session.plan import likelihood_of

        fast = likelihood_of(answer.plan)
        weights = None if fast is None else fast.at(answer.z)
        return None if weights is None else belief.weighted(weights, np.ones(len(weights), dtype=np.bool_))

    def _weights(self, answer: SeenAnswer) -> FloatArray:
        """log Pr(z | hidden state) (H,), up to a constant; -inf where z excludes it."""
        plan = answer.plan
        # A state that the plan calls impossible is answered like its surrogate: a wrong chain may think it is there.
        excluded = plan.constraint.support & ~plan.still_possible(answer.z)
        weights = np.where(excluded, -np.inf, plan.log_likelihood(answer.z))
        return weights if self.states is None else np.asarray(weights[self.states])

    def _observations(self, seen: Sequence[SeenAnswer]) -> ObservationTable:
        values = np.array([self._weights(answer) for answer in seen])
        moves = np.diff(np.array([answer.t for answer in seen]), prepend=seen[0].t)
        return ObservationTable.of(values, moves=moves, logged=True)

    def _seen(self, hidden: FloatArray, n: int) -> FloatArray:
        if self.states is None:
            return hidden
        rows = np.zeros((len(hidden), n))
        np.add.at(rows.T, self.states, hidden.T)
        return rows


def _alone(answer: SeenAnswer) -> FloatArray:
    """The likelihood (N,) of one answer by itself, over the states that its plan calls possible, divided by its sum."""
    possible = answer.plan.still_possible(answer.z)
    logs = np.where(possible, answer.plan.log_likelihood(answer.z), -np.inf)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _figure(value: float) -> str:
    """Four digits, and never a power of ten: 15,490 rather than 1.549e+04."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@dataclass(frozen=True, eq=False)
class AttackReport:
    """The measures of each adversary's belief, over the rows whose truth is in a state.

    ``outside`` rows are in no state of the model. ``elsewhere``: the same measures of those of them whose place is
    known; there no belief in a state can be right. ``unit``: of the errors.
    """

    measured: tuple[Measured, ...]
    rows: int
    outside: int
    unit: str = "answer units"
    elsewhere: tuple[Measured, ...] = ()

    def __getitem__(self, name: str) -> Measured:
        return next(measures for measures in self.measured if measures.name == name)

    @property
    def share_outside(self) -> float:
        """The share of rows that are in no state of the model."""
        return self.outside / self.rows

    @property
    def lines(self) -> list[str]:
        """A table in prose, one adversary a line."""
        said = ["attacks on the true states (for the data owner alone, never to be published):"]
        for measures in self.measured:
            mean, error = measures.overall(), measures.intervals()["expected_error"]
            likely = f" ({_figure(error.low)} to {_figure(error.high)} {self.unit} for others like these)"
            others = "" if np.isnan(error.low) else likely
            said.append(
                f"  {measures.name}: expected error {_figure(mean['expected_error'])} {self.unit}{others}, "
                f"right {100 * mean['success']:.3g} % of the time, gives the truth {mean['probability']:.3g}, "
                f"entropy {mean['entropy']:.3g} bits; degree of protection of the truth {_figure(mean['degree'])}"
            )
        return [*said, *self._outside_lines]

    @property
    def _outside_lines(self) -> list[str]:
        """The rows that the lines above are not about, and the errors of adversaries there."""
        said = [f"  {self.outside} of {self.rows} rows ({100 * self.share_outside:.1f} %) are in no state of the model"]
        if self.outside:
            said[0] += ", and in none of the figures above"
        for measures in self.elsewhere:
            mean = measures.overall()
            said.append(
                f"    {measures.name}, of these: expected error {_figure(mean['expected_error'])} {self.unit} from the "
                "true place"
            )
        return said

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The measures for machines, overall and per step; ``outside``: overall, of rows in no state of the model."""
        others = {measures.name: measures for measures in self.elsewhere}
        return {
            measures.name: {
                "unit": self.unit,
                "overall": measures.overall(),
                "intervals": {
                    name: None if np.isnan(bounds.low) else [bounds.low, bounds.high]
                    for name, bounds in measures.intervals().items()
                },
                "per_step": {name: np.asarray(values).tolist() for name, values in measures.per_step().items()},
                "rows": self.rows,
                "rows_outside": self.outside,
                "outside": others[measures.name].overall() if measures.name in others else None,
            }
            for measures in self.measured
        }


def attack(
    released: Any,
    truth: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    *,
    adversaries: Sequence[str | Adversary] = METHODS,
    ledger: Ledger | None = None,
    query: str = "state",
    statement: str | os.PathLike[str] | None = None,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    varies: Sequence[str] = (),
    believe: MarkovModel | None = None,
    **choices: Unpack[PlanChoices],
) -> AttackReport:
    """Attack a finished release and measure the beliefs of the adversaries.

    Parameters
    ----------
    released, model, policy, space, epsilon, initials, step_choices, varies, choices : as `check_release`.
    truth : the trajectories that were released; a file or a table.
    ledger, query : where the releases were stored: it knows which row each subject began with, and which of several
        rows in one step was answered.
    statement : where the privacy statement is, if not beside a released file; without a ledger it says the latter. That
        it is the statement of these rows is not checked here: `check_release` compares them.
    adversaries : of "prior", "memoryless", "tracker", "smoother", "viterbi", who have the public model; or `Adversary`
        objects with chains of their own. They know where a subject is publicly known to begin.
    believe : another model, as for `dphmm.reconstruction.smooth`: one more adversary, the "believer", smooths with it.

    Raises InvalidInput where the truth is not that of the released rows, or a row was drawn under another plan.
    """
    varying = tuple(varies) or names_chosen(checked_steps(step_choices or {}))
    setting = Setting.of(model, policy, space, epsilon, query=query, varies=varying, **choices)
    subjects, begun = Subjects(setting, initials, step_choices), dict[tuple[Setting, str], list[Adversary]]()
    believed = believed_model(setting, believe)
    if believed is not None:
        adversaries = [*adversaries, Adversary("believer", "smoother", believed)]
    by_clock = any((chosen.chain if isinstance(chosen, Adversary) else model).example_origin for chosen in adversaries)
    who = _who(adversaries, setting)
    findings = Findings()
    # A row that was not asked shows nothing.
    file = ReleasedFile.read(released, space).answered()
    if len(set(zip(file.users, file.step.tolist(), strict=True))) < len(file):
        raise InvalidInput("released", "a step of a user that stands twice", "a release: every step once")
    rule = setting.answer or answer_of(ledger, query, file, _stated(released, statement))
    true = truth_of(file, truth, model, space, begins_of(ledger, query, file), rule)
    if true.outside.all():
        raise InvalidInput("truth", "no row in a state that the model has", "the trajectories that were released")
    replay = Replay(subjects, None, findings, 0)
    inside, elsewhere = ([Scores(space) for _ in who] for _ in range(2))
    hidden, known = _Degrees(), true.known
    for user, rows in file.by_user().items():
        origin = file.origin(rows[0], model.step) if by_clock else ""
        seen = _seen(user, rows, file, replay, findings, origin)
        plans = {row: answer.plan for row, answer in zip(rows, seen, strict=True) if known[row]}
        targets = {}
        for row, plan in plans.items():
            state = -1 if true.outside[row] else int(true.states[row])
            distances = space.distances(space.own_answers, true.answers[row])
            targets[row] = Target(true.answers[row], distances, state, 0 if state < 0 else hidden.of(plan, state))
        begins = subjects.of(user), origin
        if begins not in begun:
            begun[begins] = _who(adversaries, *begins)
        for number, adversary in enumerate(begun[begins]):
            beliefs = adversary.beliefs(seen)
            for row, answer, belief in zip(rows, seen, beliefs, strict=True):
                if row in targets:
                    scores = elsewhere if true.outside[row] else inside
                    scores[number].add(user, answer.t, belief, targets[row])
    return AttackReport(
        tuple(score.done(attacker.name) for attacker, score in zip(who, inside, strict=True)),
        len(file),
        int(true.outside.sum()),
        space.unit,
        tuple(score.done(attacker.name) for attacker, score in zip(who, elsewhere, strict=True) if len(score)),
    )


def _who(adversaries: Sequence[str | Adversary], setting: Setting, origin: str | None = None) -> list[Adversary]:
    """The adversaries of subjects who begin alike; those called by name have the public model.

    Steps of their chains are counted from the ``origin`` of the subjects, where slots go by a clock.
    """
    start = setting.options.start
    who = [
        adversary if isinstance(adversary, Adversary) else Adversary(adversary, adversary, setting.model, start=start)
        for adversary in adversaries
    ]
    return [replace(adversary, chain=adversary.chain.counted_from(origin)) for adversary in who]


def _stated(released: Any, statement: str | os.PathLike[str] | None) -> ReleaseStatement | None:
    """The privacy statement, where there is one."""
    if statement is None and isinstance(released, (str, os.PathLike)):
        statement = statement_path(released)
        if not statement.exists():
            return None
    return None if statement is None else read_statement(statement)


def _seen(
    user: str, rows: list[int], file: ReleasedFile, replay: Replay, findings: Findings, origin: str
) -> list[SeenAnswer]:
    history = file.answers(rows)
    plans = replay.plans(user, history, origin)
    if plans is None:
        raise InvalidInput("released", findings.sentences[-1], "answers drawn under the plans of these choices")
    return [SeenAnswer(answer.t, answer.z, plan) for answer, plan in zip(history, plans, strict=True)]


class _Degrees:
    """Degrees of protection, counted once for each plan."""

    def __init__(self) -> None:
        self._of: dict[str, IntArray] = {}

    def of(self, plan: StepPlan, state: int) -> int:
        """The number of possible states that a state is hidden among."""
        if plan.hash not in self._of:
            self._of[plan.hash] = degrees(law_of_plan(plan), plan.image, plan.constraint.support, plan.epsilon)
        return int(self._of[plan.hash][state])


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of an adversary's belief, answer by answer (n,), in the order of ``users`` and ``t``.

    expected_error : the mean distance, under the belief, to the true answer (answer units; on a map metres on the
    ground to the true place). guess_error : the distance of its mean. success : 1 where the likeliest state is the true
    one. probability : of the true state. entropy : of the belief, in bits. degree : the number of possible states that
    the truth was hidden among (0 where it was not possible).
    """

    name: str
    users: tuple[str, ...]
    t: IntArray
    expected_error: FloatArray
    guess_error: FloatArray
    success: FloatArray
    probability: FloatArray
    entropy: FloatArray
    degree: FloatArray

    def overall(self) -> dict[str, float]:
        """The mean of each measure over all answers."""
        return {name: float(getattr(self, name).mean()) for name in MEASURES}

    def intervals(self) -> dict[str, Interval]:
        """The same with 95 % bootstrap intervals, for other subjects like these."""
        whose = RowSubjects.of(self.users, len(self.t))
        once = np.ones(len(self.t))
        return {
            name: interval(whose.sums(getattr(self, name), once), lambda sums: ratio(sums[:, 0], sums[:, 1]))
            for name in MEASURES
        }

    def per_step(self) -> dict[str, Any]:
        """The mean of each measure at each step: ``t``, the number of answers, and the measures."""
        steps, at, counts = np.unique(self.t, return_inverse=True, return_counts=True)
        table: dict[str, Any] = {"t": steps, "answers": counts}
        for name in MEASURES:
            table[name] = np.bincount(at.reshape(-1), weights=getattr(self, name)) / counts
        return table


MEASURES = ("expected_error", "guess_error", "success", "probability", "entropy", "degree")


class Target(NamedTuple):
    """The truth of one step, which an adversary looks for.

    The true answer (d,), its distance (N,) from every state's answer (on a map metres on the ground), the true state,
    -1 where it is in none, and the number of states that hide it.
    """

    answer: FloatArray
    distances: FloatArray
    state: int
    degree: int


class Scores:
    """Collects the measures of beliefs, one at a time."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._answers = np.ascontiguousarray(space.own_answers)
        self._rows: list[tuple[float, ...]] = []
        self._keys: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, user: str, t: int, belief: FloatArray, target: Target) -> None:
        """One belief (N,) about a step whose truth is known here."""
        from dphmm._kernels.beliefs import measured

        error, success, share, bits, mean = measured(belief, self._answers, target.distances, target.state)
        off = float(self._space.distances(mean, target.answer))
        self._rows.append((error, off, success, share, bits, float(target.degree)))
        self._keys.append((user, t))

    def done(self, name: str) -> Measured:
        """The measures of all."""
        columns = np.array(self._rows, dtype=np.float64).reshape(-1, len(MEASURES)).T
        users, t = tuple(user for user, _ in self._keys), np.array([t for _, t in self._keys], dtype=np.int64)
        return Measured(name, users, t, *columns)
