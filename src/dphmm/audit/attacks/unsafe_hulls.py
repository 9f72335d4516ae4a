"""Attacks on releases whose hull was made wrongly: a hull per state, and a hull without protection.

The adversary knows only the laws. The success of guessing the state from one answer is found by drawing, at equal odds.

The local-hull attack (Example 11.2 of the DPHMM paper, as corrected in erratum 8): someone might make the hull from the
edges among the true state and its neighbours alone. It is smaller, and so is the noise, but then the noise depends on
the truth. Where the hulls of states differ, an answer far along one of them was not given by the others; where they are
flat, every answer off the crossing of two lines names its state. The printed example needs the edges s4s6 and s5s6
without s4s5: under the policy of Fig. 3b the three hulls are one, and there is no attack.

The exposure attack (Section 6 of that paper): the disclosure by a release whose graph was not made protectable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.audit.law import Law
from dphmm.errors import InvalidInput
from dphmm.mechanisms import mechanism_for
from dphmm.mechanisms.base import LatticeMechanism
from dphmm.policy import from_edges
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import sensitivity_hull
from dphmm.states.space import StateSpace
from dphmm.types import Bits, Exact, FloatArray, IntArray, Loss, States


@dataclass(frozen=True, eq=False)
class Laws:
    """The law of each of some states (k,): where it is answered from, and with which noise."""

    images: IntArray
    mechanisms: Sequence[LatticeMechanism]

    def likelihoods(self, z: IntArray) -> FloatArray:
        """log Pr(z | state) of every state."""
        return np.array(
            [
                float(mechanism.log_likelihood_lattice(z, image[None])[0]) - mechanism.log_normaliser
                for image, mechanism in zip(self.images, self.mechanisms, strict=True)
            ]
        )

    def guesses(self, of: int, draws: int, bits: Bits | None) -> GuessRates:
        """Draw answers of one state and guess."""
        z = self.mechanisms[of].answer(np.repeat(self.images[of][None], draws, axis=0), bits)
        right = certain = 0
        share = 0.0
        for answer in z:
            logs = self.likelihoods(answer)
            weights = np.exp(logs - logs.max())
            posterior = weights / weights.sum()
            right += int(np.argmax(posterior)) == of
            certain += int(np.isfinite(logs).sum()) == 1
            share += float(posterior[of])
        return GuessRates(right / draws, certain / draws, share / draws)


@dataclass(frozen=True)
class GuessRates:
    """The success of guessing the true state from one answer, as shares of the draws.

    ``right``: the likeliest state was the true one. ``certain``: no other state could have given the answer. Also the
    mean posterior probability of the truth.
    """

    right: float
    certain: float
    probability: float


@dataclass(frozen=True, eq=False)
class LocalHulls:
    """Each possible state (k,) with noise made from its own surroundings; ``together``: with one hull for all."""

    states: IntArray
    local: Laws
    together: Laws

    @classmethod
    def of(cls, policy: PolicyGraph, space: StateSpace, epsilon: Exact, support: States = None) -> Self:
        """The laws of a K-norm mechanism with local hulls, and with the hull of the policy."""
        promised = exact_epsilon(epsilon)
        within = Constraint.of(support, policy.n_states)
        states = np.flatnonzero(within.support)
        edges = policy.edges(within)
        mechanisms = []
        for state in states.tolist():
            near = np.unique(np.append(edges[np.any(edges == state, axis=1)], state))
            mine = edges[np.isin(edges, near).all(axis=1)]
            hull = sensitivity_hull(from_edges(mine, policy.n_states), space, within)
            mechanisms.append(mechanism_for(hull, promised, "discrete-knorm"))
        whole = mechanism_for(sensitivity_hull(policy, space, within), promised, "discrete-knorm")
        images = space.lattice[states]
        return cls(states, Laws(images, mechanisms), Laws(images, [whole] * len(states)))

    def consistent(self, z: IntArray) -> IntArray:
        """The states whose local noise can reach the lattice answer z (d,)."""
        return np.asarray(self.states[np.isfinite(self.local.likelihoods(np.asarray(z, dtype=np.int64)))])

    def attack(self, state: int, *, draws: int = 2000, bits: Bits | None = None) -> tuple[GuessRates, GuessRates]:
        """The success of guessing a state from one answer, with local hulls, and with one hull for all."""
        places = np.flatnonzero(self.states == state)
        if not len(places):
            raise InvalidInput("state", state, "a possible state")
        at = int(places[0])
        return self.local.guesses(at, draws, bits), self.together.guesses(at, draws, bits)


class Exposed(NamedTuple):
    """A state that nothing hides, its loss, and the success of an adversary in guessing it.

    ``loss`` is the least loss against any other state, ``nearest``; ``guesses``: the success of an adversary who
    sees one answer.
    """

    state: int
    nearest: int
    loss: Loss
    guesses: GuessRates


def exposure(
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    support: States = None,
    *,
    draws: int = 2000,
    bits: Bits | None = None,
) -> list[Exposed]:
    """The states that a release with the policy's own hull, unprotected, would give away, and how surely.

    ``support`` : the possible states, all by default. Each of these states loses more than epsilon against every other:
    under a flat hull without bound, when one answer can name it for certain. Empty for a protectable graph.
    """
    promised = exact_epsilon(epsilon)
    within = Constraint.of(support, policy.n_states)
    mechanism = mechanism_for(sensitivity_hull(policy, space, within), promised, "discrete-knorm")
    law, possible = Law.of(mechanism), np.flatnonzero(within.support)
    images = space.lattice[possible]
    laws = Laws(images, [mechanism] * len(possible))
    exposed = []
    for place, state in enumerate(possible.tolist()):
        losses = [law.loss(law.norm(image - images[place])) for image in images]
        others = [(loss, int(possible[at])) for at, loss in enumerate(losses) if at != place]
        loss, nearest = min(others, default=(math.inf, state))
        if loss > promised and len(possible) > 1:
            exposed.append(Exposed(state, nearest, loss, laws.guesses(place, draws, bits)))
    return exposed


def bounded(loss: Loss) -> bool:
    """True if another state could have given every answer."""
    return isinstance(loss, Fraction)
