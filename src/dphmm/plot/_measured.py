"""Pictures of what was measured: what adversaries find, and what `dphmm.tune` gives."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.plot.figures import BLACK, COLOURS, MARKS, TRADE_OFF, axes, draw_panel, literal, plain, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def attacks(report: Any, *, ax: Axes | None = None) -> Axes:
    """The expected error of each adversary of `dphmm.audit.attack`, the mean at each step; for the data owner alone."""
    from dphmm.audit.attacks.attack import AttackReport

    if not isinstance(report, AttackReport):
        raise InvalidInput("report", type(report).__name__, "what dphmm.audit.attack gives")
    ax = plain(axes(ax))
    for one, shade, mark in zip(report.measured, cycle(COLOURS), cycle(MARKS)):
        steps = one.per_step()
        ax.plot(steps["t"], steps["expected_error"], color=shade, marker=mark, markersize=4, label=literal(one.name))
    titled(ax, "FOR THE OWNER ALONE: how far off adversaries are")
    ax.set(xlabel="time step", ylabel=f"expected error, {report.unit}")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def trade_off(tuning: Any, mechanism: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The error of the estimate by epsilon, a line for each policy that `dphmm.tune` tried.

    ``mechanism``: of which one; by default that of the recommended setting, or the first that was tried.
    """
    from dphmm.evaluation.tuning import Tuning

    if not isinstance(tuning, Tuning):
        raise InvalidInput("tuning", type(tuning).__name__, "what dphmm.tune gives")
    table, found = tuning.table[tuning.table["refused"].isna()], tuning.recommended
    if not len(table):
        raise InvalidInput("tuning", "settings that are all refused", "one with an error to draw")
    names = list(table["mechanism"].drop_duplicates())
    chosen = mechanism or (names[0] if found is None else found["mechanism"])
    if chosen not in names:
        raise InvalidInput("mechanism", chosen, "one of " + ", ".join(names))
    ax = axes(ax)
    draw_panel(ax, TRADE_OFF, table[table["mechanism"] == chosen])
    if found is not None and found["mechanism"] == chosen:
        ax.plot(found["epsilon"], found["estimate_error"], "o", markersize=13, fillstyle="none", color=BLACK)
        ax.annotate(
            "recommended", (found["epsilon"], found["estimate_error"]), xytext=(9, 9), textcoords="offset points"
        )
    titled(ax, TRADE_OFF.title)
    ax.set_ylabel(f"{TRADE_OFF.y_label}, {tuning.space.unit}")
    ax.legend(frameon=False)
    return ax
