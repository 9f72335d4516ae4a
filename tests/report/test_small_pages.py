"""Pages of the smallest releases: one row, one step, one subject, one answer for all states, nobody in a state.

Claim: each is drawn, with and without the truth, with its figures, without a warning (any warning fails a test here);
no coordinate is NaN, infinite or beyond its picture, no number of the data is one, and what is a line of many rows is a
point of one. It would fail for an axis without a length, which divided by 0.
"""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

import dphmm
from commands import BBOX, run, walk_rows, write_rows
from report.worlds import of_places, released, report

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_invented_people")]
WALKS = walk_rows(["u1", "u2"], 12, 7)
NAMES = [[f"v{user}", name] for user in range(4) for name in "abcabcab"]
GRID = ("--grid", "1km", "--bbox", BBOX, "--step", "5min")


def on_map(folder, rows, fit=GRID, radius="1.5km", options=()):
    return of_places(folder, rows, walk_rows([f"p{i}" for i in range(12)], 24, 3), fit, radius, *options)


def of_names(folder, rows, *options):
    write_rows(folder / "people.csv", ["user", "state"], NAMES)
    write_rows(folder / "walks.csv", ["user", "state"], rows)
    run("fit", folder / "people.csv", "-o", folder / "model.npz", "--state-column", "state")
    run("policy", "complete", folder / "model.npz", "-o", folder / "policy.json")
    return released(folder, *options)


def of_one_answer(folder, answer, rows=3):
    """Two states that are answered alike: every answer is the same constant."""
    space = dphmm.StateSpace([answer, answer], ["a", "b"], pitch=np.ones(len(answer)))
    dphmm.storage.save_model(dphmm.MarkovModel([0.5, 0.5], np.full((2, 2), 0.5), space=space), folder / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(2), folder / "policy.json", space)
    write_rows(folder / "walks.csv", ["user", "state"], [["u", "a"]] * rows)
    return released(folder)


FAR = [["u", WALKS[0][1], "-33.8", "151.2"]]
SMALL = {
    "one row": lambda folder: on_map(folder, WALKS[:1]),
    "one row of the first subject": lambda folder: on_map(folder, WALKS[:1] + WALKS[12:]),
    "one step of two subjects": lambda folder: on_map(folder, [WALKS[0], WALKS[12]]),
    "one row at midnight": lambda folder: on_map(folder, [["u", "2024-05-06T00:00:00Z", *WALKS[0][2:]]]),
    "one subject": lambda folder: on_map(folder, WALKS[:12]),
    "one row in no state": lambda folder: on_map(
        folder, [["u", WALKS[0][1], "-33.8", "151.2"]], options=("--no-check",)
    ),
    "one hexagon": lambda folder: on_map(folder, WALKS[:1], ("--h3", 8, "--step", "5min"), "2km"),
    "one name": lambda folder: of_names(folder, [["u", "a"]]),
    "one unknown name": lambda folder: of_names(folder, [["u", "elsewhere"]], "--no-check"),
    "one number": lambda folder: of_one_answer(folder, [5.0]),
    "one large number": lambda folder: of_one_answer(folder, [2.0**40]),
    "the number 0": lambda folder: of_one_answer(folder, [0.0], 1),
    "one pair": lambda folder: of_one_answer(folder, [5.0, 1.0]),
    "one triple": lambda folder: of_one_answer(folder, [5.0, 1.0, 2.0], 1),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """pages("one row"): without the truth, with it, and with everything there is; made once."""
    return cache(lambda name: list(pages_of(SMALL[name](tmp_path_factory.mktemp("small")))))


def pages_of(folder):
    truth = ("--truth", folder / "walks.csv")
    everything = (*truth, "--figures", folder / "pictures")
    for number, options in enumerate(((), truth, everything)):
        report(folder, folder / f"page-{number}.html", *options, ledger=number == 2)
        yield (folder / f"page-{number}.html").read_text()


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers_of(one)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("name", SMALL)
def test_the_smallest_releases_are_drawn(pages, name):
    for page in pages(name):
        drawings = re.findall(r"<svg[ >].*?</svg>", page)
        assert drawings
        for drawing in drawings:
            width, height = map(float, re.search(r'viewBox="-?\d+ -?\d+ ([\d.]+) ([\d.]+)"', drawing).groups())
            words = re.sub(r"<text[^>]*>[^<]*</text>|aria-label=\"[^\"]*\"", "", drawing)
            assert not re.search(r"nan|inf", words, re.IGNORECASE)
            for d in re.findall(r' d="([^"]*)"', words):
                # Absolute points only: what is relative starts from one of them.
                for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", d):
                    # A graticule may run past the picture's edge, which cuts it off.
                    assert -width <= float(x) <= 2 * width and -height <= float(y) <= 2 * height
        data = re.search(r'id="data">(.*?)</script>', page)
        assert np.isfinite(numbers_of(json.loads(data[1], parse_constant=lambda word: pytest.fail(word)))).all()
        assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>", "", page), re.IGNORECASE)


@pytest.mark.parametrize("name", ["one row", "one name", "one hexagon", "the number 0"])
def test_one_row_has_no_slider_and_no_charts_over_time(pages, name):
    for page in pages(name):
        assert "One noisy" in page or "constant" in page
        assert 'id="step"' not in page and "Budget: spent and left" not in page and "and when</h2>" not in page


def test_one_row_is_told_of_as_one(pages):
    said = pages("one row")[0].partition("In the words of the privacy statement")[0]
    assert re.findall(r'<tr><th scope="row">([^<]*)</th><td class="useful">', said) == ["one answer"]
    assert not re.search("whole file|several answers|in every answer|1 answer a day|all answers before it", said)
