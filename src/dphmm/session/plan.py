"""A plan, everything about one release that is decided before the true state is looked at; and the step that it is of.

A plan is a pure function of public data: the space, the policy, the support and plan set of the step, the options.
Its hash names it in ledgers, files and services; the same public inputs give the same hash everywhere.

A step is Algorithm 2 of the DPHMM paper on public data (with errata 12, 15, 21 and docs/theory.md 3 and 6):

predict → constraint and surrogates → contracted policy → protection → body → mechanism → (true state) → condition

`Likelihood` says how likely a plan makes an answer, in plain floats: exp(-ε·norm) of every state at once, without
logs. A staircase is decided exactly. With v = |normal·(z − image)|, o the offset of a facet and a its allowance, the
steps to a facet are floor(R), R = (v + o − 1 − a)/o. The kernel has R up to a factor 1 ± 2**-51 and adds 2**-48 of
it, which passes no integer k > R: k − R is at least 1/o, and R·2**-47 less than that while v + o < 2**46. Plans and
answers beyond that bound have none here; `StepPlan.log_likelihood` serves them.

Proofs: docs/proofs/promise.md, docs/proofs/support.md (`still_possible`), docs/proofs/joint-queries.md (partners).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.accounting.ledger import Entry, PlanRecord, Request
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import LatticeMechanism
from dphmm.mechanisms.answer_table import AnswerTable, TableLaw
from dphmm.policy.constraint import Constraint, DeltaSet, Support, delta_states
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

#: Part of every plan hash: raise it when the same inputs would make another plan.
ALGORITHM_VERSION = 4
NO_PARTNERS: IntArray = np.zeros((0, 2), dtype=np.int64)
NO_PARTNERS.setflags(write=False)
_quoted = json.JSONEncoder().encode


@dataclass(frozen=True, eq=False)
class StepPlan:
    """One step's release, ready but for the true state.

    ``lattice`` (N, d): the lattice answer of every state, which is released as its surrogate's. ``hull``: the body of
    the noise of ``mechanism`` (of a table, the hull of the pairs that it keeps, which it does not use). ``joins``
    (m, 2): edges added by protection. ``partners`` (p, 2): for every plan state without an edge, the state it hides
    with in all queries of this step; ``joint_edges``: those that other queries had fixed before. ``cost``: the largest
    loss between any two plan states (Theorem 6.3). ``inputs``: the SHA-256 of all public inputs. ``merged`` (m, 2):
    plan states that nothing hides, and the plan states that they are answered as instead of being joined to one;
    ``constraint`` is without them. ``packed``: the plan set with them, a bit for each state. ``chosen``: the choices
    for the step alone, as JSON; "" for none.
    """

    constraint: Constraint
    epsilon: Fraction
    lattice: IntArray
    hull: SensitivityHull
    mechanism: LatticeMechanism
    joins: IntArray
    partners: IntArray
    joint_edges: IntArray
    cost: Fraction
    constant: bool
    inputs: bytes
    packed: bytes
    chosen: str = ""
    merged: IntArray = field(default_factory=lambda: NO_PARTNERS)

    @cached_property
    def image(self) -> IntArray:
        """The lattice answer of every state's surrogate (N, d)."""
        return self.lattice.take(self.constraint.surrogate, axis=0)

    @cached_property
    def plan_set(self) -> BoolArray:
        """The plan states (N,), those among them that are answered as others too."""
        if not len(self.merged):
            return self.constraint.plan
        plan = self.constraint.plan.copy()
        plan[self.merged[:, 0]] = True
        return plan

    @cached_property
    def lowest_state(self) -> int:
        """The lowest-numbered plan state."""
        return int(np.argmax(self.constraint.plan))

    def log_likelihood(self, z: IntArray) -> FloatArray:
        """log Pr(z | s) (N,) up to a constant common to all states."""
        return self.mechanism.log_likelihood_lattice(z, self.image)

    def still_possible(self, z: IntArray) -> BoolArray:
        """The states (N,) of the support that z may come from: all of them, or none where the plan never gives z."""
        return self.constraint.support & self.mechanism.possible(z, self.image)

    def degrees(self) -> IntArray:
        """Degrees of protection (N,), the state itself counted; 0 for impossible states.

        Proof: docs/proofs/degree.md.
        """
        degrees = np.zeros(len(self.image), dtype=np.int64)
        support = np.flatnonzero(self.constraint.support)
        degrees[support] = self.mechanism.degrees(self.image, support, support)
        return degrees

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of all public inputs, of the hull, and of what was chosen."""
        return self.record.hash

    @cached_property
    def record(self) -> PlanRecord:
        """The ledger's record of the plan: its plan set, and its description."""
        return record_of(self.inputs, self.hull.digest, self._description(), self.packed, len(self.lattice))

    @cached_property
    def request(self) -> Request:
        """A release under it, as a ledger is asked for one: for step 1, and for nobody yet."""
        return Request("", "", 1, "release", self.promised, self.cost, self.record, True, self.constant)

    def _description(self) -> str:
        """The description of the plan: JSON with its names in order. Lists of numbers print as JSON has them."""
        mechanism = in_json(self.mechanism.describe())
        chosen = f'"chosen": {self.chosen}, ' if self.chosen else ""
        merged = f'"merged": {self.merged.tolist()}, ' if len(self.merged) else ""
        pairs = self.joint_edges.tolist(), self.joins.tolist(), self.partners.tolist()
        return description_of(self.cost, mechanism, *pairs, chosen, merged)

    @property
    def promised(self) -> Fraction:
        """The ε that a release is charged: none for a public constant, which says nothing."""
        return Fraction(0) if self.constant else self.epsilon

    @cached_property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return self.mechanism.name

    @property
    def expected_error(self) -> float:
        """E‖noise‖² in answer units squared."""
        return self.mechanism.expected_error

    def __repr__(self) -> str:
        return f"StepPlan({self.hash[:12]}, {int(self.constraint.plan.sum())} states, {self.mechanism_name})"


def record_of(inputs: bytes, body: str, description: str, packed: bytes, n_states: int) -> PlanRecord:
    """The record of a plan: its hash is made of its inputs, the digest of its hull, and what was chosen."""
    hashed = hashlib.sha256(inputs + (body + description).encode())
    return PlanRecord(hashed.hexdigest(), packed, n_states, description)


def description_of(
    cost: Fraction,
    mechanism: str,
    joint_edges: Sequence[list[int]] = (),
    joins: Sequence[list[int]] = (),
    partners: Sequence[list[int]] = (),
    chosen: str = "",
    merged: str = "",
) -> str:
    """The description of a plan, as JSON."""
    return (
        f'{{{chosen}"cost": "{cost}", '
        f'"given_partners": {list(joint_edges)}, "joins": {list(joins)}, '
        f'"mechanisms": [{mechanism}], {merged}"partners": {list(partners)}}}'
    )


def in_json(described: Mapping[str, str]) -> str:
    """A JSON object, its names in order."""
    return _object_of(tuple(sorted(described.items())))


@lru_cache(maxsize=2**10)
def _object_of(items: tuple[tuple[str, str], ...]) -> str:
    """A JSON object: the plans of a setting have few mechanisms."""
    return "{" + ", ".join([f"{_quoted(name)}: {_quoted(text)}" for name, text in items]) + "}"


def plan_states(record: PlanRecord) -> BoolArray:
    """The plan set (N,) that a ledger kept."""
    packed = np.frombuffer(record.plan_states, dtype=np.uint8)
    return np.unpackbits(packed, count=record.n_states).astype(np.bool_)


def fixed_partners(record: PlanRecord) -> IntArray:
    """The partners (p, 2) that a recorded plan fixed for all queries of its timestamp."""
    return _pairs(record, "partners")


def recorded_joint_edges(record: PlanRecord) -> IntArray:
    """The partners (p, 2) that had been fixed by other queries when a recorded plan was made."""
    return _pairs(record, "given_partners")


def recorded_merges(record: PlanRecord) -> IntArray:
    """The plan states (m, 2) of a recorded plan that are answered as others, and those."""
    return _pairs(record, "merged") if '"merged": ' in record.description else NO_PARTNERS


def recorded_joins(record: PlanRecord) -> IntArray:
    """The edges (m, 2) that protection added to a recorded plan."""
    return _pairs(record, "joins")


def chosen_of(record: PlanRecord) -> Mapping[str, str]:
    """The choices of a recorded plan in place of its setting's: "epsilon", "policy" (its digest), "joins"."""
    if not record.description.startswith('{"chosen"'):
        return {}
    try:
        chosen = json.loads(record.description)["chosen"]
        if not all(isinstance(text, str) for text in chosen.values()):
            raise TypeError
        return dict(chosen)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(record) from None


def damaged(record: PlanRecord) -> InvalidInput:
    """The error for a record that dphmm did not write."""
    fault = f"a damaged description of plan {record.hash[:12]}"
    return InvalidInput("ledger", fault, "a ledger as dphmm wrote it")


@lru_cache(maxsize=2**10)
def _parsed(description: str) -> Any:
    """A description: most steps of a history have the plan of an earlier one."""
    return json.loads(description)


def _pairs(record: PlanRecord, name: str) -> IntArray:
    try:
        pairs: IntArray = np.array(_parsed(record.description)[name], dtype=np.int64).reshape(-1, 2)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise damaged(record) from None
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < record.n_states:
        raise damaged(record)
    return pairs


def all_partners(records: list[PlanRecord]) -> IntArray:
    """The partners (p, 2) that other queries of the same step have fixed."""
    if not records:
        return NO_PARTNERS
    return np.unique(np.vstack([fixed_partners(record) for record in records]), axis=0)


def check_made_again(entry: Entry, made: str) -> None:
    """Raises InvalidInput where a recorded plan is not the one that the record makes today."""
    if made != entry.plan_hash:
        expected = f"{made}, made from the record by version {ALGORITHM_VERSION} of the algorithm"
        raise InvalidInput("ledger", f"plan {entry.plan_hash} at t={entry.t}", expected)


_ROOM = 2.0**44
_LARGEST_KEPT = 2**21


def exact_room() -> float:
    """The bound of exact floats."""
    return _ROOM


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The arrays of a plan that the kernel reads; answers have to be within ``room``.

    ``columns`` (d, N) are the states' answers. If states are released as others, ``columns`` (d, P) are of the plan
    states of ``contracted`` alone.
    """

    columns: FloatArray
    facets: _kernels.filter.Facets
    room: float
    contracted: Constraint | None

    @classmethod
    def of(cls, plan: StepPlan) -> Likelihood | None:
        """The likelihood of a plan, or None where it is not of the kind that floats serve exactly."""
        law = plan.mechanism.float_law
        if law is None:
            return TableLikelihood.of_table(plan)
        facets, longest, largest = _kernels.filter.facets_of(law)
        contracted = plan.constraint if plan.constraint.contracted else None
        numbers = np.arange(len(plan.image)) if contracted is None else contracted.plan_states
        columns, farthest = _kernels.filter.columns_of(plan.image, numbers)
        if longest * farthest >= _ROOM or largest >= _ROOM:
            return None
        return cls(columns, facets, _ROOM / longest, contracted)

    @property
    def size(self) -> int:
        """m·N, or m·P."""
        return len(self.facets.inverses) * len(self.columns[0])

    def holds(self, z: IntArray) -> bool:
        """True if answers (..., d) are near enough for exact floats."""
        return max(map(abs, z.ravel().tolist())) < self.room

    def at(self, z: IntArray) -> FloatArray | None:
        """Pr(z | s) (N,) up to a constant of the plan; None for an answer (d,) too far away."""
        if not self.holds(z):
            return None
        out = _kernels.filter.likelihood_of_points(self.columns, self.facets, z)
        within = self.contracted
        return out if within is None else _kernels.filter.as_released(out, within.plan_states, within.surrogate)

    def of_answers(self, answers: IntArray) -> FloatArray | None:
        """`at` of several answers (k, d), in rows (k, N); None where one of them is too far away."""
        if not self.holds(answers):
            return None
        rows = _kernels.filter.likelihood_of_answers(self.columns, self.facets, answers)
        within = self.contracted
        if within is None:
            return rows
        of_state = np.empty((len(rows), len(within.surrogate)))
        of_state[:, within.plan_states] = rows
        return of_state[:, within.surrogate]


@dataclass(frozen=True, eq=False)
class TableLikelihood(Likelihood):
    """The likelihood of a plan with K listed answers: ``rows`` (K, N) are their probabilities given the states."""

    law: TableLaw
    rows: FloatArray

    @classmethod
    def of_table(cls, plan: StepPlan) -> TableLikelihood | None:
        """The likelihood of a table's plan, else None."""
        if not isinstance(plan.mechanism, AnswerTable):
            return None
        law = plan.mechanism.law
        rows = np.ascontiguousarray(law.probabilities[law.numbers(plan.image)].T)
        count, d = law.points.shape
        none = np.zeros(count)
        facets = _kernels.filter.Facets(np.zeros((count, d)), none, none, 0, 0.0, none[:0])
        return cls(rows[:1], facets, np.inf, None, law, rows)

    def holds(self, z: IntArray) -> bool:
        """True if all answers (..., d) are listed."""
        return bool((self.law.numbers(z.reshape(-1, z.shape[-1])) >= 0).all())

    def at(self, z: IntArray) -> FloatArray | None:
        """Pr(z | s) (N,); None for an answer (d,) that is not listed."""
        rows = self.of_answers(z[None])
        return None if rows is None else rows[0]

    def of_answers(self, answers: IntArray) -> FloatArray | None:
        """`at` of several answers (k, d), in rows (k, N); None where one of them is not listed."""
        numbers = self.law.numbers(answers)
        return self.rows[numbers] if (numbers >= 0).all() else None


_KNOWN: WeakKeyDictionary[StepPlan, Likelihood | None] = WeakKeyDictionary()


def likelihood_of(plan: StepPlan) -> Likelihood | None:
    """`Likelihood.of`, made once for a plan unless it is very large."""
    if plan in _KNOWN:
        return _KNOWN[plan]
    made = Likelihood.of(plan)
    if made is None or made.size <= _LARGEST_KEPT:
        _KNOWN[plan] = made
    return made


def updated(prior: Belief, plan: StepPlan, z: IntArray) -> Belief | None:
    """The prior given an answer z (d,), as `Likelihood.at` and `Belief.weighted` have it; None where floats do not do.

    Nothing is kept for a second answer but of a table: with a plan of its own at every step there is none.
    """
    law, latent = plan.mechanism.float_law, prior.latent
    if latent.row is None:
        return None
    if law is None:
        listed = likelihood_of(plan)
        weights = None if listed is None else listed.at(z)
        return None if weights is None else prior.weighted(weights, plan.still_possible(z))
    seen, n = plan.constraint, latent.n_states
    posterior, remaining = np.empty(n), np.empty(n, dtype=np.bool_)
    released = plan.lattice, prior.lifted(seen.support), seen.plan_states, prior.lifted(seen.surrogate)
    fits = _kernels.filter.update(latent.row, latent.support, z, *released, law, _ROOM, posterior, remaining)
    return prior.of_latent(Belief.of_row(posterior, remaining)) if fits else None


class Position(NamedTuple):
    """The public state of a subject's releases: the belief before step ``t``, given all answers before it.

    ``ahead``: the offset from t to the number of the step that selects a model's slot.
    """

    t: int
    prior: Belief
    ahead: int = 0

    @classmethod
    def first(cls, model: MarkovModel, start: str, ahead: int = 0) -> Position:
        """Before step 1. start="before": the initial distribution describes t = 0, one transition earlier."""
        initial = Belief.initial(model)
        return cls(1, initial.predict(model, t=1 + ahead) if start == "before" else initial, ahead)

    def constrain(self, constraint: Support | DeltaSet) -> BoolArray:
        """ΔX_t (N,): the support, or a δ-set of the prior."""
        if isinstance(constraint, Support):
            return self.prior.support
        return delta_states(self.prior.probability, self.prior.support, constraint.exact)

    def condition(self, plan: StepPlan, z: IntArray) -> Belief:
        """The belief given this step's release, too."""
        posterior = updated(self.prior, plan, z)
        if posterior is None:
            return self.prior.condition(plan.log_likelihood(z), plan.still_possible(z))
        return posterior

    def predict(self, model: MarkovModel, now: Belief) -> Position:
        """The position one transition later."""
        return Position(self.t + 1, now.predict(model, t=self.t + 1 + self.ahead), self.ahead)

    def predict_through(self, model: MarkovModel, through: int) -> Position:
        """The position at step ``through`` when nothing is published from this one on."""
        prior = self.prior.predict_many(model, self.t + 1 + self.ahead, through - self.t)
        return Position(through, prior, self.ahead)

    def skip(self, model: MarkovModel, steps: int) -> Position:
        """The position after some steps without a release."""
        last = self.predict_through(model, self.t + steps - 1)
        return last.predict(model, last.prior)


def spread(belief: Belief, space: StateSpace) -> float:
    """Root of the mean squared distance of a belief's answers from their mean, in answer units.

    For labels, the probability that the likeliest state is not the true one.
    """
    p, answers = belief.probability, space.own_answers
    if space.has_labels:
        return max(0.0, 1.0 - float(p.max()))
    away = answers - p @ answers
    return float(np.sqrt(p @ np.einsum("sj,sj->s", away, away)))
