"""A small map with a policy of neighbouring cells, and answers that were drawn on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dphmm
from dphmm.reconstruction.answers import Answers
from dphmm.session.plan import StepPlan


@pytest.fixture(scope="session")
def board() -> Callable[..., tuple[dphmm.StateSpace, dphmm.MarkovModel, object]]:
    """Space, model and policy of a square of side by side cells, each joined to its 8 neighbours."""

    def make(side: int, stay: float = 0.5) -> tuple[dphmm.StateSpace, dphmm.MarkovModel, object]:
        points = np.array([[x, y] for y in range(side) for x in range(side)])
        near = np.abs(points[:, None] - points[None]).max(axis=2) == 1
        moves = stay * np.eye(len(points)) + (1 - stay) * near / near.sum(axis=1, keepdims=True)
        space = dphmm.StateSpace(points)
        policy = dphmm.policy.from_edges(np.argwhere(np.triu(near)), len(points))
        return space, dphmm.MarkovModel(np.full(len(points), 1 / len(points)), moves, space=space), policy

    return make


@pytest.fixture(scope="session")
def answers_from() -> Callable[..., Answers]:
    """The answers of states (n,) of people (n,), one after the other, under one plan or a plan (n,) for each."""

    def make(
        plans: list[StepPlan], states: np.ndarray, seed: int, person: object = None, laws: object = None
    ) -> Answers:
        n = len(states)
        given = np.zeros(n, dtype=np.int64) if laws is None else np.asarray(laws)
        of = np.arange(n) if person is None else np.asarray(person)
        z = np.zeros((n, plans[0].image.shape[1]), dtype=np.int64)
        for number, plan in enumerate(plans):
            own = given == number
            if own.any():
                z[own] = plan.mechanism.answer(plan.image[states[own]], dphmm.ReplayBits(seed + number))
        names = [f"u{number}" for number in range(int(of.max()) + 1)]
        return Answers(plans, given, z, np.arange(n), np.arange(n), of, names, True)

    return make
