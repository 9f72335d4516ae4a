"""dphmm synthesize: a table that reads back, a statement beside it, totals from a file; errors of one line.

It would fail for a statement that is not about the file, a total that is read for another state, and a warning that a
counted model does not get.
"""

from __future__ import annotations

import hashlib
import json

import pandas as pd
import pytest

import dphmm
from dphmm.statement.synthetic import SyntheticStatement
from dphmm.storage.inputs import file_digest

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def model(tmp_path):
    space = dphmm.StateSpace.labels(["home", "work", "away"])
    made = dphmm.MarkovModel([1, 0, 0], [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], space=space, start="at")
    dphmm.storage.save_model(made, tmp_path / "m.npz")
    return tmp_path / "m.npz"


def test_a_table_and_the_statement_about_it(run, model, tmp_path):
    out = tmp_path / "s.csv"
    result = run("synthesize", model, "--people", 3, "--steps", 4, "--seed", 1, "-o", out)
    assert "warning: Nothing is known" in result.stderr
    rows = dphmm.storage.load_trajectories(out).trajectories
    assert len(rows) == 12 and set(rows.state) <= {"home", "work", "away"}
    statement = json.loads((tmp_path / "s.csv.privacy.json").read_text())
    assert statement["file"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert statement["private"] == "unknown" and statement["people"] == 3
    before = out.read_bytes()
    again = run("synthesize", model, "--people", 3, "--steps", 4, "--seed", 1, "-o", out, code=2)
    assert "--force" in again.stderr
    run("synthesize", model, "--people", 3, "--steps", 4, "--seed", 1, "-o", out, "--force")
    assert out.read_bytes() == before


def test_a_learned_model_tells_what_the_answers_tell(run, tmp_path):
    """Of a release the model that was learned with it is drawn from, and the statement names the table."""
    setup = dphmm.Setup.labels(["a", "b"], moves=[[8, 2], [5, 5]])
    table = pd.DataFrame({"user": ["u"] * 4 + ["v"] * 4, "step": [1, 2, 3, 4] * 2, "state": list("aabbabab")})
    folder, draw = tmp_path / "out", ("--people", 30, "--steps", 3)
    released = setup.plan(2, per=4, epsilon=1, people=20, progress=False).release(table, folder, progress=False)
    plain = released.model
    run("synthesize", folder, *draw, "-o", tmp_path / "public.csv")
    assert json.loads((tmp_path / "public.csv.privacy.json").read_text())["model"] == plain.digest
    digest = file_digest(released.folder.table)
    found = {"family": "tilt", "iterations": 3, "gain": 2.0, "error": 1.0, "people": 12, "reason": ""}
    for name, plan, private in (("known", {"method": "geometry"}, True), ("given", {"method": "given"}, "unknown")):
        origin = {"method": "released answers", **found, "plan": plan, "plan_model": plain.digest, "released": [digest]}
        learned = dphmm.MarkovModel([0, 1], [[0, 1], [1, 0]], space=plain.space, start="at", provenance=origin)
        dphmm.storage.save_model(learned, folder / "learned.npz")
        released.folder.keep(["learned.npz"])
        run("synthesize", folder, *draw, "-o", tmp_path / f"{name}.csv")
        sentence = SyntheticStatement.of(learned, 30, 3).sentence()
        told = json.loads((tmp_path / f"{name}.csv.privacy.json").read_text())
        assert told["answers"] == [digest] and told["model"] == learned.digest and told["private"] == private
        assert ("what these answers tell" in sentence) == (private is True)


def test_totals_of_a_file_are_kept(run, model, tmp_path):
    (tmp_path / "t.csv").write_text("state,people,step\nwork,5,2\nhome,0,2\n")
    out = tmp_path / "s.csv"
    run("synthesize", model, "--people", 9, "--steps", 2, "--like", tmp_path / "t.csv", "-o", out)
    rows = dphmm.storage.load_trajectories(out).trajectories
    assert (rows.state[rows.step == 2] == "work").all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state,people\nelsewhere,5\n", "row 1, with a state that there is not"),
        ("state,people\nhome,-5\n", "row 1, with people -5"),
        ("state,people\nhome,x\n", "people"),
        ("state,people\nhome,1\nhome,2\n", "total of state 'home'"),
        ("state,lat\nhome,1\n", "a column 'lat'"),
        ("state\nhome\n", "columns state and people"),
        ("state,people,step\nhome,1,first\n", "a step that is no whole number"),
        ("state,people\nwork,1\n", "people at state 'work' at step 1"),
    ],
)
def test_a_file_of_totals_that_is_none_is_one_line(run, model, tmp_path, text, told):
    (tmp_path / "t.csv").write_text(text)
    result = run(
        "synthesize", model, "--people", 3, "--steps", 4, "--like", tmp_path / "t.csv", "-o", tmp_path / "s.csv", code=2
    )
    assert told in result.stderr and result.stderr.count("\n") == 1 and "--like" in result.stderr
    assert not (tmp_path / "s.csv").exists()


def test_a_time_needs_a_zone_and_a_model_with_a_step(run, model, tmp_path):
    for begin in ("yesterday", "2024-05-06T00:00", "2024-05-06T00:00Z"):
        result = run(
            "synthesize", model, "--people", 3, "--steps", 4, "--begin", begin, "-o", tmp_path / "s.csv", code=2
        )
        assert "--begin: got" in result.stderr
