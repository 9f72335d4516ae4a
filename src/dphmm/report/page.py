"""One self-contained HTML page: nothing is loaded, no script but the page's own may run, readable on paper."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from shlex import quote as quoted
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dphmm._cached import cached_property
from dphmm.accounting.records import in_short
from dphmm.choose.planning import STAYERS
from dphmm.choose.schedule_plan import WorthTable
from dphmm.errors import InvalidInput
from dphmm.report import figures, maps, words
from dphmm.report.beliefs import written
from dphmm.report.content import PersonBelief, ReleaseReport
from dphmm.report.over_steps import OverSteps
from dphmm.report.shown import Shown
from dphmm.report.svg import Figure, style
from dphmm.statement import sentences, story
from dphmm.statement.doubt import doubt
from dphmm.statement.sentences import (
    PHRASES,
    UNIT_GAP,
    counted,
    functions_of,
    off,
)
from dphmm.statement.story import Bound
from dphmm.statement.verdict import WARNS
from dphmm.states.space import END, LABELS_WRONG
from dphmm.storage.inputs import PathLike, replacing
from dphmm.types import FloatArray

#: An option of the command line.
_OPTION = re.compile(r"--[a-z]+(-[a-z]+)*")
_BLANKS = re.compile(r"[ \n]+")
#: A number with its unit.
_FIGURE = re.compile(r"[0-9][0-9,.]*( k?m| %| of 100)?(?![0-9])")
#: Mean width of the intervals of shares from which on they tell next to nothing.
_TELLS_NOTHING = 0.5


def page(report: ReleaseReport) -> str:
    """The whole page; the same report gives the same text."""
    rules = style("palette", "figures", "page")
    script = files("dphmm.report").joinpath("templates", "page.js").read_text(encoding="utf-8")
    context = {"c": Content(report), "report": report, "style": rules, "script": script}
    return templates().get_template("page.html").render(policy=content_policy(rules, script), **context) + "\n"


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
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {"line": line, "begin": begin, "prose": prose, "figure": figure, "exact": Fraction}
    environment.globals |= PHRASES | functions_of(sentences) | functions_of(story) | functions_of(words)
    environment.globals |= {"BLOCKS": sentences.BLOCKS, "WARNS": WARNS, "LABELS_WRONG": LABELS_WRONG, "END": END}
    environment.globals |= {"SHARES": figures.SHARES, "STAYERS": STAYERS}
    environment.globals |= {"doubt": doubt, "in_short": in_short, "quoted": quoted}
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


def figure(text: str) -> Markup:
    """A sentence whose first figure stands out."""
    sentence = begin(text)
    first = _FIGURE.search(sentence)
    if first is None:
        return prose(sentence)
    parts = (prose(part) for part in (sentence[: first.start()], first[0], sentence[first.end() :]))
    return Markup("{} <strong>{}</strong> {}").format(*parts)


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
        got = f"{path}, a page without the truth"
        raise InvalidInput(field, got, f"another name for the owner's page, as {path.stem}.owner{path.suffix}")


def content_policy(rules: str, script: str) -> str:
    """The content security policy of a page.

    Nothing may be loaded from anywhere, and nothing may run but what is hashed here, whatever a name says; not even
    these scripts may make markup of a text.
    """
    ours = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, rules))
    allowed = "script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:".format(*ours)
    markup = "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    return f"default-src 'none'; {allowed}; {markup}"


class Content(Shown):
    """Everything that the template prints, in the order of the page: its figures, and more."""

    def __init__(self, report: ReleaseReport) -> None:
        super().__init__(report)
        self.map, self.backdrop = figures.belief(report), maps.shapes_below(report)
        self.error_figure, self.nights_figure = figures.error(report), figures.nights(report)
        self.small_maps = figures.maps_of_day(report)
        self.hour_maps = figures.maps_by_hour(report)
        self.covered = figures.covered(report)
        self.strip_figure = figures.strip(report)
        self.line_figures = figures.people(report) if self.strip_figure is None else [self.strip_figure]
        self.share_charts, self.share_rows = figures.share_charts(report), figures.share_rows(report)

    # -- the bar and the first screen ------------------------------------------------------------------------------

    @property
    def bounds(self) -> list[tuple[str, Bound]]:
        """The guarantees after one answer, after those of a block, and for the file, by name."""
        guaranteed = self.report.story.guaranteed
        every = "all files and queries" if guaranteed.file is not None and guaranteed.file.of else "the whole file"
        named = [("one answer", guaranteed.one_answer), (every, guaranteed.file)]
        if guaranteed.block is not None:
            many = "all" if guaranteed.block.answers is None else f"the {counted(guaranteed.block.answers)}"
            named.insert(1, (f"{many} of {guaranteed.block.of}", guaranteed.block))
        return [(name, bound) for name, bound in named if bound is not None]

    @property
    def expected_if_asked(self) -> str:
        """The expected findings about somebody who is asked, on a page without an answer."""
        expected = self.report.prospects.expected
        assert expected is not None
        return replace(expected.found, noun=self.report.statement.subjects.noun).lines[0]

    # -- the map and its slider ------------------------------------------------------------------------------------

    @cached_property
    def data(self) -> dict[str, Any]:
        """The data that the script reads."""
        report = self.report
        if report.cells is None or self.map is None:
            return {}
        view, cells = maps.view_of(report), report.cells
        shape: dict[str, Any] = {"n": len(cells)}
        if not cells.columns:
            shape["rings"] = [np.round(view(ring), 1).ravel().tolist() for ring in cells.rings]
        else:
            corner = view(cells.low)
            shape |= {"columns": cells.columns, "rows": cells.rows, "x": float(corner[0]), "y": float(corner[1])}
            shape["side"] = cells.side * view.scale
        return {
            "cells": shape,
            "side": maps.SIDE,
            "inside": maps.INSIDE,
            "timed": report.rows.time is not None,
            "zone": report.clock_changes,
            "first": [self.first_person, self.first[0], self.first[1] - int(self.day[0])],
            "people": [self._told(person, view) for person in report.persons],
        } | self._sets(view)

    def _told(self, person: PersonBelief, view: maps.View) -> dict[str, Any]:
        """A person for the script: days, times, answers, levels, spreads; the truth where it may be shown."""
        report, rows = self.report, person.rows
        asked = np.flatnonzero(report.rows.asked[rows])
        moments = report.rows.step[rows] if report.rows.time is None else report.rows.time[rows]
        document: dict[str, Any] = {
            "name": person.name,
            "days": [[name, int(at[0]), len(at)] for name, at in self.days(person)],
            "t": [int(moments[0]), *([gap, len(list(run))] for gap, run in groupby(np.diff(moments).tolist()))],
            "asked": asked.tolist(),
            "z": np.round(view(report.rows.z[rows[asked]][:, :2]), 1).ravel().tolist(),
        }
        if person.levels is not None and person.guess is not None and person.spread is not None:
            document["levels"] = [written(row) for row in person.levels]
            document["guess"] = np.round(view(person.guess[:, :2]), 1).ravel().tolist()
            document["spread"] = [float(f"{value:.3g}") for value in person.spread.tolist()]
            widest = (float(np.nanmax(person.spread[at], initial=0.0)) for _, at in self.days(person))
            document["widest"] = [off(value, report.space.unit) for value in widest]
            if report.truth is None:
                document["expects"] = self._offs(person.spread)
        if report.truth is not None:
            places = np.round(view(report.truth.places[rows]), 1)
            document["truth"] = [None if np.isnan(value) else value for value in places.ravel().tolist()]
            document["off"] = self._offs(report.truth.errors[rows])
        return document

    def _offs(self, errors: FloatArray) -> list[str | None]:
        """Errors (n,) in words, None where there is none."""
        return [None if np.isnan(value) else off(value, self.report.space.unit) for value in errors.tolist()]

    def _sets(self, view: maps.View) -> dict[str, Any]:
        """For each drawn cell those that the policy joins to it, where cells are states and not too many."""
        report = self.report
        policy, cells, n = report.one_policy, report.cells, report.space.n_states
        if policy is None or cells is None or cells.joined != 1 or n > 2500:
            return {}
        near = [np.setdiff1d(policy.neighbors(state), [state]) for state in range(n)]
        if sum(map(len, near)) > 60_000:
            return {}
        centre, sets = figures.central(report.space), list[list[int] | None]([None] * len(cells))
        for cell, joined in zip(cells.of.tolist(), near, strict=True):
            sets[cell] = cells.of[joined].tolist()
        other = maps.around(cells, report.space, policy, centre)
        corner = other(np.array([view.west, view.north]))
        return {
            "sets": sets,
            "centre": int(cells.of[centre]),
            "called": words.cells_name(report),
            "zoom": [other.scale / view.scale, float(corner[0]), float(corner[1])],
        }

    # -- evidence --------------------------------------------------------------------------------------------------

    @property
    def per(self) -> str:
        """The block of a sum: "a day", "in all"."""
        promise = self.report.promise
        return words.over_words(promise) if promise is not None else "a day" if self.by_day else "in all"

    @cached_property
    def by_day(self) -> bool:
        """True if a block is a day of the clock."""
        return OverSteps(self.report).by_day

    @property
    def alike(self) -> bool:
        """True if everybody spent alike, block by block."""
        return len({tuple((count, total) for _, count, total in blocks) for _, blocks in self.report.spent}) == 1

    @cached_property
    def ladder(self) -> WorthTable | None:
        """The worth of other totals; of its own the file's schedule, which need not be the one chosen now."""
        report, plans = self.report, list(self.report.prospects.ladder)
        promise, expected = report.promise, report.prospects.expected
        if promise is None or not plans:
            return None
        for number, plan in enumerate(plans):
            if plan.schedule.promise.exact == promise.exact and report.schedule is not None and expected is not None:
                row, stays = replace(plan.chosen, smoothed=expected.found.error), report.prospects.stays or plan.stays
                plans[number] = replace(plan, schedule=report.schedule, ladder=(row,), stays=stays)
        return WorthTable.of(plans, promise.exact)

    @property
    def few_tell_shares(self) -> bool:
        """True if the intervals of the shares leave nearly everything open."""
        widths = [share.high - share.low for share in self.report.shares]
        return bool(widths) and float(np.mean(widths)) >= _TELLS_NOTHING

    @property
    def label_key(self) -> list[tuple[int, str]]:
        """The colour of each label that has one, and of all others."""
        names = self.report.space.names
        if self.strip_figure is None:
            return []
        key = sorted(zip(figures.colours_of(self.report), names, strict=True))
        last = figures.COLOURS - 1
        return key if len(names) <= figures.COLOURS else [*key[:last], (last, "other")]

    @cached_property
    def beside_answers(self) -> list[Figure]:
        """The figures of the first screen without a map: people, and the error if they leave room."""
        if self.map is not None or not self.line_figures:
            return []
        first, around = self.line_figures[: 1 if self.report.space.has_labels else figures.ON_FIRST], figures.AROUND
        taken = sum(figure.drawings[0].height + around for figure in first)
        error = self.error_figure
        if error is None or taken + error.drawings[0].height > figures.ROOM:
            return first
        return [*first, error]
