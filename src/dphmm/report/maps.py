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
from dphmm.report.beliefs import DrawnCells, Levels
from dphmm.report.content import PersonBelief, ReleaseReport, rounded_down
from dphmm.report.svg import Drawing, number
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.zones import Zones
from dphmm.types import FloatArray, IntArray

#: Side of a map in picture units.
SIDE = 500.0
#: Room between the edge of a picture and the map: marks at the map's edge are whole, those beyond it are drawn there.
INSIDE = 12.0
#: Around a map: degrees and the scale bar, whose letters are larger on a phone.
MARGIN = 20.0
_CROSS = 14.0
#: The outline of the cells that states have is drawn where it has no more sides.
_MOST_SIDES = 400
#: Widest scale bar, as a share of the map.
_BAR = 0.24
_LINES = 4
_HAIR = 0.8
_LETTER = 7.5
#: Half a degree's room along the edge, and how far names above each other are apart.
_DEGREE, _LINE = 42.0, 15.0


@dataclass(frozen=True)
class View:
    """The map from answers (..., 2) to points of a square picture of ``side`` units."""

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
        xy = np.asarray(points, dtype=np.float64)
        return np.stack([(xy[..., 0] - self.west) * self.scale, (self.north - xy[..., 1]) * self.scale], axis=-1)

    def kept(self, points: FloatArray) -> tuple[FloatArray, Any]:
        """Picture points moved onto the map, and which were beyond it."""
        inside = np.clip(points, INSIDE, self.side - INSIDE)
        return inside, np.asarray((inside != points).any(axis=-1))


def view_of(report: ReleaseReport, side: float = SIDE) -> View:
    """All cells."""
    assert report.cells is not None
    return View.around(report.cells.low, report.cells.high, side)


def ground(drawing: Drawing, view: View, report: ReleaseReport) -> None:
    """Land, water, roads, zones; where there is no backdrop, lines of longitude and latitude with their degrees.

    Names of places, degrees and the scale bar are on maps with a margin.
    """
    drawing.frame(0, 0, view.side, view.side, "land")
    drawing.shapes = partial(shapes_below, report)
    if not _without_backdrop(report) or _zones(report):
        base = view_of(report)
        ratio, right, down = view.scale / base.scale, base.west - view.west, view.north - base.north
        moved = f"translate({number(right * view.scale)} {number(down * view.scale)}) scale({ratio:.6g})"
        drawing.raw(f'<use href="#backdrop" transform="{moved}"/>')
    wide, side = drawing.margin, number(view.side)
    if wide:
        # Shapes end with the map.
        whole = number(view.side + 2 * wide)
        drawing.path(f"M-{wide} -{wide}h{whole}v{whole}h-{whole}ZM0 0v{side}h{side}v-{side}Z", "paper")
    if _without_backdrop(report) and isinstance(report.space, MapSpace):
        _graticule(drawing, view, report.space)


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
    """The outlines of all zones; other cells have none."""
    cells = report.cells
    return cells.rings if cells is not None and isinstance(report.space.unmerged, Zones) else ()


def _without_backdrop(report: ReleaseReport) -> bool:
    return not (report.backdrop.water or report.backdrop.roads)


def _graticule(drawing: Drawing, view: View, space: MapSpace) -> None:
    """Lines of longitude and latitude across a map, and in its margin their degrees."""
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
        last = -math.inf
        for value in np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step:
            place = (lat, value) if across == 0 else (value, lon)
            at = float(view(space.projection.to_metres(*place))[across])
            drawing.line([[at, 0], [at, view.side]] if across == 0 else [[0, at], [view.side, at]], "graticule")
            if drawing.margin and _DEGREE < at < view.side - _DEGREE and abs(at - last) > 2 * _DEGREE:
                last = at
                turned = f"translate(-6 {number(at)}) rotate(-90)" if across else f"translate({number(at)} -6)"
                drawing.raw(f'<g transform="{turned}">')
                drawing.text(0, 0, _degrees(value, digits, marks), "degree", "middle")
                drawing.raw("</g>")


def _degrees(value: float, digits: int, marks: str) -> str:
    """A longitude or latitude as it is read; neither side is named of the equator and of the meridians 0 and 180."""
    shown = round((value + 180.0) % 360.0 - 180.0, digits)
    return f"{abs(shown):.0f}°" if shown in (0.0, -180.0) else f"{abs(shown):.{digits}f}° {marks[int(shown < 0)]}"


def names_and_scale(drawing: Drawing, view: View, report: ReleaseReport) -> None:
    """Names of places that do not lie on each other, which the script keeps off marks; and the scale bar."""
    bar = rounded_down(view.side / view.scale * _BAR)
    scale_bar(drawing, view, bar * view.scale, words.far(bar) if report.on_map else f"{bar:g}")
    taken: list[tuple[float, float, float]] = []
    for name, *place in report.backdrop.names:
        x, y = view(np.array(place)).tolist()
        if 0 < x < view.side and 0 < y < view.side:
            drawing.circle([x, y], 2.5, "place-dot")
        wide = len(name) * _LETTER
        # A name ends at its place where it would be cut otherwise.
        before = x + 6 + wide > view.side
        first, low = x - 6 - wide if before else x + 6, y + 4
        free = all(first + wide < left or first > end or abs(low - other) > _LINE for left, end, other in taken)
        if 0 < first < view.side - wide and 14 < low < view.side - 4 and free:
            taken.append((first, first + wide, low))
            drawing.text(x - 6 if before else x + 6, low, name, "place", "end" if before else "start")


def scale_bar(drawing: Drawing, view: View, width: float, told: str) -> None:
    """A bar of ``width`` picture units below a map, with its length beside it."""
    right, bottom = view.side, view.side + 11
    drawing.text(right - width - 8, bottom + 4, told, "scale", "end")
    drawing.path(f"M{number(right - width)} {number(bottom - 4)}v8m0-4h{number(width)}m0-4v8", "scalebar")


def shape(view: View, cells: DrawnCells, chosen: IntArray) -> str:
    """The path of some cells, a hair apart."""
    parts = []
    for cell in chosen.tolist():
        corners = view(cells.rings[cell])
        middle = corners.mean(axis=0)
        across = float(np.abs(corners - middle).max()) or 1.0
        corners = middle + (corners - middle) * max(0.5, 1 - _HAIR / 2 / across)
        parts.append("M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z")
    return "".join(parts)


def shades(drawing: Drawing, view: View, cells: DrawnCells, level: IntArray | Levels) -> None:
    """The cells of level 1, 2 and 3."""
    for number_, style in enumerate(("b95", "b80", "b50"), 1):
        drawing.path(shape(view, cells, np.flatnonzero(level == number_)), style)


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


def one_step(
    report: ReleaseReport, person: PersonBelief, at: int, side: float, finding: str, *, small: bool
) -> Drawing:
    """The map of one step of a person: ``at`` counts its rows."""
    assert report.cells is not None
    cells, view = report.cells, view_of(report, side)
    drawing = Drawing(side, side, finding, "map", scales=True, margin=0 if small else MARGIN)
    ground(drawing, view, report)
    answers, edge = report.rows.z[report.rows.asked][:, :2], _edge(cells)
    if edge:
        drawing.segments(((view(a), view(b)) for a, b in edge), "model-box")
    elif ((answers < cells.low) | (answers > cells.high)).any():
        (left, bottom), (right, top) = view(cells.low), view(cells.high)
        drawing.frame(left, top, right - left, bottom - top, "model-box")
    if person.levels is not None:
        shades(drawing, view, cells, person.levels[at])
        drawing.segments(((view(a), view(b)) for a, b in cells.outline(np.flatnonzero(person.levels[at]))), "outline")
    if not small:
        names_and_scale(drawing, view, report)
    # Above the names along the edge, where answers beyond the map are.
    draw_marks(drawing, view, report, int(person.rows[at]))
    if person.guess is not None:
        # Above the cross, which it often lies under, and smaller.
        drawing.circle(view(person.guess[at][:2]), 4.0, "estimate")
    return drawing


def _edge(cells: DrawnCells) -> list[tuple[FloatArray, FloatArray]]:
    """The outline of the cells that states have, where these are some of a grid's; none where that is too long."""
    occupied = np.unique(cells.of)
    edge = cells.outline(occupied) if len(occupied) < len(cells) else []
    return edge if len(edge) <= _MOST_SIDES else []


def around(cells: DrawnCells, space: StateSpace, policy: PolicyGraph, state: int) -> View:
    """A state and those that the policy joins to it, with some cells around them."""
    near = np.union1d(policy.neighbors(state), [state]).astype(np.int64)
    points, centre = space.own_answers[near][:, :2], space.own_answers[state][:2]
    reach = float(np.abs(points - centre).max()) + 3 * cells.side
    half = min(reach, float((cells.high - cells.low).max()) / 2)
    low = np.clip(centre - half, cells.low, np.maximum(cells.low, cells.high - 2 * half))
    return View.around(low, low + 2 * half)
