"""Public beliefs of many subjects, moved through their releases and skips: what sessions compute, bit by bit.

The loops are compiled and run on every core, on several subjects side by side. Where floats do not serve (a belief far
in its tails, several bodies in a plan) a `Position` takes the step, as in a session.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm.markov.filtering import SETTLED, Belief
from dphmm.markov.model import MarkovModel
from dphmm.session.course import Course
from dphmm.session.likelihood import Likelihood
from dphmm.session.step import Position, estimate
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm._kernels.lanes import Lanes, Laws

#: Pieces of work for each core, and what is too little to divide (steps times states).
_PIECES = 2
_LITTLE = 2**15
#: Numbers that a stack may hold; legs beyond are left to a `Position`.
_MOST_STACKED = 2**25


#: Stands for a belief before the first step that is in logs.
_NO_ROW: FloatArray = np.zeros(0)
_NO_ROW.setflags(write=False)


class Script(NamedTuple):
    """Steps (n,) of subject after subject: ``skipped`` is 0 for a release of ``z`` (n, d); ``begins`` a subject."""

    begins: BoolArray
    t: IntArray
    skipped: IntArray
    z: IntArray


class Followed(NamedTuple):
    """Estimates (n, d) and likeliest states (n,), for releases; where the last subject stands after its last step."""

    estimates: FloatArray
    states: IntArray
    position: Position


class Follower:
    """Moves beliefs along a course; results do not depend on how the work is divided."""

    def __init__(self, model: MarkovModel, course: Course, space: StateSpace, loss: str) -> None:
        self.model, self.course, self.space, self.loss = model, course, space, loss
        self._stack: _Stack | None = None

    @cached_property
    def axes(self) -> FloatArray:
        """The states' answers (d, N), axis by axis."""
        return np.ascontiguousarray(self.space.own_answers.T)

    def follow(self, script: Script, carried: Position | None) -> Followed:
        """All steps of a script, whose first subject stands at ``carried`` if it does not begin there."""
        if not len(script.t):
            return Followed(np.zeros(script.z.shape), np.zeros(0, np.int64), carried or self.course.start)
        numbers = self.course.numbers(script.t)
        released = set(np.unique(numbers[script.skipped == 0]).tolist())
        stack = self._stacked(np.unique(numbers), released)
        work = _Work(self, stack, script, np.searchsorted(stack.numbers, numbers))
        position = work.divided(carried)
        if self.loss == "state":
            work.estimates[:] = self.space.own_answers[work.states]
        return Followed(work.estimates, work.states, position)

    def _stacked(self, numbers: IntArray, released: set[int]) -> _Stack:
        kept = self._stack
        if kept is None or not released <= kept.released or not np.isin(numbers, kept.numbers).all():
            compiled = self.loss != "euclidean" and self.model.time_homogeneous
            kept = self._stack = _Stack.of(self.course, numbers, released, compiled)
        return kept


@dataclass(frozen=True, eq=False)
class _Stack:
    """Legs as the compiled loop reads them; ``rooms`` says how far answers may be.

    A last leg, of no number, stands for what the loop leaves to a `Position`.
    """

    numbers: IntArray
    released: set[int]
    rooms: FloatArray
    laws: Laws

    @classmethod
    def of(cls, course: Course, numbers: IntArray, released: set[int], compiled: bool) -> _Stack:
        """The legs of these numbers; a plan is needed only where something is ``released``."""
        found: list[Likelihood | None] = []
        left = _MOST_STACKED
        for number in numbers.tolist():
            law = course.leg(number).likelihood if compiled and number in released else None
            left -= 0 if law is None else law.size
            # A law of plan states alone is not of every state: no plan of a course has one.
            found.append(law if left >= 0 and law is not None and law.contracted is None else None)
        supports = [course.supports[number] for number in numbers.tolist()]
        rooms = np.array([np.inf if law is None else law.room for law in found])
        return cls(numbers, released, rooms, _laws(found, supports))


def _laws(found: list[Likelihood | None], supports: list[BoolArray]) -> Laws:
    from dphmm._kernels.lanes import Laws

    known, n = [law for law in found if law is not None], len(supports[0])
    return Laws(
        first_facets=_ends([0 if law is None else len(law.inverses) for law in found]),
        projected=np.vstack([law.projected for law in known] or [np.zeros((0, n))]),
        inverses=np.concatenate([law.inverses for law in known] or [np.zeros(0)]),
        shifts=np.concatenate([law.shifts for law in known] or [np.zeros(0)]),
        normals=np.vstack([law.normals for law in known] or [np.zeros((0, 1))]),
        kinds=np.array([*(-1 if law is None else law.kind for law in found), -1], dtype=np.int64),
        rates=np.array([*(0.0 if law is None else law.rate for law in found), 0.0]),
        first_tables=_ends([0 if law is None else len(law.table) for law in found]),
        tables=np.concatenate([law.table for law in known] or [np.zeros(0)]),
        supports=np.array([*supports, np.ones(n, dtype=np.bool_)]),
    )


def _ends(sizes: list[int]) -> IntArray:
    """Where each of some parts begins in their one array, and where the last and an empty one after it end."""
    return np.cumsum([0, *sizes, 0])


class _Work:
    """A script with the legs of its steps, and room for what comes out."""

    def __init__(self, own: Follower, stack: _Stack, script: Script, legs: IntArray) -> None:
        self._own, self._stack, self._script, self._legs = own, stack, script, legs
        self._z = script.z.astype(np.float64)
        far = np.abs(self._z).max(axis=1, initial=0.0) >= stack.rooms[legs]
        self._compiled_legs = np.where(far, len(stack.numbers), legs)
        self._start = own.course.start
        self.estimates = np.zeros(script.z.shape)
        self.states = np.zeros(len(script.t), dtype=np.int64)

    def divided(self, carried: Position | None) -> Position:
        """Every step, on all cores; the position after the last."""
        cores = _cores()
        few = 1 + len(self._legs) * self._start.prior.n_states // _LITTLE
        cuts = _cuts(self._script.begins, min(few, cores * _PIECES) if cores > 1 else 1)
        pieces = list(pairwise(cuts))
        if len(pieces) == 1:
            return self.run(*pieces[0], carried)
        # Made here and ended here: threads do not live on in a forked child.
        with ThreadPoolExecutor(cores) as pool:
            running = [pool.submit(self.run, first, last, carried) for first, last in pieces]
            return [piece.result() for piece in running][-1]

    def run(self, first: int, last: int, carried: Position | None) -> Position:
        """The steps first..last; the position after them."""
        from dphmm._kernels.lanes import Columns, Found, Steps, empty_lanes, follow

        own, script, n = self._own, self._script, self._start.prior.n_states
        begins, start = _subjects(script.begins, first, last), self._start.prior.row
        lanes, position = empty_lanes(n, len(begins) - 1), None
        if not script.begins[first]:
            lanes.at[0], lanes.end[0], lanes.queue[0] = begins[0], begins[1], 1
            position = self._placed(lanes, 0, carried or self._start, last)
        matrix = own.model.predecessors_at(1)
        columns = Columns(matrix.indptr, matrix.indices, matrix.data, SETTLED)
        steps = Steps(self._compiled_legs, script.skipped, self._z)
        found = Found(self.estimates, self.states, np.empty(n))
        while True:
            follow(
                columns, self._stack.laws, own.axes, steps, begins, _NO_ROW if start is None else start, lanes, found
            )
            stopped = np.flatnonzero(lanes.stopped).tolist()
            if not stopped:
                t = int(script.t[last - 1]) + max(1, int(script.skipped[last - 1]))
                return position or self._standing(t, found.after)
            for lane in stopped:
                position = self._placed(lanes, lane, self._passed(lanes, lane), last) or position

    def _passed(self, lanes: Lanes, lane: int) -> Position:
        """After the one step at which a lane was stopped."""
        at = int(lanes.at[lane])
        lanes.at[lane] += 1
        if self._script.begins[at]:
            return self._one(at, self._start)
        return self._one(at, self._standing(int(self._script.t[at]), lanes.row(lane)))

    def _placed(self, lanes: Lanes, lane: int, position: Position, last: int) -> Position | None:
        """Put a lane at a position, or where floats serve again after it; the position, if that is after ``last``."""
        while position.prior.row is None and lanes.at[lane] < lanes.end[lane]:
            position = self._one(int(lanes.at[lane]), position)
            lanes.at[lane] += 1
        lanes.stopped[lane] = False
        if position.prior.row is not None:
            lanes.row(lane)[:] = position.prior.row
        return position if lanes.at[lane] == last else None

    def _standing(self, t: int, row: FloatArray) -> Position:
        return Position(t, Belief.of_row(row.copy(), self._own.course.support(t)))

    def _one(self, at: int, position: Position) -> Position:
        """One step as a session takes it."""
        own, script = self._own, self._script
        if script.skipped[at]:
            return position.skipping(own.model, int(script.skipped[at]))
        plan = own.course.leg(int(self._stack.numbers[self._legs[at]])).plan
        posterior = position.posterior(plan, script.z[at])
        guess = estimate(posterior, own.space.own_answers, own.loss)
        self.estimates[at], self.states[at] = guess.answer, guess.state
        return position.following(own.model, posterior)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _subjects(begins: BoolArray, first: int, last: int) -> IntArray:
    """Where the subjects of the steps first..last begin, and ``last``."""
    return np.concatenate([[first], first + 1 + np.flatnonzero(begins[first + 1 : last]), [last]])


def _cuts(begins: BoolArray, pieces: int) -> list[int]:
    """Where to divide steps (n,) into about so many pieces of whole subjects."""
    starts = np.flatnonzero(begins)
    wanted = np.arange(1, pieces) * len(begins) // pieces
    near = np.searchsorted(starts, wanted)
    inner = starts[near[near < len(starts)]].tolist()
    return sorted({0, len(begins), *inner})
