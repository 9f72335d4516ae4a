"""Numbers over time, and mechanisms side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.plot._axes import BLACK, BLUE, GREY, LOOKS, alone, axes, plain, titled
from dphmm.plot._columns import Columns
from dphmm.states.space import LABELS_WRONG, StateSpace
from dphmm.storage.release_words import off
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from dphmm.schedule_plan import SchedulePlan


def error_over_time(
    released: Any,
    truth: Any,
    space: StateSpace,
    *,
    user: str | None = None,
    smoothed: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """The distance of answers to the truth, step by step: the mean over subjects, or of one ``user``.

    ``truth``, ``smoothed``: answers (n, d) or states (n,) of every row of the table. For simulations, and for the data
    owner alone.
    """
    columns = Columns.of(released, user)
    true = columns.given(truth, "truth", space)
    answers = columns.published(space)
    if smoothed is not None:
        answers["smoothed"] = columns.given(smoothed, "smoothed", space)
    known = ~np.isnan(true).any(axis=1)
    if not known.any():
        raise InvalidInput("truth", "no row with a true state", "at least one")
    ax = plain(axes(ax))
    for kind, values in answers.items():
        look = LOOKS[kind]
        steps, means = _by_step(columns.step[known], space.distances(values[known], true[known]))
        ax.plot(steps, means, color=look.colour, linestyle=look.line, marker=alone(steps), label=kind)
    unit = ", m" if hasattr(space, "projection") else ""
    ax.set(xlabel="time step", ylabel=f"mean error{unit}", title="Error over time")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def spent(released: Any, *, user: str | None = None, ax: Axes | None = None) -> Axes:
    """The sums of costs and of epsilons over one subject's steps; ``user`` is the first row's by default.

    The sum of costs bounds the loss of any two histories (Theorem 7.2), the sum of epsilons that of two neighbouring
    paths (docs/proofs/paths.md). The line of the costs ends at a cost without bound.
    """
    columns = Columns.of(released, user if user is not None else Columns.of(released, None).first_user)
    ax = plain(axes(ax))
    with np.errstate(invalid="ignore"):
        cost = np.cumsum(columns.numbers("cost"))
    bounded = np.where(np.isfinite(cost), cost, np.nan)
    ax.plot(columns.step, bounded, color=BLACK, marker=alone(cost), label="sum of costs")
    ax.plot(
        columns.step,
        np.cumsum(columns.numbers("epsilon")),
        color=BLUE,
        linestyle="--",
        marker=alone(cost),
        label="sum of epsilons: neighbouring paths",
    )
    ax.set(xlabel="time step", ylabel="spent", title="What was spent")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def ladder(plan: SchedulePlan | Sequence[SchedulePlan], *, ax: Axes | None = None) -> Axes:
    """The expected errors of what `dphmm.plan` tried, by the number of releases; the chosen schedule is marked.

    Of several plans: what each of their totals buys.
    """
    from dphmm.schedule_plan import SchedulePlan

    if not isinstance(plan, SchedulePlan):
        if not isinstance(plan, (list, tuple)) or not plan:
            raise InvalidInput("plan", type(plan).__name__, "what dphmm.plan found, or a list of such plans")
        from dphmm.plot._releases import plans_ladder

        return plans_ladder(plan, ax=ax)
    ax = plain(axes(ax))
    releases = [row.releases for row in plan.ladder]
    for name, label in (("online", "estimate"), ("smoothed", "smoothed")):
        look = LOOKS[label]
        errors = [getattr(row, name) for row in plan.ladder]
        ax.plot(releases, errors, color=look.colour, linestyle=look.line, marker=look.mark, label=name)
    ax.axhline(plan.without, color=GREY, linestyle=":", label="without the file")
    chosen = f"{plan.chosen.releases} x {in_short(plan.chosen.epsilon)}"
    ax.plot([plan.chosen.releases], [plan.expected_error], "o", color=BLACK, fillstyle="none", markersize=12,
            label=f"chosen: {chosen}")  # fmt: skip
    ax.set(xscale="log", xlabel="releases", ylabel=f"expected error, {plan.unit}")
    total, base = in_short(plan.schedule.promise.exact), off(plan.without, plan.unit)
    wrong = "" if plan.unit == LABELS_WRONG else "off "
    error = off(plan.expected_error, plan.unit)
    titled(ax, f"A budget of {total}: {error} {wrong}expected ({base} without the file)")
    ax.set_xticks(releases, [str(count) for count in releases], minor=False)
    ax.set_xticks([], minor=True)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def scales(comparison: Any, *, ax: Axes | None = None) -> Axes:
    """The noise scales of `dphmm.dependent.compare` side by side, with the true epsilon where it is known."""
    from dphmm.dependent import Comparison

    if not isinstance(comparison, Comparison):
        raise InvalidInput("comparison", type(comparison).__name__, "what dphmm.dependent.compare gives")
    drawn: Axes = comparison.plot(axes(ax))
    return drawn


def _by_step(steps: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """The mean at each step."""
    distinct, number, counts = np.unique(steps, return_inverse=True, return_counts=True)
    return distinct, np.bincount(number, weights=values) / counts
