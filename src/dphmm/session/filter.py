"""The filter of many subjects through their releases and skips: the public beliefs that sessions compute.

The loops are compiled and run on every core, for 8 subjects at once. A row of floats drops what is below
1e-290 and carries a bound on what that may change. Where the bound does not make an estimate certain to a rounding, and
where floats do not serve (medians), a `Position` takes the step, as in a session. Until a row
drops something, its bits are those of a session; after that, estimates agree to rounding.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._kernels.process import cores
from dphmm.errors import DphmmError
from dphmm.markov.filtering import SETTLED, Belief
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import LABEL, Likelihood, Position, TableLikelihood, estimate
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm._kernels.filter_batch import Batch, Estimates, Flushing, Laws, Steps, Subjects

#: Pieces of work for each core, and what is too little to divide (steps times states).
_PIECES = 2
_LITTLE = 2**15
#: Numbers that a stack may hold; laws beyond are left to a `Position`.
_MOST_STACKED = 2**25
#: What dropping may change of the largest probability, and of a mean relative to its range: less than a rounding.
_CERTAIN = 1e-16
#: See `Flushing`: far above a rounding, and far below 1 / TRUSTED.
_RATIO = 2.0**200
#: The bound of a row that dropped nothing.
_EXACT: FloatArray = np.zeros(2)
_EXACT.setflags(write=False)


class Observations(NamedTuple):
    """What was published at the steps (n,) of subject after subject: ``skipped`` is 0 for a release of ``z`` (n, d).

    ``begins`` is true at each subject's first step; the first step of all is one. ``numbers`` (n,) are those of the
    plans of a schedule. ``estimated`` (n,): an estimate is asked for after a skip too, of the last step that it skips.
    """

    begins: BoolArray
    t: IntArray
    skipped: IntArray
    z: IntArray
    numbers: IntArray
    estimated: BoolArray


class FlushedRow(NamedTuple):
    """Where a subject stands before step ``t``, in floats that dropped what is below 1e-290.

    row : (N,) probabilities; 0 says nothing of whether a state is possible, the support of t in the schedule does
    bound : (2,) what dropping may have removed, see `dphmm._kernels.filter_batch`

    It goes on in `Filter.run`. The belief itself is in the answers: `Filter.exact` folds them.
    """

    t: int
    row: FloatArray
    bound: FloatArray

    def __repr__(self) -> str:
        return f"FlushedRow(t={self.t})"


class FilterResult(NamedTuple):
    """Estimates (n, d) and likeliest states (n,), of releases and of skips that need one; where each subject ends.

    An end that is not wanted is None.
    """

    estimates: FloatArray
    states: IntArray
    ends: list[Position | FlushedRow | None]


class Filter:
    """Filters subjects along a schedule of plans; results do not depend on how the work is divided."""

    def __init__(self, model: MarkovModel, schedule: PlanSchedule, space: StateSpace, loss: str) -> None:
        self.model, self.schedule, self.space, self.loss = model, schedule, space, loss
        self._stack: _Stack | None = None

    @cached_property
    def axes(self) -> FloatArray:
        """The states' answers (d, N), axis by axis; (0, N) of labels."""
        return np.ascontiguousarray(self.space.own_answers.T)[: 0 if self.loss == LABEL else None]

    @cached_property
    def inflow(self) -> FloatArray:
        """The sums of the columns (N,) of the transition matrix, a jump's with them, and 1 where those are less."""
        matrix, n = self.model.predecessors_at(1), self.model.n_states
        column = np.repeat(np.arange(n), np.diff(matrix.indptr))
        sums = np.bincount(column, weights=matrix.data, minlength=n)
        return np.maximum(1.0, sums + n * matrix.share if len(matrix.share) else sums)

    @property
    def compiled(self) -> bool:
        """Whether releases may be left to the compiled loop at all."""
        return self.loss != "euclidean" and self.model.time_homogeneous

    def run(
        self,
        observed: Observations,
        starts: Sequence[Position | FlushedRow | None],
        wanted: Sequence[bool] | None = None,
        exact: Callable[[int], Position] | None = None,
    ) -> FilterResult:
        """Filter all steps of some subjects.

        starts : where subject k stands before its first step here; None is the very start
        wanted : for each subject, whether its end is asked for; without it, all are
        exact : the position of subject k before its first step here, as `exact` folds it from all steps before. It is
            asked for where ``starts[k]`` is a flushed row and its bound does not make an estimate certain.
        """
        if not len(observed.t):
            return FilterResult(np.zeros(observed.z.shape), np.zeros(0, np.int64), [])
        numbers = observed.numbers
        released = set(np.unique(numbers[observed.skipped == 0]).tolist())
        stack = self._stacked(np.unique(numbers), released)
        work = _Work(self, stack, observed, np.searchsorted(stack.numbers, numbers), starts, wanted, exact)
        work.run_all()
        if self.loss == "state":
            work.estimates[:] = self.space.own_answers[work.states]
        return FilterResult(work.estimates, work.states, work.ends)

    def exact(self, parts: Sequence[Observations]) -> Position:
        """Where a subject stands after all its steps from the very first on, as a session has it."""
        position = self.schedule.start
        for observed in parts:
            position = self._folded(observed, position)
        return position

    def _folded(self, observed: Observations, position: Position) -> Position:
        for number, skipped, z in zip(observed.numbers.tolist(), observed.skipped.tolist(), observed.z, strict=True):
            position = self.stepped(position, number, skipped, z)[0]
        return position

    def stepped(self, position: Position, number: int, skipped: int, z: IntArray) -> tuple[Position, Belief]:
        """One step as a session takes it under a plan, and the belief given the answer, or in the last step skipped."""
        if skipped:
            last = position.predict_through(self.model, position.t + skipped - 1)
            return last.predict(self.model, last.prior), last.prior
        posterior = position.posterior(self.schedule.plan(number), z)
        return position.predict(self.model, posterior), posterior

    def law_of(self, number: int, z: IntArray) -> Likelihood | None:
        """What the compiled loop makes of an answer (d,); None where a `Position` has to take the step."""
        law = self.schedule.at(number).likelihood if self.compiled else None
        return law if law is not None and _stackable(law) and law.holds(z) else None

    def _stacked(self, numbers: IntArray, released: set[int]) -> _Stack:
        kept = self._stack
        if kept is None or not released <= kept.released or not np.isin(numbers, kept.numbers).all():
            kept = self._stack = _Stack.of(self.schedule, numbers, released if self.compiled else set(), released)
        return kept


@dataclass(frozen=True, eq=False)
class _Stack:
    """Laws as the compiled loop reads them; ``rooms`` says how far answers may be.

    A last law, of no number, stands for what the loop leaves to a `Position`.
    """

    numbers: IntArray
    released: set[int]
    rooms: FloatArray
    listed: dict[int, TableLikelihood]
    laws: Laws

    @classmethod
    def of(cls, schedule: PlanSchedule, numbers: IntArray, compiled: set[int], released: set[int]) -> _Stack:
        """The laws of these numbers; a plan is needed only where something is ``released``."""
        found: list[Likelihood | None] = []
        left = _MOST_STACKED
        for number in numbers.tolist():
            law = schedule.at(number).likelihood if number in compiled else None
            law = law if law is not None and _stackable(law) else None
            left -= 0 if law is None else law.size
            found.append(law if left >= 0 else None)
        supports = [schedule.support_of(number) for number in numbers.tolist()]
        rooms = np.array([np.inf if law is None else law.room for law in found])
        listed = {number: law for number, law in enumerate(found) if isinstance(law, TableLikelihood)}
        return cls(numbers, released, rooms, listed, _laws(found, supports))

    def answers(self, z: IntArray, laws: IntArray) -> tuple[FloatArray, BoolArray]:
        """Answers (n, d) under laws (n,) as the loop reads them, and which it cannot (n,): too far away, or not listed.

        One of a table is read as its number.
        """
        floats = z.astype(np.float64)
        far = np.abs(floats).max(axis=1, initial=0.0) >= np.append(self.rooms, np.inf)[laws]
        for number, law in self.listed.items():
            own = np.flatnonzero(laws == number)
            floats[own, 0] = law.law.numbers(z[own])
            far[own] = floats[own, 0] < 0
        return floats, far


def _stackable(law: Likelihood) -> bool:
    """Whether a law fits into a stack by itself; one of plan states alone is not of every state."""
    return law.contracted is None and law.size <= _MOST_STACKED


def _laws(found: list[Likelihood | None], supports: list[BoolArray]) -> Laws:
    kernels = _kernels.filter_batch
    known, n = [law for law in found if law is not None], len(supports[0])
    return kernels.Laws(
        first_facets=_ends([0 if law is None else len(law.inverses) for law in found]),
        projected=np.vstack([law.projected for law in known] or [np.zeros((0, n))]),
        inverses=np.concatenate([law.inverses for law in known] or [np.zeros(0)]),
        shifts=np.concatenate([law.shifts for law in known] or [np.zeros(0)]),
        normals=np.vstack([law.normals for law in known] or [np.zeros((0, 1))]),
        kinds=np.array([*(-1 if law is None else law.kind for law in found), kernels.ALONE], dtype=np.int64),
        rates=np.array([*(0.0 if law is None else law.rate for law in found), 0.0]),
        first_tables=_ends([0 if law is None else len(law.table) for law in found]),
        tables=np.concatenate([law.table for law in known] or [np.zeros(0)]),
        supports=np.array([*supports, np.ones(n, dtype=np.bool_)]),
    )


def _ends(sizes: list[int]) -> IntArray:
    """Where each of some parts begins in their one array, and where the last and an empty one after it end."""
    return np.cumsum([0, *sizes, 0])


class _Work:
    """Observations with the laws of their steps, where its subjects start, and room for what comes out."""

    def __init__(
        self,
        own: Filter,
        stack: _Stack,
        observed: Observations,
        laws: IntArray,
        starts: Sequence[Position | FlushedRow | None],
        wanted: Sequence[bool] | None,
        exact: Callable[[int], Position] | None,
    ) -> None:
        self._own, self._stack, self._observed, self._exact = own, stack, observed, exact
        self._z, far = stack.answers(observed.z, np.where(observed.skipped == 0, laws, len(stack.numbers)))
        alone = far if own.compiled else far | (observed.estimated & (observed.skipped > 0))
        self._laws_of = np.where(alone, len(stack.numbers), laws)
        self._begins = np.concatenate([[0], 1 + np.flatnonzero(observed.begins[1:]), [len(observed.t)]])
        self._starts = [own.schedule.start if start is None else start for start in starts]
        self._wanted = [True] * len(starts) if wanted is None else wanted
        # Of subjects that a Position has taken some steps of: the last step before which one is known, and it.
        self._known: dict[int, tuple[int, Position]] = {}
        self.estimates = np.zeros(observed.z.shape)
        self.states = np.zeros(len(observed.t), dtype=np.int64)
        self.ends: list[Position | FlushedRow | None] = [None] * len(starts)

    def run_all(self) -> None:
        """Every step, on all cores."""
        threads = cores()
        few = 1 + len(self._laws_of) * len(self._own.space.own_answers) // _LITTLE
        cuts = _cuts(self._begins, min(few, threads * _PIECES) if threads > 1 else 1)
        pieces = list(pairwise(cuts))
        if len(pieces) == 1:
            self.run(*pieces[0])
            return
        # Made here and ended here: threads do not live on in a forked child.
        with ThreadPoolExecutor(threads) as pool:
            for piece in [pool.submit(self.run, first, last) for first, last in pieces]:
                piece.result()

    def run(self, first: int, last: int) -> None:
        """The steps of the subjects from ``first`` on, without ``last``."""
        kernels, subjects = _kernels.filter_batch, self._subjects(first, last)
        batch = kernels.empty_batch(subjects.starts.shape[1], first, last)
        steps = kernels.Steps(self._laws_of, self._observed.skipped, self._z, self._observed.estimated)
        estimates = kernels.Estimates(self.estimates, self.states)
        while True:
            self._filter(self._stack, steps, subjects, batch, estimates)
            stopped = np.flatnonzero(batch.stopped).tolist()
            if not stopped:
                break
            for slot in stopped:
                self._resumed(batch, slot)
        for subject in range(first, last):
            if self._wanted[subject] and self.ends[subject] is None:
                place = subjects.end_of[subject]
                row, bound = subjects.ends[place].copy(), subjects.end_bounds[place].copy()
                self.ends[subject] = self._standing(self._after(subject), row, bound)

    def _filter(self, stack: _Stack, steps: Steps, subjects: Subjects, batch: Batch, estimates: Estimates) -> None:
        own, matrix = self._own, self._own.model.predecessors_at(1)
        columns = _kernels.filter_batch.Columns(*matrix.arrays, SETTLED, own.inflow)
        _kernels.filter_batch.filter_batch(
            columns, _flushing(), stack.laws, own.axes, steps, subjects, batch, estimates
        )

    def _subjects(self, first: int, last: int) -> Subjects:
        """Where the subjects first..last start, each row once, and room for where they end."""
        n = len(self._own.space.own_answers)
        places: dict[int, int] = {}
        start_of, end_of = (np.full(len(self._starts), -1, dtype=np.int64) for _ in range(2))
        rows: list[FloatArray] = []
        bounds: list[FloatArray] = []
        for subject in range(first, last):
            start = self._starts[subject]
            row, bound = (start.row, start.bound) if isinstance(start, FlushedRow) else (start.prior.row, _EXACT)
            if row is not None:
                if id(row) not in places:
                    places[id(row)] = len(rows)
                    rows.append(row)
                    bounds.append(bound)
                start_of[subject] = places[id(row)]
        wanted = first + np.flatnonzero(self._wanted[first:last])
        end_of[wanted] = np.arange(len(wanted))
        return _kernels.filter_batch.Subjects(
            begins=self._begins,
            starts=np.stack(rows) if rows else np.zeros((0, n)),
            start_bounds=np.stack(bounds) if bounds else np.zeros((0, 2)),
            start_of=start_of,
            ends=np.empty((len(wanted), n)),
            end_bounds=np.empty((len(wanted), 2)),
            end_of=end_of,
        )

    def _resumed(self, batch: Batch, slot: int) -> None:
        """Take the step at which a slot was stopped, and put the slot where floats serve again, or at its end."""
        at, subject = int(batch.at[slot]), int(batch.subject[slot])
        start = self._starts[subject]
        begins = at == self._begins[subject] and subject not in self._known
        if begins and isinstance(start, Position) and start.prior.row is None:
            self._placed(batch, slot, start)
        elif not self._alone(batch, slot):
            before = self._standing(int(self._observed.t[at]), batch.row(slot).copy(), batch.bounds[slot])
            position = self._before(subject, at) if isinstance(before, FlushedRow) else before
            batch.at[slot] += 1
            self._placed(batch, slot, self._one(at, position))

    def _alone(self, batch: Batch, slot: int) -> bool:
        """Take a step in floats whose law was one too many for the stack; whether it was such a step."""
        kernels = _kernels.filter_batch
        at, subject = int(batch.at[slot]), int(batch.subject[slot])
        row, bound = batch.row(slot), batch.bounds[slot]
        if self._stack.laws.kinds[self._laws_of[at]] >= 0 or not self._served(at):
            return False
        numbers = self._observed.numbers[at : at + 1]
        stack = _Stack.of(self._own.schedule, numbers, set(numbers.tolist()), set())
        only, here = np.zeros(1, dtype=np.int64), slice(at, at + 1)
        rows, bounds = row[None].copy(), bound[None].copy()
        subjects = kernels.Subjects(
            np.array([0, 1]), rows, bounds, only, np.empty_like(rows), np.empty_like(bounds), only
        )
        alone = kernels.empty_batch(len(row), 0, 1)
        estimates = kernels.Estimates(self.estimates[here], self.states[here])
        z, _ = stack.answers(self._observed.z[here], only)
        self._filter(stack, kernels.Steps(only, only, z, self._observed.estimated[here]), subjects, alone, estimates)
        if alone.stopped[0]:
            return False
        rows[0], bounds[0] = subjects.ends[0], subjects.end_bounds[0]
        row[:], bound[:] = rows[0], bounds[0]
        batch.at[slot] += 1
        batch.stopped[slot] = False
        if batch.at[slot] == batch.end[slot]:
            self._end(subject, self._standing(self._after(subject), rows[0], bounds[0]))
        return True

    def _end(self, subject: int, end: Position | FlushedRow) -> None:
        self._known.pop(subject, None)
        if self._wanted[subject]:
            self.ends[subject] = end

    def _before(self, subject: int, at: int) -> Position:
        """The position before a step as a session has it, where the row of floats is not enough."""
        start, first = self._starts[subject], int(self._begins[subject])
        if subject in self._known:
            first, position = self._known[subject]
        elif isinstance(start, Position):
            position = start
        elif self._exact is None:
            raise DphmmError(f"run: the row before t = {start.t} is not enough, and `exact` was not given")
        else:
            position = self._exact(subject)
        for step in range(first, at):
            position, _ = self._own.stepped(position, *self._step(step))
        return position

    def _placed(self, batch: Batch, slot: int, position: Position) -> None:
        """Put a slot at a position, or where floats serve again after it; kept, if that is after the last step."""
        subject = int(batch.subject[slot])
        while batch.at[slot] < batch.end[slot] and position.prior.row is None and not self._served(int(batch.at[slot])):
            position = self._one(int(batch.at[slot]), position)
            batch.at[slot] += 1
        batch.stopped[slot] = False
        if batch.at[slot] == batch.end[slot]:
            self._end(subject, position)
            return
        self._known[subject] = int(batch.at[slot]), position
        row = position.prior.row
        batch.row(slot)[:] = _flushed(position.prior) if row is None else row
        batch.bounds[slot] = _EXACT if row is not None else (0.0, 4.0 * _kernels.filter.TRUSTED)

    def _served(self, at: int) -> bool:
        """Whether floats serve a step even if some probabilities are too small for them: a release, of a law."""
        number, skipped, z = self._step(at)
        return not skipped and self._own.law_of(number, z) is not None

    def _step(self, at: int) -> tuple[int, int, IntArray]:
        observed = self._observed
        return int(observed.numbers[at]), int(observed.skipped[at]), observed.z[at]

    def _after(self, subject: int) -> int:
        """The step after a subject's last one here."""
        last = int(self._begins[subject + 1]) - 1
        return int(self._observed.t[last]) + max(1, int(self._observed.skipped[last]))

    def _standing(self, t: int, row: FloatArray, bound: FloatArray) -> Position | FlushedRow:
        if bound[1] > 0.0:
            return FlushedRow(t, row, bound)
        return Position(t, Belief.of_row(row, self._own.schedule.support(t)))

    def _one(self, at: int, position: Position) -> Position:
        """One step as a session takes it, with its estimate."""
        own = self._own
        position, posterior = own.stepped(position, *self._step(at))
        if self._observed.estimated[at] or not self._observed.skipped[at]:
            guess = estimate(posterior, own.space.own_answers, own.loss)
            self.estimates[at], self.states[at] = guess.answer, guess.state
        return position


def _flushed(belief: Belief) -> FloatArray:
    """Probabilities (N,) of a belief in logs, 0 where they are too small for floats."""
    row = belief.probability
    return np.where(row >= _kernels.filter.TRUSTED, row, 0.0)


def _flushing() -> Flushing:
    return _kernels.filter_batch.Flushing(_kernels.filter.TRUSTED, _RATIO, _CERTAIN)


def _cuts(begins: IntArray, pieces: int) -> list[int]:
    """Where to divide subjects into about so many pieces of like length; ``begins`` as in `Subjects`."""
    wanted = np.arange(1, pieces) * begins[-1] // pieces
    return sorted({0, len(begins) - 1, *np.searchsorted(begins, wanted).tolist()})
