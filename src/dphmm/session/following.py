"""Public beliefs of many subjects, moved through their releases and skips: what sessions compute, bit by bit.

The loops are compiled and run on every core, on several subjects side by side. Where floats do not serve (a belief far
in its tails, several bodies in a plan) a `Position` takes the step, as in a session.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm.markov.filtering import SETTLED, Belief
from dphmm.markov.model import MarkovModel
from dphmm.session.likelihood import Likelihood
from dphmm.session.schedule import PlanSchedule
from dphmm.session.step import Position, estimate
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm._kernels.lanes import Lanes, Laws, Subjects

#: Pieces of work for each core, and what is too little to divide (steps times states).
_PIECES = 2
_LITTLE = 2**15
#: Numbers that a stack may hold; legs beyond are left to a `Position`.
_MOST_STACKED = 2**25


class Script(NamedTuple):
    """Steps (n,) of subject after subject: ``skipped`` is 0 for a release of ``z`` (n, d).

    ``begins`` is true at each subject's first step; the first step of all is one. ``numbers`` (n,) are those of the
    plans of a schedule.
    """

    begins: BoolArray
    t: IntArray
    skipped: IntArray
    z: IntArray
    numbers: IntArray


class Followed(NamedTuple):
    """Estimates (n, d) and likeliest states (n,), for releases; where each subject stands after its last step.

    A position that was not wanted is None.
    """

    estimates: FloatArray
    states: IntArray
    positions: list[Position | None]


class Follower:
    """Moves beliefs along a schedule; results do not depend on how the work is divided."""

    def __init__(self, model: MarkovModel, schedule: PlanSchedule, space: StateSpace, loss: str) -> None:
        self.model, self.schedule, self.space, self.loss = model, schedule, space, loss
        self._stack: _Stack | None = None

    @cached_property
    def axes(self) -> FloatArray:
        """The states' answers (d, N), axis by axis."""
        return np.ascontiguousarray(self.space.own_answers.T)

    def follow(
        self, script: Script, starts: Sequence[Position | None], wanted: Sequence[bool] | None = None
    ) -> Followed:
        """All steps of a script, whose subject k stands at ``starts[k]`` before its first; None is the very start.

        ``wanted`` says for each subject whether its last position is asked for; without it, all are.
        """
        if not len(script.t):
            return Followed(np.zeros(script.z.shape), np.zeros(0, np.int64), [])
        numbers = script.numbers
        released = set(np.unique(numbers[script.skipped == 0]).tolist())
        stack = self._stacked(np.unique(numbers), released)
        work = _Work(self, stack, script, np.searchsorted(stack.numbers, numbers), starts, wanted)
        work.run_all()
        if self.loss == "state":
            work.estimates[:] = self.space.own_answers[work.states]
        return Followed(work.estimates, work.states, work.positions)

    def _stacked(self, numbers: IntArray, released: set[int]) -> _Stack:
        kept = self._stack
        if kept is None or not released <= kept.released or not np.isin(numbers, kept.numbers).all():
            compiled = self.loss != "euclidean" and self.model.time_homogeneous
            kept = self._stack = _Stack.of(self.schedule, numbers, released, compiled)
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
    def of(cls, schedule: PlanSchedule, numbers: IntArray, released: set[int], compiled: bool) -> _Stack:
        """The legs of these numbers; a plan is needed only where something is ``released``."""
        found: list[Likelihood | None] = []
        left = _MOST_STACKED
        for number in numbers.tolist():
            law = schedule.at(number).likelihood if compiled and number in released else None
            left -= 0 if law is None else law.size
            # A law of plan states alone is not of every state: no plan of a schedule has one.
            found.append(law if left >= 0 and law is not None and law.contracted is None else None)
        supports = [schedule.support_of(number) for number in numbers.tolist()]
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
    """A script with the legs of its steps, where its subjects start, and room for what comes out."""

    def __init__(
        self,
        own: Follower,
        stack: _Stack,
        script: Script,
        legs: IntArray,
        starts: Sequence[Position | None],
        wanted: Sequence[bool] | None,
    ) -> None:
        self._own, self._stack, self._script, self._legs = own, stack, script, legs
        self._z = script.z.astype(np.float64)
        far = np.abs(self._z).max(axis=1, initial=0.0) >= stack.rooms[legs]
        self._compiled_legs = np.where(far, len(stack.numbers), legs)
        self._begins = np.concatenate([[0], 1 + np.flatnonzero(script.begins[1:]), [len(script.t)]])
        self._starts = [own.schedule.start if start is None else start for start in starts]
        self._wanted = [True] * len(starts) if wanted is None else wanted
        self.estimates = np.zeros(script.z.shape)
        self.states = np.zeros(len(script.t), dtype=np.int64)
        self.positions: list[Position | None] = [None] * len(starts)

    def run_all(self) -> None:
        """Every step, on all cores."""
        cores = _cores()
        few = 1 + len(self._legs) * len(self._own.space.own_answers) // _LITTLE
        cuts = _cuts(self._begins, min(few, cores * _PIECES) if cores > 1 else 1)
        pieces = list(pairwise(cuts))
        if len(pieces) == 1:
            self.run(*pieces[0])
            return
        # Made here and ended here: threads do not live on in a forked child.
        with ThreadPoolExecutor(cores) as pool:
            for piece in [pool.submit(self.run, first, last) for first, last in pieces]:
                piece.result()

    def run(self, first: int, last: int) -> None:
        """The steps of the subjects from ``first`` on, without ``last``."""
        from dphmm._kernels.lanes import Columns, Found, Steps, empty_lanes, follow

        own = self._own
        subjects = self._subjects(first, last)
        lanes = empty_lanes(subjects.starts.shape[1], first, last)
        matrix = own.model.predecessors_at(1)
        columns = Columns(matrix.indptr, matrix.indices, matrix.data, SETTLED)
        steps = Steps(self._compiled_legs, self._script.skipped, self._z)
        found = Found(self.estimates, self.states)
        while True:
            follow(columns, self._stack.laws, own.axes, steps, subjects, lanes, found)
            stopped = np.flatnonzero(lanes.stopped).tolist()
            if not stopped:
                break
            for lane in stopped:
                self._placed(lanes, lane, self._passed(lanes, lane))
        for subject in range(first, last):
            if self._wanted[subject] and self.positions[subject] is None:
                self.positions[subject] = self._standing(
                    self._after(subject), subjects.ends[subjects.end_of[subject]].copy()
                )

    def _subjects(self, first: int, last: int) -> Subjects:
        """Where the subjects first..last start, each row once, and room for where they end."""
        from dphmm._kernels.lanes import Subjects

        n = len(self._own.space.own_answers)
        places: dict[int, int] = {}
        start_of, end_of = (np.full(len(self._starts), -1, dtype=np.int64) for _ in range(2))
        rows: list[FloatArray] = []
        for subject in range(first, last):
            row = self._starts[subject].prior.row
            if row is not None:
                if id(row) not in places:
                    places[id(row)] = len(rows)
                    rows.append(row)
                start_of[subject] = places[id(row)]
        wanted = first + np.flatnonzero(self._wanted[first:last])
        end_of[wanted] = np.arange(len(wanted))
        return Subjects(
            begins=self._begins,
            starts=np.stack(rows) if rows else np.zeros((0, n)),
            start_of=start_of,
            ends=np.empty((len(wanted), n)),
            end_of=end_of,
        )

    def _passed(self, lanes: Lanes, lane: int) -> Position:
        """After the one step at which a lane was stopped."""
        at, subject = int(lanes.at[lane]), int(lanes.subject[lane])
        lanes.at[lane] += 1
        if at == self._begins[subject]:
            return self._one(at, self._starts[subject])
        return self._one(at, self._standing(int(self._script.t[at]), lanes.row(lane).copy()))

    def _placed(self, lanes: Lanes, lane: int, position: Position) -> None:
        """Put a lane at a position, or where floats serve again after it; kept, if that is after the last step."""
        while position.prior.row is None and lanes.at[lane] < lanes.end[lane]:
            position = self._one(int(lanes.at[lane]), position)
            lanes.at[lane] += 1
        lanes.stopped[lane] = False
        if position.prior.row is not None:
            lanes.row(lane)[:] = position.prior.row
        subject = int(lanes.subject[lane])
        if lanes.at[lane] == lanes.end[lane] and self._wanted[subject]:
            self.positions[subject] = position

    def _after(self, subject: int) -> int:
        """The step after a subject's last one here."""
        last = int(self._begins[subject + 1]) - 1
        return int(self._script.t[last]) + max(1, int(self._script.skipped[last]))

    def _standing(self, t: int, row: FloatArray) -> Position:
        return Position(t, Belief.of_row(row, self._own.schedule.support(t)))

    def _one(self, at: int, position: Position) -> Position:
        """One step as a session takes it."""
        own, script = self._own, self._script
        if script.skipped[at]:
            return position.skipping(own.model, int(script.skipped[at]))
        plan = own.schedule.plan(int(self._stack.numbers[self._legs[at]]))
        posterior = position.posterior(plan, script.z[at])
        guess = estimate(posterior, own.space.own_answers, own.loss)
        self.estimates[at], self.states[at] = guess.answer, guess.state
        return position.following(own.model, posterior)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cuts(begins: IntArray, pieces: int) -> list[int]:
    """Where to divide subjects into about so many pieces of like length; ``begins`` as in `Subjects`."""
    wanted = np.arange(1, pieces) * begins[-1] // pieces
    return sorted({0, len(begins) - 1, *np.searchsorted(begins, wanted).tolist()})
