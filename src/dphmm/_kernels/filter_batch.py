"""The filter of `dphmm._kernels.filter` for a batch of 8 subjects at once, in floats; it stops where logs are needed.

A prediction reads the whole matrix; with 8 rows interleaved one reading serves all of them. Each slot of the batch is
at a step of its own, under a law of its own, and takes the next subject when its own has ended. Products and sums are
those of `filter`, in its order, so a belief does not depend on the subjects beside it.

Probabilities of possible states that are too small to trust are set to 0, and two numbers bound what that removes: the
true row is at least the row and at most (1 + relative)·row + absolute·inflow, state by state, up to a factor. A slot
stops before a step whose estimate the bound does not make certain.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import (
    add_jump,
    at_rest,
    expectation,
    likeliest,
    likelihood,
    only_unreached_are_small,
    times_interleaved,
    times_sparse,
    total,
)
from dphmm.types import BoolArray, FloatArray, IntArray

#: Eight sums of doubles fill the registers and a line of the cache.
SLOTS = 8
#: Fewer rows than these are predicted one by one.
_FEW = 3
#: The kind of a law that is left to Python altogether, estimates of skipped steps too; of another one that floats do
#: not serve it is -1.
ALONE = -2
#: The kind of a law of listed answers: ``projected`` is how likely each is made, and an answer is its number.
LISTED = 3
#: Covers the roundings of one step in a bound, for fewer than 2**24 states.
_SLACK = 1.0 + 2.0**-26
#: The numbers of a bound: of the row itself, and of the inflow.
_RELATIVE = 0
_ABSOLUTE = 1


class Columns(NamedTuple):
    """The transition matrix as compressed columns, and which share of itself may change where a belief has settled.

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
    """How likely each law makes answers; all facets stand in one array, a law's from its first on; tables too.

    ``supports`` (laws, N) are the possible states before an answer. A law of a kind below 0 is not one in floats.
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
    """Steps (n,) of subject after subject, each under a law; ``skipped`` is 0 for a release of ``z`` (n, d).

    ``estimated``: whether a skip needs an estimate, of the last step that it skips. A release always has one.
    """

    law_of: IntArray
    skipped: IntArray
    z: FloatArray
    estimated: BoolArray


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


class Estimates(NamedTuple):
    """Room for the mean answer (n, d) and the likeliest state (n,) of each step that is estimated."""

    means: FloatArray
    states: IntArray


class Batch(NamedTuple):
    """Where each slot stands: before step ``at`` of its ``subject``, whose steps end at ``end``.

    The belief there is ``rows[side[0], slot]``; the other rows are room. ``stopped`` slots are at a step that floats do
    not serve. ``bounds`` (8, 2) are 0 while nothing was flushed. ``interleaved`` (N, 8) and ``supports`` (8, N) are
    what is to be predicted. The subjects ``queue[0]`` to ``queue[1]`` come next.
    """

    subject: IntArray
    at: IntArray
    end: IntArray
    stopped: BoolArray
    rows: FloatArray
    side: IntArray
    bounds: FloatArray
    interleaved: FloatArray
    supports: BoolArray
    queue: IntArray

    def row(self, slot: int) -> FloatArray:
        """The belief (N,) of a slot."""
        row: FloatArray = self.rows[self.side[0], slot]
        return row


def empty_batch(n_states: int, first: int, last: int) -> Batch:
    """A batch of empty slots; the subjects from ``first`` on come next, without ``last``."""
    return Batch(
        subject=np.zeros(SLOTS, np.int64),
        at=np.zeros(SLOTS, np.int64),
        end=np.zeros(SLOTS, np.int64),
        stopped=np.zeros(SLOTS, np.bool_),
        rows=np.ones((2, SLOTS, n_states)),
        side=np.zeros(1, np.int64),
        bounds=np.zeros((SLOTS, 2)),
        interleaved=np.empty((n_states, SLOTS)),
        supports=np.zeros((SLOTS, n_states), np.bool_),
        queue=np.array([first, last]),
    )


@kernel
def filter_batch(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    answers: FloatArray,
    steps: Steps,
    subjects: Subjects,
    batch: Batch,
    estimates: Estimates,
) -> None:
    """Filter until a slot is stopped, or no subject is left. ``answers`` (d, N): of the states, (0, N) of labels."""
    moving = np.empty(SLOTS, np.bool_)
    while _fill(batch, subjects):
        before, after = batch.rows[batch.side[0]], batch.rows[1 - batch.side[0]]
        for slot in range(SLOTS):
            moving[slot] = batch.at[slot] < batch.end[slot] and not batch.stopped[slot]
            if moving[slot]:
                moving[slot] = _condition_or_skip(
                    columns, flushing, laws, answers, steps, batch, slot, before[slot], after[slot], estimates
                )
                batch.stopped[slot] = not moving[slot]
        _predict(columns, flushing, steps, batch, moving, after)
        for slot in range(SLOTS):
            if moving[slot]:
                batch.at[slot] += 1
                place = subjects.end_of[batch.subject[slot]]
                if batch.at[slot] == batch.end[slot] and place >= 0:
                    subjects.ends[place] = after[slot]
                    subjects.end_bounds[place] = batch.bounds[slot]
            elif batch.stopped[slot]:
                after[slot] = before[slot]
        batch.side[0] = 1 - batch.side[0]
        if np.any(batch.stopped):
            return


@kernel
def _fill(batch: Batch, subjects: Subjects) -> bool:
    """Give every free slot the next subject; whether any slot has one."""
    busy = False
    for slot in range(SLOTS):
        if batch.at[slot] == batch.end[slot] and batch.queue[0] < batch.queue[1]:
            subject = batch.queue[0]
            batch.queue[0] += 1
            batch.subject[slot] = subject
            batch.at[slot], batch.end[slot] = subjects.begins[subject], subjects.begins[subject + 1]
            place = subjects.start_of[subject]
            batch.stopped[slot] = place < 0
            if place >= 0:
                batch.rows[batch.side[0], slot] = subjects.starts[place]
                batch.bounds[slot] = subjects.start_bounds[place]
        busy |= batch.at[slot] < batch.end[slot]
    return busy


@kernel
def _condition_or_skip(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    answers: FloatArray,
    steps: Steps,
    batch: Batch,
    slot: int,
    prior: FloatArray,
    posterior: FloatArray,
    estimates: Estimates,
) -> bool:
    """Fill the posterior of a slot's step, which is to be predicted next; False where floats do not serve.

    Its estimate is filled in, too, where the step has one.
    """
    at, support, bound = batch.at[slot], batch.supports[slot], batch.bounds[slot]
    law, skipped = steps.law_of[at], steps.skipped[at]
    support[:] = laws.supports[law]
    relative, absolute = bound[_RELATIVE], bound[_ABSOLUTE]
    if skipped > 0:
        if steps.estimated[at] and laws.kinds[law] == ALONE:
            # The estimate is not a mean.
            return False
        posterior[:] = prior
        served = _predict_many(columns, flushing, posterior, support, skipped - 1, bound)
        if served and bound[_ABSOLUTE] > 0.0:
            _unanswered(columns, flushing, posterior, support, bound)
        if steps.estimated[at]:
            served = served and bound[_RELATIVE] + bound[_ABSOLUTE] * len(prior) <= flushing.limit
    else:
        served = laws.kinds[law] >= 0
        if served:
            served = _condition(columns, flushing, laws, law, steps.z[at], prior, support, bound, posterior)
    if served and (skipped == 0 or steps.estimated[at]):
        estimates.states[at] = likeliest(posterior)
        if len(answers) == 0:
            # Of labels: how likely the likeliest is.
            estimates.means[at, 0] = min(1.0, posterior.max())
        for j in range(len(answers)):
            estimates.means[at, j] = expectation(posterior, answers[j])
    if not served:
        bound[_RELATIVE], bound[_ABSOLUTE] = relative, absolute
    return served


@kernel
def _condition(
    columns: Columns,
    flushing: Flushing,
    laws: Laws,
    law: int,
    z: FloatArray,
    prior: FloatArray,
    support: BoolArray,
    bound: FloatArray,
    posterior: FloatArray,
) -> bool:
    """Bayes' rule for an answer under a law, as `likelihood` and `condition` have it; False if it is not certain.

    A bound of absolute·inflow becomes one of ``absolute``.
    """
    a, b = laws.first_facets[law], laws.first_facets[law + 1]
    if laws.kinds[law] == LISTED:
        posterior[:] = laws.projected[a + int(z[0])]
    else:
        centre = np.zeros(b - a)
        for i in range(b - a):
            for j in range(len(z)):
                centre[i] += laws.normals[a + i, j] * z[j]
        table = laws.tables[laws.first_tables[law] : laws.first_tables[law + 1]]
        rows = (laws.projected[a:b], laws.inverses[a:b], laws.shifts[a:b])
        likelihood(*rows, centre, laws.kinds[law], laws.rates[law], table, posterior)
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
def _predict_many(
    columns: Columns, flushing: Flushing, row: FloatArray, support: BoolArray, steps: int, bound: FloatArray
) -> bool:
    """Predict a row and its support in place, as `predict_many` does; False where a row begins to be flushed."""
    if steps == 0:
        return True
    spare, reached = np.empty_like(row), np.empty_like(support)
    for passed in range(steps):
        if bound[_ABSOLUTE] > 0.0:
            _unanswered(columns, flushing, row, support, bound)
        times_sparse(columns.indptr, columns.indices, columns.data, row, spare)
        add_jump(columns.share[:0], columns.share, row, spare)
        if _reach(columns, flushing, support, spare, reached) and not bound[_ABSOLUTE] > 0.0:
            return False
        if bound[_ABSOLUTE] > 0.0:
            bound[_ABSOLUTE] += _newly(flushing, bound)
        rests = passed % 8 == 0 and at_rest(row, support, spare, reached, columns.settled, passed)
        row[:] = spare
        support[:] = reached
        if rests:
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
def _predict(
    columns: Columns, flushing: Flushing, steps: Steps, batch: Batch, moving: BoolArray, rows: FloatArray
) -> None:
    """Predict ``rows`` of the ``moving`` slots by one transition.

    Sums too small to trust are flushed. But a row is not flushed for the first time after a step without an answer: the
    slot is stopped, since its next answer may be of a law that floats do not serve.
    """
    trusted = False
    for s in range(rows.shape[1]):
        for slot in range(SLOTS):
            batch.interleaved[s, slot] = rows[slot, s]
    if moving.sum() >= _FEW:
        trusted = times_interleaved(
            columns.indptr, columns.indices, columns.data, batch.interleaved, rows, flushing.least
        )
    else:
        for slot in range(SLOTS):
            if moving[slot]:
                times_sparse(columns.indptr, columns.indices, columns.data, batch.interleaved[:, slot], rows[slot])
    if len(columns.share) > 0:
        for slot in range(SLOTS):
            if moving[slot]:
                add_jump(columns.share[:0], columns.share, batch.interleaved[:, slot], rows[slot])
    for slot in range(SLOTS):
        if moving[slot]:
            bound = batch.bounds[slot]
            exact = bound[_ABSOLUTE] == 0.0
            if exact and (trusted or _holds(columns, flushing, batch.supports[slot], rows[slot])):
                continue
            if exact and steps.skipped[batch.at[slot]] > 0:
                moving[slot], batch.stopped[slot] = False, True
            else:
                _flush(rows[slot], flushing.least)
                bound[_ABSOLUTE] += _newly(flushing, bound)


@kernel
def _holds(columns: Columns, flushing: Flushing, support: BoolArray, moved: FloatArray) -> bool:
    """Whether floats hold every state that is reached from the support; 0 is put where none is reached."""
    jumps = len(columns.share) > 0
    return only_unreached_are_small(columns.indptr, columns.indices, jumps, support, flushing.least, moved)
