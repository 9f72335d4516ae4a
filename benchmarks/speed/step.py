"""One release step at 3,600 states against Algorithm 2 of the DPHMM paper written plainly, for each policy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least, seconds
from benchmarks.speed.plain import naive_release as plain
from benchmarks.speed.timing import Spread, timed
from benchmarks.speed.worlds import POLICIES, GridWorld

SIDE = 60
STEP_TARGET = at_least(100)
DEGREES_TARGET = at_least(1000)
_KEPT_STEPS = 50
_COLD_WARMUPS = 20
#: What takes less than a millisecond is timed so often that another program's turn is a small part of it.
_SHORT_REPEATS = 200


def figures(effort: Effort) -> Iterator[Figure]:
    """Each policy: the step that makes its plan, the step that finds it made, and both with all degrees."""
    world = GridWorld(SIDE)
    for name in POLICIES:
        yield from _PolicyCase(world, name, effort).figures()


@dataclass(frozen=True)
class _PolicyCase:
    world: GridWorld
    name: str
    effort: Effort

    def figures(self) -> Iterator[Figure]:
        enumerated = self._plain_release(plain.enumerated(self.world.joined(self.name)))
        plain_step = timed(lambda: enumerated.step(self._state), self.effort.pick(2, 5))
        cold, kept = self._cold(), self._kept()
        yield self._ratio("step that makes its plan (auto)", plain_step, cold, STEP_TARGET)
        knorm = self._cold(mechanism="discrete-knorm")
        yield self._ratio("step that makes its plan (K-norm, as the paper)", plain_step, knorm)
        yield self._ratio("step whose plan was made before", plain_step, kept, STEP_TARGET)
        yield self._listed(enumerated, cold)
        yield from self._degrees(enumerated, plain_step, cold, kept)

    @property
    def _state(self) -> int:
        return self.world.n_states // 2

    def _plain_release(self, edges_among: Any) -> Any:
        n = self.world.n_states
        answers = self.world.points.astype(float)
        return plain.Release(self.world.dense, edges_among, answers, 1.0, np.full(n, 1 / n))

    def _listed(self, enumerated: Any, cold: Spread) -> Figure:
        """Against a plain step that is handed all edges of the policy in a list: less than the paper's work."""
        everything = np.ones(self.world.n_states, dtype=bool)
        given = self._plain_release(plain.listed(enumerated.edges_among(everything)))
        listed = timed(lambda: given.step(self._state), self.effort.pick(2, 5))
        return self._ratio("step that makes its plan, the plain one given all edges in a list", listed, cold)

    def _degrees(self, enumerated: Any, plain_step: Spread, cold: Spread, kept: Spread) -> Iterator[Figure]:
        """A step and the degree of protection of every state, which the plain version computes at every step anew."""
        answers, n = self.world.points.astype(float), self.world.n_states
        everything = np.ones(n, dtype=bool)
        plain_hull = plain.protected(enumerated.edges_among(everything), answers, everything).hull
        states = np.arange(n)
        found = []
        plain_degrees = timed(
            lambda: found.append(plain.degrees(plain_hull, answers, states, states)), self.effort.pick(2, 5), warmups=0
        )
        hull = dphmm.sensitivity.sensitivity_hull(self.world.policy(self.name), self.world.space)
        degrees = timed(
            lambda: dphmm.sensitivity.degree_of_protection(hull, self.world.space), self.effort.pick(5, _SHORT_REPEATS)
        )
        if not np.array_equal(found[0], dphmm.sensitivity.degree_of_protection(hull, self.world.space)):
            raise SystemExit(f"{self.name}: the plain version and the library disagree; no ratio means anything")
        slow = _together(plain_step, plain_degrees)
        for kind, fast in (("that makes its plan", cold), ("whose plan was made before", kept)):
            yield self._ratio(f"step {kind}, and every state's DoP", slow, _together(fast, degrees), DEGREES_TARGET)

    def _cold(self, **choices: Any) -> Spread:
        """The first release of a subject for whom nothing has been planned, under a policy never seen before.

        In a process that has made some plans: Python's interpreter adapts to code over its first dozens of runs.
        """
        numbers = itertools.count(1)

        def session() -> dphmm.ReleaseSession:
            # Another unit and another ε each time: no cache, whatever its key, can hold anything of this plan.
            change = 1 + Fraction(next(numbers), 256)
            space = self.world.scaled(change)
            policy = self.world.policy(self.name, space)
            return dphmm.ReleaseSession(self.world.model, policy, space, change, **choices)

        def release(new: dphmm.ReleaseSession) -> None:
            new.release(self._state)

        return timed(release, self.effort.pick(5, _SHORT_REPEATS), warmups=_COLD_WARMUPS, prepare=session)

    def _kept(self) -> Spread:
        """Later releases of the same subject: the support is all states at every step, so the plan is the same."""
        session = dphmm.ReleaseSession(self.world.model, self.world.policy(self.name), self.world.space, 1)
        session.release(self._state)

        def releases() -> None:
            for _ in range(_KEPT_STEPS):
                session.release(self._state)

        return timed(releases, self.effort.pick(3, 25)).each(_KEPT_STEPS)

    def _ratio(self, what: str, slow: Spread, fast: Spread, target: Any = None) -> Figure:
        note = f"{seconds(slow.median)} plainly, {seconds(fast.median)} here"
        return Figure("step", f"{self.name}: {what}", slow.times(fast), "×", target, note)


def _together(one: Spread, other: Spread) -> Spread:
    """The time of two things done one after the other."""
    repeats = min(one.repeats, other.repeats)
    return Spread(one.median + other.median, one.low + other.low, one.high + other.high, repeats)
