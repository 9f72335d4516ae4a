"""Drawings as inline SVG: text stays text, nothing is loaded, every picture says in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from dphmm.types import FloatArray


class Drawing:
    """An SVG picture, ``width`` x ``height`` units, y down; ``title`` and ``words`` say what it shows."""

    def __init__(self, name: str, width: float, height: float, title: str, words: str) -> None:
        self.name, self.width, self.height = name, width, height
        self._head = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-words">{escape(words)}</desc>'
        self._parts: list[str] = []

    def path(self, commands: str, style: str) -> None:
        """A path of ready commands; ``style`` is CSS classes."""
        if commands:
            self._parts.append(f'<path class="{style}" d="{commands}"/>')

    def line(self, points: ArrayLike, style: str, *, close: bool = False) -> None:
        """A line through points (n, 2); a single one is drawn as a point."""
        corners = [f"{number(x)} {number(y)}" for x, y in np.asarray(points, dtype=np.float64)]
        if len(corners) == 1:
            self.path(f"M{corners[0]}h0", f"{style} point")
        elif corners:
            self.path(f"M{'L'.join(corners)}{'Z' if close else ''}", style)

    def squares(self, corners: ArrayLike, side: float, style: str) -> None:
        """Squares by their upper left corners (n, 2), as one path."""
        one = f"h{number(side)}v{number(side)}h{number(-side)}z"
        self.path("".join(f"M{number(x)} {number(y)}{one}" for x, y in np.asarray(corners)), style)

    def polygons(self, outlines: Sequence[FloatArray], style: str) -> None:
        """Polygons by their corners (k, 2), as one path."""
        self.path("".join(f"M{_joined(outline)}z" for outline in outlines), style)

    def circles(self, centres: ArrayLike, radii: ArrayLike, style: str) -> None:
        """Circles at (n, 2), radii (n,) or one for all."""
        points = np.asarray(centres, dtype=np.float64).reshape(-1, 2)
        for (x, y), r in zip(points, np.broadcast_to(radii, len(points)), strict=True):
            self._parts.append(f'<circle class="{style}" cx="{number(x)}" cy="{number(y)}" r="{number(r)}"/>')

    def crosses(self, centres: ArrayLike, size: float, style: str) -> None:
        """Small diagonal crosses at (n, 2), as one path."""
        s = number(size)
        marks = []
        for x, y in np.asarray(centres, dtype=np.float64).reshape(-1, 2):
            left, top = number(x - size / 2), number(y - size / 2)
            marks.append(f"M{left} {top}l{s} {s}m0 -{s}l-{s} {s}")
        self.path("".join(marks), style)

    def text(self, x: float, y: float, words: str, style: str = "label") -> None:
        """Text at a point; its alignment is the style's."""
        self._parts.append(f'<text class="{style}" x="{number(x)}" y="{number(y)}">{escape(words)}</text>')

    def frame(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A rectangle."""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._parts.append(f'<rect class="{style}" {place}/>')

    def __str__(self) -> str:
        width, height = number(self.width), number(self.height)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        names = f'role="img" aria-labelledby="{self.name}-title {self.name}-words"'
        return f"<svg {size} {names}>{self._head}{''.join(self._parts)}</svg>"


def _joined(points: FloatArray) -> str:
    """A path through points (k, 2): the first, and how far each next is from the one before, as it was written."""
    tenths = np.rint(np.asarray(points, dtype=np.float64) * 10).astype(np.int64)
    first, steps = tenths[0], np.diff(tenths, axis=0)
    lengths = " ".join(number(length / 10) for length in steps.ravel().tolist())
    return f"{number(first[0] / 10)} {number(first[1] / 10)}l{lengths}".replace(" -", "-")


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")
