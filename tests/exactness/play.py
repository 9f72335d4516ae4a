"""Instances played in public: `ReleaseSession(...).plan`, then a release with replayable bits, step after step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import dphmm
from dphmm.accounting import MemoryLedger
from exactness.instances import SKIP, Instance, PolicySpec, Query
from exactness.required_pairs import radius_of

SUBJECT = "one"


@dataclass(frozen=True, eq=False)
class Step:
    """One release of one query: the plan that was shown before it, and what anybody knows before and after it."""

    t: int
    query: Query
    space: Any
    plan: Any
    prior: Any
    posterior: Any
    z: np.ndarray
    earlier: tuple[Any, ...]
    epsilon: Fraction


@dataclass(frozen=True, eq=False)
class Play:
    """An instance, its spaces by the name of the query, its ledger and the library's policy."""

    instance: Instance
    spaces: dict[str, Any]
    ledger: MemoryLedger
    model: Any
    policy: Any

    @classmethod
    def of(cls, instance: Instance) -> Play:
        spaces = {q.name: dphmm.StateSpace(q.answers, pitch=q.pitch) for q in instance.queries}
        model = dphmm.MarkovModel(instance.initial, instance.transition, secrets=instance.secrets)
        policy = library_policy(instance.policy, instance, spaces[instance.queries[0].name], model)
        return cls(instance, spaces, MemoryLedger(), model, policy)

    def steps(self) -> Iterator[Step]:
        """Play the walk. Raises what the library refuses with."""
        bits = dphmm.ReplayBits(self.instance.bits)
        sessions = [(query, self._session(query, bits)) for query in self.instance.queries]
        for t, state in enumerate(self.instance.walk, start=1):
            plans: list[Any] = []
            for query, session in sessions:
                if state == SKIP:
                    session.skip()
                    continue
                plan, prior = session.plan, session.prior
                released = session.release(state)
                if released.plan_hash != plan.hash:
                    raise AssertionError("the release was made under another plan than the one shown")
                yield Step(
                    t, query, self.spaces[query.name], plan, prior, session.posterior, released.z_lattice,
                    tuple(plans), released.epsilon,
                )  # fmt: skip
                plans.append(plan)

    def _session(self, query: Query, bits: Any) -> Any:
        options = dict(query.options)
        epsilon = Fraction(options.pop("epsilon"))
        space = self.spaces[query.name]
        return dphmm.ReleaseSession(
            self.model, self.policy, space, epsilon, ledger=self.ledger, subject=SUBJECT, query=query.name, bits=bits,
            **options,
        )  # fmt: skip


def library_policy(spec: PolicySpec, instance: Instance, space: Any, model: Any) -> Any:
    """The library's object for a policy spec."""
    if spec.kind == "union":
        first, *others = (library_policy(part, instance, space, model) for part in spec.parts)
        for other in others:
            first = first.union(other)
        return first
    if spec.kind == "radius":
        r = radius_of(spec, instance.queries[0])
        return dphmm.policy.radius(space, r, closed=spec.parameters["closed"])
    return {
        "complete": lambda: dphmm.policy.complete(instance.n),
        "categorical": lambda: dphmm.policy.categorical(spec.parameters["labels"]),
        "knn": lambda: dphmm.policy.knn(space, spec.parameters["k"]),
        "transition": lambda: dphmm.policy.transition(model),
        "edges": lambda: dphmm.policy.from_edges(spec.parameters["edges"], instance.n),
    }[spec.kind]()
