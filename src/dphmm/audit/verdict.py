"""What an exact audit of one plan says, as numbers and as lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dphmm.accounting.records import in_short
from dphmm.audit.reach import Pair
from dphmm.types import IntArray, Loss


@dataclass(frozen=True)
class Certificate:
    """One body of a plan.

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
        """Whether every required difference lies in the body."""
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
    """The exact audit of a plan; what convicts it is in ``findings``, empty for one that keeps its promise.

    epsilon : what was promised. pairs : how many required pairs there are. worst : the one that loses most (None
    without any). bodies : the certificate of each. degrees (N,) : the degree of protection of every possible state, 0
    for the others. exposed : possible states that no other one hides. factor, cost : the largest norm of two plan
    states and what they lose (Theorem 6.3); cost_pair : two that do. enumerated : differences whose loss was found
    again by looking at every answer of a window.
    """

    epsilon: Fraction
    plan: str
    pairs: int
    worst: Pair | None
    bodies: tuple[Certificate, ...]
    degrees: IntArray
    exposed: IntArray
    factor: Loss
    cost: Loss
    cost_pair: tuple[int, int] | None
    enumerated: int
    findings: tuple[str, ...]

    @property
    def convicted(self) -> bool:
        """Whether the plan breaks what it promises."""
        return bool(self.findings)

    @property
    def loss(self) -> Loss:
        """What the worst required pair loses."""
        return Fraction(0) if self.worst is None else self.worst.loss

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        possible = self.degrees[self.degrees > 0]
        said = [f"plan {self.plan[:12]}: {'CONVICTED' if self.convicted else 'keeps its promise'}"]
        said += [f"  {finding}" for finding in self.findings]
        said.append(f"  {self.pairs} required pairs; {_worst(self.worst)}; promised: epsilon {in_short(self.epsilon)}")
        said += [f"  {body}" for body in self.bodies]
        if len(possible):
            least, most = int(possible.min()), int(possible.max())
            after = f"{len(self.exposed)} states are exposed after those without an edge were joined"
            said.append(f"  degree of protection {least} to {most}; {after}")
        said.append(f"  {_cost(self)}")
        if self.enumerated:
            said.append(f"  {self.enumerated} losses found again by looking at every answer of a window")
        return said

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
            "bodies": [
                {
                    "mechanism": body.mechanism,
                    "epsilon": str(body.epsilon),
                    "states": body.states,
                    "rank": body.rank,
                    "facets": 2 * body.facets,
                    "met": 2 * body.met,
                    "largest_norm": _number(body.widest),
                    "contains": body.contains,
                }
                for body in self.bodies
            ],
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


def _worst(worst: Pair | None) -> str:
    if worst is None:
        return "there is nothing to compare"
    lost = f"loses {in_short(worst.loss)} (norm {in_short(worst.norm)})"
    return f"the worst, the {worst.kind} pair ({worst.a}, {worst.b}), {lost}"


def _cost(verdict: Verdict) -> str:
    if verdict.cost_pair is None:
        return "cost 0: all planned states are answered alike"
    a, b = verdict.cost_pair
    if any(isinstance(body, TableCertificate) for body in verdict.bodies):
        return f"cost {in_short(verdict.cost)}, between states {a} and {b}"
    factor = f"Theorem 6.3's factor is {in_short(verdict.factor)}"
    return f"cost {in_short(verdict.cost)}: {factor}, between states {a} and {b}"
