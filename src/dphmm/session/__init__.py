"""Algorithm 2: plans from public data, one release at a time, a session as a fold over its ledger."""

from typing import TYPE_CHECKING

from dphmm._lazy import lazy
from dphmm.session.estimates import Estimate as Estimate
from dphmm.session.estimates import estimate as estimate
from dphmm.session.options import Options as Options
from dphmm.session.plan import Position as Position
from dphmm.session.plan import StepPlan as StepPlan
from dphmm.session.planner import Planner as Planner
from dphmm.session.releases import Release as Release
from dphmm.session.session import ReleaseSession as ReleaseSession
from dphmm.session.setting import Setting as Setting
from dphmm.session.setting import check_same_states as check_same_states

if TYPE_CHECKING:
    from dphmm.session.smoothing import joint_belief as joint_belief

__getattr__, __dir__, __all__ = lazy(__name__)
