"""Public beliefs of several subjects moved side by side, one to a lane, each as far as floats serve it.

A move reads the whole matrix; side by side, one reading serves every lane. Lanes do not know of each other: each is at
a step, and under a law, of its own, and takes up the next subject when its own ends. Products and sums are those of
`dphmm._kernels.belief`, in its order, so that a belief comes out the same in whatever company.

Probabilities of possible states that are too small to trust are set to 0, and two numbers bound what that removes: the
true row is at least the row and at most (1 + relative)·row + absolute·inflow, state by state, up to a factor. A lane is
stopped before a step whose estimate the bound does not make certain.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dphmm._kernels.belief import expectation, land, likeliest, likelihood, total
from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray, IntArray

#: Eight sums of doubles fill the registers and a line of the cache.
LANES = 8
#: Fewer lanes than these are moved one by one.
_FEW = 3
#: The kind of a leg that is left to Python altogether, skips that tell too; of another one without a law it is -1.
ALONE = -2
#: Covers the roundings of one step in a bound, for fewer than 2**24 states.
_SLACK = 1.0 + 2.0**-26
#: The numbers of a bound: of the row itself, and of the inflow.
_RELATIVE = 0
_ABSOLUTE = 1


class Columns(NamedTuple):
    """The transition matrix as compressed columns, and how little may change in a step of a belief that has settled.

    ``share`` (N,) is that of a jump, (0,) where none is. ``inflow`` (N,) are the sums of the columns, those of the jump
    with them, and 1 where those are less.
    """

    indptr: Any
    indices: Any
    data: FloatArray
    share: FloatArray
    settled: float
    inflow: FloatArray


class Flushing(NamedTuple):
    """Probabilities below ``least`` become 0; an estimate is certain while at most ``limit`` of the mass may be lost.

    A state whose bound is below its probability over ``ratio`` counts as relative to it, so that only states of smaller
    probability can make the bound grow.
    """

    least: float
    ratio: float
    limit: float


class Laws(NamedTuple):
    """What each leg makes of answers; a leg's facets and table stand in one array each, from its first on.

    ``supports`` (legs, N); a leg of a kind below 0 has no law in floats.
    """

    first_facets: IntArray
    projected: FloatArray
    inverses: FloatArray
    shifts: FloatArray
    normals: FloatArray
    kinds: IntArray
    rates: FloatArray
    first_tables: IntArray
    tables: FloatArray
    supports: BoolArray


class Steps(NamedTuple):
    """Steps (n,) of subject after subject; ``skipped`` is 0 for a release of ``z`` (n, d); which skips ``tell``."""

    legs: IntArray
    skipped: IntArray
    z: FloatArray
    tells: BoolArray


class Subjects(NamedTuple):
    """Subject k has the steps ``begins[k]`` to ``begins[k + 1]``.

    Its belief before them is ``starts[start_of[k]]``, and the one after them goes to ``ends[end_of[k]]``, rows (N,)
    both, with bounds (2,). Below 0: it is stopped at its first step; nobody asks for its end.
    """

    begins: IntArray
    starts: FloatArray
    start_bounds: FloatArray
    start_of: IntArray
    ends: FloatArray
    end_bounds: FloatArray
    end_of: IntArray


class Found(NamedTuple):
    """Room for what a release tells, and a skip that does: (n, d) and (n,)."""

    estimates: FloatArray
    states: IntArray


class Lanes(NamedTuple):
    """Where each lane is: before step ``at`` of its ``subject``, whose steps end at ``end``.

    The belief there is ``rows[side[0], lane]``; the other rows are room. ``stopped`` lanes are at a step that floats do
    not serve. ``bounds`` (lanes, 2) are 0 while nothing was flushed. ``woven`` (N, lanes) and ``supports`` are what is
    to be moved. The subjects ``queue[0]`` to ``queue[1]`` come next.
    """

    subject: IntArray
    at: IntArray
    end: IntArray
    stopped: BoolArray
    rows: FloatArray
    side: IntArray
    bounds: FloatArray
    woven: FloatArray
    supports: BoolArray
    queue: IntArray

    def row(self, lane: int) -> FloatArray:
        """The belief (N,) of a lane."""
        row: FloatArray = self.rows[self.side[0], lane]
        return row


def empty_lanes(n_states: int, first: int, last: int) -> Lanes:
    """Lanes with nobody in them; the subjects from ``first`` on come next, without ``last``."""
    return Lanes(
        subject=np.zeros(LANES, np.int64),
        at=np.zeros(LANES, np.int64),
        end=np.zeros(LANES, np.int64),
        stopped=np.zeros(LANES, np.bool_),
        rows=np.ones((2, LANES, n_states)),
        side=np.zeros(1, np.int64),
        bounds=np.zeros((LANES, 2)),
        woven=np.empty((n_states, LANES)),
        supports=np.zeros((LANES, n_states), np.bool_),
        queue=np.array([first, last]),
    )


@kernel
def follow(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    answers: FloatArray,
    steps: Steps,
    subjects: Subjects,
    lanes: Lanes,
    found: Found,
) -> None:
    """Move lanes until one of them is stopped, or no subject is left. ``answers`` (d, N)."""
    moving = np.empty(LANES, np.bool_)
    while _taken_up(lanes, subjects):
        before, after = lanes.rows[lanes.side[0]], lanes.rows[1 - lanes.side[0]]
        for lane in range(LANES):
            moving[lane] = lanes.at[lane] < lanes.end[lane] and not lanes.stopped[lane]
            if moving[lane]:
                moving[lane] = _told(
                    columns, flushing, laws, answers, steps, lanes, lane, before[lane], after[lane], found
                )
                lanes.stopped[lane] = not moving[lane]
        _move(columns, flushing, steps, lanes, moving, after)
        for lane in range(LANES):
            if moving[lane]:
                lanes.at[lane] += 1
                place = subjects.end_of[lanes.subject[lane]]
                if lanes.at[lane] == lanes.end[lane] and place >= 0:
                    subjects.ends[place] = after[lane]
                    subjects.end_bounds[place] = lanes.bounds[lane]
            elif lanes.stopped[lane]:
                after[lane] = before[lane]
        lanes.side[0] = 1 - lanes.side[0]
        if np.any(lanes.stopped):
            return


@kernel
def _taken_up(lanes: Lanes, subjects: Subjects) -> bool:
    """Give every free lane the next subject; whether any lane has one."""
    busy = False
    for lane in range(LANES):
        if lanes.at[lane] == lanes.end[lane] and lanes.queue[0] < lanes.queue[1]:
            subject = lanes.queue[0]
            lanes.queue[0] += 1
            lanes.subject[lane] = subject
            lanes.at[lane], lanes.end[lane] = subjects.begins[subject], subjects.begins[subject + 1]
            place = subjects.start_of[subject]
            lanes.stopped[lane] = place < 0
            if place >= 0:
                lanes.rows[lanes.side[0], lane] = subjects.starts[place]
                lanes.bounds[lane] = subjects.start_bounds[place]
        busy |= lanes.at[lane] < lanes.end[lane]
    return busy


@kernel
def _told(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    answers: FloatArray,
    steps: Steps,
    lanes: Lanes,
    lane: int,
    prior: FloatArray,
    posterior: FloatArray,
    found: Found,
) -> bool:
    """What a lane's step tells of its belief, which is then to be moved; False where floats do not serve."""
    at, support, bound = lanes.at[lane], lanes.supports[lane], lanes.bounds[lane]
    leg, skipped = steps.legs[at], steps.skipped[at]
    support[:] = laws.supports[leg]
    relative, absolute = bound[_RELATIVE], bound[_ABSOLUTE]
    if skipped > 0:
        if steps.tells[at] and laws.kinds[leg] == ALONE:
            # What is to be told is not a mean.
            return False
        posterior[:] = prior
        served = _passed(columns, flushing, posterior, support, skipped - 1, bound)
        if served and bound[_ABSOLUTE] > 0.0:
            _unanswered(columns, flushing, posterior, support, bound)
        if steps.tells[at]:
            served = served and bound[_RELATIVE] + bound[_ABSOLUTE] * len(prior) <= flushing.limit
    else:
        served = laws.kinds[leg] >= 0
        if served:
            served = _conditioned(columns, flushing, laws, leg, steps.z[at], prior, support, bound, posterior)
    if served and (skipped == 0 or steps.tells[at]):
        found.states[at] = likeliest(posterior)
        for j in range(len(answers)):
            found.estimates[at, j] = expectation(posterior, answers[j])
    if not served:
        bound[_RELATIVE], bound[_ABSOLUTE] = relative, absolute
    return served


@kernel
def _conditioned(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    leg: int,
    z: FloatArray,
    prior: FloatArray,
    support: BoolArray,
    bound: FloatArray,
    posterior: FloatArray,
) -> bool:
    """Bayes' rule for an answer under a leg's law, as `likelihood` and `condition` have it; False if it is not certain.

    The bound that was on absolute·inflow is on ``absolute`` then.
    """
    a, b = laws.first_facets[leg], laws.first_facets[leg + 1]
    centre = np.zeros(b - a)
    for i in range(b - a):
        for j in range(len(z)):
            centre[i] += laws.normals[a + i, j] * z[j]
    table = laws.tables[laws.first_tables[leg] : laws.first_tables[leg + 1]]
    rows = (laws.projected[a:b], laws.inverses[a:b], laws.shifts[a:b])
    likelihood(*rows, centre, laws.kinds[leg], laws.rates[leg], table, posterior)
    return weigh(flushing, columns.inflow, prior, support, bound, posterior)


@kernel
def weigh(
    flushing: Flushing,
    inflow: FloatArray,
    prior: FloatArray,
    support: BoolArray,
    bound: FloatArray,
    posterior: FloatArray,
) -> bool:
    """Turn likelihoods (N,), in place, into a posterior and its bound; False if more may be lost than the limit."""
    flushed, grows = bound[_ABSOLUTE] > 0.0, 0.0
    if flushed:
        grows = _largest_inflow(prior, posterior, support, inflow, flushing.ratio * bound[_ABSOLUTE])
    if _multiplied(prior, support, posterior, flushing.least) > 0:
        flushed = True
        _flush(posterior, flushing.least)
    mass = total(posterior)
    if not mass > 0.0:
        return False
    scale = 1.0 / mass
    for s in range(len(posterior)):
        posterior[s] *= scale
    if flushed:
        _bound_grows(flushing, bound, grows)
        bound[_ABSOLUTE] *= scale
    return bool(bound[_RELATIVE] + bound[_ABSOLUTE] * len(prior) <= flushing.limit)


@kernel
def _largest_inflow(
    prior: FloatArray, weights: FloatArray, support: BoolArray, inflow: FloatArray, ratio: float
) -> float:
    """The largest weight·inflow of the possible states whose probability is below ratio·inflow."""
    largest = 0.0
    for s in range(len(prior)):
        if support[s] and prior[s] < ratio * inflow[s]:
            largest = max(largest, weights[s] * inflow[s])
    return largest


@kernel
def _bound_grows(flushing: Flushing, bound: FloatArray, grows: float) -> None:
    """A bound on inflow becomes one of every state, ``grows`` times it, and takes in what was flushed now."""
    if bound[_ABSOLUTE] > 0.0:
        bound[_RELATIVE] = (bound[_RELATIVE] + 1.0 / flushing.ratio) * _SLACK
    bound[_ABSOLUTE] = (bound[_ABSOLUTE] * grows + _newly(flushing, bound)) * _SLACK


@kernel
def _newly(flushing: Flushing, bound: FloatArray) -> float:
    """The most that a flush may remove of a state; four times that, for roundings."""
    return float(4.0 * flushing.least * (1.0 + bound[_RELATIVE]))


@kernel
def _multiplied(prior: FloatArray, support: BoolArray, posterior: FloatArray, least: float) -> int:
    """Multiply likelihoods by a prior, 0 outside the support; how many products on it are too small to trust."""
    small = 0
    for s in range(len(prior)):
        product = prior[s] * posterior[s]
        posterior[s] = product if support[s] else 0.0
        small += support[s] and not product >= least
    return small


@kernel
def _flush(row: FloatArray, least: float) -> None:
    """Set to 0 what is too small to trust."""
    for s in range(len(row)):
        row[s] = row[s] if row[s] >= least else 0.0


@kernel
def _unanswered(columns: Columns, flushing: Flushing, row: FloatArray, support: BoolArray, bound: FloatArray) -> None:
    """The bound of a row that was flushed before, for a step without an answer."""
    ratio, grows = flushing.ratio * bound[_ABSOLUTE], 0.0
    for s in range(len(row)):
        if support[s] and row[s] < ratio * columns.inflow[s]:
            grows = max(grows, columns.inflow[s])
    _bound_grows(flushing, bound, grows)


@kernel
def _passed(
    columns: Columns, flushing: Flushing, row: FloatArray, support: BoolArray, steps: int, bound: FloatArray
) -> bool:
    """Move a row and its support in place, as `move_many` does; False where a row begins to be flushed."""
    if steps == 0:
        return True
    spare, reached = np.empty_like(row), np.empty_like(support)
    for passed in range(steps):
        if bound[_ABSOLUTE] > 0.0:
            _unanswered(columns, flushing, row, support, bound)
        _move_one(columns, row, spare)
        land(columns.share, row, spare)
        if _reach(columns, flushing, support, spare, reached) and not bound[_ABSOLUTE] > 0.0:
            return False
        if bound[_ABSOLUTE] > 0.0:
            bound[_ABSOLUTE] += _newly(flushing, bound)
        most = math.inf
        if passed % 8 == 0:
            most = 0.0
            for s in range(len(row)):
                most = max(most, abs(spare[s] - row[s]) if reached[s] == support[s] else math.inf)
        row[:] = spare
        support[:] = reached
        if most <= columns.settled:
            return True
    return True


@kernel
def _reach(columns: Columns, flushing: Flushing, support: BoolArray, moved: FloatArray, reached: BoolArray) -> bool:
    """Which states are reached from the support; sums too small to trust become 0, True if one of a reached state."""
    lost = False
    for j in range(len(moved)):
        reached[j] = moved[j] >= flushing.least
        if not reached[j]:
            moved[j] = 0.0
            if len(columns.share) > 0:
                reached[j] = lost = True
                continue
            for k in range(columns.indptr[j], columns.indptr[j + 1]):
                if support[columns.indices[k]]:
                    reached[j] = lost = True
                    break
    return lost


@kernel
def _move(
    columns: Columns, flushing: Flushing, steps: Steps, lanes: Lanes, moving: BoolArray, rows: FloatArray
) -> None:
    """``rows`` of the ``moving`` lanes one transition later.

    Sums too small to trust are flushed. But a row is not flushed for the first time after a step without an answer: the
    lane is stopped, since its next answer may be of a law that floats do not serve.
    """
    trusted = False
    for s in range(rows.shape[1]):
        for lane in range(LANES):
            lanes.woven[s, lane] = rows[lane, s]
    if moving.sum() >= _FEW:
        trusted = _move_all(columns.indptr, columns.indices, columns.data, lanes.woven, rows, flushing.least)
    else:
        for lane in range(LANES):
            if moving[lane]:
                _move_one(columns, lanes.woven[:, lane], rows[lane])
    if len(columns.share) > 0:
        for lane in range(LANES):
            if moving[lane]:
                land(columns.share, lanes.woven[:, lane], rows[lane])
    for lane in range(LANES):
        if moving[lane]:
            bound = lanes.bounds[lane]
            exact = bound[_ABSOLUTE] == 0.0
            if exact and (trusted or _reached(columns, lanes.supports[lane], rows[lane], flushing.least)):
                continue
            if exact and steps.skipped[lanes.at[lane]] > 0:
                moving[lane], lanes.stopped[lane] = False, True
            else:
                _flush(rows[lane], flushing.least)
                bound[_ABSOLUTE] += _newly(flushing, bound)


@kernel
def _move_all(indptr: Any, indices: Any, data: FloatArray, rows: FloatArray, moved: FloatArray, least: float) -> bool:
    """p M of the columns of ``rows`` (N, lanes), into ``moved`` (lanes, N); False if some sum is too small to trust.

    Without what jumps: with that a sum may be larger.
    """
    trusted = True
    for j in range(moved.shape[1]):
        a = b = c = d = e = f = g = h = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            i, chance = indices[k], data[k]
            a += rows[i, 0] * chance
            b += rows[i, 1] * chance
            c += rows[i, 2] * chance
            d += rows[i, 3] * chance
            e += rows[i, 4] * chance
            f += rows[i, 5] * chance
            g += rows[i, 6] * chance
            h += rows[i, 7] * chance
        moved[0, j], moved[1, j], moved[2, j], moved[3, j] = a, b, c, d
        moved[4, j], moved[5, j], moved[6, j], moved[7, j] = e, f, g, h
        trusted &= min(min(min(a, b), min(c, d)), min(min(e, f), min(g, h))) >= least
    return trusted


@kernel
def _move_one(columns: Columns, row: FloatArray, moved: FloatArray) -> None:
    """p M of one row, without what jumps."""
    for j in range(len(moved)):
        mass = 0.0
        for k in range(columns.indptr[j], columns.indptr[j + 1]):
            mass += row[columns.indices[k]] * columns.data[k]
        moved[j] = mass


@kernel
def _reached(columns: Columns, support: BoolArray, moved: FloatArray, least: float) -> bool:
    """Whether every state that is reached from the support has a sum to be trusted; 0 is put where none is reached."""
    for j in range(len(moved)):
        if not moved[j] >= least:
            if len(columns.share) > 0:
                return False
            for k in range(columns.indptr[j], columns.indptr[j + 1]):
                if support[columns.indices[k]]:
                    return False
            moved[j] = 0.0
    return True
