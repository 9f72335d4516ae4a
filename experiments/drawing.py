"""Figures of tables as SVG and PNG: in colours and marks that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from dphmm.plot.axes import COLOURS, MARKS

# The package's own safe writing of files: there is no public name for it.
from dphmm.storage.inputs import replacing

if TYPE_CHECKING:
    import pandas as pd


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
