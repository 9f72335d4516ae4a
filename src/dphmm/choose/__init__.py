"""Schedules, budgets, covered distances and cells for a release, tried on people simulated from the public model.

- a schedule within a budget: `plan`, which gives a `SchedulePlan`; as a file `save_plan`, `read_plan`
- a mechanism made once for a model and a policy: `optimize`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.choose.planning import plan as plan
    from dphmm.choose.schedule_plan import SchedulePlan as SchedulePlan
    from dphmm.choose.schedule_plan import read_plan as read_plan
    from dphmm.choose.schedule_plan import save_plan as save_plan
    from dphmm.optimizing import optimize as optimize

_HOMES = {
    "SchedulePlan": "dphmm.choose.schedule_plan",
    "optimize": "dphmm.optimizing",
    "plan": "dphmm.choose.planning",
    "read_plan": "dphmm.choose.schedule_plan",
    "save_plan": "dphmm.choose.schedule_plan",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.choose' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return __all__
