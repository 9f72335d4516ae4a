"""What the benchmarks print follows from what they timed.

Claim: medians, rates, ratios, slopes and the "met" column are computed rightly, ratios with the least and the most they
could have been; a case that misses its target says NO; a case that cannot be measured shows no number; what was printed
is stored, and the pages of results show what is stored. Nothing here measures time. Fails where a rate has its bounds
swapped, where a target "below" is taken for "at least", where a table of figures is typed into a page, or where the
walks of the simulated people leave what their model allows.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.speed.timing import Spread
from benchmarks.speed.worlds import GridWorld
from benchmarks.stored import RESULTS, printed, store, stored

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])


def test_a_rate_and_a_ratio_keep_least_below_most():

    slow, fast = Spread.of([4.0, 2.0, 3.0]), Spread.of([0.5, 1.0, 0.75])
    assert slow == Spread(3.0, 2.0, 4.0, 3)
    assert slow.per_second(12) == Spread(4.0, 3.0, 6.0, 3)
    assert slow.times(fast) == Spread(4.0, 2.0, 8.0, 3)
    assert fast.each(5) == Spread(0.15, 0.1, 0.2, 3)


def test_warm_ups_and_preparing_are_not_timed(monkeypatch):
    from benchmarks.speed import timing

    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def spend(seconds):
        clock[0] += seconds

    costs = iter([100.0, 1.0, 3.0, 2.0])

    def prepare():
        spend(1000.0)
        return next(costs)

    assert timing.timed(spend, 3, warmups=1, prepare=prepare) == timing.Spread(2.0, 1.0, 3.0, 3)


def test_targets_and_their_column():
    from benchmarks.speed.figures import Figure, at_least, below, table

    half = Spread.of([0.5])
    figures = [
        Figure("c", "slow", half, "/s", at_least(2000)),
        Figure("c", "quick", half, "s", below(1.0)),
        Figure("c", "only shown", half, "s"),
        Figure("c", "elsewhere", None, "", at_least(1), "not installed"),
    ]
    assert [figure.met for figure in figures] == [False, True, None, None]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(figures).splitlines()[2:]]
    assert [row[6] for row in rows] == ["NO", "yes", "", ""]
    assert rows[0][5] == "≥ 2,000"
    assert rows[3][2] == "not measured"
    # Strict JSON: a number that is none would not be read back elsewhere.
    json.dumps([figure.document() for figure in figures], allow_nan=False)


def test_the_slope_of_a_power_is_its_exponent():
    from benchmarks.speed.growth import fitted_slope

    sizes = [1e3, 1e4, 1e5, 1e6]
    assert fitted_slope(sizes, [3e-7 * size for size in sizes]) == pytest.approx(1)
    assert fitted_slope(sizes, [1e-9 * size**2 for size in sizes]) == pytest.approx(2)


def test_walks_use_possible_moves_and_models_are_nine_neighbour():

    world = GridWorld(8)
    matrix = world.model.transition.toarray()
    apart = np.abs(world.points[:, None] - world.points[None]).max(axis=2)
    assert np.array_equal(matrix > 0, apart <= 1)
    path = world.walk(300)
    assert np.all(matrix[path[:-1], path[1:]] > 0)
    assert len(set(path)) > 30


def test_walks_move_as_often_as_the_model_says():
    """All moves of 5,000 steps on nine cells, within 5 standard errors of their expectation: one fixed walk."""

    world = GridWorld(3)
    matrix, path = world.model.transition.toarray(), np.array(world.walk(5000))
    counts = np.zeros((9, 9))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    expected = counts.sum(axis=1, keepdims=True) * matrix
    assert np.all(np.abs(counts - expected) <= 5 * np.sqrt(expected * (1 - matrix)))


def test_plain_and_library_policies_of_the_benchmarks_are_the_same():
    from benchmarks.speed.worlds import POLICIES, GridWorld

    world = GridWorld(12)
    first, second = np.triu_indices(world.n_states, 1)
    for name in POLICIES:
        joined = world.joined(name)(first, second)
        assert np.array_equal(np.stack([first, second], axis=1)[joined], world.policy(name).edges())


@pytest.mark.parametrize(("before", "after", "warned"), [(0.2, 1.1, False), (0.2, 3.0, True), (3.0, 1.0, True)])
def test_a_busy_machine_is_said_to_have_been_busy(before, after, warned):
    from benchmarks.speed.machine import described, sentence

    about = {**described(), "load_before": before, "load_after": after}
    assert ("busy" in sentence(about)) == warned


def test_a_printed_table_is_stored_with_the_columns_that_the_page_has(tmp_path):
    table = printed("One run:\n\n| data | s | of \\| |\n|---|---:|---|\n| mvad | 3 | 1, 2 |\n")
    assert table == [["data", "s", "of |"], ["mvad", "3", "1, 2"]]
    path = store("mvad", table, tmp_path)
    assert (
        stored(path) == table and stored(store("mvad", [["of |", "s", "data"], ["4", "5", "b"]], tmp_path))[1][0] == "b"
    )
    with pytest.raises(ValueError, match="expected a column 's', got data"):
        store("mvad", [["data"]], tmp_path)


def test_pages_of_results_show_each_stored_table_once_and_none_that_was_typed():
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("experiments/*/results.md")]
    shown = re.findall(r"^```\{results\} (\S+)\n```$", "".join(page.read_text() for page in pages), re.MULTILINE)
    text = "".join(page.read_text() for page in pages if page.stem in ("benchmark-results", "real-data", "results"))
    assert sorted(shown) == sorted(path.stem for path in RESULTS.glob("*.csv")) and len(shown) > 40
    assert [line for line in text.splitlines() if len(re.findall(r"\| [\d.,]+ (?=\|)", line)) > 2] == []
