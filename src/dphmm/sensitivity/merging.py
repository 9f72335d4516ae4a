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
from dphmm.policy._union import Union, union
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import sensitivity_hull
from dphmm.sensitivity.protection import exposed_states
from dphmm.states.merging import nearest_among
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
