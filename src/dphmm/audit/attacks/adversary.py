"""Who attacks: what they believe of how people move, and what they do with the published answers.

All know the plans, which are public. Their own chain may be the public model, a wrong one, or a richer one whose hidden
states say more than a state does (the last two places, the hour, the person).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief, Rows, likeliest_path, marginals
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import Plan
from dphmm.types import FloatArray, IntArray

#: prior: the chain, no answers. memoryless: each answer by itself, all possible states alike. tracker: the filter.
#: smoother: all answers, later ones too. viterbi: the states of the likeliest path, certain of them.
METHODS = ("prior", "memoryless", "tracker", "smoother", "viterbi")


class Seen(NamedTuple):
    """One published answer and the plan it was drawn under."""

    t: int
    z: IntArray
    plan: Plan


@dataclass(frozen=True, eq=False)
class Adversary:
    """A method and a chain.

    ``states`` (H,) : the state that each hidden state of the chain is in; None for the states themselves. ``start`` :
    as of a model; the chain's own by default.
    """

    name: str
    method: str
    chain: MarkovModel
    states: IntArray | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInput("adversary", self.method, f"one of {', '.join(METHODS)}")
        if self.states is not None and len(self.states) != self.chain.n_states:
            came = f"{len(self.states)} states for a chain of {self.chain.n_states}"
            raise InvalidInput("states", came, "the state of every hidden state")

    def beliefs(self, seen: Sequence[Seen]) -> FloatArray:
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
            return self._seen(marginals(self.chain, prior, observations), n)
        path = likeliest_path(self.chain, prior, observations)
        certain = np.zeros((len(seen), self.chain.n_states))
        certain[np.arange(len(seen)), path] = 1.0
        return self._seen(certain, n)

    def _before(self, t: int) -> Belief:
        """The chain's belief about step t with nothing seen."""
        initial = Belief.initial(self.chain)
        start = self.chain.start if self.start is None else self.start
        moves = t if start == "before" else t - 1
        return initial.predict_many(self.chain, 1 if start == "before" else 2, moves) if moves else initial

    def _forward(self, seen: Sequence[Seen]) -> FloatArray:
        rows = np.empty((len(seen), self.chain.n_states))
        belief, t = self._before(seen[0].t), seen[0].t
        for number, answer in enumerate(seen):
            if answer.t > t:
                belief, t = belief.predict_many(self.chain, t + 1, answer.t - t), answer.t
            if self.method == "tracker":
                belief = self._learned(belief, answer)
            rows[number] = belief.probability
        return rows

    def _learned(self, belief: Belief, answer: Seen) -> Belief:
        """Bayes' rule. Where a wrong chain leaves no state that the answer allows, it begins anew from the answer."""
        plain = None if self.states is not None else self._plainly(belief, answer)
        if plain is not None:
            return plain
        weights = self._weights(answer)
        possible = np.isfinite(weights)
        if not (possible & belief.support).any():
            belief = Belief(np.where(possible, -np.log(possible.sum()), -np.inf), possible)
        return belief.condition(np.where(possible, weights, 0.0), possible & belief.support)

    def _plainly(self, belief: Belief, answer: Seen) -> Belief | None:
        """Bayes' rule in plain floats, where they hold everything."""
        from dphmm.session.step import likelihood_of

        fast = likelihood_of(answer.plan)
        weights = None if fast is None else fast.at(answer.z)
        return None if weights is None else belief.weighted(weights, np.ones(len(weights), dtype=np.bool_))

    def _weights(self, answer: Seen) -> FloatArray:
        """log Pr(z | hidden state) (H,), up to a constant; -inf where z excludes it."""
        plan = answer.plan
        # A state that the plan calls impossible is answered like its surrogate: a wrong chain may think it is there.
        excluded = plan.constraint.support & ~plan.still_possible(answer.z)
        weights = np.where(excluded, -np.inf, plan.log_likelihood(answer.z))
        return weights if self.states is None else np.asarray(weights[self.states])

    def _observations(self, seen: Sequence[Seen]) -> _Observations:
        values = np.array([self._weights(answer) for answer in seen])
        moves = np.diff(np.array([answer.t for answer in seen]), prepend=seen[0].t)
        return _Observations(values, moves)

    def _seen(self, hidden: FloatArray, n: int) -> FloatArray:
        if self.states is None:
            return hidden
        rows = np.zeros((len(hidden), n))
        np.add.at(rows.T, self.states, hidden.T)
        return rows


@dataclass(frozen=True, eq=False)
class _Observations:
    values: FloatArray
    moves: IntArray

    def rows(self, first: int, last: int) -> Rows:
        """The likelihoods of the answers first..last, in logs."""
        some = self.values[first:last]
        return Rows(some, np.ones(len(some), dtype=np.bool_), np.arange(len(some)))


def _alone(answer: Seen) -> FloatArray:
    """What one answer says by itself of the states that its plan calls possible."""
    possible = answer.plan.still_possible(answer.z)
    logs = np.where(possible, answer.plan.log_likelihood(answer.z), -np.inf)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
