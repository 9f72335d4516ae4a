"""Pictures of what was measured and of populations show their numbers, and say what they cannot draw.

Fails where a line or a mark is somewhere else than its numbers, and where bad input ends in more than one clear line.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput

LINE = dphmm.StateSpace(np.arange(5))


@pytest.mark.replayed_words
def test_shares_of_a_population_have_their_intervals():
    space = dphmm.StateSpace([0, 1, 2], ["a", "b", "c"])
    model = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]])
    policy = dphmm.policy.complete(3)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=2).plan
    rows = {"user": [f"u{i}" for i in range(90)], "step": 1, "z_0": [0.0, 2.0, 2.0] * 30, "epsilon": 2.0}
    table = pd.DataFrame(rows).assign(plan=plan.hash)
    found = dphmm.reconstruction.population(table, model, policy, space)
    figure = dphmm.plot.shares(found)
    ticks = {name: float(x) for x, name in re.findall(r'x="([\d.]+)"[^>]*>(\d+ %)<', str(figure.drawings[0]))}
    bars = re.findall(r'<rect class="label-1 sure-4" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', str(figure.drawings[0]))
    whole = ticks["100 %"] - ticks["0 %"]
    assert figure.heading == "Where 90 people are" and len(figure.rows) == 3
    for place, (row, share) in enumerate(zip(figure.rows, found.regions, strict=True)):
        numbers = (share.linear, share.low, share.high, share.estimate)
        assert row == [share.region, *(f"{100 * value:.1f} %" for value in numbers), ""]
        begin, wide = map(float, bars[place])
        assert begin == pytest.approx(ticks["0 %"] + whole * share.low, abs=0.11)
        assert wide == pytest.approx(whole * (share.high - share.low), abs=0.11)
    assert figure.svg.count('class="ring"') == 3
    with pytest.raises(InvalidInput, match="period: got day; expected one of all"):
        dphmm.plot.shares(found, "day")


@pytest.mark.replayed_words
def test_attacks_are_drawn_with_the_numbers_of_their_report(ax):
    pytest.importorskip("matplotlib")
    model = dphmm.MarkovModel(np.full(5, 0.2), np.full((5, 5), 0.2), space=LINE)
    truth = pd.DataFrame({"user": ["ann"] * 4 + ["ben"] * 4, "step": [*range(4)] * 2, "state": list("01234012")})
    world = (model, dphmm.policy.complete(5), LINE, 1)
    report = dphmm.audit.attack(dphmm.release_many(truth, *world, progress=False), truth, *world)
    assert dphmm.plot.attacks(report, ax=ax) is ax
    drawn = {line.get_label(): np.stack(line.get_data(), axis=1) for line in ax.get_lines()}
    assert list(drawn) == [one.name for one in report.measured]
    for one in report.measured:
        told = one.per_step()
        assert np.array_equal(drawn[one.name], np.stack([told["t"], told["expected_error"]], axis=1))
    assert ax.get_title().startswith("FOR THE OWNER ALONE") and ax.get_ylabel().endswith(report.unit)


@pytest.mark.parametrize("chart", ["shares", "attacks"])
def test_bad_input_is_one_line(chart):
    with pytest.raises(InvalidInput) as refused:
        getattr(dphmm.plot, chart)(pd.DataFrame({"user": ["ann"]}))
    assert "\n" not in str(refused.value)
