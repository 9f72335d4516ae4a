"""A figure of a table has a line for each value, a panel for each group, and the same bytes each time.

It could fail by lines that mix two groups, by a band at other numbers than the interval's, by a line in the order of
the rows, or by a date in the file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dphmm.plot.figures import COLOURS, Figure, draw, save

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


def test_without_panels_there_is_one_and_scales_are_as_asked(table):
    figure = replace(FIGURE, panels=None, low=None, high=None, log_x=True)
    (place,) = (place for place in draw(figure, table[table["data"] == "one"]).axes if place.lines)
    assert place.get_xscale() == "log" and place.get_yscale() == "linear" and not place.collections
    assert place.get_xlabel() == "epsilon" and place.get_ylabel() == "error"


def test_files_are_the_same_twice(table, tmp_path):
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths = save(FIGURE, table, tmp_path / name)
        written.append({path.name: path.read_bytes() for path in paths})
    assert set(written[0]) == {"errors.svg", "errors.png"} and written[0] == written[1]
