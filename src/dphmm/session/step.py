"""Algorithm 2 of the DPHMM paper as a pure step on public data (with errata 12, 15, 21 and THEORY 3, 6).

predict → constraint and surrogates → contracted policy → protection → body → mechanism → (true state) → condition
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Position:
    """Where a subject's releases stand, as anybody can compute it: the belief before step ``t``, given all before."""

    t: int
    prior: Belief

    @classmethod
    def first(cls, model: MarkovModel, options: Options) -> Position:
        """Before step 1. start="before": the initial distribution describes t = 0, one transition earlier."""
        initial = Belief.initial(model)
        return cls(1, initial.predict(model, t=0) if options.start == "before" else initial)

    def plan_set(self, options: Options) -> BoolArray:
        """ΔX_t (N,): the support, or a δ-set of the prior."""
        return options.constraint.plan_set(self.prior.probability, self.prior.support)

    def posterior(self, plan: Plan, z: IntArray) -> Belief:
        """The belief given this step's release, too."""
        return self.prior.condition(plan.log_likelihood(z), plan.still_possible(z))

    def following(self, model: MarkovModel, now: Belief) -> Position:
        """The position one transition later."""
        return Position(self.t + 1, now.predict(model, t=self.t))


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the public belief says after a release: post-processing, so it costs nothing."""

    answer: tuple[float, ...]
    state: int


def estimate(posterior: Belief, answers: np.ndarray, loss: str = "squared") -> Estimate:
    """The Bayes estimate: the posterior mean answer (squared loss), or the Euclidean median; and the likeliest state.

    Ties between likeliest states, to 1e-12, go to the lowest number.
    """
    p = posterior.probability
    point = _euclidean_median(p, answers) if loss == "euclidean" else p @ answers
    likeliest = int(np.argmax(p >= p.max() * (1 - 1e-12)))
    if loss == "state":
        point = answers[likeliest]
    elif loss not in ("squared", "euclidean"):
        raise InvalidInput("loss", loss, "one of squared, euclidean, state")
    return Estimate(tuple(float(x) for x in point), likeliest)


def _euclidean_median(p: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Weiszfeld's iteration for argmin_y sum p_s |y - f_s|, from the mean."""
    used = p > 0
    weights, points = p[used], answers[used]
    y = weights @ points
    for _ in range(200):
        distance = np.maximum(np.linalg.norm(points - y, axis=1), 1e-12)
        pull = weights / distance
        moved = pull @ points / pull.sum()
        if np.linalg.norm(moved - y) <= 1e-9 * (1 + np.linalg.norm(y)):
            return moved
        y = moved
    return y
