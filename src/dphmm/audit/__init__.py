"""Audits of the promise of a plan, a mechanism or a finished release, and of the inferences left to an adversary.

- `verify`: a plan in exact numbers, from public data alone; `verify_steps` the plans of the first steps
- `black_box`, `sample_plan`, `is_on_lattice`: a mechanism by its outputs
- `sequence_loss`: Theorem 7.2 against the exact worst loss of two histories, for small models
- `check_release`, `check_release_table`: a finished release, as a file or a release table of Spark, against its ledger,
  its statement and public data
- `read`: the conclusions from a released file, for somebody who has no model
- `attack`, `Adversary`, `exposure`, `LocalHulls`: the beliefs of adversaries about releases; the first needs the truth
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Modules have the names of two functions.
from dphmm.audit.black_box import BlackBoxVerdict, black_box, is_on_lattice, sample_plan
from dphmm.audit.verify import Verdict, verify, verify_steps

if TYPE_CHECKING:
    from dphmm.audit.attacks.attack import Adversary, AttackReport, attack
    from dphmm.audit.attacks.unsafe_hulls import LocalHulls, exposure
    from dphmm.audit.check import CheckedRelease, check_release
    from dphmm.audit.reading import read
    from dphmm.audit.release_tables import check_release_table
    from dphmm.audit.sequences import SequenceVerdict, sequence_loss

#: A release opens its file again, and needs none of these.
_HOMES = {
    **dict.fromkeys(("Adversary", "AttackReport", "LocalHulls", "attack", "exposure"), "dphmm.audit.attacks"),
    **dict.fromkeys(("CheckedRelease", "check_release"), "dphmm.audit.check"),
    "check_release_table": "dphmm.audit.release_tables",
    "read": "dphmm.audit.reading",
    **dict.fromkeys(("SequenceVerdict", "sequence_loss"), "dphmm.audit.sequences"),
}

__all__ = [
    "Adversary",
    "AttackReport",
    "BlackBoxVerdict",
    "CheckedRelease",
    "LocalHulls",
    "SequenceVerdict",
    "Verdict",
    "attack",
    "black_box",
    "check_release",
    "check_release_table",
    "exposure",
    "is_on_lattice",
    "read",
    "sample_plan",
    "sequence_loss",
    "verify",
    "verify_steps",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.audit' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
