"""Charts of a report and of what a budget buys: the same roles, colours, words and figures as on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.plot.figures import BLACK, GREY, LOOKS, axes, literal, plain, titled
from dphmm.policy.graph import PolicyGraph
from dphmm.report import maps
from dphmm.report.beliefs import Cells
from dphmm.report.charts import alone, colours_of, runs, shortened
from dphmm.report.content import OWNER_ONLY, Person, ReleaseReport
from dphmm.report.page import Content
from dphmm.report.palette import LABELS, ROLES
from dphmm.report.words import ODDS, SEVERAL
from dphmm.schedule_plan import SchedulePlan, Stays
from dphmm.statement.sentences import PHRASES, off
from dphmm.statement.sentences import sureness as sureness_text
from dphmm.statement.story import OTHER_TIMES, after_words, stay_words
from dphmm.states.space import LABELS_WRONG, StateSpace
from dphmm.states.zones import Zones

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DARK = 0.5
_SMALL_MAPS = 12
#: Of answers of one number, or of more than two.
_NEITHER = "answers in the plane or labels; plot.error and plot.sureness take any, and the page draws these"
#: Where the pieces of a dashed cross begin and end, along its arms.
_DASHES = (-1.0, -0.6, -0.22, 0.22, 0.6, 1.0)
#: What a legend of long names leaves of the width.
_BESIDE_LEGEND = 0.55
#: Room for the name of a label in a legend, in units of `dphmm.report.charts.shortened`.
_LEGEND_NAME = 240.0
#: Percent of the axis of sureness that a letter takes.
_A_LETTER = 0.95
#: So many letters have room below an axis.
_LETTERS = 60


def colour(role: str, ax: Axes) -> str:
    """The colour of a role, on the paper that the axes have."""
    return ROLES[role].dark if _is_dark(ax) else ROLES[role].light


def _is_dark(ax: Axes) -> bool:
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.get_facecolor())) / 3 < _DARK


def _of(report: Any, *, planar: bool = False) -> ReleaseReport:
    if not isinstance(report, ReleaseReport):
        raise InvalidInput("release", type(report).__name__, "a report, such as dphmm.report.read_report gives")
    if planar and report.cells is None:
        expected = "answers in the plane; plot.strip draws labels" if report.space.has_labels else _NEITHER
        raise InvalidInput("release", f"states of kind {report.space.kind}", expected)
    return report


def belief(
    release: ReleaseReport, step: int | None = None, *, person: str | None = None, ax: Axes | None = None
) -> Axes:
    """A map of one step: the published answer, and what a reader believes (50, 80, 95 %).

    ``step`` counts the rows of a ``person`` from 0; by default the step and the person that the page shows first. The
    truth is drawn where the report has it. Raises InvalidInput for answers that are not in the plane.
    """
    report = _of(release, planar=True)
    content = Content(report)
    chosen = content.person if person is None else next((one for one in report.persons if one.name == person), None)
    if chosen is None:
        raise InvalidInput("person", person, f"one of the {len(report.persons)} people of the report")
    at = step if step is not None else content.first_step if chosen is content.person else 0
    if not 0 <= at < len(chosen.rows):
        raise InvalidInput("step", at, f"0 to {len(chosen.rows) - 1}")
    ax = axes(ax)
    row = int(chosen.rows[at])
    _map(ax, report, _at(chosen.levels, at), row, _at(chosen.guess, at))
    kind = "answer" if report.rows.asked[row] else "best guess"
    far = content.how_far(chosen, at)
    timed = report.rows.time is not None
    when = f"{_day_of(content, chosen, at)}, " * timed + content.moment(row)
    told = f"{literal(chosen.name)}, {when}, {kind}{f': {far}' if far else ''}"
    _titled(ax, report, told, owner=report.owner_only)
    keys = _keys(ax, report, chosen, [row])
    ax.legend(handles=keys, frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return ax


def _day_of(content: Content, person: Person, at: int) -> str:
    return next(name for name, rows in content.days(person) if at in rows)


def _keys(ax: Axes, report: ReleaseReport, person: Person, rows: Sequence[int]) -> list[Any]:
    """What the marks and shades of maps of some rows are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    view, published, line = maps.view_of(report), colour("published", ax), colour("belief-line", ax)
    beyond = [bool(view.kept(view(report.rows.z[row][:2]))[1]) for row in rows if report.rows.asked[row]]
    found: list[Any] = []
    mark = partial(Line2D, [], [], linestyle="")
    if False in beyond:
        found.append(mark(marker="x", color=published, markeredgewidth=3, label="published answer"))
    if True in beyond:
        name = "answer beyond the map"
        found.append(mark(marker=_dashed_cross(), color=published, markersize=10, markeredgewidth=3, label=name))
    if person.levels is not None:
        for share, name in (("50", "believed: 50 %"), ("80", "80 %"), ("95", "95 %")):
            found.append(Patch(facecolor=colour(f"belief-{share}", ax), edgecolor=line, label=name))
    if person.guess is not None:
        found.append(mark(marker="o", color=colour("guess", ax), label="best guess"))
    if report.truth is not None:
        found.append(mark(marker="o", color=colour("ink", ax), fillstyle="none", markeredgewidth=2, label="truth"))
    return found


def _at(values: Any, row: int) -> Any:
    return None if values is None else values[row]


def _titled(ax: Axes, report: ReleaseReport, told: str, *, owner: bool = False, share: float = 1.0) -> None:
    """A title that says of whom the chart may be seen, and whether anything is guaranteed, wherever it is taken to."""
    titled(ax, f"{OWNER_ONLY * owner}{_not_private(report)}{told}", share=share)


def _not_private(report: ReleaseReport) -> str:
    private = report.statement.private
    return "" if private is True else "NOT PRIVATE: " if private is False else "NOT KNOWN TO BE PRIVATE: "


def _map(ax: Axes, report: ReleaseReport, levels: Any, row: int | None, guess: Any = None) -> None:
    """The map of a row: what is believed, the published answer, the truth where the report has it, the best guess."""
    cells = report.cells
    assert cells is not None
    _ground(ax, report, cells)
    if levels is not None:
        for level, share in ((1, "95"), (2, "80"), (3, "50")):
            _fill(ax, cells, np.flatnonzero(levels == level), colour(f"belief-{share}", ax))
        from matplotlib.collections import LineCollection

        lines = [np.stack(pair) for pair in cells.outline(np.flatnonzero(levels))]
        ax.add_collection(LineCollection(lines, colors=colour("belief-line", ax), linewidths=1.2, zorder=3))
    if row is not None and report.truth is not None and not np.isnan(report.truth.places[row]).any():
        (x, y), _ = _kept(report, report.truth.places[row][:2])
        ax.plot(x, y, "o", color=colour("ink", ax), fillstyle="none", markersize=9, markeredgewidth=2, zorder=5)
    if row is not None and report.rows.asked[row]:
        (x, y), beyond = _kept(report, report.rows.z[row][:2])
        mark = _dashed_cross() if beyond else "x"
        ax.plot(x, y, marker="x", color=colour("paper", ax), markersize=12, markeredgewidth=6, zorder=6)
        ax.plot(x, y, marker=mark, color=colour("published", ax), markersize=10, markeredgewidth=3, zorder=7)
    if guess is not None:
        ax.plot(*guess[:2], "o", color=colour("guess", ax), markeredgecolor=colour("paper", ax), zorder=8)


def _dashed_cross() -> Any:
    """The mark of an answer that lies beyond a map."""
    from matplotlib.path import Path

    points = [(along, way * along) for way in (1, -1) for along in _DASHES]
    return Path(points, [Path.MOVETO, Path.LINETO] * len(_DASHES))


def _kept(report: ReleaseReport, point: Any) -> tuple[Any, bool]:
    """A point moved onto the map, and whether it lay beyond it, as on the page."""
    view = maps.view_of(report)
    (x, y), beyond = view.kept(view(point))
    return (view.west + x / view.scale, view.north - y / view.scale), bool(beyond)


def _ground(ax: Axes, report: ReleaseReport, cells: Cells) -> None:
    ax.set_facecolor(colour("land", ax))
    for water in report.backdrop.water:
        gaps = np.flatnonzero(np.isnan(water).any(axis=1))
        for number, ring in enumerate(np.split(np.asarray(water), gaps)):
            shade = colour("land" if number else "water", ax)
            ax.fill(*ring[~np.isnan(ring).any(axis=1)].T, color=shade, linewidth=0, zorder=0)
    for road in report.backdrop.roads:
        ax.plot(*np.asarray(road).T, color=colour("road", ax), linewidth=2, zorder=0)
    if isinstance(report.space.unmerged, Zones):
        from matplotlib.collections import LineCollection

        sides = [np.stack(pair) for zone in range(len(cells)) for pair in cells.outline(np.array([zone]))]
        ax.add_collection(LineCollection(sides, colors=colour("reference", ax), linewidths=0.5, zorder=1))
    view = maps.view_of(report)
    across = view.side / view.scale
    ax.set(xlim=(view.west, view.west + across), ylim=(view.north - across, view.north), aspect="equal")
    if maps.answered_beyond(report):
        (left, bottom), (right, top) = cells.low, cells.high
        box = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
        ax.plot(*box, color=colour("soft", ax), linestyle=":", linewidth=1.2, zorder=1)
    if report.on_map:
        ax.set(xlabel="metres east", ylabel="metres north")


def _fill(ax: Axes, cells: Cells, chosen: Any, shade: str) -> None:
    from matplotlib.collections import PolyCollection

    rings = [cells.corners(cell) for cell in chosen.tolist()]
    ax.add_collection(PolyCollection(rings, facecolors=shade, edgecolors=colour("land", ax), linewidths=0.6, zorder=2))


def day(release: ReleaseReport) -> Any:
    """A small map for each answer of the day that the page shows first; a matplotlib Figure's axes as an array."""
    report = _of(release, planar=True)
    content = Content(report)
    person = content.person
    if person is None:
        raise InvalidInput("release", "a report without people", "one with a row")
    asked = [int(at) for at in content.day if report.rows.asked[person.rows[at]]][:_SMALL_MAPS]
    from matplotlib import pyplot

    across = max(1, min(6, len(asked)))
    down = max(1, -(-len(asked) // across))
    drawn = pyplot.subplots(down, across, figsize=(2.2 * across, 2.5 * down), squeeze=False, layout="constrained")[1]
    for place in drawn.flat[len(asked) :]:
        place.set_axis_off()
    for place, at in zip(drawn.flat, asked, strict=False):
        _map(place, report, _at(person.levels, at), int(person.rows[at]), _at(person.guess, at))
        place.set(xticks=[], yticks=[], xlabel="", ylabel="")
        far = content.how_far(person, at).replace("a reader ", "").replace("expects to be", "expected")
        place.set_title(f"{content.moment(int(person.rows[at]))}\n{far}", fontsize="small")
    first, figure = drawn.flat[0], drawn.flat[0].figure
    whose = f"{literal(person.name)}{content.shown_day}"
    figure.suptitle(f"{OWNER_ONLY * report.owner_only}{_not_private(report)}{whose}")
    keys = _keys(first, report, person, person.rows[asked].tolist())
    figure.legend(handles=keys, frameon=False, loc="outside lower center", ncols=min(3, across), fontsize="small")
    return drawn


def error(release: ReleaseReport, *, ax: Axes | None = None) -> Axes:
    """How far off a reader is over the day: expected from public data, and measured where the report has the truth."""
    report = _of(release)
    expected, found = report.prospects.expected, report.found
    content = Content(report)
    if expected is None or found is None or content.error_figure is None:
        raise InvalidInput("release", report.prospects.missing or "a report of one row", "one whose figures are known")
    ax = _plain_axes(ax)
    curves, ticks = content.error_curves
    line, steps, measured = colour("belief-line", ax), np.arange(curves.length) + 0.5, curves.measured
    if curves.band is not None:
        ax.fill_between(steps, *curves.band.T, color=colour("belief-95", ax), linewidth=0)
    for values, name, style, width in (
        (curves.expected, curves.name, (0, (6, 4)), 1.5), (measured, "measured", "-", 2.2),
    ):  # fmt: skip
        if values is not None and np.isfinite(values).any():
            ax.plot(steps, values, color=line, linestyle=style, linewidth=width)
            if len(single := alone(values)):
                ax.plot(steps[single], values[single], "o", color=line, markersize=4)
            best = np.nanargmax if values is curves.expected else np.nanargmin
            _name(ax, steps, values, name, line, int(best(values)))
    ax.plot(steps, curves.without, color=colour("reference", ax), linestyle=(0, (2, 4)))
    base = f"without the file {off(found.without, found.unit)}"
    ax.annotate(base, (0, curves.without[0]), va="bottom", color=colour("soft", ax))
    ax.plot(steps[list(curves.asked)], [0] * len(curves.asked), "x", color=colour("published", ax), clip_on=False)
    ax.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
    ax.set_xlim(0, curves.length)
    owner = report.owner_only and measured is not None
    _titled(ax, report, content.error_figure.heading, owner=owner)
    _errors_axis(ax, found.unit)
    return ax


def nights(plan: SchedulePlan | ReleaseReport, *, ax: Axes | None = None) -> Axes:
    """How far off a reader is of who stays at one place, by number of days or other blocks."""
    report = None
    if isinstance(plan, ReleaseReport):
        report = plan
        stays, unit = report.prospects.stays, report.space.unit
        if not report.some_whole and stays is not None and stays.found:
            raise InvalidInput("plan", f"a file in which nobody has rows of a whole {stays.what}", "one with such rows")
        expected = report.prospects.expected
        if not report.begins_alike and stays is not None and stays.found:
            raise InvalidInput("plan", f"stays that are not told: {OTHER_TIMES}", "one whose blocks begin as step 1")
        why = "" if expected is None else expected.found.uncomputed
    else:
        stays, unit, why = _plan(plan).stays, plan.unit, plan.found.uncomputed
    if stays is not None and not stays.found:
        raise InvalidInput("plan", f"stays that are not computed: {why}", "a plan or a report that tells of who stays")
    if stays is None or not stays.told:
        raise InvalidInput("plan", "a report whose figures are not known", "a plan, or a report with a policy")
    ax = _plain_axes(ax)
    x, y = [after for after, _ in stays.told], [error for _, error in stays.told]
    own = "this file" if report is not None else f"{_plan(plan).schedule.releases} releases"
    ax.plot(x, y, color=colour("belief-line", ax), marker="o", markersize=4, linewidth=2.2, label=own)
    for name, role, style, other in _other_stays(report):
        after, errors = zip(*other.told, strict=True)
        ax.plot(after, errors, color=colour(role, ax), marker="o", markersize=4, linestyle=style, label=name)
    base = f"without the file {off(stays.without, unit)}"
    ax.axhline(stays.without, color=colour("reference", ax), linestyle=(0, (2, 4)), label=base)
    ax.legend(frameon=False)
    ax.set_xscale("log")
    ax.set_xticks(x, [str(after) for after in x])
    ax.set_xticks([], minor=True)
    found = None if report is None else report.found
    ends = [(after, value) for after, value in zip(x, y, strict=True) if after in (x[0], 7)]
    told = ends if found is None else found.stays
    figures = ", ".join(f"{off(value, unit)} after {after_words(stays.what, after)}" for after, value in told)
    who = stay_words(unit)
    heading = f"{who[0].upper()}{who[1:]}: {figures}"
    if report is None:
        titled(ax, heading)
    else:
        _titled(ax, report, heading)
    ax.set(xlabel=f"{stays.what}s")
    _errors_axis(ax, unit)
    return ax


def _other_stays(report: ReleaseReport | None) -> list[tuple[str, str, Any, Stays]]:
    """What the page compares with: a smaller budget, and an answer at every step."""
    if report is None:
        return []
    smaller, unlimited, found = report.prospects.smaller, report.prospects.unlimited, []
    if smaller is not None and smaller[1].told:
        found.append((f"a budget of {in_short(smaller[0])}", "belief-line", (0, (6, 4)), smaller[1]))
    if unlimited is not None and unlimited.told:
        found.append(("an answer at every step", "reference", (0, (1, 1)), unlimited))
    return found


def _errors_axis(ax: Axes, unit: str) -> None:
    """The axis of errors, from zero: shares of labels as percent, as in the title."""
    from matplotlib.ticker import PercentFormatter

    ax.set_ylim(bottom=0)
    ax.set_ylabel("labels wrong, %" if unit == LABELS_WRONG else _unit(unit))
    if unit == LABELS_WRONG:
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))


def sureness(plan: SchedulePlan | ReleaseReport, *, ax: Axes | None = None) -> Axes:
    """How sure a reader can be at most who was torn 50 : 50, by the number of answers that differ."""
    if isinstance(plan, ReleaseReport):
        rows = list(Content(plan).guarantee.long_bars)
        told = rows[1][2].split(ODDS)[0]
    else:
        schedule = _plan(plan).schedule
        one, most = schedule.exact, schedule.releases
        counts = [*range(min(4, most + 1)), *([most] if most > 3 else [])]
        rows = [
            (f"{count} answer{'s' * (count != 1)}", 1 / (1 + math.exp(-float(one * count))),
             sureness_text(one * count) if count else "50 %")
            for count in counts
        ]  # fmt: skip
        told = sureness_text(one)
    ax = axes(ax)
    names, shares = [name for name, _, _ in rows], [100 * share for _, share, _ in rows]
    ax.barh(names, [max(0.4, share - 50) for share in shares], left=50, color=colour("guarantee", ax), alpha=0.45)
    for number, (_, _, text) in enumerate(rows):
        ax.annotate(text, (max(50.4, shares[number]), number), xytext=(4, 0), textcoords="offset points", va="center")
    ax.invert_yaxis()
    heading = f"At most {told} sure {PHRASES['ONE_ANSWER']}"
    if isinstance(plan, ReleaseReport):
        _titled(ax, plan, heading)
    else:
        titled(ax, heading)
    longest = max(len(text) for _, _, text in rows)
    ax.set(xlim=(50, max(118.0, 102 + _A_LETTER * longest)), xticks=(50, 75, 100))
    ax.set_xlabel("\n".join(["sure at most, %", *(wrap(SEVERAL, 50) if len(rows) > 2 else ())]))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def budget(release: ReleaseReport, *, ax: Axes | None = None) -> Axes:
    """What was spent, rising in steps within each block, against the cap; of who spent most."""
    report = _of(release)
    content = Content(report)
    if content.budget_figure is None:
        raise InvalidInput("release", "a report of one row, or without an answer", "one with something spent over time")
    ax = _plain_axes(ax)
    teal = colour("guarantee", ax)
    for number, (_, points) in enumerate(content.blocks()):
        x = [number, *(number + share for share, _ in points), number + 1]
        y = [0.0, *(total for _, total in points), points[-1][1] if points else 0.0]
        ax.step(x, y, where="post", color=teal, linewidth=2)
        ax.fill_between(x, y, step="post", color=teal, alpha=0.15, linewidth=0)
    names = [name or str(number + 1) for number, (name, _) in enumerate(content.blocks())]
    # A name of a day with its year is twice as wide.
    every = -(-len(names) * (1 + max(map(len, names))) // _LETTERS)
    ax.set_xticks([number + 0.5 for number in range(0, len(names), every)], names[::every])
    if report.promise is not None:
        cap = float(report.promise.exact)
        ax.axhline(cap, color=colour("ink", ax), linewidth=2)
        ax.annotate(f"cap: {in_short(report.promise.exact)}", (0, cap), va="bottom", fontweight="bold")
        ax.set_ylim(0, cap * 1.15)
    _titled(ax, report, content.budget_figure.heading)
    return ax


def indistinguishable(policy: PolicyGraph, space: StateSpace, place: int | str, *, ax: Axes | None = None) -> Axes:
    """The cells that a policy joins to one ``place``, a state's number or name."""
    state = space.index_of(place) if isinstance(place, str) else place
    if not 0 <= state < space.n_states:
        raise InvalidInput("place", place, f"one of the {space.n_states} states")
    if space.dimension != 2 or space.has_labels:
        raise InvalidInput("space", f"states of kind {space.kind}", "answers in the plane")
    cells = Cells.of_space(space)
    near = np.setdiff1d(policy.neighbors(state), [state])
    ax = axes(ax)
    _fill(ax, cells, np.unique(cells.of), colour("panel", ax))
    for chosen, alpha in ((cells.of[near], 0.45), (cells.of[[state]], 1.0)):
        from matplotlib.collections import PolyCollection

        rings = [cells.corners(cell) for cell in chosen.tolist()]
        ax.add_collection(PolyCollection(rings, facecolors=colour("guarantee", ax), alpha=alpha, zorder=3))
    ax.set(xlim=(cells.low[0], cells.high[0]), ylim=(cells.low[1], cells.high[1]), aspect="equal")
    name = literal(space.names[state])
    titled(ax, f"{len(near) + 1} of {space.n_states:,} cells are joined to {name}, itself counted")
    return ax


def strip(release: ReleaseReport, *, ax: Axes | None = None) -> Axes:
    """Labels: the likeliest one of each step, fainter where less sure; published answers as squares above."""
    report = _of(release)
    content = Content(report)
    figure = content.strip_figure
    people = [person for person in report.persons if person.state is not None]
    if not report.space.has_labels or figure is None:
        expected = "states that are labels; plot.belief and plot.day draw the plane" if report.planar else _NEITHER
        raise InvalidInput("release", f"states of kind {report.space.kind}", expected)
    chosen = people[:: -(-len(people) // 8)]
    ax = axes(ax)
    dark, names, rows = _is_dark(ax), report.space.names, report.rows
    colours = colours_of(names, rows.z[rows.asked, 0].astype(np.int64))
    at_places = content.shared_places(chosen)
    for number, (person, places) in enumerate(zip(chosen, at_places, strict=True)):
        assert person.state is not None and person.probability is not None
        labels = person.state.tolist()
        for at, label, chance in zip(places, labels, person.probability.tolist(), strict=True):
            shade = LABELS[colours[label]][dark]
            ax.barh(number, 1, left=at, height=0.45, color=shade, alpha=max(0.06, min(0.95, chance)), linewidth=0)
        for first, last in runs(labels, places):
            ax.annotate(
                literal(names[labels[first]]), ((places[first] + places[last] + 1) / 2, number), ha="center",
                va="center", fontsize="small", clip_on=True, gid=f"strip {places[last] + 1 - places[first]}",
            )  # fmt: skip
        asked = np.flatnonzero(report.rows.asked[person.rows])
        for row in asked.tolist():
            shade = LABELS[colours[int(rows.z[person.rows[row], 0])]][dark]
            ax.plot(places[row] + 0.5, number - 0.35, "s", color=shade, markersize=5)
    # Labels that share the last colour are told in its one entry.
    for place, pair in enumerate(LABELS[: len(names)]):
        alike = [name for name, other in zip(names, colours, strict=True) if other == place]
        name = f"{'other: ' * (len(alike) > 1)}{', '.join(alike)}"
        ax.plot([], [], "s", color=pair[dark], label=literal(shortened(name, _LEGEND_NAME)))
    ax.set_yticks(range(len(chosen)), [literal(person.name) for person in chosen])
    ax.invert_yaxis()
    _titled(ax, report, figure.heading, share=_BESIDE_LEGEND)
    ends = content.shared_ticks(chosen, 1 + max(places[-1] for places in at_places))
    ax.set_xlim(0, 1 + max(places[-1] for places in at_places))
    ax.set_xticks([place for place, _ in ends], [name for _, name in ends])
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    _only_names_that_fit(ax)
    return ax


def _only_names_that_fit(ax: Axes) -> None:
    """Leave out the names that are wider than their piece of a strip."""
    from matplotlib.text import Annotation

    if (figure := ax.get_figure()) is not None:
        # Only then is it known how wide the axes are beside their legend.
        figure.canvas.figure.draw_without_rendering()
    width = ax.get_window_extent().width / ax.get_xlim()[1]
    for text in [text for text in ax.texts if isinstance(text, Annotation)]:
        if text.get_window_extent().width + 4 > float(str(text.get_gid()).split()[-1]) * width:
            text.remove()


def ladder(plan: SchedulePlan | Sequence[SchedulePlan], *, ax: Axes | None = None) -> Axes:
    """The expected errors of what `dphmm.plan` tried, by the number of releases; the chosen schedule is marked.

    Of several plans: what each of their totals buys.
    """
    if not isinstance(plan, SchedulePlan):
        if not isinstance(plan, (list, tuple)) or not plan:
            raise InvalidInput("plan", type(plan).__name__, "what dphmm.plan found, or a list of such plans")
        return _ladder_of_plans(plan, ax)
    over, ax = plan.found.rows, plain(axes(ax))
    releases = [row.releases for row in plan.ladder]
    for name, words in (("online", "as it is released"), ("smoothed", "expected, of the whole file")):
        look = LOOKS[name]
        errors = [getattr(row, name) for row in plan.ladder]
        ax.plot(releases, errors, color=look.colour, linestyle=look.line, marker=look.mark, label=words)
    ax.axhline(plan.without, color=GREY, linestyle=":", label="without the file")
    paced = plan.schedule.kind == "paced"
    chosen = f"{plan.chosen.releases} x {in_short(plan.chosen.epsilon)}"
    ax.plot([plan.chosen.releases], [plan.expected_error], "o", color=BLACK, fillstyle="none", markersize=12,
            label=f"chosen: {chosen}{', of least error as it is released' * paced}")  # fmt: skip
    ax.set(xscale="log", xlabel="releases", ylabel=f"expected error, {plan.unit}")
    total, base = in_short(plan.schedule.promise.exact), off(plan.without, plan.unit)
    error = off(plan.expected_error, plan.unit)
    titled(ax, f"A budget of {total}: {error} {_off(plan.unit)}expected over {over} ({base} without the file)")
    ax.set_xticks(releases, [str(count) for count in releases], minor=False)
    ax.set_xticks([], minor=True)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def _plan(plan: Any) -> SchedulePlan:
    if not isinstance(plan, SchedulePlan):
        raise InvalidInput("plan", type(plan).__name__, "what dphmm.plan found, or a report")
    return plan


def _ladder_of_plans(plans: Sequence[SchedulePlan], ax: Axes | None) -> Axes:
    """What several totals buy: the expected error, and that of who stays after the first and the last of the blocks."""
    found = [_plan(plan) for plan in plans]
    if any(plan.digests != found[0].digests for plan in found):
        raise InvalidInput("plan", "plans of different models, policies or states", "plans of one")
    ax = _plain_axes(ax)
    totals = [float(plan.schedule.promise.exact) for plan in found]
    stays = found[0].stays
    kept = stays.found and all(
        [after for after, _ in plan.stays.told] == [stay.after for stay in stays.found] for plan in found
    )
    lines: list[tuple[str, list[float], Any]] = [("where somebody is", [plan.expected_error for plan in found], "-")]
    for at, style in ((0, (0, (6, 4))), (-1, (0, (2, 4)))) if kept else ():
        name = f"{stay_words(found[0].unit)}, {after_words(stays.what, stays.found[at].after)}"
        lines.append((name, [plan.stays.found[at].error for plan in found], style))
    for name, values, style in lines:
        ax.plot(totals, values, color=colour("belief-line", ax), linestyle=style, marker="o", markersize=4)
        ax.annotate(
            name, (totals[0], values[0]), xytext=(6, 4), textcoords="offset points", color=colour("belief-line", ax)
        )
    ax.set_xscale("log")
    ax.set_xticks(totals, [in_short(plan.schedule.promise.exact) for plan in found])
    ax.set_xticks([], minor=True)
    first, last = (found[place] for place in np.argsort(totals)[[0, -1]])
    ends = list(dict.fromkeys(in_short(plan.schedule.promise.exact) for plan in (first, last)))
    gives = " to ".join(off(plan.expected_error, plan.unit) for plan in (first, last))
    titled(ax, f"A budget of {' to '.join(ends)}: {gives} {_off(first.unit)}expected over {first.found.rows}")
    ax.set(xlabel="budget", ylabel=f"off, {_unit(first.unit)}")
    ax.set_ylim(bottom=0)
    return ax


def _off(unit: str) -> str:
    return "" if unit == LABELS_WRONG else "off "


def _unit(unit: str) -> str:
    return {"m": "metres", LABELS_WRONG: "labels wrong"}.get(unit, unit)


def _name(ax: Axes, x: Any, y: Any, words: str, shade: str, at: int) -> None:
    """The name of a line, on itself."""
    ax.annotate(words, (float(x[at]), float(y[at])), xytext=(0, 5), textcoords="offset points", color=shade)


def _plain_axes(ax: Axes | None) -> Axes:
    ax = axes(ax)
    ax.grid(axis="y", color=colour("rule", ax), linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
