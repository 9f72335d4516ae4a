"""From the public state of a step to its plan; plans are kept by everything that made them and shared by subjects.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm.errors import DphmmError
from dphmm.mechanisms import Constant, LatticeMechanism, answer_mechanism, chosen_kind, mechanism_for
from dphmm.mechanisms.table_program import hops
from dphmm.policy import complete, from_edges
from dphmm.policy.constraint import Constraint, Support
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.sensitivity.hull import SensitivityHull, check_sizes, hull_of, thicken
from dphmm.sensitivity.protection import (
    AUTO,
    MERGE,
    Partner,
    Protection,
    nearest_covered,
    plan_merges,
    protect,
    without,
)
from dphmm.session.options import Options, StepChoice
from dphmm.session.plan import ALGORITHM_VERSION, NO_PARTNERS, StepPlan
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, IntArray

#: What a plan is made of: packed support, packed plan set, partners, and the joins of a record.
_Key: TypeAlias = tuple[bytes, bytes, bytes, bytes]
_Bytes: TypeAlias = bytes | memoryview
#: What `plan` may be told of a recorded plan.
JOIN = "join"
#: Errors that differ by so little are one, and by so little are alike.
_SAME_ERROR, _NEAR_ERROR = 1e-9, 0.01
#: The cache is bounded by the states its plans hold together: some 40 bytes for each.
_MOST_CACHED_STATES = 2**21
#: A δ-set seldom comes again but for who asks twice, and for subjects who start alike; memory that is free is reused.
_MOST_CACHED_DELTA_SETS = 64


class Planner:
    """Makes and keeps the plans of one policy, space and set of options. Threads may share one.

    ``chosen``: "epsilon" and "policy" as its plans record them, where they were chosen for single steps. ``weights``
    (N,): the times in 2**32 that people are in each state, by which protection="auto" weighs errors; None for
    alike.
    """

    def __init__(
        self,
        policy: PolicyGraph,
        space: StateSpace,
        options: Options,
        chosen: Mapping[str, str] | None = None,
        weights: IntArray | None = None,
    ) -> None:
        check_sizes(policy, space.lattice)
        self._chosen = dict(chosen or {})
        self.weights = weights
        self.policy = policy
        self.space = space
        self.options = options
        shared = {
            "version": ALGORITHM_VERSION,
            "space": space.digest,
            "policy": policy.digest,
            "options": options.written(),
        }
        if weights is not None and options.protection == AUTO:
            shared["weights"] = hashlib.sha256(weights.astype("<i8").tobytes()).hexdigest()
        self._shared = json.dumps(shared, sort_keys=True).encode() + b"\n"
        self._number = narrowest(space.n_states)
        most = max(16, _MOST_CACHED_STATES // space.n_states)
        self._most_plans = most if isinstance(options.constraint, Support) else min(most, _MOST_CACHED_DELTA_SETS)
        self._plans: OrderedDict[_Key, StepPlan] = OrderedDict()
        self._lock = threading.Lock()
        self._ways: IntArray | None = None

    def plan(
        self,
        support: BoolArray,
        plan_set: BoolArray,
        partners: IntArray = NO_PARTNERS,
        choice: StepChoice | None = None,
    ) -> StepPlan:
        """The plan of a step: from the cache, or made now.

        ``partners`` (p, 2) are edges that another query of the same timestamp has fixed. From ``choice`` it takes
        the joins alone; epsilon and policy are its own.
        """
        fixed = partners.astype("<i8").tobytes() if len(partners) else b""
        packed = np.packbits(support).tobytes()
        key = packed, packed if plan_set is support else np.packbits(plan_set).tobytes(), fixed, b""
        split = None if choice is None else choice.split
        if choice is not None and choice.joined:
            joins = choice.joins
            if joins is None:
                # Partners that somebody chooses are known once the plan has been made.
                made = self._make(support, plan_set, partners, key, choice)
                joins, split = made.joins, MERGE if len(made.merged) else JOIN
                choice = replace(choice, joins=joins, split=split)
            return self._kept((*key[:3], _joined(joins, split)), support, plan_set, partners, choice, split)
        plan = self._kept(key, support, plan_set, partners, choice, None)
        if split is not None and (split == MERGE) != bool(len(plan.merged)):
            # Which of two plans errs less is decided in floats: what was decided elsewhere is taken from there.
            plan = self._kept((*key[:3], split.encode()), support, plan_set, partners, choice, split)
        return plan

    @property
    def made(self) -> list[StepPlan]:
        """The plans that it keeps."""
        with self._lock:
            return list(self._plans.values())

    def _kept(
        self,
        key: _Key,
        support: BoolArray,
        plan_set: BoolArray,
        partners: IntArray,
        choice: StepChoice | None,
        split: str | None,
    ) -> StepPlan:
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(support, plan_set, partners, key, choice, split)
        with self._lock:
            self._plans[key] = plan
            self._plans.move_to_end(key)
            while len(self._plans) > self._most_plans:
                self._plans.popitem(last=False)
        return plan

    def _make(
        self,
        support: BoolArray,
        plan_set: BoolArray,
        partners: IntArray,
        key: _Key,
        choice: StepChoice | None,
        split: str | None = None,
    ) -> StepPlan:
        by_edges = self._hops if self.space.has_labels else None
        constraint = Constraint.surrogated(support, plan_set, self.space, by_edges)
        lattice, chosen = self.space.lattice, self._chosen
        policy = self.policy.union(from_edges(partners, len(lattice))) if len(partners) else self.policy
        step = _Step(policy, self.space, self.options, constraint, lattice, partners, self.weights)
        if choice is not None and choice.joined:
            chosen = {**chosen, "joins": "given"}
            step = step._replace(fixed=choice.fixed(policy, constraint, partners), method=choice.protection)
        step, body = step.protected(split)
        return StepPlan(
            constraint=step.constraint,
            epsilon=self.options.epsilon,
            lattice=lattice,
            hull=body.hull,
            mechanism=body.mechanism,
            joins=body.joins,
            merged=step.merged,
            partners=step.partners(body) if not body.constant else NO_PARTNERS,
            joint_edges=partners,
            cost=step.cost(body),
            constant=body.constant,
            inputs=self.inputs(key[0], key[1], self.narrow(constraint.surrogate).data, key[2]),
            packed=key[1],
            chosen=json.dumps(chosen, sort_keys=True) if chosen else "",
        )

    def _hops(self) -> IntArray:
        """The least number of policy edges from each state to each (N, N); N where there is no way."""
        if self._ways is None:
            n = self.space.n_states
            self._ways = hops(n, self.policy.edges(Constraint.of(None, n)))
        return self._ways

    def inputs(self, support: _Bytes, plan_set: _Bytes, surrogate: _Bytes, partners: bytes = b"") -> bytes:
        """The SHA-256 of all public inputs of a plan: `inputs_of`, with the line of this planner."""
        return inputs_of(self._shared, support, plan_set, surrogate, partners)

    def hashed_parts(self, plan: StepPlan) -> tuple[bytes, bytes, bytes, IntArray]:
        """The parts of a plan's hash: `inputs_of` hashes these, then the partners.

        The shared line; support and plan set, a bit for each state; surrogates (N,), before any state was merged.
        """
        hops = self._hops if self.space.has_labels else None
        before = Constraint.surrogated(plan.constraint.support, plan.plan_set, self.space, hops)
        return self._shared, np.packbits(plan.constraint.support).tobytes(), plan.packed, before.surrogate

    def narrow(self, states: IntArray) -> NDArray[Any]:
        """Numbers of states in the fewest bytes that hold any of them, or -1."""
        return states.astype(self._number)


class _Body(NamedTuple):
    hull: SensitivityHull
    mechanism: LatticeMechanism
    joins: IntArray
    constant: bool = False


class _Step(NamedTuple):
    """The parts that the body of one plan is made from.

    ``lattice`` (N, d) are the states' answers. A plan state is released as itself. ``fixed`` (m, 2) are edges that
    somebody chose for the step, and ``method`` how others are.
    """

    policy: PolicyGraph
    space: StateSpace
    options: Options
    constraint: Constraint
    lattice: IntArray
    assigned: IntArray = NO_PARTNERS
    weights: IntArray | None = None
    fixed: IntArray | None = None
    method: str | Partner | None = None
    #: States that the plan answers as others (m, 2), and the constraint before that.
    merged: IntArray = NO_PARTNERS
    whole: Constraint | None = None

    def protected(self, split: str | None = None) -> tuple[_Step, _Body]:
        """The step with the states that nothing hides joined to partners or answered as them, and its body.

        ``split``: "merge" or "join" where that was decided before.
        """
        method = self.options.protection if self.method is None else self.method
        asked = split == MERGE or (split is None and method in (AUTO, MERGE))
        if not asked or self.space.has_labels or (self.fixed is not None and len(self.fixed)):
            return self, self.body()
        if not len(self.policy.isolated(self.constraint)) and not len(self.assigned):
            return self, self.body()
        where = self.lattice, self.space.frame, self.constraint
        pairs = plan_merges(self.policy, *where, self.options.made_from == "answers", self.assigned)
        if not len(pairs):
            return self, self.body()
        merging = self._replace(constraint=without(self.constraint, pairs), merged=pairs, whole=self.constraint)
        if split == MERGE or method == MERGE:
            return merging, merging.body()
        return _least_error([(self, _tried(self)), (merging, _tried(merging))])

    def body(self) -> _Body:
        if _kernels.points.all_equal(self.lattice, self.constraint.plan_states):
            # Every answer is the same: it is released as it is, and says nothing.
            hull = hull_of(PolicyDifferences.of(self.policy, self.space.lattice, self.constraint), self.space.frame)
            return _Body(hull, Constant(hull, self.options.epsilon), NO_PARTNERS, constant=True)
        if self.options.made_from == "answers":
            return self._of_answers()
        # Noise in the hull of all differences that must be hidden.
        protection = self._protection()
        mechanism = mechanism_for(self._full(protection), self.options.epsilon, self.options.mechanism)
        return _Body(mechanism.hull, mechanism, protection.joins)

    def _of_answers(self) -> _Body:
        """A mechanism over the plan's answers. It hides by its edges alone, so every plan state has one."""
        protection = self._protection(isolated=True)
        joined = self.policy
        if len(protection.joins):
            joined = joined.union(from_edges(protection.joins, len(self.lattice)))
        if self.space.has_labels and _is_of_cliques(joined, self.constraint):
            # The category of a label is not published: all labels hide one another.
            joined = complete(len(self.lattice))
        made = answer_mechanism(self.options.mechanism, joined, self.space, self.options.epsilon, self.constraint)
        return _Body(protection.hull, made, protection.joins)

    def _protection(self, isolated: bool = False) -> Protection:
        where = self.space.lattice, self.space.frame, self.constraint
        method = self.options.protection if self.method is None else self.method
        if self.space.has_labels and isinstance(method, str):
            # Names have no distance by which one of them would be nearer than another.
            method = _heaviest(self.weights if method == AUTO else None)
        method = "nearest" if method in (AUTO, MERGE) else method
        return protect(self.policy, *where, method=method, isolated=isolated, joins=self.fixed)

    def _full(self, protection: Protection) -> SensitivityHull:
        hull = protection.hull
        if hull.rank == hull.dimension:
            return hull
        # Of a single point nothing is made: where answers differ, it is a flat body as every other one.
        if hull.rank and chosen_kind(self.options.mechanism).fills_space:
            return hull
        return thicken(protection.source, hull)

    def partners(self, body: _Body) -> IntArray:
        """For every plan state without a policy edge, the one state it hides with (corrected Theorem 7.1).

        The partner that protection joined it to, or else the nearest state whose difference the hull already covers.
        """
        before = self.constraint if self.whole is None else self.whole
        alone = self.policy.isolated(before)
        if len(alone) == 0:
            return NO_PARTNERS
        fixed = (
            dict(self.merged.tolist())
            | {int(a): int(b) for b, a in body.joins}
            | {int(a): int(b) for a, b in body.joins}
        )
        missing = np.array([s for s in alone.tolist() if s not in fixed], dtype=np.int64)
        image, among = self.lattice.take(self.constraint.surrogate, axis=0), np.flatnonzero(self.constraint.support)
        fixed |= dict(zip(missing.tolist(), nearest_covered(body.hull, image, missing, among).tolist(), strict=True))
        pairs = [(int(s), fixed[int(s)]) for s in alone]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def error(self, body: _Body) -> float:
        """The expected squared distance of an answer from the state, over the possible states by weight."""
        support = self.constraint.support
        weights = np.ones(len(support)) if self.weights is None else self.weights.astype(np.float64)
        weights = np.where(support, weights, 0.0)
        if not weights.any():
            weights = support.astype(np.float64)
        shift = self.space.answers[self.constraint.surrogate] - self.space.own_answers
        noise = body.mechanism.expected_error
        return float(weights @ (noise + np.square(shift).sum(axis=1)) / weights.sum())

    def least_degree(self, body: _Body) -> int:
        """The least degree of protection of a possible state."""
        image, support = self.lattice.take(self.constraint.surrogate, axis=0), np.flatnonzero(self.constraint.support)
        return int(body.mechanism.degrees(image, support, support).min())

    def cost(self, body: _Body) -> Fraction:
        """The largest loss of any two plan states (Theorem 6.3 with the mechanism's own loss)."""
        if body.constant:
            return Fraction(0)
        cost = body.mechanism.largest_loss_among(self.lattice.take(self.constraint.plan_states, axis=0))
        assert isinstance(cost, Fraction), "a body of full dimension"
        return cost


def _is_of_cliques(policy: PolicyGraph, constraint: Constraint) -> bool:
    """True if the plan states fall into several components, in each of which every two are joined."""
    component = policy.components(constraint)[constraint.plan_states]
    sizes = np.bincount(component)
    return len(sizes) > 1 and len(policy.edges(constraint)) == int((sizes * (sizes - 1) // 2).sum())


def _heaviest(weights: IntArray | None) -> Partner:
    """Partners of labels that nothing hides: the likeliest other one, ties and no weights to the lowest number."""

    def partner(state: int, others: IntArray) -> int:
        return int(others[0] if weights is None else others[np.argmax(weights[others])])

    return partner


def _tried(step: _Step) -> _Body | DphmmError:
    """The body of a step, or why it is refused."""
    try:
        return step.body()
    except DphmmError as error:
        return error


def _least_error(candidates: list[tuple[_Step, _Body | DphmmError]]) -> tuple[_Step, _Body]:
    """The candidate of least expected error, of two, joins first.

    If both err alike, to 1e-9, it is the first; to 1 %, the one with the larger least degree of protection.
    """
    made = [(step, body) for step, body in candidates if isinstance(body, _Body)]
    if not made:
        refused = candidates[0][1]
        assert isinstance(refused, DphmmError)
        raise refused
    if len(made) == 1:
        return made[0]
    errors = [step.error(body) for step, body in made]
    apart, larger = abs(errors[0] - errors[1]), max(errors)
    if apart <= _SAME_ERROR * larger:
        return made[0]
    if apart <= _NEAR_ERROR * larger:
        degrees = [step.least_degree(body) for step, body in made]
        if degrees[0] != degrees[1]:
            return made[int(np.argmax(degrees))]
    return made[int(np.argmin(errors))]


def _joined(joins: IntArray, split: str | None) -> bytes:
    """Joins (m, 2) in a key, and whether others are merged: another one than where nobody chose any."""
    return f"joins {split} ".encode() + joins.astype("<i8").tobytes()


def inputs_of(shared: bytes, support: _Bytes, plan_set: _Bytes, surrogate: _Bytes, partners: bytes = b"") -> bytes:
    """The SHA-256 of all public inputs of a plan.

    One line of JSON that all plans share; support and plan set, a bit for each state; the surrogates; partners. The
    line says how many states there are, so how long each part is.
    """
    return hashlib.sha256(b"".join((shared, support, plan_set, surrogate, partners))).digest()


def narrowest(n_states: int) -> np.dtype[Any]:
    """The type in which the numbers of so many states, or -1, are written."""
    return np.dtype(next(f"<i{size}" for size in (2, 4, 8) if n_states <= 2 ** (8 * size - 1)))
