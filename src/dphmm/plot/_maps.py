"""Where answers were: one subject's way through the states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.plot._axes import LOOKS, axes, ground
from dphmm.plot._columns import Columns
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def release_map(
    released: Any,
    space: StateSpace,
    *,
    user: str | None = None,
    truth: Any = None,
    smoothed: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """What was released about one subject, and what estimates make of it, among the states.

    ``released``: a released table (pandas, polars, Arrow). ``user``: whose rows; the first row's by default. ``truth``,
    ``smoothed``: answers (n, d) or states (n,) of every row of the table; a picture with the truth of real people is
    for the data owner alone. Answers of one number are drawn over the steps, of more than two by the first two.
    """
    columns = Columns.of(released, user if user is not None else Columns.of(released, None).first_user)
    answers = columns.published(space)
    if smoothed is not None:
        answers["smoothed"] = columns.given(smoothed, "smoothed", space)
    if truth is not None:
        answers = {"truth": columns.given(truth, "truth", space), **answers}
    ax = axes(ax)
    if space.dimension == 1:
        for kind, values in answers.items():
            _line(ax, kind, np.stack([columns.step, values[:, 0]], axis=1))
        ax.set(xlabel="time step", ylabel="answer")
    else:
        ground(space, ax)
        for kind, values in answers.items():
            _line(ax, kind, values[:, :2])
    ax.set_title(f"One subject: {_plain(columns.whose)}")
    ax.legend(frameon=False)
    return ax


def _line(ax: Axes, kind: str, points: FloatArray) -> None:
    look = LOOKS[kind]
    joined = "none" if kind == "released" else look.line
    ax.plot(
        points[:, 0], points[:, 1], color=look.colour, marker=look.mark, markersize=4, linewidth=1, linestyle=joined,
        alpha=0.8, label=kind,
    )  # fmt: skip


def _plain(text: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return text.replace("\\", "\\\\").replace("$", r"\$")
