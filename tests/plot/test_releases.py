"""Charts of a report in notebooks: the figures, titles and colours of the page.

Fails for a chart whose numbers or title are others than the page's, for a dark axes with light colours, for a name that
matplotlib takes for a formula, and for a chart of something that the report does not have.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.report import maps, page
from dphmm.report.page import Content
from dphmm.report.palette import LABELS, ROLES
from dphmm.statement.sentences import off
from report.worlds import WORLDS, read

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.slow, pytest.mark.replayed_words]
CHARTS = ("belief", "error", "nights", "sureness", "budget")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made("planned"): the report of a world, with the truth where it is asked for."""
    folder = cache(lambda name: WORLDS[name](tmp_path_factory.mktemp(name)))
    return cache(lambda name, truth=False: read(folder(name), truth=folder(name) / "walks.csv" if truth else None))


@pytest.mark.parametrize("chart", CHARTS)
def test_titles_are_findings_of_the_page(chart, made, ax):
    report = made("planned")
    assert getattr(dphmm.plot, chart)(report, ax=ax) is ax
    title = " ".join(ax.get_title().split())
    said = page(report)
    content = Content(report)
    due = {
        "error": content.error_figure.heading,
        "budget": content.budget_figure.heading,
        "belief": f"u1{content.shown_day}, {content.moment(content.person.rows[content.first_step])}, answer: "
        + " ".join(content.how_far(content.person, content.first_step).split()),
        "sureness": f"At most {content.guarantee.bars[1][2]} sure after the answer of that moment",
    }
    assert title == due.get(chart, title)
    assert re.search("[0-9]", title) and ("spent 4 of 4" in title) is (chart == "budget")
    for number in (word for word in title.split() if word.replace(",", "").isdigit() and chart == "nights"):
        assert number in said


def test_of_labels_and_of_several_budgets_too(made, ax):
    report = made("labels")
    dphmm.plot.strip(report, ax=ax)
    title = " ".join(ax.get_title().split())
    sure = np.mean(np.concatenate([person.probability for person in report.persons]))
    assert title == f"NOT PRIVATE: Likeliest label, step by step: a reader is {100 * sure:.0f} % sure on average"
    assert title == f"NOT PRIVATE: {Content(report).strip_figure.heading}"
    plans = list(made("planned").prospects.ladder)
    for given, first, last in ((plans, plans[0], plans[-1]), (plans[::-1], plans[0], plans[-1])):
        other = Figure().add_subplot()
        dphmm.plot.ladder(given, ax=other)
        ends = [off(plan.expected_error, "m") for plan in (first, last)]
        totals = [f"{float(plan.schedule.promise.exact):g}" for plan in (first, last)]
        assert " ".join(other.get_title().split()) == (
            f"A budget of {' to '.join(totals)}: {' to '.join(ends)} off expected over {plans[0].found.rows}"
        )


@pytest.mark.parametrize("chart", [*CHARTS, "ladder", "strip"])
def test_no_title_is_cut_at_the_default_size(chart, made):
    from matplotlib import pyplot

    report = made("labels" if chart == "strip" else "planned")
    drawn = getattr(dphmm.plot, chart)(list(report.prospects.ladder) if chart == "ladder" else report)
    try:
        figure = drawn.get_figure()
        figure.canvas.draw()
        box, frame = drawn.title.get_window_extent(), figure.bbox
        assert box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y1 <= frame.y1
    finally:
        pyplot.close("all")


def test_errors_are_those_of_the_page(made, ax):
    report = made("planned", truth=True)
    dphmm.plot.error(report, ax=ax)
    expected, measured, *_ = (line.get_ydata() for line in ax.get_lines())
    place = (report.rows.step - 1) % len(expected)
    due = [report.spreads[place == step].mean() for step in range(len(expected))]
    assert expected == pytest.approx(due)
    title = " ".join(ax.get_title().split())
    assert np.nanmean(measured) == pytest.approx(report.truth.mean) and "off on average" in title


def test_a_plan_has_the_same_nights_and_sureness_as_its_report(made, ax):
    report = made("planned")
    world_plan = report.prospects.ladder[0]
    dphmm.plot.nights(world_plan, ax=ax)
    assert ax.get_lines()[0].get_ydata().tolist() == [stay.error for stay in world_plan.stays.found]
    other = Figure().add_subplot()
    dphmm.plot.sureness(world_plan, ax=other)
    assert other.get_title().startswith("At most ") and "%" in other.get_title()


def test_several_plans_are_one_ladder(made, ax):
    plans = made("planned").prospects.ladder
    dphmm.plot.ladder(list(plans), ax=ax)
    lines = ax.get_lines()
    assert lines[0].get_xdata().tolist() == [float(plan.schedule.promise.exact) for plan in plans]
    assert lines[0].get_ydata().tolist() == [plan.expected_error for plan in plans]
    for told in (plans, plans[0]):
        other = Figure().add_subplot()
        dphmm.plot.ladder(told, ax=other)
        assert f"expected over {plans[0].found.rows}" in other.get_title().replace("\n", " ")


def test_no_word_of_near_certainty_is_cut():
    from matplotlib import pyplot

    space, model = dphmm.StateSpace([0, 1]), dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    promise = dphmm.SequencePromise(24, per=8)
    ax = dphmm.plot.sureness(dphmm.plan(model, dphmm.policy.complete(2), space, promise, epsilon=2, people=5))
    try:
        ax.figure.canvas.draw()
        ends = [text.get_window_extent().x1 for text in ax.texts]
        assert "more than 99.9999 %" in [text.get_text() for text in ax.texts] and max(ends) <= ax.figure.bbox.x1
    finally:
        pyplot.close(ax.figure)


def test_dark_axes_have_the_dark_colours(made, ax):
    ax.set_facecolor("#10141a")
    dphmm.plot.budget(made("planned"), ax=ax)
    assert to_hex(ax.get_lines()[0].get_color()) == ROLES["guarantee"].dark
    light = Figure().add_subplot()
    dphmm.plot.budget(made("planned"), ax=light)
    assert to_hex(light.get_lines()[0].get_color()) == ROLES["guarantee"].light


def test_a_day_has_a_map_for_each_answer(made):
    from matplotlib import pyplot

    report = made("planned")
    try:
        drawn = dphmm.plot.day(report)
        asked = int(report.rows.asked[report.persons[0].rows].sum())
        assert sum(bool(one.get_title()) for one in drawn.flat) == asked
    finally:
        pyplot.close("all")


def test_labels_that_share_a_colour_share_an_entry_and_are_named_in_their_strip(made, ax, monkeypatch):
    """Of more labels than colours the last entry names all that have its colour."""
    report = made("labels")
    monkeypatch.setattr("dphmm.plot._releases.LABELS", LABELS[:2])
    monkeypatch.setattr("dphmm.report.palette.LABELS", LABELS[:2])
    dphmm.plot.strip(report, ax=ax)
    names = list(report.space.names)
    entries = {text.get_text(): to_hex(mark.get_color()) for text, mark in
               zip(ax.get_legend().get_texts(), ax.get_legend().legend_handles, strict=True)}  # fmt: skip
    assert len(names) == 4 and len(entries) == 2 and len(set(entries.values())) == 2
    first, other = (told.replace("\\", "") for told in entries)
    # Its own colour has the label that was published most often, of equal ones the first by name.
    published = [names[int(z)] for z in report.rows.z[report.rows.asked, 0]]
    commonest = min(names, key=lambda name: (-published.count(name), name))
    assert first == commonest and other.startswith("other: ")
    assert all(name in other for name in names if name != commonest and other[-1] != "…")
    drawn = {text.get_text().replace("\\", "") for text in ax.texts}
    likeliest = {names[label] for person in report.persons for label in person.state.tolist()}
    assert drawn and drawn <= likeliest
    for text in ax.texts:
        (x, y), label = text.xy, names.index(text.get_text().replace("\\", ""))
        (bar,) = (bar for bar in ax.patches if bar.get_x() < x <= bar.get_x() + 1 and bar.get_y() < y < bar.get_y() + 1)
        assert to_hex(bar.get_facecolor()) == LABELS[names[label] != commonest].light


def test_an_answer_beyond_the_map_is_dashed_at_its_edge(made, ax):
    """Where the page draws it; the key says what the mark is, and who has no such answer has no such entry."""
    from matplotlib.path import Path

    report = made("delta")
    view, persons = maps.view_of(report), {}
    for person in report.persons:
        for at, row in enumerate(person.rows.tolist()):
            if report.rows.asked[row]:
                place, beyond = view.kept(view(report.rows.z[row][:2]))
                persons.setdefault(bool(beyond), (person.name, at, place))
    for beyond, (name, at, place) in persons.items():
        ax.clear()
        dphmm.plot.belief(report, at, person=name, ax=ax)
        crosses = [line for line in ax.get_lines() if to_hex(line.get_color()) == ROLES["published"].light]
        assert len(crosses) == 1 and isinstance(crosses[0].get_marker(), Path) is beyond
        drawn = view([[crosses[0].get_xdata()[0], crosses[0].get_ydata()[0]]])[0]
        np.testing.assert_allclose(drawn, place, atol=1e-6)
        told = [text.get_text() for text in ax.get_legend().get_texts()]
        assert ("answer beyond the map" in told) is beyond and ("published answer" in told) is not beyond
        assert {"believed: 50 %", "95 %", "best guess"} <= set(told) and "truth" not in told
    assert set(persons) == {True, False}


def test_errors_of_labels_are_percent_as_in_their_title(made, ax):
    dphmm.plot.error(made("labels"), ax=ax)
    ax.figure.draw_without_rendering()
    assert max(float(tick.get_text()) for tick in ax.get_yticklabels()) > 1 and "%" in ax.get_ylabel()


def test_who_stays_is_compared_as_on_the_page(made, ax):
    report = made("planned")
    stays = report.prospects.stays
    other = stays._replace() if hasattr(stays, "_replace") else replace(stays)
    prospects = replace(report.prospects, smaller=(report.promise.exact / 2, other), unlimited=other)
    dphmm.plot.nights(replace(report, prospects=prospects), ax=ax)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "this file" and "an answer at every step" in names and names[1].startswith("a budget of ")
    assert names[-1].startswith("without the file ")


@pytest.mark.parametrize(
    ("chart", "name", "told"),
    [
        ("strip", "grid", "plot.belief and plot.day"),
        ("belief", "labels", "plot.strip draws labels"),
        ("belief", "pages", "plot.error and plot.sureness"),
        ("strip", "pages", "plot.error and plot.sureness"),
    ],
)
def test_an_error_names_the_chart_to_use(chart, name, told, made):
    with pytest.raises(InvalidInput, match=told):
        getattr(dphmm.plot, chart)(made(name), ax=Figure().add_subplot())


def test_what_is_joined_is_the_policy_s(made, ax):
    report = made("grid")
    policy, space = report.made.policy, report.space
    dphmm.plot.indistinguishable(policy, space, "x1y1", ax=ax)
    near = len(np.union1d(policy.neighbors(space.index_of("x1y1")), [space.index_of("x1y1")]))
    assert " ".join(ax.get_title().split()) == f"{near} of 16 cells are joined to x1y1, itself counted"
    with pytest.raises(InvalidInput, match="place"):
        dphmm.plot.indistinguishable(policy, space, "nowhere", ax=ax)


def test_a_step_and_a_person_are_chosen(made, ax):
    report = made("grid")
    dphmm.plot.belief(report, 3, person="u2", ax=ax)
    assert re.fullmatch(
        r"u2, 6 May, 8:15, answer: a reader expects to be [0-9,]+ m off", " ".join(ax.get_title().split())
    )
    for wrong in ({"person": "nobody"}, {"step": 99}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            dphmm.plot.belief(report, ax=Figure().add_subplot(), **wrong)


@pytest.mark.parametrize("chart", [*CHARTS, "strip", "day", "ladder"])
def test_what_is_no_report_is_refused(chart):
    with pytest.raises(InvalidInput, match=r"release|plan"):
        getattr(dphmm.plot, chart)({"a": 1})


@pytest.mark.parametrize(
    ("private", "told"), [(False, "NOT PRIVATE: "), ("unknown", "NOT KNOWN TO BE PRIVATE: "), (True, "")]
)
def test_a_chart_says_where_nothing_is_guaranteed(private, told, made, ax):
    """Wherever it is taken to, without the page around it."""
    report = made("planned")
    of = replace(report.made, statement=msgspec.structs.replace(report.statement, private=private))
    for chart in (dphmm.plot.sureness, dphmm.plot.nights, dphmm.plot.error, dphmm.plot.budget, dphmm.plot.belief):
        ax.clear()
        title = " ".join(chart(replace(report, made=of), ax=ax).get_title().split())
        assert title.removeprefix("OWNER ONLY: ").startswith(told) and ("PRIVATE" in title) is bool(told)


def test_who_stays_is_not_drawn_of_a_file_without_a_whole_block(made, ax):
    """As the page, which tells nothing of them."""
    with pytest.raises(InvalidInput, match="nobody has rows of a whole"):
        dphmm.plot.nights(made("grid"), ax=ax)


def test_the_map_is_of_whom_the_page_shows_first(made, ax):
    """The first by name has no answer: the page shows the next one, and so does the map."""
    report = made("planned")
    asked = report.rows.asked.copy()
    asked[report.rows.by_user["u1"]] = False
    dphmm.plot.belief(replace(report, rows=replace(report.rows, asked=asked)), ax=ax)
    told = " ".join(ax.get_title().split())
    assert told.startswith("u2, 6 May, ") and ", answer" in told


def test_names_of_days_below_a_budget_have_room(made, ax):
    """Of twelve days with their year not every one is named."""
    report = made("grid")
    rows = report.rows
    time, step = rows.time.copy(), rows.step.copy()
    for own in rows.by_user.values():
        time[own] += 86_400 * 40 * np.arange(len(own))
        step[own] += 288 * 40 * np.arange(len(own))
    dphmm.plot.budget(replace(report, rows=replace(rows, time=time, step=step)), ax=ax)
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names[0] == "6 May 2024" and 2 <= len(names) < 12
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
