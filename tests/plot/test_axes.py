"""Pictures load matplotlib when they are drawn, on the axes that are given or on new ones.

Fails where `import dphmm.plot` loads matplotlib, where a missing matplotlib is a traceback, or where a title is cut.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes

import dphmm
from dphmm.errors import InvalidInput
from dphmm.plot import axes

pytest.importorskip("matplotlib")

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)


def test_without_axes_there_is_a_new_figure():
    from matplotlib import pyplot

    made = dphmm.plot.hull(dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(GRID, 700), GRID))
    assert isinstance(made, Axes)
    pyplot.close(made.figure)


@pytest.mark.slow
def test_matplotlib_is_loaded_when_a_picture_is_drawn():
    code = """
import sys, dphmm.plot
for name in dphmm.plot.__all__:
    getattr(dphmm.plot, name)
print('matplotlib' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_matplotlib_there_is_a_hint(monkeypatch):
    monkeypatch.setattr(axes, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"dphmm\[plot\]"):
        dphmm.plot.hull(dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(GRID, 700), GRID))


def test_a_long_title_has_as_many_lines_as_the_axes_need(ax):
    words = "a finding is a sentence and a sentence has many words " * 4
    axes.titled(ax, words)
    shown = ax.get_title()
    assert shown.count("\n") >= 3 and shown.split() == words.split()
    ax.figure.canvas.draw()
    assert ax.title.get_window_extent().width <= ax.figure.bbox.width


def test_a_name_is_no_formula(ax):
    ax.set_title(axes.literal(r"$x^2$ and \alpha"))
    ax.figure.canvas.draw()
    assert axes.literal(r"$x$") == r"\$x\$" and axes.literal("plain") == "plain"


def test_answers_of_one_number_lie_on_a_line():
    line = dphmm.StateSpace(np.arange(5))
    assert axes.in_plane(line, [3, 1]).tolist() == [[3, 0], [1, 0]]
