"""One answer at a time: what a plan answers to one true state, looked up by hand."""

from __future__ import annotations

from typing import Any

from dphmm.session.plan import StepPlan


def answered(plan: StepPlan, state: int, bits: Any) -> tuple[int, ...]:
    """The answer to one state of the space, as docs/proofs/promise.md says it: f(g(s)) and the noise of its body."""
    image = plan.lattice[plan.constraint.surrogate[state]]
    return tuple(plan.mechanism.answer(image[None], bits)[0].tolist())
