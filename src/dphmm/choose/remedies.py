"""Why a setting errs as much as it does, and what would help: each cause with a remedy that was tried on the model.

Everything here is computed from public data: model, policy, space, options. A remedy changes what is promised or what
is spent where its words say so; whether that is fine is for whoever publishes to decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dphmm.accounting.records import in_short
from dphmm.choose.lonely import cells_alone, expected_error, off_within
from dphmm.choose.search import usual_radii
from dphmm.errors import DphmmError
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import Hops, NoiseMechanism, make_known
from dphmm.mechanisms.registry import AUTO
from dphmm.policy import radius
from dphmm.policy._radius import covered_distance
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.session.setting import Setting
from dphmm.statement.advice import MOST_EPSILON, not_advised
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

#: A remedy is told where it leaves at most this part of the error.
_ENOUGH = 0.9
#: Cells are too fine where answers err by more of them than this; a coarser one is half of what answers err, and told
#: where the error hardly grows.
_FINE, _AS_GOOD = 3.0, 1.02
#: How often epsilon is doubled in search of one that tells something.
_DOUBLINGS = 5
#: Steps that people stay on average before fewer, stronger answers are looked at, and most steps between two.
_LEAST_STAY, _MOST_APART = 3.0, 12
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
    ``at_most``: which part of the error before may be left, for the remedy to be told. ``epsilon``: of one answer,
    where the remedy changes it. ``not_advised``: why it is told as no advice (`dphmm.statement.advice`).
    """

    cause: str
    remedy: str
    before: float | None
    after: float | None
    at_most: float = _ENOUGH
    epsilon: Fraction | None = None
    not_advised: tuple[str, ...] = ()

    @property
    def helps(self) -> bool:
        """Whether it takes enough off the error to be told."""
        return self.after is not None and (self.before is None or self.after <= self.at_most * self.before)

    @property
    def left(self) -> float:
        """The part of the error that is left; 0 where there was no release before."""
        return 0.0 if not self.before or self.after is None else self.after / self.before


def remedies(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options, plan: Plan | None
) -> list[Remedy]:
    """The causes that hold at the first step, each with what was tried; advice first, the most helpful first.

    ``plan``: that of the first step; None where it is refused. Of a public constant there is nothing to mend.
    """
    if plan is not None and plan.constant:
        return []
    case = _Case(model, policy, space, options, None if plan is None else expected_error(plan, space, model))
    known = off_within(space)
    tried = []
    for remedy in [remedy for cause in _CAUSES for remedy in cause(case) if remedy.helps]:
        error = math.hypot(remedy.after or 0.0, known)
        tried.append(replace(remedy, not_advised=not_advised(remedy.epsilon or options.epsilon, error, known)))
    return sorted(tried, key=lambda remedy: (bool(remedy.not_advised), remedy.left))


@dataclass(frozen=True)
class _Case:
    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    options: Options
    error: float | None

    @property
    def unit(self) -> str:
        return " m" if self.space.on_map else ""

    @property
    def weights(self) -> FloatArray:
        told = self.model.occupancy_weights
        own = np.ones(self.model.n_states) if told is None else told.astype(np.float64)
        return np.asarray(own / own.sum())

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
            f"{alone} states without a neighbour are joined to one (--protection {case.options.protection})",
            "--protection auto, which answers them as their nearest state where that errs less",
            case.error,
            case.tried(protection=AUTO),
        )


def _radius(case: _Case) -> Iterator[Remedy]:
    """Most states are out of everybody's reach: the policy names nobody to hide among."""
    alone = int((~case.policy.has_neighbor(None)).sum())
    if case.policy.kind != "radius" or 2 * alone <= case.space.n_states:
        return
    for wider in usual_radii(case.space):
        other = radius(case.space, wider)
        if 2 * int((~other.has_neighbor(None)).sum()) <= case.space.n_states:
            yield Remedy(
                f"{alone} of {case.space.n_states} states have no neighbour within the radius",
                f"a radius of {wider:g}{case.unit}, which reaches most of them, and promises more",
                case.error,
                case.tried(policy=other),
            )
            return


def _says_little(case: _Case) -> Iterator[Remedy]:
    """Answers err more than who knows the model alone does."""
    guess = _of_a_guess(case)
    if case.error is None or case.error < guess:
        return
    if case.space.has_labels:
        cause = f"one answer tells less than the commonest label, which is wrong of {guess:.1%} without any"
    else:
        cause = f"one answer tells less than the middle of all places, which is {guess:.6g}{case.unit} off without any"
    for times in range(1, _DOUBLINGS + 1):
        epsilon = case.options.epsilon * 2**times
        after = case.tried(epsilon=epsilon)
        if after is not None and after <= guess / 2:
            remedy = f"--epsilon {in_short(epsilon)}, which promises less"
            yield Remedy(cause, remedy, case.error, after, epsilon=epsilon)
            break
    kind = case.policy.describe()
    if kind["kind"] == "radius":
        half = Fraction(kind["r"]) / 2
        nearer = radius(case.space, half)
        if nearer.has_neighbor(None).any():
            remedy = f"a radius of {float(half):g}{case.unit}, which promises less"
            yield Remedy(cause, remedy, case.error, case.tried(policy=nearer))


def _of_a_guess(case: _Case) -> float:
    """The error of the best single guess for everybody."""
    if case.space.has_labels:
        return float(1.0 - case.weights.max())
    own = case.space.own_answers
    return math.sqrt(float(case.weights @ np.square(own - case.weights @ own).sum(axis=1)))


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


def _fine_cells(case: _Case) -> Iterator[Remedy]:
    """Cells far smaller than what answers err by: larger ones say as much, and fewer of them are lonely."""
    space = case.space
    if not isinstance(space, Grid) or case.error is None or case.policy.kind != "radius" or len(space.merges):
        return
    covered = covered_distance(case.policy, space)
    most = int(case.error / (2 * space.cell))
    if case.error <= _FINE * space.cell or most < 2 or not covered or covered == math.inf:
        return
    for times in sorted({most, max(2, most // 2), 2}, reverse=True):
        try:
            model, away = coarser(case.model, space, times)
            assert model.space is not None
            after = case.tried(radius(model.space, covers=covered), model.space, model)
        except DphmmError:  # a map of one such cell, or of cells too large for the distance
            continue
        one = Remedy(
            f"answers err by {case.error / space.cell:.0f} cells: cells of {space.cell:g} m say no more than larger",
            f"fit --grid {times * space.cell:g}m ({model.n_states} states instead of {space.n_states}), then policy "
            f"radius --covers {covered:g}m, as now",
            case.error,
            None if after is None else math.hypot(after, away),
            at_most=_AS_GOOD,
        )
        if one.helps:
            yield one
            return


def coarser(model: MarkovModel, space: Grid, times: int) -> tuple[MarkovModel, float]:
    """The model on cells ``times`` as large, and how far people are from the middle of such a cell.

    States are put together weighted by how often people are in them. What a chain tells of larger cells is no chain, so
    this model is an approximation of it: for looking at errors, and for nothing that is published. The distance is a
    root mean square in metres.
    """
    from scipy import sparse

    whole = Grid(space.west, space.south, space.east, space.north, space.cell * times)
    column, row = (space.unmerged.lattice // times).T
    cell = np.minimum(row, whole.rows - 1) * whole.columns + np.minimum(column, whole.columns - 1)
    kept, number = np.unique(cell, return_inverse=True)
    part = whole.subset(kept)
    told = model.occupancy_weights
    # A cell where nobody was still moves somewhere.
    weights = np.ones(model.n_states) if told is None else told + 1e-9
    members = sparse.csr_array((np.ones(len(number)), (np.arange(len(number)), number)), (len(number), len(kept)))
    moves = members.T @ sparse.diags_array(weights) @ model.matrix @ members
    share = np.bincount(number, weights=weights)
    away = np.square(space.own_answers - part.answers[number]).sum(axis=1)
    lumped = MarkovModel(
        np.bincount(number, weights=model.initial, minlength=len(kept)),
        sparse.csr_array(sparse.diags_array(1 / share) @ moves),
        space=part,
        provenance=dict(model.provenance),
        start=model.start,
    )
    return lumped, math.sqrt(float(weights @ away / weights.sum()))


def _numbers_for_names(case: _Case) -> Iterator[Remedy]:
    """States are names, and are answered as numbers: what lies between two of them means nothing."""
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


def _stays(case: _Case) -> Iterator[Remedy]:
    """People stay where they are: answers are asked more often than there is something to tell."""
    stay = float(case.weights @ case.model.matrix.diagonal())
    mean = 1 / max(1 - stay, 1 / _MOST_APART)
    if mean < _LEAST_STAY or case.error is None or case.space.has_labels:
        return
    apart = max(2, min(int(mean / 2), int(MOST_EPSILON / case.options.epsilon)))
    epsilon = case.options.epsilon * apart
    yield Remedy(
        f"people stay for {mean:.0f} steps on average" + (" or more" if mean >= _MOST_APART else ""),
        f"one answer in {apart} steps at epsilon {in_short(epsilon)}, the same total: the error of those (dphmm plan)",
        case.error,
        case.tried(epsilon=epsilon),
        epsilon=epsilon,
    )


def _made_table(case: _Case) -> Iterator[Remedy]:
    """Few answers: the best law over them can be made."""
    if len(np.unique(case.space.lattice, axis=0)) > _FEW_ANSWERS:
        return
    if case.options.made_from != "hull" or case.space.has_labels or case.options.constraint != Support():
        return
    from dphmm.optimizing import optimize

    try:
        table = optimize(case.model, case.policy, case.space, case.options.epsilon, protection=case.options.protection)
        after = case.tried(mechanism=make_known(table))
    except DphmmError:
        return
    yield Remedy("there are few answers, and noise goes beyond them", "dphmm optimize, then --mechanism table.npz",
                 case.error, after)  # fmt: skip


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


_CAUSES = (_joins, _holes, _radius, _says_little, _fine_cells, _numbers_for_names, _stays, _made_table)
