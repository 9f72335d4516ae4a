"""Answers for many true states at once: beside `Plan.draw`, the one place where true states are used.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.session.plan import Plan
from dphmm.types import Bits, IntArray


def draw_many(plan: Plan, states: IntArray, bits: Bits) -> IntArray:
    """`Plan.draw` for each of states (m,), -1 for a place that no state has: look up what the mechanisms answer.

    They do so body by body, so with one body this equals m calls of `Plan.draw`, word by word.
    """
    answered = np.where(states >= 0, states, int(np.argmax(plan.constraint.plan)))
    if len(plan.mechanisms) == 1:
        return plan.mechanisms[0].answer(plan.image[answered], bits)
    out = np.empty((len(states), plan.image.shape[1]), dtype=np.int64)
    body = plan.body_of[answered]
    for number, mechanism in enumerate(plan.mechanisms):
        own = body == number
        out[own] = mechanism.answer(plan.image[answered[own]], bits)
    return out


def count_drifted(plan: Plan, states: IntArray) -> int:
    """How many of states (m,) are outside the plan set: for the data owner alone."""
    return len(states) - int(plan.constraint.plan[states[states >= 0]].sum())
