"""Degrees of protection, the states that are exposed, and the edges that protect them.

Section 6 of the DPHMM paper, with errata 6, 7, 13, 15; docs/theory.md 4.

A state is exposed when no other possible state has an answer within the hull of its own (degree of protection 1).
Each exposed state is joined to a partner; the method decides which: "nearest" (Algorithm 1), "min-volume" (Algorithm 3)
or "min-error" (least exact expected error; smallest volume is not best utility, errata 3).

Degrees need no |C|² containment tests: along the rows of a lattice they are sums of runs.

Lonely states answered as their nearest state, instead of joined to it.

A join widens the hull, and so the noise, for everyone. A merge moves one answer and widens nothing.

Proofs: docs/proofs/protection.md, docs/proofs/degree.md, docs/proofs/merging.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm import _kernels
from dphmm._checks import one_of
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.policy import from_edges
from dphmm.policy._points import LatticeDistance
from dphmm.policy._radius import Radius, radius
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph, Union, union
from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.sensitivity.hull import SensitivityHull, as_constraint, check_sizes, hull_of, sensitivity_hull
from dphmm.states.lattice import NO_MERGES, Lattice, nearest_among
from dphmm.states.space import StateSpace, lattice_answers
from dphmm.types import BoolArray, IntArray, States

#: A dense picture of the lattice is worth its memory up to this many cells per distinct answer.
_CELLS_PER_POINT = 64
_PAIRS_AT_ONCE = 2**22


def images(lattice: IntArray, constraint: Constraint) -> IntArray:
    """f(g(s)) (N, d): where each state is answered from; rows of states without a surrogate are meaningless."""
    return lattice.take(constraint.surrogate, axis=0)


def degree_among(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
    """For each target state, the number of states of ``among`` whose image lies within the hull of its own."""
    if hull.rank == hull.dimension == 2 and len(among) > 0:
        degrees = _by_rows(hull, image, targets, among)
        if degrees is not None:
            return degrees
    points, counts = np.unique(image[among], axis=0, return_counts=True)
    wanted, back = np.unique(image[targets], axis=0, return_inverse=True)
    return _by_pairs(hull, points, counts, wanted)[back.reshape(-1)]


def _by_rows(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray | None:
    """Rows of the hull are runs of lattice points, and a run's count is a difference of two running sums.

    None where a picture of the box of all these points would be mostly empty, or numbers are too large.
    """
    left, bottom, right, top = _kernels.points.box_of(
        image, among if targets is among else np.concatenate([targets, among])
    )
    width, height = right - left + 1, top - bottom + 1
    if width * height > _CELLS_PER_POINT * len(among) + 4096:
        return None
    runs = _kernels.points.runs_of_body(hull.normals, hull.offsets, width, height)
    return _kernels.points.count_in_runs(image, targets, among, left, bottom, width, runs) if len(runs) else None


def _by_pairs(hull: SensitivityHull, points: IntArray, counts: IntArray, wanted: IntArray) -> IntArray:
    chunk = max(1, _PAIRS_AT_ONCE // max(1, len(points)))
    degrees = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(wanted), chunk):
        some = wanted[start : start + chunk]
        steps = (points[None] - some[:, None]).reshape(-1, points.shape[1])
        inside = hull.contains_lattice(steps).reshape(len(some), len(points))
        degrees[start : start + chunk] = inside @ counts
    return degrees


#: Chooses the partner of an exposed state among the other plan states (both are state numbers).
Partner: TypeAlias = Callable[[int, IntArray], int]
METHODS = ("nearest", "min-volume", "min-error")
#: What a release may do with states that nothing hides: join them by one of these, answer them as their nearest state
#: ("merge"), or whichever of the two errs less ("auto").
AUTO, MERGE = "auto", "merge"
PROTECTIONS = (AUTO, MERGE, *METHODS)


def degree_of_protection(
    hull: SensitivityHull, answers: StateSpace | ArrayLike, constraint: States | Constraint = None
) -> IntArray:
    """The number of possible states that each state hides among (Def. 5.2): |{s_j in C : f(s_j) - f(s_i) in K}|.

    Counts the state itself and states with equal answers. Under a Constraint with a surrogate map, states of the
    support count where their surrogate is. Shape (|C|,), in order of state number; 1 means exposed.
    """
    lattice, _ = lattice_answers(answers)
    within = as_constraint(constraint, len(lattice))
    states = np.flatnonzero(within.support)
    return degree_among(hull, images(lattice, within), states, states)


def exposed_states(
    policy: PolicyGraph, answers: StateSpace | ArrayLike, constraint: States | Constraint = None
) -> IntArray:
    """State numbers of the plan set that no other possible state hides: degree of protection 1."""
    lattice, frame = lattice_answers(answers)
    check_sizes(policy, lattice)
    within = as_constraint(constraint, len(lattice))
    hull = hull_of(PolicyDifferences.of(policy, lattice, within), frame)
    return exposed_among(hull, policy, lattice, within)


@dataclass(frozen=True)
class Protection:
    """The edges that were added (m, 2), in the order they were, and the differences and hull of the graph with them."""

    joins: IntArray
    source: PolicyDifferences
    hull: SensitivityHull


def protectable_graph(
    policy: PolicyGraph,
    answers: StateSpace | ArrayLike,
    constraint: States | Constraint = None,
    method: str | Partner = "nearest",
    recheck: bool = True,
) -> PolicyGraph:
    """The policy and an edge for every exposed state (Algorithms 1 and 3; min-error is ours).

    Exposed states are taken in order of state number. ``recheck=True`` computes the hull after each join and passes
    over states that are no longer exposed, so with "nearest" the hull is never larger than the printed algorithm's
    (``recheck=False``). ``method`` may be a callable (state, candidates) -> partner.

    Raises
    ------
    Unprotectable : a constraint of a single state with nothing to hide among.
    """
    lattice, frame = lattice_answers(answers)
    within = as_constraint(constraint, policy.n_states)
    joins = protect(policy, lattice, frame, within, method=method, recheck=recheck).joins
    return policy.union(from_edges(joins, policy.n_states)) if len(joins) else policy


def protect(
    policy: PolicyGraph,
    lattice: IntArray,
    frame: Lattice,
    constraint: Constraint,
    *,
    method: str | Partner = "nearest",
    recheck: bool = True,
    isolated: bool = False,
    joins: IntArray | None = None,
) -> Protection:
    """The work of `protectable_graph`, on lattice answers (N, d), keeping the hull that it ends with.

    ``isolated=True`` joins every plan state without a neighbour, exposed or not: needed for tables, which hide by
    edges alone. ``joins`` are edges fixed beforehand.
    """
    check_sizes(policy, lattice)
    if not callable(method):
        one_of(method, METHODS, "method")
    candidates = constraint.plan_states
    task = _Joining(policy, lattice, frame, constraint, PolicyDifferences.of(policy, lattice, constraint))
    added = [] if joins is None else [tuple(map(int, pair)) for pair in joins]
    for pair in added:
        task = task.joined(*pair)
    hull = task.hull()
    waiting = _alone(policy, constraint, added) if isolated else exposed_among(hull, policy, lattice, constraint)
    done: set[int] = set()
    for state in waiting.tolist():
        if isolated and recheck and state in done:
            continue
        if not isolated and recheck and added and not _is_exposed(hull, lattice, constraint, state):
            continue
        others = candidates[candidates != state]
        if len(others) == 0:
            raise Unprotectable("constraint: a single possible state has no other state to hide among")
        partner = _partner(task, method, state, others)
        added.append((state, partner))
        done |= {state, partner}
        task = task.joined(state, partner)
        hull = task.hull()
    return Protection(np.array(added, dtype=np.int64).reshape(-1, 2), task.source, hull)


@dataclass(frozen=True)
class _Joining:
    """The inputs to the choice of a partner, all of them public."""

    policy: PolicyGraph
    lattice: IntArray
    frame: Lattice
    constraint: Constraint
    source: PolicyDifferences

    def joined(self, state: int, partner: int) -> _Joining:
        difference = (self.lattice[partner] - self.lattice[state])[None]
        return replace(self, source=self.source.with_points(difference))

    def hull(self) -> SensitivityHull:
        return hull_of(self.source, self.frame)


def _partner(task: _Joining, method: str | Partner, state: int, others: IntArray) -> int:
    if callable(method):
        chosen = int(method(state, others))
        if chosen not in set(others.tolist()):
            raise InvalidInput("method", f"partner {chosen} for state {state}", "another state of the constraint")
        return chosen
    if method == "nearest":
        return nearest_other(task.lattice, task.frame, state, others)
    measure = _volume if method == "min-volume" else _expected_error
    best: int = min(others.tolist(), key=lambda other: (measure(task.joined(state, other).hull()), other))
    return best


def _volume(hull: SensitivityHull) -> Fraction:
    return hull.lattice_volume


def _expected_error(hull: SensitivityHull) -> Fraction:
    """ε²·E‖noise‖² of the K-norm mechanism on this hull, exactly (docs/theory.md F3)."""
    k = hull.rank
    return (k + 1) * (k + 2) * hull.squared_size


def nearest_other(lattice: IntArray, frame: Lattice, state: int, others: IntArray) -> int:
    """The nearest of ``others`` in answer units; ties, decided exactly, go to the lowest number."""
    steps = lattice[others] - lattice[state]
    rough = ((steps * frame.pitch) ** 2).sum(axis=1)
    close = others[rough <= rough.min() * (1 + 1e-9)]

    def exact(other: int) -> Fraction:
        step = lattice[other] - lattice[state]
        return sum(((int(x) * p) ** 2 for x, p in zip(step, frame.exact_pitch, strict=True)), Fraction(0))

    return int(min(close.tolist(), key=lambda other: (exact(other), other)))


def nearest_covered(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
    """For each target state (m,) the nearest other state of ``among``, ascending, that lies within the hull of its own.

    ``image`` (N, d): the lattice answers that decide both. Distances are in answer units; ties, decided exactly, go to
    the lowest number.

    Raises
    ------
    Unprotectable : a target that nothing within the hull hides.
    """
    metric = LatticeDistance.of(hull.frame.exact_pitch)
    rows, limits = _bands(hull)
    low, high = _kernels.points.bounds(image)
    sides = [max(1, int(b) - int(a)) for a, b in zip(low, high, strict=True)]
    widest = max((sum(abs(a) * side for a, side in zip(row, sides, strict=True)) for row in rows.tolist()), default=0)
    if widest < 2**62 and metric.fits(sides):
        weights = np.array(metric.weights, dtype=np.int64)
        within = rows.astype(np.int64).reshape(-1, len(weights)), limits
        nearest = _kernels.points.nearest_within(image, weights, targets, among, *within)
    else:
        nearest = np.array([_covered_plainly(hull, image, state, among) for state in targets.tolist()], dtype=np.int64)
    if len(nearest) and nearest.min() < 0:
        raise Unprotectable("protection: a state that nothing within the hull hides has not been joined")
    return nearest


def _bands(hull: SensitivityHull) -> tuple[NDArray[Any], IntArray]:
    """Integer rows (m, d) and limits (m,): v is in the hull where |rows·v| <= limits."""
    facets = hull.normals
    if hull.rank < hull.dimension:
        facets = np.vstack([facets.astype(object) @ hull.coordinates.astype(object), hull.equations])
    return facets, np.concatenate([hull.offsets, np.zeros(len(hull.equations), dtype=np.int64)])


def _covered_plainly(hull: SensitivityHull, image: IntArray, state: int, among: IntArray) -> int:
    others = among[among != state]
    covered = others[hull.contains_lattice(image[others] - image[state])]
    return nearest_other(image, hull.frame, state, covered) if len(covered) else -1


def exposed_among(hull: SensitivityHull, policy: PolicyGraph, lattice: IntArray, constraint: Constraint) -> IntArray:
    """The exposed plan states (m,), ascending.

    Only a state without a neighbour can be exposed: an edge's difference is in the hull by construction.
    """
    suspects = policy.isolated(constraint)
    if len(suspects) == 0:
        return suspects
    degrees = degree_among(hull, images(lattice, constraint), suspects, np.flatnonzero(constraint.support))
    exposed: IntArray = suspects[degrees == 1]
    return exposed


def _is_exposed(hull: SensitivityHull, lattice: IntArray, constraint: Constraint, state: int) -> bool:
    target = np.array([state], dtype=np.int64)
    among = np.flatnonzero(constraint.support)
    return bool(degree_among(hull, images(lattice, constraint), target, among)[0] == 1)


def _alone(policy: PolicyGraph, constraint: Constraint, added: list[tuple[int, ...]]) -> IntArray:
    joined = [state for pair in added for state in pair]
    return np.setdiff1d(policy.isolated(constraint), np.array(joined, dtype=np.int64))


class Merged(NamedTuple):
    """A policy and a space in which the ``pairs`` (m, 2) of a lonely state and its partner share one answer."""

    policy: PolicyGraph
    space: StateSpace
    pairs: IntArray


def lonely_states(policy: PolicyGraph, space: StateSpace, isolated: bool = False) -> IntArray:
    """The states (m,) that a release over all states would join to a partner, ascending.

    They are the exposed states, which have no neighbour and which the hull of the policy hides from no other state;
    with ``isolated`` all states without a neighbour: for tables, where the hull hides nobody. States that the space
    has merged already, and their partners, are left out.
    """
    exposed = policy.isolated(None) if isolated or space.has_labels else exposed_states(policy, space)
    lonely: IntArray = np.setdiff1d(exposed, space.merges)
    return lonely


def lonely_pairs(policy: PolicyGraph, space: StateSpace, isolated: bool = False) -> IntArray:
    """The lonely states and their partners (m, 2): the nearest state that is not merged, ties to the lowest number.

    Distances are in answer units. Raises Unprotectable where the states that are left would be published as they are:
    none is left, or the hull of their policy (with ``isolated``, of a partner's component) is a single point.
    """
    lonely = lonely_states(policy, space, isolated)
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
    if isolated:
        candidates[policy.isolated(None)] = False
    if not candidates.any() or sensitivity_hull(policy, space, remaining).rank == 0:
        raise Unprotectable(
            f"merging: {len(lonely)} of {space.n_states} states are lonely, and without them the policy hides no two "
            "answers; leave them unmerged: a release joins them"
        )
    partners = nearest_among(space.lattice, space.frame, lonely, np.flatnonzero(candidates))
    if isolated:
        _check_bodies(policy, space, remaining, partners)
    return np.stack([lonely, partners], axis=1)


def merge_lonely(policy: PolicyGraph, space: StateSpace, isolated: bool = False) -> Merged:
    """The policy and the space with every lonely state merged into its partner.

    policy : on the states of ``space``. isolated : for tables, as in `lonely_states`.

    A merged state has its partner's answer, its partner as a neighbour, and its partner's neighbours. Every edge of
    ``policy`` keeps its promise, a merged state cannot be told from its partner, and no state becomes lonely that was
    not (docs/proofs/merging.md). The price is the distance to the partner. Without lonely states policy and space
    come back as they are. Example: ``policy, space, pairs = dphmm.sensitivity.merge_lonely(policy, model.space)``.

    Raises Unprotectable where too little would be left, as `lonely_pairs`.
    """
    pairs = lonely_pairs(policy, space, isolated)
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
    """The constraint with some plan states answered as others: (state, the other) (m, 2). Their followers follow."""
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
    pairs: list[tuple[int, int]] = []
    moved, partners = set[int](), set[int]()
    for state, partner in given.tolist():
        if not (constraint.plan[state] and constraint.plan[partner]) or state in partners or partner in moved:
            # Of a mutual pair only one may be answered as the other: swapped, they would hide nothing.
            continue
        if np.setdiff1d(policy.neighbors(state, constraint), [partner]).size == 0:
            pairs.append((state, partner))
            moved.add(state)
            partners.add(partner)
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


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
