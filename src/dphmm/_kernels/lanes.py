"""Public beliefs of several subjects moved side by side, one to a lane, each as far as floats serve it.

A move reads the whole matrix; side by side, one reading serves every lane. Lanes do not know of each other: each is at
a step, and under a law, of its own, and takes up the next subject when its own ends. Products and sums are those of
`dphmm._kernels.belief`, in its order, so that a belief comes out the same in whatever company.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dphmm._kernels.belief import expectation, likeliest, likelihood, move_many, total
from dphmm._kernels.compiled import kernel
from dphmm._kernels.markov import TRUSTED
from dphmm.types import BoolArray, FloatArray, IntArray

#: Eight sums of doubles fill the registers and a line of the cache.
LANES = 8
#: Fewer lanes than these are moved one by one.
_FEW = 3


class Columns(NamedTuple):
    """The transition matrix as compressed columns, and how little may change in a step of a belief that has settled."""

    indptr: Any
    indices: Any
    data: FloatArray
    settled: float


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
    """Steps (n,) of subject after subject; ``skipped`` is 0 for a release of ``z`` (n, d)."""

    legs: IntArray
    skipped: IntArray
    z: FloatArray


class Subjects(NamedTuple):
    """Subject k has the steps ``begins[k]`` to ``begins[k + 1]``.

    Its belief before them is ``starts[start_of[k]]``, and the one after them goes to ``ends[end_of[k]]``, rows (N,)
    both. Below 0: it is stopped at its first step; nobody asks for its end.
    """

    begins: IntArray
    starts: FloatArray
    start_of: IntArray
    ends: FloatArray
    end_of: IntArray


class Found(NamedTuple):
    """Room for what a release tells: (n, d) and (n,)."""

    estimates: FloatArray
    states: IntArray


class Lanes(NamedTuple):
    """Where each lane is: before step ``at`` of its ``subject``, whose steps end at ``end``.

    The belief there is ``rows[side[0], lane]``; the other rows are room. ``stopped`` lanes are at a step that floats do
    not serve. ``woven`` (N, lanes) and ``supports`` are what is to be moved. The subjects ``queue[0]`` to ``queue[1]``
    come next.
    """

    subject: IntArray
    at: IntArray
    end: IntArray
    stopped: BoolArray
    rows: FloatArray
    side: IntArray
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
        woven=np.empty((n_states, LANES)),
        supports=np.zeros((LANES, n_states), np.bool_),
        queue=np.array([first, last]),
    )


@kernel
def follow(
    columns: Columns,
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
                moving[lane] = _told(columns, laws, answers, steps, lanes, lane, before[lane], after[lane], found)
                lanes.stopped[lane] = not moving[lane]
        _move(columns, lanes, moving, after)
        for lane in range(LANES):
            if moving[lane]:
                lanes.at[lane] += 1
                place = subjects.end_of[lanes.subject[lane]]
                if lanes.at[lane] == lanes.end[lane] and place >= 0:
                    subjects.ends[place] = after[lane]
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
        busy |= lanes.at[lane] < lanes.end[lane]
    return busy


@kernel
def _told(
    columns: Columns,
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
    at, support = lanes.at[lane], lanes.supports[lane]
    leg, skipped = steps.legs[at], steps.skipped[at]
    support[:] = laws.supports[leg]
    if skipped > 0:
        posterior[:] = prior
        if skipped > 1:
            spare, reached = np.empty_like(prior), np.empty_like(support)
            matrix = (columns.indptr, columns.indices, columns.data)
            if move_many(*matrix, posterior, support, skipped - 1, columns.settled, spare, reached) < skipped - 1:
                return False
    elif laws.kinds[leg] < 0 or not _conditioned(laws, leg, steps.z[at], prior, support, posterior):
        return False
    else:
        found.states[at] = likeliest(posterior)
        for j in range(len(answers)):
            found.estimates[at, j] = expectation(posterior, answers[j])
    return True


@kernel
def _conditioned(
    laws: Laws, leg: int, z: FloatArray, prior: FloatArray, support: BoolArray, posterior: FloatArray
) -> bool:
    """Bayes' rule for an answer under a leg's law, as `likelihood` and `condition` have it."""
    a, b = laws.first_facets[leg], laws.first_facets[leg + 1]
    centre = np.zeros(b - a)
    for i in range(b - a):
        for j in range(len(z)):
            centre[i] += laws.normals[a + i, j] * z[j]
    table = laws.tables[laws.first_tables[leg] : laws.first_tables[leg + 1]]
    rows = (laws.projected[a:b], laws.inverses[a:b], laws.shifts[a:b])
    likelihood(*rows, centre, laws.kinds[leg], laws.rates[leg], table, posterior)
    if _multiplied(prior, support, posterior) > 0:
        return False
    scale = 1.0 / total(posterior)
    for s in range(len(posterior)):
        posterior[s] *= scale
    return True


@kernel
def _multiplied(prior: FloatArray, support: BoolArray, posterior: FloatArray) -> int:
    """Multiply likelihoods by a prior, 0 outside the support; how many products on it are too small to trust."""
    small = 0
    for s in range(len(prior)):
        product = prior[s] * posterior[s]
        posterior[s] = product if support[s] else 0.0
        small += support[s] and not product >= TRUSTED
    return small


@kernel
def _move(columns: Columns, lanes: Lanes, moving: BoolArray, rows: FloatArray) -> None:
    """``rows`` of the ``moving`` lanes one transition later; stopped where a reached sum is too small to trust."""
    trusted = False
    for s in range(rows.shape[1]):
        for lane in range(LANES):
            lanes.woven[s, lane] = rows[lane, s]
    if moving.sum() >= _FEW:
        trusted = _move_all(columns.indptr, columns.indices, columns.data, lanes.woven, rows)
    else:
        for lane in range(LANES):
            if moving[lane]:
                _move_one(columns, lanes.woven[:, lane], rows[lane])
    for lane in range(LANES):
        if moving[lane] and not trusted and not _reached(columns, lanes.supports[lane], rows[lane]):
            moving[lane], lanes.stopped[lane] = False, True


@kernel
def _move_all(indptr: Any, indices: Any, data: FloatArray, rows: FloatArray, moved: FloatArray) -> bool:
    """p M of the columns of ``rows`` (N, lanes), into ``moved`` (lanes, N); False if some sum is too small to trust."""
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
        trusted &= min(min(min(a, b), min(c, d)), min(min(e, f), min(g, h))) >= TRUSTED
    return trusted


@kernel
def _move_one(columns: Columns, row: FloatArray, moved: FloatArray) -> None:
    """p M of one row."""
    for j in range(len(moved)):
        mass = 0.0
        for k in range(columns.indptr[j], columns.indptr[j + 1]):
            mass += row[columns.indices[k]] * columns.data[k]
        moved[j] = mass


@kernel
def _reached(columns: Columns, support: BoolArray, moved: FloatArray) -> bool:
    """Whether every state that is reached from the support has a sum to be trusted; 0 is put where none is reached."""
    for j in range(len(moved)):
        if not moved[j] >= TRUSTED:
            for k in range(columns.indptr[j], columns.indptr[j + 1]):
                if support[columns.indices[k]]:
                    return False
            moved[j] = 0.0
    return True
