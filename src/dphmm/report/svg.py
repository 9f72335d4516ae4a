"""Drawings as inline SVG: text stays text, nothing is loaded, and every picture says its finding in words."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from dphmm.types import FloatArray


class Drawing:
    """An SVG picture, ``width`` x ``height`` units, y down; ``finding`` says in a sentence what it shows.

    ``scales``: whether the picture may be drawn larger or smaller; charts with words are not.
    """

    def __init__(self, width: float, height: float, finding: str, style: str = "", *, scales: bool = False) -> None:
        self.width, self.height, self.finding, self.style = width, height, finding, style
        self._scales = scales
        self._parts: list[str] = []

    def path(self, commands: str, style: str) -> None:
        """A path of ready commands; ``style`` is CSS classes."""
        if commands:
            self._parts.append(f'<path class="{style}" d="{commands}"/>')

    def line(self, points: ArrayLike, style: str, *, close: bool = False) -> None:
        """A line through points (n, 2); it has a gap where a point is NaN, and a single point is drawn as one."""
        given = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        gaps = np.flatnonzero(np.isnan(given).any(axis=1))
        commands = []
        for part in np.split(given, gaps):
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
        self.path(cross(centre, size), style)

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        """Text at a point: its ``anchor`` "start", "middle" or "end"."""
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
    def inside(self) -> Markup:
        """What is drawn, without the picture around it."""
        return Markup("".join(self._parts))

    def __html__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width, height = number(self.width), number(self.height)
        size = f'viewBox="0 0 {width} {height}"' + ("" if self._scales else f' width="{width}" height="{height}"')
        style = f' class="{self.style}"' if self.style else ""
        return Markup(f'<svg{style} {size} role="img" aria-label="{escape(self.finding)}">{self.inside}</svg>')


def cross(centre: ArrayLike, size: float) -> str:
    """The path of a diagonal cross."""
    x, y = np.asarray(centre, dtype=np.float64)
    s = number(size)
    left, top = number(x - size / 2), number(y - size / 2)
    return f"M{left} {top}l{s} {s}m0-{s}l-{s} {s}"


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _pair(point: FloatArray) -> str:
    return f"{number(float(point[0]))} {number(float(point[1]))}"
