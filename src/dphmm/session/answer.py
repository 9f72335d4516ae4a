"""Answers to true states: the one place where true states are used.

Everything that may refuse has been asked before, and nothing is shown before what is drawn here has been stored and
committed. Nothing else of the package is given true states but what reads them and what compares them for their owner.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphmm.session.block import Block, Blocked
from dphmm.session.plan import StepPlan
from dphmm.types import Bits, BoolArray, IntArray

#: An array, because NumPy takes longer for a Python integer.
_FIRST_STATE: IntArray = np.zeros((), np.int64)


def answer(
    plans: Sequence[StepPlan], plan_of: IntArray, states: IntArray, bits: Bits, blocked: Blocked | None = None
) -> tuple[IntArray, BoolArray]:
    """Draw answers (k, d) for true states (k,), row i under ``plans[plan_of[i]]``; and a mask (k,) of drifted rows.

    A state is -1 for a place that the space does not have. Words are read plan by plan, in the order in which the rows
    first need each, and row by row within one. The mask is for the data owner alone. ``blocked``: the
    plans that are of a block, whose rows are answered in one call.
    """
    if blocked is not None:
        return _answer_blocked(plans, plan_of, states, bits, blocked)
    if len(plans) == 1:
        return answer_under(plans[0], states, bits)
    z = np.empty((len(states), plans[0].lattice.shape[1] if plans else 1), dtype=np.int64)
    drifted = np.empty(len(states), dtype=np.bool_)
    for number in dict.fromkeys(plan_of.tolist()):
        rows = plan_of == number
        z[rows], drifted[rows] = answer_under(plans[number], states[rows], bits)
    return z, drifted


def _answer_blocked(
    plans: Sequence[StepPlan], plan_of: IntArray, states: IntArray, bits: Bits, blocked: Blocked
) -> tuple[IntArray, BoolArray]:
    """`answer`, stretch by stretch of rows whose plans are of the block, or are not."""
    z = np.empty((len(states), plans[0].lattice.shape[1]), dtype=np.int64)
    drifted = np.empty(len(states), dtype=np.bool_)
    rank = np.empty(len(plans), dtype=np.int64)
    first_needed = list(dict.fromkeys(plan_of.tolist()))
    rank[first_needed] = np.arange(len(first_needed))
    order = np.argsort(rank[plan_of], kind="stable")
    places = blocked.plans[plan_of[order]]
    for stretch in np.split(order, 1 + np.flatnonzero(np.diff(places < 0))) if len(order) else ():
        rows = blocked.plans[plan_of[stretch]]
        if rows[0] < 0:
            z[stretch], drifted[stretch] = answer(plans, plan_of[stretch], states[stretch], bits)
        else:
            z[stretch], drifted[stretch] = answer_in_block(blocked.block, rows, states[stretch], bits)
    return z, drifted


def answer_in_block(block: Block, rows: IntArray, states: IntArray, bits: Bits) -> tuple[IntArray, BoolArray]:
    """`answer_under` for true states (k,), state i under the plan of row ``rows[i]`` of a block."""
    images, drifted = block.images(rows, states)
    return block.answer(rows, images, bits), drifted


def answer_under(plan: StepPlan, states: IntArray, bits: Bits) -> tuple[IntArray, BoolArray]:
    """`answer` under one plan: look up the answer of each state's surrogate, and let the mechanism answer that.

    A state outside the space is answered as the lowest-numbered plan state.
    """
    known = states >= _FIRST_STATE
    number = np.where(known, states, plan.lowest_state)
    drifted = ~(known & plan.plan_set.take(number))
    # Not out of `plan.image`, the answers of all states: where every step has a plan of its own nothing else needs it.
    image = plan.lattice.take(plan.constraint.surrogate.take(number), axis=0)
    return plan.mechanism.answer(image, bits), drifted
