"""The person, day and step that a report shows first; and the names of rows, days and steps."""

from __future__ import annotations

import numpy as np

from dphmm._cached import cached_property
from dphmm.report import words
from dphmm.report.content import PersonBelief, ReleaseReport
from dphmm.statement.sentences import clock, off
from dphmm.types import IntArray

DAY = 86_400
#: The step that is shown first is the answer nearest to this time of the day.
_FIRST = 14 * 3600
#: Names of days with an hour are so long; half as long again with their year.
_DAYS_APART = 0.3


class Shown:
    """The person, the day and the step that a report shows first, and the names of its moments."""

    def __init__(self, report: ReleaseReport) -> None:
        self.report = report

    @property
    def answered(self) -> bool:
        """True if anything was asked."""
        return bool(self.report.rows.asked.any())

    @property
    def alone(self) -> bool:
        """True if the file has one row, so that nothing is over time."""
        return len(self.report.rows) == 1

    @cached_property
    def person(self) -> PersonBelief | None:
        """The person who is shown first, chosen by what was published, not by the truth; the first of named ones."""
        persons = self.report.persons
        return persons[self.first_person] if persons else None

    @cached_property
    def first_person(self) -> int:
        """The number of that person: the first by name with an answer whom a reader places inside the map.

        If there is no such person it is the first with an answer.
        """
        if self.report.chosen:
            return 0
        asked = self.report.rows.asked
        answered = [n for n, person in enumerate(self.report.persons) if asked[person.rows].any()]
        inside = (n for n in answered if self._is_inside(self.report.persons[n]))
        return next(inside, answered[0] if answered else 0)

    def _is_inside(self, person: PersonBelief) -> bool:
        """True if the belief about a person at the step that is shown, and the answer there, are off the map's edge."""
        cells, (_, at) = self.report.cells, self._opening(person)
        if cells is None or person.levels is None:
            return False
        row = int(person.rows[at])
        answer = self.report.rows.z[row][:2]
        beyond = self.report.rows.asked[row] and bool(((answer < cells.low) | (answer > cells.high)).any())
        return not beyond and not person.levels[at][cells.at_edge].any()

    def _opening(self, person: PersonBelief) -> tuple[int, int]:
        """The day and the row of a person that are shown first.

        The day with most answers, or the longest of several; its answer nearest to 14:00, or else its first row.
        """
        days, asked, time = self.days(person), self.report.rows.asked[person.rows], self.report.rows.time
        counts = [(int(asked[at].sum()), len(at)) for _, at in days]
        day = counts.index(max(counts))
        at = days[day][1]
        answers = at[asked[at]]
        if time is None or not len(answers):
            return day, int([*answers, *at][0])
        seconds = self.report.local(time[person.rows[answers]]) % DAY
        return day, int(answers[np.argmin(np.abs(seconds - _FIRST))])

    @property
    def who_is_first(self) -> str:
        """The reason why this person is shown first."""
        if self.report.chosen:
            return "chosen by who made this page"
        if self.first_person > 0 and self._is_inside(self.report.persons[self.first_person]):
            return "the first by name whom a reader places inside the map"
        return "the first by name" + " who has an answer" * (self.first_person > 0)

    @cached_property
    def first(self) -> tuple[int, int]:
        """The number of the day that is shown of this person, and which of the person's rows."""
        assert self.person is not None
        return self._opening(self.person)

    @cached_property
    def day(self) -> IntArray:
        """The numbers of the first person's rows on that day."""
        assert self.person is not None
        return self.days(self.person)[self.first[0]][1]

    def days(self, person: PersonBelief) -> list[tuple[str, IntArray]]:
        """The days of a person, by name; without times all steps as one."""
        time = self.report.rows.time
        at = np.arange(len(person.rows))
        if time is None:
            return [("all steps", at)]
        local = self.report.local(time[person.rows]) // DAY
        starts = np.flatnonzero(np.diff(local, prepend=local[0] - 1))
        year = words.several_years(self.report)
        return [(words.day_name(int(local[part[0]]) * DAY, year), part) for part in np.split(at, starts[1:])]

    @cached_property
    def asked(self) -> list[int]:
        """The first person's rows of that day that have an answer."""
        return [] if self.person is None else self.day[self.report.rows.asked[self.person.rows[self.day]]].tolist()

    @property
    def shown_day(self) -> str:
        """The day of the first person that is shown; empty without times."""
        if self.person is None or self.report.rows.time is None:
            return ""
        return f", {self.days(self.person)[self.first[0]][0]}"

    def moment(self, row: int) -> str:
        """The moment of a row: its time of the day, or its step."""
        if self.report.rows.time is None:
            return f"step {int(self.report.rows.step[row]):,}"
        return clock(self.report.local(int(self.report.rows.time[row])) % DAY)

    def how_far(self, person: PersonBelief, at: int) -> str:
        """The reader's error at a row of a person: measured if the truth may be shown, else as they expect it."""
        report, row = self.report, int(person.rows[at])
        if report.truth is not None and not np.isnan(report.truth.errors[row]):
            return f"a reader is {_together(off(float(report.truth.errors[row]), report.space.unit))}"
        if person.spread is not None:
            return f"a reader expects to be {_together(off(float(person.spread[at]), report.space.unit))}"
        return ""

    # -- axes over time --------------------------------------------------------------------------------------------

    def places(self, people: list[PersonBelief]) -> list[list[int]]:
        """The positions of each person's rows on one axis: bins of the clock, or steps without one."""
        rows, step = self.report.rows, self.report.made.model.step
        if rows.time is None or step is None:
            at = [rows.step[person.rows] for person in people]
        else:
            at = [rows.time[person.rows] // step for person in people]
        first = min(int(bins[0]) for bins in at)
        return [(bins - first).tolist() for bins in at]

    def ticks(self, people: list[PersonBelief], n: int) -> list[tuple[float, str]]:
        """The ends of an axis of ``n`` places that people share, and midnights between whose names have room."""
        rows, step = self.report.rows, self.report.made.model.step
        at = np.concatenate([person.rows for person in people])
        if n < 2:
            return []
        if rows.time is None:
            return [(0.0, f"step {int(rows.step[at].min()):,}"), (float(n), f"step {int(rows.step[at].max()):,}")]
        begin, end = (self.report.local(int(moment)) for moment in (rows.time[at].min(), rows.time[at].max()))
        if begin // DAY == end // DAY:
            return [(0.0, clock(begin)), (float(n), clock(end))]
        year = words.several_years(self.report)
        apart = 1.5 * _DAYS_APART if year else _DAYS_APART
        ticks = [(0.0, f"{words.day_name(begin, year)} {clock(begin)}")]
        # Where a row is missing on an axis of rows, no place on it is that of a time.
        for day in range(begin // DAY + 1, end // DAY + 1) if step and end - begin == (n - 1) * step else ():
            place = (day * DAY - begin) / step
            if ticks[-1][0] + apart * n <= place <= (1 - apart) * n:
                ticks.append((place, f"{words.day_name(day * DAY, year)} 0:00"))
        return [*ticks, (float(n), f"{words.day_name(end, year)} {clock(end)}")]


def _together(error: str) -> str:
    """An error that no line breaks: "310 m off"."""
    return f"{error} off".replace(" ", "\u00a0")
