"""The draws of a plan for pairs of states, as `black_box` wants them: what is sampled, not what is said of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dphmm.audit.black_box import BlackBoxVerdict, black_box
from dphmm.audit.reach import Bodies
from dphmm.audit.required import required_pairs
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.answer import answer_under
from dphmm.session.plan import Plan
from dphmm.states.space import StateSpace
from dphmm.types import Bits, FloatArray


def sample_plan(
    plan: Plan,
    policy: PolicyGraph,
    space: StateSpace,
    *,
    pairs: list[tuple[int, int]] | None = None,
    most: int = 3,
    draws: int = 100_000,
    alpha: float = 1e-6,
    bits: Bits | None = None,
) -> BlackBoxVerdict:
    """Judge a plan by its samples, on the required pairs that reach farthest in its bodies, or on ``pairs``.

    It looks at the sampler itself, which `verify` does not. Nothing is released: the states drawn for are those of the
    pairs, whoever is where. ``bits``: None for the system's.
    """
    words = default_bits(bits)
    chosen = farthest_pairs(plan, policy, most) if pairs is None else pairs
    if not chosen:
        return BlackBoxVerdict(float(plan.epsilon), alpha, draws, 0, (), ())

    def drawn(state: int) -> Callable[[int], FloatArray]:
        def draw(n: int) -> FloatArray:
            z, _ = answer_under(plan, np.full(n, state, dtype=np.int64), words)
            return np.asarray(space.frame.to_answers(z))

        return draw

    sources = [(drawn(a), drawn(b)) for a, b in chosen]
    names = [f"states {a} and {b}" for a, b in chosen]
    return black_box(sources, plan.epsilon, names=names, alpha=alpha, draws=draws, lattice=space.frame)


def farthest_pairs(plan: Plan, policy: PolicyGraph, most: int) -> list[tuple[int, int]]:
    """The required pairs of largest norm, facet by facet, at most so many."""
    reaches, _ = Bodies.of(plan.mechanisms, plan.body_of).reached(required_pairs(policy, plan), plan.image)
    found: dict[tuple[int, int], float] = {}
    for reach in reaches:
        for a, b, far in reach.farthest():
            found[a, b] = max(found.get((a, b), 0.0), far)
    return sorted(found, key=lambda pair: (-found[pair], pair))[:most]
