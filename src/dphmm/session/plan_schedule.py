"""The plans of a release whose plans do not depend on answers, each made once, when it is first asked for.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

import numpy as np

from dphmm.accounting.ledger import PlanRecord
from dphmm.session.options import StepChoice
from dphmm.session.plan import NO_PARTNERS, StepPlan, recorded_joint_edges
from dphmm.session.setting import Setting
from dphmm.types import BoolArray, IntArray

#: Plans are kept at hand for so many states together.
_MOST_STATES = 2**23
#: A plan's number: that of its support; above these bits that of partners which other queries have fixed, and of what
#: was chosen for its step.
_SUPPORT_BITS = 32


class PlanSchedule:
    """The plans of a setting with public plans, by number. Threads may share one."""

    def __init__(self, setting: Setting) -> None:
        self._model = setting.model
        self._setting = setting
        self._numbers: dict[bytes, int] = {}
        #: The latent states that are possible, and their secrets, which are planned on.
        self._supports: list[BoolArray] = []
        self._planned: list[BoolArray] = []
        self._steps: list[int] = []
        self._period = 0
        self._others: dict[tuple[bytes, str], int] = {(b"", ""): 0}
        self._given: list[tuple[IntArray, StepChoice | None]] = [(NO_PARTNERS, None)]
        self._plans: OrderedDict[int, StepPlan] = OrderedDict()
        self._lock = threading.Lock()
        # What is possible does not depend on the slot.
        self._append(setting.first(self._model.example_origin).prior.latent.support)

    def numbers(self, t: IntArray) -> IntArray:
        """The number of the plan of each step (n,), for a subject without other queries."""
        if len(t) < 2:
            # Not as below, which copies all steps so far.
            return np.array([self.number(step) for step in t.tolist()], dtype=np.int64)
        self._walk(int(t.max()))
        known = len(self._steps)
        places = np.where(t <= known, t - 1, known - self._period + (t - 1 - known) % max(1, self._period))
        return np.asarray(np.array(self._steps, dtype=np.int64)[places])

    def number(self, t: int) -> int:
        """The number of the plan of one step."""
        self._walk(t)
        known = len(self._steps)
        return self._steps[t - 1 if t <= known else known - self._period + (t - 1 - known) % max(1, self._period)]

    def beside(self, number: int, partners: IntArray, choice: StepChoice | None = None) -> int:
        """The number of the plan of the same support under partners (p, 2) that other queries have fixed.

        ``choice``: the choice for the step.
        """
        if choice is not None and choice.joined and choice.joins is None:
            support, planner = self.support_of(number), self._setting.under(choice).planner
            choice = replace(choice, joins=planner.plan(support, support, partners, choice).joins)
        key = partners.astype("<i8").tobytes(), "" if choice is None else choice.key
        if key not in self._others:
            self._others[key] = len(self._given)
            self._given.append((partners, choice))
        return (number & (1 << _SUPPORT_BITS) - 1) | self._others[key] << _SUPPORT_BITS

    def recorded(self, number: int, record: PlanRecord) -> int:
        """The number of the plan that a record makes of the same support."""
        return self.beside(number, recorded_joint_edges(record), self._setting.choice_of(record))

    def support(self, t: int) -> BoolArray:
        """The secrets (S,) that are possible at a step."""
        return self._planned[self.number(t)]

    def support_of(self, number: int) -> BoolArray:
        """The secrets (S,) that are possible under a plan."""
        return self._planned[number & (1 << _SUPPORT_BITS) - 1]

    def plan(self, number: int) -> StepPlan:
        """The plan of a number, which is made when it is first asked for. Raises as the planner does."""
        plan = self._plans.get(number)
        return self._made(number) if plan is None else plan

    def _made(self, number: int) -> StepPlan:
        support = self.support_of(number)
        partners, choice = self._given[number >> _SUPPORT_BITS]
        plan = self._setting.under(choice).planner.plan(support, support, partners, choice)
        with self._lock:
            self._plans[number] = plan
            while len(self._plans) > max(16, _MOST_STATES // len(support)):
                self._plans.popitem(last=False)
        return plan

    def _walk(self, t: int) -> None:
        """Know the supports up to step t, or to where they repeat themselves."""
        while len(self._steps) < t and not self._period:
            with self._lock:
                known = len(self._steps)
                # Another thread may have found this step while this one waited.
                if known < t and not self._period:
                    self._step(self._model.reach(self._supports[self._steps[-1]], known + 1))

    def _step(self, following: BoolArray) -> None:
        """Add the support one step after the last one that is known."""
        before = self._numbers.get(np.packbits(following).tobytes())
        if before is not None:
            # The moves are the same in every slot, and each step has another support until one comes again: its number
            # is the step that it first had.
            self._period = len(self._steps) - before
        else:
            self._append(following)

    def _append(self, support: BoolArray) -> None:
        key = np.packbits(support).tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._supports)
            self._supports.append(support)
            self._planned.append(self._model.secrets_among(support))
        self._steps.append(self._numbers[key])
