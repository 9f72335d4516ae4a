"""Drawings as inline SVG: text stays text, nothing is loaded, and every picture says its finding in words."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from textwrap import wrap
from urllib.parse import quote

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from dphmm._notebook import html_table
from dphmm.storage.inputs import PathLike, replacing
from dphmm.types import FloatArray

#: Mean widths of a letter of a heading and of the words below a picture, and how far their lines are apart.
_HEADING, _WORDS, _LINE = 8.2, 6.9, 18.0
#: Around a picture that stands alone, and between pictures side by side.
_MARGIN, _GAP = 10.0, 14.0


class Drawing:
    """An SVG picture, ``width`` x ``height`` units, y down; ``finding`` says in a sentence what it shows.

    ``scales``: True if the picture may be drawn larger or smaller; charts with words are not. ``margin``: room on all
    four sides beside these.
    """

    def __init__(
        self, width: float, height: float, finding: str, style: str = "", *, scales: bool = False, margin: float = 0.0
    ) -> None:
        self.width, self.height, self.finding, self.style = width + 2 * margin, height + 2 * margin, finding, style
        self.margin = margin
        self._scales = scales
        self._parts: list[str] = []
        #: Makes the shapes that the picture refers to by their name; on a page these are there once.
        self.shapes: Callable[[], Markup] = Markup

    def path(self, commands: str, style: str) -> None:
        """A path of ready commands; ``style`` is CSS classes."""
        if commands:
            self._parts.append(f'<path class="{style}" d="{commands}"/>')

    def line(self, points: ArrayLike, style: str, *, close: bool = False) -> None:
        """A line through points (n, 2); it has a gap where a point is NaN, and a single point is drawn as one."""
        vertices = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        gaps = np.flatnonzero(np.isnan(vertices).any(axis=1))
        commands = []
        for part in np.split(vertices, gaps):
            known = part[~np.isnan(part).any(axis=1)]
            if len(known) == 1:
                commands.append(f"M{_pair(known[0])}h0")
            elif len(known):
                commands.append("M" + "L".join(map(_pair, known)) + "Z" * close)
        self.path("".join(commands), style)

    def segments(self, pairs: Iterable[tuple[FloatArray, FloatArray]], style: str) -> None:
        """Straight lines between pairs of points, as one path."""
        self.path("".join(f"M{_pair(a)}L{_pair(b)}" for a, b in pairs), style)

    def circle(self, centre: ArrayLike, radius: float, style: str) -> None:
        """A circle at (2,)."""
        x, y = np.asarray(centre, dtype=np.float64)
        self._parts.append(f'<circle class="{style}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')

    def cross(self, centre: ArrayLike, size: float, style: str) -> None:
        """A diagonal cross at (2,)."""
        x, y = np.asarray(centre, dtype=np.float64)
        s, left, top = number(size), number(x - size / 2), number(y - size / 2)
        self.path(f"M{left} {top}l{s} {s}m0-{s}l-{s} {s}", style)

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        """Text at a point: its ``anchor`` "start", "middle" or "end"."""
        if not words:
            return
        at = f'x="{number(x)}" y="{number(y)}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        self._parts.append(f"<text{f' class={chr(34)}{style}{chr(34)}' if style else ''} {at}>{escape(words)}</text>")

    def frame(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A rectangle."""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(max(0.0, width))}" height="{number(max(0.0, height))}"'
        self._parts.append(f'<rect class="{style}" {place}/>')

    def raw(self, markup: str) -> None:
        """Ready SVG, of this package's own making."""
        self._parts.append(markup)

    @property
    def box(self) -> str:
        """Its corner and size, as SVG has them."""
        corner = number(-self.margin)
        return f'viewBox="{corner} {corner} {number(self.width)} {number(self.height)}"'

    def placed(self, x: float, y: float) -> str:
        """The picture within another one."""
        size = f'x="{number(x)}" y="{number(y)}" width="{number(self.width)}" height="{number(self.height)}"'
        return f'<svg class="{self.style}" {size} {self.box}>{self.inside}</svg>'

    @property
    def inside(self) -> Markup:
        """The drawing without the picture around it."""
        return Markup("".join(self._parts))

    def __html__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        size = self.box if self._scales else f'{self.box} width="{number(self.width)}" height="{number(self.height)}"'
        style = f' class="{self.style}"' if self.style else ""
        return Markup(f'<svg{style} {size} role="img" aria-label="{escape(self.finding)}">{self.inside}</svg>')


def beside(drawings: Sequence[Drawing], names: Sequence[str], across: int, finding: str) -> Drawing:
    """Several pictures of one size as one, so many in a row, each with its name below."""
    first = drawings[0]
    names_of = [wrap(name, max(1, int(first.width / _WORDS))) for name in names]
    pitch = first.height + _LINE * max(map(len, names_of)) + _GAP
    columns, rows = min(across, len(drawings)), -(-len(drawings) // across)
    made = Drawing((first.width + _GAP) * columns - _GAP, pitch * rows - _GAP, finding, "chart")
    made.shapes = first.shapes
    for place, (drawing, lines) in enumerate(zip(drawings, names_of, strict=True)):
        x, y = place % across * (first.width + _GAP), place // across * pitch
        made.raw(drawing.placed(x, y))
        for line, words in enumerate(lines):
            made.text(x, y + first.height + _LINE * (line + 0.8), words, "soft")
    return made


@dataclass(frozen=True)
class Figure:
    """A picture with its finding as its heading, a caption, and its numbers as a table.

    ``drawings``: the same at its widths, the widest first. A notebook shows it; `save` writes it as SVG, with heading
    and caption in it, in colours for light and for dark paper.
    """

    name: str
    heading: str
    drawings: Sequence[Drawing]
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    owner_only: bool = False

    @property
    def table(self) -> dict[str, list[str]]:
        """The numbers by column, as ``pandas.DataFrame`` takes them."""
        return {name: [row[place] for row in self.rows] for place, name in enumerate(self.columns)}

    @property
    def csv(self) -> str:
        """The numbers as a download."""
        text = StringIO(newline="")
        # A spreadsheet would take some cells for a formula.
        lines = ([f"'{cell}" if cell[:1] in "=+-@\t" else cell for cell in line] for line in (self.columns, *self.rows))
        csv.writer(text).writerows(lines)
        return f"data:text/csv;charset=utf-8,{quote(text.getvalue())}"

    @property
    def svg(self) -> str:
        """The picture alone, as the text of an SVG file."""
        drawing = self.drawings[0]
        above = wrap(self.heading, int(drawing.width / _HEADING))
        below = wrap(self.caption, int(drawing.width / _WORDS))
        page = Drawing(drawing.width + 2 * _MARGIN, 0, drawing.finding)
        page.raw('<rect class="paper" width="100%" height="100%"/>')
        for line, words in enumerate(above):
            page.text(_MARGIN, _MARGIN + _LINE * (line + 0.7), words, "heading")
        top = _MARGIN + _LINE * len(above) + 4
        page.raw(drawing.placed(_MARGIN, top))
        for line, words in enumerate(below):
            page.text(_MARGIN, top + drawing.height + _LINE * (line + 1), words, "caption")
        height = top + drawing.height + _LINE * len(below) + _MARGIN
        size = f'viewBox="0 0 {number(page.width)} {number(height)}" width="{number(page.width)}"'
        attributes = f'{size} height="{number(height)}" role="img" aria-label="{escape(drawing.finding)}"'
        rules = style("palette", "figures")
        inside = f"<style>{rules}</style><defs>{drawing.shapes()}</defs>{page.inside}"
        return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'

    def save(self, path: PathLike) -> Path:
        """Write the picture as SVG, at once or not at all; one that shows the truth can be read by its owner alone."""
        with replacing(path, private=self.owner_only) as temporary:
            temporary.write_text(self.svg, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        """For notebooks: the picture as an image, which no style of a notebook reaches, and its numbers."""
        table = html_table(self.columns, self.rows[:1000])
        image = f"data:image/svg+xml;base64,{b64encode(self.svg.encode()).decode()}"
        return f'<img alt="{escape(self.heading)}" src="{image}"><details><summary>Numbers</summary>{table}</details>'


@cache
def style(*names: str) -> str:
    """The style rules of some of the templates: "palette", "figures", "page".

    The palette has the meaning of each colour on light and on dark paper, never dark in print. Every role has a form of
    its own as well: a reader who sees no colours loses nothing. On dark paper the cells of the best guess are as bright
    as their outline. Labels of states have colours in their order; of more labels the last is of several: "other".
    """
    folder = files("dphmm.report").joinpath("templates")
    return "".join(folder.joinpath(f"{name}.css").read_text(encoding="utf-8") for name in names)


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _pair(point: FloatArray) -> str:
    return f"{number(float(point[0]))} {number(float(point[1]))}"
