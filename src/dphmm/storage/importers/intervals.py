"""Intervals (start, end, label) of activity logs, time-use surveys and careers, as one state per time step.

A step has the label of the interval that covers its beginning: start <= k step < end, with steps counted from 1970 UTC.
If several do, the one that began last counts, and among those that began together the later line. A step that none
covers has no row, unless gaps are given a label. Only a person's own intervals decide about that person's steps.

The layout of Ordonez (UCI, Activities of Daily Living) has two header lines, the second one of dashes, and several tabs
between columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import exact_number
from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.states.maps import parse_duration
from dphmm.states.space import check_names
from dphmm.states.trajectory import MICROSECONDS, Trajectories, one_of_each
from dphmm.storage.cells import Roles, times_of, user_column
from dphmm.storage.columns import Numbering, Times
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.folders import read_files
from dphmm.storage.importers.imported import Imported, imported_rows
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import IMPORTED, Layout, Progress
from dphmm.storage.trajectories import Expansion
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Most steps of one interval, and of a gap that is given a label; of all of one person; and of everybody together.
MOST_STEPS = 10**5
MOST_STEPS_OF_ONE = 10**7
MOST_STEPS_OF_ALL = 2 * 10**8
_INTERVALS = replace(IMPORTED, underlined=True)
_NAMES = {
    "start": ("start", "starttime", "begin", "begins", "from"),
    "end": ("end", "endtime", "finish", "until", "to"),
    "label": ("label", "activity", "state", "status", "what"),
}


def import_intervals(
    source: PathLike,
    *,
    step: object,
    time_column: str | None = None,
    state_column: str | None = None,
    gap_label: str | None = None,
    delimiter: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Imported:
    """Intervals of a table, a folder or an archive, expanded to one row per ``step`` (seconds, or "5min").

    The columns are start, end and label (activity, state), or ``time_column`` "START,END" and ``state_column``;
    ``delimiter`` defaults to tabs but for .csv and .parquet; other ``options`` as `Layout.changed` takes them.
    ``gap_label`` : the state of steps between two intervals of a person that no interval covers. Dropped besides the
    reasons of times: invalid_interval (it ends before it begins, or is longer than 100,000 steps), too_many_steps (with
    those before it in the file, the person's intervals have more than 10,000,000), missing_state, missing_user.

    Raises InvalidInput as `read_source`, for a step that is none, and where all people together have more than
    200,000,000 steps: no person has more than a twentieth of these.
    """
    seconds = exact_number(parse_duration(step, "step"), "step")
    width = int(seconds * MICROSECONDS)
    if width <= 0 or width != seconds * MICROSECONDS:
        raise InvalidInput("step", step, "a time of whole microseconds, more than 0")
    if gap_label is not None:
        check_names([gap_label], 1)
    is_csv = Path(source).name.lower().endswith((".csv", ".csv.gz", ".parquet"))
    layout = _INTERVALS.changed(delimiter=delimiter or ("comma" if is_csv else "tabs"), **options)
    chosen: dict[str, str | None] = {"label": state_column}
    if time_column is not None:
        chosen["start"], _, chosen["end"] = (part.strip() for part in time_column.partition(","))

    def expanding(names: Sequence[str], given: Layout) -> Expansion:
        return _ends(names, given, chosen, width)

    reading = read_files(source, layout, expanding=expanding, progress=progress)
    rows, notes = in_steps(reading.loaded.trajectories, width, gap_label)
    stepped = reading._replace(loaded=reading.loaded._replace(trajectories=rows), notes=(*reading.notes, *notes))
    return imported_rows("intervals", stepped, layout, source)


def _ends(names: Sequence[str], layout: Layout, chosen: dict[str, str | None], width: int) -> Expansion:
    """Intervals as rows whose time is the start and whose step is the end, both in microseconds."""
    user = user_column(names, layout)
    columns = {role: chosen.get(role) or _named(role, names) for role in _NAMES}
    for role, name in columns.items():
        if name not in names:
            field, expected = ("state_column", "one of ") if role == "label" else ("time_column", "START,END, two of ")
            raise InvalidInput(field, name or "nothing", expected + listed(names))
    start, end, label = (str(columns[role]) for role in _NAMES)
    times = times_of(layout, start), times_of(layout, end)
    spent = _Spent(width, layout.spelling)

    def expand(table: pa.Table) -> tuple[pa.Table, IntArray, dict[str, IntArray]]:
        import pyarrow as pa

        first, last, lost, valid = read_ends(table, *times, longest=(MOST_STEPS + 1) * width - 1)
        people = table.column(user)
        within = spent.add(people.filter(pa.array(valid)), user, first[valid], last[valid])
        origin = np.flatnonzero(valid)
        lost["too_many_steps"], origin = origin[~within], origin[within]
        rows = table.select(list(dict.fromkeys((user, label)))).take(pa.array(origin))
        made = {"user": rows.column(user), "start": first[origin], "end": last[origin], "label": rows.column(label)}
        return pa.table(made), origin, lost

    roles = Roles(user="user", time="start", step="end", state="label")
    return Expansion(tuple(dict.fromkeys((user, start, end, label))), roles, expand, times[0])


def read_ends(
    table: pa.Table, start: Times, end: Times, longest: int
) -> tuple[IntArray, IntArray, dict[str, IntArray], BoolArray]:
    """The starts and ends of intervals (n,), in microseconds; invalid ones by reason; and a mask of the valid ones.

    An interval that ends before it begins, or more than ``longest`` after, is an invalid_interval.
    """
    first, first_marks = start.add(table.column(start.field))
    last, last_marks = end.add(table.column(end.field))
    lost: dict[str, IntArray] = {}
    for marks in (first_marks, last_marks):
        for reason, mark in marks.items():
            lost[reason] = np.union1d(lost.get(reason, np.empty(0, np.int64)), np.flatnonzero(mark))
    right = np.ones(len(table), dtype=np.bool_)
    right[np.concatenate(list(lost.values()))] = False
    wrong = right & ((last < first) | (last - first > longest))
    lost["invalid_interval"] = np.flatnonzero(wrong)
    return first, last, lost, right & ~wrong


class _Spent:
    """The number of steps of each person's intervals so far, over all parts of a source."""

    def __init__(self, width: int, spelling: str) -> None:
        self._width = width
        self._people = Numbering(key_by(spelling))
        self._steps = np.zeros(0, dtype=np.int64)

    def add(self, users: pa.ChunkedArray, field: str, first: IntArray, last: IntArray) -> BoolArray:
        """A mask of the next intervals (n,): True within the bound of their person, with all intervals before them."""
        number, missing = self._people.add(users, field)
        self._steps = np.concatenate([self._steps, np.zeros(len(self._people.labels) - len(self._steps), np.int64)])
        steps = np.where(missing, 0, _first_step(last, self._width) - _first_step(first, self._width))
        order = np.argsort(number, kind="stable")
        total = np.cumsum(steps[order])
        begins = np.flatnonzero(np.diff(number[order], prepend=-2))
        before = np.repeat(total[begins] - steps[order][begins], np.diff(begins, append=len(order)))
        of_person = np.where(missing, 0, np.append(self._steps, 0)[number])
        cumulative = np.empty(len(steps), dtype=np.int64)
        cumulative[order] = total - before
        within: BoolArray = of_person + cumulative <= MOST_STEPS_OF_ONE
        np.add.at(self._steps, number[~missing], steps[~missing])
        return within


def _first_step(time: IntArray, width: int) -> IntArray:
    """The first step (n,) that begins at or after a time in microseconds."""
    return -np.floor_divide(-time, width)


def _named(role: str, names: Sequence[str]) -> str | None:
    """The column of a role by its name, whatever its capitals and blanks."""
    plain = plain_names(names)
    return next((plain[name] for name in _NAMES[role] if name in plain), None)


def plain_names(names: Sequence[str]) -> dict[str, str]:
    """Names of columns by their letters and digits alone, in small letters; the first of two alike."""
    return {re.sub(r"[\W_]+", "", name).lower(): name for name in reversed(names)}


def in_steps(intervals: Trajectories, width: int, gap_label: str | None) -> tuple[Trajectories, list[str]]:
    """One row per step of ``width`` microseconds of intervals whose step is their end; and what to tell of them."""
    assert intervals.time is not None and intervals.step is not None and intervals.state is not None
    first, beyond = (_first_step(ends, width) for ends in (intervals.time, intervals.step))
    many = beyond - first
    _check_total(int(many.sum()))
    row = np.repeat(np.arange(len(many)), many)
    step = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    order = np.lexsort((row, intervals.time[row], step, intervals.user[row]))
    row, step = row[order], step[order]
    latest = one_of_each(intervals.user[row], step, "last") if len(row) else np.empty(0, np.bool_)
    notes = [
        f"{count} {words}"
        for count, words in (
            (int((many == 0).sum()), "interval(s) cover the beginning of no step: a shorter step= shows them"),
            (int(len(latest) - latest.sum()), "step(s) with several intervals: the one that began last counts"),
        )
        if count
    ]
    row, step = row[latest], step[latest]
    user, state = intervals.user[row], intervals.state[row]
    if gap_label is not None:
        user, step, state = _with_gaps(user, step, state, gap_label)
    if not len(step):
        raise InvalidInput(
            "step", f"{width / MICROSECONDS:g} s, of which no interval covers a beginning", "a shorter one"
        )
    # Somebody whose intervals cover no step has no row.
    seen, owner = np.unique(user, return_inverse=True)
    users = tuple(intervals.users[number] for number in seen.tolist())
    rows = replace(intervals, users=users, user=owner.astype(np.int32), time=step * width, step=None, state=state)
    return rows, notes


def _check_total(steps: int) -> None:
    if steps > MOST_STEPS_OF_ALL:
        raise InvalidInput("step", f"{steps} steps in all", f"a longer one: at most {MOST_STEPS_OF_ALL}")


def _with_gaps(user: Any, step: IntArray, state: Any, label: str) -> tuple[Any, IntArray, Any]:
    """The rows with one for each step of a gap between two rows of a user, unless it, or all before it, is too long."""
    ahead = np.zeros(len(step), dtype=np.int64)
    ahead[:-1] = np.where(user[1:] == user[:-1], np.diff(step) - 1, 0)
    ahead[ahead > MOST_STEPS] = 0
    # Rows are by user, so the sum before a user's first row is that of the others.
    total = np.cumsum(ahead)
    ahead[total - (total - ahead)[np.searchsorted(user, user)] > MOST_STEPS_OF_ONE] = 0
    _check_total(len(step) + int(ahead.sum()))
    at = np.repeat(np.arange(len(step)), ahead + 1)
    nth = np.arange(len(at)) - np.searchsorted(at, at)
    states = state[at]
    states[nth > 0] = label
    return user[at], step[at] + nth, states
