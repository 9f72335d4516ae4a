"""The states that a public history leaves possible, by sets alone: the claims of a session are checked against them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from dphmm.audit.law import Law, Table
from dphmm.audit.pairs import law_of
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import StepPlan
from dphmm.session.session import ReleaseSession
from dphmm.types import BoolArray, IntArray


def first_support(model: MarkovModel, start: str) -> BoolArray:
    """The states (N,) that are possible at step 1."""
    support = np.asarray(model.initial) > 0
    return moved(model, support) if start == "before" else support


def moved(model: MarkovModel, support: BoolArray) -> BoolArray:
    """The states (N,) that a possible one can move to in one step."""
    if model.jump is not None:
        # A jump leads everywhere.
        return np.full(model.n_states, support.any())
    after = np.zeros(model.n_states, dtype=np.bool_)
    # Every slot has the same moves: a move of any of them counts at every step.
    for matrix in model.matrices:
        start = np.repeat(np.arange(model.n_states), np.diff(matrix.indptr))
        after[matrix.indices[support[start] & (matrix.data > 0)]] = True
    return after


def hidden(model: MarkovModel, support: BoolArray) -> BoolArray:
    """The mask of the possible states (N,), or of their secrets (S,) if the model has secrets."""
    if model.secrets is None:
        return support
    return np.isin(np.arange(model.n_secrets), model.secrets[support])


def moved_through(model: MarkovModel, support: BoolArray, t: int, until: int) -> BoolArray:
    """The states (N,) possible at step ``until`` after those of step t, without a release in between.

    Supports come round again, and are not moved once more.
    """
    seen: dict[bytes, int] | None = {}
    while t < until:
        if seen is not None:
            before = seen.setdefault(support.tobytes(), t)
            if before < t:
                t, seen = until - (until - t) % (t - before), None
                continue
        t += 1
        support = moved(model, support)
    return support


_LAWS: WeakKeyDictionary[StepPlan, Law | Table] = WeakKeyDictionary()


def law_of_plan(plan: StepPlan) -> Law | Table:
    """The law of a plan, read off once."""
    if plan not in _LAWS:
        _LAWS[plan] = law_of(plan.mechanism)
    return _LAWS[plan]


def left_possible(plan: StepPlan, z: IntArray) -> BoolArray:
    """The states (N,) that z may come from: all of them, but of a public constant and of a table."""
    law = law_of_plan(plan)
    if law.rank == plan.image.shape[1]:
        return np.ones(len(plan.image), dtype=np.bool_)
    return law.on_span(z - plan.image)


def support_of(session: ReleaseSession) -> BoolArray:
    """The states or secrets (S,) possible at the coming step, from the model and what the session has published."""
    setting = session.setting
    model, options = setting.model, setting.options
    support = first_support(model, options.start)
    for _ in range(1, session.t):
        following = moved(model, support)
        if np.array_equal(following, support):
            break
        support = following
    return hidden(model, support)
