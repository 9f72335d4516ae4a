"""What is said of a release before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.release.batch import Batch
from dphmm.session.setting import Setting
from dphmm.statement.story import ReaderFindings
from dphmm.statement.warnings import no_limit, release_warnings, trapped_belief
from dphmm.states.space import LABELS_WRONG


@pytest.mark.parametrize(
    ("absorbing", "constraint", "said"),
    [(True, "delta=0.01", 1), (True, "support", 0), (False, "delta=0.01", 0)],
)
def test_a_delta_set_beside_absorbing_states_is_warned_of(absorbing, constraint, said):
    moves = np.full((3, 3), 1 / 3)
    if absorbing:
        moves[2] = [0, 0, 1]
    model = dphmm.MarkovModel(np.full(3, 1 / 3), moves)
    space = dphmm.StateSpace(np.arange(3)[:, None])
    batch = Batch(model, dphmm.policy.complete(3), space, 1, constraint=constraint)
    found = trapped_belief(model, batch.setting.options)
    assert len(found) == said
    assert [sentence for sentence in found if "1 absorbing state:" not in sentence] == []


def test_a_far_cost_has_a_warning():
    """States 100 apart that no edge joins are told apart."""
    space = dphmm.StateSpace(np.array([[0.0], [1.0], [100.0], [101.0]]))
    model = model_of(space)
    setting = Setting.of(model, dphmm.policy.radius(space, 1), space, 1)
    (far,) = release_warnings(setting)
    assert far.startswith("the cost of the first step is ") and "no edge of the policy joins" in far
    assert float(setting.first_plan().cost) > 20
    assert release_warnings(Setting.of(model, dphmm.policy.complete(4), space, 1)) == []


def test_an_answer_that_gives_somebody_away_is_warned_of_and_made():
    space = dphmm.StateSpace.labels(["a", "b", "c", "d"])
    for epsilon, said in (("2.9", []), ("3", ["not advised: one answer leaves less than 1 in 20 doubt"])):
        assert release_warnings(Setting.of(model_of(space), dphmm.policy.complete(4), space, epsilon)) == said


IF = "No limit is set. If every step has an answer and people move as the model says, a reader "
OF_PLACES = "misses somebody's place by 130 m on average (2,530 m without the file)"
OF_STATES = "misses somebody's state by 0.37 on average, in answer units (0.5 without the file)"


@pytest.mark.parametrize(
    ("unit", "error", "without", "known", "said"),
    [
        ("m", 132, 2534, 119, OF_PLACES),
        ("m", 132, 2534, 121, f"{OF_PLACES}: it tells where somebody is, to the cell"),
        ("answer units", 0.37, 0.5, 0, OF_STATES),
        (LABELS_WRONG, 0.07, 0.59, 0, "names the right label in 93 of 100 rows (41 without the file)"),
        (LABELS_WRONG, 0.004, 0.7, 0, "names the right label in more than 99 of 100 rows (30 without the file)"),
        (LABELS_WRONG, 0, 0.996, 0, "names the right label in 100 of 100 rows (less than 1 without the file)"),
    ],
)
def test_without_a_limit_it_is_told_what_a_reader_finds_beside_a_guess(unit, error, without, known, said):
    assert no_limit(ReaderFindings(error, without, unit, known=known)) == IF + said


def test_what_is_not_computed_is_told_with_the_reason():
    assert no_limit("so it is") == "No limit is set. What a reader finds is not computed: so it is"


def model_of(space):
    return dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25), space=space)
