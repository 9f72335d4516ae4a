"""Invented people who move as a public model says, and what the answers of a schedule about them would tell.

Many people are released and followed side by side: their beliefs are the columns of one matrix. Nothing of it is about
anybody: the noise is replayable, nothing is stored, and nothing but model, policy, space and options is looked at.

Source: docs/proofs/schedules.md (which steps are asked); the filter and the smoother are those of a chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import bdtr

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.accounting.promise import Schedule
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import DeltaSet, delta_states
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.answer import answer_under
from dphmm.session.plan import StepPlan
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting
from dphmm.session.smoothing import likelihood_rows
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.zones import Zones
from dphmm.types import BoolArray, FloatArray, IntArray

#: Beliefs of so many numbers together are kept between the two passes.
_KEPT = 2**24
#: A matrix with a larger share of moves than this, of at most so many states, is multiplied faster as a full one.
_FULL, _MOST_FULL = 0.2, 4096
#: A matrix is multiplied in blocks of four rows if these have at most so many times its entries.
_FILLED = 2
#: Moves are summed over how often somebody moves where everybody stays with this chance at least; who moves more often
#: than all but so few is left out.
_MOSTLY, _SO_OFTEN = 0.5, 1e-3
#: A belief that moves no spread by more than this share in so many steps has settled.
_SETTLED, _LOOKED = 1e-7, 8
#: Smallest likelihood beside the largest: a smaller one changes no printed error.
RAREST = 1e-280
#: The iteration for a guess ends after so many rounds, or where the mean distance changes by so little for each metre.
_ROUNDS, _FLAT = 60, 1e-2
#: States that are so rare beside the likeliest one move no guess, if they have so small a share of it together.
_RARE, _UNSEEN = 1e-4, 2e-3
#: Places that errors are averaged over, all states together; one of each state where there are more.
PLACES = 10_000
#: A guess without a file stands for laws so near (total variation) to its own; so many of the last guesses are kept, of
#: so many numbers in all. A law that no step moves by more stays.
_NEAR, _MOST_GUESSES, _KEPT_NUMBERS, _STILL = 0.002, 512, 4 * 10**6, 1e-14
#: Cells of at most so many states have a place in each quarter at least.
_QUARTERED = 4000
#: Places in each zone; of more zones than these fewer.
_IN_ZONE, _MANY, _IN_MANY_ZONES = 64, 1000, 16
#: How far somebody anywhere in a square is from its middle on average, over its side; in a hexagon, over its radius.
_IN_SQUARE, _IN_HEXAGON = (math.sqrt(2) + math.asinh(1)) / 6, 1 / 3 + math.log(3) / 4


class Moves:
    """The moves of a model for the columns of matrices (N, n): beliefs ahead, likelihoods back.

    Slots that go by a clock are those of who begins on a Monday, unless the model is counted from an origin. That holds
    for all that is simulated here.

    ``often``: several steps at once are a sum over the number of moves in them, if people mostly stay. The one in
    1,000 who moves most often is left out of it.
    """

    def __init__(self, model: MarkovModel, often: bool = False) -> None:
        model = model.counted_from()
        self._model, matrix, jump = model, model.matrix_at(1), model.jump
        many = matrix.nnz > _FULL * model.n_states**2 and model.n_states <= _MOST_FULL
        self._stays = 1.0 if jump is None else jump.stays
        # Of many moves a product of full matrices takes half the time.
        self._full = self._stays * matrix.toarray() if many and model.time_homogeneous else None
        self._often = often and model.time_homogeneous and self._full is None

    def ahead(self, beliefs: FloatArray, t: int) -> FloatArray:
        """Beliefs about t from those about t - 1."""
        jump, full = self._model.jump, None if self._full is None else self._full.T
        gains = beliefs[:0] if jump is None else np.outer(jump.share, beliefs.sum(axis=0))
        return _moved_by(self._model.predecessors_at(t), full, self._fours[0], 1.0, gains, beliefs)

    def back(self, likelihoods: FloatArray, t: int) -> FloatArray:
        """The likelihood of the observations from t on, for each state at t - 1."""
        jump = self._model.jump
        gains = likelihoods[:0] if jump is None else (jump.share @ likelihoods)[np.newaxis]
        return _moved_by(self._model.matrix_at(t), self._full, self._fours[1], self._stays, gains, likelihoods)

    def each_ahead(self, beliefs: FloatArray, t: int, steps: Sequence[int]) -> Iterator[FloatArray]:
        """Beliefs about each of some ascending steps, from those about step t."""
        if self._stay and steps[-1] > t:
            # Nobody has answered yet: one belief is that of all.
            alike = bool((beliefs == beliefs[:, :1]).all())
            first = beliefs[:, :1] if alike else beliefs
            sums = _sums(first, np.asarray(steps) - t, self._stay, lambda rows: self.ahead(rows, t + 1))
            yield from np.repeat(sums, beliefs.shape[1], axis=2) if alike else sums
            return
        for step in steps:
            while t < step:
                t += 1
                beliefs = self.ahead(beliefs, t)
            yield beliefs

    def each_back(self, likelihoods: FloatArray, t: int, steps: Sequence[int]) -> Iterator[FloatArray]:
        """The likelihood of the observations from t on, for each state at some descending steps; the largest is 1."""
        # Before anything is seen everything is as likely.
        if self._stay and not (likelihoods == 1).all():
            every = _sums(likelihoods, t - np.asarray(steps), self._stay, lambda columns: self.back(columns, t))
            yield from (sums / sums.max(axis=0) for sums in every)
            return
        for step in steps:
            while t > step and not self._stay:
                likelihoods = self.back(likelihoods, t)
                likelihoods /= likelihoods.max(axis=0)
                t -= 1
            yield likelihoods

    @cached_property
    def _fours(self) -> tuple[_kernels.smoothing.Fours | None, _kernels.smoothing.Fours | None]:
        """The matrices that move ahead and back, in blocks of four rows where that is faster."""
        if not self._often:
            return None, None
        return _in_fours(self._model.predecessors_at(2)), _in_fours(self._model.matrix_at(2))

    @cached_property
    def _stay(self) -> float:
        """The chance with which everybody stays at a step, wherever they are; 0 where steps are not summed."""
        if not self._often:
            return 0.0
        stay = self._stays * float(self._model.matrix_at(1).diagonal().min())
        return stay if stay >= _MOSTLY else 0.0


def _sums(columns: FloatArray, steps: IntArray, stay: float, moved: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Columns (N, n) after each of some ascending numbers of steps (k,): sums (k, N, n) over how often one moves.

    ``moved``: columns one step later, by which everybody has stayed with a chance ``stay`` or moved.
    """
    most = int(steps[-1])
    # The chances that somebody moves at most 0, 1, ... times in so many steps.
    at_most = bdtr(np.arange(most + 1), steps[:, None], 1 - stay)
    terms = 1 + int(np.argmax(at_most[-1] >= 1 - _SO_OFTEN))
    powers = np.empty((terms, *columns.shape))
    powers[0] = columns
    for number in range(1, terms):
        before = powers[number - 1]
        # Below 0 is rounding.
        powers[number] = np.maximum(moved(before) - stay * before, 0.0) / (1 - stay)
    chances = np.diff(np.minimum(np.nan_to_num(at_most[:, :terms], nan=1.0), 1.0), axis=1, prepend=0.0)
    return np.tensordot(chances / chances.sum(axis=1, keepdims=True), powers, 1)


def _moved_by(
    matrix: Any,
    full: FloatArray | None,
    fours: _kernels.smoothing.Fours | None,
    stays: float,
    gains: FloatArray,
    rows: FloatArray,
) -> FloatArray:
    """Columns of rows (N, n) times a sparse matrix and ``stays``, or a ``full`` one, plus gains if there are any.

    ``fours``: the same sparse matrix in blocks, where that is faster for several columns.
    """
    if full is not None:
        return np.asarray(full @ rows + gains if len(gains) else full @ rows)
    out, n = np.empty(rows.shape), rows.shape[1]
    if fours is not None and n > 1:
        for first in range(0, n, 16):
            part, moved = np.zeros((len(rows), 16)), np.empty((len(rows), 16))
            part[:, : n - first] = rows[:, first : first + 16]
            _kernels.smoothing.times_fours(fours, part, moved)
            out[:, first : first + 16] = moved[:, : n - first]
        return out * stays + gains if len(gains) else out
    chain = _kernels.smoothing.JumpChain(matrix.indptr, matrix.indices, matrix.data, np.full(n, stays), gains, -1.0)
    _kernels.smoothing.move(chain, gains, np.ascontiguousarray(rows), out)
    return out


def _in_fours(matrix: Any) -> _kernels.smoothing.Fours | None:
    """A sparse matrix in blocks of four rows; None if rows side by side have few columns in common."""
    states = len(matrix.indptr) - 1
    ends = np.pad(matrix.indptr, (0, -states % 4), mode="edge")
    rows = sparse.csr_array((matrix.data, matrix.indices, ends), shape=(len(ends) - 1, states))
    blocks = rows.tobsr((4, 1))
    # Empty blocks after those of each four rows: the number of all is a multiple of 4.
    counts = np.diff(blocks.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts + -counts % 4)])
    place = np.arange(len(blocks.indices)) + np.repeat(indptr[:-1] - blocks.indptr[:-1], counts)
    columns, entries = np.zeros(indptr[-1], dtype=np.uint64), np.zeros((indptr[-1], 4))
    columns[place], entries[place] = blocks.indices, blocks.data[..., 0]
    return _kernels.smoothing.Fours(indptr, columns, entries) if entries.size <= _FILLED * len(matrix.data) else None


def walks(
    model: MarkovModel,
    people: int,
    steps: int,
    generator: np.random.Generator,
    start: str | None = None,
    ahead: Mapping[int, FloatArray] | None = None,
    first: IntArray | None = None,
) -> IntArray:
    """States (people, steps) at t = 1, 2, ... of independent walks, begun as the model says, or as ``start`` does.

    For a model with secrets: the secrets of its walks. ``ahead`` is about its latent states, ``first`` about secrets.

    ``ahead`` (N,) of a step, 0 being the one before the first: the likelihood, by state, of the facts known from it on.
    The walks are then those of people of whom it is known, if it is there of every step up to the last known.
    ``first`` (people,): their first states, if not drawn.
    """
    known, model = {} if ahead is None else ahead, model.counted_from()
    # Sums of all rows take longer than the moves of some people: they are the same at every step of such a model.
    sums = _running(model.matrix_at(1).data) if model.time_homogeneous else None
    paths = np.empty((people, steps), dtype=np.int64)
    before = (start or model.start) == "before"
    law = model.initial if ahead is None else model.initial * known.get(0 if before else 1, 1.0)
    state = generator.choice(model.n_states, size=people, p=law / law.sum()) if first is None else first
    if first is not None and model.secrets is not None:
        # A latent state of each secret, as likely as the model begins there.
        order = np.argsort(model.secrets, kind="stable")
        masses, ends = _running(model.initial[order]), np.cumsum(np.bincount(model.secrets))
        low, high = masses[ends - np.bincount(model.secrets)][first], masses[ends][first]
        place = np.searchsorted(masses, low + generator.random(people) * (high - low), side="right") - 1
        state = order[np.minimum(place, ends[first] - 1)]
    for t in range(1, steps + 1):
        if t > 1 or before:
            chance = generator.random(people)
            moved = _moved if model.jump is None else _jumped
            state = moved(model, t, state, chance, known.get(t), sums)
        paths[:, t - 1] = state
    return paths if model.secrets is None else model.secrets[paths]


def _jumped(
    model: MarkovModel, t: int, state: IntArray, chance: FloatArray, ahead: FloatArray | None, sums: FloatArray | None
) -> IntArray:
    """The next states: chances below the rate of the jump say where to, all others which move."""
    jump = model.jump
    assert jump is not None
    rate, into = np.full(len(state), jump.rate), jump.into
    if ahead is not None:
        # By Bayes: each of the two moves, weighted by the likelihood of the known facts.
        into = jump.into * ahead
        jumping, moving = jump.rate * into.sum(), jump.stays * (model.matrix_at(t) @ ahead)[state]
        rate = jumping / (jumping + moving)
    running, jumps, following = np.cumsum(into), chance < rate, np.empty_like(state)
    places = np.searchsorted(running, chance[jumps] / rate[jumps] * running[-1], side="right")
    following[jumps] = np.minimum(places, len(running) - 1)
    rest = (chance[~jumps] - rate[~jumps]) / (1 - rate[~jumps])
    following[~jumps] = _moved(model, t, state[~jumps], rest, ahead, sums)
    return following


def _moved(
    model: MarkovModel, t: int, state: IntArray, chance: FloatArray, ahead: FloatArray | None, sums: FloatArray | None
) -> IntArray:
    """The next states: in each row the first entry at which the running sum passes its chance.

    ``sums``: running sums of all entries, where they are those of every step.
    """
    transition = model.matrix_at(t)
    if ahead is not None:
        running = _running(transition.data * ahead[transition.indices])
    else:
        running = _running(transition.data) if sums is None else sums
    first, end = transition.indptr[state], transition.indptr[state + 1]
    sought = running[first] + chance * (running[end] - running[first])
    entry = np.clip(np.searchsorted(running, sought, side="right") - 1, first, end - 1)
    return np.asarray(transition.indices[entry], dtype=np.int64)


def _running(data: FloatArray) -> FloatArray:
    """The sums of all entries before each (n + 1,)."""
    return np.concatenate([[0.0], np.cumsum(data)])


def places(space: StateSpace, states: IntArray, generator: np.random.Generator) -> FloatArray:
    """A place (..., d) of each state (...), in answer units: anywhere in its cell, its answer where it is no cell.

    Cells are those of a grid, H3 cells where the h3 package is there, or zones, which need the shapely package.
    """
    cells, answers = space.unmerged, space.own_answers[states]
    if isinstance(cells, Grid):
        # Cells at the edge of the box may reach beyond it, and nobody is there.
        low, sides = _parts_in_box(cells)
        return np.asarray(low[states] + generator.random((*states.shape, 2)) * sides[states])
    if isinstance(cells, H3) and cells.corners is not None:
        chance = generator.random((*states.shape, 3))
        shifts = [
            _within(cells.corners[state], u) for state, u in zip(states.ravel(), chance.reshape(-1, 3), strict=True)
        ]
        return np.asarray(answers + np.array(shifts).reshape(answers.shape))
    if isinstance(cells, Zones):
        return cells.draw(states.ravel(), generator).reshape(answers.shape)
    return np.asarray(answers)


def _parts_in_box(grid: Grid) -> tuple[FloatArray, FloatArray]:
    """The south-west corner (N, 2) of the part of each cell that lies in the box of a grid, and its sides (N, 2)."""
    degrees = np.array([(grid.east - grid.west) % 360.0 or 360.0, grid.north - grid.south])
    corner = degrees * [grid.projection.metres_east, grid.projection.metres_north]
    low = grid.own_answers - grid.cell / 2
    return low, np.minimum(low + grid.cell, corner) - low


def middles(space: StateSpace) -> FloatArray:
    """The middle (N, d) of each state, in answer units: of a cell of a grid that of its part in the box of the grid.

    For a zone: the place of least mean distance, which may be in none: for a ring it is inside.
    """
    cells = space.unmerged
    if isinstance(cells, Zones):
        return np.array([_nearest_to_all(there) for there in places_of_states(space)])
    if not isinstance(cells, Grid):
        return space.own_answers
    low, sides = _parts_in_box(cells)
    return np.asarray(low + sides / 2)


def places_of_states(space: StateSpace, most: int = PLACES) -> FloatArray:
    """Some places (N, k, d) of every state, in answer units, which stand for all in its cell; its answer if it is none.

    Those of a grid or of H3 lie alike in every cell, as far from the middle as people are on average. Those of zones
    are even in them.
    """
    n, cells = space.n_states, space.unmerged
    each = max(1, most // n) if isinstance(cells, MapSpace) else 1
    if isinstance(cells, H3) and cells.corners is not None:
        rings = np.array([ring[np.arange(6) * len(ring) // 6] for ring in cells.corners])
        return np.asarray(cells.own_answers[:, None] + _IN_HEXAGON * rings)
    if isinstance(cells, Zones):
        return cells.places(_IN_ZONE if n <= _MANY else _IN_MANY_ZONES)
    if not isinstance(cells, Grid):
        return np.asarray(space.own_answers[:, None], dtype=np.float64)
    parts = max(math.isqrt(each), 2 if n <= _QUARTERED else 1)
    if parts > 1:
        shift = np.stack(np.divmod(np.arange(parts**2), parts), axis=1) / parts + (1 / parts - 1) / 2
        shift = shift[np.newaxis] * _IN_SQUARE / np.linalg.norm(shift, axis=1).mean()
    else:
        # One place of each cell: in every direction as often.
        angle = np.random.default_rng(0).random((n, 1)) * 2 * math.pi
        shift = _IN_SQUARE * np.stack([np.cos(angle), np.sin(angle)], axis=2)
    low, sides = _parts_in_box(cells)
    return np.asarray(low[:, None] + (0.5 + shift) * sides[:, None])


def _nearest_to_all(places: FloatArray) -> FloatArray:
    """The place (d,) of least mean distance from some places (k, d)."""
    alike, points = np.ones((1, len(places))), np.ascontiguousarray(places)
    return np.asarray(_medians(alike, points, np.zeros(len(places)), _orders(points))[0][0])


def _orders(points: FloatArray) -> IntArray:
    """The points (N, d) in the order of each coordinate (d, N)."""
    return np.ascontiguousarray(np.argsort(points, axis=0, kind="stable").T)


def _medians(
    rows: FloatArray, points: FloatArray, widths: FloatArray, orders: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The places (n, d) of least mean distance (n,) from points (N, d) of widths (N,), under weights (n, N)."""
    # Of rows that may not be written to there would be a kernel of its own.
    rows, guesses, off = np.require(rows, requirements="W"), np.empty((len(rows), points.shape[1])), np.empty(len(rows))
    _kernels.beliefs.medians(rows, points, widths, orders, _RARE, _UNSEEN, _FLAT, _ROUNDS, guesses, off)
    return guesses, off


def _within(corners: FloatArray, chance: FloatArray) -> FloatArray:
    """A uniform point of a convex polygon of corners (k, 2): of one of the triangles from its first corner."""
    sides = corners[1:] - corners[0]
    areas = np.cumsum(np.abs(sides[:-1, 0] * sides[1:, 1] - sides[:-1, 1] * sides[1:, 0]))
    side = min(int(np.searchsorted(areas, chance[0] * areas[-1])), len(areas) - 1)
    a, b = chance[1:] if chance[1] + chance[2] <= 1 else 1 - chance[1:]
    return np.asarray(corners[0] + a * sides[side] + b * sides[side + 1])


class Guesses:
    """The guesses of least expected error: the place of least mean distance; for labels the likeliest.

    No other guess is nearer: the mean distance has one least value. A state that is a cell has its people anywhere in
    it, so a guess may lie between two cells.

    Examples
    --------
    >>> import dphmm
    >>> line, belief = dphmm.StateSpace([0, 1, 2, 20, 21]), np.array([[0.1], [0.4], [0.1], [0.2], [0.2]])
    >>> [found.tolist() for found in Guesses(line).of(belief)]
    [[[1.0]], [8.0]]

    Source: docs/proofs/schedules.md.
    """

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self.points = np.ascontiguousarray(middles(space), dtype=np.float64)
        self._orders = _orders(self.points)

    @cached_property
    def _widths(self) -> FloatArray:
        """The root mean square distance (N,) of each state's people from its middle, along one axis of a plane."""
        squares = ((places_of_states(self._space) - self.points[:, None]) ** 2).sum(axis=2)
        return np.asarray(np.sqrt(squares.mean(axis=1) / 2))

    def of(self, beliefs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The guesses (n, d) of beliefs (N, n) of any sums, and their mean distances (n,) from middles, as on a plane.

        ``points`` (N, d) are the middles of the states. For labels: the probability that the guess is wrong.
        """
        if self._space.has_labels:
            likeliest = beliefs.argmax(axis=0)
            return self.points[likeliest], 1.0 - beliefs.max(axis=0) / beliefs.sum(axis=0)
        return _medians(np.ascontiguousarray(beliefs.T), self.points, self._widths, self._orders)


class ModelGuesses:
    """The best guesses of somebody who knows how a model has people and reads no file.

    A guess is the place of least mean distance, of labels the likeliest. Errors depend on the model alone: they are
    means over states as the model has people in them, and over places in each state's cell.

    Source: docs/proofs/schedules.md.
    """

    def __init__(self, space: StateSpace) -> None:
        self._space, self._guesses = space, Guesses(space)

    def place(self, law: FloatArray) -> FloatArray:
        """The answer (d,) that is guessed of people at states of a law (N,)."""
        return np.asarray(self._guesses.of(law[:, None])[0][0])

    def off(self, law: FloatArray, place: FloatArray | None = None) -> float:
        """The mean error of that guess, or of another ``place`` (d,); for labels the error rate."""
        return float(self.costs(self.place(law) if place is None else place) @ law)

    def costs(self, guess: FloatArray) -> FloatArray:
        """The mean distance of a guess (d,) from people at each state (N,); for labels 1 where it is wrong."""
        if self._space.has_labels:
            return np.asarray(self._space.own_answers[:, 0] != guess[0], dtype=np.float64)
        return np.asarray(self._space.distances(guess, self._anywhere).mean(axis=1))

    @cached_property
    def _anywhere(self) -> FloatArray:
        """Some places (N, k, d) of every state."""
        return places_of_states(self._space)

    def at(self, model: MarkovModel, steps: IntArray, start: str | None = None) -> tuple[FloatArray, FloatArray]:
        """The guesses (n, d) of people at some steps (n,), and how far off each of these is on average (n,).

        Where somebody is hangs on the step: each step has the guess of a law that its own nearly is. ``start`` as of a
        release.
        """
        different, which = np.unique(steps, return_inverse=True)
        n = self._space.n_states
        room = min(len(different), _MOST_GUESSES, max(1, _KEPT_NUMBERS // n))
        laws, costs, guesses = np.zeros((room, n)), np.zeros((room, n)), list[FloatArray]()
        at, made = 0, 0
        guessed, off = list[FloatArray](), list[float]()
        for law in laws_of_steps(model, different, start):
            # The law of the step before is the nearest, as a rule.
            if not guesses or np.abs(laws[at] - law).sum() > 2 * _NEAR:
                apart = np.abs(laws[: len(guesses)] - law).sum(axis=1)
                at = int(np.argmin(apart)) if guesses else 0
                if not guesses or apart[at] > 2 * _NEAR:
                    at, made = made % room, made + 1
                    guesses[at : at + 1] = [self.place(law)]
                    laws[at], costs[at] = law, self.costs(guesses[at])
            guessed.append(guesses[at])
            off.append(float(costs[at] @ law))
        return np.array(guessed)[which.ravel()], np.array(off)[which.ravel()]


def laws_of_steps(model: MarkovModel, steps: IntArray, start: str | None = None) -> Iterator[FloatArray]:
    """The model's law of states, or secrets, (S,) at each of some different ascending steps, from 1."""
    law, moves, still, t = model.initial[:, None], Moves(model), False, 0
    for step in steps.tolist():
        while t < step and not still:
            t += 1
            if t > 1 or (start or model.start) == "before":
                before, law = law, moves.ahead(law, t)
                still = model.time_homogeneous and bool(np.abs(law - before).max() <= _STILL)
        yield model.summed(law[:, 0])


class AnswerLikelihoods(NamedTuple):
    """The people (k,) answered at one step, and the likelihood (S, k) of their answers for each secret."""

    who: IntArray
    likelihood: FloatArray


class Errors(NamedTuple):
    """Mean distances of a reader's guesses from people's places, over all people and steps, in answer units.

    Guesses are those of `Guesses`. For labels: the error rates.

    ``online``: of the guess of each step given the answers up to it. ``smoothed``: given all answers; NaN where
    it was not asked for. ``asked``: steps asked for each person. ``deviation``: the standard error of the last of these
    means, by which people were drawn and by the noise.
    """

    online: float
    smoothed: float
    asked: float
    deviation: float = 0.0


@dataclass(eq=False)
class SimulatedReleases:
    """People whose releases are simulated under one setting and schedule; ``paths`` (n, T) are their states.

    ``there`` (n, T, d) are their places, in answer units. ``weights`` (n,): for how many people each stands.
    ``looked_at`` (k,): the ascending steps whose guesses are looked at; all T where nothing is said.
    The schedule must be in steps, from the first of a block on.
    Plans follow from the model, or (delta-sets) from each person's belief.
    """

    setting: Setting
    schedule: Schedule
    paths: IntArray
    there: FloatArray
    moves: Moves
    seed: int
    weights: FloatArray
    guesses: Guesses
    looked_at: IntArray | None = None

    def __post_init__(self) -> None:
        steps = np.arange(1, self.paths.shape[1] + 1)
        # The invented people have their numbers for names: each has the times of one name.
        names = [str(number) for number in range(len(self.paths))] if self.schedule.seed else []
        staggered = [self.schedule.of(name).may_ask(steps) for name in names]
        #: (T,) of all people alike, or (n, T).
        self._named = np.array(staggered) if names else self.schedule.may_ask(steps)
        self._looked = steps if self.looked_at is None else self.looked_at
        self._plans = PlanSchedule(self.setting)
        self._points = self.setting.space.own_answers
        self._centred = self._points - self._points.mean(axis=0)

    def errors(self, who: IntArray | None = None) -> Errors:
        """Errors of the guesses about some people, or about all. Raises as the planner does."""
        people = np.arange(len(self.paths)) if who is None else who
        return self.of_people(people, side_by_side([self], people)[0])

    def of_people(self, who: IntArray, each: FloatArray) -> Errors:
        """The errors of all whom some people stand for, from those of `side_by_side` about these."""
        order = np.argsort(who)
        each, weights = each[order], self.weights[who[order]]
        online, smoothed, asked = (_mean(column, weights) for column in each.T)
        return Errors(online, smoothed, asked, _deviation(each[:, 1], weights))

    def _off(self, part: IntArray, seen: FloatArray) -> FloatArray:
        """The expected errors (n, T) of guesses (n, T, 1 + d): those expected from the beliefs, and the guesses.

        The belief gives their mean distance from the states, on a plane, or the probability of a wrong label: people
        move as the model says, so only the answers are left to chance. The part that place and ground add is measured.
        """
        off = seen[..., 0]
        if not self.setting.space.has_labels:
            at = np.ix_(part, self._looked - 1)
            paths, guesses = self.paths[at], seen[..., 1:]
            measured = self.setting.space.distances(guesses, self.there[at])
            off = off + measured - np.linalg.norm(guesses - self.guesses.points[paths], axis=-1)
        return np.asarray(off)

    def _answered(self, t: int, beliefs: FloatArray, states: IntArray, bits: ReplayBits) -> FloatArray:
        """The likelihoods (N, k) of answers drawn about ``states`` (k,), under the plans of beliefs (N, k)."""
        constraint = self.setting.options.constraint
        if not isinstance(constraint, DeltaSet):
            plan = self._plans.plan(self._plans.number(t))
            return likelihood_columns(plan, answer_under(plan, states, bits)[0])
        # The possible states follow from the model, since no answer excludes one.
        support, columns = self._plans.support(t), []
        for belief, state in zip(beliefs.T, states[:, None], strict=True):
            plan = self.setting.planner.plan(support, delta_states(belief, support, constraint.exact))
            columns.append(likelihood_columns(plan, answer_under(plan, state, bits)[0]))
        return np.concatenate(columns, axis=1)

    def _asked(self, t: int, part: IntArray, beliefs: FloatArray, released: IntArray) -> BoolArray:
        """True where a person of a ``part`` (n,) is asked at step t: `Schedule.asks` for all of them at once.

        ``released`` (T + 1, n): releases up to each step.
        """
        schedule, promise = self.schedule, self.schedule.promise
        if schedule.kind == "staggered":
            return np.asarray(self._named[part, t - 1])
        if schedule.kind == "planned" or not self._named[t - 1]:
            return np.full(beliefs.shape[1], self._named[t - 1])
        first, _ = promise.reach(t, t)
        left = int(promise.exact // schedule.exact) - released[t - 1] + released[first - 1]
        passed = 0 if promise.window is not None else int(np.searchsorted(schedule.at, t - first + 1))
        due = -(-(len(schedule.at) - passed) // np.maximum(left, 1))
        least = np.array(schedule.spreads)[np.minimum(due, len(schedule.spreads)) - 1]
        return np.asarray((left >= 1) & (self.spread(beliefs) >= least))

    def spread(self, beliefs: FloatArray) -> FloatArray:
        """Root of the mean squared distance (n,) of each belief (N, n) from its mean, in answer units.

        For labels: the probability that the likeliest one is wrong.
        """
        if self.setting.space.has_labels:
            return np.asarray(np.maximum(0.0, 1.0 - beliefs.max(axis=0)))
        means = beliefs.T @ self._centred
        squares = (self._centred**2).sum(axis=1) @ beliefs - (means**2).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def spreads(self, longest: int, who: IntArray) -> FloatArray:
        """The mean spread of some people 1, 2, ... steps after the release in the middle, until it has settled."""
        asked = np.flatnonzero(self._named) + 1
        middle = int(asked[len(asked) // 2])
        beliefs = next(after for t, after, _ in steps_side_by_side([self], who) if t == middle)
        spreads: list[float] = []
        while len(spreads) < longest:
            beliefs = self.moves.ahead(beliefs, middle + len(spreads) + 1)
            spreads.append(_mean(self.spread(self.setting.model.summed(beliefs)), self.weights[who]))
            if len(spreads) > _LOOKED and abs(spreads[-1] - spreads[-1 - _LOOKED]) <= _SETTLED * spreads[-1]:
                break
        return np.array(spreads)


def most_side_by_side(steps: int, states: int) -> int:
    """So many beliefs about some ``states`` are kept at each of some steps."""
    return max(1, _KEPT // (steps * states))


def side_by_side(releases: Sequence[SimulatedReleases], who: IntArray) -> FloatArray:
    """The mean errors of people's guesses, online and smoothed, and their numbers of answers (r, n, 3).

    The releases differ in setting and schedule alone. Beliefs about a person under each schedule are columns of one
    matrix: a move of many columns costs less for each.
    """
    first, many = releases[0], len(releases)
    steps = len(first._looked)
    each = most_side_by_side(steps, first.setting.model.n_states)
    errors = np.empty((many, len(who), 3))
    for begin in range(0, len(who), each):
        part = who[begin : begin + each]
        seen = np.empty((2, many * len(part), steps, 1 + first._points.shape[1]))
        asked = _estimate(releases, part, *seen)
        off = [first._off(np.tile(part, many), guesses).mean(axis=1) for guesses in seen]
        errors[:, begin : begin + each] = np.stack([*off, asked], axis=1).reshape(many, len(part), 3)
    return errors


def _estimate(
    releases: Sequence[SimulatedReleases], part: IntArray, online: FloatArray, smoothed: FloatArray
) -> IntArray:
    """Fill in the guesses (r n, k, 1 + d) at the steps looked at, given the answers so far, and given all.

    The first number of each is its expected error. Returns the number of answers (r n,).
    """
    first, columns = releases[0], len(online)
    model, moves, guesses = first.setting.model, first.moves, first.guesses
    places = {t: place for place, t in enumerate(first._looked.tolist())}
    pending: dict[int, FloatArray] = {}
    answered: list[tuple[int, AnswerLikelihoods]] = []
    asked = np.zeros(columns, dtype=np.int64)
    for t, beliefs, answers in steps_side_by_side(releases, part):
        if t in places:
            online[:, places[t], 1:], online[:, places[t], 0] = guesses.of(model.summed(beliefs))
            pending[t] = beliefs
        if len(answers.who):
            answered.append((t, answers))
            asked[answers.who] += 1
    ahead, before = np.ones((model.n_states, columns)), first.paths.shape[1]
    while pending:
        # Back to the last answer that is not counted yet: until there the likelihoods are those of later answers.
        last = answered[-1][0] if answered else 1
        stops = [*takewhile(last.__lt__, reversed(pending)), last]
        for t, later in zip(stops, moves.each_back(ahead, before, stops), strict=True):
            ahead, before = later, t
            if t in pending:
                belief = model.summed(pending.pop(t) * ahead)
                smoothed[:, places[t], 1:], smoothed[:, places[t], 0] = guesses.of(belief)
        if answered:
            _, answers = answered.pop()
            ahead[:, answers.who] *= model.lifted(answers.likelihood)
    return asked


def steps_side_by_side(
    releases: Sequence[SimulatedReleases], part: IntArray
) -> Iterator[tuple[int, FloatArray, AnswerLikelihoods]]:
    """Step by step the beliefs (N, r n) about some people given the answers so far, and the answers of the step.

    They are about the model's own states, likelihoods about secrets. Of steps that are not looked at those alone
    come at which somebody may be asked. Columns: the people of the first releases, then of the second ones.
    """
    first, n = releases[0], len(part)
    model, until, looked = first.setting.model, first.paths.shape[1], first._looked
    beliefs, nobody = np.repeat(model.initial[:, None], len(releases) * n, axis=1), np.zeros(0, dtype=np.int64)
    released = np.zeros((until + 1, len(releases) * n), dtype=np.int64)
    at, last = int(first.setting.options.start != "before"), 0
    named = np.any(
        [each._named if each._named.ndim == 1 else each._named[part].any(axis=0) for each in releases], axis=0
    )
    asking = (np.flatnonzero(named) + 1).tolist()
    for stop in asking if asking[-1:] == [until] else [*asking, until]:
        between = looked[(looked > last) & (looked < stop)].tolist()
        for t, moved in zip([*between, stop], first.moves.each_ahead(beliefs, at, [*between, stop]), strict=True):
            beliefs = moved
            if t < stop:
                yield t, beliefs, AnswerLikelihoods(nobody, beliefs[:, :0])
        released[last + 1 : stop + 1] = released[last]
        at = last = stop
        secrets, whose, likelihoods = model.summed(beliefs), [nobody], [beliefs[:, :0]]
        for begin, each in zip(range(0, len(releases) * n, n), releases, strict=True):
            columns = slice(begin, begin + n)
            who = np.flatnonzero(each._asked(stop, part, secrets[:, columns], released[:, columns]))
            if len(who):
                bits = ReplayBits(f"{each.seed} step {stop} person {part[0]}".encode())
                states = each.paths[part[who], stop - 1]
                likelihoods.append(each._answered(stop, secrets[:, begin + who], states, bits))
                whose.append(begin + who)
        who = np.concatenate(whose)
        released[stop, who] += 1
        likelihood = np.concatenate(likelihoods[1:] or likelihoods, axis=1)
        if len(who):
            posterior = beliefs[:, who] * model.lifted(likelihood)
            beliefs[:, who] = posterior / posterior.sum(axis=0)
        yield stop, beliefs, AnswerLikelihoods(who, likelihood)


def _mean(values: FloatArray, weights: FloatArray) -> float:
    """The mean of values (n,), each of which stands for so many."""
    # What is the same of everybody has no rounding.
    return float(values[0] + np.average(values - values[0], weights=weights))


def _deviation(values: FloatArray, weights: FloatArray) -> float:
    """The standard error of `_mean`. People who stand next to each other may have been drawn to be alike."""
    parts = weights * (values - _mean(values, weights)) / weights.sum()
    n = len(parts)
    return math.sqrt(n / (2 * max(1, n - 1))) * float(np.linalg.norm(np.diff(parts)))


def likelihood_columns(plan: StepPlan, z: IntArray) -> FloatArray:
    """The likelihoods of answers (k, d) for each state, in columns (N, k), relative to the likeliest state's."""
    # Many people get the same answers.
    rows = likelihood_rows(plan, z)
    return np.maximum(rows.relative.T[:, rows.which], RAREST)
