"""`verify`: check that a plan keeps its promise, in integers and fractions, from public data alone.

Nothing that the planner used is used again: required pairs come from the policy's edges and the plan's own lists, norms
from the facets of the body that is sampled, degrees from counting pairs, the support from the history as a set. The
true state is nowhere.

Proof: docs/proofs/promise.md (what is required), docs/proofs/discrete-knorm.md, docs/proofs/staircase.md (losses).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from dphmm._notebook import html_lines
from dphmm.accounting.records import in_short, shown
from dphmm.audit.history import first_support, hidden, moved, support_of
from dphmm.audit.law import CONSTANT, Law, Table
from dphmm.audit.pairs import Clique, Pair, Pairs, Reach, TableReach, degrees, has_edge, law_of, reached, required_pairs
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import ReleaseChoices
from dphmm.session.plan import StepPlan
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, Exact, IntArray, Loss

#: Differences whose losses are enumerated, and points of a window at most.
_MOST_DIFFERENCES = 24
_MOST_PAIRS = 5000
_MOST_POINTS = 20_000
_LIKELIHOODS = 4


def verify(
    session_or_plan: ReleaseSession | StepPlan,
    policy: PolicyGraph | None = None,
    space: StateSpace | None = None,
    *,
    support: BoolArray | None = None,
) -> Verdict:
    """The exact worst log-ratio over all required pairs of a plan, and its other claims.

    Parameters
    ----------
    session_or_plan : a session, whose coming plan is verified and whose support is worked out again from its history;
        or a plan.
    policy, space : those that the plan is for; a session has its own.
    support : the states (N,) that must be considered possible, where they are known; the plan's own otherwise.

    Raises InvalidInput for a plan without its policy and space, or on another number of states.
    """
    if isinstance(session_or_plan, ReleaseSession):
        session = session_or_plan
        possible = support_of(session) if support is None else support
        setting = session.setting
        return _Audit(session.plan, setting.policy, setting.space, possible, setting.options.epsilon).verdict()
    plan = session_or_plan
    if not isinstance(plan, StepPlan):
        raise InvalidInput("session_or_plan", type(plan).__name__, "a ReleaseSession or one of its plans")
    if policy is None or space is None:
        raise InvalidInput("policy, space", "None", "what the plan was made for: a plan does not carry it")
    return _Audit(plan, policy, space, support, plan.epsilon).verdict()


@dataclass(frozen=True)
class _Audit:
    plan: StepPlan
    policy: PolicyGraph
    space: StateSpace
    support: BoolArray | None
    epsilon: Fraction

    def verdict(self) -> Verdict:
        plan = self.plan
        n = len(plan.image)
        if not self.policy.n_states == self.space.n_states == n:
            got = f"{self.policy.n_states} and {self.space.n_states} states"
            raise InvalidInput("policy, space", got, f"the plan's {n}")
        law = law_of(plan.mechanism)
        pairs = list(required_pairs(self.policy, plan))
        reach = reached(law, pairs, plan.image)
        degree = degrees(law, plan.image, plan.constraint.support, self.epsilon)
        exposed = self._exposed(degree)
        factor, cost, cost_pair = self._cost(law)
        enumerated, disagreeing = self._enumerated(law, pairs, cost_pair)
        findings = [
            *self._public_facts(),
            *law.faults(),
            *self._too_much(reach.worst),
            *self._partners(pairs),
            *([f"states {_some(exposed)} are exposed: no other possible state hides them"] if len(exposed) else []),
            *self._price(cost),
            *disagreeing,
            *self._likelihoods(law),
        ]
        return Verdict(
            epsilon=self.epsilon,
            plan=plan.hash,
            pairs=sum(map(len, pairs)),
            worst=reach.worst,
            body=self._certificate(reach),
            degrees=degree,
            exposed=exposed,
            factor=factor,
            cost=cost,
            cost_pair=cost_pair,
            enumerated=enumerated,
            findings=tuple(findings),
        )

    def _public_facts(self) -> Iterator[str]:
        """The findings where the plan's own facts differ from those that it was made for."""
        plan, constraint = self.plan, self.plan.constraint
        if plan.epsilon != self.epsilon:
            yield f"the plan is for epsilon {shown(plan.epsilon)}, not for {shown(self.epsilon)}"
        due = constraint.support if self.support is None else self.support
        missing = np.flatnonzero(due & ~constraint.support)
        if len(missing):
            yield f"states {_some(missing)} are possible, and the plan takes them to be impossible"
        if not np.array_equal(plan.image, self.space.lattice[constraint.surrogate]):
            yield "states are answered from elsewhere than their surrogates"
        if getattr(plan.mechanism, "hull", plan.hull).digest != plan.hull.digest:
            yield "the plan shows another body than it samples"
        if plan.constant and len(np.unique(plan.image[constraint.support], axis=0)) > 1:
            yield "different answers are released as a public constant"

    def _too_much(self, worst: Pair | None) -> Iterator[str]:
        if worst is not None and worst.loss > self.epsilon:
            loss = "without bound" if worst.loss == math.inf else in_short(worst.loss)
            yield f"the {worst.kind} pair ({worst.a}, {worst.b}) loses {loss}, not {in_short(self.epsilon, down=True)}"

    def _exposed(self, degree: IntArray) -> IntArray:
        support = self.plan.constraint.support
        if self.plan.constant and int(support.sum()) == 1:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(support & (degree < 2))

    def _partners(self, pairs: list[Pairs]) -> Iterator[str]:
        """A plan state without an edge has a partner that it keeps in all queries of its step: another possible one."""
        plan, constraint = self.plan, self.plan.constraint
        if plan.constant:
            return
        represented = np.unique(constraint.surrogate[has_edge(pairs, len(plan.image)) & constraint.support])
        alone = plan.plan_set.copy()
        alone[represented] = False
        alone[plan.joint_edges.reshape(-1)] = False
        listed = {int(a): int(b) for a, b in plan.partners}
        without = [state for state in np.flatnonzero(alone).tolist() if state not in listed]
        if without:
            yield f"states {_some(np.array(without))} have neither an edge nor a partner"
        wrong = [a for a, b in listed.items() if a == b or not constraint.support[b]]
        if wrong:
            yield f"the partners of states {_some(np.array(wrong))} are themselves, or impossible"

    def _cost(self, law: Law | Table) -> tuple[Loss, Loss, tuple[int, int] | None]:
        planned = self.plan.constraint.plan_states
        worst = reached(law, [Clique("planned", planned)], self.plan.image).worst
        if worst is None or not worst.norm:
            return Fraction(0), Fraction(0), None
        return worst.norm, worst.loss, (worst.a, worst.b)

    def _price(self, cost: Loss) -> Iterator[str]:
        if self.plan.cost < cost:
            charged = in_short(self.plan.cost, down=True)
            yield f"the plan is charged {charged}, and two planned states lose {in_short(cost)}"
        if not self.plan.constant and self.plan.promised < self.epsilon:
            promised = in_short(self.plan.promised, down=True)
            yield f"the plan promises {promised} where it may lose {in_short(self.epsilon)}"

    def _certificate(self, reach: Reach | TableReach) -> Certificate:
        law, worst = reach.law, reach.worst
        kind = TableCertificate if isinstance(law, Table) else Certificate
        return kind(
            mechanism=law.kind,
            epsilon=law.epsilon,
            states=int(self.plan.constraint.support.sum()),
            rank=law.rank,
            dimension=int(self.plan.image.shape[1]),
            facets=0 if isinstance(law, Table) else len(law.offsets),
            met=reach.met,
            widest=Fraction(0) if worst is None else worst.norm,
        )

    def _enumerated(
        self, law: Law | Table, pairs: list[Pairs], cost_pair: tuple[int, int] | None
    ) -> tuple[int, list[str]]:
        """Losses of some required differences, from every answer of a window: they must be those of the facets."""
        count, findings = 0, list[str]()
        if isinstance(law, Table) or law.kind == CONSTANT:
            return count, findings
        for v in self._differences(pairs, cost_pair):
            most = law.enumerated(v, _MOST_POINTS)
            if most is None:
                continue
            count += 1
            if most != law.loss(law.norm(v)):
                findings.append(f"answers that differ by {v.tolist()} lose {most}, and not {law.loss(law.norm(v))}")
        return count, findings

    def _differences(self, pairs: list[Pairs], cost_pair: tuple[int, int] | None) -> Iterator[IntArray]:
        """A few differences of answers."""
        two = [] if cost_pair is None else [cost_pair]
        for group in pairs:
            if isinstance(group, Clique):
                two += list(itertools.islice(itertools.combinations(group.members.tolist(), 2), _MOST_PAIRS))
            else:
                two += list(zip(group.a[:_MOST_PAIRS].tolist(), group.b[:_MOST_PAIRS].tolist(), strict=True))
        seen: set[tuple[int, ...]] = set()
        for a, b in two:
            v = self.plan.image[a] - self.plan.image[b]
            key = tuple(v.tolist())
            if key in seen or not v.any():
                continue
            seen.add(key)
            yield v
            if len(seen) == _MOST_DIFFERENCES:
                return

    def _likelihoods(self, law: Law | Table) -> Iterator[str]:
        """The findings where a few likelihoods differ from the exact exponents: a belief under another law misleads."""
        plan = self.plan
        some = plan.constraint.plan_states[:: max(1, len(plan.constraint.plan_states) // _LIKELIHOODS)]
        if isinstance(law, Table) and law.faults():
            return
        images = plan.image[some[:_LIKELIHOODS]]
        for z in images:
            likelihoods = plan.mechanism.log_likelihood_lattice(z, images)
            if not np.allclose(likelihoods, law.told(z, images), rtol=1e-9, atol=1e-9):
                yield "beliefs are told another law than that of the body"
                return


def _some(states: IntArray) -> str:
    listed = ", ".join(map(str, states[:6].tolist()))
    return listed if len(states) <= 6 else f"{listed}, … ({len(states)})"


@dataclass(frozen=True)
class Certificate:
    """The body of a plan.

    ``met``: facets that a required difference lies on (all of them where no smaller body would do); ``widest``: the
    largest norm of a required difference, at most 1 where the body contains them all.
    """

    mechanism: str
    epsilon: Fraction
    states: int
    rank: int
    dimension: int
    facets: int
    met: int
    widest: Loss

    @property
    def contains(self) -> bool:
        """True if every required difference lies in the body."""
        return self.widest <= 1

    def __str__(self) -> str:
        holds = "contains every required difference" if self.contains else "does NOT contain every required difference"
        return (
            f"{self.mechanism}, epsilon {in_short(self.epsilon)}, rank {self.rank} of {self.dimension}, "
            f"{2 * self.facets} facets, answers {self.states} states: it {holds} "
            f"(largest norm {in_short(self.widest)}; {self.met} of {self.facets} pairs of facets are met)"
        )


@dataclass(frozen=True)
class TableCertificate(Certificate):
    """The same of a table, which has no body: ``widest`` is the largest loss of a required pair over ε."""

    def __str__(self) -> str:
        holds = "keeps epsilon for every required pair" if self.contains else "does NOT keep epsilon for every pair"
        return f"{self.mechanism}, epsilon {in_short(self.epsilon)}, answers {self.states} states: it {holds}"


@dataclass(frozen=True, eq=False)
class Verdict:
    """The exact audit of a plan; its faults are in ``findings``, empty for one that keeps its promise.

    epsilon : the promise. pairs : the number of required pairs. worst : the one that loses most (None
    without any). body : its certificate. degrees (N,) : the degree of protection of every possible state, 0
    for the others. exposed : possible states that no other one hides. factor, cost : the largest norm of two plan
    states and their loss (Theorem 6.3); cost_pair : two that do. enumerated : differences whose loss was found again by
    looking at every answer of a window.
    """

    epsilon: Fraction
    plan: str
    pairs: int
    worst: Pair | None
    body: Certificate
    degrees: IntArray
    exposed: IntArray
    factor: Loss
    cost: Loss
    cost_pair: tuple[int, int] | None
    enumerated: int
    findings: tuple[str, ...]

    @property
    def convicted(self) -> bool:
        """True if the plan breaks its promise."""
        return bool(self.findings)

    @property
    def loss(self) -> Loss:
        """The loss of the worst required pair."""
        return Fraction(0) if self.worst is None else self.worst.loss

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        possible = self.degrees[self.degrees > 0]
        said = [f"plan {self.plan[:12]}: {'CONVICTED' if self.convicted else 'keeps its promise'}"]
        said += [f"  {finding}" for finding in self.findings]
        said.append(
            f"  {self.pairs} required pairs; {_worst_line(self.worst)}; promised: epsilon {in_short(self.epsilon)}"
        )
        said.append(f"  {self.body}")
        if len(possible):
            least, most = int(possible.min()), int(possible.max())
            after = f"{len(self.exposed)} states are exposed after those without an edge were joined"
            said.append(f"  degree of protection {least} to {most}; {after}")
        said.append(f"  {_cost_line(self)}")
        if self.enumerated:
            said.append(f"  {self.enumerated} losses found again by looking at every answer of a window")
        return said

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The verdict for machines: fractions as text, unbounded losses as null."""
        possible = self.degrees[self.degrees > 0]
        worst = self.worst
        return {
            "plan": self.plan,
            "convicted": self.convicted,
            "findings": list(self.findings),
            "epsilon": str(self.epsilon),
            "required_pairs": self.pairs,
            "worst": None if worst is None else _pair(worst),
            "body": {
                "mechanism": self.body.mechanism,
                "epsilon": str(self.body.epsilon),
                "states": self.body.states,
                "rank": self.body.rank,
                "facets": 2 * self.body.facets,
                "met": 2 * self.body.met,
                "largest_norm": _number(self.body.widest),
                "contains": self.body.contains,
            },
            "degree_of_protection": None
            if not len(possible)
            else {"least": int(possible.min()), "mean": float(possible.mean()), "most": int(possible.max())},
            "exposed": self.exposed.tolist(),
            "factor": _number(self.factor),
            "cost": _number(self.cost),
            "cost_pair": None if self.cost_pair is None else list(self.cost_pair),
            "enumerated": self.enumerated,
        }


def _pair(pair: Pair) -> dict[str, Any]:
    norm, loss = _number(pair.norm), _number(pair.loss)
    return {"kind": pair.kind, "states": [pair.a, pair.b], "norm": norm, "loss": loss}


def _number(value: Loss) -> str | None:
    return None if value == math.inf else str(value)


def _worst_line(worst: Pair | None) -> str:
    if worst is None:
        return "there is nothing to compare"
    lost = f"loses {in_short(worst.loss)} (norm {in_short(worst.norm)})"
    return f"the worst, the {worst.kind} pair ({worst.a}, {worst.b}), {lost}"


def _cost_line(verdict: Verdict) -> str:
    if verdict.cost_pair is None:
        return "cost 0: all planned states are answered alike"
    a, b = verdict.cost_pair
    if isinstance(verdict.body, TableCertificate):
        return f"cost {in_short(verdict.cost)}, between states {a} and {b}"
    factor = f"Theorem 6.3's factor is {in_short(verdict.factor)}"
    return f"cost {in_short(verdict.cost)}: {factor}, between states {a} and {b}"


def verify_steps(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    steps: int = 1,
    **choices: Unpack[ReleaseChoices],
) -> list[tuple[int, StepPlan, Verdict]]:
    """Verify the distinct plans of the first steps: (the first step of each, the plan, its verdict).

    With a δ-set the plans after step 1 depend on the answers: only the first is there.
    Choices are those of `ReleaseSession`.
    """
    if steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    setting = Setting.of(model, policy, space, epsilon, **choices)
    options, planner = setting.options, setting.planner
    support = first_support(model, options.start)
    plan = setting.first_plan()
    verdicts = [(1, plan, verify(plan, policy, space, support=hidden(model, support)))]
    if not isinstance(options.constraint, Support):
        return verdicts
    seen = {plan.hash}
    for t in range(2, steps + 1):
        following = moved(model, support)
        if np.array_equal(following, support):
            break
        support = following
        possible = hidden(model, support)
        plan = planner.plan(possible, possible)
        if plan.hash not in seen:
            seen.add(plan.hash)
            verdicts.append((t, plan, verify(plan, policy, space, support=possible)))
    return verdicts
