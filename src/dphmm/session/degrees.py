"""How many possible states each possible state hides among in a plan.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.mechanisms import OptimalTable
from dphmm.sensitivity.degree import degree_among
from dphmm.session.plan import Plan
from dphmm.types import IntArray


def plan_degrees(plan: Plan) -> IntArray:
    """Degrees of protection (N,), the state itself counted, in the body that answers it; 0 for impossible states."""
    support = plan.constraint.support
    found = np.zeros(len(support), dtype=np.int64)
    for number in range(len(plan.hulls)):
        own = np.flatnonzero(support & (plan.body_of == number))
        if len(own):
            found[own] = degrees_among(plan, number, own, own)
    return found


def degrees_among(plan: Plan, body: int, states: IntArray, among: IntArray) -> IntArray:
    """How many states of a set (k,) each of some states (m,) hides among, by the body that answers all of them."""
    mechanism = plan.mechanisms[body]
    if isinstance(mechanism, OptimalTable):
        return mechanism.hidden(plan.image[states], plan.image[among])
    return degree_among(plan.hulls[body], plan.image, states, among)
