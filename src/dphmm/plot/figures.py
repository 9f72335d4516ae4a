"""Axes to draw on, and figures of tables as SVG and PNG: in colours and marks that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import replacing
from dphmm.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


#: Okabe and Ito's colours, the dark ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Of lines that share a colour with earlier ones.
DASHES = ("-", "--", ":", "-.")
#: A line has about so many marks, however many points.
_MARKS_OF_A_LINE = 12
_PANEL = (4.2, 3.4)
_MOST_ACROSS = 3
_NARROWEST = 6.4
_LETTERS_PER_INCH = 11
#: A logarithmic axis has its values as ticks where they are so few.
_MOST_TICKS = 8
#: Inches of a line and its mark in a legend.
_KEY = 0.6


@dataclass(frozen=True)
class Figure:
    """Lines over ``x`` of a table: one for each value of ``by``, a panel for each value of ``panels``.

    ``low`` and ``high`` name columns of an interval around ``y``.
    """

    name: str
    title: str
    table: str
    x: str
    y: str
    by: str
    x_label: str
    y_label: str
    panels: str | None = None
    low: str | None = None
    high: str | None = None
    log_x: bool = False
    log_y: bool = False


def can_draw() -> bool:
    """True if matplotlib is installed: pip install 'dphmm[plot]'."""
    return find_spec("matplotlib") is not None


def draw(figure: Figure, table: pd.DataFrame) -> Any:
    """A matplotlib Figure of a table, panel by panel with one legend; single points are left out beside lines."""
    from matplotlib.figure import Figure as Canvas

    of_lines = lines(figure, table)
    table = of_lines if len(of_lines) else table
    panels = [("", table)] if figure.panels is None else list(_groups(table, figure.panels))
    across = min(len(panels), _MOST_ACROSS)
    down = -(-len(panels) // across)
    width = max(_NARROWEST, _PANEL[0] * across)
    canvas = Canvas(figsize=(width, _PANEL[1] * down + 0.9), layout="constrained")
    axes = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    styles = _styles(figure, table)
    for place, (name, part) in zip(axes.flat, panels, strict=False):
        draw_panel(place, figure, part, styles)
        place.set_title(name, fontsize="medium")
    for unused in list(axes.flat)[len(panels) :]:
        unused.set_axis_off()
    canvas.suptitle(fill(figure.title, int(width * _LETTERS_PER_INCH)))
    handles = {
        label: handle for place in axes.flat for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=max(1, min(len(handles), int(width / (_KEY + max(map(len, handles)) / _LETTERS_PER_INCH)))),
        frameon=False,
    )
    return canvas


def lines(figure: Figure, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of lines with two points or more."""
    keys = [figure.by] if figure.panels is None else [figure.panels, figure.by]
    rows: pd.DataFrame = table[table.groupby(keys, sort=False)[figure.x].transform("nunique") > 1]
    return rows


def save(figure: Figure, table: pd.DataFrame, folder: Path) -> list[Path]:
    """``NAME.svg`` and ``NAME.png`` in a folder, byte for byte the same for the same table."""
    import matplotlib

    paths = []
    with matplotlib.rc_context({"svg.hashsalt": figure.name, "svg.fonttype": "none"}):
        canvas = draw(figure, table)
        for suffix, extra in ((".svg", {"Date": None}), (".png", {"Software": None})):
            path = folder / f"{figure.name}{suffix}"
            with replacing(path) as temporary:
                canvas.savefig(temporary, format=suffix[1:], dpi=150, metadata=extra)
            paths.append(path)
    return paths


def _styles(figure: Figure, table: pd.DataFrame) -> dict[str, Any]:
    """Colour, mark and dashes of each line: no two of 56 lines are alike."""
    names = [str(name) for name in table[figure.by].drop_duplicates()]
    dashes = [DASHES[k // len(COLOURS) % len(DASHES)] for k in range(len(COLOURS) * 8)]
    return dict(zip(names, cycle(zip(COLOURS * 8, MARKS * 7, dashes, strict=True)), strict=False))


def draw_panel(place: Any, figure: Figure, table: pd.DataFrame, styles: dict[str, Any] | None = None) -> None:
    """One panel of a figure on an Axes."""
    styles = _styles(figure, table) if styles is None else styles
    for name, part in _groups(table, figure.by):
        colour, mark, dash = styles[name]
        line = part.sort_values(figure.x)
        place.plot(
            *(line[figure.x], line[figure.y], dash),
            marker=mark, markevery=max(1, len(line) // _MARKS_OF_A_LINE), markersize=4, color=colour, label=name,
        )  # fmt: skip
        if figure.low is not None and figure.high is not None:
            place.fill_between(
                line[figure.x], line[figure.low], line[figure.high], color=colour, alpha=0.15, linewidth=0
            )
    if figure.log_x:
        place.set_xscale("log")
        few = sorted(table[figure.x].unique())
        if len(few) <= _MOST_TICKS:
            place.set_xticks(few, labels=[f"{x:g}" for x in few])
            place.minorticks_off()
    if figure.log_y:
        place.set_yscale("log")
    place.set_xlabel(figure.x_label)
    place.set_ylabel(figure.y_label)
    place.label_outer()
    place.grid(color="#dddddd", linewidth=0.6)


def _groups(table: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for value in table[column].drop_duplicates():
        yield str(value), table[table[column] == value]


BLUE, VERMILION, _, _, BLACK = COLOURS[:5]
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


def alone(values: Any) -> str:
    """The mark of a line's points: a line of one value would not be seen without."""
    return "o" if len(values) == 1 else ""


def in_plane(space: StateSpace, points: Any) -> FloatArray:
    """The first two numbers of answers (n, d); 0 for the second where there is but one."""
    given = np.asarray(points, dtype=np.float64)
    given = given.reshape(-1, space.dimension)
    return given[:, :2] if space.dimension > 1 else np.stack([given[:, 0], np.zeros(len(given))], axis=1)


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
