"""Every plan that the pictured releases were drawn under, made again from public data, as a page needs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.accounting.ledger import Ledger
from dphmm.audit.degrees import degrees
from dphmm.audit.findings import Findings
from dphmm.audit.history import bodies_of
from dphmm.audit.replay import Answer, Replay
from dphmm.batch import Progress
from dphmm.errors import InvalidInput
from dphmm.report.encoding import Shelf, repeated, runs
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.session.plan import Plan
from dphmm.session.subjects import Subjects
from dphmm.types import IntArray, Loss


@dataclass(frozen=True)
class PlanFacts:
    """What a page says of one plan.

    ``degrees``: the least, mean and largest degree of protection of the possible states. ``spent``: its epsilon and its
    cost as a released file has them.

    ``support``, ``plan_set``, ``hulls`` (one for each law of noise) and ``body_of`` are numbers of the timeline's
    tables.
    """

    hash: str
    support: int
    plan_set: int
    hulls: tuple[int, ...]
    body_of: int
    joins: tuple[tuple[int, int], ...]
    states: tuple[int, int]
    degrees: tuple[int, float, int]
    exposed: int
    mechanism: str
    constant: bool
    spent: tuple[float, float]


@dataclass
class Timeline:
    """The plan of every pictured row: ``plan_of`` maps a row's number to the number of its plan."""

    plans: list[PlanFacts] = field(default_factory=list)
    plan_of: dict[int, int] = field(default_factory=dict)
    sets: Shelf = field(default_factory=Shelf)
    hulls: Shelf = field(default_factory=Shelf)
    bodies: Shelf = field(default_factory=Shelf)
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, row: int, plan: Plan) -> None:
        """One more row and its plan."""
        if plan.hash not in self._known:
            self._known[plan.hash] = len(self.plans)
            self.plans.append(self._facts(plan))
        self.plan_of[row] = self._known[plan.hash]

    def degree_rows(self, rows: IntArray) -> list[tuple[int, float, int]]:
        """The degrees of protection at some rows."""
        return [self.plans[self.plan_of[row]].degrees for row in rows.tolist()]

    def _facts(self, plan: Plan) -> PlanFacts:
        inside, bodies = plan.constraint, bodies_of(plan)
        if any(mechanism.made_from == "answers" for mechanism in plan.mechanisms):
            expected = (
                "releases that add noise: the page draws whom a state hides among as a hull, and a table has none"
            )
            raise InvalidInput("mechanism", plan.mechanism, expected)
        # Bodies of one law are one: a state hides among all that it answers, of whatever component.
        first = [plan.body_of[np.argmax(bodies.law_of == law)] for law in range(len(bodies.laws))]
        hulls = [plan.hulls[body] for body in first]
        among = degrees(bodies, plan.image, inside.support, plan.epsilon)[inside.support]
        return PlanFacts(
            hash=plan.hash,
            support=self._set(inside.support),
            plan_set=self._set(inside.plan),
            hulls=tuple(self.hulls.put(hull.digest, _drawn(hull)) for hull in hulls),
            body_of=self.bodies.put(bodies.law_of.tobytes(), repeated(bodies.law_of)),
            joins=tuple((int(a), int(b)) for a, b in plan.joins),
            states=(int(inside.support.sum()), int(inside.plan.sum())),
            degrees=(int(among.min()), float(among.mean()), int(among.max())),
            exposed=0 if plan.constant else int((among == 1).sum()),
            mechanism=plan.mechanism,
            constant=plan.constant,
            spent=(float(plan.promised), _float_above(plan.cost)),
        )

    def _set(self, mask: Any) -> int:
        return self.sets.put(np.packbits(mask).tobytes(), runs(mask))


@dataclass(frozen=True, eq=False)
class Told:
    """One explored subject: the numbers of its rows by step, and all that was published about it, by step."""

    user: str
    rows: IntArray
    step: IntArray
    history: Sequence[Answer]


def remade(
    subjects: Sequence[Told],
    released: Subjects,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> tuple[Timeline, list[Plan]]:
    """The timeline of some subjects, and the plans of the first one's answers.

    Raises InvalidInput where an answer was drawn under another plan than these public data make.
    """
    findings = Findings()
    replay = Replay(released, ledger, findings, 0)
    timeline, done = Timeline(), 0
    first: list[Plan] = []
    total = sum(len(subject.history) for subject in subjects)
    for subject in subjects:
        plans = replay.plans(subject.user, subject.history)
        if plans is None:
            raise InvalidInput("released", findings.sentences[-1], "answers drawn under the plans of these choices")
        by_step = {answer.t: plan for answer, plan in zip(subject.history, plans, strict=True)}
        for row, t in zip(subject.rows.tolist(), subject.step.tolist(), strict=True):
            timeline.add(row, by_step[t])
        first = first or plans
        done += len(plans)
        if progress is not None:
            progress(done, total)
    return timeline, first


def _float_above(cost: Loss) -> float:
    """The least float that is not below a cost."""
    near = float(cost)
    return near if isinstance(cost, float) or Fraction(near) >= cost else math.nextafter(near, math.inf)


def _drawn(hull: SensitivityHull) -> dict[str, Any]:
    """A body in lattice steps: |a·v| <= b for every facet, e·v = 0, and its corners where they are known."""
    corners = hull.hull_vertices
    return {
        "a": (hull.normals @ hull.coordinates).tolist(),
        "b": hull.offsets.tolist(),
        "e": hull.equations.tolist(),
        "v": [] if corners is None else (corners @ hull.basis.T).tolist(),
    }
