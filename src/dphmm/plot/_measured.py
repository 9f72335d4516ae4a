"""Pictures of measurements: the findings of adversaries."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.plot.axes import COLOURS, MARKS, axes, literal, plain, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def attacks(report: Any, *, ax: Axes | None = None) -> Axes:
    """The expected error of each adversary of `dphmm.audit.attack`, the mean at each step; for the data owner alone."""
    from dphmm.audit.attacks.attack import AttackReport

    if not isinstance(report, AttackReport):
        raise InvalidInput("report", type(report).__name__, "what dphmm.audit.attack gives")
    ax = plain(axes(ax))
    for attack, shade, mark in zip(report.measured, cycle(COLOURS), cycle(MARKS)):
        steps = attack.per_step()
        ax.plot(steps["t"], steps["expected_error"], color=shade, marker=mark, markersize=4, label=literal(attack.name))
    titled(ax, "FOR THE OWNER ALONE: how far off adversaries are")
    ax.set(xlabel="time step", ylabel=f"expected error, {report.unit}")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax
