"""Charts, drawn for their width and never scaled: axes from zero, few lines, every line named on itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm.report.content import rounded_down
from dphmm.report.palette import LABELS
from dphmm.report.svg import Drawing
from dphmm.states.space import LABELS_WRONG
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.reconstruction.shares import Share

#: The two widths that every chart is drawn for: beside another one, and on a phone.
WIDTHS = (540.0, 340.0)
#: The same for a chart that stands on the first screen, where a map would be.
FIRST_WIDTHS = (592.0, 340.0)
_GRID = 4
_LETTER = 6.6
#: Widths of bold letters in a wide font: narrow, usual and broad ones.
_NARROW, _USUAL, _BROAD = 5.2, 8.4, 13.0
#: Names of a line: their height above and below its base, what they keep clear of lines, how far they are from theirs.
_ASCENT, _DESCENT, _CLEAR, _NEAR = 10.0, 3.0, 3.0, 16.0
#: Bases at which a name is tried, below a point of its line.
_BASES = (-7.0, 17.0, -11.0, 21.0, 4.0)
#: How much worse a name is on a line of the grid: as one so much further from its line.
_RULED = 8.0
#: The line of names that have no room in the chart, and the piece of a line that stands before each.
_KEY, _SAMPLE = 20.0, 26.0
#: An axis is made longer for what is known without the file, and for a cell, up to so many times what is drawn.
_STRETCH = 2.5
#: Where an axis of errors begins: "1,500 m" is left of it.
_LEFT_OF_ERRORS = 62.0
#: Points of a line at which its name is tried.
_TRIED = 200
_NO_GAP = 1e-9
#: Numbers from here on are written with four digits.
_LONG = 1e9


@dataclass(frozen=True)
class Axes:
    """Where numbers lie in a chart: x from 0 to ``most_x``, y from 0 to ``most_y``."""

    left: float
    right: float
    top: float
    bottom: float
    least_x: float
    most_x: float
    most_y: float

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        across = (np.asarray(x, dtype=np.float64) - self.least_x) / (self.most_x - self.least_x)
        up = np.asarray(y, dtype=np.float64) / self.most_y
        return np.stack(
            [self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)], axis=-1
        )


def steps_of(most: float) -> tuple[float, float]:
    """The distance of grid lines, four at most and 1, 2 or 5 of a power of ten, and the number that an axis ends at."""
    step = rounded_down(most / 2) if most > 0 else 1.0
    if most / step > _GRID:
        # The next one of 1, 2 and 5.
        step = rounded_down(2.5 * step)
    return step, step * max(1, math.ceil(most / step - 1e-9))


def grid(drawing: Drawing, axes: Axes, step: float, name: Callable[[float, bool], str]) -> list[float]:
    """Lines across with their numbers; the topmost has the unit. Where they are in the picture."""
    count, heights = round(axes.most_y / step), []
    for number in range(count + 1):
        value = step * number
        y = float(axes([axes.least_x], [value])[0, 1])
        drawing.line([[axes.left, y], [axes.right, y]], "axis" if number == 0 else "grid")
        drawing.text(axes.left - 8, y + 4, name(value, number == count), "tick", "end")
        heights.append(y)
    return heights


def metres_name(most: float, unit: str) -> Callable[[float, bool], str]:
    """Names of numbers on an axis: metres, or kilometres where there are many."""
    if unit == "m" and most >= 2000:
        return lambda value, top: f"{value / 1000:g}" + " km" * top
    if unit == "m":
        return lambda value, top: f"{value:,g}" + " m" * top
    if unit == LABELS_WRONG:
        return lambda value, top: f"{100 * value:g}" + " %" * top
    return lambda value, top: f"{value:g}"


@dataclass(frozen=True)
class Curves:
    """Errors over the steps of a block: ``expected`` and ``measured`` (L,), a ``band`` (L, 2), NaN where none is.

    ``without`` (L,): without the file. ``name``: what the line of those expected is called. ``asked``: which steps are.
    """

    expected: FloatArray | None
    measured: FloatArray | None
    band: FloatArray | None
    without: FloatArray
    name: str
    asked: Sequence[int]


def alone(values: FloatArray) -> IntArray:
    """Which values have no known one beside them: no line goes through them."""
    known = np.pad(np.isfinite(values), 1)
    return np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])


class Name(NamedTuple):
    """The name of a line through points (n, 2), to be written beside one of them: the nearest to number ``place``."""

    points: FloatArray
    words: str
    style: str
    place: int
    line: str


def write_names(drawing: Drawing, axes: Axes, names: Sequence[Name], rules: Sequence[float]) -> None:
    """Write each name beside its line, off all lines, nearer to its own than to another; off ``rules`` if it can be.

    Those that have no such place stand below the chart, each after a piece of its line.
    """
    drawn = [_densely(name.points) for name in names]
    taken: list[tuple[float, float, float, float]] = []
    left_over = []
    for own, name in enumerate(names):
        box = _free_box(axes, drawn, own, name, taken, rules)
        if box is None:
            left_over.append(name)
            continue
        taken.append(box)
        drawing.text(box[0], box[3] - _DESCENT, name.words, name.style)
    x, y = 0.0, drawing.height
    for name in left_over:
        wide = _SAMPLE + 6 + _width(name.words)
        if x and x + wide > drawing.width:
            x, y = 0.0, y + _KEY
        drawing.line([[x, y + 8], [x + _SAMPLE, y + 8]], name.line)
        drawing.text(x + _SAMPLE + 6, y + 12, name.words, name.style)
        x += wide + 14
    if left_over:
        drawing.height = y + _KEY


def _free_box(
    axes: Axes,
    drawn: Sequence[FloatArray],
    own: int,
    name: Name,
    taken: Sequence[tuple[float, float, float, float]],
    rules: Sequence[float],
) -> tuple[float, float, float, float] | None:
    """The box (left, top, right, bottom) of a name at the best place that is free."""
    wide = _width(name.words)
    line = drawn[own]
    wished = name.points[name.place, 0]
    least, best = math.inf, None
    for x, y in line[:: -(-len(line) // _TRIED)].tolist():
        for left in (x + 4, x - wide / 2, x - wide - 4):
            if not axes.left + 3 <= left <= axes.right - wide:
                continue
            for shift in _BASES:
                box = (left, y + shift - _ASCENT, left + wide, y + shift + _DESCENT)
                if box[1] < axes.top - 12 or box[3] > axes.bottom - 2 or any(_meet(box, other) for other in taken):
                    continue
                apart = [_distance(box, points) for points in drawn]
                others = min((far for at, far in enumerate(apart) if at != own), default=math.inf)
                if min(others, apart[own]) < _CLEAR or apart[own] > min(_NEAR, others):
                    continue
                ruled = any(box[1] < rule < box[3] for rule in rules)
                worse = abs(x - wished) / 10 + apart[own] + 60 / others + _RULED * ruled
                if worse < least:
                    least, best = worse, box
    return best


def _width(words: str) -> float:
    """How wide words are at most."""
    return sum(_NARROW if one in "fijlrt.,:;()' " else _BROAD if one in "mwMW%" else _USUAL for one in words)


def _densely(points: FloatArray) -> FloatArray:
    """Points (m, 2) of a line, no more than about two units apart; none in its gaps."""
    parts = [points[np.isfinite(points).all(axis=1)][:1]]
    for first, last in pairwise(points):
        if np.isfinite([first, last]).all():
            n = max(1, math.ceil(float(np.hypot(*(last - first))) / 2))
            parts.append(first + (last - first) * (np.arange(n + 1) / n)[:, None])
        elif np.isfinite(last).all():
            parts.append(last[None])
    return np.concatenate(parts)


def _distance(box: tuple[float, float, float, float], points: FloatArray) -> float:
    """How far a line's points are from a box; 0 within it."""
    across = np.maximum(0.0, np.maximum(box[0] - points[:, 0], points[:, 0] - box[2]))
    down = np.maximum(0.0, np.maximum(box[1] - points[:, 1], points[:, 1] - box[3]))
    return float(np.hypot(across, down).min(initial=math.inf))


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] + 4 and other[0] < one[2] + 4 and one[1] < other[3] + 1 and other[1] < one[3] + 1


def error_chart(
    curves: Curves, width: float, unit: str, ticks: Sequence[tuple[float, str]], without: str, finding: str
) -> Drawing:
    """How far off a reader is at each step; steps that are asked are crosses on the axis."""
    known = [part for part in (curves.without, curves.expected, curves.measured, curves.band) if part is not None]
    most = max(float(np.nanmax(part)) for part in known if np.isfinite(part).any())
    step, top = steps_of(most * 1.02)
    length = len(curves.without)
    axes = Axes(_LEFT_OF_ERRORS, width - 8, 14, 190, 0, max(1.0, float(length)), top)
    drawing = Drawing(width, 220, finding, "chart")
    rules = grid(drawing, axes, step, metres_name(top, unit))
    x = np.arange(length) + 0.5
    if curves.band is not None:
        known_band = ~np.isnan(curves.band).any(axis=1)
        upper, lower = axes(x, curves.band[:, 1])[known_band], axes(x, curves.band[:, 0])[known_band]
        if len(upper):
            drawing.line(np.concatenate([upper, lower[::-1]]), "band", close=True)
    ends = np.r_[0.0, x, axes.most_x]
    reference = axes(ends, np.r_[curves.without[:1], curves.without, curves.without[-1:]])
    drawing.line(reference, "reference")
    names = [Name(reference, without, "soft", len(reference) - 1, "reference")]
    for values, style, name in (
        (curves.expected, "expected", curves.name),
        (curves.measured, "measured", "measured"),
    ):
        if values is None or not np.isfinite(values).any():
            continue
        points = axes(x[: len(values)], values)
        drawing.line(points, style)
        for at in alone(values).tolist():
            drawing.circle(points[at], 2.4, "dot-main")
        place = int(np.nanargmax(values)) if style == "expected" else int(np.nanargmin(values))
        names.append(Name(points, name, f"{style}-name", place, style))
    write_names(drawing, axes, names, rules)
    for asked in curves.asked:
        drawing.cross(axes([asked + 0.5], [0])[0], 7, "cross thin")
    for tick, told in ticks:
        at_x = float(axes([tick], [0])[0, 0])
        anchor = "start" if tick <= 0 else "end" if tick >= length else "middle"
        drawing.text(at_x, axes.bottom + 20, told, "tick", anchor)
    return drawing


@dataclass(frozen=True)
class Line:
    """A line of a chart: (x, y) points, its name, its style ("main", "other" or "faint")."""

    points: Sequence[tuple[float, float]]
    name: str
    style: str


def log_chart(
    lines: Sequence[Line],
    width: float,
    unit: str,
    finding: str,
    without: tuple[float, str],
    tick: Callable[[float], str],
    *,
    inside: float | None = None,
    ring: tuple[float, float] | None = None,
) -> Drawing:
    """How far off a reader is, by a number on a logarithmic axis: of days, of releases, of a budget.

    ``without``: the error without the file and its name: a line, or above the chart where that is far beyond it.
    ``tick``: how the first number is written. ``inside``: the size of a cell, shaded. ``ring``: a point to be seen.
    """
    base, base_name = without
    most = max(y for line in lines for _, y in line.points)
    most = max([most, *(extra for extra in (base, inside or 0.0) if extra <= _STRETCH * most)])
    step, top = steps_of(most * 1.02)
    ends = sorted({x for line in lines for x, _ in line.points})
    least, longest = math.log(ends[0]), math.log(ends[-1])
    axes = Axes(_LEFT_OF_ERRORS, width - 10, 14 if base <= top else 32, 190, least, max(longest, least + 1e-9), top)
    drawing = Drawing(width, 220, finding, "chart")
    if inside is not None:
        y = max(axes.top, float(axes([least], [inside])[0, 1]))
        drawing.frame(axes.left, y, axes.right - axes.left, axes.bottom - y, "inside")
    rules = grid(drawing, axes, step, metres_name(top, unit))
    names = []
    for line in lines:
        points = axes([math.log(x) for x, _ in line.points], [y for _, y in line.points])
        drawing.line(points, f"line-{line.style}")
        for point in points:
            drawing.circle(point, 2.4, f"dot-{line.style}")
        names.append(Name(points, line.name, f"name-{line.style}", min(1, len(points) - 1), f"line-{line.style}"))
    if ring is not None:
        drawing.circle(axes([math.log(ring[0])], [ring[1]])[0], 6.0, "ring")
    if base <= top:
        reference = axes([least, axes.most_x], [base, base])
        drawing.line(reference, "reference")
        names.append(Name(reference, base_name, "soft", 1, "reference"))
    else:
        drawing.text(axes.right, 12, f"↑ {base_name}", "soft", "end")
    # The shortest line has the fewest places for its name.
    write_names(drawing, axes, sorted(names, key=lambda name: float(np.ptp(name.points[:, 0]))), rules)
    last = -math.inf
    for end in ends:
        x = float(axes([math.log(end)], [0])[0, 0])
        if x - last > 34:
            name, anchor = (tick(end), "start") if last == -math.inf else (f"{end:g}", "middle")
            drawing.text(x, axes.bottom + 20, name, "tick", anchor)
            last = x
    return drawing


def interval_chart(shares: Sequence[Share], width: float, finding: str) -> Drawing:
    """The share of each region, from 0 to 100 %: its interval as a bar, a line at the linear estimate, the likeliest.

    A region that cannot be answered says so.
    """
    left = min(width / 3, 12 + max(len(share.region) for share in shares) * 7.2)
    height = 22.0 * len(shares)
    drawing = Drawing(width, height + 26, finding, "chart")

    def x(share: float) -> float:
        return left + (width - left - 20) * min(1.0, max(0.0, share))

    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawing.line([[x(value), 0], [x(value), height]], "grid" if value else "axis")
        drawing.text(x(value), height + 18, f"{100 * value:g} %", "tick", "middle")
    for number, share in enumerate(shares):
        y = 22.0 * number + 11
        drawing.text(0, y + 4, shortened(share.region, left - 8), "name")
        if share.why:
            drawing.text(left + 6, y + 4, "cannot be answered", "soft")
        elif share.estimate is not None:
            drawing.circle([x(share.estimate), y], 4.5, "ring")
        if share.low is not None and share.high is not None and share.linear is not None:
            drawing.frame(x(share.low), y - 4, x(share.high) - x(share.low), 8, "label-1 sure-4")
            drawing.line([[x(share.linear), y - 7], [x(share.linear), y + 7]], "line-main")
    return drawing


def draw_range(
    drawing: Drawing, spread: FloatArray, asked: Sequence[int], outlying: Sequence[bool], x: FloatArray, width: float
) -> None:
    """The area behind the slider: how wide the belief is at each row, which stands at ``x``; answers as crosses.

    ``outlying``: which of the answers lie beyond the map; the key says how these are drawn there.
    """
    most = float(np.nanmax(spread, initial=0.0)) or 1.0
    y = 52 - 44 * np.nan_to_num(spread) / most
    points = np.stack([np.concatenate([[0.0], x, [width]]), np.concatenate([y[:1], y, y[-1:]])], axis=1)
    drawing.line(np.concatenate([points, np.array([[width, 52.0], [0.0, 52.0]])]), "spread", close=True)
    drawing.line(points, "spread-line")
    drawing.line(np.array([[0.0, 52.0], [width, 52.0]]), "axis")
    for place, beyond in zip(asked, outlying, strict=True):
        drawing.cross(np.array([x[place], 52.0]), 8, "cross thin" + " outlying" * beyond)


@dataclass(frozen=True)
class Scale:
    """An axis of answers that all people of a page share: from ``low`` to ``high``, a round number every ``step``."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, believed: Sequence[FloatArray], answers: Sequence[FloatArray]) -> Scale:
        """Everything believed (n, 3, 2) of each person, and their answers (k,) up to a quarter beyond it."""
        least, most = min(float(band.min()) for band in believed), max(float(band.max()) for band in believed)
        room = (most - least or 1.0) / 4
        # An answer may lie far beyond all states: it is drawn at the edge.
        near = np.clip(np.concatenate([[least, most], *answers]), least - room, most + room)
        step, _ = steps_of(float(np.ptp(near)) or 1.0)
        low = math.floor(float(near.min()) / step + _NO_GAP) * step
        return cls(low, max(low + step, math.ceil(float(near.max()) / step - _NO_GAP) * step), step)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The round numbers, and how they are written."""
        digits = max(0, -math.floor(math.log10(self.step) + _NO_GAP))
        values = [self.low + number * self.step for number in range(round((self.high - self.low) / self.step) + 1)]
        return [(value, f"{value + 0.0:,.{digits}f}" if abs(value) < _LONG else f"{value:.4g}") for value in values]


def band_chart(
    band: FloatArray,
    mean: FloatArray,
    crosses: FloatArray,
    scale: Scale,
    width: float,
    height: float,
    ticks: Sequence[tuple[float, str]],
    finding: str,
) -> Drawing:
    """Answers of one number over the steps: what a reader believes as three bands (n, 3, 2), answers (k, 2)."""
    drawn = np.clip(crosses[:, 1], scale.low, scale.high)
    drawing = Drawing(width, height, finding, "chart")
    n, left = len(band), max(48.0, 16 + 7 * max(len(name) for _, name in scale.ticks))

    def at(x: ArrayLike, y: ArrayLike) -> FloatArray:
        across = np.asarray(x, dtype=np.float64) / n
        up = (np.asarray(y, dtype=np.float64) - scale.low) / (scale.high - scale.low)
        return np.stack([left + across * (width - 8 - left), height - 28 - (height - 40) * up], axis=-1)

    for value, name in scale.ticks:
        y = float(at(np.zeros(1), np.array([value]))[0, 1])
        drawing.line([[left, y], [width - 8, y]], "grid")
        drawing.text(left - 8, y + 4, name, "tick", "end")
    x = np.repeat(np.arange(n + 1), 2)[1:-1].astype(np.float64)
    for number, style in enumerate(("b95", "b80", "b50")):
        lower, upper = np.repeat(band[:, number, 0], 2), np.repeat(band[:, number, 1], 2)
        drawing.line(np.concatenate([at(x, upper), at(x, lower)[::-1]]), style, close=True)
    drawing.line(at(np.arange(n) + 0.5, mean), "measured")
    for cross_x, value, inside in zip(crosses[:, 0], crosses[:, 1], drawn, strict=True):
        style = "cross thin" + " beyond" * bool(value != inside)
        drawing.cross(at(np.array([cross_x + 0.5]), np.array([inside]))[0], 8, style)
    for place, told in ticks:
        anchor = "start" if place <= 0 else "end" if place >= n else "middle"
        x_at = float(at(np.array([place]), np.array([scale.low]))[0, 0])
        drawing.text(x_at, height - 6, told, "tick", anchor)
    return drawing


@dataclass(frozen=True)
class Strip:
    """One person: the likeliest label of each row with its probability, and the answers (row, label).

    ``places``: where each row lies on the axis that all people share; from 0 on without.
    """

    name: str
    label: Sequence[int]
    probability: Sequence[float]
    answers: Sequence[tuple[int, int]]
    places: Sequence[int] = ()

    @property
    def at(self) -> Sequence[int]:
        """Where each row lies."""
        return self.places or range(len(self.label))


def strips(
    people: Sequence[Strip],
    names: Sequence[str],
    width: float,
    pitch: float,
    ticks: Sequence[tuple[float, str]],
    finding: str,
    colours: Sequence[int],
) -> Drawing:
    """A row a person, one every ``pitch``: answers as named squares above, the likeliest label in the strip.

    Fainter where a reader is less sure. ``colours``: the number of each label's.
    """
    left = min(110.0, 12 + max((len(person.name) for person in people), default=0) * 7.2)
    n = max(person.at[-1] + 1 for person in people)
    step = (width - left - 4) / n
    drawing = Drawing(width, pitch * len(people) + 26, finding, "chart")
    for number, person in enumerate(people):
        top = pitch * number + 18
        middle_y = top + (pitch - 28) / 2 + 4
        drawing.text(0, middle_y, shortened(person.name, left - 8), "name")
        ends = 0.0
        answers = [(person.at[row], label) for row, label in person.answers]
        for at, label in answers:
            x = left + (at + 0.5) * step
            drawing.frame(x - 4.5, top - 13, 9, 9, f"label-{colours[label]}")
            if x - 4.5 >= ends:
                room = min([left + (other + 0.5) * step for other, _ in answers if other > at] + [width]) - x - 12
                told = whole_or_short(names[label], room)
                if told:
                    drawing.text(x + 8, top - 5, told, "tiny")
                    ends = x + 8 + len(told) * 5.8
        for first, last in runs(person.label, person.at):
            for row in range(first, last + 1):
                shade = f"label-{colours[person.label[row]]} sure-{round(10 * person.probability[row])}"
                drawing.frame(left + person.at[row] * step, top, step + 0.3, pitch - 28, shade)
            told = whole_or_short(names[person.label[first]], (last + 1 - first) * step - 6)
            if told:
                middle = left + (person.at[first] + person.at[last] + 1) / 2 * step
                drawing.text(middle, middle_y, told, "in-strip", "middle")
    for place, told in ticks:
        anchor = "start" if place <= 0 else "end" if place >= n else "middle"
        drawing.text(left + place * step, drawing.height - 4, told, "tick", anchor)
    return drawing


def runs(labels: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last row of each stretch of one label; a row that is missing is a gap."""
    cuts = [
        row for row in range(1, len(labels)) if labels[row] != labels[row - 1] or places[row] != places[row - 1] + 1
    ]
    return list(zip([0, *cuts], [cut - 1 for cut in [*cuts, len(labels)]], strict=True)) if len(labels) else []


def share_chart(
    times: Sequence[float], share: FloatArray, low: FloatArray, high: FloatArray, colour: int, ends: tuple[str, str],
    finding: str,
) -> Drawing:  # fmt: skip
    """The share of people with one label at each answer, with its interval, from 0 to 100 %."""
    width, left, top, bottom = 178.0, 36.0, 10.0, 110.0
    drawing = Drawing(width, 134, finding, "chart")
    for value in (0.5, 0.0):
        y = bottom - (bottom - top) * value
        drawing.line([[left, y], [width, y]], "grid" if value else "axis")
    drawing.text(0, bottom - (bottom - top) * 0.5 + 4, "50 %", "tick")
    span = (times[-1] - times[0]) or 1.0
    for at, middle, least, most in zip(times, share, low, high, strict=True):
        x = left + 8 + (at - times[0]) / span * (width - left - 16)
        low_y, y, high_y = (bottom - (bottom - top) * float(np.clip(value, 0, 1)) for value in (least, middle, most))
        drawing.frame(x - 4, high_y, 8, low_y - high_y, f"label-{colour} sure-4")
        drawing.circle([x, y], 3.6, f"label-{colour}")
    drawing.text(left, 128, ends[0], "tick")
    drawing.text(width, 128, ends[1], "tick", "end")
    return drawing


def commonest(names: Sequence[str], answers: IntArray) -> list[int]:
    """Labels by how often they are among some published answers (n,), the most often first; equal ones by name.

    >>> commonest(["work", "home", "shop"], np.array([2, 2, 0, 1]))
    [2, 1, 0]
    """
    counts = np.bincount(answers, minlength=len(names)).tolist()
    return sorted(range(len(names)), key=lambda label: (-counts[label], names[label]))


def colours_of(names: Sequence[str], answers: IntArray) -> list[int]:
    """The number of each label's colour; of too many labels those named most often have one of their own.

    All others share the last. By the order of names alone the commonest label may be one of these.
    """
    if len(names) <= len(LABELS):
        return list(range(len(names)))
    found = [len(LABELS) - 1] * len(names)
    for colour, label in enumerate(commonest(names, answers)[: len(LABELS) - 1]):
        found[label] = colour
    return found


#: Of a name that is cut so many letters must be left, or it says nothing.
_LEFT = 6


def whole_or_short(name: str, room: float) -> str:
    """A name where it fits; so many of its letters that it can be told; else nothing."""
    told = shortened(name, room)
    return told if told == name or len(told) > _LEFT else ""


def shortened(name: str, room: float) -> str:
    """As much of a name as fits; nothing where not even a letter and a dot do."""
    letters = int(room / _LETTER)
    if len(name) <= letters:
        return name
    return name[: letters - 1] + "…" if letters >= 2 else ""
