"""Audits: a plan in exact numbers, a million draws, and the tracker on many people."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below
from benchmarks.speed.timing import timed
from benchmarks.speed.worlds import GridWorld
from dphmm.audit import Adversary, black_box, verify
from dphmm.audit.attacks.attack import SeenAnswer
from dphmm.session.answer import answer_under

VERIFIED, JUDGED, TRACKED = below(1.0), below(5.0), below(60.0)
_SIDE = 60


def figures(effort: Effort) -> Iterator[Figure]:
    """One line for each target of an audit."""
    world = GridWorld(_SIDE)
    session = dphmm.ReleaseSession(world.model, world.policy("radius"), world.space, 1)
    taken = timed(lambda: verify(session), effort.pick(1, 5))
    yield Figure(
        "audit", f"exact verification of a plan, {world.n_states:,} states, radius policy", taken, "s", VERIFIED
    )
    yield from _judged(effort)
    yield from _tracked(world, effort.pick(20, 1000), 100)


def _judged(effort: Effort) -> Iterator[Figure]:
    """Draws are made outside the timer."""
    world = GridWorld(10)
    plan = dphmm.ReleaseSession(world.model, world.policy("radius"), world.space, 1).plan
    draws = effort.pick(10**5, 10**6)
    answers = [np.full(draws // 2, state) for state in (0, 1)]
    first, second = (
        world.space.frame.to_answers(answer_under(plan, given, dphmm.ReplayBits(1))[0]) for given in answers
    )
    taken = timed(lambda: black_box([(first, second)], 1), effort.pick(1, 3))
    yield Figure("audit", f"{draws:,} draws of two answers judged", taken, "s", JUDGED)


def _tracked(world: GridWorld, people: int, steps: int) -> Iterator[Figure]:
    """The beliefs of the filter about people who stay where they are; their answers are drawn outside the timer."""
    session = dphmm.ReleaseSession(world.model, world.policy("radius"), world.space, Fraction(1))
    plan, bits = session.plan, dphmm.ReplayBits(1)
    chance = np.random.default_rng(3)
    seen = []
    for state in chance.integers(0, world.n_states, people).tolist():
        answers = answer_under(plan, np.full(steps, state), bits)[0]
        seen.append([SeenAnswer(t + 1, z, plan) for t, z in enumerate(answers)])
    tracker = Adversary("tracker", "tracker", world.model)
    taken = timed(lambda: [tracker.beliefs(one) for one in seen], 1, warmups=0)
    name = f"the tracker, {people:,} people × {steps} steps, {world.n_states:,} states"
    yield Figure("audit", name, taken, "s", TRACKED, "one core")
