"""The covered distances, cells, budgets and schedules that reach a target, from the public model alone.

Each setting is tried on people whom the model invents, as one plan is: nobody's data are looked at, so a choice made
here costs no privacy and discloses nothing. The errors are those of people who move as the model says; of others they
can be larger. The rule by which a setting is chosen is public, short and printed with the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dphmm._checks import finite_number, whole
from dphmm._progress import Progress
from dphmm.accounting.promise import SequencePromise
from dphmm.choose.planning import World
from dphmm.choose.schedule_plan import AFTER, CHANCE
from dphmm.errors import InvalidInput, Refused
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import Jump
from dphmm.policy import complete, radius
from dphmm.policy._radius import covered_distance
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import PlanChoices
from dphmm.statement.advice import not_advised
from dphmm.statement.doubt import LEAST_USEFUL, doubt
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

#: Invented people for each setting.
PEOPLE = 25
#: How many times as wide the larger cells are that are tried.
_WIDER = 2
#: The rule of choice among the settings that reach every target.
RULE = "the largest distance that reaches the targets, then the smallest total, the smallest cells and the least error"
#: Radii that are tried by themselves, in multiples of what lies between neighbouring answers.
MULTIPLES = (1, 2, 4, 8)
_MOST_LOOKED_AT = 4096


def usual_radii(space: StateSpace) -> tuple[float, ...]:
    """Multiples of the typical distance of neighbouring answers, as far as they leave somebody out."""
    from scipy.spatial import cKDTree

    answers = np.unique(space.answers, axis=0)
    if len(answers) < 2 or space.has_labels:
        return ()
    looked_at = answers[:: max(1, len(answers) // _MOST_LOOKED_AT)]
    apart = float(np.median(cKDTree(answers).query(looked_at, k=2)[0][:, 1]))
    return tuple(_rounded_up(k * apart) for k in MULTIPLES if k * apart < _extent(answers))


def _extent(answers: FloatArray) -> float:
    return float(np.linalg.norm(np.ptp(answers, axis=0)))


def _rounded_up(length: float) -> float:
    """Three digits, upwards: a neighbour at exactly the distance stays within."""
    unit = 10.0 ** (np.floor(np.log10(length)) - 2)
    return float(f"{np.ceil(length / unit * (1 - 1e-12)) * unit:.6g}")


class Candidate(NamedTuple):
    """A policy to try, by name, on a model: ``distance`` is how far apart places are that it hides, in answer units.

    ``cell``: the side of larger cells, None for those of the model as it is.
    """

    name: str
    distance: float
    cell: float | None
    model: MarkovModel
    space: StateSpace
    policy: PolicyGraph


def candidates(model: MarkovModel, space: StateSpace, policy: PolicyGraph | None = None) -> Iterator[Candidate]:
    """The policies that are tried: a given one, those of usual radii, and these again on a grid of larger cells.

    Labels have no distances: without a policy of theirs the complete one is tried.
    """
    if policy is not None:
        covered = covered_distance(policy, space)
        yield Candidate("the policy given", 0.0 if covered is None else covered, None, model, space, policy)
    elif space.has_labels:
        yield Candidate("complete", 0.0, None, model, space, complete(space.n_states))
    distances = usual_radii(space)
    for each in distances:
        made = radius(space, covers=each) if space.on_map else radius(space, each)
        if policy is None or made.digest != policy.digest:
            yield Candidate(_named(space, each), each, None, model, space, made)
    if isinstance(space, Grid) and len(distances) and not len(space.merges) and model.secrets is None:
        wide = _coarser(model, space, _WIDER)
        assert isinstance(wide.space, Grid)
        for each in distances:
            if each >= wide.space.cell:
                made = radius(wide.space, covers=each)
                yield Candidate(_named(space, each), each, wide.space.cell, wide, wide.space, made)


def _named(space: StateSpace, distance: float) -> str:
    return f"covers {distance:g}m" if space.on_map else f"radius {distance:g}"


@dataclass(frozen=True)
class Targets:
    """Targets of a release: a reader's mean ``error`` at most, ``doubt`` and ``stay`` at least.

    error : in answer units, for labels the error rate; the upper end of its 95 % interval must reach it.
    doubt : one answer leaves at least 1 in so many doubt.
    stay : somebody who returns to one place for seven blocks or windows is found no nearer than this.

    Raises InvalidInput for an impossible target, and for none at all.
    """

    error: float | None = None
    doubt: int | None = None
    stay: float | None = None

    def __post_init__(self) -> None:
        if self.error is None and self.doubt is None and self.stay is None:
            raise InvalidInput("targets", "none", "an error, a doubt or a distance to reach")
        for name in ("error", "stay"):
            if getattr(self, name) is not None and finite_number(getattr(self, name), f"target_{name}") <= 0:
                raise InvalidInput(f"target_{name}", getattr(self, name), "a length greater than 0")
        if self.doubt is not None and not 3 <= whole(self.doubt, "target_doubt", 1) <= LEAST_USEFUL:
            raise InvalidInput("target_doubt", self.doubt, f"3 to {LEAST_USEFUL:,}: 1 in 20, for one")

    def doubted(self, epsilon: Fraction) -> bool:
        """True if one answer leaves as much doubt as the target."""
        least = doubt(epsilon)
        return self.doubt is None or (least is not None and least <= self.doubt)

    def missed(self, tried: Tried) -> float:
        """The factors by which a setting misses the targets, as a sum of logs; 0 where it reaches all."""
        factors = [1.0]
        if self.error is not None:
            factors.append(tried.at_most / self.error)
        if self.stay is not None:
            factors.append(math.inf if not tried.stay else self.stay / tried.stay)
        if self.doubt is not None and not self.doubted(tried.epsilon):
            factors.append(math.exp(tried.epsilon) / self.doubt)
        return sum(math.log(max(1.0, factor)) for factor in factors)


@dataclass(frozen=True)
class Tried:
    """A setting that was tried: so many ``releases`` of ``epsilon`` for a ``total``, by a policy on some cells.

    ``error``, ``at_most``: the mean error of a reader, and the upper end of its 95 % interval. ``stay``: the mean
    error about somebody who stays for seven blocks or windows; None if it is not computed. ``not_advised``: the
    reasons for which it is never recommended.
    """

    policy: str
    distance: float
    cell: float | None
    total: Fraction
    releases: int
    epsilon: Fraction
    error: float
    at_most: float
    stay: float | None
    not_advised: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The setting for JSON."""
        far = self.distance if math.isfinite(self.distance) else None
        return {**vars(self), "distance": far, "total": str(self.total), "epsilon": str(self.epsilon)}


@dataclass(frozen=True)
class Search:
    """All settings that were tried for some targets, and which one reaches them."""

    targets: Targets
    tried: tuple[Tried, ...]

    @property
    def best(self) -> Tried | None:
        """The setting that is recommended, by `RULE`; None where none that is advised reaches the targets."""
        reached = [tried for tried in self.tried if not tried.not_advised and self.targets.missed(tried) == 0]
        return min(reached, key=lambda one: (-one.distance, one.total, one.cell or 0.0, one.error), default=None)

    @property
    def nearest(self) -> Tried:
        """The setting that misses the targets by the least factors; of those that are advised, where any is."""
        return min(self.tried, key=lambda one: (bool(one.not_advised), self.targets.missed(one)))


def tries(
    settings: Sequence[Candidate],
    promise: SequencePromise,
    targets: Targets,
    progress: Progress | None = None,
    choices: PlanChoices | None = None,
    **options: Any,
) -> Iterator[Tried]:
    """Try totals and planned schedules for each setting: each is told as it is finished.

    The total of the promise is tried, with a quarter, half and twice of it; of each the schedule of least error among
    those whose answers leave the doubt that is asked for. ``options``: hours, epsilon, people, seed, as for
    `dphmm.choose.plan`.

    Raises InvalidInput as `dphmm.choose.plan`, and Refused where every policy is refused.

    Examples
    --------
    >>> import dphmm
    >>> space = dphmm.StateSpace([0, 1, 2, 3])
    >>> moves = [[.8, .2, 0, 0], [.2, .6, .2, 0], [0, .2, .6, .2], [0, 0, .2, .8]]
    >>> model = dphmm.MarkovModel([0.25] * 4, moves, space=space)
    >>> promise, targets = dphmm.SequencePromise(4, per=8), Targets(doubt=4)
    >>> made = Search(targets, tuple(tries(list(candidates(model, space)), promise, targets, people=5)))
    >>> made.best.policy, made.best.total
    ('radius 2', Fraction(1, 1))
    """
    refusal: Refused | None = None
    count = 0
    for done, setting in enumerate(settings):
        try:
            world = _world(setting, promise, choices, options)
            for total in world.totals(promise.exact):
                yield _best(world, setting, total, targets)
                count += 1
        except Refused as error:
            refusal = error
        if progress is not None:
            progress(done + 1, len(settings))
    if refusal is not None and not count:
        raise refusal


def forecast(
    settings: Sequence[Candidate], promise: SequencePromise, choices: PlanChoices | None = None, **options: Any
) -> float:
    """About how many seconds a search takes, by its first setting. Raises as `tries`."""
    world = _world(settings[0], promise, choices, options)
    return len(settings) * world.forecast(world.totals(promise.exact))


def _world(
    setting: Candidate, promise: SequencePromise, choices: PlanChoices | None, options: Mapping[str, Any]
) -> World:
    public = setting.model, setting.policy, setting.space, promise
    return World(*public, choices=choices, **{"people": PEOPLE, **options})


def _best(world: World, setting: Candidate, total: Fraction, targets: Targets) -> Tried:
    """The best schedule of a total for some targets, and what is found of who stays under it."""
    _, ladder = world.choose(total)
    doubted = [row for row in ladder if targets.doubted(row.epsilon)] or list(ladder)
    row = min(doubted, key=lambda row: (len(not_advised(row.epsilon, row.smoothed, world.known)), row.smoothed))
    schedule = world.candidate(replace(world.promise, total=total), row.releases, row.epsilon)
    stays = world.stays(schedule, AFTER[-1:]).told
    return Tried(
        policy=setting.name,
        distance=setting.distance,
        cell=setting.cell,
        total=total,
        releases=row.releases,
        epsilon=row.epsilon,
        error=row.smoothed,
        at_most=row.smoothed + CHANCE * row.deviation,
        stay=stays[-1][1] if stays else None,
        not_advised=not_advised(row.epsilon, row.smoothed, world.known),
    )


def _coarser(model: MarkovModel, space: Grid, times: int) -> MarkovModel:
    """The model on cells ``times`` as wide.

    States are put together weighted by their occupancy. A chain seen in larger cells is no chain, so this model is
    an approximation of it: for looking at errors, and for nothing that is published.
    """
    from scipy import sparse

    whole = Grid(space.west, space.south, space.east, space.north, space.cell * times)
    column, row = (space.unmerged.lattice // times).T
    cell = np.minimum(row, whole.rows - 1) * whole.columns + np.minimum(column, whole.columns - 1)
    occupied, number = np.unique(cell, return_inverse=True)
    part = whole.subset(occupied)
    occupancy = model.occupancy_weights
    # A cell where nobody was still moves somewhere.
    weights = np.ones(model.n_states) if occupancy is None else occupancy + 1e-9
    members = sparse.csr_array((np.ones(len(number)), (np.arange(len(number)), number)), (len(number), len(occupied)))
    share = np.bincount(number, weights=weights)
    weighed = members.T @ sparse.diags_array(weights)
    moves = [weighed @ each @ members for each in model.matrices]
    matrices = [sparse.csr_array(sparse.diags_array(1 / share) @ each) for each in moves]
    jump = model.jump
    return MarkovModel(
        np.bincount(number, weights=model.initial, minlength=len(occupied)),
        matrices[0] if model.slots is None else matrices,
        slots=model.slots,
        space=part,
        provenance=dict(model.provenance),
        start=model.start,
        step=model.step,
        jump=None if jump is None else Jump.of(jump.rate, len(occupied), np.bincount(number, weights=jump.into)),
    )
