"""Maps of one subject: truth (where it is there), releases and estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.report.content import ReleaseReport
from dphmm.report.svg import Drawing
from dphmm.report.view import PANEL, SHADES, View, draw_states, outline, shades, spacing
from dphmm.types import FloatArray, IntArray

_TOP = 26.0
_BOTTOM = 30.0
#: Margin around the cells, as a share of their extent.
_MARGIN = 0.12
_MANY = 4000
#: Steps at one place that make a stay worth its hours, and how many stays get them.
_LONG_STAY = 6
_LABELLED_STAYS = 3


def day_figures(report: ReleaseReport) -> list[Drawing]:
    """One after the other: the truth (where it is there), what was released, and what estimates make of it."""
    kinds = ["released", "estimate"] if report.smoothed is None else ["released", "estimate", "smoothed"]
    if report.truth is not None:
        kinds.insert(0, "truth")
    return [_panel(report, kind) for kind in kinds]


def _panel(report: ReleaseReport, kind: str) -> Drawing:
    title = _title(report, kind)
    drawing = Drawing(f"day-{kind}", PANEL, _TOP + PANEL + _BOTTOM, title, _words(report, kind))
    view = View.around(outline(report.space), 0.0, _TOP, PANEL, _MARGIN)
    _ground(drawing, view, report)
    rows = report.rows
    path = None if report.truth is None else report.visited[rows][report.known[rows]]
    if kind != "truth" and path is not None:
        drawing.line(_kept_inside(view(path), view)[0], "truth faint")
    if kind == "truth" and path is not None:
        _stays(drawing, view, report, path, rows[report.known[rows]])
    elif kind == "released":
        points, outside = _kept_inside(view(report.z[rows]), view)
        drawing.crosses(points[~outside], 4.4, "released")
        drawing.circles(points[outside], 2.2, "released outside")
    else:
        points = view((report.estimate if kind == "estimate" else _smoothed(report))[rows])
        drawing.line(points, kind)
        drawing.circles(points, 1.8, f"{kind} dot")
    drawing.frame(view.left, view.top, PANEL, PANEL, "frame")
    drawing.text(view.left, view.top - 9, title, "heading")
    if report.on_map:
        _scale_bar(drawing, view)
    return drawing


def _title(report: ReleaseReport, kind: str) -> str:
    truth = "Truth (simulated)" if report.simulated else "Truth"
    return {"truth": truth, "released": "Released", "estimate": "Bayes estimate", "smoothed": "With later answers"}[
        kind
    ]


def _words(report: ReleaseReport, kind: str) -> str:
    steps = f"{len(report.rows)} time steps of {report.subject}"
    if kind == "truth":
        return f"Map of {steps}: the true path with a circle at each stay."
    said = {
        "released": "the released answers as crosses",
        "estimate": "the Bayes estimate as a line with dots",
        "smoothed": "the estimate from all answers, later ones too, as a line with dots",
    }[kind]
    inside = None if report.truth is None else report.inside[report.rows]
    if inside is None or not inside.any():
        return f"Map of {steps}: {said}."
    answers = {"released": report.z, "estimate": report.estimate}.get(kind)
    errors = report.errors(_smoothed(report) if answers is None else answers, report.rows[inside])
    return f"Map of {steps}: {said} (mean error {report.shown(float(errors.mean()))}), the true path behind."


def _smoothed(report: ReleaseReport) -> FloatArray:
    assert report.smoothed is not None
    return report.smoothed


def _ground(drawing: Drawing, view: View, report: ReleaseReport) -> None:
    drawing.frame(view.left, view.top, PANEL, PANEL, "ground")
    for water in report.scenery.water:
        drawing.line(view(water), "water", close=True)
    space = report.space
    if space.n_states <= _MANY:
        shade = shades(report.weights, space.n_states)
        for level in range(SHADES + 1):
            draw_states(drawing, view, space, np.flatnonzero(shade == level), f"cell shade{level}")
    for road in report.scenery.roads:
        drawing.line(view(road), "road")


def _kept_inside(points: FloatArray, view: View) -> tuple[FloatArray, Any]:
    """Points moved to the panel's border where they lie beyond it, and which."""
    low = np.array([view.left, view.top]) + 4
    moved = np.clip(points, low, low + PANEL - 8)
    return moved, np.any(moved != points, axis=1)


def _stays(drawing: Drawing, view: View, report: ReleaseReport, truth: FloatArray, rows: IntArray) -> None:
    """The path, a circle per place as large as the time spent there, and the hours of the longest stays."""
    drawing.line(_kept_inside(view(truth), view)[0], "truth")
    places, counts = np.unique(truth, axis=0, return_counts=True)
    drawing.circles(_kept_inside(view(places), view)[0], 1.6 + 0.75 * np.sqrt(counts), "truth dot")
    if report.time is None:
        return
    clock, left = report.time[rows], np.ones(len(truth), dtype=np.bool_)
    for _ in range(_LABELLED_STAYS):
        places, counts = np.unique(truth[left], axis=0, return_counts=True)
        if len(counts) == 0 or counts.max() < _LONG_STAY:
            return
        place = places[np.argmax(counts)]
        # A place on the border of cells is one place.
        here = left & np.all(np.abs(truth - place) <= 1.1 * spacing(report.space), axis=1)
        _say(drawing, view, place, _hours(clock[here]))
        left &= ~here


def _say(drawing: Drawing, view: View, place: FloatArray, words: str) -> None:
    """Words beside a place, on the side where there is room."""
    x, y = _kept_inside(view(place)[None], view)[0][0]
    if x > view.left + PANEL / 2:
        drawing.text(x - 12, y + 4, words, "label halo end")
    else:
        drawing.text(x + 12, y + 4, words, "label halo")


def _hours(times: IntArray) -> str:
    """From when to when somebody was at a place: "0:00–7:40, 18:10–24:00". Short absences do not count."""
    step = int(np.diff(times).min()) if len(times) > 1 else 0
    runs = np.split(times, np.flatnonzero(np.diff(times) > 4 * step) + 1)
    told = [f"{_clock(int(run[0]))}–{_clock(int(run[-1]) + step, ends=True)}" for run in runs if len(run) > 1]
    return ", ".join(told[:2])


def _clock(seconds: int, ends: bool = False) -> str:
    minutes = seconds % 86_400 // 60
    return "24:00" if ends and minutes == 0 else f"{minutes // 60}:{minutes % 60:02d}"


def _scale_bar(drawing: Drawing, view: View) -> None:
    wanted = PANEL / view.scale / 4
    power = 10.0 ** np.floor(np.log10(wanted))
    length = float(max(power * m for m in (1.0, 2.0, 5.0) if power * m <= wanted))
    y = view.top + PANEL + 14
    drawing.line([[view.left, y], [view.left + length * view.scale, y]], "scale")
    shown = f"{length / 1000:g}\N{NO-BREAK SPACE}km" if length >= 1000 else f"{length:g}\N{NO-BREAK SPACE}m"
    drawing.text(view.left + length * view.scale + 6, y + 4, shown, "label")
