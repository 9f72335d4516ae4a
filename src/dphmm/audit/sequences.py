"""Theorem 7.2 against the truth: the largest loss of any two histories over all releases, exactly, on small models.

Where plans do not depend on answers, noises are independent and the loss of two histories is the sum of the losses of
their states, step by step: each is reached by some answer, and all together by all of them. So the worst two histories
are a longest path in the product of the chain with itself, found by dynamic programming in fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from dphmm._notebook import html_lines
from dphmm.accounting.records import in_short
from dphmm.audit.history import first_support, hidden, moved
from dphmm.audit.law import Table
from dphmm.audit.pairs import law_of
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import ReleaseChoices
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, Exact, Loss

#: Pairs of moves in all steps together.
_MOST_WORK = 50_000_000


@dataclass(frozen=True)
class SequenceVerdict:
    """The real loss of two possible histories of one person, beside the loss that was charged.

    ``charged`` is the charge of Theorem 7.2, the sum of the costs; ``worst`` the largest loss of two possible
    histories, ``first`` and ``second``, that really occurs. ``epsilons`` is the sum of the epsilons, which bounds
    nothing.
    """

    charged: Fraction
    worst: Loss
    epsilons: Fraction
    first: tuple[int, ...]
    second: tuple[int, ...]

    @property
    def convicted(self) -> bool:
        """True if two histories lose more than was charged."""
        return self.worst > self.charged

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        word = "CONVICTED" if self.convicted else "Theorem 7.2 holds"
        lost = f"two histories lose {in_short(self.worst)} of {in_short(self.charged)} charged"
        return [
            f"{len(self.first)} releases: {word}; {lost}",
            f"  {list(self.first)} against {list(self.second)}; the sum of the epsilons is {in_short(self.epsilons)}",
        ]

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "convicted": self.convicted,
            "charged": str(self.charged),
            "worst": None if self.worst == math.inf else str(self.worst),
            "epsilons": str(self.epsilons),
            "histories": [list(self.first), list(self.second)],
        }


def sequence_loss(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    steps: int,
    **choices: Unpack[ReleaseChoices],
) -> SequenceVerdict:
    """The exact worst loss of two histories over so many releases, and the charge for them.

    Choices are those of `ReleaseSession`. Raises InvalidInput for plans that depend on answers (δ-sets), and for a
    model too large to look at every pair of moves.
    """
    setting = Setting.of(model, policy, space, epsilon, **choices)
    options = setting.options
    if not setting.has_public_plans:
        raise InvalidInput("constraint", str(options.constraint), "the support: plans that are known beforehand")
    moves = int(model.transition_at(1).nnz)
    if steps < 1 or moves**2 * steps > _MOST_WORK:
        raise InvalidInput("steps", steps, f"1 or more, and at most {_MOST_WORK} pairs of moves in all")
    plans, supports = _plans(setting, steps)
    tables = [losses(plan) for plan in plans]
    worst, first, second = _worst_histories(model, tables, supports)
    charged = sum((plan.cost for plan in plans), Fraction(0))
    return SequenceVerdict(charged, worst, sum((plan.promised for plan in plans), Fraction(0)), first, second)


def losses(plan: StepPlan) -> list[list[Loss]]:
    """The loss between every two states (N, N) in one release; infinite where they share no answer."""
    law, n = law_of(plan.mechanism), len(plan.image)
    known: dict[tuple[int, ...], Loss] = {}

    def loss(a: int, b: int) -> Loss:
        ends = (plan.image[a], plan.image[b]) if isinstance(law, Table) else (plan.image[a] - plan.image[b],)
        key = tuple(int(x) for end in ends for x in end)
        if key not in known:
            known[key] = law.between(plan.image[a], plan.image[b])
        return known[key]

    return [[loss(a, b) for b in range(n)] for a in range(n)]


def _plans(setting: Setting, steps: int) -> tuple[list[StepPlan], list[BoolArray]]:
    model = setting.model
    support = first_support(model, setting.options.start)
    plans, supports = [], []
    for _ in range(steps):
        possible = hidden(model, support)
        plans.append(setting.planner.plan(possible, possible))
        supports.append(support)
        support = moved(model, support)
    return plans, supports


Best = dict[tuple[int, int], tuple[Loss, tuple[int, int] | None]]


def _worst_histories(
    model: MarkovModel, tables: list[list[list[Loss]]], supports: list[BoolArray]
) -> tuple[Loss, tuple[int, ...], tuple[int, ...]]:
    """The longest path in the product chain; a step keeps, for each two states, the worst way to be in them."""
    possible = np.flatnonzero(supports[0]).tolist()
    secret = list(range(model.n_states)) if model.secrets is None else model.secrets.tolist()
    layers: list[Best] = [{(a, b): (tables[0][secret[a]][secret[b]], None) for a in possible for b in possible}]
    for t in range(2, len(tables) + 1):
        matrix = model.transition_at(1)
        to = [row.tolist() for row in np.split(matrix.indices, matrix.indptr[1:-1])]
        layer: Best = {}
        for (a, b), (value, _) in layers[-1].items():
            for x in to[a]:
                for y in to[b]:
                    total = value + tables[t - 1][secret[x]][secret[y]]
                    if (x, y) not in layer or total > layer[x, y][0]:
                        layer[x, y] = (total, (a, b))
        layers.append(layer)
    end = max(layers[-1], key=lambda pair: layers[-1][pair][0])
    worst = layers[-1][end][0]
    path, at = [end], layers[-1][end][1]
    for layer in layers[-2::-1]:
        assert at is not None
        path.append(at)
        at = layer[at][1]
    first, second = zip(*((secret[a], secret[b]) for a, b in reversed(path)), strict=True)
    return worst, tuple(first), tuple(second)
