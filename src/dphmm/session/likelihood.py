"""How likely a plan makes an answer, in plain floats: exp(-ε·norm) of every state at once, without logs.

A staircase is decided exactly. With v = |normal·(z − image)|, o the offset of a facet and a its allowance, the steps to
a facet are floor(R), R = (v + o − 1 − a)/o. The kernel has R up to a factor 1 ± 2**-51 and adds 2**-48 of it, which
passes no integer k > R: k − R is at least 1/o, and R·2**-47 less than that while v + o < 2**46. Plans and answers
beyond that bound, flat bodies, and several bodies in one plan have none here; `Plan.log_likelihood` serves them.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dphmm.mechanisms import DiscreteKNorm, Staircase
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

    ``projected`` (m, N) is normals·image, ``inverses`` (m,) are 1/offset, ``shifts`` (m,) what a staircase adds.
    """

    projected: FloatArray
    inverses: FloatArray
    shifts: FloatArray
    kind: int
    rate: float
    table: FloatArray
    normals: FloatArray
    room: float

    @classmethod
    def of(cls, plan: Plan) -> Likelihood | None:
        """The likelihood of a plan, or None where it is not of the kind that floats serve exactly."""
        mechanism = plan.mechanisms[0]
        if len(plan.mechanisms) > 1 or not isinstance(mechanism, (Staircase, DiscreteKNorm)):
            return None
        hull = mechanism.hull
        if hull.rank < hull.dimension:
            return None
        normals, offsets = hull.normals.astype(np.float64), hull.offsets.astype(np.float64)
        longest = float(np.abs(normals).sum(axis=1).max())
        image = plan.image.astype(np.float64)
        if longest * float(np.abs(image).max()) >= _ROOM or float(offsets.max()) >= _ROOM:
            return None
        kind, shifts, table = _law(mechanism, offsets)
        projected = np.ascontiguousarray(normals @ image.T)
        room = _ROOM / longest
        return cls(projected, 1.0 / offsets, shifts, kind, float(mechanism.epsilon), table, normals, room)

    def holds(self, z: IntArray) -> bool:
        """Whether answers (..., d) are near enough for exact floats."""
        return bool(np.abs(z.astype(np.float64)).max() < self.room)

    def centres(self, z: IntArray) -> FloatArray:
        """normals·z (..., m) of answers (..., d)."""
        return np.asarray(z.astype(np.float64) @ self.normals.T)

    def at(self, z: IntArray) -> FloatArray | None:
        """Pr(z | s) (N,) up to a constant of the plan; None for an answer too far away."""
        from dphmm._kernels.belief import likelihood

        if not self.holds(z):
            return None
        out = np.empty(self.projected.shape[1])
        laws = (self.projected, self.inverses, self.shifts)
        likelihood(*laws, self.centres(z), self.kind, self.rate, self.table, out)
        return out


_KNOWN: WeakKeyDictionary[Plan, Likelihood | None] = WeakKeyDictionary()


def likelihood_of(plan: Plan) -> Likelihood | None:
    """`Likelihood.of`, made once for a plan unless it is very large."""
    if plan in _KNOWN:
        return _KNOWN[plan]
    made = Likelihood.of(plan)
    if made is None or made.projected.size <= _LARGEST_KEPT:
        _KNOWN[plan] = made
    return made


def _law(mechanism: Staircase | DiscreteKNorm, offsets: FloatArray) -> tuple[int, FloatArray, FloatArray]:
    from dphmm._kernels.belief import GRADED, STEPS, TABLE

    nothing = np.zeros(1)
    if isinstance(mechanism, DiscreteKNorm):
        return GRADED, np.zeros(len(offsets)), nothing
    g = mechanism.offset
    allowances = [g.numerator * int(b) // g.denominator for b in mechanism.hull.offsets]
    shifts = (offsets - 1.0 - np.array(allowances, dtype=np.float64)) / offsets
    rate = float(mechanism.epsilon)
    if _NOTHING / rate > _LONGEST_TABLE:
        return STEPS, shifts, nothing
    steps = np.arange(int(_NOTHING / rate) + 2)
    return TABLE, shifts, np.append(np.exp(-rate * steps), 0.0)
