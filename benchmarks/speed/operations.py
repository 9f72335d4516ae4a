"""What is measured from a thousand to a million states: plans, steps, and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import dphmm
from benchmarks.speed.plain import naive_release as plain
from benchmarks.speed.worlds import POLICIES, GridWorld, moves
from dphmm.policy.constraint import Constraint, delta_states
from dphmm.session.setting import Setting

#: Of a world: what a repeat is given (made outside the timer, from the repeat's number), and what is timed.
Operation = Callable[[GridWorld], tuple[Callable[[int], Any], Callable[[Any], Any]]]
PLAIN = "plain step, radius"


def _cold_plan(name: str) -> Operation:
    """The first release under a policy never seen before: as in `step`, another unit and another ε each time."""

    def operation(world: GridWorld) -> Any:
        def session(number: int) -> dphmm.ReleaseSession:
            change = 1 + Fraction(1 + number, 256)
            space = world.scaled(change)
            return dphmm.ReleaseSession(world.model, world.policy(name, space), space, change)

        return session, lambda new: new.release(world.n_states // 2)

    return operation


def _kept_plan(in_floats: bool) -> Operation:
    """The second release of a subject, under a plan that was made before.

    A belief is kept in floats, or in logs where they cannot hold it, as on large grids after some releases: two costs.
    """

    def operation(world: GridWorld) -> Any:
        state = world.n_states // 2
        model = world.model if in_floats else _sharp_model(world)
        setting = Setting.of(model, world.policy("radius"), world.space, 1)

        def session(number: int) -> dphmm.ReleaseSession:
            new = dphmm.ReleaseSession.of(setting)
            new.release(state)
            if (new.prior.row is not None) != in_floats:
                raise SystemExit("the belief is not kept as this operation says")
            return new

        return session, lambda kept: kept.release(state)

    return operation


def _sharp_model(world: GridWorld) -> dphmm.MarkovModel:
    """Nearly certain where its subject is; no float can hold the other probabilities beside that one."""
    initial = np.full(world.n_states, 1e-305)
    initial[world.n_states // 2] = 1.0
    return dphmm.MarkovModel(initial, moves(world.side), start="at")


def _extreme(name: str) -> Operation:
    """The largest difference in a new direction, when all states are possible and a scattered half is planned."""

    def operation(world: GridWorld) -> Any:
        policy, lattice = world.policy(name), world.space.lattice
        everything = np.ones(world.n_states, dtype=np.bool_)
        half = _scattered_half(world)

        def asked(number: int) -> tuple[np.ndarray, Constraint]:
            return np.array([7, 3 + number]), Constraint.surrogated(everything, half, world.space)

        return asked, lambda given: policy.extreme_difference(given[0], lattice, given[1])

    return operation


def _scattered_half(world: GridWorld) -> np.ndarray:
    return np.random.default_rng(2).random(world.n_states) < 0.5


def _belief(world: GridWorld) -> Any:
    """What is known after a release and some steps without one: all states possible, few of them likely."""
    start = np.zeros(world.n_states)
    start[world.n_states // 2] = 1.0
    mixed = 0.999 * start + 0.001 / world.n_states
    return dphmm.markov.Belief(np.log(mixed / mixed.sum()), np.ones(world.n_states, dtype=np.bool_))


def _delta_set(world: GridWorld) -> Any:
    prior = world.model.initial * np.random.default_rng(3).uniform(0.5, 1.5, world.n_states)
    support = np.ones(world.n_states, dtype=np.bool_)
    return lambda number: prior, lambda given: delta_states(given, support, 0.01)


def _surrogates(world: GridWorld) -> Any:
    """The map to the nearest plan state, of all states for which a scattered half is planned."""
    support = np.ones(world.n_states, dtype=np.bool_)
    half = _scattered_half(world)
    return lambda number: half, lambda plan: Constraint.surrogated(support, plan, world.space)


def _prediction(world: GridWorld) -> Any:
    belief, model = _belief(world), world.model
    return lambda number: belief, lambda given: given.predict(model, t=1)


def _new_session(world: GridWorld) -> Any:
    """What comes before a first release: the model's columns, hashes of what is public, the belief about t = 1."""

    def unused(number: int) -> tuple[Any, ...]:
        new = GridWorld(world.side)
        return new.model, new.policy("radius"), new.space, 1

    return unused, lambda given: dphmm.ReleaseSession(*given)


def _plain(world: GridWorld) -> Any:
    answers = world.points.astype(float)
    release = plain.Release(
        world.dense, plain.enumerated(world.joined("radius")), answers, 1.0, world.model.initial.copy()
    )
    return lambda number: release, lambda given: given.step(world.n_states // 2)


OPERATIONS: dict[str, Operation] = {
    "session on an unused model, radius": _new_session,
    **{f"plan and release, {name}": _cold_plan(name) for name in POLICIES},
    "kept plan and release, radius, belief in floats": _kept_plan(in_floats=True),
    "kept plan and release, radius, belief in logs": _kept_plan(in_floats=False),
    **{f"largest difference, {name}": _extreme(name) for name in POLICIES},
    "δ-set": _delta_set,
    "nearest plan states": _surrogates,
    "prediction": _prediction,
}
ALL = {**OPERATIONS, PLAIN: _plain}
