"""What one release gives back. Nothing in it depends on the true state but z and what is computed from z."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dphmm.types import FloatArray, IntArray, Loss


@dataclass(frozen=True, eq=False)
class Release:
    """The published answer of one step.

    t : step, from 1. z (d,) : the released answer, in answer units; z_lattice (d,) : the same in lattice steps.
    estimate (d,), estimate_state : what the public belief makes of all releases so far, None where nobody
    asked for estimates. epsilon : the promise of this
    release given the past. cost : the largest loss between any two plan states (Theorem 6.3; inf when unbounded).
    constant : the answer was a public constant. secure : False for any other bits than the system's.
    """

    t: int
    z: FloatArray
    z_lattice: IntArray
    estimate: FloatArray | None
    estimate_state: int | None
    epsilon: Fraction
    cost: Loss
    plan_hash: str
    mechanism: str
    constant: bool
    secure: bool
