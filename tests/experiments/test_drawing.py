"""A figure of a table has a line for each value, a panel for each group, and the same bytes each time.

It could fail by lines that mix two groups, by a band at other numbers than the interval's, by a line in the order of
the rows, or by a date in the file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dphmm.plot.axes import COLOURS
from experiments.drawing import Figure, draw, lines

pytest.importorskip("matplotlib")

FIGURE = Figure(
    "errors", "Errors", "table", "x", "y", "kind", "epsilon", "error", panels="data", low="low", high="high"
)


@pytest.fixture
def table():
    rows = [
        {"x": x, "y": 10.0 * k + x, "low": 10.0 * k + x - 1, "high": 10.0 * k + x + 2, "kind": kind, "data": data}
        for data in ("one", "two")
        for k, kind in enumerate(("a", "b"))
        for x in (3, 1, 2)
    ]
    return pd.DataFrame(rows)


def test_every_panel_has_its_lines_in_order_of_x(table):
    panels = [place for place in draw(FIGURE, table).axes if place.lines]
    assert [place.get_title() for place in panels] == ["one", "two"]
    for place in panels:
        drawn = {line.get_label(): np.stack(line.get_data(), axis=1).tolist() for line in place.lines}
        assert drawn == {"a": [[1, 1], [2, 2], [3, 3]], "b": [[1, 11], [2, 12], [3, 13]]}
        assert [line.get_color() for line in place.lines] == list(COLOURS[:2])
        assert len({line.get_marker() for line in place.lines}) == 2
        band = place.collections[1].get_paths()[0].vertices
        assert (band[:, 1].min(), band[:, 1].max()) == (10.0, 15.0)


def numbered(lines, points=3):
    return pd.DataFrame([{"x": x, "y": float(k), "kind": f"line {k}"} for k in range(lines) for x in range(points)])


PLAIN = replace(FIGURE, panels=None, low=None, high=None)


def test_no_two_of_56_lines_are_alike_and_colours_that_come_again_are_dashed():
    (place,) = (place for place in draw(PLAIN, numbered(56)).axes if place.lines)
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in place.lines]
    assert len(set(looks)) == 56
    assert len({(colour, dash) for colour, _, dash in looks[: 4 * len(COLOURS)]}) == 4 * len(COLOURS)


def test_a_long_line_has_a_dozen_marks():
    (place,) = (place for place in draw(PLAIN, numbered(1, points=100)).axes if place.lines)
    assert 100 / place.lines[0].get_markevery() <= 13


@pytest.mark.parametrize("letters", [3, 30, 60])
def test_the_legend_is_on_the_page(letters):
    table = numbered(9)
    table["kind"] += "x" * letters
    canvas = draw(PLAIN, table)
    canvas.canvas.draw()
    (legend,) = canvas.legends
    box, page = legend.get_window_extent(), canvas.bbox
    assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1


def test_single_points_are_left_out_beside_lines_and_drawn_where_there_is_nothing_else():
    table = numbered(2)
    table = table[(table["kind"] == "line 0") | (table["x"] == 1)]
    (place,) = (place for place in draw(PLAIN, table).axes if place.lines)
    assert [line.get_label() for line in place.lines] == ["line 0"]
    single = table[table["x"] == 1]
    assert len(lines(PLAIN, single)) == 0
    (place,) = (place for place in draw(PLAIN, single).axes if place.lines)
    assert len(place.lines) == 2


def test_a_logarithmic_axis_of_few_values_has_them_as_ticks():
    table = numbered(1).assign(x=[2, 5, 60])
    (place,) = (place for place in draw(replace(PLAIN, log_x=True), table).axes if place.lines)
    assert [tick.get_text() for tick in place.get_xticklabels()] == ["2", "5", "60"]


def test_without_panels_there_is_one_and_scales_are_as_asked(table):
    figure = replace(FIGURE, panels=None, low=None, high=None, log_x=True)
    (place,) = (place for place in draw(figure, table[table["data"] == "one"]).axes if place.lines)
    assert place.get_xscale() == "log" and place.get_yscale() == "linear" and not place.collections
    assert place.get_xlabel() == "epsilon" and place.get_ylabel() == "error"
