"""How likely a plan makes an answer, in plain floats: exp(-ε·norm) of every state at once, without logs.

A staircase is decided exactly. With v = |normal·(z − image)|, o the offset of a facet and a its allowance, the steps to
a facet are floor(R), R = (v + o − 1 − a)/o. The kernel has R up to a factor 1 ± 2**-51 and adds 2**-48 of it, which
passes no integer k > R: k − R is at least 1/o, and R·2**-47 less than that while v + o < 2**46. Plans and answers
beyond that bound, flat bodies, and several bodies in one plan have none here; `Plan.log_likelihood` serves them.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from dphmm.mechanisms import DiscreteKNorm, Staircase
from dphmm.policy.constraint import Constraint
from dphmm.session.plan import Plan
from dphmm.types import FloatArray, IntArray

_ROOM = 2.0**44
#: exp(-x) is far too small to be trusted from here on.
_NOTHING = 700.0
_LONGEST_TABLE = 4096
_LARGEST_KEPT = 2**21


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What the kernel reads of a plan; ``normals`` (m, d) and ``room`` are for the answers.

    ``columns`` (d, N) are the states' answers, ``inverses`` (m,) are 1/offset, ``shifts`` (m,) what a staircase adds.
    Where states are released as others, ``columns`` (d, P) are of the plan states of ``contracted`` alone.
    """

    columns: FloatArray
    inverses: FloatArray
    shifts: FloatArray
    kind: int
    rate: float
    table: FloatArray
    normals: FloatArray
    room: float
    contracted: Constraint | None

    @classmethod
    def of(cls, plan: Plan) -> Likelihood | None:
        """The likelihood of a plan, or None where it is not of the kind that floats serve exactly."""
        mechanism = plan.mechanisms[0]
        if len(plan.mechanisms) > 1 or not isinstance(mechanism, (Staircase, DiscreteKNorm)):
            return None
        hull = mechanism.hull
        if hull.rank < hull.dimension:
            return None
        from dphmm._kernels.belief import columns_of

        normals, offsets = hull.normals.astype(np.float64), hull.offsets.astype(np.float64)
        contracted = plan.constraint if plan.constraint.contracted else None
        numbers = np.arange(len(plan.image)) if contracted is None else contracted.plan_states
        columns, farthest = columns_of(plan.image, numbers)
        longest = float(np.abs(normals).sum(axis=1).max())
        if longest * farthest >= _ROOM or float(offsets.max()) >= _ROOM:
            return None
        kind, shifts, table = _law(mechanism, offsets)
        room = _ROOM / longest
        return cls(columns, 1.0 / offsets, shifts, kind, float(mechanism.epsilon), table, normals, room, contracted)

    @property
    def size(self) -> int:
        """m·N, or m·P, the numbers of ``projected``."""
        return len(self.inverses) * len(self.columns[0])

    @cached_property
    def projected(self) -> FloatArray:
        """normals·answer (m, N) or (m, P): for whoever asks again and again."""
        from dphmm._kernels.belief import projections

        return projections(self.normals, self.columns)

    def holds(self, z: IntArray) -> bool:
        """Whether answers (..., d) are near enough for exact floats."""
        return bool(np.abs(z.astype(np.float64)).max() < self.room)

    def at(self, z: IntArray) -> FloatArray | None:
        """Pr(z | s) (N,) up to a constant of the plan; None for an answer too far away."""
        from dphmm._kernels.belief import as_released, likelihood_of_points

        if not self.holds(z):
            return None
        facets = (self.normals, self.inverses, self.shifts)
        out = likelihood_of_points(self.columns, *facets, z, self.kind, self.rate, self.table)
        within = self.contracted
        return out if within is None else as_released(out, within.plan_states, within.surrogate)


_KNOWN: WeakKeyDictionary[Plan, Likelihood | None] = WeakKeyDictionary()


def likelihood_of(plan: Plan) -> Likelihood | None:
    """`Likelihood.of`, made once for a plan unless it is very large."""
    if plan in _KNOWN:
        return _KNOWN[plan]
    made = Likelihood.of(plan)
    if made is None or made.size <= _LARGEST_KEPT:
        _KNOWN[plan] = made
    return made


def _law(mechanism: Staircase | DiscreteKNorm, offsets: FloatArray) -> tuple[int, FloatArray, FloatArray]:
    from dphmm._kernels.belief import GRADED, STEPS, TABLE

    nothing = np.zeros(1)
    if isinstance(mechanism, DiscreteKNorm):
        return GRADED, np.zeros(len(offsets)), nothing
    g = mechanism.offset
    allowances = [g.numerator * b // g.denominator for b in mechanism.hull.offsets.tolist()]
    shifts = (offsets - 1.0 - np.array(allowances, dtype=np.float64)) / offsets
    rate = float(mechanism.epsilon)
    if _NOTHING / rate > _LONGEST_TABLE:
        return STEPS, shifts, nothing
    return TABLE, shifts, _falls(rate)


@lru_cache(maxsize=64)
def _falls(rate: float) -> FloatArray:
    """exp(-rate·i) for i = 0, 1, .. until it is next to nothing, and 0 for all later ones."""
    steps = np.arange(int(_NOTHING / rate) + 2)
    falls = np.append(np.exp(-rate * steps), 0.0)
    falls.setflags(write=False)
    return falls
