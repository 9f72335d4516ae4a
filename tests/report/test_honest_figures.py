"""A page, its terminal and its JSON never say less than a reader finds, nor more than is proved.

Claim: who stays at one place is found by answers of every hour; figures of beginnings that are public are not those of
people who may begin anywhere. It would fail for a page that says that nothing is found where an estimate finds it.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import dphmm
from dphmm.report import read_report
from dphmm.storage.release_words import off
from report.worlds import BBOX, released, report, run, table

#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words
DAYS = 7


def said(text):
    """The words of a page."""
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


@pytest.fixture(scope="module")
def noon(tmp_path_factory):
    """Four people who stay at home for a week, and are asked once a day, at noon."""
    folder = tmp_path_factory.mktemp("noon")
    run("model", "grid", "--bbox", BBOX, "--cell", "1km", "--step", "1h", "--max-speed", "2km/h",
        "-o", folder / "model.npz")  # fmt: skip
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km")
    public = (folder / "model.npz", "--policy", folder / "policy.json", "--people", 20)
    run("plan", *public, "--path-epsilon", 6, "--per", "1d", "--epsilon", 6, "-o", folder / "plan.json")
    space = dphmm.load_model(folder / "model.npz").space
    lat, lon = space.to_latlon(space.answers)
    hours = [(f"2024-05-{6 + day:02d}T{hour:02d}:00:00Z") for day in range(DAYS) for hour in range(24)]
    rows = [[f"u{home}", hour, lat[home], lon[home]] for home in (0, 5, 7, 14) for hour in hours]
    table(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    return released(folder, "--plan", folder / "plan.json", epsilon=None)


def of_folder(folder):
    """The report of a folder's file."""
    model = dphmm.load_model(folder / "model.npz")
    return read_report(folder / "released.parquet", model, dphmm.load_policy(folder / "policy.json", model=model))


# -- who stays at one place ---------------------------------------------------------------------------------------


def test_answers_at_noon_find_who_stays_all_day(noon):
    """What is said is no more than the error of a reader who takes the median of a week's answers."""
    made = of_folder(noon)
    assert set((made.rows.step[made.rows.asked] - 1) % 24) == {12} and made.rows.asked.sum() == 4 * DAYS
    found = made.found
    (one, first), (seven, second) = found.stays
    assert (found.what, one, seven) == ("day", 1, 7) and second < first < 0.7 * found.stays_without
    space = made.space
    simple = []
    for home, rows in zip((0, 5, 7, 14), made.rows.by_user.values(), strict=True):
        answers = made.rows.z[rows[made.rows.asked[rows]]]
        simple.append(space.distances(np.median(answers, axis=0)[None], space.answers[[home]])[0])
    # These four are at the middles of their cells; invented ones are anywhere in theirs, half a cell away at most.
    assert second < np.mean(simple) + space.cell / 2


def test_who_stays_is_told_alike_by_page_terminal_and_json(noon):
    public = ("--policy", noon / "policy.json", "--force")
    told = json.loads(report(noon, noon / "page.html", *public, "--json").stdout)
    stays = told["still_found"]["stays"]
    figures = [off(stay["error"], "m") for stay in stays["found"]]
    line = f"who stays at one place: {figures[0]} after 1 day, {figures[1]} after 7"
    assert line in told["still_found"]["words"][1] and stays["what"] == "day"
    terminal = " ".join(report(noon, noon / "page.html", *public).stderr.split())
    shown = said((noon / "page.html").read_text())
    assert line in terminal
    assert f"{figures[0]} off about who stays at one place, after one day" in shown
    assert f"{figures[1]} off after seven days" in shown
    assert f"Who stays at one place is found to {figures[0]} in one day, {figures[1]} in seven days." in shown
    assert f"Who stays at one place: {figures[0]} in one day" in shown
    assert "night" not in shown and "sleeps" not in shown + terminal
    plan = " ".join(run("plan", noon / "model.npz", "--policy", noon / "policy.json", "--path-epsilon", 6, "--per",
                        "1d", "--epsilon", 6).stdout.split())  # fmt: skip
    assert f"{figures[0]} / {figures[1]} <- 6" in plan and "who stays at one place, 1 day / 7 days" in plan
