"""The causes of a setting's error, and remedies: each cause with a remedy that was tried on the model.

Everything here is computed from public data: model, policy, space, options. A remedy keeps what the policy promises.
Other covered distances, cells, budgets and schedules are what `dphmm.choose.search` tries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dphmm.choose.lonely import cells_alone, expected_error, off_within
from dphmm.errors import DphmmError
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import Hops, NoiseMechanism, make_known
from dphmm.mechanisms.registry import AUTO
from dphmm.policy import radius
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.statement.advice import not_advised
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

#: A remedy is told where it leaves at most this part of the error.
_ENOUGH = 0.9
#: Answers up to which a made table is tried here: more of them take longer than this command should.
_FEW_ANSWERS = 48
#: Cells of a whole map that are looked at, at most, and the part of people who may be anywhere in it.
_MOST_CELLS, _EVERYWHERE = 20_000, 1e-6
#: How far beyond the ends numbers for names are looked at, times as many as there are names.
_TAIL = 60


@dataclass(frozen=True)
class Remedy:
    """A cause in words, what to do about it, and the errors before and after.

    Errors are root mean squares in answer units, of labels shares that are wrong; None where a release is refused.
    ``not_advised``: the reasons against advising it (`dphmm.statement.advice`).
    """

    cause: str
    remedy: str
    before: float | None
    after: float | None
    not_advised: tuple[str, ...] = ()

    @property
    def helps(self) -> bool:
        """True if it lowers the error enough to be mentioned."""
        return self.after is not None and (self.before is None or self.after <= _ENOUGH * self.before)

    @property
    def left(self) -> float:
        """The part of the error that is left; 0 where there was no release before."""
        return 0.0 if not self.before or self.after is None else self.after / self.before


def remedies(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options, plan: StepPlan | None
) -> list[Remedy]:
    """The causes that hold at the first step, each with what was tried; advice first, the most helpful first.

    ``plan``: that of the first step; None if it is refused. A public constant has nothing to mend.
    """
    if plan is not None and plan.constant:
        return []
    case = _Case(model, policy, space, options, None if plan is None else expected_error(plan, space, model))
    known = off_within(space)
    tried = []
    for remedy in [remedy for cause in _CAUSES for remedy in cause(case) if remedy.helps]:
        error = math.hypot(remedy.after or 0.0, known)
        tried.append(replace(remedy, not_advised=not_advised(options.epsilon, error, known)))
    return sorted(tried, key=lambda remedy: (bool(remedy.not_advised), remedy.left))


@dataclass(frozen=True)
class _Case:
    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    options: Options
    error: float | None

    @property
    def weights(self) -> FloatArray:
        occupancy = self.model.occupancy_weights
        weights = np.ones(self.model.n_secrets) if occupancy is None else occupancy.astype(np.float64)
        return np.asarray(weights / weights.sum())

    def tried(
        self,
        policy: PolicyGraph | None = None,
        space: StateSpace | None = None,
        model: MarkovModel | None = None,
        **changed: object,
    ) -> float | None:
        """The error with something changed; None where that is refused, or cannot be."""
        model, space = model or self.model, space or self.space
        try:
            options = replace(self.options, **changed)  # type: ignore[arg-type]
            plan = Setting(model, policy or self.policy, space, options).first_plan()
            return expected_error(plan, space, model)
        except DphmmError:
            return None


def _joins(case: _Case) -> Iterator[Remedy]:
    """States that nothing hides are joined, which widens the noise for everybody."""
    alone = int((~case.policy.has_neighbor(None)).sum())
    if alone and case.options.protection != AUTO and not case.space.has_labels:
        yield Remedy(
            f"{alone} states without a neighbour are joined to one (protection {case.options.protection})",
            "dphmm policy ... --setting protection auto: each is answered as its nearest state where that errs less",
            case.error,
            case.tried(protection=AUTO),
        )


def _holes(case: _Case) -> Iterator[Remedy]:
    """Cells that nobody visited are left out, so visited ones stand alone; with all cells they do not."""
    from scipy import sparse

    space = case.space
    if not isinstance(space, Grid) or case.policy.kind != "radius" or len(space.merges):
        return
    if space.columns * space.rows > _MOST_CELLS or not len(cells_alone(space)):
        return
    whole = Grid(space.west, space.south, space.east, space.north, space.cell)
    n = whole.n_states
    place = space.lattice[:, 1] * space.columns + space.lattice[:, 0]
    initial = np.full(n, _EVERYWHERE / n)
    initial[place] += (1 - _EVERYWHERE) * case.weights
    # Everybody stays: only where people are has a part in the error of a step, and every cell is possible.
    stays = sparse.csr_array(sparse.eye_array(n))
    model = MarkovModel(initial / initial.sum(), stays, space=whole, provenance={"initial": "occupancy"}, start="at")
    yield Remedy(
        f"{len(cells_alone(space))} cells have no neighbouring cell, as cells that nobody visited are left out",
        f"fit --all-cells: {n} states instead of {space.n_states}",
        case.error,
        case.tried(radius(whole, case.policy.describe()["r"]), whole, model, start="at"),
    )


def _numbers_for_names(case: _Case) -> Iterator[Remedy]:
    """States are names, and are answered as numbers: a number between two of them means nothing."""
    space, names = case.space, case.space.given_names
    if space.has_labels or space.on_map or space.dimension != 1 or names is None or len(space.merges):
        return
    if all(_is_number(name) for name in names) or not np.array_equal(space.answers[:, 0], np.arange(space.n_states)):
        return
    plan = Setting(case.model, case.policy, space, case.options).first_plan()
    if not isinstance(plan.mechanism, NoiseMechanism):
        return
    n = space.n_states
    # The nearest number to an answer beyond the ends is the end.
    logs = np.array([plan.log_likelihood(np.array([z])) for z in range(-_TAIL * n, (1 + _TAIL) * n)])
    shares = np.exp(logs - logs.max(axis=0))
    shares /= shares.sum(axis=0)
    named = np.clip(np.arange(-_TAIL * n, (1 + _TAIL) * n), 0, n - 1)
    right = float(case.weights @ np.array([shares[named == state, state].sum() for state in range(n)]))
    labels = StateSpace.labels(names)
    after = case.tried(space=labels, mechanism=Hops.name)
    yield Remedy(
        f"states are names and are answered as numbers from 0 to {n - 1}: the nearest name is wrong",
        "fit --answers labels, which answers with names",
        1.0 - right,
        after,
    )


def _made_table(case: _Case) -> Iterator[Remedy]:
    """Few answers: the best law over them can be made."""
    if len(np.unique(case.space.lattice, axis=0)) > _FEW_ANSWERS:
        return
    if case.options.made_from != "hull" or case.space.has_labels or case.options.constraint != Support():
        return
    from dphmm.choose.optimizing import optimize

    try:
        table = optimize(case.model, case.policy, case.space, case.options.epsilon, protection=case.options.protection)
        after = case.tried(mechanism=make_known(table))
    except DphmmError:
        return
    made = "dphmm optimize, then dphmm policy ... --setting mechanism table.npz"
    yield Remedy("there are few answers, and noise goes beyond them", made, case.error, after)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


_CAUSES = (_joins, _holes, _numbers_for_names, _made_table)
