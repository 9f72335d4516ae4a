"""Random small instances: a model, a policy, a space and the public choices of a release; and what may be true.

`instance(seed)` is a function of its seed alone. Dimension, policy kind, constraint and mechanism cycle
through all their values, the rest is random, so a run over consecutive seeds meets every choice (held by
``test_plan.test_the_seeds_meet_every_choice``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dphmm
from dphmm.accounting.ledger import Ledger
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.types import Bits

CONSTRAINTS = ("support", "delta=0.1", "delta=0.35")
MECHANISMS = ("auto", "discrete-knorm", "staircase", "discrete-laplace")
#: Every few seeds have a table.
TABLES = ("optimal-table", "hops")
#: A table that was made before is for the support, and needs all states to be possible.
MADE = "made-table"
PROTECTIONS = ("nearest", "min-volume", "min-error")
STEPS = 3
#: A name that no state has, and what ``locate`` gives for a place outside every state.
NOWHERE: tuple[str | int, ...] = ("no such place", -1)


@dataclass(frozen=True, eq=False)
class Instance:
    """The public side of a small release; ``skipped`` steps pass silently before the release of that number."""

    seed: int
    model: dphmm.MarkovModel
    policy: PolicyGraph
    space: dphmm.StateSpace
    choices: dict[str, Any]
    skipped: tuple[int, ...]

    @property
    def truths(self) -> list[int | str]:
        """Everything that may be true at a step: each state, inside the constraint or not, and no state at all."""
        return [*range(self.space.n_states), self.space.names[-1], *NOWHERE]

    def session(self, bits: Bits, ledger: Ledger | None = None, setting: Setting | None = None) -> ReleaseSession:
        """A new session of subject "ann"; a ``setting`` brings the plans that other sessions have made with it."""
        session = ReleaseSession(
            self.model, self.policy, self.space, subject="ann", ledger=ledger, bits=bits, **self.choices
        )
        session._setting = setting or session.setting
        return session

    def setting(self) -> Setting:
        """A setting for sessions to share."""
        return self.session(ReplayBits(0)).setting

    def __repr__(self) -> str:
        return f"instance({self.seed})"


def instance(seed: int, **fixed: Any) -> Instance:
    """The instance of a seed; ``fixed`` choices replace its own."""
    rng = np.random.default_rng(seed)
    dimension = 1 + (seed + seed // 6) % 3
    n = int(rng.integers(4, (9, 7, 5)[dimension - 1]))
    space = _space(rng, n, dimension, collinear=rng.random() < 0.25)
    model = _model(rng, n)
    policy = POLICIES[tuple(POLICIES)[seed % len(POLICIES)]](rng, model, space)
    choices: dict[str, Any] = {
        "epsilon": str(rng.choice(["0.3", "1", "2.5"])),
        "constraint": CONSTRAINTS[max(0, seed % 4 - 1)],
        "mechanism": MECHANISMS[seed % len(MECHANISMS)],
        "protection": str(rng.choice(PROTECTIONS)),
    }
    if seed // 6 % 2 == 0 and seed % 7 in (0, 1, 3):
        choices["mechanism"] = TABLES[seed % 7 == 1]
    if seed // 6 % 2 == 0 and choices["constraint"] == "support" and seed % 7 == 5 < seed:
        model = _everywhere(seed, n)
        policy = POLICIES[tuple(POLICIES)[seed % len(POLICIES)]](rng, model, space)
        named = {"protection": choices["protection"]}
        choices["mechanism"] = dphmm.choose.optimize(model, policy, space, choices["epsilon"], **named)
    choices |= _caps(rng, float(choices["epsilon"]))
    skipped = tuple(int(k) for k in rng.integers(0, 2, STEPS))
    return Instance(seed, model, policy, space, {**choices, **fixed}, skipped)


def truths_at(case: Instance, step: int) -> Iterator[tuple[int | str, ...]]:
    """Histories of truths that differ at one step: all truths there, the same state elsewhere."""
    elsewhere = case.seed % case.space.n_states
    for truth in case.truths:
        yield tuple(truth if k == step else elsewhere for k in range(STEPS))


def _space(rng: np.random.Generator, n: int, dimension: int, collinear: bool) -> dphmm.StateSpace:
    span = 2 if dimension < 3 else 1
    if collinear:
        answers = rng.integers(-span, span + 1, (n, 1)) * rng.integers(-1, 2, (1, dimension))
    else:
        answers = rng.integers(-span, span + 1, (n, dimension))
    return dphmm.StateSpace(answers, names=[f"place {k}" for k in range(n)])


def _model(rng: np.random.Generator, n: int) -> dphmm.MarkovModel:
    """Few moves and a narrow start, so that some states are impossible at first and are drift."""
    moves = rng.random((n, n)) * (rng.random((n, n)) < 0.35) + np.diag(rng.random(n) + 0.1)
    initial = np.zeros(n)
    initial[rng.choice(n, size=(2, n - 1)[int(rng.integers(0, 2))], replace=False)] = 1
    start = str(rng.choice(["before", "at"]))
    return dphmm.MarkovModel(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True), start=start)


def _everywhere(seed: int, n: int) -> dphmm.MarkovModel:
    """Every state is possible at every step."""
    moves = np.random.default_rng(seed).random((n, n)) + 0.05
    return dphmm.MarkovModel(np.full(n, 1 / n), moves / moves.sum(axis=1, keepdims=True))


def _union(rng: np.random.Generator, model: dphmm.MarkovModel, space: dphmm.StateSpace) -> PolicyGraph:
    return dphmm.policy.radius(space, 1).union(dphmm.policy.from_edges([(0, space.n_states - 1)], space.n_states))


#: How each kind of policy is drawn.
POLICIES: dict[str, Callable[[np.random.Generator, dphmm.MarkovModel, dphmm.StateSpace], PolicyGraph]] = {
    "complete": lambda rng, model, space: dphmm.policy.complete(space.n_states),
    "categorical": lambda rng, model, space: dphmm.policy.categorical(rng.integers(0, 2, space.n_states).tolist()),
    "radius": lambda rng, model, space: dphmm.policy.radius(space, int(rng.integers(1, 3))),
    "knn": lambda rng, model, space: dphmm.policy.knn(space, int(rng.integers(1, 3))),
    "transition": lambda rng, model, space: dphmm.policy.transition(model),
    "edges": lambda rng, model, space: dphmm.policy.from_edges([(0, 1), (1, space.n_states - 1)], space.n_states),
    "union": _union,
}


def _caps(rng: np.random.Generator, epsilon: float) -> dict[str, Any]:
    """No cap, or one that is passed at the second or third release."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return {"cap_epsilon": round(epsilon * int(rng.integers(1, 3)), 6)}
    return {"cap_cost": round(epsilon * float(rng.uniform(1, 6)), 6)} if kind == 1 else {}
