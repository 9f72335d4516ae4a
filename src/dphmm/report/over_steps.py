"""The reader's error at each step of a block of a report, expected and measured; and the axis of these steps."""

from __future__ import annotations

import numpy as np

from dphmm._cached import cached_property
from dphmm.report.content import ReleaseReport
from dphmm.report.shown import DAY
from dphmm.statement.sentences import clock
from dphmm.types import FloatArray, IntArray

#: Steps that come once are drawn up to this number.
_MOST_DRAWN = 1000
#: How far apart the names of ticks are at least, as a share of the axis.
TICKS_APART = 0.14


class OverSteps:
    """The errors of a report by the step of their block; by the step of the file where each comes once."""

    def __init__(self, report: ReleaseReport) -> None:
        self.report = report

    @cached_property
    def by_day(self) -> bool:
        """True if a block is a day of the clock."""
        promise, model = self.report.promise, self.report.made.model
        if model.step is None or DAY % model.step:
            return False
        return promise is None or promise.per == "1d"

    @cached_property
    def _recurs_after(self) -> int | None:
        """After how many steps those of a block or window, or of a day, come again; None where each comes once."""
        promise, expected = self.report.promise, self.report.prospects.expected
        once = promise.steps is not None if promise is not None else not self.by_day
        return None if once or expected is None else expected.steps

    @cached_property
    def _steps_of_people(self) -> range:
        """The steps from the first to the last row of the people in the figures."""
        steps = self.report.rows.step[self.report.believed[0]]
        return range(int(steps.min()), int(steps.max()) + 1) if len(steps) else range(1, 2)

    @cached_property
    def n(self) -> int:
        """Over how many steps it is drawn how far off a reader is."""
        return self._recurs_after or min(len(self._steps_of_people), _MOST_DRAWN)

    @property
    def left_out(self) -> str:
        """A sentence where not all steps are drawn."""
        every = len(self._steps_of_people)
        if self._recurs_after is not None or every <= self.n:
            return ""
        return f"Drawn: the first {self.n:,} of {every:,} steps. "

    @property
    def _first(self) -> int:
        """The step at which that begins; where each comes once the first of the people in the figures."""
        return 1 if self._recurs_after is not None else self._steps_of_people.start

    @cached_property
    def _place(self) -> IntArray:
        """The step of each row, from 0; within its block, where steps come again."""
        rows, model, promise = self.report.rows, self.report.made.model, self.report.promise
        if self._recurs_after is None:
            # Rows of other people before it are drawn nowhere.
            return np.where(rows.step < self._first, self.n, rows.step - self._first)
        if rows.time is not None and model.step is not None and (promise is None or isinstance(promise.per, str)):
            return np.asarray(self.report.local(rows.time) // model.step % self.n)
        return np.asarray((rows.step - 1) % self.n)

    @cached_property
    def believed(self) -> tuple[FloatArray, FloatArray]:
        """The mean error (L,) that a reader expects at each step, and without the file; NaN without rows."""
        at, spreads = self.report.believed
        drawn = self._place[at] < self.n
        at, spreads = at[drawn], spreads[drawn]
        place = self._place[at]
        alone = self.report.alone[at]
        with np.errstate(invalid="ignore"):
            rows = np.bincount(place, minlength=self.n)
            expected, without = (np.bincount(place, errors, minlength=self.n) / rows for errors in (spreads, alone))
        return expected, without

    @cached_property
    def measured(self) -> tuple[FloatArray | None, FloatArray | None]:
        """The measured error at each step (L,), and the bounds (L, 2) of 8 in 10 rows; for labels, the first alone."""
        truth = self.report.truth
        if truth is None or not truth.counted.any():
            return None, None
        mean, band = np.full(self.n, np.nan), np.full((self.n, 2), np.nan)
        counted = truth.counted & (self._place < self.n)
        for step in np.unique(self._place[counted]).tolist():
            errors = truth.errors[counted & (self._place == step)]
            mean[step], band[step] = errors.mean(), np.quantile(errors, (0.1, 0.9))
        return mean, None if self.report.space.has_labels else band

    @cached_property
    def asked(self) -> list[int]:
        """The steps that a planned schedule asks, where they are not most of them."""
        schedule = self.report.schedule
        if schedule is None or schedule.kind != "planned":
            return []
        place = np.unique(self._place[self.report.rows.asked])
        asked = place[place < self.n].tolist()
        return asked if len(asked) <= self.n // 2 else []

    @cached_property
    def drawn(self) -> tuple[IntArray, list[tuple[float, str]]]:
        """The steps that are drawn, and the ticks of their axis; a file of less than a block is over its own steps."""
        known = np.flatnonzero(~np.isnan(self.believed[0]))
        if not 0 < len(known) < self.n:
            return np.arange(self.n), self._ticks
        first, last = int(known[0]), int(known[-1])
        room = TICKS_APART * (last + 1 - first)
        inner = [(tick, name) for tick, name in self._ticks if first + room <= tick <= last + 1 - room]
        return np.arange(first, last + 1), [(float(first), self.name(first)), *inner, (last + 1.0, self.name(last))]

    @property
    def _ticks(self) -> list[tuple[float, str]]:
        if self.by_day:
            return [(self.n * part / 4, f"{6 * part}:00" if part else "0:00") for part in range(5)]
        return [(0.0, f"step {self._first:,}"), (float(self.n), f"step {self._first + self.n - 1:,}")]

    def name(self, step: int) -> str:
        """A step of the axis, from 0: its time of the day, or its number."""
        return clock(step * DAY // self.n) if self.by_day else str(step + self._first)
