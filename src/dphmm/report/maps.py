"""Maps: north up, one scale, what was published as crosses, and what a reader believes as three shades of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from dphmm.policy.graph import PolicyGraph
from dphmm.report import words
from dphmm.report.beliefs import Cells
from dphmm.report.content import Person, ReleaseReport, rounded_down
from dphmm.report.svg import Drawing, number
from dphmm.statement.sentences import length
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.zones import Zones
from dphmm.types import FloatArray, IntArray

#: Side of a map in picture units.
SIDE = 500.0
#: Room between the edge of a picture and the map: marks at the map's edge are whole, those beyond it are drawn there.
INSIDE = 12.0
#: How far a word that a mark lies on moves at a time, how often, and what it keeps clear of a mark's middle.
_MOVE, _MOVES, _OFF_MARKS = 32.0, 7, 10.0
_CROSS = 14.0
#: The outline of the cells that states have is drawn where it has no more sides.
_MOST_SIDES = 400
#: Widest scale bar, as a share of the map.
_BAR = 0.24
_LINES = 4
_HAIR = 0.8
_LETTER = 7.5
#: How much larger words of a map are on a phone (page.css).
_ON_PHONE = 17 / 12.5
#: Between two degrees, whose letters are larger on a narrow page.
_APART = 30.0
#: The base of the longitudes along the upper edge.
_TOP = 17.0
#: How far names above each other are apart.
_LINE = 15.0
_LEVELS = ((1, "b95"), (2, "b80"), (3, "b50"))


@dataclass(frozen=True)
class View:
    """Where answers (..., 2) lie in a square picture of ``side`` units."""

    west: float
    north: float
    scale: float
    side: float = SIDE

    @classmethod
    def around(cls, low: FloatArray, high: FloatArray, side: float = SIDE) -> View:
        """The box between two corners, in the middle of the picture."""
        extent = (float((high - low).max()) or 1.0) * side / (side - 2 * INSIDE)
        middle = (low + high) / 2
        return cls(float(middle[0] - extent / 2), float(middle[1] + extent / 2), side / extent, side)

    def __call__(self, points: Any) -> FloatArray:
        given = np.asarray(points, dtype=np.float64)
        return np.stack([(given[..., 0] - self.west) * self.scale, (self.north - given[..., 1]) * self.scale], axis=-1)

    def kept(self, points: FloatArray) -> tuple[FloatArray, Any]:
        """Picture points moved onto the map, and which were beyond it."""
        inside = np.clip(points, INSIDE, self.side - INSIDE)
        return inside, np.asarray((inside != points).any(axis=-1))


def view_of(report: ReleaseReport, side: float = SIDE) -> View:
    """All cells."""
    assert report.cells is not None
    return View.around(report.cells.low, report.cells.high, side)


def ground(drawing: Drawing, view: View, report: ReleaseReport) -> None:
    """Land, water, roads, zones; where there is no backdrop, lines of longitude and latitude with their degrees."""
    drawing.frame(0, 0, view.side, view.side, "land")
    drawing.shapes = partial(shapes_below, report)
    if not _without_backdrop(report) or _zones(report):
        base = view_of(report)
        ratio, right, down = view.scale / base.scale, base.west - view.west, view.north - base.north
        moved = f"translate({number(right * view.scale)} {number(down * view.scale)}) scale({ratio:.6g})"
        drawing.raw(f'<use href="#backdrop" transform="{moved}"/>')
    if _without_backdrop(report) and isinstance(report.space, MapSpace):
        for line, _, _ in _graticule(view, report.space):
            drawing.line(line, "graticule")


def shapes_below(report: ReleaseReport) -> Markup:
    """The shapes below every map of a report, which refer to them: backdrop and outlines of zones; nothing without."""
    if report.cells is None or (_without_backdrop(report) and not _zones(report)):
        return Markup("")
    view = view_of(report)
    shapes = Drawing(view.side, view.side, "")
    for water in report.backdrop.water:
        shapes.line(view(water), "water", close=True)
    for road in report.backdrop.roads:
        shapes.line(view(road), "road")
    for zone in range(len(_zones(report))):
        # Lines of no width, which join parts of a zone, are no sides.
        shapes.segments(((view(a), view(b)) for a, b in report.cells.outline(np.array([zone]))), "zone")
    return Markup(f'<g id="backdrop">{shapes.inside}</g>')


def _zones(report: ReleaseReport) -> Sequence[FloatArray]:
    """The outlines that are drawn of all zones; of other cells none."""
    cells = report.cells
    return cells.rings if cells is not None and isinstance(report.space.unmerged, Zones) else ()


def _without_backdrop(report: ReleaseReport) -> bool:
    return not (report.backdrop.water or report.backdrop.roads)


def _graticule(view: View, space: MapSpace) -> list[tuple[FloatArray, str, int]]:
    """Lines of longitude (0) and latitude (1) across a picture, and their degrees."""
    found: list[tuple[FloatArray, str, int]] = []
    corners = np.array(
        [[view.west, view.north - view.side / view.scale], [view.west + view.side / view.scale, view.north]]
    )
    lat, lon = space.to_latlon(corners.mean(axis=0))
    south, north = space.to_latlon(corners)[0]
    # From the middle, so that longitudes grow eastwards over the antimeridian; once around the earth is enough.
    half = min(view.side / view.scale / 2 / space.projection.metres_east, 180.0)
    west, east = float(lon) - half, float(lon) + half
    for low, high, across, marks in ((west, east, 0, "EW"), (south, north, 1, "NS")):
        step = rounded_down((high - low) / _LINES)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        for value in np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step:
            at = view(space.projection.to_metres(lat, value) if across == 0 else space.projection.to_metres(value, lon))
            ends = [[at[0], 0], [at[0], view.side]] if across == 0 else [[0, at[1]], [view.side, at[1]]]
            found.append((np.array(ends), _degrees(value, digits, marks), across))
    return found


def _degrees(value: float, digits: int, marks: str) -> str:
    """A longitude or latitude as it is read; neither side is named of the equator and of the meridians 0 and 180."""
    shown = round((value + 180.0) % 360.0 - 180.0, digits)
    return f"{abs(shown):.0f}°" if shown in (0.0, -180.0) else f"{abs(shown):.{digits}f}° {marks[int(shown < 0)]}"


def names_and_scale(drawing: Drawing, view: View, report: ReleaseReport, marks: FloatArray) -> None:
    """Names of places, or degrees, which keep clear of the scale bar; and the scale bar.

    Degrees move along their line, and the bar along the edge, off ``marks`` (k, 2). The script of the page does so too.
    """
    bar = rounded_down(view.side / view.scale * _BAR)
    told = words.far(bar) if report.on_map else f"{bar:g}"
    right, bottom, width = view.side - 22, view.side - INSIDE - 22, bar * view.scale
    named = [(name, *view(np.array([x, y])).tolist(), "place") for name, x, y in report.backdrop.names]
    if _without_backdrop(report) and isinstance(report.space, MapSpace):
        for line, degrees, across in _graticule(view, report.space):
            # Longitudes along the upper edge: the scale bar lies at the lower one.
            x, y = (line[0, 0] + 4, _TOP) if across == 0 else (4.0, line[0, 1] - 4)
            named.append((degrees, float(x), float(y), "degree"))
    taken: list[tuple[float, float, float]] = []
    for name, x, y, style in named:
        if style == "place" and 0 < x < view.side and 0 < y < view.side:
            drawing.circle([x, y], 2.5, "place-dot")
        # A name ends at its place where it would be cut otherwise.
        before = style == "place" and x + 6 + len(name) * _LETTER > view.side
        at, low = (x - 6 if before else x + 6 if style == "place" else x), y + 4 * (style == "place")
        apart = _APART if style == "degree" else 0.0
        # On a phone letters are larger, and a degree that is cut tells nothing.
        wide = len(name) * _LETTER * (_ON_PHONE if style == "degree" else 1)
        first, last = (at - wide, at) if before else (at, at + wide)
        beside_bar = last > right - width - 30 and low > bottom - 30
        free = all(last + apart < left or first > end + apart or abs(low - other) > _LINE for left, end, other in taken)
        if first > 0 and last < view.side and 14 < low < view.side - 4 and free and not beside_bar:
            taken.append((first, last, low))
            if style == "degree":
                way = (0, 1) if low == _TOP else (1, 0)
                drawing.raw(_gives_way((first, low - 12, last, low + 4), way, marks))
            drawing.text(at, low, name, style, "end" if before else "start")
            drawing.raw("</g>" * (style == "degree"))
    drawing.raw(_gives_way((right - width - 6, bottom - 20, right + 6, bottom + 6), (-1, 0), marks))
    _scale(drawing, right, bottom, width, told)
    drawing.raw("</g>")


def _gives_way(box: tuple[float, float, float, float], way: tuple[int, int], marks: FloatArray) -> str:
    """The start of a group of words in a box (left, top, right, bottom), moved along a way until no mark is on it."""
    name = {(0, 1): "down", (1, 0): "right", (-1, 0): "left"}[way]
    for move in range(_MOVES):
        low = np.array(box[:2]) + move * _MOVE * np.array(way) - _OFF_MARKS
        high = np.array(box[2:]) + move * _MOVE * np.array(way) + _OFF_MARKS
        if not ((low < marks) & (marks < high)).all(axis=1).any():
            x, y = (number(move * _MOVE * part) for part in way)
            return f'<g class="gives {name}"' + f' transform="translate({x} {y})"' * (move > 0) + ">"
    return f'<g class="gives {name}">'


def _scale(drawing: Drawing, right: float, bottom: float, width: float, told: str) -> None:
    """A bar of ``width`` picture units that ends at ``right``, with its length above."""
    drawing.text(right - width / 2, bottom - 7, told, "scale", "middle")
    drawing.path(f"M{number(right - width)} {number(bottom - 4)}v8m0-4h{number(width)}m0-4v8", "scalebar")


def shape(view: View, cells: Cells, chosen: IntArray) -> str:
    """The path of some cells, a hair apart."""
    parts = []
    for cell in chosen.tolist():
        corners = view(cells.corners(cell))
        middle = corners.mean(axis=0)
        across = float(np.abs(corners - middle).max()) or 1.0
        corners = middle + (corners - middle) * max(0.5, 1 - _HAIR / 2 / across)
        parts.append("M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z")
    return "".join(parts)


def draw_marks(drawing: Drawing, view: View, report: ReleaseReport, row: int) -> None:
    """The published answer of a row as a cross, dashed at the edge where it lies beyond; the truth as a ring."""
    if report.truth is not None and not np.isnan(report.truth.places[row]).any():
        at, beyond = view.kept(view(report.truth.places[row]))
        drawing.circle(at, _CROSS / 2, "ring-under")
        drawing.circle(at, _CROSS / 2, "ring" + " beyond" * bool(beyond))
    if report.rows.asked[row]:
        at, beyond = view.kept(view(report.rows.z[row][:2]))
        drawing.cross(at, _CROSS, "cross-under")
        drawing.cross(at, _CROSS, "cross" + " beyond" * bool(beyond))


def _marked(view: View, report: ReleaseReport, person: Person, at: int) -> FloatArray:
    """Where the marks (k, 2) of a row of a person are in the picture."""
    row, found = int(person.rows[at]), []
    if report.rows.asked[row]:
        found.append(report.rows.z[row][:2])
    if report.truth is not None and not np.isnan(report.truth.places[row]).any():
        found.append(report.truth.places[row])
    if person.guess is not None:
        found.append(person.guess[at][:2])
    return view.kept(view(np.array(found).reshape(-1, 2)))[0]


def one_step(report: ReleaseReport, person: Person, at: int, side: float, finding: str, *, small: bool) -> Drawing:
    """The map of one step of a person: ``at`` counts its rows."""
    assert report.cells is not None
    cells, view = report.cells, view_of(report, side)
    drawing = Drawing(side, side, finding, "map", scales=True)
    ground(drawing, view, report)
    answers, edge = report.rows.z[report.rows.asked][:, :2], _edge(cells)
    if edge:
        drawing.segments(((view(a), view(b)) for a, b in edge), "model-box")
    elif ((answers < cells.low) | (answers > cells.high)).any():
        (left, bottom), (right, top) = view(cells.low), view(cells.high)
        drawing.frame(left, top, right - left, bottom - top, "model-box")
    if person.levels is not None:
        for level, style in _LEVELS:
            drawing.path(shape(view, cells, np.flatnonzero(person.levels[at] == level)), style)
        drawing.segments(((view(a), view(b)) for a, b in cells.outline(np.flatnonzero(person.levels[at]))), "outline")
    if not small:
        names_and_scale(drawing, view, report, _marked(view, report, person, at))
    # Above the names along the edge, where answers beyond the map are.
    draw_marks(drawing, view, report, int(person.rows[at]))
    if person.guess is not None:
        # Above the cross, which it often lies under, and smaller.
        drawing.circle(view(person.guess[at][:2]), 4.0, "estimate")
    return drawing


def _edge(cells: Cells) -> list[tuple[FloatArray, FloatArray]]:
    """The outline of the cells that states have, where these are some of a grid's; none where that is too long."""
    own = np.unique(cells.of)
    edge = cells.outline(own) if not cells.rings and len(own) < len(cells) else []
    return edge if len(edge) <= _MOST_SIDES else []


def around(cells: Cells, space: StateSpace, policy: PolicyGraph, state: int, side: float = SIDE) -> View:
    """A state and those that the policy joins to it, with some cells around them."""
    near = np.union1d(policy.neighbors(state), [state]).astype(np.int64)
    points, centre = space.own_answers[near][:, :2], space.own_answers[state][:2]
    reach = float(np.abs(points - centre).max()) + 3 * cells.side
    half = min(reach, float((cells.high - cells.low).max()) / 2)
    low = np.clip(centre - half, cells.low, np.maximum(cells.low, cells.high - 2 * half))
    return View.around(low, low + 2 * half, side)


def covered_set(
    cells: Cells,
    space: StateSpace,
    policy: PolicyGraph,
    state: int,
    finding: str,
    report: ReleaseReport | None = None,
    metres: float | None = None,
) -> Drawing:
    """The cells that the policy joins to one, and the distance that is covered (``metres``) as the scale."""
    near = np.setdiff1d(policy.neighbors(state), [state]).astype(np.int64)
    view = around(cells, space, policy, state)
    drawing = Drawing(SIDE, SIDE, finding, "map", scales=True)
    if report is None:
        drawing.frame(0, 0, SIDE, SIDE, "land")
        drawing.path(shape(view, cells, np.unique(cells.of)), "any-cell")
    else:
        ground(drawing, view, report)
    drawing.path(shape(view, cells, np.unique(cells.of[near])), "joined")
    drawing.path(shape(view, cells, cells.of[[state]]), "chosen")
    if metres:
        _scale(drawing, SIDE - 24, SIDE - 22, metres * view.scale, length(metres))
    return drawing


def by_hour(report: ReleaseReport, people: FloatArray, steps: tuple[float, float, float], finding: str) -> Drawing:
    """Expected people per cell in three shades; cells with fewer than the least step are not drawn."""
    assert report.cells is not None
    view = view_of(report, SIDE / 2)
    drawing = Drawing(view.side, view.side, finding, "map", scales=True)
    ground(drawing, view, report)
    level = sum((people >= step).astype(np.int64) for step in steps)
    for number_, style in _LEVELS:
        drawing.path(shape(view, report.cells, np.flatnonzero(level == number_)), style)
    return drawing
