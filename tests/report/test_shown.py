"""Whom a report shows first, on which day and at which step, and what its moments are called.

It would fail for a page that opens at somebody without an answer, and for days that have the same name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dphmm.report import page, words
from dphmm.report.page import Content
from dphmm.report.shown import Shown

#: Commands and files draw here: each test replays words of its own.
pytestmark = [pytest.mark.slow, pytest.mark.replayed_words, pytest.mark.usefixtures("few_invented_people")]


def later(report, *days):
    """A report whose people have their rows so many days later, in the order of their names."""
    rows = report.rows
    time, late = rows.time.copy(), dict(zip(rows.by_user, days, strict=True))
    for user, own in rows.by_user.items():
        time[own] += 86_400 * late[user]
    return replace(report, rows=replace(rows, time=time))


def test_the_axis_that_people_share_has_its_hours_and_midnights_between():

    def ticks(hours):
        # From 5 May 2024, 4:00 on, a row an hour.
        rows = SimpleNamespace(time=1_714_881_600 + 3600 * np.arange(hours), step=np.arange(hours))
        made = SimpleNamespace(model=SimpleNamespace(step=3600))
        content = SimpleNamespace(report=SimpleNamespace(rows=rows, made=made, local=lambda moment: moment))
        return Shown.ticks(content, [SimpleNamespace(rows=np.arange(hours))], hours)

    assert ticks(20) == [(0.0, "4:00"), (20.0, "23:00")]
    assert ticks(30) == [(0.0, "5 May 4:00"), (20.0, "6 May 0:00"), (30.0, "6 May 9:00")]
    # No name lies on another: those of three days in nine have room.
    assert ticks(216)[1:-1] == [(68.0, "8 May 0:00"), (140.0, "11 May 0:00")]


def test_the_page_opens_at_somebody_with_an_answer(report_of):
    """The first by name has none: a map without an answer says nothing of what was published."""

    found = report_of("planned")
    asked = found.rows.asked.copy()
    asked[found.rows.by_user["u1"]] = False
    silent = replace(found, rows=replace(found.rows, asked=asked))
    told = Content(silent)
    assert told.person.name == "u2" and told.data["first"][0] == 1 and told.small_maps
    assert "u2, the first by name who has an answer." in page(silent)
    assert Content(found).person.name == "u1" and "u1, the first by name." in page(found)
    # Whoever was named first stays first.
    named = replace(silent, chosen=True)
    assert Content(named).person.name == "u1" and "chosen by who made this page" in Content(named).who_is_first


def test_the_page_opens_at_somebody_inside_the_map(report_of):
    """By what is believed and published at the step that is shown, and by nothing that the truth says."""
    found = report_of("planned")
    edge = found.cells.at_edge
    assert edge.sum() == 12 and len(edge) == 16
    middle = np.where(edge, 0, 3).astype(np.uint8)

    def shown(inside, far=()):
        persons, z = [], found.rows.z.copy()
        for person in found.persons:
            levels = np.tile(middle if person.name in inside else np.ones(16, dtype=np.uint8), (len(person.rows), 1))
            persons.append(replace(person, levels=levels))
            z[person.rows] = found.cells.low - 1.0 if person.name in far else found.cells.low + found.cells.side
        return Content(replace(found, persons=persons, rows=replace(found.rows, z=z)))

    for inside, far, name, why in (
        (("u1", "u3"), (), "u1", "the first by name"),
        (("u3",), (), "u3", "the first by name whom a reader places inside the map"),
        (("u2", "u3"), ("u2",), "u3", "the first by name whom a reader places inside the map"),
        ((), (), "u1", "the first by name"),
    ):
        content = shown(inside, far)
        assert content.person.name == name and content.who_is_first == why
        assert content.map is not None and content.data["first"][0] == int(name[1]) - 1


def test_the_day_that_is_shown_first_has_most_answers(report_of):
    """Of several such days the one with most rows, and of these the first."""

    found = report_of("planned")
    own = found.rows.by_user["u1"]
    assert len(own) == 24

    def first(days, answers):
        time, asked = found.rows.time.copy(), np.zeros(len(found.rows), dtype=bool)
        time[own] += 86_400 * np.repeat(np.arange(len(days)), days)
        asked[own[answers]] = True
        content = Content(replace(found, rows=replace(found.rows, time=time, asked=asked)))
        return content.day[0], content.first[1] in content.day

    assert first([14, 10], [0, 14, 15]) == (14, True)
    assert first([10, 14], [0, 10]) == (10, True)
    assert first([12, 12], [0, 12]) == (0, True)


def test_days_have_their_year_where_there_are_several(report_of):
    """The 6th of June of four years was one name four times: nobody could choose or cite a day."""

    found = report_of("grid")
    assert not re.search("6 May 20", str(Content(found).data)) and "u1, 6 May<" in page(found)
    years = later(found, 0, 365, 365)
    assert words.several_years(years) and not words.several_years(later(found, 0, 7, 7))
    told = Content(years)
    assert [told.days(person)[0][0] for person in years.persons] == ["6 May 2024", "6 May 2025", "6 May 2025"]
    assert told.shown_day == ", 6 May 2024" and "u1, 6 May 2024<" in page(years)
    labels = report_of("labels")
    share = replace(labels.shares[0], when=int(found.rows.time[0]))
    time = share.when + 365 * 86_400 * (np.arange(len(labels.rows)) % 2)
    rows = replace(labels.rows, time=time)
    of_labels = Content(replace(labels, rows=rows, shares=[share, replace(share, when=share.when + 86_400)]))
    assert of_labels.share_rows[0][0].startswith("6 May 2024, ")
    # A small chart has no room for two long months with their years.
    assert ">6 May 2024<" in str(of_labels.share_charts[0][1])
    assert words.short_day(1_735_344_000, True) == "28 Dec 2024"
    assert words.short_day(1_735_344_000, False) == "28 December"
