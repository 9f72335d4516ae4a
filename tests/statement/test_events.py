"""What a statement says of names, times and lengths of cases, and that the checker finds where rows say otherwise."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.session.setting import Setting
from dphmm.statement.events import EventLog
from dphmm.statement.files import statement_path
from dphmm.states import Trajectories
from dphmm.states.space import END
from dphmm.states.visit_table import VisitTable

pytestmark = pytest.mark.replayed_words

SPACE = dphmm.StateSpace.labels(["a", "b", END])
FULL = np.full((3, 3), 1 / 3)
COMPLETE = dphmm.policy.complete(3)


def facts(lengths, policy=COMPLETE, space=SPACE, names="random", length=None, **choices):
    user = np.repeat([f"c{n}" for n in range(len(lengths))], lengths)
    rows = Trajectories.from_labels(user, state=["a"] * len(user), order=np.arange(len(user)))
    model = dphmm.MarkovModel([1 / 3] * 3, FULL, space=space, start="at")
    return EventLog.of(names, length, VisitTable.of(rows, space, None), Setting.of(model, policy, space, 1, **choices))


def test_a_length_is_a_public_choice_and_never_read_from_rows():
    """Cases that happen to be alike tell how long they are: in their place a shorter one would have fewer rows."""
    assert (facts([3, 3], length=3).length, facts([3, 3], length=3).length_hidden) == (3, True)
    assert facts([], length=3).length == 3
    for told in (facts([3, 2]), facts([3, 3]), facts([])):
        assert told.length is None and told.length_hidden is False
        assert "Rows end where their case ends: the length of each case is told." in told.said()
    for told in (
        facts([3, 3], dphmm.policy.categorical([0, 0, 1]), length=3),
        facts([3, 3], length=3, constraint="delta=0.1"),
        facts([3, 3], length=3, varies=["epsilon"]),
    ):
        assert told.length == 3 and told.length_hidden is False
        assert "what answers tell of a length is in no bound" in told.said()[-1]
    assert "differ only in where END begins are neighbouring paths" in facts([3, 3], length=3).said()[-1]
    with pytest.raises(InvalidInput, match="length: got a case of 2 rows; expected 3 rows of every case"):
        facts([3, 2], length=3)
    with pytest.raises(InvalidInput, match="length: got 3; expected a state called END"):
        facts([3, 3], space=dphmm.StateSpace.labels(["a", "b", "c"]), length=3)
    with pytest.raises(InvalidInput, match="length: got 3; expected case_names"):
        dphmm.Setup.labels(["a", END]).plan(2, steps=3, schedule="every").release([], "out", length=3)


def test_names_and_times_are_said():
    assert "Names of cases are those of the source" in facts([1], names="kept").said()[0]
    assert facts([1]).said()[:2] == [
        "Cases have random names and are sorted by them: names and order tell nothing.",
        "Steps are positions, and no times are published.",
    ]
    for times, words in (("day", "What days tell of the activities is in no bound."), ("exact", "is in no bound.")):
        told = EventLog(case_names="random", times=times, length=None, length_hidden=False)
        assert told.said()[1].endswith(words)


@pytest.fixture
def released(tmp_path):
    rows = Trajectories.from_labels(["bbbbbbbbbbbb"] * 2 + ["cccccccccccc"] * 2, state=list("abab"), order=[1, 2, 1, 2])
    plan = dphmm.Setup.labels(["a", "b", END], noun="case").plan(2, steps=2, schedule="every")
    bits = dphmm.ReplayBits(1)
    return plan.release(rows, tmp_path / "out", case_names="random", length=2, bits=bits, check=False, progress=False)


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        ({"times": "exact"}, "times are none, and the statement says exact"),
        ({"length": 3}, "cases of 2 rows, and the statement says 3"),
        ({"length": None}, "cases of 2 rows, and the statement says None"),
        ({"case_names": "drawn"}, "of another form: events.case_names"),
    ],
)
def test_the_checker_compares_what_is_said_with_the_rows(released, wrong, finding):
    told = released.check().findings
    assert not any("events" in one or "cases" in one for one in told)
    path = statement_path(released.folder.table)
    statement = json.loads(path.read_text())
    statement["events"].update(wrong)
    path.write_text(json.dumps(statement, indent=2) + "\n")
    assert any(finding in one for one in released.check().findings)


def test_the_checker_finds_names_that_were_not_drawn(tmp_path):
    rows = Trajectories.from_labels(["case-1"] * 2 + ["case-2"] * 2, state=list("abab"), order=[1, 2, 1, 2])
    plan = dphmm.Setup.labels(["a", "b"], noun="case").plan(2, steps=2, schedule="every")
    for names in ("random", "kept"):
        folder = tmp_path / names
        folder.mkdir()
        bits = dphmm.ReplayBits(1)
        out = plan.release(rows, folder / "out", case_names=names, bits=bits, check=False, progress=False)
        found = [one for one in out.check().findings if "names that were not drawn" in one]
        assert len(found) == (names == "random")
