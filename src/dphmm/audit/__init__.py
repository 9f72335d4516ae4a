"""Audits of the promise of a plan, a mechanism or a finished release, and of the inferences left to an adversary.

- `verify`: a plan in exact numbers, from public data alone; `verify_steps` the plans of the first steps
- `black_box`, `sample_plan`, `is_on_lattice`: a mechanism by its outputs
- `sequence_loss`: Theorem 7.2 against the exact worst loss of two histories, for small models
- `check_release`, `check_release_table`: a finished release, as a file or a release table of Spark, against its ledger,
  its statement and public data
- `read`: the conclusions from a released file, for somebody who has no model
- `attack`, `Adversary`, `exposure`, `LocalHulls`: the beliefs of adversaries about releases; the first needs the truth
"""

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

# Modules have the names of two functions.
from dphmm.audit.black_box import BlackBoxVerdict as BlackBoxVerdict
from dphmm.audit.black_box import black_box as black_box
from dphmm.audit.black_box import is_on_lattice as is_on_lattice
from dphmm.audit.black_box import sample_plan as sample_plan
from dphmm.audit.verify import Verdict as Verdict
from dphmm.audit.verify import verify as verify
from dphmm.audit.verify import verify_steps as verify_steps

if TYPE_CHECKING:
    from dphmm.audit.attacks.attack import Adversary as Adversary
    from dphmm.audit.attacks.attack import AttackReport as AttackReport
    from dphmm.audit.attacks.attack import attack as attack
    from dphmm.audit.attacks.unsafe_hulls import LocalHulls as LocalHulls
    from dphmm.audit.attacks.unsafe_hulls import exposure as exposure
    from dphmm.audit.check import CheckedRelease as CheckedRelease
    from dphmm.audit.check import check_release as check_release
    from dphmm.audit.reading import read as read
    from dphmm.audit.release_tables import check_release_table as check_release_table
    from dphmm.audit.sequences import SequenceVerdict as SequenceVerdict
    from dphmm.audit.sequences import sequence_loss as sequence_loss

__getattr__, __dir__, __all__ = lazy(__name__)
