"""The local-hull attack (Example 11.2 of the DPHMM paper, as corrected in erratum 8).

Someone might make the hull from the edges among the true state and its neighbours alone: it is smaller, and so is the
noise. But then the noise depends on the truth. Where the hulls of states differ, an answer far along one of them was
not given by the others; where they are flat, every answer off the crossing of two lines names its state. The printed
example needs the edges s4s6 and s5s6 without s4s5: under the policy of Fig. 3b the three hulls are one, and there is no
attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.audit.attacks.guessing import Guesses, Laws
from dphmm.errors import InvalidInput
from dphmm.mechanisms import mechanism_for
from dphmm.policy import from_edges
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import sensitivity_hull
from dphmm.states.space import StateSpace
from dphmm.types import Bits, Exact, IntArray, States


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
        own = []
        for state in states.tolist():
            near = np.unique(np.append(edges[np.any(edges == state, axis=1)], state))
            mine = edges[np.isin(edges, near).all(axis=1)]
            hull = sensitivity_hull(from_edges(mine, policy.n_states), space, within)
            own.append(mechanism_for(hull, promised, "discrete-knorm"))
        whole = mechanism_for(sensitivity_hull(policy, space, within), promised, "discrete-knorm")
        images = space.lattice[states]
        return cls(states, Laws(images, own), Laws(images, [whole] * len(states)))

    def consistent(self, z: IntArray) -> IntArray:
        """The states whose local noise can reach the lattice answer z (d,)."""
        return np.asarray(self.states[np.isfinite(self.local.likelihoods(np.asarray(z, dtype=np.int64)))])

    def attack(self, state: int, *, draws: int = 2000, bits: Bits | None = None) -> tuple[Guesses, Guesses]:
        """How often a state is guessed from one answer with local hulls, and with one hull for all."""
        places = np.flatnonzero(self.states == state)
        if not len(places):
            raise InvalidInput("state", state, "a possible state")
        at = int(places[0])
        return self.local.guesses(at, draws, bits), self.together.guesses(at, draws, bits)
