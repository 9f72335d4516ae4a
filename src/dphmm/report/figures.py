"""The figures of a report: each is one function, whose drawing the page and `dphmm.plot` show alike.

A figure has its finding as its heading and its numbers as a table. If a report has no such figure it is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.records import in_short
from dphmm.choose.planning import state_name
from dphmm.choose.schedule_plan import AFTER, SchedulePlan, Stays
from dphmm.policy.graph import PolicyGraph
from dphmm.report import charts, maps, words
from dphmm.report.beliefs import DrawnCells, bands
from dphmm.report.content import OWNER_ONLY, PersonBelief, ReleaseReport, rounded_down
from dphmm.report.over_steps import OverSteps
from dphmm.report.shown import DAY, Shown
from dphmm.report.svg import Drawing, Figure, beside
from dphmm.statement.sentences import clock, every_nth, length, off, plural
from dphmm.statement.story import after_words, stay_words
from dphmm.statement.verdict import ReaderFindings
from dphmm.states.grid import Grid
from dphmm.states.space import LABELS_WRONG, StateSpace

if TYPE_CHECKING:
    from dphmm.reconstruction.aggregates import Density

#: Small maps, people in strips, and shares of labels that are drawn; the colours of labels in ``palette.css``.
_SMALL_MAPS, _STRIPS, SHARES, COLOURS = 12, 8, 12, 6
#: A smaller total that stays are drawn of.
_SMALLER = Fraction(1, 4)
#: Fewer people than these in a cell are not drawn, where there are many.
_TOO_FEW = 8
#: Height of the first screen beside its four answers, and what a chart there has around it: heading, caption, numbers.
ROOM, AROUND = 640.0, 94.0
#: People whose numbers are on the first screen; lowest and highest chart of one; the same for a strip of labels.
ON_FIRST, _LOW, _HIGH, _STRIP, _STRIP_HIGH = 3, 140.0, 300.0, 52.0, 84.0
#: What the marks of a map mean.
_KEY = "Cross: the published answer, dashed where it lies beyond the map. "
_BELIEVED = "Shades: where a reader believes {} to be with 50, 80 and 95 %. Dot: the best guess. "


def marked(report: ReleaseReport, figure: Figure) -> Figure:
    """A figure that says of whom it may be seen, and whether anything is guaranteed, wherever it is taken to."""
    private = report.statement.private
    mark = "" if private is True else "NOT PRIVATE: " if private is False else "NOT KNOWN TO BE PRIVATE: "
    return replace(figure, heading=f"{OWNER_ONLY * figure.owner_only}{mark}{figure.heading}")


# -- maps --------------------------------------------------------------------------------------------------------------


def belief(report: ReleaseReport, person: PersonBelief | None = None, at: int | None = None) -> Figure | None:
    """The map of one row of a person, by default of what is shown first; None where answers are not in the plane."""
    shown = Shown(report)
    chosen = shown.person if person is None else person
    if chosen is None or report.cells is None or not len(chosen.rows):
        return None
    at = at if at is not None else shown.first[1] if chosen is shown.person else 0
    row, far = int(chosen.rows[at]), shown.how_far(chosen, at)
    answer = bool(report.rows.asked[row])
    what = "the published answer" if answer else "no answer"
    finding = f"Map: {what} about {chosen.name} at {shown.moment(row)}, and where a reader believes them to be."
    day = next(name for name, rows in shown.days(chosen) if at in rows)
    when = f"{day}, " * (report.rows.time is not None) + shown.moment(row)
    heading = f"{chosen.name}, {when}, {'answer' if answer else 'best guess'}{f': {far}' if far else ''}"
    drawing = maps.one_step(report, chosen, at, maps.SIDE, finding, small=False)
    places = [("published answer", report.rows.z[row])] if answer else []
    places += [] if chosen.guess is None else [("best guess", chosen.guess[at])]
    places += [] if report.truth is None else [("truth", report.truth.places[row])]
    numbers = [[name, *(f"{value:.6g}" for value in place[:2])] for name, place in places]
    caption = _map_caption(report, chosen)
    return Figure("map", heading, [drawing], caption, ["what", "x", "y"], numbers, owner_only=report.owner_only)


def _map_caption(report: ReleaseReport, person: PersonBelief) -> str:
    believed = _BELIEVED.format(report.called["somebody"]) * (person.levels is not None)
    return f"{_KEY}{believed}{'Ring: the truth.' * (report.truth is not None)}".strip()


def maps_of_day(report: ReleaseReport) -> list[tuple[Drawing, str, str]]:
    """A map for each answer of the day that is shown first: the map, when, and how far off a reader is."""
    shown = Shown(report)
    person = shown.person
    if person is None or report.cells is None or person.levels is None or shown.alone:
        return []
    drawn = []
    for at in shown.asked[:: -(-len(shown.asked) // _SMALL_MAPS) or 1]:
        moment = shown.moment(int(person.rows[at]))
        finding = f"Map at {moment}: the published answer and what a reader believes after all answers."
        drawing = maps.one_step(report, person, at, 300.0, finding, small=True)
        drawn.append((drawing, moment, shown.how_far(person, at)))
    return drawn


def day(report: ReleaseReport) -> Figure | None:
    """The maps of the day that is shown first, as one picture."""
    drawn, shown = maps_of_day(report), Shown(report)
    if not drawn or shown.person is None:
        return None
    heading = f"{shown.person.name}{shown.shown_day}: {plural(len(shown.asked), 'answer')}"
    names = [f"{when} {far}" for _, when, far in drawn]
    drawing = beside([picture for picture, _, _ in drawn], names, 4, heading)
    rows = [[when, far] for _, when, far in drawn]
    caption = _map_caption(report, shown.person)
    return Figure("day", heading, [drawing], caption, ["when", "how far off"], rows, owner_only=report.owner_only)


def maps_by_hour(report: ReleaseReport) -> tuple[list[tuple[Drawing, str]], str]:
    """The maps of people by hour, and the meaning of their shades."""
    hours, called = report.hours, report.called["people"]
    if not hours or report.cells is None:
        return [], ""
    most = max(float(hour.people.max()) for hour in hours)
    least = max(float(_TOO_FEW) if most > 3 * _TOO_FEW else 1.0, rounded_down(max(most / 8, 1e-9)))
    steps = (least, 3 * least, 7.5 * least)
    view, drawn = maps.view_of(report, maps.SIDE / 2), []
    for hour in hours:
        name = clock(hour.seconds)
        finding = f"Expected number of {called} per cell at {name}, from all answers."
        drawing = Drawing(view.side, view.side, finding, "map", scales=True)
        maps.ground(drawing, view, report)
        level = np.sum([hour.people >= step for step in steps], axis=0)
        maps.shades(drawing, view, report.cells, level)
        drawn.append((drawing, name))
    few, some, many = (f"{step:g}" for step in steps)
    return drawn, f"{called} per cell: {many} and more, {some} to {many}, {few} to {some}; fewer are not drawn"


def indistinguishable(
    policy: PolicyGraph,
    space: StateSpace,
    state: int,
    *,
    report: ReleaseReport | None = None,
    metres: float | None = None,
) -> Figure:
    """The cells that a policy joins to a state; ``metres``: the covered distance, which is then the scale.

    ``report``: the report of the backdrop below.
    """
    cells = DrawnCells.of_space(space) if report is None or report.cells is None else report.cells
    near, name = np.union1d(policy.neighbors(state), [state]).astype(np.int64), state_name(space)
    are = f"{len(near)} of {space.n_states:,} {name}s are joined to {space.names[state]}, itself counted"
    if len(near) == 1:
        are = f"No {name} is joined to {space.names[state]}"
    heading = are + (f"; places up to {length(metres)} apart are covered" if metres else "")
    view = maps.around(cells, space, policy, state)
    drawing = Drawing(maps.SIDE, maps.SIDE, f"Map: {heading}.", "map", scales=True, margin=maps.MARGIN)
    if report is None:
        drawing.frame(0, 0, maps.SIDE, maps.SIDE, "land")
        drawing.path(maps.shape(view, cells, np.unique(cells.of)), "any-cell")
    else:
        maps.ground(drawing, view, report)
    drawing.path(maps.shape(view, cells, np.unique(cells.of[near[near != state]])), "joined")
    drawing.path(maps.shape(view, cells, cells.of[[state]]), "chosen")
    if metres:
        maps.scale_bar(drawing, view, metres * view.scale, length(metres))
    rows = [[space.names[cell]] for cell in near.tolist()]
    return Figure("set", heading, [drawing], "", [f"joined to {space.names[state]}"], rows)


def central(space: StateSpace) -> int:
    """The state in the middle."""
    points = space.own_answers[:, :2]
    apart = np.linalg.norm(points - (points.min(axis=0) + points.max(axis=0)) / 2, axis=1)
    apart[space.merges[:, 0]] = np.inf
    return int(np.argmin(apart))


def covered(report: ReleaseReport) -> Figure | None:
    """The cells that are joined to the one in the middle; None where steps have different policies."""
    if report.one_policy is None or report.cells is None or report.cells.joined != 1:
        return None
    distance = report.statement.covered_distance
    metres = distance.metres if distance and isinstance(distance.metres, float) and distance.metres > 0 else None
    return indistinguishable(report.one_policy, report.space, central(report.space), report=report, metres=metres)


# -- errors ------------------------------------------------------------------------------------------------------------


def error(report: ReleaseReport) -> Figure | None:
    """The reader's error over the day: expected from public data, and measured if the report has the truth."""
    reader, expected = report.found, report.prospects.expected
    if len(report.rows) == 1 or not report.rows.asked.any() or expected is None or reader is None:
        return None
    over = OverSteps(report)
    (believed, without), (measured, band), (steps, ticks) = over.believed, over.measured, over.drawn
    now, base = off(reader.error, reader.unit), off(reader.without, reader.unit)
    labels = reader.unit == LABELS_WRONG
    somebody, people = report.called["somebody"], report.called["people"]
    heading = f"Which label {somebody} has: expected {now}" if labels else f"Where {somebody} is: expected {now} off"
    finding = f"{heading}; {base} without the file."
    x = steps + 0.5
    lines = [charts.Curve(np.stack([x, believed[steps]], axis=1), "expected of these rows", "other")]
    if measured is not None:
        known = None if band is None else np.column_stack([x, band[steps]])[~np.isnan(band[steps]).any(axis=1)]
        lines.append(charts.Curve(np.stack([x, measured[steps]], axis=1), "measured", "main", known))
    reference = charts.Curve(np.stack([x, without[steps]], axis=1), f"without the file {base}", "faint")
    asked = [step + 0.5 for step in over.asked if steps[0] <= step <= steps[-1]]
    drawings = [
        charts.line_chart(lines, reference, width, reader.unit, ticks, finding, asked=asked) for width in charts.WIDTHS
    ]
    caption = f"Expected: by a reader who believes the model, of {report.rows_told}. "
    if measured is not None and report.truth is not None:
        whose = "simulated" if report.truth.simulated else "real"
        caption = f"Measured on the {whose} {people}. Dashed, and all that a public page has: expected of "
        caption += f"{report.rows_told}. "
        caption += "Band: 8 of 10 rows. " * (band is not None)
    caption += over.left_out
    caption += "×: an answer." * bool(over.asked)
    columns = [believed] if measured is None else [believed, measured]
    rows = [
        [over.name(step), *map(_number, values)]
        for step, values in enumerate(zip(*(column.tolist() for column in columns), strict=True))
        if not np.isnan(values).all()
    ]
    unit = ", share wrong" if labels else f", {reader.unit}" * bool(reader.unit)
    names = ["time" if over.by_day else "step", f"expected{unit}", f"measured{unit}"][: 1 + len(columns)]
    owner = report.owner_only and measured is not None
    return Figure("error", heading, drawings, caption, names, rows, owner_only=owner)


def nights(report: ReleaseReport) -> Figure | None:
    """The findings about people who stay at one place, by number of days or other blocks."""
    prospects, reader, promise = report.prospects, report.found, report.promise
    stays = prospects.stays
    if stays is None or reader is None or len(stays.told) < 2 or reader.unit == LABELS_WRONG or reader.own_stay is None:
        return None
    per = "" if promise is None else words.over_words(promise)
    this_file = "this file" if promise is None else f"{in_short(promise.exact)} {per} (this file)"
    lines = [(this_file, "main", stays)]
    for less in prospects.ladder:
        if promise is not None and less.schedule.promise.exact == _SMALLER * promise.exact and less.stays.found:
            lines.append((f"{in_short(less.schedule.promise.exact)} {per}", "other", less.stays))
    if prospects.unlimited is not None:
        lines.append(("an answer at every step", "faint", prospects.unlimited))
    people, who = report.called["people"], report.called["who"]
    caption = (
        f"Invented {people} {who} stay where they are for whole {stays.what}s, drawn from the model; a reader "
        "counts every answer of that time. Computed from public data alone. "
        f"Without the file: {off(stays.without, reader.unit)} off."
    )
    if prospects.unlimited is not None and prospects.unlimited.found:
        longest = prospects.unlimited.found[-1].after
        caption += f" No budget: an answer at every step, computed for {longest} {stays.what}s."
    if isinstance(report.space.unmerged, Grid):
        caption += f" Shaded: less than one cell, {report.space.unmerged.cell:,.0f} m."
    if promise is not None and promise.per is not None:
        caption += f" A budget for each {stays.what} does not hide a place for ever."
    return _nights(lines, reader.unit, _ends(reader), caption, report.space)


def _ends(found: ReaderFindings) -> str:
    """ "400 m in 1 day, 140 m in 7 days": after the file's own blocks, and after the longest time that a table has."""
    last = next((stay for stay in reversed(found.stays) if stay.after <= AFTER[-1] and stay.answers), None)
    stays = {stay for stay in (found.own_stay, last) if stay is not None}
    ordered = sorted(stays, key=lambda stay: stay.after)
    return ", ".join(f"{off(stay.error, found.unit)} in {after_words(found.block, stay.after)}" for stay in ordered)


def nights_of_plan(plan: SchedulePlan) -> Figure | None:
    """The same of a schedule that was planned."""
    stays = plan.stays
    if not stays.told:
        return None
    first = stays.told[0][0]
    ends = ", ".join(
        f"{off(error, plan.unit)} after {after_words(stays.what, after)}"
        for after, error in stays.told
        if after in (first, 7)
    )
    name = plural(plan.schedule.releases, "release")
    return _nights([(name, "main", stays)], plan.unit, ends, "Computed from public data alone.")


def _nights(
    stays: Sequence[tuple[str, str, Stays]], unit: str, ends: str, caption: str, space: StateSpace | None = None
) -> Figure:
    """The findings about people who stay: a line for each (name, style, stays)."""
    _, _, first = stays[0]
    known = [(name, style, curve.told) for name, style, curve in stays if curve.told]
    inside = space.unmerged.cell if space is not None and isinstance(space.unmerged, Grid) else 0.0
    who, base = stay_words(unit), off(first.without, unit)
    heading = f"{who[0].upper()}{who[1:]}: {ends}"
    finding = f"{heading}; {base} without the file."
    drawings = _log_charts(known, unit, finding, first.without, first.what, inside=inside)
    numbers = [dict(points) for _, _, points in known]
    rows = [[str(n), *(_number(column.get(n, np.nan)) for column in numbers)] for n in sorted(set().union(*numbers))]
    columns = [f"{first.what}s", *(name + f", {unit}" * bool(unit) for name, _, _ in known)]
    return Figure("stays", heading, drawings, caption, columns, rows)


def _log_charts(
    lines: Sequence[tuple[str, str, Sequence[tuple[float, float]]]],
    unit: str,
    finding: str,
    without: float,
    called: str,
    **marks: Any,
) -> list[Drawing]:
    """Errors by a number of what is ``called`` so: a line for each (name, style, points)."""
    ends = sorted({x for _, _, points in lines for x, _ in points})
    ticks = [(ends[0], plural(int(ends[0]), called) if called else f"budget {ends[0]:g}")]
    ticks += [(end, f"{end:g}") for end in ends[1:]]
    drawn = [charts.Curve(points, name, style) for name, style, points in lines]
    base = charts.Curve([(ends[0], without), (ends[-1], without)], f"without the file {off(without, unit)}", "faint")
    return [charts.line_chart(drawn, base, width, unit, ticks, finding, log=True, **marks) for width in charts.WIDTHS]


def ladder(plan: SchedulePlan) -> Figure:
    """The expected errors of all schedules that were tried, by their number of releases; the chosen one has a ring."""
    rows, unit, total = plan.ladder, plan.unit, in_short(plan.schedule.promise.exact)
    lines = [
        ("expected, of the whole file", "main", [(float(row.releases), row.smoothed) for row in rows]),
        ("as it is released", "other", [(float(row.releases), row.online) for row in rows]),
    ]
    error, base = off(plan.expected_error, unit), off(plan.without, unit)
    heading = f"A budget of {total}: {error} {_off(unit)}expected over {plan.over} ({base} without the file)"
    caption = f"Ring: the schedule that was chosen, {plan.chosen.releases} × {in_short(plan.chosen.epsilon)}"
    caption += ", of least error as it is released." if plan.schedule.kind == "paced" else "."
    ring = float(plan.chosen.releases), plan.expected_error
    drawings = _log_charts(lines, unit, heading, plan.without, "release", ring=ring)
    numbers = [[str(row.releases), in_short(row.epsilon), _number(row.online), _number(row.smoothed)] for row in rows]
    columns = ["releases", "epsilon of each", "error as it is released", "error of the whole file"]
    return Figure("ladder", heading, drawings, caption, columns, numbers)


def ladder_of_plans(plans: Sequence[SchedulePlan]) -> Figure:
    """The worth of several totals: the expected error, and for people who stay that after the first and last block."""
    plans = sorted(plans, key=lambda plan: plan.schedule.promise.exact)
    unit, stays = plans[0].unit, plans[0].stays
    totals = [in_short(plan.schedule.promise.exact) for plan in plans]
    x = [float(plan.schedule.promise.exact) for plan in plans]
    lines = [("where somebody is", "main", list(zip(x, (plan.expected_error for plan in plans), strict=True)))]
    known = [after for after, _ in stays.told]
    if stays.found and all([after for after, _ in plan.stays.told] == known for plan in plans):
        for at, style in {0: "other", len(known) - 1: "faint"}.items():
            name = f"{stay_words(unit)}, {after_words(stays.what, known[at])}"
            lines.append((name, style, list(zip(x, (plan.stays.told[at][1] for plan in plans), strict=True))))
    gives = " to ".join(dict.fromkeys(off(plan.expected_error, unit) for plan in (plans[0], plans[-1])))
    budgets = " to ".join(dict.fromkeys((totals[0], totals[-1])))
    heading = f"A budget of {budgets}: {gives} {_off(unit)}expected over {plans[0].over}"
    drawings = _log_charts(lines, unit, heading, plans[0].without, "")
    numbers = [[total, *(_number(points[at][1]) for _, _, points in lines)] for at, total in enumerate(totals)]
    return Figure("ladder", heading, drawings, "", ["budget", *(name for name, _, _ in lines)], numbers)


def _off(unit: str) -> str:
    return "" if unit == LABELS_WRONG else "off "


# -- labels, and answers of one number ---------------------------------------------------------------------------------


def strip(report: ReleaseReport) -> Figure | None:
    """Labels: a reader's belief about some people, step by step."""
    people = [person for person in report.persons if person.state is not None]
    if not report.space.has_labels or not people:
        return None
    shown, chosen = Shown(report), people[:: -(-len(people) // _STRIPS)]
    strips, places = [], shown.places(chosen)
    for person, bins in zip(chosen, places, strict=True):
        assert person.state is not None and person.probability is not None
        asked = np.flatnonzero(report.rows.asked[person.rows])
        answers = report.rows.z[person.rows[asked], 0].astype(np.int64)
        named = list(zip(asked.tolist(), answers.tolist(), strict=True))
        strips.append(charts.Strip(person.name, person.state.tolist(), person.probability.tolist(), named, bins))
    names = list(report.space.names)
    of = plural(len(chosen), report.called["noun"], report.called["people"])
    finding = f"What a reader believes of {of}, step by step."
    ticks = shown.ticks(chosen, 1 + max(place[-1] for place in places))
    pitch = min(_STRIP_HIGH, max(_STRIP, (ROOM - AROUND) / len(strips)))
    colours = colours_of(report)
    drawings = [charts.strips(strips, names, width, pitch, ticks, finding, colours) for width in charts.FIRST_WIDTHS]
    rows = [
        [drawn.name, shown.moment(row), names[label], f"{chance:.3f}"]
        for drawn, person in zip(strips, chosen, strict=True)
        for row, label, chance in zip(person.rows.tolist(), drawn.label, drawn.probability, strict=True)
    ]
    caption = "Name: the likeliest label. Fainter: less sure. Squares on top: the published answers."
    caption += _some_of(chosen, people, report.called["people"])
    sure = float(np.mean(np.concatenate([drawn.probability for drawn in strips])))
    of = "" if len(strips) == len(report.rows.by_user) else f" of these {len(strips)}"
    heading = f"Likeliest label, step by step: a reader is {100 * sure:.0f} % sure on average{of}"
    columns = [report.called["noun"], "when", "likeliest", "probability"]
    return Figure("people", heading, drawings, caption, columns, rows)


def _often(report: ReleaseReport) -> list[int]:
    """The labels, those that were published most often first."""
    return charts.commonest(report.space.names, np.asarray(report.rows.z[report.rows.asked, 0], dtype=np.int64))


def colours_of(report: ReleaseReport) -> list[int]:
    """The number of each label's colour; if labels are too many, those published most often have one of their own.

    All others share the last. By the order of names alone the commonest label may be one of these.
    """
    n = report.space.n_states
    if n <= COLOURS:
        return list(range(n))
    colours = [COLOURS - 1] * n
    for colour, label in enumerate(_often(report)[: COLOURS - 1]):
        colours[label] = colour
    return colours


def people(report: ReleaseReport) -> list[Figure]:
    """Answers of one number, or of more than two: a chart a person."""
    known = [person for person in report.persons if person.levels is not None]
    if report.space.has_labels or report.planar or not known:
        return []
    shown, chosen = Shown(report), known[:: -(-len(known) // _STRIPS)]
    believed = [bands(report.space.own_answers[:, 0], person.levels) for person in chosen if person.levels is not None]
    answers = []
    for person in chosen:
        at = np.flatnonzero(report.rows.asked[person.rows])
        answers.append(np.stack([at, report.rows.z[person.rows[at], 0]], axis=1).astype(np.float64))
    scale = charts.shared_scale(believed, [crosses[:, 1] for crosses in answers])
    first = min(len(chosen), ON_FIRST)
    tall = min(_HIGH, max(_LOW, ROOM / first - AROUND))
    drawn = []
    for number, (person, band, crosses) in enumerate(zip(chosen, believed, answers, strict=True)):
        assert person.guess is not None
        guess, ticks = person.guess[:, 0], shown.ticks([person], len(person.rows))
        finding = f"{person.name}: the published answers and what a reader believes, over the steps."
        widths, height = (charts.FIRST_WIDTHS, tall) if number < first else (charts.WIDTHS, _LOW)
        drawings = [charts.band_chart(band, guess, crosses, scale, width, height, ticks, finding) for width in widths]
        rows = [
            [shown.moment(row), f"{value:.4g}"] for row, value in zip(person.rows.tolist(), guess.tolist(), strict=True)
        ]
        caption = _some_of(chosen, known, report.called["people"]).strip() if number == 0 else ""
        drawn.append(Figure("person", person.name, drawings, caption, ["when", "estimate"], rows))
    return drawn


def share_charts(report: ReleaseReport) -> list[tuple[str, Drawing]]:
    """Labels: the share of people with each, at each answer."""
    shares, names, people = report.shares, report.space.names, report.called["people"]
    if not shares:
        return []
    times = [float(share.when) for share in shares]
    if report.rows.time is None:
        ends = [f"step {int(when)}" for when in (times[0], times[-1])]
    elif times[-1] - times[0] > 360 * DAY:
        ends = [words.year_name(report.local(int(when))) for when in (times[0], times[-1])]
    else:
        year = words.several_years(report)
        ends = [words.short_day(report.local(int(when)), year) for when in (times[0], times[-1])]
    pair, colours = (ends[0], ends[1] if len(times) > 1 else ""), colours_of(report)
    drawn = []
    # In their order; of many those that were published most often.
    for label in sorted(_often(report)[:SHARES]):
        parts = np.array([[share.share[label], share.low[label], share.high[label]] for share in shares])
        last = f"{100 * float(np.clip(parts[-1, 0], 0, 1)):.0f} %"
        finding = f"Share of {people} with {names[label]}, corrected for the noise: {last} at the last answer."
        drawing = charts.share_chart(times, parts, colours[label], pair, finding)
        drawn.append((names[label], drawing))
    return drawn


def share_rows(report: ReleaseReport) -> list[tuple[str, str, str, str]]:
    """The shares of all labels in numbers: moment, label, share, interval."""
    rows, names, year = [], report.space.names, words.several_years(report)
    for share in report.shares:
        when = f"step {share.when:,}"
        if report.rows.time is not None:
            local = report.local(share.when)
            when = f"{words.day_name(local, year)}, {clock(local)}"
        numbers = zip(names, np.clip(share.share, 0, 1).tolist(), share.low.tolist(), share.high.tolist(), strict=True)
        for place, (name, middle, low, high) in enumerate(numbers):
            interval = f"{100 * low:.1f} to {100 * high:.1f} %"
            rows.append(("" if place else when, name, f"{100 * middle:.1f} %", interval))
    return rows


def shares(report: ReleaseReport) -> Figure | None:
    """The share of people with each label at each answer, as one picture."""
    drawn = share_charts(report)
    if not drawn:
        return None
    most = max(share.people for share in report.shares)
    people = plural(most, report.called["noun"], report.called["people"])
    heading = f"Share of {people} with each label, corrected for the noise"
    drawing = beside([picture for _, picture in drawn], [name for name, _ in drawn], 3, heading)
    columns = ["when", "label", "share", "90 % interval"]
    return Figure("shares", heading, [drawing], "Bars: 90 % intervals.", columns, share_rows(report))


def shares_of_population(found: Density, *, public: bool) -> Figure:
    """The share of each region with its 90 % interval, and the likeliest one, of what `population` found."""
    whose, count = ("people", found.n) if public else ("answers", found.answers)
    heading = f"Where {count:,} {whose} are{'' if found.period == 'all' else f': {found.period}'}"
    drawings = [charts.interval_chart(found.regions, width, heading) for width in charts.WIDTHS]
    rows = [
        [share.region, *("" if value is None else f"{100 * value:.1f} %" for value in numbers), share.why or ""]
        for share in found.regions
        for numbers in [(share.linear, share.low, share.high, share.estimate)]
    ]
    caption = "Bar: 90 % interval, with a line at the linear estimate. Ring: the likeliest share."
    columns = ["region", "linear estimate", "from", "to", "likeliest", "why not"]
    return Figure("shares", heading, drawings, caption, columns, rows)


def _some_of(drawn: Sequence[PersonBelief], every: Sequence[PersonBelief], called: str) -> str:
    """The words for the people of a chart; empty if it shows all."""
    if len(drawn) == len(every):
        return ""
    apart = -(-len(every) // len(drawn))
    return f" {len(drawn)} of {len(every):,} {called}: {every_nth(apart)} by name."


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"
