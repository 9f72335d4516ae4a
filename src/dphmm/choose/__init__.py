"""Schedules, budgets, covered distances and cells for a release, tried on people simulated from the public model.

- a schedule within a budget: `plan`, which gives a `SchedulePlan`; as a file `save_plan`, `read_plan`
- a mechanism made once for a model and a policy: `optimize`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.choose.optimizing import optimize as optimize
    from dphmm.choose.planning import plan as plan
    from dphmm.choose.schedule_plan import SchedulePlan as SchedulePlan
    from dphmm.choose.schedule_plan import read_plan as read_plan
    from dphmm.choose.schedule_plan import save_plan as save_plan

__getattr__, __dir__, __all__ = lazy(__name__)
