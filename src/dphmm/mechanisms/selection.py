"""The mechanism of a plan, by the name that a user chose.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from fractions import Fraction

from dphmm.mechanisms.base import LatticeMechanism
from dphmm.mechanisms.choice import choose
from dphmm.mechanisms.constant import Constant
from dphmm.mechanisms.lattice import DiscreteKNorm
from dphmm.mechanisms.optimal import OptimalAdditive
from dphmm.mechanisms.staircase import Staircase
from dphmm.sensitivity.hull import SensitivityHull

AUTO = "auto"
#: What a release may ask for; the continuous mechanisms leak through the low digits of floats.
MECHANISM_CHOICES = (AUTO, DiscreteKNorm.name, Staircase.name, OptimalAdditive.name)
_BY_NAME = {kind.name: kind for kind in (DiscreteKNorm, Staircase, OptimalAdditive)}


def mechanism_for(hull: SensitivityHull, epsilon: Fraction, chosen: str) -> LatticeMechanism:
    """The lattice mechanism ``chosen`` for a hull; "auto" takes the one of least expected error.

    A hull of rank 0 (no edge between different answers) leaves nothing to choose: answers are released as they are.
    """
    if hull.rank == 0:
        return Constant(hull, epsilon)
    if chosen == AUTO:
        return choose(hull, epsilon)
    return _BY_NAME[chosen](hull, epsilon)
