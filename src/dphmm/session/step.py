"""Algorithm 2 of the DPHMM paper as a pure step on public data (with errata 12, 15, 21 and docs/theory.md 3 and 6).

predict → constraint and surrogates → contracted policy → protection → body → mechanism → (true state) → condition

`Likelihood` says how likely a plan makes an answer, in plain floats: exp(-ε·norm) of every state at once, without
logs. A staircase is decided exactly. With v = |normal·(z − image)|, o the offset of a facet and a its allowance, the
steps to a facet are floor(R), R = (v + o − 1 − a)/o. The kernel has R up to a factor 1 ± 2**-51 and adds 2**-48 of
it, which passes no integer k > R: k − R is at least 1/o, and R·2**-47 less than that while v + o < 2**46. Plans and
answers beyond that bound, flat bodies, and several bodies in one plan have none here; `Plan.log_likelihood` serves
them.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.base import FloatLaw
from dphmm.policy.constraint import Constraint, Support, delta_states
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.types import BoolArray, FloatArray, IntArray

_ROOM = 2.0**44
_LARGEST_KEPT = 2**21


def exact_room() -> float:
    """The bound of exact floats."""
    return _ROOM


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What the kernel reads of a plan; ``normals`` (m, d) and ``room`` are for the answers.

    ``columns`` (d, N) are the states' answers, ``inverses`` (m,) are 1/offset, ``shifts`` (m,) what a staircase adds.
    Where states are released as others, ``columns`` (d, P) are of the plan states of ``contracted`` alone.
    """

    columns: FloatArray
    inverses: FloatArray
    shifts: FloatArray
    kind: int
    rate: float
    table: FloatArray
    normals: FloatArray
    room: float
    contracted: Constraint | None

    @classmethod
    def of(cls, plan: Plan) -> Likelihood | None:
        """The likelihood of a plan, or None where it is not of the kind that floats serve exactly."""
        law = _law_of(plan)
        if law is None:
            return None
        normals, inverses, shifts, longest, largest = _kernels.likelihood.facets_of(*law[:3])
        contracted = plan.constraint if plan.constraint.contracted else None
        numbers = np.arange(len(plan.image)) if contracted is None else contracted.plan_states
        columns, farthest = _kernels.likelihood.columns_of(plan.image, numbers)
        if longest * farthest >= _ROOM or largest >= _ROOM:
            return None
        room = _ROOM / longest
        return cls(columns, inverses, shifts, law.kind, law.rate, law.table, normals, room, contracted)

    @property
    def size(self) -> int:
        """m·N, or m·P, the numbers of ``projected``."""
        return len(self.inverses) * len(self.columns[0])

    @cached_property
    def projected(self) -> FloatArray:
        """normals·answer (m, N) or (m, P): for whoever asks again and again."""
        return _kernels.likelihood.projections(self.normals, self.columns)

    def holds(self, z: IntArray) -> bool:
        """Whether answers (..., d) are near enough for exact floats."""
        return max(map(abs, z.ravel().tolist())) < self.room

    def at(self, z: IntArray) -> FloatArray | None:
        """Pr(z | s) (N,) up to a constant of the plan; None for an answer (d,) too far away."""
        if not self.holds(z):
            return None
        facets = (self.normals, self.inverses, self.shifts)
        out = _kernels.likelihood.likelihood_of_points(self.columns, *facets, z, self.kind, self.rate, self.table)
        within = self.contracted
        return out if within is None else _kernels.likelihood.as_released(out, within.plan_states, within.surrogate)

    def of_answers(self, answers: IntArray) -> FloatArray | None:
        """`at` of several answers (k, d), in rows (k, N); None where one of them is too far away."""
        if not self.holds(answers):
            return None
        facets = (self.normals, self.inverses, self.shifts)
        rows = _kernels.likelihood.likelihood_of_answers(
            self.columns, *facets, answers, self.kind, self.rate, self.table
        )
        within = self.contracted
        if within is None:
            return rows
        of_state = np.empty((len(rows), len(within.surrogate)))
        of_state[:, within.plan_states] = rows
        return of_state[:, within.surrogate]


_KNOWN: WeakKeyDictionary[Plan, Likelihood | None] = WeakKeyDictionary()


def likelihood_of(plan: Plan) -> Likelihood | None:
    """`Likelihood.of`, made once for a plan unless it is very large."""
    if plan in _KNOWN:
        return _KNOWN[plan]
    made = Likelihood.of(plan)
    if made is None or made.size <= _LARGEST_KEPT:
        _KNOWN[plan] = made
    return made


def updated(prior: Belief, plan: Plan, z: IntArray) -> Belief | None:
    """The prior given an answer z (d,), as `Likelihood.at` and `Belief.weighted` have it; None where floats do not do.

    Nothing is kept for a second answer: with a plan of its own at every step there is none.
    """
    law = _law_of(plan)
    if law is None or prior.row is None:
        return None
    seen, n = plan.constraint, prior.n_states
    posterior, remaining = np.empty(n), np.empty(n, dtype=np.bool_)
    released = plan.lattice, seen.support, seen.plan_states, seen.surrogate
    facets, falls = law[:3], law[3:]
    fits = _kernels.likelihood.update(
        prior.row, prior.support, z, *released, *facets, *falls, _ROOM, posterior, remaining
    )
    return Belief.of_row(posterior, remaining) if fits else None


def _law_of(plan: Plan) -> FloatLaw | None:
    """The law of a plan of one body, where floats serve it."""
    return plan.mechanisms[0].float_law if len(plan.mechanisms) == 1 else None


class Position(NamedTuple):
    """Where a subject's releases stand, as anybody can compute it: the belief before step ``t``, given all before."""

    t: int
    prior: Belief

    @classmethod
    def first(cls, model: MarkovModel, options: Options) -> Position:
        """Before step 1. start="before": the initial distribution describes t = 0, one transition earlier."""
        initial = Belief.initial(model)
        return cls(1, initial.predict(model, t=1) if options.start == "before" else initial)

    def plan_set(self, options: Options) -> BoolArray:
        """ΔX_t (N,): the support, or a δ-set of the prior."""
        if isinstance(options.constraint, Support):
            return self.prior.support
        return delta_states(self.prior.probability, self.prior.support, options.constraint.exact)

    def posterior(self, plan: Plan, z: IntArray) -> Belief:
        """The belief given this step's release, too."""
        posterior = updated(self.prior, plan, z)
        if posterior is None:
            return self.prior.condition(plan.log_likelihood(z), plan.still_possible(z))
        return posterior

    def predict(self, model: MarkovModel, now: Belief) -> Position:
        """The position one transition later."""
        return Position(self.t + 1, now.predict(model, t=self.t + 1))

    def predict_through(self, model: MarkovModel, through: int) -> Position:
        """The position at step ``through`` when nothing is published from this one on."""
        return Position(through, self.prior.predict_many(model, self.t + 1, through - self.t))

    def skip(self, model: MarkovModel, steps: int) -> Position:
        """The position after some steps without a release."""
        last = self.predict_through(model, self.t + steps - 1)
        return last.predict(model, last.prior)


#: What an estimate may minimise: mean squared error, mean distance, or the chance of naming a wrong state.
ESTIMATE_LOSSES = ("squared", "euclidean", "state")
#: What takes its place where answers are labels: the likeliest state, and how likely it is.
LABEL = "label"


class Estimate(NamedTuple):
    """What the public belief says after a release, an answer (d,) and a state: post-processing, so it costs nothing.

    Of labels the answer (1,) is the probability of the state.
    """

    answer: FloatArray
    state: int


def estimate(posterior: Belief, answers: FloatArray, loss: str = "squared") -> Estimate:
    """The Bayes estimate: the posterior mean answer (squared loss), or the Euclidean median; and the likeliest state.

    With the loss `LABEL` the probability of that state, in place of an answer. Ties between likeliest states, to 1e-12,
    go to the lowest number.
    """
    p = posterior.probability
    point = np.empty(answers.shape[1])
    state = _kernels.filter.summary(p, answers, point)
    if loss == "euclidean":
        point = _euclidean_median(p, answers)
    elif loss == "state":
        point = answers[state].copy()
    elif loss == LABEL:
        point[:] = min(1.0, float(p.max()))
    return Estimate(point, state)


def spread(belief: Belief, answers: FloatArray, loss: str = "squared") -> float:
    """Root of the mean squared distance of a belief's answers (N, d) from their mean, in answer units.

    With the loss `LABEL` the probability that the likeliest state is not the true one.
    """
    p = belief.probability
    if loss == LABEL:
        return max(0.0, 1.0 - float(p.max()))
    away = answers - p @ answers
    return float(np.sqrt(p @ np.einsum("sj,sj->s", away, away)))


def _euclidean_median(p: FloatArray, answers: FloatArray) -> FloatArray:
    """Weiszfeld's iteration for argmin_y sum p_s |y - f_s|, from the mean."""
    used = p > 0
    weights, points = p[used], answers[used]
    y: FloatArray = weights @ points
    for _ in range(200):
        distance = np.maximum(np.linalg.norm(points - y, axis=1), 1e-12)
        pull = weights / distance
        moved: FloatArray = pull @ points / pull.sum()
        if np.linalg.norm(moved - y) <= 1e-9 * (1 + np.linalg.norm(y)):
            return moved
        y = moved
    return y
