"""Algorithm 2 of the DPHMM paper as a pure step on public data (with errata 12, 15, 21 and docs/theory.md 3 and 6).

predict → constraint and surrogates → contracted policy → protection → body → mechanism → (true state) → condition

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import Support, delta_states
from dphmm.session.likelihood import updated
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.types import BoolArray, FloatArray, IntArray


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

    def following(self, model: MarkovModel, now: Belief) -> Position:
        """The position one transition later."""
        return Position(self.t + 1, now.predict(model, t=self.t + 1))

    def passing(self, model: MarkovModel, through: int) -> Position:
        """The position at step ``through`` when nothing is published from this one on."""
        return Position(through, self.prior.predict_many(model, self.t + 1, through - self.t))

    def skipping(self, model: MarkovModel, steps: int) -> Position:
        """The position after some steps without a release."""
        last = self.passing(model, self.t + steps - 1)
        return last.following(model, last.prior)


#: What an estimate may minimise: mean squared error, mean distance, or the chance of naming a wrong state.
ESTIMATE_LOSSES = ("squared", "euclidean", "state")


class Estimate(NamedTuple):
    """What the public belief says after a release, an answer (d,) and a state: post-processing, so it costs nothing."""

    answer: FloatArray
    state: int


def estimate(posterior: Belief, answers: FloatArray, loss: str = "squared") -> Estimate:
    """The Bayes estimate: the posterior mean answer (squared loss), or the Euclidean median; and the likeliest state.

    Ties between likeliest states, to 1e-12, go to the lowest number.
    """
    p = posterior.probability
    point = np.empty(answers.shape[1])
    state = _kernels.belief.summary(p, answers, point)
    if loss == "euclidean":
        point = _euclidean_median(p, answers)
    elif loss == "state":
        point = answers[state].copy()
    return Estimate(point, state)


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
