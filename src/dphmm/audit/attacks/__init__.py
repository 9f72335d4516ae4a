"""The inferences left to an adversary: trackers against the truth, and attacks on plans that were made wrongly."""

from dphmm.audit.attacks.attack import METHODS, Adversary, AttackReport, Measured, attack
from dphmm.audit.attacks.unsafe_hulls import Exposed, LocalHulls, exposure

__all__ = ["METHODS", "Adversary", "AttackReport", "Exposed", "LocalHulls", "Measured", "attack", "exposure"]
