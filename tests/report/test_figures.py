"""Figures of a report: their numbers, captions and what they leave out.

It would fail for a chart that lists steps of which nothing is known, for shares that are not of all labels, and for
names on a map that lie on one another.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from commands import run, walk_rows, write_rows
from dphmm.errors import InvalidInput
from dphmm.report import maps, page
from dphmm.report.page import Content
from dphmm.statement.release import Varied
from dphmm.statement.sentences import off
from report.worlds import FIT, of_places, plan_of, read, released, report

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.slow, pytest.mark.replayed_words, pytest.mark.usefixtures("few_invented_people")]


def test_numbers_of_a_chart_have_no_empty_lines(tmp_path):
    """Half a day of rows: of the other steps nothing is known, and nothing is listed."""
    header = walk_rows([f"p{i}" for i in range(12)], 24, 3)
    folder = of_places(tmp_path, walk_rows(["u1"], 5, 7), header, FIT, "1.5km")
    figure = Content(read(folder)).error_figure
    assert len(figure.rows) == 5 and all(all(cell for cell in row) for row in figure.rows)


def test_the_band_of_errors_is_of_rows(world):
    """Ten people with many rows each: a band of all their rows is not one of people."""

    folder = world("grid")
    figure = Content(read(folder, truth=folder / "walks.csv")).error_figure
    assert "Band: 8 of 10 rows. " in figure.caption and "8 of 10 people" not in figure.caption


def test_of_many_labels_none_is_left_out(tmp_path):
    """The first twelve by name were drawn and listed, their shares did not sum to 1, and nothing said so."""
    from dphmm.report.content import LabelShares

    names = [f"page {number:02d}" for number in range(17)]
    rng = np.random.default_rng(5)
    # The commonest is the last by name.
    visits = [[f"v{user}", names[16 if rng.random() < 0.7 else page_]] for user in range(6) for page_ in range(17)]
    write_rows(tmp_path / "walks.csv", ["user", "state"], visits)
    run("fit", tmp_path / "walks.csv", "-o", tmp_path / "model.npz", "--state-column", "state")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json")
    released(tmp_path, epsilon=6)
    equal = [np.full(17, value) for value in (1 / 17, 0.0, 0.5)]
    found = replace(read(tmp_path), shares=[LabelShares(step, 6, *equal) for step in (1, 2)])
    content, told = (
        Content(found),
        pq.read_table(tmp_path / "released" / "released.parquet").to_pandas().z.value_counts(),
    )
    often = sorted(names, key=lambda name: (-told.get(name, 0), name))
    assert often[0] == "page 16"
    # The five named most often have a colour of their own, on strips, in the key and on the charts of shares.
    assert content.label_key == [*enumerate(often[:5]), (5, "other")]
    assert [name for name, _ in content.share_charts] == sorted(often[:12])
    colour = re.search(r"label-(\d)", str(dict(content.share_charts)["page 16"]))
    assert colour[1] == "0" and 'class="label-0 sure-' in str(content.strip_figure.drawings[0])
    drawn = page(found)
    assert "12 of 17 labels are drawn, those published most often; the numbers are of all." in drawn
    rows = content.share_rows
    assert [row[1] for row in rows[:17]] == names and len(rows) == 17 * len(found.shares)
    assert f"<td>{names[16]}</td><td>{rows[16][2]}</td><td>{rows[16][3]}</td>" in drawn
    many = page(replace(found, shares=found.shares * 40))
    assert f"The first 1,000 of {80 * 17:,} rows." in many


def test_of_few_labels_all_are_drawn(report_of):

    content = Content(report_of("labels"))
    assert len(content.share_charts) == 4 and "labels are drawn" not in page(content.report)


def test_degrees_do_not_lie_on_each_other(report_of):
    """They are in the margin of the map: along its upper edge, and turned along its left one."""
    for name in ("grid", "hexagons", "planned"):
        drawn = str(Content(report_of(name)).map.drawings[0])
        above = re.findall(r'translate\(([\d.]+) -6\)"><text class="degree"[^>]*>([^<]*[EW])<', drawn)
        beside = re.findall(r'translate\(-6 ([\d.]+)\) rotate\(-90\)"><text class="degree"[^>]*>([^<]*[NS])<', drawn)
        assert min(len(above), len(beside)) > 1 and len(above) + len(beside) == drawn.count('"degree"')
        for edge in (above, beside):
            ends = sorted((float(at) - 4 * len(told), float(at) + 4 * len(told)) for at, told in edge)
            assert ends[0][0] > 0 and ends[-1][1] < 500 and all(a[1] < b[0] for a, b in pairwise(ends)), name


def test_no_set_is_drawn_of_a_policy_that_some_steps_do_not_have(report_of):
    own = report_of("grid")
    view = maps.view_of(own)
    assert Content(own).covered is not None and Content(own)._sets(view)
    names = Varied(names=["policy"], chosen=[])
    varied = replace(own, made=replace(own.made, statement=msgspec.structs.replace(own.statement, varied=names)))
    assert Content(varied).covered is None and Content(varied)._sets(view) == {}


def test_what_another_budget_would_give_is_what_the_plan_found(world):
    """Of no other plan than that of the release; without one nothing is told of other budgets."""
    folder = world("planned")
    plan = plan_of(folder)
    found = read(folder, plan=plan)
    rows = Content(found).ladder.rows
    assert [row.total for row in rows] == ["1", "2", "4", "8"] and [row.total for row in rows if row.own] == ["4"]
    assert [row.error for row in rows if not row.own] == [off(one.expected_error, "m") for one in plan.others]
    assert "What another budget would give" in page(found) and any(
        name.startswith("1 an hour") for name in Content(found).nights_figure.columns
    )
    assert Content(read(folder)).ladder is None and "What another budget" not in page(read(folder))
    other = replace(plan.others[0], others=())
    with pytest.raises(InvalidInput, match=r"plan: got .*; expected the plan that the file was released by"):
        read(folder, plan=other)
    told = report(folder, folder / "with-plan.html")
    assert told.exit_code == 0 and "What another budget would give" in (folder / "with-plan.html").read_text()
