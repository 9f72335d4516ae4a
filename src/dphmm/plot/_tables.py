"""Pictures of released tables, of one subject or all, and of what `dphmm.tune` gives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.plot.figures import (
    BLACK,
    BLUE,
    COLOURS,
    GREY,
    LOOKS,
    MARKS,
    TRADE_OFF,
    alone,
    axes,
    draw_panel,
    ground,
    literal,
    plain,
    titled,
)
from dphmm.states.space import StateSpace
from dphmm.storage.columns import as_text, finite, integers
from dphmm.storage.csv_files import listed
from dphmm.storage.tables import column_list, read_whole, to_arrow
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: What answers are called in a picture, and in the columns of a table.
_KINDS = {"released": "z", "smoothed": "smoothed"}


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers of a released table, row by row; ``rows`` are those that were asked for, by step."""

    table: Any
    rows: IntArray
    step: IntArray
    whose: str
    first_user: str

    @classmethod
    def of(cls, released: Any, user: str | None) -> Columns:
        """The rows of a user, or of all. Raises InvalidInput for a table that is no released one."""
        released = read_whole(released)
        names = column_list(released)
        for name in ("user", "step"):
            if name not in names:
                raise InvalidInput("released", f"columns {listed(list(names))}", f"a released table, with {name}")
        table = to_arrow(released, list(names))
        users = np.array(as_text(table.column("user"), "user").to_pylist(), dtype=object)
        step, bad = integers(table.column("step"), "step")
        if bad.any() or not len(users):
            raise InvalidInput("released", "no rows, or steps that are no numbers", "a released table")
        mine = np.arange(len(users)) if user is None else np.flatnonzero(users == user)
        if not len(mine):
            raise InvalidInput("user", user, f"a user of the table, such as {users[0]!r}")
        rows = mine[np.argsort(step[mine], kind="stable")]
        return cls(table, rows, step[rows], "all subjects" if user is None else user, str(users[0]))

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers at the rows."""
        if name not in self.table.column_names:
            raise InvalidInput("released", "a table without the column " + name, "a released table")
        import pyarrow as pa

        column = self.table.column(name)
        if pa.types.is_floating(column.type):
            return np.asarray(column.to_numpy(), dtype=np.float64)[self.rows]
        return finite(column, name)[self.rows]

    def answers(self, name: str, space: StateSpace) -> FloatArray:
        """Answers (n, d) at the rows; of labels the numbers of their states, NaN for a row that was not asked."""
        if space.has_labels and name in self.table.column_names:
            cells = [cell or "" for cell in as_text(self.table.column(name), name).to_pylist()]
            numbers = space.indices_of(cells).astype(np.float64)
            numbers[numbers < 0] = np.nan
            return numbers[self.rows][:, None]
        return np.stack([self.numbers(f"{name}_{j}") for j in range(space.dimension)], axis=1)

    def published(self, space: StateSpace) -> dict[str, FloatArray]:
        """The answers (n, d) that the table has: released ones, and smoothed ones of `dphmm.smooth`."""
        found = {}
        for kind, name in _KINDS.items():
            if {f"{name}_0", name if space.has_labels else f"{name}_0"} & set(self.table.column_names):
                found[kind] = self.answers(name, space)
        if not found:
            came = f"a table with the columns {listed(list(self.table.column_names))}"
            raise InvalidInput("released", came, "a released table, or what dphmm.smooth makes of one")
        return found

    def beside(self, table: Any, space: StateSpace) -> FloatArray:
        """The smoothed answers (n, d) at the rows, of what `dphmm.smooth` made of this table."""
        other = Columns.of(table, None)
        for name in ("user", "step"):
            if not other.table.column(name).cast(self.table.column(name).type).equals(self.table.column(name)):
                expected = "what dphmm.smooth made of the same table: the same rows in the same order"
                raise InvalidInput("smoothed", f"a table of another column {name}", expected)
        own = Columns(other.table, self.rows, self.step, self.whose, self.first_user)
        return own.answers("smoothed", space)

    def given(self, answers: Any, name: str, space: StateSpace) -> FloatArray:
        """Answers (n, d), or states (n,), of every row of the table, at the rows; NaN for a state of -1.

        Smoothed ones may be a table of `dphmm.smooth`.
        """
        if name == "smoothed" and (hasattr(answers, "columns") or hasattr(answers, "column_names")):
            return self.beside(answers, space)
        values = np.asarray(answers)
        n = len(self.table)
        if values.shape == (n,) and values.dtype.kind in "iu" and (values < space.n_states).all():
            found = space.own_answers[values].astype(np.float64)
            found[values < 0] = np.nan
            return np.asarray(found[self.rows])
        if values.shape != (n, space.dimension) or values.dtype.kind not in "iuf":
            expected = f"({n}, {space.dimension}) answers or ({n},) state numbers, one for each row"
            raise InvalidInput(name, f"an array of shape {values.shape}", expected)
        return np.asarray(values[self.rows], dtype=np.float64)


def release_map(
    released: Any,
    space: StateSpace,
    *,
    user: str | None = None,
    truth: Any = None,
    smoothed: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """What was released about one subject, and what smoothing makes of it, among the states.

    ``released``: a released table (pandas, polars, Arrow), or what `dphmm.smooth` makes of one, which has the smoothed
    answers alone. ``user``: whose rows; the first row's by default. ``truth``, ``smoothed``: answers (n, d) or states
    (n,) of every row of the table, ``smoothed`` also the table of `dphmm.smooth`; a picture with the truth of real
    people is for the data owner alone. Answers of one number are drawn over the steps, of more than two by the first
    two.
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
    ax.set_title(f"One subject: {literal(columns.whose)}")
    ax.legend(frameon=False)
    return ax


def _line(ax: Axes, kind: str, points: FloatArray) -> None:
    look = LOOKS[kind]
    joined = "none" if kind == "released" else look.line
    ax.plot(
        points[:, 0], points[:, 1], color=look.colour, marker=look.mark, markersize=4, linewidth=1, linestyle=joined,
        alpha=0.8, label=kind,
    )  # fmt: skip


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

    ``released``, ``truth``, ``smoothed``: as for `release_map`. For simulations, and for the data owner alone.
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
    paths (docs/proofs/paths.md).
    """
    columns = Columns.of(released, user if user is not None else Columns.of(released, None).first_user)
    ax = plain(axes(ax))
    cost = np.cumsum(columns.numbers("cost"))
    ax.plot(columns.step, cost, color=BLACK, marker=alone(cost), label="sum of costs")
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


#: More regions than these cannot be read beside each other.
_MOST_REGIONS = 60


def shares(population: Any, period: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The share of each region with its 90 % interval, and the likeliest one, of what `dphmm.population` found.

    ``period``: which one, where there are several. A region that cannot be answered has no mark. Raises InvalidInput
    for more than 60 regions.
    """
    from dphmm.reconstruction.population import Population

    if not isinstance(population, Population):
        raise InvalidInput("population", type(population).__name__, "what dphmm.population gives")
    found = {one.period: one for one in population.densities}
    name = next(iter(found)) if period is None and len(found) == 1 else period
    if name not in found:
        more = ", ..." * (len(found) > 5)
        raise InvalidInput("period", period, f"one of {', '.join(list(found)[:5])}{more}")
    told = found[name]
    if not 0 < len(told.regions) <= _MOST_REGIONS:
        raise InvalidInput("population", f"{len(told.regions)} regions", f"1 to {_MOST_REGIONS}: name them by regions=")
    ax = plain(axes(ax))
    for place, share in enumerate(told.regions):
        if share.low is not None and share.high is not None and share.linear is not None:
            ends = [100 * share.low, 100 * share.high]
            ax.plot(ends, [place] * 2, color=BLACK, linewidth=1.5, label="90 % interval")
            ax.plot([100 * share.linear], [place], "|", color=BLACK, markersize=10, label="linear estimate")
        if share.estimate is not None and not share.why:
            ax.plot([100 * share.estimate], [place], "o", color=BLUE, fillstyle="none", label="likeliest")
        elif share.why:
            ax.annotate("cannot be answered", (0, place), va="center", color=GREY)
    ax.set_yticks(range(len(told.regions)), [literal(share.region) for share in told.regions])
    ax.set_ylim(len(told.regions) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.set_xlabel("share, %")
    whose = "answers" if not population.public else "people"
    count = told.answers if not population.public else told.n
    titled(ax, f"Where {count:,} {whose} are{'' if name == 'all' else f': {literal(name)}'}")
    labels = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if labels:
        ax.legend(labels.values(), labels.keys(), frameon=False)
    return ax


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


def _by_step(steps: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """The mean at each step."""
    distinct, number, counts = np.unique(steps, return_inverse=True, return_counts=True)
    return distinct, np.bincount(number, weights=values) / counts
