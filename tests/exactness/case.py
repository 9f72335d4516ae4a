"""One plan, ready to be judged: its answers, laws, edges and required pairs in plain Python numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from exactness.instances import Instance
from exactness.law import Law
from exactness.play import Step
from exactness.required_pairs import Edges, contracted, pairs, surrogates

Vector = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A step with the policy's edges by definition, and with the support as this folder has tracked it."""

    instance: Instance
    step: Step
    edges: Edges
    support: np.ndarray

    @property
    def where(self) -> str:
        query = "" if len(self.instance.queries) == 1 else f" query {self.step.query.name}"
        return f"{self.instance.number} step {self.step.t}{query}"

    @property
    def epsilon(self) -> Fraction:
        """What was asked for, not what a plan says."""
        return Fraction(self.step.query.options["epsilon"])

    @cached_property
    def possible(self) -> list[int]:
        return [int(s) for s in np.flatnonzero(self.support)]

    @cached_property
    def planned(self) -> list[int]:
        return [int(s) for s in np.flatnonzero(self.step.plan.constraint.plan)]

    @cached_property
    def merged(self) -> dict[int, int]:
        """The plan states that are answered as another one, and that one, as the plan says."""
        return {int(a): int(b) for a, b in self.step.plan.merged}

    @cached_property
    def whole(self) -> list[int]:
        """The plan set before any of it was answered as another state."""
        return sorted({*self.planned, *self.merged})

    @cached_property
    def nearest(self) -> list[int]:
        """Each state's surrogate before that."""
        return surrogates(self.step.space, np.isin(np.arange(len(self.support)), self.whole))

    @cached_property
    def surrogate(self) -> list[int]:
        return [self.merged.get(s, s) for s in self.nearest]

    @cached_property
    def images(self) -> list[Vector]:
        """The answer of every state's surrogate, from the space's own table."""
        return [tuple(int(x) for x in self.step.space.lattice[g]) for g in self.surrogate]

    @cached_property
    def constant(self) -> bool:
        """Whether every answer is one public constant: nothing is hidden because nothing is said."""
        return len(set(self.images)) == 1

    @cached_property
    def law(self) -> Law:
        return Law.of(self.step.plan.mechanism)

    @cached_property
    def fixed_earlier(self) -> list[tuple[int, int]]:
        """The partners that the plans of other queries of this step have fixed."""
        return [(int(a), int(b)) for plan in self.step.earlier for a, b in plan.partners]

    @cached_property
    def in_force(self) -> Edges:
        """The contracted edges of the policy and of the partners that other queries have fixed."""
        fixed = {(min(pair), max(pair)) for pair in self.fixed_earlier}
        return contracted(self.edges | fixed, self.support, self.surrogate)

    @cached_property
    def in_force_before(self) -> Edges:
        """The same before any plan state was answered as another one."""
        fixed = {(min(pair), max(pair)) for pair in self.fixed_earlier}
        return contracted(self.edges | fixed, self.support, self.nearest)

    @cached_property
    def required(self) -> list[tuple[str, int, int]]:
        partners = [*self.step.plan.partners, *self.fixed_earlier]
        return pairs(self.edges, self.support, self.surrogate, self.step.plan.joins, partners)

    @cached_property
    def _losses(self) -> dict[Vector, Fraction | None]:
        return {}

    def difference(self, a: int, b: int) -> Vector:
        """f(g(a)) - f(g(b))."""
        return tuple(x - y for x, y in zip(self.images[a], self.images[b], strict=True))

    def worst(self, a: int, b: int) -> Fraction | None:
        """The worst log-ratio of a against b over all answers; None when unbounded."""
        difference = self.difference(a, b)
        if difference not in self._losses:
            self._losses[difference] = self.law.worst(difference)
        return self._losses[difference]

    def rng(self, salt: int) -> np.random.Generator:
        """Directions and outputs to try; a function of the instance."""
        return np.random.default_rng([self.instance.number, self.step.t, salt])

    def plain(self, values: Any) -> list[Any]:
        return np.asarray(values).tolist()
