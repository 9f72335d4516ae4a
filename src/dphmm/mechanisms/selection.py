"""The mechanism of a plan, by the name that a user chose.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from fractions import Fraction

from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import NoiseMechanism
from dphmm.mechanisms.choice import choose
from dphmm.mechanisms.constant import Constant
from dphmm.mechanisms.lattice import DiscreteKNorm
from dphmm.mechanisms.optimal import OptimalAdditive
from dphmm.mechanisms.staircase import Staircase
from dphmm.mechanisms.table import OptimalTable
from dphmm.sensitivity.hull import SensitivityHull

AUTO = "auto"
#: What a release may ask for; the continuous mechanisms leak through the low digits of floats.
MECHANISM_CHOICES = (AUTO, DiscreteKNorm.name, Staircase.name, OptimalAdditive.name, OptimalTable.name)
_BY_NAME = {kind.name: kind for kind in (DiscreteKNorm, Staircase, OptimalAdditive)}


def mechanism_for(hull: SensitivityHull, epsilon: Fraction, chosen: str) -> NoiseMechanism:
    """The lattice mechanism ``chosen`` for a hull; "auto" takes the one of least expected error.

    (A table is not made for a hull.)

    A hull of rank 0 (no edge between different answers) leaves nothing to choose: answers are released as they are.
    """
    if hull.rank == 0:
        return Constant(hull, epsilon)
    if chosen == AUTO:
        return choose(hull, epsilon)
    if chosen not in _BY_NAME:
        expected = f"one of {', '.join((AUTO, *_BY_NAME))}: a table is made for answers and edges, not for a hull"
        raise InvalidInput("mechanism", chosen, expected)
    return _BY_NAME[chosen](hull, epsilon)
