"""What an adversary can still infer: trackers against the truth, and attacks on plans that were made wrongly."""

from dphmm.audit.attacks.adversary import METHODS, Adversary
from dphmm.audit.attacks.attack import AttackReport, attack
from dphmm.audit.attacks.exposure import Exposed, exposure
from dphmm.audit.attacks.local_hull import LocalHulls
from dphmm.audit.attacks.measures import Measured

__all__ = ["METHODS", "Adversary", "AttackReport", "Exposed", "LocalHulls", "Measured", "attack", "exposure"]
