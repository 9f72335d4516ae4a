"""The verdict of twenty releases, written before the code from the rules alone; and how the rules stand to each other.

It would fail for rules in another order, a headline that is not the first that holds, a bound on the other side, a
figure without its baseline, and a sentence of a file that is made of what is not public.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dphmm.statement.advice import not_advised
from dphmm.statement.parts import document
from dphmm.statement.verdict import ReaderFindings, Stay, verdict
from dphmm.states.space import LABELS_WRONG

RELEASES = tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text(encoding="utf-8"))["release"]


def found_of(told):
    """What a reader finds of a release of the table; None where the table has no figures."""
    if "error" not in told:
        return None
    tenth = dict(told.get("tenth", []))
    return ReaderFindings(
        told["error"],
        told["without"],
        LABELS_WRONG if told["kind"] == "labels" else "m",
        ratio=tuple(told["ratio"]) if "ratio" in told else None,
        known=told["known"],
        stays=[Stay(after, 1.0, error, tenth[after]) for after, error in told["stays"]],
        stays_without=2600.0,
        block=told["block"],
        blocks=told["days"],
        uncomputed=told.get("uncomputed", ""),
    )


@pytest.mark.parametrize("told", RELEASES, ids=[told["name"] for told in RELEASES])
def test_twenty_releases_have_the_verdict_that_was_written_before_the_code(told):
    assert len(RELEASES) == 20
    judged = verdict(
        told["answers"],
        replayable=told["noise"] == "seed",
        limited=told["limit"] != "none",
        found=found_of(told),
        covered=told.get("covered"),
        missing=told.get("uncomputed", ""),
    )
    assert judged.lines == told["verdict"]


def a_day(**changed):
    told = {"error": 1030.0, "without": 2530.0, "unit": "m", "known": 130.0, "block": "day", "blocks": 1}
    stays = {"stays": [Stay(1, 6.0, 400.0, 150.0)], "stays_without": 2600.0}
    return ReaderFindings(**(told | stays | changed))


def judged(found, **changed):
    return verdict(180, **({"replayable": False, "limited": True, "found": found, "covered": 680.0} | changed))


def test_where_a_guess_is_within_what_is_covered_a_place_is_found_with_its_cell():
    """A policy that joins all of a map silences nothing: of who is told to the cell that is said."""
    assert judged(a_day(stays_without=600.0)).rules == ["not within", "blurs"]
    assert judged(a_day(stays_without=600.0, stays=[Stay(1, 6.0, 143.0, 130.0)])).rules == ["returns", "blurs"]
    assert judged(a_day(stays_without=140.0)).rules == ["blurs"], "known without the file"


def test_of_a_longer_file_than_was_tried_nothing_is_said_to_be_safe():
    """Seven windows of one step were tried, and the file has 432 of them."""
    far = a_day(block="window", blocks=432, stays=[Stay(7, 7.0, 900.0, 700.0)])
    assert judged(far).lines[0].endswith("is not known: no more than 7 windows was tried, and the file has 432.")


def test_a_reader_who_is_farther_off_than_a_guess_is_not_said_to_be_no_nearer():
    """Answers that surprise: the guess without them is scored on other people than those of the rows."""
    assert "no nearer" not in judged(a_day(error=1300.0, without=750.0, ratio=(1.5, 1.9))).rules


def test_where_nothing_is_covered_a_place_is_found_with_its_cell():
    assert judged(a_day(), covered=None).rules == ["not within", "blurs"]
    assert judged(a_day(stays=[Stay(1, 6.0, 143.0, 130.0)]), covered=None).rules == ["returns", "blurs"]


def test_a_time_in_which_nobody_was_asked_says_nothing():
    nobody = Stay(1, 0.0, 2600.0, 900.0)
    assert judged(a_day(stays=[nobody])).rules == ["blurs"]
    assert judged(a_day(stays=[nobody, Stay(2, 6.0, 400.0, 150.0)])).rules == ["will return", "blurs"]


def test_who_is_told_of_is_not_lost_in_the_mean_over_many():
    few = judged(a_day(ratio=(0.96, 1.01), halved=1, counted=361))
    assert few.lines[0] == (
        "On average a reader is no nearer with this file than without it. This is no limit: for 1 of 361 people the "
        "error is at most half."
    )
    assert "at most half" not in judged(a_day(ratio=(0.96, 1.01), halved=0, counted=361)).lines[0]
    assert judged(a_day(halved=30, counted=30)).halved is None, "said where the mean hides it alone"


def test_only_a_whole_interval_above_95_percent_says_that_a_reader_is_no_nearer():
    assert judged(a_day(ratio=(0.951, 1.02))).rules == ["no nearer", "returns"]
    assert judged(a_day(ratio=(0.95, 1.02))).rules == ["returns", "blurs"]
    assert judged(a_day(ratio=None, error=2529.0)).rules == ["returns", "blurs"]


@pytest.mark.parametrize("error", [130.0, 143.0, 143.1, 1030.0])
@pytest.mark.parametrize("limited", [True, False])
def test_the_rules_of_no_advice_are_those_of_the_verdict(error, limited):
    """What a verdict of rule 1 or 2 says is what plan, tune and release do not recommend."""
    rules = judged(a_day(error=error), limited=limited).rules
    reasons = not_advised(2, error, 130.0, limited=limited)
    assert ("unlimited" in rules) == ("nothing limits the sum of all answers" in reasons)
    assert ("tells" in rules) == ("it tells where somebody is, to the cell" in reasons)


def test_the_figures_stand_beside_those_without_the_file():
    three = a_day(blocks=3, stays=[Stay(1, 6.0, 400.0, 150.0), Stay(3, 18.0, 150.0, 90.0)])
    assert three.lines == [
        "a reader misses somebody's place by 1,030 m on average (2,530 m without the file)",
        "a reader gets within 150 m of somebody who stays in one place for all 3 days of this file (2,600 m without)",
    ]
    assert a_day(blocks=0).lines[1:] == [], "nobody has a whole day"
    assert a_day(stays_without=0.0).lines[1:] == ["the place of somebody who stays in one is known without the file"]


def test_a_window_says_how_long_it_is_and_a_sequence_is_whole():
    stays = [Stay(1, 6.0, 400.0, 150.0)]
    window = a_day(block="window", seconds=43_200, stays=stays)
    assert window.lines[1].startswith(
        "a reader gets within 400 m of somebody who stays in one place for one window (12 hours)"
    )
    assert "for the whole sequence (" in a_day(block="sequence", stays=stays).lines[1]


def test_labels_are_counted_of_a_hundred_rows():
    labels = ReaderFindings(
        0.38, 0.59, LABELS_WRONG, stays=[Stay(1, 9.0, 0.2, 0.0)], stays_without=0.6, block="day", blocks=1
    )
    assert labels.lines == [
        "a reader names the right label in 62 of 100 rows (41 without the file)",
        "and that of somebody who keeps one label for one day in 80 of 100 (40 without)",
    ]


def test_the_document_has_facts_and_no_sentence():
    told = document(judged(a_day()))
    assert told["rules"] == ["returns", "blurs"]
    assert not any(" " in str(value) for name, value in told.items() if name != "rules")
    assert a_day().document()["stays"]["found"] == [{"after": 1, "answers": 6.0, "error": 400.0, "tenth": 150.0}]
    assert ReaderFindings(1.0, 2.0, "m").document()["stays"]["error_without"] is None
    assert math.isnan(ReaderFindings(1.0, 2.0, "m").stays_without)


def test_labels_that_are_nearly_always_right_are_told():
    """At most 1 of 20 wrong, as one answer that gives it away; not where they are known without the file."""
    labels = ReaderFindings(0.05, 0.6, LABELS_WRONG)
    assert judged(labels).rules == ["tells labels", "labels"]
    assert judged(labels).lines[0] == "Tells what label somebody has."
    assert judged(replace(labels, error=0.051)).rules == ["labels"]
    assert judged(replace(labels, without=0.09)).rules == ["labels"]


def test_a_ledger_that_has_more_is_named_last():
    told = judged(a_day(), more="another query asks too, and a reader of both finds more")
    assert told.rules[-1] == "more" and told.lines[-1].startswith("This is of one file: another query asks too")
