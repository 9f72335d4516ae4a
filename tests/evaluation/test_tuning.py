"""`dphmm.tune`: what the command prints, as a result; what is recommended is the rule's choice of the table.

It would fail for a recommended row that is not the table's, a policy that is not the recommended one, a target that is
forgotten, and a twin whose table differs from the command's.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.evaluation import Targets, candidate_policies, sweep
from dphmm.evaluation.tune import Trial

SPACE = dphmm.StateSpace([0, 1, 2, 4])
MOVES = [[0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0, 0.25, 0.75], [0.1, 0, 0.6, 0.3]]
MODEL = dphmm.MarkovModel([0.1, 0.2, 0.3, 0.4], MOVES, space=SPACE)
QUICK = {"runs": 3, "steps": 3}


def test_the_table_is_the_sweep_and_the_choice_is_that_of_the_targets():
    found = dphmm.tune(MODEL, target_dop=3, epsilons=[1, "0.5"], radii=[1, 2], **QUICK)
    policies = candidate_policies(MODEL, SPACE, (1, 2))
    expected = sweep(MODEL, SPACE, policies, [1, "0.5"], trial=Trial(3, 3, 1))
    pd.testing.assert_frame_equal(found.to_pandas(), expected)
    best = Targets(dop=3).best(expected)
    assert best is not None and found.best == best and found.missed is None
    assert found.policy is found.policies[found.recommended["policy"]]
    assert found.policy.digest == policies[expected["policy"][best]].digest


def test_it_is_what_the_command_prints(tmp_path):
    from click.testing import CliRunner

    from dphmm.cli.app import app

    dphmm.save_model(MODEL, tmp_path / "m.npz")
    words = [str(tmp_path / "m.npz"), *["--target-dop", "2", "--epsilon", "1", "--runs", "3", "--steps", "3", "--json"]]
    printed = json.loads(CliRunner().invoke(app, ["tune", *words]).stdout)
    assert printed.pop("policy") is None
    assert printed == json.loads(json.dumps(dphmm.tune(MODEL, target_dop=2, epsilons=[1], **QUICK).document()))


def test_out_of_reach_names_the_nearest_and_recommends_nothing():
    found = dphmm.tune(MODEL, target_error="0.001", epsilons=[1], **QUICK)
    assert found.recommended is None and found.policy is None and "nearest, by the least factor" in found.missed
    assert "nearest" in found._repr_html_()


def test_what_is_no_advice_is_not_recommended_and_what_is_has_a_limit():
    """The smallest error is that of the strongest answers."""
    weak = dphmm.tune(MODEL, target_dop=2, epsilons=["0.5", 2], radii=[1], **QUICK)
    both = dphmm.tune(MODEL, target_dop=2, epsilons=["0.5", 2, 3], radii=[1], **QUICK)
    assert both.recommended["epsilon"] == weak.recommended["epsilon"] == 2
    assert both.table["estimate_error"].idxmin() in both.table.index[both.table["epsilon"] == 3]
    assert both.limit == {"path_epsilon": "6", "steps": 3} == both.document()["limit"]
    strong = dphmm.tune(MODEL, target_dop=2, epsilons=[3, 4], radii=[1], **QUICK)
    assert strong.recommended is None and strong.limit is None and strong.policy is None
    assert strong.missed.endswith("; not advised: one answer leaves less than 1 in 20 doubt")
    half = dphmm.tune(MODEL, target_dop=2, epsilons=["0.1"], radii=[1], **QUICK)
    assert half.limit["path_epsilon"] == "0.3"


def test_a_policy_that_is_there_twice_is_tried_once_under_its_given_name():
    found = dphmm.tune(MODEL, policies={"mine": dphmm.policy.complete(4)}, epsilons=[1], radii=[1], **QUICK)
    assert found.same == {"complete": "mine"} and set(found.table["policy"]) == {"mine", "transition", "radius 1"}
    assert found.recommended is None and found.missed is None


WRONG = {
    "target_error": {"target_error": 0},
    "target_dop": {"target_dop": 5},
    "radii": {"radii": [1, 0]},
    "spaces": {"spaces": {"mine": SPACE}},
    "policies": {"policies": {"complete": dphmm.policy.complete(4)}},
    "mechanism": {"mechanism": "table:abc"},
    "runs": {"runs": 1},
    "epsilons": {"epsilons": ["x"]},
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_argument_is_named(field):
    with pytest.raises(InvalidInput, match=f"^{field}: got"):
        dphmm.tune(MODEL, **WRONG[field])


def test_the_picture_has_the_settings_of_one_mechanism_and_marks_the_recommended_one():
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    found = dphmm.tune(MODEL, target_dop=2, epsilons=[0.5, 1], radii=[1], **QUICK)
    ax = dphmm.plot.trade_off(found, ax=figure.Figure().add_subplot())
    chosen = found.table[found.table["mechanism"] == found.recommended["mechanism"]]
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    for name, rows in chosen.groupby("policy"):
        assert np.array_equal(drawn[name], rows.sort_values("epsilon")["estimate_error"])
    assert any(np.array_equal(line, [found.recommended["estimate_error"]]) for line in drawn.values())
    with pytest.raises(InvalidInput, match="mechanism: got laplace"):
        dphmm.plot.trade_off(found, "laplace", ax=ax)
