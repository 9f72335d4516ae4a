"""Plans with one thing wrong each, made by hand: what `verify` must convict, and the words that must say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dphmm.mechanisms import DiscreteKNorm
from dphmm.policy import from_edges
from dphmm.sensitivity.exact_hull import PointDifferences, PolicyDifferences
from dphmm.sensitivity.hull import hull_of, sensitivity_hull


def other_body(plan, hull, epsilon=None):
    mechanism = DiscreteKNorm(hull, plan.epsilon if epsilon is None else epsilon)
    cost = mechanism.loss_of_norm(max(hull.norm_fraction(a - b) for a in plan.image for b in plan.image))
    return replace(plan, hull=hull, mechanism=mechanism, cost=cost)


def stale_hull(plan, policy, space):
    """The hull of the policy, from before states were joined."""
    before = PolicyDifferences.of(policy, space.lattice, plan.constraint)
    return other_body(plan, hull_of(before, space.frame))


def misses_a_pair(plan, policy, space):
    """A body of full rank made from all edges but the longest."""
    edges = policy.edges(None)
    lengths = np.abs(space.lattice[edges[:, 0]] - space.lattice[edges[:, 1]]).sum(axis=1)
    kept = np.delete(edges, int(np.argmax(lengths)), axis=0)
    return other_body(plan, sensitivity_hull(from_edges(kept, policy.n_states), space))


def epsilon_doubled(plan, policy, space):
    """The right body with twice the ε."""
    return other_body(plan, plan.hull, 2 * plan.epsilon)


def shrunk_facet(plan, policy, space):
    """One facet one step too far inside."""
    hull = plan.hull
    offsets = hull.offsets.copy()
    offsets[0] -= 1
    return other_body(plan, replace(hull, body=replace(hull.body, offsets=offsets)))


def too_cheap(plan, policy, space):
    """Charged ε, whatever two planned states lose."""
    return replace(plan, cost=plan.epsilon)


def another_epsilon(plan, policy, space):
    """Half the noise everywhere, and the plan says so."""
    return replace(other_body(plan, plan.hull, 2 * plan.epsilon), epsilon=2 * plan.epsilon)


def states_forgotten(plan, policy, space):
    """A possible state is called impossible."""
    constraint = plan.constraint
    support, planned = constraint.support.copy(), constraint.plan.copy()
    support[4] = planned[4] = False
    surrogate = np.where(planned, constraint.surrogate, int(np.flatnonzero(planned)[0]))
    smaller = replace(constraint, support=support, plan=planned, surrogate=surrogate)
    return replace(plan, constraint=smaller)


def answered_from_elsewhere(plan, policy, space):
    """One state is answered one step away from its answer."""
    lattice = plan.lattice.copy()
    lattice[2] += (1, 0)
    return replace(plan, lattice=lattice)


def shows_another_body(plan, policy, space):
    """The hull that is shown is not the one that is sampled."""
    steps = np.diag([9, 9])
    return replace(plan, hull=hull_of(PointDifferences(steps), space.frame))


def partner_dropped(plan, policy, space):
    """A state without an edge has no partner that other queries could keep."""
    return replace(plan, partners=plan.partners[1:])


def partner_is_itself(plan, policy, space):
    """It is its own partner (Algorithm 1 as printed)."""
    partners = plan.partners.copy()
    partners[:, 1] = partners[:, 0]
    return replace(plan, partners=partners)


def false_constant(plan, policy, space):
    """Different answers are released as if they were one."""
    return replace(plan, constant=True)


#: Each wrong plan, and a piece of the finding that must convict it.
WRONG = (
    (stale_hull, "joined pair"),
    (misses_a_pair, "policy pair"),
    (epsilon_doubled, "policy pair"),
    (shrunk_facet, "pair"),
    (too_cheap, "is charged"),
    (another_epsilon, "not for 1"),
    (states_forgotten, "takes them to be impossible"),
    (answered_from_elsewhere, "answered from elsewhere"),
    (shows_another_body, "another body than it samples"),
    (partner_dropped, "neither an edge nor a partner"),
    (partner_is_itself, "are themselves"),
    (false_constant, "public constant"),
)
