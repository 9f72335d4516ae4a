"""Which states a public history leaves possible, by sets alone: what a session claims of it is checked against this."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from dphmm.audit.pairs import Bodies
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import Plan
from dphmm.session.session import ReleaseSession
from dphmm.types import BoolArray, IntArray


def first_support(model: MarkovModel, start: str) -> BoolArray:
    """The states (N,) that are possible at step 1."""
    support = np.asarray(model.initial) > 0
    return moved(model, support, 1) if start == "before" else support


def moved(model: MarkovModel, support: BoolArray, t: int) -> BoolArray:
    """The states (N,) that a possible one can move to on the way to step t."""
    if model.jump is not None:
        # A jump leads everywhere.
        return np.full(model.n_states, support.any())
    matrix = model.transition_at(t)
    start = np.repeat(np.arange(model.n_states), np.diff(matrix.indptr))
    after = np.zeros(model.n_states, dtype=np.bool_)
    after[matrix.indices[support[start] & (matrix.data > 0)]] = True
    return after


def moved_through(model: MarkovModel, support: BoolArray, t: int, until: int) -> BoolArray:
    """The states (N,) possible at step ``until`` after those of step t, without a release in between.

    Supports of a chain that is the same at every step come round again, and are not moved once more.
    """
    seen: dict[bytes, int] | None = {} if model.time_homogeneous else None
    while t < until:
        if seen is not None:
            before = seen.setdefault(support.tobytes(), t)
            if before < t:
                t, seen = until - (until - t) % (t - before), None
                continue
        t += 1
        support = moved(model, support, t)
    return support


_BODIES: WeakKeyDictionary[Plan, Bodies] = WeakKeyDictionary()


def bodies_of(plan: Plan) -> Bodies:
    """The laws of a plan, read off once."""
    if plan not in _BODIES:
        _BODIES[plan] = Bodies.of(plan.mechanisms, plan.body_of)
    return _BODIES[plan]


def left_possible(plan: Plan, z: IntArray) -> BoolArray:
    """The states (N,) whose noise can reach z: z - answer in the span of the body that answers the state."""
    bodies = bodies_of(plan)
    if all(law.rank == plan.image.shape[1] for law in bodies.laws):
        return np.ones(len(plan.image), dtype=np.bool_)
    found = np.zeros(len(plan.image), dtype=np.bool_)
    for number, law in enumerate(bodies.laws):
        own = bodies.law_of == number
        found[own] = law.on_span(z - plan.image[own])
    return found


def support_of(session: ReleaseSession) -> BoolArray:
    """The states (N,) possible at the coming step, from the model and what the session has published."""
    setting = session.setting
    model, options = setting.model, setting.options
    support = first_support(model, options.start)
    for t in range(1, session.t):
        if options.flat == "allow" and session.has_released(t):
            published = session.released(t)
            assert published.z_lattice is not None
            record = session._ledger.plan(published.plan_hash)
            plan = setting.made_again(support, record)
            support = support & left_possible(plan, published.z_lattice)
        following = moved(model, support, t + 1)
        if options.flat != "allow" and model.time_homogeneous and np.array_equal(following, support):
            break
        support = following
    return support
