"""Algorithm 2: plans from public data, one release at a time, a session as a fold over its ledger."""

from dphmm.session.estimates import Estimate, estimate
from dphmm.session.options import Options
from dphmm.session.plan import Plan, Position
from dphmm.session.planner import Planner
from dphmm.session.releases import Release
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting, check_same_states

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
]
