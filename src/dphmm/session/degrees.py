"""How many possible states each possible state hides among in a plan.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.sensitivity.degree import degree_among
from dphmm.session.plan import Plan
from dphmm.types import IntArray


def plan_degrees(plan: Plan) -> IntArray:
    """Degrees of protection (N,), the state itself counted, in the body that answers it; 0 for impossible states."""
    support = plan.constraint.support
    found = np.zeros(len(support), dtype=np.int64)
    for number, hull in enumerate(plan.hulls):
        own = np.flatnonzero(support & (plan.body_of == number))
        if len(own):
            found[own] = degree_among(hull, plan.image, own, own)
    return found
