"""Lonely states answered as their nearest state, instead of joined to it.

A join widens the hull, and so the noise, for everyone. A merge moves one answer and widens nothing.

Proof: docs/proofs/merging.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm._checks import one_of
from dphmm.errors import Unprotectable
from dphmm.policy import from_edges
from dphmm.policy._radius import Radius, radius
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph, Union, union
from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.sensitivity.hull import hull_of, sensitivity_hull
from dphmm.sensitivity.protection import exposed_among, exposed_states
from dphmm.states.lattice import NO_MERGES, Lattice, nearest_among
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, IntArray

SCOPES = ("global", "component")


class Merged(NamedTuple):
    """A policy and a space in which the ``pairs`` (m, 2) of a lonely state and its partner share one answer."""

    policy: PolicyGraph
    space: StateSpace
    pairs: IntArray


def lonely_states(policy: PolicyGraph, space: StateSpace, scope: str = "global") -> IntArray:
    """The states (m,) that a release over all states would join to a partner, ascending.

    ``scope="global"``: the exposed states, which have no neighbour and which the hull of the policy hides from no
    other state. ``scope="component"``: every state without a neighbour; needed for releases of that scope and for
    tables, where the hull hides nobody. States that the space has merged already, and their partners, are left out.
    """
    componentwise = one_of(scope, SCOPES, "scope") == "component" or space.has_labels
    found = policy.isolated(None) if componentwise else exposed_states(policy, space)
    lonely: IntArray = np.setdiff1d(found, space.merges)
    return lonely


def lonely_pairs(policy: PolicyGraph, space: StateSpace, scope: str = "global") -> IntArray:
    """The lonely states and their partners (m, 2): the nearest state that is not merged, ties to the lowest number.

    Distances are in answer units. Raises Unprotectable where the states that are left would be published as they are:
    none is left, or the hull of their policy (with scope="component", of a partner's component) is a single point.
    """
    lonely = lonely_states(policy, space, scope)
    if len(lonely) and space.has_labels:
        raise Unprotectable(
            f"merging: no label is nearer than another to the {len(lonely)} that no edge hides; leave them: a release "
            "joins each to another label"
        )
    if len(lonely) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    remaining = np.ones(space.n_states, dtype=np.bool_)
    remaining[lonely] = False
    candidates = remaining.copy()
    candidates[space.merges[:, 0]] = False
    if scope == "component":
        candidates[policy.isolated(None)] = False
    if not candidates.any() or sensitivity_hull(policy, space, remaining).rank == 0:
        raise Unprotectable(
            f"merging: {len(lonely)} of {space.n_states} states are lonely, and without them the policy hides no two "
            "answers; leave them unmerged: a release joins them"
        )
    partners = nearest_among(space.lattice, space.frame, lonely, np.flatnonzero(candidates))
    if scope == "component":
        _check_bodies(policy, space, remaining, partners)
    return np.stack([lonely, partners], axis=1)


def merge_lonely(policy: PolicyGraph, space: StateSpace, scope: str = "global") -> Merged:
    """The policy and the space with every lonely state merged into its partner.

    policy : on the states of ``space``. scope : that of the releases, as in `lonely_states`.

    A merged state has its partner's answer, its partner as a neighbour, and its partner's neighbours. Every edge of
    ``policy`` keeps its promise, a merged state cannot be told from its partner, and no state becomes lonely that was
    not (docs/proofs/merging.md). The price is the distance to the partner. Without lonely states policy and space
    come back as they are. Example: ``policy, space, pairs = dphmm.merge_lonely(policy, model.space)``.

    Raises Unprotectable where too little would be left, as `lonely_pairs`.
    """
    pairs = lonely_pairs(policy, space, scope)
    if len(pairs) == 0:
        return Merged(policy, space, pairs)
    return Merged(_beside_partners(policy, space, pairs), space.merged(pairs), pairs)


def plan_merges(
    policy: PolicyGraph, lattice: IntArray, frame: Lattice, constraint: Constraint, isolated: bool, given: IntArray
) -> IntArray:
    """The states that a plan may answer as their nearest remaining plan state, with that state (m, 2), ascending.

    They are the exposed states; with ``isolated``, where the hull alone hides nobody, all plan states without an edge.
    ``policy`` has the partners ``given`` (p, 2) by other queries as edges: a state of those may be answered as its
    partner alone, where all its edges lead there and the partner keeps its own answer. None where too little would be
    left: no other state, or a body that answers a partner without noise (docs/proofs/merging.md).
    """
    pairs = (
        _recorded(policy, constraint, given) if len(given) else _nearest(policy, lattice, frame, constraint, isolated)
    )
    if not len(pairs):
        return pairs
    rest = without(constraint, pairs)
    if hull_of(PolicyDifferences.of(policy, lattice, rest), frame).rank == 0:
        return NO_MERGES
    if isolated:
        component = policy.components(rest)
        for number in np.unique(component[pairs[:, 1]]).tolist():
            members = component == number
            if len(np.unique(lattice[members], axis=0)) == 1:
                return NO_MERGES
    return pairs


def without(constraint: Constraint, pairs: IntArray) -> Constraint:
    """The constraint with some plan states answered as others: (state, the other) (m, 2). Who followed them follows."""
    plan, answered_as = constraint.plan.copy(), np.arange(constraint.n_states, dtype=np.int64)
    plan[pairs[:, 0]] = False
    answered_as[pairs[:, 0]] = pairs[:, 1]
    surrogate = np.where(constraint.surrogate >= 0, answered_as[constraint.surrogate], -1)
    return Constraint(support=constraint.support, plan=plan, surrogate=surrogate)


def _nearest(
    policy: PolicyGraph, lattice: IntArray, frame: Lattice, constraint: Constraint, isolated: bool
) -> IntArray:
    lonely = policy.isolated(constraint)
    if len(lonely) and not isolated:
        hull = hull_of(PolicyDifferences.of(policy, lattice, constraint), frame)
        lonely = exposed_among(hull, policy, lattice, constraint)
    remaining = np.setdiff1d(constraint.plan_states, lonely)
    if not len(lonely) or not len(remaining):
        return NO_MERGES
    partners = nearest_among(lattice, frame, lonely, remaining)
    return np.stack([lonely, partners], axis=1)


def _recorded(policy: PolicyGraph, constraint: Constraint, given: IntArray) -> IntArray:
    found: list[tuple[int, int]] = []
    moved, kept = set[int](), set[int]()
    for state, partner in given.tolist():
        if not (constraint.plan[state] and constraint.plan[partner]) or state in kept or partner in moved:
            # Of a mutual pair only one may be answered as the other: swapped, they would hide nothing.
            continue
        if np.setdiff1d(policy.neighbors(state, constraint), [partner]).size == 0:
            found.append((state, partner))
            moved.add(state)
            kept.add(partner)
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


def _beside_partners(policy: PolicyGraph, space: StateSpace, pairs: IntArray) -> PolicyGraph:
    """The policy in which each merged state, which had no edge, has those of its partner and one to it."""
    if isinstance(policy, Radius) and radius(space, policy.r, policy.closed).digest == policy.digest:
        # A state with its partner's answer is as near to every other one as its partner.
        return radius(space.merged(pairs), policy.r, policy.closed)
    if isinstance(policy, Union):
        return union(*(_beside_partners(part, space, pairs) for part in policy.parts))
    copied = [(state, other) for state, partner in pairs.tolist() for other in policy.neighbors(partner).tolist()]
    siblings = [(a, b) for a, partner in pairs.tolist() for b in pairs[pairs[:, 1] == partner, 0].tolist() if a < b]
    edges = np.array([*pairs.tolist(), *copied, *siblings], dtype=np.int64)
    return policy.union(from_edges(edges, policy.n_states))


def _check_bodies(policy: PolicyGraph, space: StateSpace, remaining: BoolArray, partners: IntArray) -> None:
    """Refuse a partner whose component would be answered without noise."""
    within = Constraint.of(remaining, space.n_states)
    component = policy.components(within)
    for number in np.unique(component[partners]).tolist():
        members = component == number
        if sensitivity_hull(policy, space, members).rank == 0:
            state = int(partners[component[partners] == number][0])
            raise Unprotectable(
                f"merging: state {state} would be a partner, and its component of the policy has a single answer; "
                "leave the lonely states unmerged: a release joins them"
            )
