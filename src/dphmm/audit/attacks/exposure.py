"""The exposure attack: what a release tells where a graph was not made protectable (DPHMM paper, Section 6)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.audit.attacks.guessing import Guesses, Laws
from dphmm.audit.law import Law
from dphmm.mechanisms import mechanism_for
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import sensitivity_hull
from dphmm.states.space import StateSpace
from dphmm.types import Bits, Exact, Loss, States


class Exposed(NamedTuple):
    """A state that nothing hides, what it loses, and how well an adversary guesses it.

    ``loss`` is the least that it loses against any other, ``nearest``; ``guesses``: how an adversary fares who sees one
    answer.
    """

    state: int
    nearest: int
    loss: Loss
    guesses: Guesses


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
    found = []
    for place, state in enumerate(possible.tolist()):
        losses = [law.loss(law.norm(image - images[place])) for image in images]
        others = [(loss, int(possible[at])) for at, loss in enumerate(losses) if at != place]
        loss, nearest = min(others, default=(math.inf, state))
        if loss > promised and len(possible) > 1:
            found.append(Exposed(state, nearest, loss, laws.guesses(place, draws, bits)))
    return found


def bounded(loss: Loss) -> bool:
    """Whether another state could have given every answer."""
    return isinstance(loss, Fraction)
