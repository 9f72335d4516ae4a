"""Algorithm 2: plans from public data, one release at a time, a session as a fold over its ledger."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dphmm.session.estimates import Estimate, estimate
from dphmm.session.options import Options
from dphmm.session.plan import Plan, Position
from dphmm.session.planner import Planner
from dphmm.session.releases import Release
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting, check_same_states

if TYPE_CHECKING:
    from dphmm.session.smoothing import joint_belief as joint_belief

__all__ = [
    "Estimate",
    "Options",
    "Plan",
    "Planner",
    "Position",
    "Release",
    "ReleaseSession",
    "Setting",
    "check_same_states",
    "estimate",
    "joint_belief",
]


def __getattr__(name: str) -> Any:
    # Whoever smooths reads tables, and whoever plans does not.
    if name != "joint_belief":
        raise AttributeError(f"module 'dphmm.session' has no attribute {name!r}")
    return globals().setdefault(name, import_module("dphmm.session.smoothing").joint_belief)
