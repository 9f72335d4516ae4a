"""Axes to draw on, in colours and marks that colour-blind readers tell apart."""

from __future__ import annotations

from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Okabe and Ito's colours, the dark ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
BLUE, VERMILION = COLOURS[:2]
GREY = "#8a94a3"
#: Width of a letter of a title, as a share of its size.
_LETTER = 0.57


def axes(ax: Axes | None) -> Axes:
    """The axes that were given, or those of a new figure. Raises InvalidInput where matplotlib is missing."""
    if ax is not None:
        return ax
    if find_spec("matplotlib") is None:
        raise InvalidInput("matplotlib", "a Python without it", "pip install 'dphmm[plot]'")
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def plain(ax: Axes) -> Axes:
    """Axes with a light grid."""
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def titled(ax: Axes, words: str) -> None:
    """Set the title, on as many lines as the axes have room for: a finding is a sentence."""

    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    figure = ax.get_figure()
    inches = (6.4 if figure is None else float(figure.bbox.width / figure.dpi)) * ax.get_position().width
    letter = FontProperties(size=rcParams["axes.titlesize"]).get_size_in_points() * _LETTER / 72
    ax.set_title(fill(words, max(12, int(inches / letter)), break_long_words=False))


def literal(text: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return text.replace("\\", "\\\\").replace("$", r"\$")


def in_plane(space: StateSpace, points: Any) -> FloatArray:
    """The first two numbers of answers (n, d); 0 for the second where there is but one."""
    rows = np.asarray(points, dtype=np.float64)
    rows = rows.reshape(-1, space.dimension)
    return rows[:, :2] if space.dimension > 1 else np.stack([rows[:, 0], np.zeros(len(rows))], axis=1)


def ground(space: StateSpace, ax: Axes) -> Axes:
    """The states as small grey dots, with one scale on maps."""

    points = in_plane(space, space.own_answers)
    ax.plot(points[:, 0], points[:, 1], ".", color="#c9d0da", markersize=3, zorder=0, rasterized=len(points) > 5000)
    if isinstance(space, MapSpace):
        ax.set_aspect("equal")
        ax.set(xlabel="metres east", ylabel="metres north")
    elif space.dimension == 1:
        ax.set(xlabel="answer", yticks=[])
    else:
        ax.set(xlabel="answer, first number", ylabel="second number")
    return ax
