"""The constraint of a step: the states that the public history leaves possible, and those that a plan is built on.

Two sets, never one: the support (states that are not excluded) and the plan set (the support itself, or a
δ-set of the prior), with the surrogate map from the one to the other. All of it is public; nothing here ever
sees a true state.

The surrogate map takes every state to its nearest plan state, exactly (docs/theory.md 6).

Proofs: docs/proofs/delta-sets.md, docs/proofs/promise.md (surrogates).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import exact_number, state_mask
from dphmm.errors import InvalidInput
from dphmm.policy._points import LatticeDistance
from dphmm.types import BoolArray, FloatArray, IntArray, States

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace

#: Masses and probabilities this near are equal: .4 + .3 + .2 < .9 in floats, and the paper means equality.
MASS_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Constraint:
    """Support and plan set, bool (N,), and the surrogate map, int64 (N,), of one step; immutable.

    ``surrogate`` is the identity on the plan set, maps the rest of the support into it, and may be -1 outside
    the support. It keeps what policies computed for it, so make one per step and pass it around.

    Raises InvalidInput if the three do not fit together.
    """

    support: BoolArray
    plan: BoolArray
    surrogate: IntArray
    #: The numbers of the plan states, ascending.
    plan_states: IntArray = field(init=False)
    #: Whether some possible state is released as another one.
    contracted: bool = field(init=False)
    #: What policies have found out about it, by policy and question.
    answers: dict[tuple[Any, str], Any] = field(init=False)

    def __post_init__(self) -> None:
        for name, dtype in (("support", np.bool_), ("plan", np.bool_), ("surrogate", np.int64)):
            entries = np.asarray(getattr(self, name))
            if entries.ndim != 1 or entries.dtype != dtype or len(entries) != len(self.support):
                got = f"an array of shape {entries.shape} and type {entries.dtype}"
                raise InvalidInput(name, got, f"({len(self.support)},) of type {np.dtype(dtype)}")
            self._keep(name, entries.copy())
        self._number_states()
        self._check_surrogate()

    def _keep(self, name: str, array: BoolArray | IntArray) -> None:
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def _number_states(self) -> None:
        states, contracted, impossible = _kernels.policy.planned(self.support, self.plan)
        if impossible >= 0:
            raise InvalidInput("plan", f"state {impossible}, which is outside the support", "a subset of the support")
        self._keep("plan_states", states)
        object.__setattr__(self, "contracted", contracted)
        object.__setattr__(self, "answers", {})

    def _check_surrogate(self) -> None:
        wrong = _kernels.policy.misplaced(self.support, self.plan, self.surrogate)
        if wrong == "missing":
            raise InvalidInput("surrogate", "a missing or unknown state", "a plan state for every supported state")
        if wrong == "outside":
            raise InvalidInput("surrogate", "a state outside the plan set", "plan states only")
        if wrong == "moved":
            raise InvalidInput("surrogate", "another state for a plan state", "the identity on the plan set")

    @classmethod
    def of(cls, states: States | Constraint, n: int) -> Constraint:
        """A plan set that is the whole support: a mask (n,), state numbers, None for all; a Constraint is kept.

        Raises InvalidInput for another number of states.
        """
        if isinstance(states, Constraint):
            if states.n_states != n:
                raise InvalidInput("constraint", f"one on {states.n_states} states", f"one on {n} states")
            return states
        mask = state_mask(states, n)
        return cls(mask, mask, np.where(mask, np.arange(n, dtype=np.int64), -1))

    @classmethod
    def surrogated(
        cls, support: States, plan: States, space: StateSpace, hops: Callable[[], IntArray] | None = None
    ) -> Constraint:
        """A plan set inside the support, and each state's nearest plan state (docs/theory.md 6; errata 21).

        Nearest in answer units, decided exactly on the lattice, ties to the lowest number; defined for all N
        states, those outside the support too. ``hops`` gives the distances (N, N) where answers are names and have
        none: numbers of edges. Raises InvalidInput for an empty plan set or one not inside the support.
        """
        n = space.n_states
        within = state_mask(support, n, "support")
        chosen = state_mask(plan, n, "plan")
        # What nobody else has is not copied, and nearest states fit as they are.
        made = cls.__new__(cls)
        made._keep("support", within)
        made._keep("plan", chosen)
        made._number_states()
        if len(made.plan_states) == 0:
            raise InvalidInput("plan", "no states", "at least one state")
        everyone = len(made.plan_states) == n
        if everyone:
            nearest = np.arange(n, dtype=np.int64)
        elif hops is not None:
            nearest = made.plan_states[np.argmin(hops()[:, made.plan_states], axis=1)]
        else:
            nearest = surrogates_of(space).nearest(made.plan_states)
        made._keep("surrogate", nearest)
        return made

    @property
    def n_states(self) -> int:
        """N, the number of states there are."""
        return len(self.support)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the two sets and the map."""
        digest = hashlib.sha256(f"constraint {self.n_states}\n".encode())
        digest.update(np.packbits(self.support).tobytes())
        digest.update(np.packbits(self.plan).tobytes())
        digest.update(self.surrogate.astype("<i8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"Constraint({self.plan.sum()} plan states in {self.support.sum()} of {self.n_states})"


_SURROGATES: WeakKeyDictionary[StateSpace, Surrogates] = WeakKeyDictionary()


def surrogates_of(space: StateSpace) -> Surrogates:
    """The surrogates of a space's answers, made once."""
    surrogates = _SURROGATES.get(space)
    if surrogates is None:
        surrogates = _SURROGATES[space] = Surrogates.of(space.lattice, space.frame.exact_pitch)
    return surrogates


@dataclass(frozen=True)
class Support:
    """Plan on every state that the public history does not exclude."""

    def __str__(self) -> str:
        return "support"


@dataclass(frozen=True)
class DeltaSet:
    """Plan on the fewest states that hold 1 - δ of the prior; ``delta`` in [0, 1), 0 meaning the support."""

    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", float(_exact_delta(self.delta)))

    @cached_property
    def exact(self) -> Fraction:
        """δ as the decimal that it prints as."""
        return _exact_delta(self.delta)

    def __str__(self) -> str:
        return f"delta={self.delta!r}"


def parse_constraint(value: object) -> Support | DeltaSet:
    """The constraint that ``"support"``, ``"delta=0.01"``, a Support or a DeltaSet means; else InvalidInput."""
    if isinstance(value, (Support, DeltaSet)):
        return value
    if isinstance(value, str):
        name, separator, number = value.partition("=")
        if value == "support":
            return Support()
        if separator and name.strip() == "delta":
            return DeltaSet(number.strip())  # type: ignore[arg-type]
    raise InvalidInput("constraint", value, '"support", "delta=0.01" or a DeltaSet')


def delta_states(prior: ArrayLike, support: States, delta: Any) -> BoolArray:
    """The δ-set: the fewest states of the support with prior mass >= 1 - δ, as a mask (N,).

    ``prior`` (N,) probabilities, taken relative to their sum over the support; states with equal probability
    (within a factor of 1e-12) enter by lowest number and the mass is compared with tolerance 1e-12 (errata
    21, docs/theory.md (g)). ``delta`` = 0 gives the support. Raises InvalidInput for δ outside [0, 1) or a prior that
    is no distribution.
    """
    probability = np.asarray(prior, dtype=np.float64)
    if probability.ndim != 1:
        raise InvalidInput("prior", f"an array of shape {probability.shape}", "one probability per state")
    within = state_mask(support, len(probability), "support")
    exact = _exact_delta(delta)
    total, count = _kernels.policy.total_mass(probability, within)
    # Written so that NaN is refused too.
    if not 0.0 < total < math.inf:
        raise InvalidInput("prior", "no distribution on the support", "finite probabilities, not all 0")
    if exact == 0:
        return within
    return _kernels.policy.heaviest(
        probability, within, *_threshold(probability, within, total, count, exact), MASS_TOLERANCE
    )


def _threshold(
    probability: FloatArray, within: BoolArray, total: float, possible: int, delta: Fraction
) -> tuple[float, int]:
    """The smallest probability of the δ-set and its number of states."""
    share = (delta.denominator - delta.numerator) / delta.denominator
    enough = (share - MASS_TOLERANCE) * total
    # Masses below the average of δ add up to less than δ: the set is among the others.
    large = float(delta) * total / possible * (1 - 1e-9)
    # Sums drift by less than one rounding per term; where that could matter, exactly rounded ones decide.
    drift = 2.0**-51 * possible * total
    least, count = _kernels.policy.least_of_fewest(probability, within, large, enough, drift)
    if count == 0:
        descending = np.sort(probability[within])[::-1]
        guess = int(np.cumsum(descending).searchsorted(enough - drift)) + 1
        count = _exact_count(descending, share, guess)
        least = float(descending[count - 1])
    return least, count


def _exact_count(descending: FloatArray, share: float, guess: int) -> int:
    """The number of largest masses that hold the share, from exactly rounded sums."""
    enough = (share - MASS_TOLERANCE) * math.fsum(descending)
    count = min(guess, len(descending))
    while count > 1 and math.fsum(descending[: count - 1]) >= enough:
        count -= 1
    while count < len(descending) and math.fsum(descending[:count]) < enough:
        count += 1
    return count


def _exact_delta(value: object) -> Fraction:
    delta = exact_number(value, "delta")
    if not 0 <= delta.numerator < delta.denominator:
        raise InvalidInput("delta", value, "a number from 0 to below 1")
    return delta


#: Up to this many comparisons a compiled sweep beats building a tree.
SWEEP = 2**26
#: Planar answers get a table of the box around them, up to this many lattice points per state, and so many more.
BOX_PER_STATE = 16
BOX = 2**16
_SHORTLIST = 8
_CHUNK = 2**16


@dataclass(frozen=True, eq=False)
class Surrogates:
    """Finds surrogates: of every state the nearest plan state, by lattice answers (N, d).

    ``centred`` are the answers moved to the origin, ``sides`` (d,) the size of the box around them.
    """

    centred: IntArray
    metric: LatticeDistance
    sides: tuple[int, ...]

    @classmethod
    def of(cls, lattice: IntArray, pitch: tuple[Fraction, ...]) -> Surrogates:
        """The surrogates of answers whose steps have these lengths."""
        low, high = _kernels.points.bounds(lattice)
        return cls(lattice - low, LatticeDistance.of(pitch), tuple(int(s) + 1 for s in high - low))

    def nearest(self, plan_states: IntArray) -> IntArray:
        """The plan state nearest to each state (N,) in answer units; itself if planned.

        Ties go to the lowest number.
        """
        if self.places is None:
            return _of_others(self.centred, self.metric, plan_states)
        return _kernels.points.nearest_in_columns(*self.places, plan_states, *self.metric.weights, *self.sides)

    @cached_property
    def places(self) -> tuple[IntArray, bool] | None:
        """Each state's place (N,) in the box around planar answers, and True if that is its number.

        None where a table of the box is large, or 64 bits may not hold its distances.
        """
        sides = self.sides
        small = math.prod(sides) <= BOX_PER_STATE * len(self.centred) + BOX
        if len(sides) != 2 or not small or self.metric.squared(sides) * max(sides) >= 2**60:
            return None
        places = self.centred[:, 1] * sides[0] + self.centred[:, 0]
        return places, np.array_equal(places, np.arange(math.prod(sides)))


def _of_others(centred: IntArray, metric: LatticeDistance, states: IntArray) -> IntArray:
    # Of planned states with one answer only the lowest-numbered can win.
    points, first = np.unique(centred[states], axis=0, return_index=True)
    out = np.arange(len(centred), dtype=np.int64)
    others = np.delete(out, states)
    if len(others) == 0:
        return out
    fits = metric.fits(tuple(int(s) for s in centred.max(axis=0)))
    if fits and len(others) * len(points) <= SWEEP:
        out[others] = _sweep(centred[others], points, states[first], metric)
    else:
        out[others] = _by_tree(centred[others], points, states[first], metric)
    return out


def _sweep(queries: IntArray, points: IntArray, states: IntArray, metric: LatticeDistance) -> IntArray:
    weights = np.array(metric.weights, dtype=np.int64)
    axis = int(np.argmax(np.ptp(points, axis=0) * weights.astype(np.float64)))
    order = np.argsort(points[:, axis], kind="stable")
    return _kernels.points.nearest_sweep(queries, points[order], states[order], weights, axis)


def _by_tree(queries: IntArray, points: IntArray, states: IntArray, metric: LatticeDistance) -> IntArray:
    from scipy.spatial import KDTree

    scale = np.array([float(w) for w in metric.weights])
    tree = KDTree(points * scale)
    # Coordinates are rounded relative to the whole span, distances only to themselves.
    slack = float(max((np.abs(points).max(axis=0) * scale).max(), (np.abs(queries).max(axis=0) * scale).max()))
    out = np.empty(len(queries), dtype=np.int64)
    k = min(_SHORTLIST, len(points))
    for start in range(0, len(queries), _CHUNK):
        asked = queries[start : start + _CHUNK]
        distance, near = tree.query(asked * scale, k=np.arange(1, k + 1))
        reach = distance[:, :1] * (1 + 1e-9) + slack * 2.0**-48
        contenders = distance <= reach
        winner = states[near[:, 0]]
        several = np.flatnonzero(contenders.sum(axis=1) > 1)
        winner[several] = _closest(asked[several], points, states, near[several], contenders[several], metric)
        # More may tie than were asked for.
        for row in np.flatnonzero(contenders.all(axis=1)) if k < len(points) else ():
            ball = np.array([tree.query_ball_point(asked[row] * scale, reach[row, 0])])
            winner[row] = _closest(asked[row][None], points, states, ball, np.ones_like(ball, bool), metric)[0]
        out[start : start + _CHUNK] = winner
    return out


def _closest(
    queries: IntArray,
    points: IntArray,
    states: IntArray,
    near: IntArray,
    contenders: BoolArray,
    metric: LatticeDistance,
) -> IntArray:
    """The contender of least exact distance for each query, then of least state number."""
    steps = points[near] - queries[:, None]
    square = metric.squares(steps)
    least = np.where(contenders, square, metric.squared(np.abs(steps).max(axis=(0, 1), initial=0))).min(axis=1)
    winners = contenders & (square == least[:, None])
    closest: IntArray = np.where(winners, states[near], states.max()).min(axis=1)
    return closest
