"""Line charts: error and degree of protection over time, and one-dimensional answers over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.report.content import ReleaseReport
from dphmm.report.svg import Drawing
from dphmm.types import FloatArray

_WIDTH, _HEIGHT = 480.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 16.0, 50.0, 40.0
_BINS = 72


@dataclass(frozen=True, eq=False)
class Series:
    """One line: its name, its style, and its points."""

    name: str
    style: str
    x: FloatArray
    y: FloatArray


def error_figure(report: ReleaseReport) -> Drawing | None:
    """Mean distance to the truth over time, of all subjects; None without the truth."""
    if report.truth is None or not report.inside.any():
        return None
    hours, label = _clock(report)
    answers = [("released", report.z), ("estimate", report.estimate)]
    if report.smoothed is not None:
        answers.append(("smoothed", report.smoothed))
    inside = report.inside
    lines = [_binned(kind, kind, hours[inside], report.errors(of, inside)) for kind, of in answers]
    means = [f"{report.shown(report.mean_error(of))} ({kind})" for kind, of in answers]
    words = f"Mean error over all subjects: {', '.join(means)}."
    y_label = "mean error, m" if report.on_map else "mean error"
    return _chart("error", "Mean error over time", words, lines, label, y_label)


def degree_figure(report: ReleaseReport) -> Drawing | None:
    """Least, mean and largest degree of protection over the pictured subject's steps; None without plans."""
    if report.timeline is None or not set(report.rows.tolist()) <= report.timeline.plan_of.keys():
        return None
    steps = report.released.column("step").to_numpy()[report.rows].astype(np.float64)
    degrees = np.array(report.timeline.degree_rows(report.rows), dtype=np.float64)
    lines = [
        Series(name, style, steps, degrees[:, j])
        for j, (name, style) in enumerate((("least", "least"), ("mean", "degree"), ("most", "most")))
    ]
    low, high = degrees[:, 0].min(), degrees[:, 2].max()
    words = f"Over {len(steps)} time steps every state is hidden among {low:g} to {high:g} states, itself counted."
    return _chart("degree", "Degree of protection", words, lines, "time step", "states that hide a state")


def trace_figure(report: ReleaseReport) -> Drawing:
    """One subject's first coordinate over time: where answers are not places in a plane."""
    hours, label = _clock(report)
    x, rows = hours[report.rows], report.rows
    lines = [
        Series("released", "released", x, report.z[rows, 0]),
        Series("estimate", "estimate", x, report.estimate[rows, 0]),
    ]
    if report.smoothed is not None:
        lines.append(Series("smoothed", "smoothed", x, report.smoothed[rows, 0]))
    known = np.zeros(0, dtype=np.bool_) if report.truth is None else report.known[rows]
    if report.truth is not None and known.any():
        lines.insert(0, Series("truth", "truth", x[known], report.truth[rows, 0][known]))
    words = f"The first coordinate of the answers at {len(rows)} time steps: " + ", ".join(s.name for s in lines) + "."
    return _chart("day", f"One subject, {report.subject}", words, lines, label, "answer")


def _clock(report: ReleaseReport) -> tuple[FloatArray, str]:
    if report.time is None or len(report.time) == 0:
        return report.released.column("step").to_numpy().astype(np.float64), "time step"
    midnight = report.time.min() // 86_400 * 86_400
    return (report.time - midnight) / 3600.0, "hours since the first midnight"


def _binned(name: str, style: str, x: FloatArray, y: FloatArray) -> Series:
    """Means over at most _BINS equal intervals of x."""
    low, width = float(x.min()), max(float(np.ptp(x)) / _BINS, 1e-9)
    bins = np.minimum(((x - low) / width).astype(np.int64), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    used = count > 0
    middle = low + (np.arange(_BINS) + 0.5) * width
    means = np.bincount(bins, weights=y, minlength=_BINS)[used] / count[used]
    return Series(name, style, np.asarray(middle[used], dtype=np.float64), means)


@dataclass(frozen=True, eq=False)
class _Axes:
    """Round numbers along both axes, and where values lie between them."""

    x: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, lines: list[Series], hours: bool) -> _Axes:
        x_low, x_high = min(float(s.x.min()) for s in lines), max(float(s.x.max()) for s in lines)
        y_low, y_high = min(float(s.y.min()) for s in lines), max(float(s.y.max()) for s in lines)
        return cls(
            _hours(x_low, x_high) if hours else _ticks(x_low, x_high, 8),
            _ticks(min(0.0, y_low), y_high, 5),
        )

    def across(self, x: FloatArray) -> FloatArray:
        share = (x - self.x[0]) / (self.x[-1] - self.x[0])
        return np.asarray(_LEFT + share * (_WIDTH - _LEFT - _RIGHT))

    def up(self, y: FloatArray) -> FloatArray:
        share = (y - self.y[0]) / (self.y[-1] - self.y[0])
        return np.asarray(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM))

    def draw(self, drawing: Drawing, x_label: str, y_label: str) -> None:
        for value, at in zip(self.y, self.up(self.y), strict=True):
            drawing.line([[_LEFT, at], [_WIDTH - _RIGHT, at]], "grid")
            drawing.text(_LEFT - 8, at + 4, f"{value:,g}", "label end")
        for value, at in zip(self.x, self.across(self.x), strict=True):
            drawing.text(at, _HEIGHT - _BOTTOM + 18, f"{value:,g}", "label middle")
        drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 4, x_label, "label middle")
        drawing.text(0, 12, y_label)


def _chart(name: str, title: str, words: str, lines: list[Series], x_label: str, y_label: str) -> Drawing:
    drawing = Drawing(name, _WIDTH, _HEIGHT, title, words)
    axes = _Axes.of(lines, hours=x_label.startswith("hours"))
    axes.draw(drawing, x_label, y_label)
    at = _LEFT
    for series in lines:
        drawing.line(np.stack([axes.across(series.x), axes.up(series.y)], axis=1), f"{series.style} line")
        drawing.line([[at, 32], [at + 22, 32]], f"{series.style} line")
        drawing.text(at + 28, 36, series.name, f"label name-{series.style}")
        at += 50 + 7.5 * len(series.name)
    return drawing


def _ticks(low: float, high: float, most: int) -> FloatArray:
    """Round numbers, two at least, from at most ``low`` to at least ``high``."""
    low, high = _apart(low, high)
    span = high - low
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(power * m for m in (1.0, 2.0, 3.0, 5.0, 10.0) if span / (power * m) <= most)
    return np.asarray(np.arange(np.floor(low / step), np.ceil(high / step - 1e-9) + 1) * step)


def _hours(low: float, high: float) -> FloatArray:
    """Parts of a day, or whole days, 2 to 9 of them."""
    low, high = _apart(low, high)
    step = next((h for h in (1.0, 3.0, 6.0, 12.0, 24.0) if (high - low) / h <= 8), 24.0 * np.ceil((high - low) / 192))
    return np.asarray(np.arange(np.floor(low / step), np.ceil(high / step - 1e-9) + 1) * step)


def _apart(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis: where all numbers are one, a unit apart, or a thousandth of it."""
    size = max(abs(low), abs(high))
    return (low, high) if high - low > 1e-9 * max(size, 1.0) else (low, low + max(1.0, size / 1000))
