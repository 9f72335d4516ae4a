"""Figures of a report in notebooks: those of the page, as pictures that stand alone.

Fails for a figure whose drawing, numbers or heading are others than the page's, for one that loads something or needs
the page's style, for a name that becomes markup, for one that leaves out whose truth it shows or that nothing is
guaranteed, and for a figure of something that the report does not have.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.report import maps, page
from dphmm.report.page import Content
from dphmm.statement.sentences import off
from report.looks import ROLES
from report.worlds import WORLDS, plan_of, read

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.slow, pytest.mark.replayed_words]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made("planned"): the report of a world, with the truth where it is asked for."""
    folder = cache(lambda name: WORLDS[name](tmp_path_factory.mktemp(name)))

    @cache
    def report(name, truth=False):
        plan = plan_of(folder(name)) if name == "planned" else None
        return read(folder(name), truth=folder(name) / "walks.csv" if truth else None, plan=plan)

    return report


@pytest.mark.parametrize("truth", [False, True])
def test_drawings_are_those_of_the_page(truth, made):
    report = made("planned", truth=truth)
    content, told = Content(report), page(report)
    assert str(content.map.drawings[0]) == str(dphmm.plot.belief(report).drawings[0])
    figures = {"error": content.error_figure, "nights": content.nights_figure, "belief": None}
    for chart, figure in figures.items():
        drawn = getattr(dphmm.plot, chart)(report)
        assert all(str(drawing) in told for drawing in drawn.drawings)
        assert figure is None or (drawn.rows == figure.rows and drawn.heading.endswith(figure.heading))
    assert [str(one) in told for one, _, _ in content.small_maps] == [True] * len(content.small_maps)
    inside = dphmm.plot.day(report).drawings[0].inside
    assert all(one.inside in inside for one, _, _ in content.small_maps)
    of_labels = made("labels")
    assert all(str(drawing) in page(of_labels) for drawing in dphmm.plot.strip(of_labels).drawings)
    shares = dphmm.plot.shares(of_labels)
    assert all(one.inside in shares.drawings[0].inside for _, one in Content(of_labels).share_charts)
    pages = made("pages")
    assert [str(one.drawings[0]) in page(pages) for one in dphmm.plot.people(pages)] == [True] * 6


def every_figure(made):
    planned, labels = made("planned", truth=True), made("labels")
    plans = list(planned.prospects.ladder)
    yield from (getattr(dphmm.plot, chart)(planned) for chart in ("belief", "day", "error", "nights"))
    yield from (dphmm.plot.strip(labels), dphmm.plot.shares(labels), *dphmm.plot.people(made("hostile")))
    yield from (dphmm.plot.ladder(plans), dphmm.plot.ladder(plans[0]), dphmm.plot.nights(plans[0]))
    yield dphmm.plot.indistinguishable(planned.made.policy, planned.space, "x1y1")


def test_a_figure_stands_alone(made, tmp_path):
    """Well-formed, with its heading, its colours for both papers, and nothing that is loaded or run."""
    for figure in every_figure(made):
        path = figure.save(tmp_path / "figure.svg")
        root = ElementTree.fromstring(path.read_text())
        assert root.tag == f"{SVG}svg" and root.get("aria-label") == figure.drawings[0].finding
        words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
        assert re.sub(r"\s", "", figure.heading) in re.sub(r"\s", "", words)
        style = root.find(f"{SVG}style").text
        assert set(ROLES["paper"]) <= set(re.findall("#[0-9a-f]{6}", style))
        used = {one.get("href") for one in root.iter(f"{SVG}use")}
        assert used <= {f"#{one.get('id')}" for one in root.iter() if one.get("id")}
        assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
            "svg", "style", "defs", "g", "rect", "text", "path", "circle", "use",
        }  # fmt: skip
        assert "http" not in path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert set(figure.table) == set(figure.columns) and all(len(row) == len(figure.columns) for row in figure.rows)
        shown = figure._repr_html_()
        assert shown.startswith("<img alt=") and shown.count("<script") == 0


def test_a_picture_of_the_owner_is_readable_by_the_owner_alone(made, tmp_path):
    for truth in (False, True):
        for chart in (dphmm.plot.belief, dphmm.plot.day, dphmm.plot.error):
            path = chart(made("planned", truth=truth)).save(tmp_path / "figure.svg")
            assert (path.stat().st_mode & 0o077 == 0) is truth
            path.unlink()


def test_headings_are_findings(made):
    report, labels = made("planned"), made("labels")
    content = Content(report)
    moment, far = (
        content.moment(content.person.rows[content.first[1]]),
        content.how_far(content.person, content.first[1]),
    )
    assert dphmm.plot.belief(report).heading == f"u1{content.shown_day}, {moment}, answer: {far}"
    sure = np.mean(np.concatenate([person.probability for person in labels.persons]))
    told = f"NOT PRIVATE: Likeliest label, step by step: a reader is {100 * sure:.0f} % sure on average"
    assert dphmm.plot.strip(labels).heading == told
    plans = list(report.prospects.ladder)
    for given in (plans, plans[::-1]):
        ends = [off(plan.expected_error, "m") for plan in (plans[0], plans[-1])]
        totals = [f"{float(plan.schedule.promise.exact):g}" for plan in (plans[0], plans[-1])]
        assert dphmm.plot.ladder(given).heading == (
            f"A budget of {' to '.join(totals)}: {' to '.join(ends)} off expected over {plans[0].over}"
        )
    assert f"expected over {plans[0].over}" in dphmm.plot.ladder(plans[0]).heading


def test_errors_are_those_of_the_page(made):
    report = made("planned", truth=True)
    figure = dphmm.plot.error(report)
    expected, measured = (np.array([float(row[at] or "nan") for row in figure.rows]) for at in (1, 2))
    place = (report.rows.step - 1) % len(expected)
    due = [report.spreads[place == step].mean() for step in range(len(expected))]
    assert expected == pytest.approx(due, rel=1e-3)
    assert np.nanmean(measured) == pytest.approx(report.truth.mean, rel=1e-3) and "expected" in figure.heading


def test_numbers_of_plans_are_the_plans(made):
    plans = made("planned").prospects.ladder
    of_totals = dphmm.plot.ladder(list(plans)).table
    assert [float(total) for total in of_totals["budget"]] == [float(plan.schedule.promise.exact) for plan in plans]
    drawn = [float(error) for error in of_totals["where somebody is"]]
    assert drawn == pytest.approx([plan.expected_error for plan in plans], rel=1e-3)
    tried = dphmm.plot.ladder(plans[0])
    assert [int(row[0]) for row in tried.rows] == [row.releases for row in plans[0].ladder]
    assert [float(row[3]) for row in tried.rows] == pytest.approx([row.smoothed for row in plans[0].ladder], rel=1e-3)
    assert str(tried.drawings[0]).count('class="ring"') == 1
    stays = dphmm.plot.nights(plans[0])
    assert [float(row[1]) for row in stays.rows] == pytest.approx([one.error for one in plans[0].stays.found], rel=1e-3)


def test_an_answer_beyond_the_map_is_dashed_at_its_edge(made):
    report = made("delta")
    view, persons = maps.view_of(report), {}
    for person in report.persons:
        for at, row in enumerate(person.rows.tolist()):
            if report.rows.asked[row]:
                beyond = bool(view.kept(view(report.rows.z[row][:2]))[1])
                persons.setdefault(beyond, (person.name, at))
    for beyond, (name, at) in persons.items():
        drawn = dphmm.plot.belief(report, at, person=name).svg
        assert drawn.count('class="cross beyond"') == beyond and drawn.count('class="cross"') == (not beyond)
    assert set(persons) == {True, False}


@pytest.mark.parametrize(
    ("chart", "name", "told"),
    [
        ("strip", "grid", "plot.belief and plot.day"),
        ("people", "grid", "plot.belief and plot.day"),
        ("belief", "labels", "plot.strip draws labels"),
        ("belief", "pages", "plot.people draws answers of one number"),
        ("strip", "pages", "plot.people draws answers of one number"),
        ("nights", "grid", "nobody has rows of a whole"),
        ("shares", "grid", "without shares of labels"),
    ],
)
def test_an_error_names_the_figure_to_use(chart, name, told, made):
    with pytest.raises(InvalidInput, match=told):
        getattr(dphmm.plot, chart)(made(name))


def test_what_is_joined_is_the_policy_s(made):
    report = made("grid")
    policy, space = report.made.policy, report.space
    figure = dphmm.plot.indistinguishable(policy, space, "x1y1")
    near = np.union1d(policy.neighbors(space.index_of("x1y1")), [space.index_of("x1y1")])
    assert figure.rows == [[space.names[state]] for state in near]
    metres = dphmm.policy.covered_distance(policy, space)
    assert (
        figure.heading
        == f"{len(near)} of 16 cells are joined to x1y1, itself counted; places up to 1,000 m apart are covered"
    )
    assert metres == 1000
    with pytest.raises(InvalidInput, match="place"):
        dphmm.plot.indistinguishable(policy, space, "nowhere")


def test_a_step_and_a_person_are_chosen(made):
    report = made("grid")
    heading = dphmm.plot.belief(report, 3, person="u2").heading
    assert re.fullmatch(
        r"u2, 6 May, 8:15, answer: a reader expects to be [0-9,]+ m off", heading.replace("\u00a0", " ")
    )
    for wrong in ({"person": "nobody"}, {"step": 99}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            dphmm.plot.belief(report, **wrong)


@pytest.mark.parametrize("chart", ["belief", "day", "error", "nights", "strip", "people", "shares", "ladder"])
def test_what_is_no_report_is_refused(chart):
    with pytest.raises(InvalidInput, match=r"release|plan|found"):
        getattr(dphmm.plot, chart)({"a": 1})


@pytest.mark.parametrize(
    ("private", "told"), [(False, "NOT PRIVATE: "), ("unknown", "NOT KNOWN TO BE PRIVATE: "), (True, "")]
)
def test_a_figure_says_where_nothing_is_guaranteed(private, told, made):
    """Wherever it is taken to, without the page around it."""
    report = made("planned")
    of = replace(report.made, statement=msgspec.structs.replace(report.statement, private=private))
    for chart in (dphmm.plot.nights, dphmm.plot.error, dphmm.plot.belief, dphmm.plot.day):
        figure = chart(replace(report, made=of))
        assert figure.heading.startswith(told) and ("PRIVATE" in figure.svg) is bool(told)


def test_the_map_is_of_whom_the_page_shows_first(made):
    """The first by name has no answer: the page shows the next one, and so does the map."""
    report = made("planned")
    asked = report.rows.asked.copy()
    asked[report.rows.by_user["u1"]] = False
    heading = dphmm.plot.belief(replace(report, rows=replace(report.rows, asked=asked))).heading
    assert heading.startswith("u2, 6 May, ") and ", answer" in heading
