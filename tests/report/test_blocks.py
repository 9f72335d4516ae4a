"""What the first screen says of a whole block, of half a one, of one row, and where nothing was asked.

Claim: where somebody is, is what a reader expects of the rows that are there. What is found of who stays is of whole
blocks: of those of the file where somebody has one, else of more answers like these. It would fail for a page of one
row that tells of its person what is found after a week. And: the library loads none of this before it is used.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import dphmm
from commands import walk_rows, write_rows
from dphmm.report import page
from dphmm.report.content import passed_without_times
from dphmm.report.page import Content
from dphmm.statement.sentences import off
from report.worlds import WORLDS, read, released

ROOT = Path(dphmm.__file__).parents[2]
#: Rows of u1, five minutes each: from the first hour of the planned world, in which steps of a block are from 1.
KINDS = {
    "whole": lambda at: range(1, 13),
    "half": lambda at: range(1, at[-1]),
    "the answers alone": lambda at: at,
    "one row": lambda at: [at[0]],
    "answers of two hours": lambda at: [step + 12 * hour for hour in range(2) for step in at],
    "nothing asked": lambda at: [step for step in range(1, 13) if step not in at],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made("half"): the report of such a file, asked twice an hour as the planned world is."""
    planned = WORLDS["planned"](tmp_path_factory.mktemp("planned"))

    @cache
    def of(kind):
        folder = tmp_path_factory.mktemp("blocks")
        for name in ("model.npz", "model.npz.people", "policy.json", "plan.json"):
            shutil.copy(planned / name, folder / name)
        at = [int(step) for step in json.loads((folder / "plan.json").read_text())["schedule"]["at"].split(",")]
        hours = walk_rows(["u1"], 24, 7)
        write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], [hours[step - 1] for step in KINDS[kind](at)])
        # Rows at no step that is asked would stop the release.
        unasked = kind == "nothing asked"
        looked = ("--no-check",) if unasked else ()
        released(folder, "--plan", folder / "plan.json", *looked, epsilon=None, code=3 if unasked else 0)
        return read(folder)

    return of


def first_screen(report):
    """The words of the first section of a page."""
    section = re.search(r"<main>.*?</main>", page(report), re.DOTALL)[0].split("<section id=")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", section)).split())


@pytest.mark.slow
def test_of_a_whole_block_a_page_tells_who_stays(made):
    report = made("whole")
    expected = report.prospects.expected.found
    assert report.begins_alike and report.found.stays == expected.stays
    assert report.whole_blocks == report.found.blocks == report.found.own_stay.after == 1
    own = np.concatenate([person.spread for person in report.persons])
    assert report.found.error == pytest.approx(own.mean())
    assert Content(report).nights_figure is not None
    said = first_screen(report)
    assert "of somebody who stays in one place for one hour (" in said
    assert "who stays at one place: of simulated people." in said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["half", "one row"])
def test_of_less_a_page_gives_what_a_reader_expects_of_its_rows(made, kind):
    report = made(kind)
    assert report.rows.asked.any()
    own = np.concatenate([person.spread for person in report.persons])
    assert report.found.error == pytest.approx(own.mean())
    # What is found of who stays is told of more answers like these, and of nobody in the file.
    assert report.found.own_stay is None and Content(report).nights_figure is None
    assert report.found.stays == report.prospects.stays.found != ()
    assert report.story.verdict.rules[0] in ("will return", "not within")
    for told in (first_screen(report), " ".join(line for _, line in report.story.rows())):
        assert "hours of answers like these" in told or "hour of answers like these" in told
        assert "of this file (" not in told and "who stays" not in told


@pytest.mark.slow
def test_all_answers_of_a_block_find_who_stays_whatever_rows_there_are(made):
    """Two rows of an hour, those of its answers: a reader has all that is ever answered of it."""
    report = made("the answers alone")
    assert report.whole_blocks == 0 and report.found.stays == report.prospects.expected.found.stays
    assert report.found.blocks == report.found.own_stay.after == 1
    told = "the rows of this file by a reader who believes the public model; who stays at one place"
    assert told in first_screen(report)


@pytest.mark.slow
def test_answers_of_parts_of_blocks_find_who_stays_as_those_of_whole_ones(made):
    """Nobody has a whole hour, and somebody has as many answers as two hours have."""
    report = made("answers of two hours")
    assert report.whole_blocks == 0 and report.most_of_one == 2 * report.prospects.expected.answers
    stays = {stay.after: stay for stay in report.prospects.stays.found}
    assert report.found.blocks == 2 and report.found.own_stay == stays[2]
    assert f"gets within {off(stays[2].error, 'm')} of somebody" in report.found.lines[1]


def test_one_row_is_called_so(made):
    assert first_screen(made("one row")).startswith("One noisy position of one person")


@pytest.mark.slow
def test_where_nothing_was_asked_only_the_plan_is_told_of(made):
    report = made("nothing asked")
    assert report.whole_blocks == 0 and report.found is None and not report.rows.asked.any()
    said = first_screen(report)
    assert said.startswith("No answer has been published.") and "Nothing is spent: 0 of 4." in said
    error = report.prospects.expected.found.lines[0]
    assert f"Of people who are asked this is expected: {error}." in said
    assert report.story.verdict.lines == ["No answer has been published."]
    told = report.story.words("published")[0]
    assert told.startswith("0 noisy positions of ") and " 0 of " not in told
    assert report.story.words("spent")[0].startswith("nothing of 4 ")
    assert "who stays" not in said and "can find out" not in said and "guaranteed" not in said


def test_the_page_on_reports_says_when_who_stays_is_missing():
    assert "where nobody has rows for a full day" in " ".join((ROOT / "docs" / "report.md").read_text().split())


@pytest.mark.slow
def test_the_library_loads_no_page():
    code = (
        "import sys, dphmm; assert not {'dphmm.report', 'dphmm.report.page', 'jinja2'} & set(sys.modules); "
        "dphmm.report.write_report; assert 'dphmm.report.page' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_times_no_place_of_step_1_has_fewer_answers_in_its_fullest_block():
    rng = np.random.default_rng(5)
    for length in (1, 2, 3, 7, 24):
        for _ in range(20):
            asked = np.flatnonzero(rng.random(60) < rng.choice([0.05, 0.3, 0.9])) + 1
            fullest = [
                max(sum((step - 1 + passed) // length == block for step in asked.tolist()) for block in range(80))
                for passed in range(length)
            ]
            assert fullest[passed_without_times(asked, length)] == min(fullest)
