"""Charts, drawn for their width and never scaled: axes from zero, few lines, every line named above the chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dphmm.report.content import rounded_down
from dphmm.report.svg import Drawing
from dphmm.states.space import LABELS_WRONG
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.reconstruction.shares import Share

#: The two widths that every chart is drawn for: beside another one, and on a phone.
WIDTHS = (540.0, 340.0)
#: The same for a chart that stands on the first screen, where a map would be.
FIRST_WIDTHS = (592.0, 340.0)
#: Lines across a chart, beside that at its foot.
_GRID = 4
_LETTER = 6.6
#: How far apart the names above a chart are, and the piece of its line that stands before each.
_KEY, _SAMPLE = 18.0, 26.0
#: The least distance between the middles of ticks.
_APART = 34.0
#: A logarithmic chart is made higher for what is known without the file, and for a cell, up to so many times its lines.
_STRETCH = 2.5
#: Where an axis of errors begins: "1,500 m" is left of it.
_LEFT_OF_ERRORS = 62.0
_NO_GAP = 1e-9
#: Numbers from here on are written with four digits.
_LONG = 1e9


def round_numbers(low: float, high: float) -> FloatArray:
    """The multiples of 1, 2 or 5 times a power of ten that hold all from ``low`` to ``high``: an axis of few lines."""
    extent = high - low or 1.0
    step = rounded_down(extent / 2)
    if extent / step > _GRID:
        # The next one of 1, 2 and 5.
        step = rounded_down(2.5 * step)
    first = math.floor(low / step + _NO_GAP)
    return np.asarray(step * np.arange(first, max(first + 1, math.ceil(high / step - _NO_GAP)) + 1))


def named(values: FloatArray, unit: str) -> list[tuple[float, str]]:
    """Numbers on an axis and how they are written, the last with the unit: kilometres where there are many metres."""
    digits = max(0, -math.floor(math.log10(values[1] - values[0]) + _NO_GAP))
    times = 0.001 if unit == "m" and values[-1] >= 2000 else 100 if unit == LABELS_WRONG else 1
    suffix = {"m": " km" if times == 0.001 else " m", LABELS_WRONG: " %"}.get(unit, "")
    names = [
        f"{value:.4g}" if abs(value) >= _LONG else f"{value * times:g}" if times != 1 else f"{value + 0.0:,.{digits}f}"
        for value in values.tolist()
    ]
    return list(zip(values.tolist(), [*names[:-1], names[-1] + suffix], strict=True))


@dataclass(frozen=True)
class Axes:
    """The map from numbers to points of a drawing: x and y from the least to the most of each."""

    drawing: Drawing
    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        across = (np.asarray(x, dtype=np.float64) - self.x[0]) / (self.x[1] - self.x[0])
        up = (np.asarray(y, dtype=np.float64) - self.y[0]) / (self.y[1] - self.y[0])
        at = self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)
        return np.stack(np.broadcast_arrays(*at), axis=-1)

    def rules(self, values: Sequence[tuple[float, str]]) -> None:
        """Lines across with their numbers."""
        for value, name in values:
            y = float(self(self.x[0], value)[1])
            self.drawing.line([[self.left, y], [self.right, y]], "grid" if value else "axis")
            self.drawing.text(self.left - 8, y + 4, name, "tick", "end")

    def ticks(self, ticks: Sequence[tuple[float, str]]) -> None:
        """Names below: those at the ends do not pass them, and none lies on the one before."""
        last = -math.inf
        for place, name in ticks:
            x = float(self(place, self.y[0])[0])
            if x - last > _APART:
                anchor = "start" if place <= self.x[0] else "end" if place >= self.x[1] else "middle"
                self.drawing.text(x, self.bottom + 20, name, "tick", anchor)
                last = x


@dataclass(frozen=True)
class Curve:
    """A line of a chart: points (n, 2), NaN in its gaps; its name, its style ("main", "other" or "faint").

    ``band`` (k, 3): x and the ends of an interval about it.
    """

    points: ArrayLike
    name: str
    style: str
    band: FloatArray | None = None


def alone(values: FloatArray) -> IntArray:
    """The indices of known values without a known neighbour: no line goes through them."""
    known = np.pad(np.isfinite(values), 1)
    return np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])


def line_chart(
    lines: Sequence[Curve],
    without: Curve,
    width: float,
    unit: str,
    ticks: Sequence[tuple[float, str]],
    finding: str,
    *,
    log: bool = False,
    asked: Sequence[float] = (),
    inside: float = 0.0,
    ring: tuple[float, float] | None = None,
) -> Drawing:
    """A chart of a reader's error over the steps of a block or, on a logarithmic axis, days, releases or budgets.

    ``without`` the file: a line; on a logarithmic axis named alone where that is far beyond the others. ``asked``:
    the places of crosses on the axis. ``inside``: the size of a cell, shaded. ``ring``: a point to be seen.
    """
    drawn = [(np.asarray(line.points, dtype=np.float64).reshape(-1, 2), line) for line in lines]
    base, bands = np.asarray(without.points, dtype=np.float64), [line.band for line in lines if line.band is not None]
    heights = [points[:, 1] for points, _ in drawn] + [band[:, 1:].ravel() for band in bands]
    most = float(np.nanmax(np.concatenate([*heights, [0.0]])))
    longest = _STRETCH * most if log else math.inf
    most = max([most, *(height for height in (float(np.nanmax(base[:, 1])), inside) if height <= longest)])
    values = round_numbers(0.0, 1.02 * most)
    far = float(np.nanmax(base[:, 1])) > values[-1]
    drawn += [] if far else [(base, without)]

    across = np.log if log else np.asarray
    ends = across([*(x for x, _ in ticks), *(x for points, _ in drawn for x in points[:, 0])])
    top = 18 + _KEY * (len(lines) + 1)
    drawing = Drawing(width, top + 206, finding, "chart")
    x = float(ends.min()), max(float(ends.max()), float(ends.min()) + _NO_GAP)
    axes = Axes(drawing, _LEFT_OF_ERRORS, width - 10, top, top + 176, x, (0.0, float(values[-1])))
    if inside:
        y = max(axes.top, float(axes(x[0], inside)[1]))
        drawing.frame(axes.left, y, axes.right - axes.left, axes.bottom - y, "inside")
    axes.rules(named(values, unit))
    for band in bands:
        upper, lower = (axes(across(band[:, 0]), band[:, end]) for end in (2, 1))
        drawing.line(np.concatenate([upper, lower[::-1]]), "band", close=True)
    for row, (points, line) in enumerate(drawn):
        at = axes(across(points[:, 0]), points[:, 1])
        drawing.line(at, f"line-{line.style}")
        for point in at if log and line is not without else at[alone(points[:, 1])]:
            drawing.circle(point, 2.4, f"dot-{line.style}")
        y = 8 + _KEY * row
        drawing.line([[0, y], [_SAMPLE, y]], f"line-{line.style}")
        drawing.text(_SAMPLE + 6, y + 4, line.name)
    if far:
        drawing.text(_SAMPLE + 6, 12 + _KEY * len(lines), f"↑ {without.name}")
    if ring is not None:
        drawing.circle(axes(across(ring[0]), ring[1]), 6.0, "ring")
    for place in asked:
        drawing.cross(axes(place, 0), 7, "cross thin")
    axes.ticks([(float(across(place)), name) for place, name in ticks])
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


def shared_scale(believed: Sequence[FloatArray], answers: Sequence[FloatArray]) -> FloatArray:
    """The numbers on one axis for all people: all beliefs (n, 3, 2), and answers (k,) up to a quarter beyond."""
    least, most = min(float(band.min()) for band in believed), max(float(band.max()) for band in believed)
    room = (most - least or 1.0) / 4
    # An answer may lie far beyond all states: it is drawn at the edge.
    near = np.clip(np.concatenate([[least, most], *answers]), least - room, most + room)
    return round_numbers(float(near.min()), float(near.max()))


def band_chart(
    band: FloatArray,
    mean: FloatArray,
    crosses: FloatArray,
    scale: FloatArray,
    width: float,
    height: float,
    ticks: Sequence[tuple[float, str]],
    finding: str,
) -> Drawing:
    """Answers of one number over the steps: a reader's belief as three bands (n, 3, 2), answers (k, 2)."""
    drawing, values, n = Drawing(width, height, finding, "chart"), named(scale, ""), len(band)
    left = max(48.0, 16 + 7 * max(len(name) for _, name in values))
    axes = Axes(drawing, left, width - 8, 12, height - 28, (0.0, float(n)), (float(scale[0]), float(scale[-1])))
    axes.rules(values)
    x = np.repeat(np.arange(n + 1), 2)[1:-1]
    for number, style in enumerate(("b95", "b80", "b50")):
        lower, upper = np.repeat(band[:, number, 0], 2), np.repeat(band[:, number, 1], 2)
        drawing.line(np.concatenate([axes(x, upper), axes(x, lower)[::-1]]), style, close=True)
    drawing.line(axes(np.arange(n) + 0.5, mean), "line-main")
    for row, value in crosses.tolist():
        inside = min(max(value, axes.y[0]), axes.y[1])
        drawing.cross(axes(row + 0.5, inside), 8, "cross thin" + " beyond" * bool(value != inside))
    axes.ticks(ticks)
    return drawing


@dataclass(frozen=True)
class Strip:
    """One person: the likeliest label of each row with its probability, and the answers (row, label).

    ``at``: where each row lies on the axis that all people share.
    """

    name: str
    label: Sequence[int]
    probability: Sequence[float]
    answers: Sequence[tuple[int, int]]
    at: Sequence[int]


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
        squares = [(left + (person.at[row] + 0.5) * step, label) for row, label in person.answers]
        ends = 0.0
        for (x, label), (following, _) in zip(squares, [*squares, (width, 0)][1:], strict=True):
            drawing.frame(x - 4.5, top - 13, 9, 9, f"label-{colours[label]}")
            if x - 4.5 >= ends and (name := whole_or_short(names[label], following - x - 12)):
                drawing.text(x + 8, top - 5, name, "tiny")
                ends = x + 8 + len(name) * 5.8
        for first, last in runs(person.label, person.at):
            for row in range(first, last + 1):
                shade = f"label-{colours[person.label[row]]} sure-{round(10 * person.probability[row])}"
                drawing.frame(left + person.at[row] * step, top, step + 0.3, pitch - 28, shade)
            if name := whole_or_short(names[person.label[first]], (last + 1 - first) * step - 6):
                middle = left + (person.at[first] + person.at[last] + 1) / 2 * step
                drawing.text(middle, middle_y, name, "in-strip", "middle")
    Axes(drawing, left, width - 4, 0, drawing.height - 24, (0.0, float(n))).ticks(ticks)
    return drawing


def runs(labels: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last row of each stretch of one label; a row that is missing is a gap."""
    cuts = [
        row for row in range(1, len(labels)) if labels[row] != labels[row - 1] or places[row] != places[row - 1] + 1
    ]
    return list(zip([0, *cuts], [cut - 1 for cut in [*cuts, len(labels)]], strict=True)) if len(labels) else []


def share_chart(
    times: Sequence[float], shares: FloatArray, colour: int, ends: tuple[str, str], finding: str
) -> Drawing:
    """The share of people with one label at each answer (n, 3), with its interval, from 0 to 100 %."""
    drawing, width = Drawing(178.0, 134, finding, "chart"), 178.0
    frame = Axes(drawing, 42.0, width, 10.0, 110.0, (0.0, 1.0))
    frame.rules([(0.5, "50 %"), (0.0, "")])
    inner = Axes(drawing, 50.0, width - 8, 10.0, 110.0, (times[0], max(times[-1], times[0] + 1)))
    for at, part in zip(times, np.clip(shares, 0, 1), strict=True):
        (x, y), (_, low), (_, high) = inner(at, part)
        drawing.frame(x - 4, high, 8, low - high, f"label-{colour} sure-4")
        drawing.circle([x, y], 3.6, f"label-{colour}")
    frame.ticks([(0.0, ends[0]), (1.0, ends[1])])
    return drawing


def commonest(names: Sequence[str], answers: IntArray) -> list[int]:
    """Labels by how often they are among some published answers (n,), the most often first; equal ones by name.

    >>> commonest(["work", "home", "shop"], np.array([2, 2, 0, 1]))
    [2, 1, 0]
    """
    counts = np.bincount(answers, minlength=len(names)).tolist()
    return sorted(range(len(names)), key=lambda label: (-counts[label], names[label]))


#: Of a name that is cut so many letters must be left, or it says nothing.
_LEFT = 6


def whole_or_short(name: str, room: float) -> str:
    """A name where it fits; so many of its letters that it can be told; else nothing."""
    short = shortened(name, room)
    return short if short == name or len(short) > _LEFT else ""


def shortened(name: str, room: float) -> str:
    """As much of a name as fits; nothing where not even a letter and a dot do."""
    letters = int(room / _LETTER)
    if len(name) <= letters:
        return name
    return name[: letters - 1] + "…" if letters >= 2 else ""
