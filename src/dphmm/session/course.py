"""The supports and plans of all steps, where they follow from the model alone.

With constraint="support" and bodies of full dimension no answer excludes a state, so what is possible at step t is what
the model reaches in t steps, for every subject alike: their plans are shared, and known before anything is drawn.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from dphmm.accounting.ledger import Request
from dphmm.session.likelihood import Likelihood, likelihood_of
from dphmm.session.plan import Plan
from dphmm.session.setting import Setting
from dphmm.types import BoolArray, IntArray

#: Legs are kept at hand for so many states together.
_MOST_STATES = 2**23


@dataclass(frozen=True, eq=False)
class Leg:
    """What every step of one support has: the plan, and its likelihood where floats serve it."""

    plan: Plan
    likelihood: Likelihood | None

    def request(self, secure: bool) -> Request:
        """What a ledger is asked for at such a step; subject and t stand for nothing."""
        plan = self.plan
        return Request("", "", 1, "release", plan.promised, plan.cost, plan.record, secure, plan.constant)


class Course:
    """The legs of a setting with public plans; ``supports`` by number."""

    def __init__(self, setting: Setting) -> None:
        self._model = setting.model
        self._planner = setting.planner
        self.start = setting.first()
        self._numbers: dict[bytes, int] = {}
        self.supports: list[BoolArray] = []
        self._steps: list[int] = []
        self._period = 0
        self._legs: OrderedDict[int, Leg] = OrderedDict()
        self._append(self.start.prior.support)

    def numbers(self, t: IntArray) -> IntArray:
        """The number of the leg of each step (n,)."""
        if not len(t):
            return np.zeros(0, dtype=np.int64)
        self._walk(int(t.max()))
        known = len(self._steps)
        places = np.where(t <= known, t - 1, known - self._period + (t - 1 - known) % max(1, self._period))
        return np.asarray(np.array(self._steps, dtype=np.int64)[places])

    def support(self, t: int) -> BoolArray:
        """The states (N,) that are possible at a step."""
        return self.supports[int(self.numbers(np.array([t]))[0])]

    def leg(self, number: int) -> Leg:
        """A leg; its plan is made when it is first asked for. Raises as the planner does."""
        if number not in self._legs:
            support = self.supports[number]
            plan = self._planner.plan(support, support)
            self._legs[number] = Leg(plan, likelihood_of(plan))
            while len(self._legs) > max(16, _MOST_STATES // len(support)):
                self._legs.popitem(last=False)
        return self._legs[number]

    def _walk(self, t: int) -> None:
        """Know the supports up to step t, or to where they repeat themselves."""
        while len(self._steps) < t and not self._period:
            support = self.supports[self._steps[-1]]
            following = self._model.reach(support, len(self._steps) + 1)
            before = self._numbers.get(np.packbits(following).tobytes())
            if before is not None and self._model.time_homogeneous:
                # Each step has another support until one comes again: its number is the step it first had.
                self._period = len(self._steps) - before
                return
            self._append(following)

    def _append(self, support: BoolArray) -> None:
        key = np.packbits(support).tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.supports)
            self.supports.append(support)
        self._steps.append(self._numbers[key])
