"""Exact draws from one plan: noises per second with the system's secure bits, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least
from benchmarks.speed.timing import timed

TARGET = at_least(1_000_000)
#: A box of this many cells on each axis, and the radius of the policy on it.
_SIDES = {1: 1000, 2: 60, 3: 15}
_RADIUS = 3
_EPSILONS = ("1", "0.1")


def figures(effort: Effort) -> Iterator[Figure]:
    """Both lattice mechanisms on the hull of a radius policy; many draws at once, then one by one."""
    many, few = effort.pick((200_000, 500), (1_000_000, 2000))
    for dimension in _SIDES:
        hull = _hull(dimension)
        for epsilon in _EPSILONS[: effort.pick(1, 2)]:
            for mechanism in (dphmm.mechanisms.Staircase(hull, epsilon), dphmm.mechanisms.DiscreteKNorm(hull, epsilon)):
                name = f"{mechanism.name}, d = {dimension}, ε = {epsilon}"
                at_once = timed(lambda m=mechanism: m.noise(many), effort.pick(3, 7)).per_second(many)
                note = f"{2 * len(hull.normals)} facets, {many:,} at once"
                yield Figure("draws", f"{name}: draws", at_once, "/s", TARGET, note)
                if epsilon == _EPSILONS[0]:
                    single = timed(lambda m=mechanism: _one_by_one(m, few), effort.pick(3, 7)).per_second(few)
                    yield Figure("draws", f"{name}: draws, one a call", single, "/s")


def _hull(dimension: int) -> dphmm.sensitivity.SensitivityHull:
    side = _SIDES[dimension]
    cells = np.indices((side,) * dimension).reshape(dimension, -1).T
    return dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(cells, _RADIUS), cells)


def _one_by_one(mechanism: dphmm.mechanisms.LatticeMechanism, count: int) -> None:
    for _ in range(count):
        mechanism.noise(1)
