"""The expected error of a plan, and the part that lonely states add to it: joined to a partner, or merged into it.

Everything here is computed from public data: model, policy, space, options.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dphmm.choose.simulated import middles, places
from dphmm.errors import Refused, Unprotectable
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.protection import Merged, merge_lonely
from dphmm.session.options import Options
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

#: Cells further apart than this many times the usual distance are no neighbours; a diagonal is 1.42 times as long.
_NEIGHBOURS = 1.5
#: Places that are drawn in all states together.
_PLACES = 10_000


@dataclass(frozen=True)
class Moved:
    """Some states and how far away the states are that they are answered as.

    ``share``: their part of all visits, None where the model's initial distribution is no occupancy; ``nearest``,
    ``farthest``: answer units.
    """

    states: int
    share: float | None
    nearest: float
    farthest: float


@dataclass(frozen=True)
class LonelyCost:
    """Root mean square errors of the first release, answer units; None where it is refused.

    ``joined``: every lonely state joined to a partner. ``merged``: with the distance to the partners counted.
    """

    moved: Moved
    joined: float | None
    merged: float | None
    merging: Merged

    @property
    def helps(self) -> bool:
        """True if merging lowers the error."""
        return self.merged is not None and (self.joined is None or self.merged < self.joined)


def off_within(space: StateSpace) -> float:
    """The root mean square distance of places from the middle of their cell, over all states alike; 0 of no cells.

    An error from the middle of cells and this one make, squared and added, the error from the places.
    """
    states = np.repeat(np.arange(space.n_states), max(1, _PLACES // space.n_states))
    away = places(space, states, np.random.default_rng(0)) - middles(space)[states]
    return math.sqrt(float(np.square(away).sum(axis=1).mean()))


def expected_error(plan: StepPlan, space: StateSpace, model: MarkovModel) -> float:
    """Root mean square distance of a release from the state itself, answer units; of labels the share that is wrong.

    Noise, and the distance to what a state is answered as; over the possible states, weighted by the model's occupancy
    where its initial distribution is one, else equally.
    """
    weights = np.where(plan.constraint.support, _weights(model), 0.0)
    if not weights.any():
        weights = plan.constraint.support.astype(np.float64)
    if space.has_labels:
        return float(weights @ wrong_labels(plan) / weights.sum())
    shift = space.answers[plan.constraint.surrogate] - space.own_answers
    return math.sqrt(float(weights @ (plan.expected_error + np.square(shift).sum(axis=1)) / weights.sum()))


def shown_error(plan: StepPlan, space: StateSpace, model: MarkovModel) -> float:
    """The error that commands print: of the noise alone where no state is merged, else `expected_error`."""
    whole = len(space.merges) or space.has_labels or len(plan.merged)
    return expected_error(plan, space, model) if whole else math.sqrt(plan.expected_error)


def wrong_labels(plan: StepPlan) -> FloatArray:
    """The probability that a release names another label than each state's own (N,)."""
    numbers = np.arange(len(plan.image), dtype=np.int64)
    logs = np.array([plan.log_likelihood(np.array([number]))[number] for number in numbers])
    return np.asarray(1.0 - np.exp(np.where(plan.constraint.support, logs, 0.0)))


def moved_states(space: StateSpace, pairs: IntArray, model: MarkovModel) -> Moved:
    """The figures of the merged states ``pairs`` (m, 2), at least one."""
    answers = space.own_answers
    distance = np.linalg.norm(answers[pairs[:, 0]] - answers[pairs[:, 1]], axis=1)
    share = float(model.summed(model.initial)[pairs[:, 0]].sum()) if _is_occupancy(model) else None
    return Moved(len(pairs), share, float(distance.min()), float(distance.max()))


def lonely_cost(model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options) -> LonelyCost | None:
    """The cost of the lonely states at the first step; None without any, or if they cannot be merged."""
    try:
        merging = merge_lonely(policy, space, isolated=options.made_from == "answers")
    except Unprotectable:
        return None
    if len(merging.pairs) == 0:
        return None
    return LonelyCost(
        moved_states(merging.space, merging.pairs, model),
        _first_error(model, policy, space, replace(options, protection="nearest")),
        _first_error(model, merging.policy, merging.space, options),
        merging,
    )


def only_merged(plan: StepPlan, space: StateSpace) -> int:
    """The number of possible states of a plan that hide only among states of their own merged answer."""

    support = plan.constraint.support
    answered_as = np.arange(space.n_states)
    answered_as[space.merges[:, 0]] = space.merges[:, 1]
    together = np.bincount(answered_as[support], minlength=space.n_states)[answered_as]
    return int((support & (together > 1) & (plan.degrees() <= together)).sum())


def cells_alone(space: StateSpace) -> IntArray:
    """The states (m,) of a map without a neighbouring cell: a radius of about a cell leaves them lonely.

    States that are merged, and their partners, have each other. None where the states are no cells.
    """
    from scipy.spatial import cKDTree

    if not space.on_map or space.n_states < 2:
        return np.zeros(0, dtype=np.int64)
    answers = space.own_answers
    nearest = cKDTree(answers).query(answers, k=2)[0][:, 1]
    usual = space.cell if isinstance(space, Grid) else float(np.median(nearest))
    return np.setdiff1d(np.flatnonzero(nearest > _NEIGHBOURS * usual), space.merges)


def _first_error(model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options) -> float | None:
    try:
        plan = Setting(model, policy, space, options).first_plan()
        return expected_error(plan, space, model)
    except Refused:
        return None


def _weights(model: MarkovModel) -> FloatArray:
    return model.summed(model.initial) if _is_occupancy(model) else np.full(model.n_secrets, 1.0 / model.n_secrets)


def _is_occupancy(model: MarkovModel) -> bool:
    return bool(model.provenance.get("initial") == "occupancy")
