"""One self-contained HTML page: nothing is loaded, no script but the page's own may run, readable on paper."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from shlex import quote as quoted
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dphmm._cached import cached_property
from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.mechanisms.answer_table import is_reference
from dphmm.planning import AFTER, STAYERS
from dphmm.report import charts, maps, words
from dphmm.report.beliefs import Levels, bands, written
from dphmm.report.content import Person, ReleaseReport, Share, rounded_down
from dphmm.report.palette import LABELS, css
from dphmm.report.svg import Drawing
from dphmm.schedule_plan import Stays
from dphmm.statement import sentences
from dphmm.statement.parts import member
from dphmm.statement.sentences import (
    PHRASES,
    UNIT_GAP,
    clock,
    epsilon_words,
    every_nth,
    functions_of,
    length,
    off,
    plural,
)
from dphmm.statement.story import (
    after_words,
    by_chance,
    stay_words,
)
from dphmm.states.grid import Grid
from dphmm.states.space import LABELS_WRONG
from dphmm.storage.inputs import PathLike, replacing
from dphmm.types import FloatArray, IntArray

#: An option of the command line.
_OPTION = re.compile(r"--[a-z]+")
_BLANKS = re.compile(r"[ \n]+")
#: What may stand in a style rule, of a statement that anybody may have written; and what it is the hash of.
_SHA256, _RELEASED = re.compile(r"[0-9a-f]{64}"), "the released file"
#: In place of a figure that takes too many plans.
_NOT_COMPUTED = "not computed"
#: Small maps, people in strips, blocks of the budget and shares of labels that are drawn; shares in numbers.
_SMALL_MAPS, _STRIPS, _BLOCKS, _SHARES, _SHARE_ROWS = 12, 8, 14, 12, 1200
_DAY = 86_400
#: The step that is shown first is the answer nearest to this time of the day.
_FIRST = 14 * 3600
_TOO_FEW = 8
#: Quarters of a day that are named below the slider, in seconds, and how far apart words there are at least, as a share
#: of it.
_QUARTERS, _TICKS_APART = (6 * 3600, 12 * 3600, 18 * 3600), 0.14
#: Steps that come once are drawn up to this number.
_MOST_CHARTED = 1000
#: Names of days with an hour are so long; half as long again with their year.
_DAYS_APART = 0.3
#: Mean width of the intervals of shares from which on they tell next to nothing; labels that have a colour.
_TELLS_NOTHING, _COLOURS = 0.5, len(LABELS)
#: Height of the first screen beside its four answers, and what a chart there has around it: heading, caption, numbers.
_ROOM, _AROUND = 640.0, 94.0
#: People whose numbers are on the first screen; lowest and highest chart of one; the same for a strip of labels.
_ON_FIRST, _LOW, _HIGH, _STRIP, _STRIP_HIGH = 3, 140.0, 300.0, 52.0, 84.0


def page(report: ReleaseReport) -> str:
    """The whole page; the same report gives the same text."""
    folder = files("dphmm.report").joinpath("templates")
    content = Content(report)
    style = css() + folder.joinpath("page.css").read_text(encoding="utf-8") + content.tick_style + content.print_style
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    given = {"c": content, "report": report, "style": style, "script": script, "policy": _policy(style, script)}
    return templates().get_template("page.html").render(**given) + "\n"


@cache
def templates() -> Environment:
    """The page's templates, compiled once: every text that is put into one is escaped."""
    environment = Environment(
        loader=PackageLoader("dphmm.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"line": line, "begin": begin, "prose": prose}
    environment.globals |= PHRASES | functions_of(sentences) | functions_of(words)
    environment.globals |= {
        "BLOCKS": sentences.BLOCKS,
        "CAP_AS_STATED": words.CAP_AS_STATED,
        "LABELS_WRONG": LABELS_WRONG,
        "STAYERS": STAYERS,
        "in_short": in_short,
        "isnan": math.isnan,
        "stay_words": stay_words,
    }
    return environment


def line(text: str) -> Markup:
    """A text, escaped, with one blank between its words."""
    return Markup(_BLANKS.sub(" ", str(escape(text))).strip(" "))


def begin(text: str) -> str:
    """A text that begins a sentence: its first letter is a capital."""
    first = text.strip()
    return first[:1].upper() + first[1:]


def prose(text: str) -> Markup:
    """A sentence in which no line ends between a number and its unit, or within the name of an option."""
    return Markup(_OPTION.sub(r'<span class="option">\g<0></span>', UNIT_GAP.sub("\u00a0", str(line(text)))))


def write_report(path: PathLike, report: ReleaseReport) -> Path:
    """Write the page, at once or not at all; one for the data owner alone can be read by nobody else.

    Returns the path. ``report`` is that of `read_report`. Raises InvalidInput for a path that cannot be written, and
    for the owner's page in the place of a public one.
    """
    if report.owner_only:
        refuse_public_page(Path(path))
    text = page(report)
    with replacing(path, private=report.owner_only) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def refuse_public_page(path: Path, field: str = "path") -> None:
    """Refuse to put the owner's page in the place of one that may have been given away, under the same name."""
    if not path.is_file():
        return
    there = path.read_text(encoding="utf-8", errors="replace")
    if '<span class="kind">' in there and '<body class="owner-only">' not in there:
        came = f"{path}, a page without the truth"
        raise InvalidInput(field, came, f"another name for the owner's page, as {path.stem}.owner{path.suffix}")


def _policy(style: str, code: str) -> str:
    """The page's content security policy.

    Nothing may be loaded from anywhere, and nothing may run but what is hashed here, whatever a name says; not even
    these scripts may make markup of a text.
    """
    markup = "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    return f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data:; {markup}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True)
class Figure:
    """A chart with its heading and caption, drawn for every width, and its numbers as a table."""

    name: str
    heading: str
    drawings: Sequence[Drawing]
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def csv(self) -> str:
        """The numbers as a download."""
        lines = [",".join(map(_cell, line)) for line in (self.columns, *self.rows)]
        return data_url("text/csv", "\r\n".join(lines) + "\r\n")


def _cell(text: str) -> str:
    # A spreadsheet would take these for a formula.
    safe = "'" + text if text[:1] in "=+-@\t" else text
    return '"' + safe.replace('"', '""') + '"' if any(mark in safe for mark in ',"\r\n') else safe


def data_url(kind: str, text: str) -> str:
    """A text as a link that holds it."""
    return f"data:{kind};charset=utf-8,{quote(text)}"


class Content:
    """Everything that the template prints, in the order of the page."""

    def __init__(self, report: ReleaseReport) -> None:
        self.report = report

    # -- the bar and the first screen ------------------------------------------------------------------------------

    @cached_property
    def guarantee(self) -> words.Guarantee:
        """The bars of the guarantee."""
        return words.guarantee(self.report)

    @cached_property
    def sureness(self) -> Drawing:
        """The bars of the first screen."""
        rows = self.guarantee.bars
        # Charts of labels and of one number take more of the screen than a map, and leave less to the answers.
        width = 236.0 if self.beside_answers else 276.0
        return charts.sureness_bars(rows, width, _bars_finding(rows), tall=False)

    @property
    def answered(self) -> bool:
        """Whether anything was asked."""
        return bool(self.report.rows.asked.any())

    @property
    def alone(self) -> bool:
        """Whether the file has one row, so that nothing is over time."""
        return len(self.report.rows) == 1

    @cached_property
    def measured(self) -> list[tuple[str, str]]:
        """For pages with the truth: the mean error, and that of nine in ten."""
        truth = self.report.truth
        if truth is None or truth.mean is None or self.report.space.has_labels:
            return []
        unit = self.report.space.unit
        ninth = float(np.quantile(truth.errors[truth.counted], 0.9))
        return [(off(truth.mean, unit), "measured, mean"), (off(ninth, unit), "or less at 9 of 10 rows")]

    # -- the map and its slider ------------------------------------------------------------------------------------

    @cached_property
    def person(self) -> Person | None:
        """Who is shown first: the first by name with an answer, whatever the truth is; of named ones the first."""
        persons = self.report.persons
        return persons[self._first_person] if persons else None

    @cached_property
    def _first_person(self) -> int:
        if self.report.chosen:
            return 0
        asked = self.report.rows.asked
        return next((n for n, person in enumerate(self.report.persons) if asked[person.rows].any()), 0)

    @property
    def who_is_first(self) -> str:
        """Why this person is shown first."""
        if self.report.chosen:
            return "chosen by who made this page"
        return "the first by name" + " who has an answer" * (self._first_person > 0)

    @cached_property
    def day(self) -> IntArray:
        """Which of the first person's rows are shown: the first day with most answers; of several the longest."""
        assert self.person is not None
        return self.days(self.person)[self._first_day][1]

    @cached_property
    def _first_day(self) -> int:
        assert self.person is not None
        asked, rows = self.report.rows.asked, self.person.rows
        days = [(int(asked[rows[at]].sum()), len(at)) for _, at in self.days(self.person)]
        return days.index(max(days))

    def days(self, person: Person) -> list[tuple[str, IntArray]]:
        """The days of a person, by name; without times all steps as one."""
        time = self.report.rows.time
        at = np.arange(len(person.rows))
        if time is None:
            return [("all steps", at)]
        local = self.report.local(time[person.rows]) // _DAY
        starts = np.flatnonzero(np.diff(local, prepend=local[0] - 1))
        year = words.several_years(self.report)
        return [(words.day_name(int(local[part[0]]) * _DAY, year), part) for part in np.split(at, starts[1:])]

    @cached_property
    def first_step(self) -> int:
        """Which of the person's rows is shown: the answer nearest to 14:00, else the first row of the day."""
        assert self.person is not None
        rows = self.person.rows[self.day]
        asked = np.flatnonzero(self.report.rows.asked[rows])
        if not len(asked):
            return int(self.day[0])
        if self.report.rows.time is None:
            return int(self.day[asked[0]])
        seconds = self.report.local(self.report.rows.time[rows[asked]]) % _DAY
        return int(self.day[asked[int(np.argmin(np.abs(seconds - _FIRST)))]])

    @property
    def shown_day(self) -> str:
        """Which day of the first person is shown; empty without times."""
        if self.person is None or self.report.rows.time is None:
            return ""
        return f", {self.days(self.person)[self._first_day][0]}"

    def moment(self, row: int) -> str:
        """When a row is: its time of the day, or its step."""
        if self.report.rows.time is None:
            return f"step {int(self.report.rows.step[row]):,}"
        return clock(self.report.local(int(self.report.rows.time[row])) % _DAY)

    @cached_property
    def map(self) -> Drawing | None:
        """The map of the first step."""
        if self.person is None or self.report.cells is None or not len(self.person.rows):
            return None
        row = int(self.person.rows[self.first_step])
        what = "the published answer" if self.report.rows.asked[row] else "no answer"
        finding = f"Map: {what} about {self.person.name} at {self.moment(row)}, and where a reader believes them to be."
        return maps.one_step(self.report, self.person, self.first_step, maps.SIDE, finding, small=False)

    @property
    def backdrop(self) -> Markup:
        """What lies under every map, once."""
        return maps.backdrop(self.report)

    @cached_property
    def slider(self) -> Drawing | None:
        """The believed spread of the first day, behind the slider."""
        person = self.person
        if person is None or person.spread is None or self.alone:
            return None
        drawing = Drawing(
            500, 60, "How wide the belief is at each step of the day; crosses are answers.", "range", scales=True
        )
        asked = np.flatnonzero(self.report.rows.asked[person.rows[self.day]])
        view = maps.view_of(self.report)
        outlying = view.kept(view(self.report.rows.z[person.rows[self.day[asked]]][:, :2]))[1].tolist()
        charts.draw_range(drawing, person.spread[self.day], asked.tolist(), outlying, 500 * self._places, 500.0)
        return drawing

    @property
    def widest(self) -> str:
        """How far off a reader expects to be where the curve of the first day is highest; empty without a curve."""
        if self.slider is None:
            return ""
        assert self.person is not None
        return self._widest(self.person, self.day)

    def _widest(self, person: Person, day: IntArray) -> str:
        return (
            ""
            if person.spread is None
            else off(float(np.nanmax(person.spread[day], initial=0.0)), self.report.space.unit)
        )

    def _moments(self, person: Person) -> IntArray:
        """When the rows of a person are: seconds since 1970, or steps."""
        rows = self.report.rows
        return rows.step[person.rows] if rows.time is None else rows.time[person.rows]

    @property
    def _stride(self) -> int:
        """The least that lies between two rows of a person: one step of the slider."""
        people = (self._moments(one) for one in self.report.persons if len(one.rows) > 1)
        return min((int(np.diff(moments).min()) for moments in people), default=1)

    @cached_property
    def _places(self) -> FloatArray:
        """Where the rows of the first day stand on the slider, from 0 to 1: by time, or by step."""
        assert self.person is not None
        passed = self._moments(self.person)[self.day]
        return np.asarray((passed - passed[0]) / max(1, passed[-1] - passed[0]))

    @cached_property
    def slider_ticks(self) -> list[tuple[float, str]]:
        """Words below the slider and where they stand, from 0 to 1: its ends, and quarters of the day between."""
        assert self.person is not None
        first, last = self.person.rows[self.day[[0, -1]]].tolist()
        found = [(0.0, self.moment(first))]
        if first == last:
            return found
        if self.report.rows.time is not None:
            begins, ends = self.report.local(self.report.rows.time[[first, last]]).tolist()
            for quarter in _QUARTERS:
                place = (quarter - begins % _DAY) / (ends - begins)
                if found[-1][0] + _TICKS_APART <= place <= 1 - _TICKS_APART:
                    found.append((place, clock(quarter)))
        return [*found, (1.0, self.moment(last))]

    @property
    def tick_style(self) -> str:
        """Where the words below the slider stand, as style rules: the page lets no element have a style of its own."""
        if self.map is None or self.slider is None:
            return ""
        inner = list(enumerate(self.slider_ticks, 1))[1:-1]
        return "".join(f".ends span:nth-child({number}){{left:{100 * place:.2f}%}}\n" for number, (place, _) in inner)

    @property
    def print_style(self) -> str:
        """The file's hash at the foot of a printed page, as a style rule: the fold that has it is not printed."""
        sha = str(member(self.report.statement, "file.sha256"))
        if not _SHA256.fullmatch(sha):
            return ""
        return f'@media print{{footer p::after{{content:" SHA-256 of {_RELEASED}: {sha}."}}}}\n'

    @cached_property
    def data(self) -> str:
        """What the script reads, as JSON that can stand inside a script element."""
        text = json.dumps(self._document(), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def _document(self) -> dict[str, Any]:
        report = self.report
        if report.cells is None or self.map is None:
            return {}
        view, cells = maps.view_of(report), report.cells
        shape: dict[str, Any] = {"n": len(cells)}
        if cells.rings:
            shape["rings"] = [np.round(view(ring), 1).ravel().tolist() for ring in cells.rings]
        else:
            corner = view(cells.low)
            shape |= {"columns": cells.columns, "rows": cells.rows, "x": float(corner[0]), "y": float(corner[1])}
            shape["side"] = cells.side * view.scale
        return {
            "cells": shape,
            "side": maps.SIDE,
            "inside": maps.INSIDE,
            "quarters": _QUARTERS,
            "apart": _TICKS_APART,
            "stride": self._stride,
            "timed": report.rows.time is not None,
            "zone": report.clock_changes,
            "unit": report.space.unit,
            "first": [self._first_person, self._first_day, self.first_step - int(self.day[0])],
            "people": [self._told(person, view) for person in report.persons],
        } | self._sets(view)

    def _told(self, person: Person, view: maps.View) -> dict[str, Any]:
        """A person for the script: days, times, answers, levels, spreads; the truth where it may be shown."""
        report, rows = self.report, person.rows
        asked = np.flatnonzero(report.rows.asked[rows])
        moments = self._moments(person)
        told: dict[str, Any] = {
            "name": person.name,
            "days": [[name, int(at[0]), len(at), self._widest(person, at)] for name, at in self.days(person)],
            "t": [int(moments[0]), *_runs(np.diff(moments))],
            "asked": asked.tolist(),
            "z": np.round(view(report.rows.z[rows[asked]][:, :2]), 1).ravel().tolist(),
        }
        if person.levels is not None and person.spread is not None:
            told["levels"] = [written(row) for row in person.levels]
            if person.guess is not None:
                told["guess"] = np.round(view(person.guess[:, :2]), 1).ravel().tolist()
            told["spread"] = [float(f"{value:.3g}") for value in person.spread.tolist()]
            if report.truth is None:
                told["expects"] = self._offs(person.spread)
        if report.truth is not None:
            places = np.round(view(report.truth.places[rows]), 1)
            told["truth"] = [None if np.isnan(value) else value for value in places.ravel().tolist()]
            told["off"] = self._offs(report.truth.errors[rows])
        return told

    def _offs(self, errors: FloatArray) -> list[str | None]:
        """Errors (n,) in words, None where there is none."""
        return [None if np.isnan(value) else off(value, self.report.space.unit) for value in errors.tolist()]

    def _sets(self, view: maps.View) -> dict[str, Any]:
        """For each drawn cell those that the policy joins to it, where cells are states and not too many."""
        policy, cells = self.report.one_policy, self.report.cells
        if policy is None or cells is None or cells.joined != 1 or self.report.space.n_states > 2500:
            return {}
        n = self.report.space.n_states
        near = [np.setdiff1d(policy.neighbors(state), [state]) for state in range(n)]
        if sum(map(len, near)) > 60_000:
            return {}
        patterns: dict[tuple[int, ...], int] = {}
        gaps = [tuple((cells.of[part] - cells.of[state]).tolist()) for state, part in enumerate(near)]
        of = [patterns.setdefault(gap, len(patterns)) for gap in gaps]
        inside = np.full(len(cells), -1)
        inside[cells.of] = of
        other = maps.around(self.report, self.central)
        corner = other(np.array([view.west, view.north]))
        return {
            "sets": [list(gap) for gap in patterns],
            "set": inside.tolist(),
            "centre": int(cells.of[self.central]),
            "called": words.cells_name(self.report),
            "zoom": [other.scale / view.scale, float(corner[0]), float(corner[1])],
        }

    @cached_property
    def central(self) -> int:
        """The state in the middle."""
        space = self.report.space
        points = space.own_answers[:, :2]
        apart = np.linalg.norm(points - (points.min(axis=0) + points.max(axis=0)) / 2, axis=1)
        apart[space.merges[:, 0]] = np.inf
        return int(np.argmin(apart))

    # -- evidence --------------------------------------------------------------------------------------------------

    @cached_property
    def figures(self) -> list[Figure]:
        """The charts, for the downloads."""
        if not self.answered:
            return []
        made = (self.error_figure, self.nights_figure, self.bars_figure, self.budget_figure, *self.line_figures)
        return [figure for figure in made if figure is not None]

    @cached_property
    def error_figure(self) -> Figure | None:
        """How far off a reader is over the day."""
        report, expected = self.report, self.report.prospects.expected
        if self.alone or not self.answered or expected is None or report.found is None:
            return None
        found, steps = report.found, self._charted_steps
        measured, asked, believed = self.by_step(steps)[0], self.asked_steps(steps), self._in_block(steps)[0]
        now, base = off(found.error, found.unit), off(found.without, found.unit)
        curves, ticks = self.error_curves
        where = "Which label somebody has" if found.unit == LABELS_WRONG else "Where somebody is"
        heading = f"{where}: {now} off on average" if found.measured else f"{where}: expected {now} off"
        if found.unit == LABELS_WRONG:
            heading = heading.replace(" off", "")
        finding = f"{heading}; {base} without the file."
        drawings = [
            charts.error_chart(curves, width, found.unit, ticks, f"without the file {base}", finding)
            for width in charts.WIDTHS
        ]
        caption = f"Expected: by a reader who believes the model, of {report.rows_told}. "
        if measured is not None and report.truth is not None:
            whose = "simulated" if report.truth.simulated else "real"
            caption = f"Measured on the {whose} people. Dashed, and all that a public page has: expected of "
            caption += f"{report.rows_told}. "
            caption += "Band: 8 of 10 rows. " * (curves.band is not None)
        if self._recurs_after is None and (every := len(self._told_steps)) > steps:
            caption += f"Drawn: the first {steps:,} of {every:,} steps. "
        if found.measured and np.nan_to_num(believed).max() > found.without:
            caption += "Without the file: a guess for each step, their error the mean over all. "
        rows = [
            [self._step_name(step, steps), _number(value)] + ([] if measured is None else [_number(measured[step])])
            for step, value in enumerate(believed.tolist())
            if not np.isnan(value) or (measured is not None and not np.isnan(measured[step]))
        ]
        labels = found.unit == LABELS_WRONG
        unit = ", share wrong" if labels else f", {found.unit}" * bool(found.unit)
        columns = ["time" if self._by_day else "step", f"expected{unit}"]
        columns += [] if measured is None else [f"measured{unit}"]
        return Figure(
            "error",
            heading,
            drawings,
            caption + "×: an answer." * bool(asked),
            columns,
            rows,
        )

    @cached_property
    def error_curves(self) -> tuple[charts.Curves, list[tuple[float, str]]]:
        """How far off a reader is at each step of a block, and the ticks of that axis.

        A file of less than a block is drawn over its own steps; so is one whose steps come once.
        """
        report, steps = self.report, self._charted_steps
        assert report.found is not None
        (believed, without), (measured, band) = self._in_block(steps), self.by_step(steps)
        ticks, drawn, known = self.ticks(steps), slice(0, steps), np.flatnonzero(~np.isnan(believed))
        if 0 < len(known) < steps:
            drawn = slice(int(known[0]), int(known[-1]) + 1)
            ticks = self._part_ticks(drawn.start, drawn.stop, steps)
        curves = charts.Curves(
            believed[drawn],
            None if measured is None else measured[drawn],
            None if band is None else band[drawn],
            np.full(steps, report.found.without)[drawn] if report.found.measured else without[drawn],
            "expected of these rows",
            [place - drawn.start for place in self.asked_steps(steps) if drawn.start <= place < drawn.stop],
        )
        return curves, ticks

    @cached_property
    def _recurs_after(self) -> int | None:
        """After how many steps those of a block or window, or of a day, come again; None where each comes once."""
        promise, expected = self.report.promise, self.report.prospects.expected
        once = promise.steps is not None if promise is not None else not self._by_day
        return None if once or expected is None else expected.steps

    @cached_property
    def _told_steps(self) -> range:
        """The steps from the first to the last row of the people in the figures."""
        told = self.report.rows.step[self.report.believed[0]]
        return range(int(told.min()), int(told.max()) + 1) if len(told) else range(1, 2)

    @property
    def _charted_steps(self) -> int:
        """Over how many steps it is drawn how far off a reader is."""
        return self._recurs_after or min(len(self._told_steps), _MOST_CHARTED)

    @property
    def _first_charted(self) -> int:
        """The step at which that begins; where each comes once the first of the people in the figures."""
        return 1 if self._recurs_after is not None else self._told_steps.start

    def _in_block(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """How far off a reader expects to be at each step of a block (L,), and without the file; NaN without rows."""
        report = self.report
        place, (at, spreads) = self._place_in_block(steps), report.believed
        charted = place[at] < steps
        at, spreads = at[charted], spreads[charted]
        rows = np.bincount(place[at], minlength=steps)
        alone = np.full(len(at), np.nan) if report.alone is None else report.alone[at]
        with np.errstate(invalid="ignore"):
            believed, without = (np.bincount(place[at], one, minlength=steps) / rows for one in (spreads, alone))
        return believed, without

    def by_step(self, steps: int) -> tuple[FloatArray | None, FloatArray | None]:
        """The measured error at each step of a block (L,), and between which 8 of 10 rows lie (L, 2)."""
        report, truth = self.report, self.report.truth
        if truth is None or not truth.counted.any():
            return None, None
        place = self._place_in_block(steps)
        mean, band = np.full(steps, np.nan), np.full((steps, 2), np.nan)
        counted = truth.counted & (place < steps)
        for step in np.unique(place[counted]).tolist():
            errors = truth.errors[counted & (place == step)]
            mean[step], band[step] = errors.mean(), np.quantile(errors, (0.1, 0.9))
        return mean, None if report.space.has_labels else band

    def _place_in_block(self, steps: int) -> IntArray:
        """The step (n,) of each row, from 0; within its block, where steps come again."""
        rows, model, promise = self.report.rows, self.report.made.model, self.report.promise
        if self._recurs_after is None:
            # Rows of other people before it are drawn nowhere.
            before = rows.step < self._first_charted
            return np.where(before, self._charted_steps, rows.step - self._first_charted)
        if rows.time is not None and model.step is not None and (promise is None or isinstance(promise.per, str)):
            return np.asarray(self.report.local(rows.time) // model.step % steps)
        return np.asarray((rows.step - 1) % steps)

    def asked_steps(self, steps: int) -> list[int]:
        schedule, report = self.report.schedule, self.report
        if schedule is not None and schedule.kind == "planned":
            place = np.unique(self._place_in_block(steps)[report.rows.asked])
            found = place[place < steps].tolist()
            return found if len(found) <= steps // 2 else []
        return []

    @property
    def _by_day(self) -> bool:
        """Whether a block is a day of the clock."""
        promise, model = self.report.promise, self.report.made.model
        if model.step is None or _DAY % model.step:
            return False
        return promise is None or promise.per == "1d"

    def ticks(self, steps: int) -> list[tuple[float, str]]:
        if self._by_day:
            return [(steps * part / 4, f"{6 * part}:00" if part else "0:00") for part in range(5)]
        first = self._first_charted
        return [(0.0, f"step {first:,}"), (float(steps), f"step {first + steps - 1:,}")]

    def _part_ticks(self, start: int, stop: int, steps: int) -> list[tuple[float, str]]:
        """The ticks of a chart of the steps from ``start`` until ``stop``: its ends, and quarters of a day between."""
        ends = [(0.0, self._step_name(start, steps)), (float(stop - start), self._step_name(stop - 1, steps))]
        room = _TICKS_APART * (stop - start)
        inner = [(tick - start, name) for tick, name in self.ticks(steps) if start + room <= tick <= stop - room]
        return [ends[0], *inner, ends[1]]

    def _step_name(self, step: int, steps: int) -> str:
        return clock(step * _DAY // steps) if self._by_day else str(step + self._first_charted)

    @cached_property
    def nights_figure(self) -> Figure | None:
        """What is found of who stays at one place, by number of days or other blocks."""
        report, prospects = self.report, self.report.prospects
        stays, found = prospects.stays, report.found
        if (
            stays is None
            or found is None
            or len(stays.told) < 2
            or found.unit == LABELS_WRONG
            or not report.tells_stays
        ):
            return None
        own = "this file" if report.promise is None else f"{in_short(report.promise.exact)} {self._per} (this file)"
        told = [(own, "main", stays)]
        if prospects.smaller is not None:
            told.append((f"{in_short(prospects.smaller[0])} {self._per}", "other", prospects.smaller[1]))
        if prospects.unlimited is not None:
            told.append(("an answer at every step", "faint", prospects.unlimited))
        lines = [charts.Line(each.told, name, style) for name, style, each in told if each.told]
        space = report.space.unmerged
        inside = space.cell if isinstance(space, Grid) else None
        ends = words.stays_words(found)
        who = stay_words(found.unit)
        heading = f"{who[0].upper()}{who[1:]}: {ends}{words.more_answers_words(report)}"
        base = f"without the file {off(stays.without, found.unit)}"
        finding = f"{own}: {ends}; {off(stays.without, found.unit)} without the file."
        drawings = [
            charts.nights_chart(lines, width, found.unit, stays.what, inside, (stays.without, base), finding)
            for width in charts.WIDTHS
        ]
        caption = (
            f"Invented people who stay where they are for whole {stays.what}s, drawn from the model; a reader "
            "counts every answer of that time. Computed from public data alone. "
            f"Without the file: {off(stays.without, found.unit)} off."
        )
        if prospects.unlimited is not None and prospects.unlimited.found:
            longest = prospects.unlimited.found[-1].after
            caption += f" No budget: an answer at every step, computed for {longest} {stays.what}s."
        if inside is not None:
            caption += f" Shaded: less than one cell, {inside:,.0f} m."
        if report.promise is not None and report.promise.per is not None:
            caption += f" A budget for each {stays.what} does not hide a place for ever."
        numbers = {name: dict(each.told) for name, _, each in told if each.found}
        rows = [
            [str(after), *(_number(numbers[name].get(after, np.nan)) for name in numbers)]
            for after in sorted({after for each in numbers.values() for after in each})
        ]
        unit = f", {found.unit}" * bool(found.unit)
        return Figure("stays", heading, drawings, caption, [stays.what + "s", *(name + unit for name in numbers)], rows)

    @property
    def per(self) -> str:
        """The block of a sum: "a day", "in all"."""
        return self._per or ("a day" if self._by_day else "in all")

    @property
    def most_heads(self) -> tuple[str, str]:
        """What the columns of a person's most answers and largest sum in a block are called."""
        if self.per == "in all":
            return "answers in all", ""
        article, _, block = self.per.partition(" ")
        largest = f"largest {block}" if article in ("a", "an") else f"most {self.per}"
        return f"most answers {self.per}", f"ε, {largest}"

    @property
    def _per(self) -> str:
        return "" if self.report.promise is None else words.over_words(self.report.promise)

    @cached_property
    def bars_figure(self) -> Figure:
        """How sure a reader can be at most, by the number of answers that differ."""
        rows = self.guarantee.long_bars
        drawings = [charts.sureness_bars(rows, width, _bars_finding(rows), tall=True) for width in charts.WIDTHS]
        numbers = [[words.all_words(name), *text.split(words.ODDS)] for name, _, text in rows]
        return Figure(
            "sureness",
            "How sure at most, and by how much the odds change",
            drawings,
            words.SEVERAL * (len(rows) > 2),
            ["answers", "sure at most", "factor"],
            numbers,
        )

    def _cap_words(self) -> str:
        """What limits the sum, in a few words; nothing where it is not confirmed."""
        promise = self.report.promise
        if not self.report.confirmed:
            return ""
        return "no cap stated" if promise is None else f"cap: {in_short(promise.exact)} {self._per}"

    def _cap_caption(self) -> str:
        """What limits the sum, and who sees to it."""
        report = self.report
        if not report.confirmed:
            return "Without the policy no cap is told."
        if report.promise is None:
            return "No promise limits the sum."
        if report.elsewhere is None:
            return words.CAP_AS_STATED
        return "The cap is kept by the ledger: an answer that would pass it is refused."

    @cached_property
    def budget_figure(self) -> Figure | None:
        """What was spent over time, against the cap."""
        report = self.report
        if not self.answered or self.alone:
            return None
        blocks, users = self.blocks(), report.spent
        if not report.confirmed and report.elsewhere is None:
            # The rows say what they cost, and nothing confirms them.
            return None
        cap = None if report.promise is None else float(report.promise.exact)
        alike = len({tuple((count, total) for _, count, total in told) for _, told in users}) == 1
        heading = self._spent_heading(alike)
        limit = self._cap_words()
        finding = f"{heading}; {limit}." if limit else f"{heading}."
        drawings = [charts.budget_chart(blocks, cap, limit, width, finding) for width in charts.WIDTHS]
        caption = self._cap_caption()
        caption += (
            " Of this file alone: the ledger counts all files together."
            if report.elsewhere is None
            else " All files and queries of the ledger count."
        )
        if report.promise is not None and report.promise.per == "1d":
            caption += f" The budget renews at 0:00 {report.clock_name}."
        if not alike:
            caption += f" The line is of {self._most_spent}, who spent most in all."
        if self._blocks_left_out:
            caption += f" The first {_BLOCKS} {'days' if self._by_day else 'blocks'} with an answer are drawn."
        rows = [
            [name or str(number + 1), f"{max((total for _, total in points), default=0):g}"]
            for number, (name, points) in enumerate(blocks)
        ]
        return Figure("budget", heading, drawings, caption, ["day" if self._by_day else "block", "epsilon spent"], rows)

    def _spent_heading(self, alike: bool) -> str:
        """What was spent of what there is in a block, by whom."""
        report = self.report
        totals = [total for _, told in report.spent for _, _, total in told]
        spent = in_short(max(report.largest_of.values()))
        if report.promise is not None:
            spent += f" of {in_short(report.promise.exact)} {self._per}" + " by this file" * (report.elsewhere is None)
        else:
            spent += f" {self.per}"
        if not alike:
            return f"Nobody spent more than {spent}"
        who = "Every person" if len(report.spent) > 1 else "One person"
        return f"{who} spent {'' if len(set(totals)) == 1 else 'at most '}{spent}"

    @cached_property
    def _most_spent(self) -> str:
        """Who spent most in all, the first by name of several."""
        totals = [(sum(float(total) for _, _, total in told), user) for user, told in self.report.spent]
        return max(totals, key=lambda pair: pair[0])[1]

    @property
    def _blocks_left_out(self) -> bool:
        """Whether the person who spent most has more blocks than can be drawn."""
        return len({block for block, *_ in self.report.spending(self._most_spent)}) > _BLOCKS

    def blocks(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """Of the person who spent most, the first by name of several: the blocks, their answers in order.

        Of more than can be drawn those with an answer.
        """
        report = self.report
        user = self._most_spent
        spending = report.spending(user)
        found, year = [], words.several_years(report)
        drawn = {block for block, _, answers, _ in spending if answers or not self._blocks_left_out}
        for block in sorted(drawn)[:_BLOCKS]:
            part = [(step, answers, epsilon) for other, step, answers, epsilon in spending if other == block]
            points, total = [], 0.0
            # Of windows there is one block: everything.
            running = report.running(user) if report.promise is not None and report.promise.window is not None else None
            for place, (_, answers, epsilon) in enumerate(part):
                if answers:
                    total = total + float(epsilon) if running is None else float(running[place])
                    points.append(((place + 0.5) / len(part), total))
            timed = report.rows.time is not None and self._by_day
            found.append((words.day_name(block * _DAY, year) if timed else "", points))
        return found

    @cached_property
    def groups(self) -> list[tuple[str, str, str, str, str]]:
        """People who spent alike, and what they have left."""
        promise = self.report.promise
        kept = "as the statement says" if self.report.elsewhere is None else "enforced by the ledger"
        if not self.report.confirmed:
            cap = "not told"
        else:
            cap = "none" if promise is None else f"{in_short(promise.exact)} {self._per}, {kept}"
        return [(*group, cap) for group in words.spending_groups(self.report)]

    @cached_property
    def ladder(self) -> list[tuple[str, str, str, str, str, bool]]:
        """What other totals would give: total, answers, expected error, after the first and the last stay, chosen."""
        promise, rows = self.report.promise, []
        for plan in self.report.prospects.ladder:
            schedule, ends = plan.schedule, [off(error, plan.unit) for _, error in plan.stays.told]
            total, error, stays = in_short(schedule.promise.exact), off(plan.found.error, plan.unit), plan.stays
            own = promise is not None and schedule.promise.exact == promise.exact
            expected = self.report.prospects.expected
            if own and self.report.schedule is not None and expected is not None:
                # The file's own schedule, which need not be the one that would be chosen now.
                schedule, error = self.report.schedule, off(expected.found.error, plan.unit)
                ends = [off(error, plan.unit) for _, error in expected.found.stays]
                stays = self.report.prospects.stays or stays
            told = "" if schedule.kind == "planned" else "at most "
            answers = f"{told}{schedule.releases} × {epsilon_words(schedule.exact)}"
            rows.append((total, answers, error, *_first_and_last(ends, stays), own))
        return rows

    @cached_property
    def ladder_heads(self) -> tuple[str, str, str]:
        """The headings of the ladder: for what, and the two stays."""
        stays = self.report.prospects.stays
        what = "day" if stays is None else stays.what
        return self._per, f"{stay_words(self.report.space.unit)}, {after_words(what, 1)}", after_words(what, 7)

    @property
    def ladder_of(self) -> str:
        """Of which files the figures of the ladder are: simulated ones, not of the rows of this one."""
        report, expected = self.report, self.report.prospects.expected
        if expected is None:
            return ""
        schedule, found = report.schedule, report.found
        hours = "; other budgets ask at any hour" * (
            schedule is not None and schedule.kind == "planned" and self._by_day
        )
        own = "" if found is None else f" The rows of this file: {off(found.error, found.unit)}"
        if found is not None and found.measured and report.expected_of_rows is not None:
            own += f" measured, {off(report.expected_of_rows, found.unit)} expected"
        unsure = by_chance(max((plan.chance for plan in report.prospects.ladder), default=0.0))
        told = f"{unsure[:1].upper()}{unsure[1:]}. " * bool(unsure)
        since = "" if report.prospects.stays is None else "; who stays: from where blocks of this file begin"
        return f"Over {expected.found.rows}{hours}{since}. {told}{own}{'.' * bool(own)}".replace("  ", " ").strip()

    @property
    def ladder_has_seven(self) -> bool:
        """Whether anything is known of more than one stay: a sequence that ends has no second."""
        return any(row[4] not in ("", _NOT_COMPUTED) for row in self.ladder)

    @property
    def answers_of_day(self) -> int:
        """How many answers the day that is shown has."""
        return 0 if self.person is None else int(self.report.rows.asked[self.person.rows[self.day]].sum())

    @property
    def beyond(self) -> bool:
        """Whether an answer of the small maps lies beyond them."""
        person = self.person
        if person is None or self.report.cells is None:
            return False
        asked = [row for row in person.rows[self.day].tolist() if self.report.rows.asked[row]]
        view = maps.view_of(self.report)
        return bool(view.kept(view(self.report.rows.z[asked, :2]))[1].any())

    @cached_property
    def small_maps(self) -> list[tuple[Drawing, str, str]]:
        """A map for each answer of the first day: the map, when, how far off or how wide."""
        report, person = self.report, self.person
        if person is None or report.cells is None or person.levels is None or self.alone or not self.answered:
            return []
        asked = [int(at) for at in self.day if report.rows.asked[person.rows[at]]]
        every = -(-len(asked) // _SMALL_MAPS)
        found = []
        for at in asked[:: every or 1]:
            row = int(person.rows[at])
            finding = f"Map at {self.moment(row)}: the published answer and what a reader believes after all answers."
            found.append(
                (
                    maps.one_step(report, person, at, 300.0, finding, small=True),
                    self.moment(row),
                    self.how_far(person, at),
                )
            )
        return found

    def how_far(self, person: Person, at: int) -> str:
        """How far off a reader is at a row of a person: measured where the truth may be shown, else as they expect."""
        report, row = self.report, int(person.rows[at])
        if report.truth is not None and not np.isnan(report.truth.errors[row]):
            return f"a reader is {_together(off(float(report.truth.errors[row]), report.space.unit))}"
        if person.spread is not None:
            return f"a reader expects to be {_together(off(float(person.spread[at]), report.space.unit))}"
        return ""

    @cached_property
    def covered(self) -> tuple[Drawing, int] | None:
        """The cells that are joined to one: the map, and how many."""
        report = self.report
        if report.one_policy is None or report.cells is None or report.cells.joined != 1:
            return None
        told = report.statement.covered_distance
        metres = told.metres if told else None
        apart = f", {length(metres)} covered" if isinstance(metres, float) and metres > 0 else ""
        near = len(np.union1d(report.one_policy.neighbors(self.central), [self.central]))
        cells = words.cells_name(report)
        are = f"{near} {cells} of {report.space.n_states:,} are joined to one"
        are = are if near > 1 else f"no {cells[:-1]} is joined to one"
        finding = f"Map: {are}{apart}."
        return maps.covered_set(report, self.central, finding), near

    @cached_property
    def strip_figure(self) -> Figure | None:
        """Labels: what a reader believes of some people, step by step."""
        report = self.report
        people = [person for person in report.persons if person.state is not None]
        if not report.space.has_labels or not people:
            return None
        chosen = people[:: -(-len(people) // _STRIPS)]
        told, places = [], self.shared_places(chosen)
        for person, own in zip(chosen, places, strict=True):
            assert person.state is not None and person.probability is not None
            asked = np.flatnonzero(report.rows.asked[person.rows])
            answers = report.rows.z[person.rows[asked], 0].astype(np.int64)
            told.append(
                charts.Strip(
                    person.name,
                    person.state.tolist(),
                    person.probability.tolist(),
                    list(zip(asked.tolist(), answers.tolist(), strict=True)),
                    own,
                )
            )
        names = list(report.space.names)
        finding = f"What a reader believes of {plural(len(chosen), 'person', 'people')}, step by step."
        ticks = self.shared_ticks(chosen, 1 + max(own[-1] for own in places))
        pitch = min(_STRIP_HIGH, max(_STRIP, (_ROOM - _AROUND) / len(told)))
        drawings = [
            charts.strips(told, names, width, pitch, ticks, finding, self.colours) for width in charts.FIRST_WIDTHS
        ]
        rows = [
            [one.name, self.moment(row), names[label], f"{chance:.3f}"]
            for one, person in zip(told, chosen, strict=True)
            for row, label, chance in zip(person.rows.tolist(), one.label, one.probability, strict=True)
        ]
        caption = "Name: the likeliest label. Fainter: less sure. Squares on top: the published answers."
        caption += _some_of(chosen, people)
        heads = ["person", "when", "likeliest", "probability"]
        sure = float(np.mean(np.concatenate([one.probability for one in told])))
        of = "" if len(told) == len(self.report.rows.by_user) else f" of these {len(told)}"
        heading = f"Likeliest label, step by step: a reader is {100 * sure:.0f} % sure on average{of}"
        return Figure("people", heading, drawings, caption, heads, rows)

    def shared_places(self, people: Sequence[Person]) -> list[list[int]]:
        """Where the rows of each person lie on one axis: bins of the clock, or steps where there is none."""
        rows, step = self.report.rows, self.report.made.model.step
        if rows.time is None or step is None:
            at = [rows.step[person.rows] for person in people]
        else:
            at = [rows.time[person.rows] // step for person in people]
        first = min(int(own[0]) for own in at)
        return [(own - first).tolist() for own in at]

    def shared_ticks(self, people: Sequence[Person], n: int) -> list[tuple[float, str]]:
        """The ends of the axis that people share, and midnights between whose names have room."""
        rows, step, found = self.report.rows, self.report.made.model.step, [(0.0, "")]
        if rows.time is None or step is None:
            least = min(int(rows.step[person.rows[0]]) for person in people)
            names = [f"step {least:,}", f"step {least + n - 1:,}"]
        else:
            least = min(int(rows.time[person.rows[0]]) // step for person in people)
            begin, end = (self.report.local(place * step) for place in (least, least + n - 1))
            if begin // _DAY == end // _DAY:
                names = [clock(begin), clock(end)]
            else:
                year = words.several_years(self.report)
                apart = 1.5 * _DAYS_APART if year else _DAYS_APART
                names = [f"{words.day_name(moment, year)} {clock(moment)}" for moment in (begin, end)]
                for day in range(begin // _DAY + 1, end // _DAY + 1):
                    place = (day * _DAY - begin) / step
                    if found[-1][0] + apart * n <= place <= (1 - apart) * n:
                        found.append((place, f"{words.day_name(day * _DAY, year)} 0:00"))
        return [(0.0, names[0]), *found[1:], (float(n), names[1])] if n > 1 else []

    def _row_ticks(self, person: Person) -> list[tuple[float, str]]:
        n = len(person.rows)
        if n < 2:
            return []
        time = self.report.rows.time
        if time is None:
            return [(0.0, f"step {int(self.report.rows.step[person.rows[0]])}"),
                    (float(n), f"step {int(self.report.rows.step[person.rows[-1]])}")]  # fmt: skip
        ends = [self.report.local(int(time[person.rows[at]])) for at in (0, -1)]
        same, year = ends[0] // _DAY == ends[1] // _DAY, words.several_years(self.report)
        return [
            (place, clock(end) if same else words.day_name(end, year))
            for place, end in zip((0.0, float(n)), ends, strict=True)
        ]

    @cached_property
    def share_charts(self) -> list[tuple[str, Drawing]]:
        """Labels: the share of people with each, at each answer."""
        shares, names = self.report.shares, self.report.space.names
        if len(shares) < 1:
            return []
        times = [float(share.when) for share in shares]
        timed = self.report.rows.time is not None
        local, year = self.report.local, words.several_years(self.report)
        ends = [self._short_day(local(int(t)), year) if timed else f"step {int(t)}" for t in (times[0], times[-1])]
        if timed and times[-1] - times[0] > 360 * _DAY:
            ends = [words.year_name(local(int(t))) for t in (times[0], times[-1])]
        pair = (ends[0], ends[1] if len(times) > 1 else "")
        found = []
        for label in self._drawn_labels:
            name = names[label]
            middle, low, high = (np.array(part)[:, label] for part in zip(*map(_parts, shares), strict=True))
            last = f"{100 * float(np.clip(middle[-1], 0, 1)):.0f} %"
            finding = f"Share of people with {name}, corrected for the noise: {last} at the last answer."
            found.append((name, charts.share_chart(times, middle, low, high, self.colours[label], pair, finding)))
        return found

    @cached_property
    def _named(self) -> IntArray:
        """The labels that were published (n,)."""
        rows = self.report.rows
        return np.asarray(rows.z[rows.asked, 0], dtype=np.int64)

    @cached_property
    def colours(self) -> list[int]:
        """The number of each label's colour."""
        return charts.colours_of(self.report.space.names, self._named)

    @cached_property
    def _drawn_labels(self) -> list[int]:
        """The labels whose shares are drawn, in their order; of many those that were published most often."""
        return sorted(charts.commonest(self.report.space.names, self._named)[:_SHARES])

    @property
    def shares_drawn(self) -> str:
        """Of which labels the charts of shares are, where they are not of all."""
        names = self.report.space.names
        if len(names) <= _SHARES:
            return ""
        return f"{_SHARES} of {len(names):,} labels are drawn, those published most often; the numbers are of all."

    @property
    def share_rows(self) -> list[tuple[str, str, str, str]]:
        """The shares in numbers: when, label, share, interval; of all labels, at as many times as have room."""
        found, names = [], self.report.space.names
        for share in self.report.shares[: self._told_shares]:
            told = zip(names, np.clip(share.share, 0, 1).tolist(), share.low.tolist(), share.high.tolist(), strict=True)
            for place, (name, middle, low, high) in enumerate(told):
                interval = f"{100 * low:.1f} to {100 * high:.1f} %"
                found.append(("" if place else self.asked_at(share), name, f"{100 * middle:.1f} %", interval))
        return found

    @property
    def _told_shares(self) -> int:
        return max(1, _SHARE_ROWS // len(self.report.space.names))

    @property
    def shares_told(self) -> str:
        """At how many times the numbers are, where they are not of all."""
        told, times = self._told_shares, len(self.report.shares)
        return "" if told >= times else f", {'the first' if told == 1 else f'the first {told:,}'} of {times:,} times"

    @staticmethod
    def _short_day(seconds: int, year: bool) -> str:
        """A day as a small chart has room for it: a month is cut where the year stands as well."""
        day, month, *of = words.day_name(seconds, year).split()
        return " ".join([day, month[:3] if of else month, *of])

    def asked_at(self, share: Share) -> str:
        """When people were asked whose labels a share is of: a day and its time, or a step."""
        if self.report.rows.time is None:
            return f"step {share.when:,}"
        local = self.report.local(share.when)
        return f"{words.day_name(local, words.several_years(self.report))}, {clock(local)}"

    @property
    def too_few(self) -> str:
        """Where the intervals of the shares leave nearly everything open: that they do."""
        shares = self.report.shares
        width = float(np.mean([share.high - share.low for share in shares])) if shares else 0.0
        if width < _TELLS_NOTHING:
            return ""
        most = max(share.people for share in shares)
        return f"{plural(most, 'person is', 'people are')} too few to tell the shares."

    @property
    def label_key(self) -> list[tuple[int, str]]:
        """The colour of each label that has one, and of all others."""
        names = self.report.space.names
        if not self.report.space.has_labels or self.strip_figure is None:
            return []
        own = sorted((colour, name) for colour, name in zip(self.colours, names, strict=True))
        return own if len(names) <= _COLOURS else [*own[: _COLOURS - 1], (_COLOURS - 1, "other")]

    @cached_property
    def line_figures(self) -> list[Figure]:
        """Answers of one number, or of more than two: a chart a person."""
        report = self.report
        if report.space.has_labels or report.planar:
            return [] if self.strip_figure is None else [self.strip_figure]
        people = [person for person in report.persons if person.levels is not None]
        if not people:
            return []
        chosen = people[:: -(-len(people) // _STRIPS)]
        believed = [bands(report.space.own_answers[:, 0], _levels(person)) for person in chosen]
        answers = [self._answers(person) for person in chosen]
        scale = charts.Scale.of(believed, [crosses[:, 1] for crosses in answers])
        first = min(len(chosen), _ON_FIRST)
        tall = min(_HIGH, max(_LOW, _ROOM / first - _AROUND))
        found = []
        for number, (person, band, crosses) in enumerate(zip(chosen, believed, answers, strict=True)):
            assert person.guess is not None
            guess, ticks = person.guess[:, 0], self._row_ticks(person)
            finding = f"{person.name}: the published answers and what a reader believes, over the steps."
            widths, height = (charts.FIRST_WIDTHS, tall) if number < first else (charts.WIDTHS, _LOW)
            drawings = [
                charts.band_chart(band, guess, crosses, scale, width, height, ticks, finding) for width in widths
            ]
            when = [self.moment(row) for row in person.rows.tolist()]
            rows = [[moment, f"{value:.4g}"] for moment, value in zip(when, guess.tolist(), strict=True)]
            found.append(Figure("person", person.name, drawings, "", ["when", "estimate"], rows))
        told = _some_of(chosen, people)
        return [replace(found[0], caption=told.strip()), *found[1:]]

    def _answers(self, person: Person) -> FloatArray:
        """The answers of a person (k, 2): which of their rows, and the first number."""
        at = np.flatnonzero(self.report.rows.asked[person.rows])
        return np.stack([at, self.report.rows.z[person.rows[at], 0]], axis=1).astype(np.float64)

    @cached_property
    def beside_answers(self) -> list[Figure]:
        """What stands on the first screen where there is no map: people, and the error where they leave room."""
        if self.map is not None or not self.line_figures:
            return []
        first = self.line_figures[: 1 if self.report.space.has_labels else _ON_FIRST]
        taken = sum(figure.drawings[0].height + _AROUND for figure in first)
        error = self.error_figure
        if error is None or taken + error.drawings[0].height + _AROUND > _ROOM + _AROUND:
            return first
        return [*first, error]

    @cached_property
    def error_below(self) -> Figure | None:
        """The error over the day, where the first screen does not have it."""
        return None if self.error_figure in self.beside_answers else self.error_figure

    @property
    def other_people(self) -> list[Figure]:
        """Charts of people that the first screen does not have."""
        return [figure for figure in self.line_figures if figure not in self.beside_answers]

    @property
    def to_find(self) -> bool:
        """Whether there is more about what can be found than the first screen has."""
        return not self.alone and bool(self.error_below or self.nights_figure or self.measured)

    @cached_property
    def hour_maps(self) -> tuple[list[tuple[Drawing, str]], str]:
        """Where people are, by hour, and what the shades mean."""
        hours = self.report.hours
        if not hours:
            return [], ""
        most = max(float(hour.people.max()) for hour in hours)
        least = max(float(_TOO_FEW) if most > 3 * _TOO_FEW else 1.0, rounded_down(max(most / 8, 1e-9)))
        steps = (least, 3 * least, 7.5 * least)
        told = []
        for hour in hours:
            name = clock(self.report.clock_hour(hour))
            finding = f"Expected number of people per cell at {name}, from all answers."
            told.append((maps.by_hour(self.report, hour.people, steps, finding), name))
        few, some, many = (f"{step:g}" for step in steps)
        key = f"people per cell: {many} and more, {some} to {many}, {few} to {some}; fewer are not drawn"
        return told, key

    @property
    def check_command(self) -> str:
        """How to check the file, to be typed in a shell; files that the reader has to name are in capitals."""
        name = self.report.name
        name = f"./{name}" if name.startswith("-") else name
        statement = self.report.statement
        if statement.beginnings:
            # A table of who begins where is no file of a command.
            return f"dphmm.audit.check_release({name!r}, MODEL, POLICY, initials=INITIALS)"
        more = " --policy POLICY" * (statement.policy.parameters is None)
        more += " --mechanism TABLE" * is_reference(statement.mechanism.asked)
        more += " --ledger LEDGER" * (self.report.elsewhere is not None)
        return f"dphmm check-release {quoted(name)} --model MODEL{more}"

    # -- files and details -----------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> list[tuple[str, str]]:
        """Every public choice."""
        s = self.report.statement
        chosen = ", ".join(f"{name} ({count:,} rows)" for name, count in s.mechanism.chosen.items())
        unit = f" {self.report.space.unit}" * bool(self.report.space.unit and not self.report.space.has_labels)
        policy = ", ".join(
            f"{key} {value}{unit if key == 'r' else ''}" if key != "closed" else "closed" if value else "open"
            for key, value in (s.policy.parameters or {}).items()
            if key != "n_states" and _brief(value)
        )
        dimensions = "" if self.report.space.has_labels else f", {plural(s.space.dimension, 'dimension')}"
        return [
            ("software", f"{s.software.name} {s.software.version} (algorithm {s.algorithm_version})"),
            ("epsilon of an answer", epsilon_words(Fraction(s.epsilon))),
            ("policy", s.policy.kind + f": {policy}" * bool(policy)),
            ("constraint", f"{s.constraint}. {s.sentence('constraint')}"),
            ("mechanism", s.mechanism.asked + f": {chosen}" * bool(chosen) + f". {s.mechanism.noise}"),
            ("states", f"{s.space.states:,} ({s.space.kind}{dimensions})"),
            ("model", s.origin),
            ("randomness", s.randomness.sentence(whole=s)),
        ]

    @cached_property
    def hashes(self) -> list[tuple[str, str]]:
        """What names the things that were used."""
        s = self.report.statement
        rows = [
            ("states", s.space.sha256),
            ("model", s.model.sha256),
            ("policy", s.policy.sha256),
            (f"plans, {s.plans.count:,}", s.plans.sha256),
        ]
        sha = member(s, "file.sha256")
        return rows + ([("file", str(sha))] if sha else [])

    @cached_property
    def promises(self) -> list[str]:
        """The statement's own sentences about the guarantee."""
        s = self.report.statement
        parts = ["schedule", "varied", "beginnings"]
        if self.report.confirmed:
            parts = ["sequence", *parts, "epsilon sum"]
        sentences = [sentence for part in parts for name, sentence in s.rows() if name == part]
        return [*s.promised, *s.covered, *sentences, *s.said("assumes")]


def _levels(person: Person) -> Levels:
    assert person.levels is not None
    return person.levels


def _parts(share: Share) -> tuple[FloatArray, FloatArray, FloatArray]:
    return share.share, share.low, share.high


def _first_and_last(ends: Sequence[str], stays: Stays) -> tuple[str, str]:
    """What is told after the first and the last stay of a ladder; of a sequence there is one."""
    first = "not asked" if stays.found else _NOT_COMPUTED
    last = "" if stays.what == "sequence" or AFTER[-1] in {stay.after for stay in stays.found} else _NOT_COMPUTED
    return ends[0] if ends else first, ends[-1] if ends[1:] else last


def _bars_finding(rows: Sequence[tuple[str, float, str]]) -> str:
    return "; ".join(f"{words.all_words(name)}: at most {text}" for name, _, text in rows[1:] or rows) + "."


def _some_of(drawn: Sequence[Person], people: Sequence[Person]) -> str:
    """Of whom a chart is, where it is not of all."""
    if len(drawn) == len(people):
        return ""
    apart = -(-len(people) // len(drawn))
    return f" {len(drawn)} of {len(people):,} people: {every_nth(apart)} by name."


def _together(error: str) -> str:
    """An error that no line breaks: "310 m off"."""
    return f"{error} off".replace(" ", "\u00a0")


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"


def _runs(gaps: IntArray) -> list[list[int]]:
    """(gap, how often) of every run of equal gaps."""
    if not len(gaps):
        return []
    starts = np.flatnonzero(np.diff(gaps, prepend=gaps[0] - 1))
    counts = np.diff(starts, append=len(gaps))
    return [[int(gaps[start]), int(count)] for start, count in zip(starts.tolist(), counts.tolist(), strict=True)]


def _brief(value: object) -> bool:
    return isinstance(value, (str, int, float, bool)) and len(str(value)) <= 40
