"""Maps in projected metres: one subject's truth, releases and estimates; and whom a state hides among."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm.report.content import ReleaseReport
from dphmm.report.svg import Drawing
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

_PANEL = 300.0
_GAP = 18.0
_TOP = 26.0
_BOTTOM = 30.0
_SHADES = 4
#: Margin around the cells, as a share of their extent.
_MARGIN = 0.12
_MANY = 4000
#: Steps at one place that make a stay worth its hours, and how many stays get them.
_LONG_STAY = 6
_LABELLED_STAYS = 3


@dataclass(frozen=True)
class _View:
    """Answer units to panel units: north up, one scale."""

    left: float
    top: float
    west: float
    north: float
    scale: float

    @classmethod
    def around(cls, points: FloatArray, left: float, top: float, size: float, margin: float) -> _View:
        low, high = points.min(axis=0), points.max(axis=0)
        extent = float((high - low).max()) * (1 + 2 * margin) or 1.0
        middle = (low + high) / 2
        return cls(left, top, float(middle[0] - extent / 2), float(middle[1] + extent / 2), size / extent)

    def __call__(self, points: Any) -> FloatArray:
        given = np.asarray(points, dtype=np.float64)
        x = self.left + (given[..., 0] - self.west) * self.scale
        y = self.top + (self.north - given[..., 1]) * self.scale
        return np.stack([x, y], axis=-1)


def day_figure(report: ReleaseReport) -> Drawing:
    """Side by side: the truth (simulations only), what was released, and what the estimate makes of it."""
    kinds = ["released", "estimate"] if report.truth is None else ["truth", "released", "estimate"]
    width = len(kinds) * (_PANEL + _GAP) - _GAP
    words = _day_words(report)
    drawing = Drawing("day", width, _TOP + _PANEL + _BOTTOM, f"One subject, {report.subject}", words)
    for place, kind in enumerate(kinds):
        view = _View.around(_outline(report.space), place * (_PANEL + _GAP), _TOP, _PANEL, _MARGIN)
        _panel(drawing, view, report, kind)
    return drawing


def hull_figure(report: ReleaseReport) -> Drawing | None:
    """Around one cell: its policy neighbours and the states inside the hull; None without a planar hull."""
    hull, policy, space = report.hull, report.policy, report.space
    if hull is None or policy is None or hull.rank != 2:
        return None
    state = _central(space)
    centre = space.answers[state]
    reach = np.abs(hull.vertices).max() + 2.5 * float(space.pitch.max())
    near = np.flatnonzero(np.all(np.abs(space.answers - centre) <= reach, axis=1))
    inside = near[hull.contains_lattice(space.lattice[near] - space.lattice[state])]
    neighbors = np.intersect1d(policy.neighbors(state), near)
    joined = f"shares a policy edge with {len(policy.neighbors(state))} cells"
    words = (
        f"Cell {space.names[state]} {joined}; {len(inside)} cells, itself included, lie inside the "
        "sensitivity hull around it."
    )
    drawing = Drawing("hull", _PANEL + 350, _PANEL, "Whom one state hides among", words)
    view = _View.around(centre + np.array([[-reach, -reach], [reach, reach]]), 0.0, 0.0, _PANEL, 0.0)
    side = float(space.pitch[0]) * view.scale
    for states, style in (
        (near, "cell"),
        (np.setdiff1d(inside, neighbors), "cell covered"),
        (np.setdiff1d(neighbors, [state]), "cell neighbor"),
        (np.array([state]), "cell self"),
    ):
        _cells(drawing, view, space.answers[states], side, style)
    drawing.line(view(centre + hull.vertices), "hull", close=True)
    _key(drawing, f"cell {space.names[state]}", covers_more=len(np.setdiff1d(inside, neighbors)) > 1)
    return drawing


def _outline(space: StateSpace) -> FloatArray:
    half = space.pitch / 2
    low, high = space.answers.min(axis=0) - half, space.answers.max(axis=0) + half
    return np.stack([low, high])


def _panel(drawing: Drawing, view: _View, report: ReleaseReport, kind: str) -> None:
    _ground(drawing, view, report)
    rows = report.rows
    if kind != "truth" and report.truth is not None:
        drawing.line(view(report.truth[rows]), "truth faint")
    if kind == "truth" and report.truth is not None:
        _stays(drawing, view, report, report.truth[rows])
    elif kind == "released":
        points, outside = _kept_inside(view(report.z[rows]), view)
        drawing.crosses(points[~outside], 4.4, "released")
        drawing.circles(points[outside], 2.2, "released outside")
    else:
        points = view(report.estimate[rows])
        drawing.line(points, "estimate")
        drawing.circles(points, 1.8, "estimate dot")
    drawing.frame(view.left, view.top, _PANEL, _PANEL, "frame")
    title = {"truth": "Truth (simulated)", "released": "Released", "estimate": "Bayes estimate"}[kind]
    drawing.text(view.left, view.top - 9, title, "heading")
    _scale_bar(drawing, view)


def _ground(drawing: Drawing, view: _View, report: ReleaseReport) -> None:
    drawing.frame(view.left, view.top, _PANEL, _PANEL, "ground")
    for water in report.scenery.water:
        drawing.line(view(water), "water", close=True)
    space = report.space
    if space.n_states <= _MANY:
        side = float(space.pitch[0]) * view.scale
        shade = _shades(report.weights, space.n_states)
        for level in range(_SHADES + 1):
            _cells(drawing, view, space.answers[shade == level], side, f"cell shade{level}")
    for road in report.scenery.roads:
        drawing.line(view(road), "road")


def _shades(weights: FloatArray | None, n_states: int) -> IntArray:
    """How dark each cell is drawn, 0.._SHADES: by the logarithm of what the public model expects."""
    if weights is None or not np.any(weights > 0):
        return np.zeros(n_states, dtype=np.int64)
    logs = np.log(np.maximum(weights, weights.max() * 1e-3) / weights.max()) / np.log(1e-3)
    return np.asarray(np.ceil((1 - logs) * _SHADES).astype(np.int64))


def _cells(drawing: Drawing, view: _View, centres: FloatArray, side: float, style: str) -> None:
    drawing.squares(view(centres) - side / 2 + 0.4, side - 0.8, style)


def _kept_inside(points: FloatArray, view: _View) -> tuple[FloatArray, Any]:
    """Points moved to the panel's border where they lie beyond it, and which."""
    low = np.array([view.left, view.top]) + 4
    moved = np.clip(points, low, low + _PANEL - 8)
    return moved, np.any(moved != points, axis=1)


def _stays(drawing: Drawing, view: _View, report: ReleaseReport, truth: FloatArray) -> None:
    """The path, a circle per place as large as the time spent there, and the hours of the longest stays."""
    drawing.line(view(truth), "truth")
    places, counts = np.unique(truth, axis=0, return_counts=True)
    drawing.circles(view(places), 1.6 + 0.75 * np.sqrt(counts), "truth dot")
    if report.time is None:
        return
    clock, left = report.time[report.rows], np.ones(len(truth), dtype=np.bool_)
    for _ in range(_LABELLED_STAYS):
        places, counts = np.unique(truth[left], axis=0, return_counts=True)
        if len(counts) == 0 or counts.max() < _LONG_STAY:
            return
        place = places[np.argmax(counts)]
        # A place on the border of cells is one place.
        here = left & np.all(np.abs(truth - place) <= 1.1 * report.space.pitch, axis=1)
        _say(drawing, view, place, _hours(clock[here]))
        left &= ~here


def _say(drawing: Drawing, view: _View, place: FloatArray, words: str) -> None:
    """Words beside a place, on the side where there is room."""
    x, y = view(place)
    if x > view.left + _PANEL / 2:
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


def _scale_bar(drawing: Drawing, view: _View) -> None:
    wanted = _PANEL / view.scale / 4
    power = 10.0 ** np.floor(np.log10(wanted))
    length = float(max(power * m for m in (1.0, 2.0, 5.0) if power * m <= wanted))
    y = view.top + _PANEL + 14
    drawing.line([[view.left, y], [view.left + length * view.scale, y]], "scale")
    shown = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    drawing.text(view.left + length * view.scale + 6, y + 4, shown, "label")


def _central(space: StateSpace) -> int:
    middle = (space.answers.min(axis=0) + space.answers.max(axis=0)) / 2
    return int(np.argmin(np.linalg.norm(space.answers - middle, axis=1)))


def _key(drawing: Drawing, state: str, covers_more: bool) -> None:
    entries = [
        ("cell self", state),
        ("cell neighbor", "policy neighbours: not to be told from it"),
    ]
    if covers_more:
        entries.append(("cell covered", "as well hidden, for free"))
    x, y = _PANEL + 22, 40.0
    for style, words in entries:
        drawing.squares([[x, y]], 14, style)
        drawing.text(x + 22, y + 11, words)
        y += 28
    drawing.line([[x, y + 7], [x + 14, y + 7]], "hull")
    drawing.text(x + 22, y + 11, "the sensitivity hull: the shape of the noise")


def _day_words(report: ReleaseReport) -> str:
    parts = ["the released answers as crosses", "the Bayes estimate as a line with dots"]
    if report.truth is not None:
        errors = [float(report.errors(of)[report.rows].mean()) for of in (report.z, report.estimate)]
        parts.insert(0, "the true path with a circle at each stay")
        parts[1] += f" (mean error {errors[0]:,.0f} m)"
        parts[2] += f" (mean error {errors[1]:,.0f} m)"
    return f"Maps of the same {len(report.rows)} time steps: " + "; ".join(parts) + "."
