"""dphmm model: what it writes, what it says of whose data is in it, and its one line for each wrong input.

It would fail where a model from geometry is not what the library makes, where a released file does not say that the
model was made without data, or says so of one that was not, and where a wrong file of moves is read as another.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dphmm
from cli.conftest import altered
from commands import BBOX, write_rows
from dphmm.statement.files import load_statement
from dphmm.storage.models import load_model

GRID = ("--bbox", BBOX, "--cell", "1km", "--step", "5min", "--max-speed", "20km/h")


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    run("model", "grid", *GRID, "-o", folder / "model.npz")
    run("policy", "radius", folder / "model.npz", "-o", folder / "radius.json", "--radius", "1.5km")
    return folder


def test_a_grid_is_what_the_library_makes(run, made):
    space = dphmm.Grid.from_bounds(10.0, 50.0, 10.056, 50.036, "1km")
    assert load_model(made / "model.npz").digest == dphmm.MarkovModel.from_geometry(space, "5min", "20km/h").digest
    said = json.loads(run("model", "grid", *GRID, "-o", made / "other.npz", "--jump", "0", "--json").stdout)
    assert said["jump"] is None and said["couples_along_radius"] is True and said["made_without_data"] is True
    assert load_model(made / "other.npz").jump is None


def test_hexagons(run, tmp_path):
    pytest.importorskip("h3")
    out = run("model", "h3", "--bbox", BBOX, "--resolution", "8", *GRID[4:], "-o", tmp_path / "m.npz").stderr
    assert "nobody's data" in out and "radius policy" not in out
    assert load_model(tmp_path / "m.npz").space.kind == "h3"


@pytest.mark.slow
def test_a_release_says_that_nobodys_data_is_in_the_model(run, made, town, tmp_path, release_of):
    out, ledger = tmp_path / "released", tmp_path / "ledger.db"
    assert "warning: the model" not in run(*release_of(made, tmp_path, town / "walks.csv")).stderr
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    assert statement["private"] is True and statement["reasons"] == []
    assert (statement["model"]["people"], statement["model"]["people_known_by"]) == ("others", "model")
    told = load_statement(out / "released.csv")
    assert "Nobody's data" in told.origin and "without anybody's data" in told.sentence("assumes")
    assert statement["plans"]["count"] == 1
    assert "nothing is wrong" in run("check-release", out).stdout
    run("read", out, "--estimates")
    run("report", out)
    assert "Nobody" in (out / "report.html").read_text()
    assert "nothing is wrong" in run("check-release", out).stdout
    assert "geometry alone" in run("account", ledger, "--model", made / "model.npz").stdout


@pytest.mark.parametrize(
    ("of", "change", "told"),
    [
        ("made", {"people_known_by": "owner"}, "of others people, known by owner: that does not follow"),
        ("town", {"people": "others", "people_known_by": "model"}, "of others people, known by model: that does not"),
    ],
)
def test_another_statement_of_whose_data_it_is_is_found(run, made, town, tmp_path, release_of, of, change, told):
    folder = {"made": made, "town": town}[of]
    run(*release_of(folder, tmp_path, town / "walks.csv"))
    altered(tmp_path, tmp_path, lambda rows, statement: statement["model"].update(change))
    assert told in run("check-release", tmp_path / "released", code=1).stdout


def test_the_owner_cannot_say_that_it_is_of_the_released(run, made, town, tmp_path, release_of):
    error = run(*release_of(made, tmp_path, town / "walks.csv"), "--model-people", "same", code=2).stderr
    assert "geometry alone" in error and not (tmp_path / "released" / "released.csv").exists()


def test_leakage_is_refused_with_a_remedy(run, made, town):
    given = ("--model", made / "model.npz", "--policy", made / "radius.json")
    error = run(
        "plan", "--details", made / "model.npz", "--policy", made / "radius.json", "--steps", "4", code=2
    ).stderr
    assert "a jump of 0.001" in error and "--path-epsilon" in error
    out = run("release", town / "walks.csv", *given, "--path-epsilon", "10", "--steps", "30", "-o", made / "t",
              "--ledger", made / "t.db").stderr  # fmt: skip
    assert "at most 30 in 30 steps for each person" in " ".join(out.split())
    promise = load_statement(made / "t" / "released.csv").promise
    assert promise == dphmm.SequencePromise(10, steps=30) and "lose at most 10" in promise.sentence()


def test_a_model_replaces_another_with_its_people(run, town, tmp_path):
    model = tmp_path / "model.npz"
    model.write_bytes((town / "model.npz").read_bytes())
    Path(f"{model}.people").write_bytes((town / "model.npz.people").read_bytes())
    run("model", "grid", *GRID, "-o", model, "--force")
    assert not Path(f"{model}.people").exists()


def test_a_matrix_of_weights(run, tmp_path):
    file = write_rows(tmp_path / "m.csv", ["state", "b", "a"], [["b", 1, 3], ["a", 5, 0]])
    error = run("model", "matrix", file, "-o", tmp_path / "m.npz", "--step", "1h").stderr
    model = load_model(tmp_path / "m.npz")
    assert model.matrix.toarray().tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert model.space.names == ("b", "a") and model.step == 3600 and "taken to be public" in error
    assert model.jump.rate == 0.001 and model.provenance["method"] == "given"


def test_a_list_of_moves(run, tmp_path):
    rows = [["x", "y", 1], ["x", "z", 2], ["x", "y", 1], ["y", "x", 7]]
    file = write_rows(tmp_path / "e.csv", ["from", "to", "weight"], rows)
    error = run("model", "edges", file, "-o", tmp_path / "m.npz", code=2).stderr
    assert "no move out of state 'z' (1 such in all)" in error
    run("model", "edges", file, "-o", tmp_path / "m.npz", "--stay", "0.5", "--jump", "0.01")
    model = load_model(tmp_path / "m.npz")
    assert model.matrix.toarray().tolist() == [[0.5, 0.25, 0.25], [0.5, 0.5, 0], [0, 0, 1]]
    answers = write_rows(tmp_path / "a.csv", ["state", "at"], [["z", 5], ["y", 1], ["x", 0]])
    run("model", "edges", file, "-o", tmp_path / "n.npz", "--stay", "0.5", "--answers", answers)
    other = load_model(tmp_path / "n.npz")
    assert other.space.names == ("z", "y", "x") and other.space.answers[:, 0].tolist() == [5, 1, 0]
    assert np.array_equal(other.matrix.toarray(), model.matrix.toarray()[::-1, ::-1])
    unweighted = write_rows(tmp_path / "u.csv", ["from", "to"], [["x", "y"], ["y", "x"], ["y", "y"]])
    run("model", "edges", unweighted, "-o", tmp_path / "u.npz")
    assert load_model(tmp_path / "u.npz").matrix.toarray().tolist() == [[0, 1], [0.5, 0.5]]


WRONG_BOXES = {
    "--bbox": (
        ("10.056,50.0,10.0,50.036", "W"),
        ("10.0,50.036,10.056,50.0", "north more than south"),
        ("1,2,3", "four"),
    ),
    "--cell": (("50km", "one cell"), ("5", "a unit"), ("-1km", "a length"), ("0km", "more than 0"), ("0.1m", "10**7")),
    "--step": (("5", "a unit"), ("0min", "more than 0")),
    "--max-speed": (("1km/h", "nobody would move"), ("60", "a unit"), ("0km/h", "more than 0")),
    "--jump": (("1", "between 0 and 1"), ("-1", "between 0 and 1"), ("often", "a number")),
    "--stay": (("1", "less than 1"), ("nan", "a number")),
}


@pytest.mark.parametrize("option", WRONG_BOXES)
def test_a_wrong_box_is_one_line(run, tmp_path, option):
    for value, said in WRONG_BOXES[option]:
        given = dict(zip(GRID[::2], GRID[1::2], strict=True)) | {option: value}
        words = [f"{name}={of}" for name, of in given.items()]
        error = run("model", "grid", *words, "-o", tmp_path / "m.npz", code=2).stderr
        assert error.startswith(f"error: {option}") and said in error and error.count("\n") == 1, error
        assert not (tmp_path / "m.npz").exists()


def test_too_many_moves_are_told_with_their_number(run, tmp_path):
    given = ("--bbox", "10,50,10.5,50.3", "--cell", "100m", "--step", "1h", "--max-speed", "90km/h")
    error = run("model", "grid", *given, "-o", tmp_path / "m.npz", code=2).stderr
    assert error.startswith("error: --max-speed: got ") and "at most 20,000,000" in error


WRONG_FILES = {
    "matrix": (
        (["a"], [[1]], "two or more"),
        (["a", "b"], [[1, 2]], "a row for each"),
        (["a", "b"], [[1, 2], [0, 0]], "no move out of state 'b'"),
        (["a", "b"], [[1, -2], [1, 1]], "-2"),
        (["a", "b"], [[1, "nan"], [1, 1]], "no number"),
        (["a", "b"], [[1, ""], [1, 1]], "no number"),
        (["a", "b"], [[1, "inf"], [1, 1]], "no number"),
        (["a", "b"], [[1, "x"], [1, 1]], "no number"),
        (["a", "b"], [["1e308", "1e308"], [1, 1]], "from 1e-100 to 1e+100"),
        (["state", "a", "b"], [["b", 1, 2], ["c", 1, 2]], "without a row for 'a'"),
    ),
    "edges": (
        (["from", "weight"], [["a", 1]], "columns from, to"),
        (["from", "to"], [["a", ""], ["b", "a"]], "without a name"),
        (["from", "to", "weight"], [["a", "b", -1], ["b", "a", 1]], "-1"),
        (["from", "to", "weight"], [["a", "b", "nan"], ["b", "a", 1]], "no number"),
        (["from", "to", "weight"], [["a", "b", 0], ["b", "a", 1]], "no move out of state 'a'"),
        (["from", "to"], [], "no rows"),
        (["from", "to"], [["a", "a"]], "1 state"),
    ),
}


@pytest.mark.parametrize("kind", WRONG_FILES)
def test_a_wrong_file_is_one_line(run, tmp_path, kind):
    for header, rows, said in WRONG_FILES[kind]:
        file = write_rows(tmp_path / "w.csv", header, rows)
        error = run("model", kind, file, "-o", tmp_path / "m.npz", code=2).stderr
        assert error.startswith("error: ") and said in error and error.count("\n") == 1, error
        assert not (tmp_path / "m.npz").exists()


def test_names_that_are_no_states_are_refused(run, tmp_path):
    file = write_rows(tmp_path / "e.csv", ["from", "to"], [["x", "y"], ["y", "x"]])
    names = write_rows(tmp_path / "s.csv", ["state"], [["x"], ["z"]])
    assert "'y'" in run("model", "edges", file, "--states-file", names, "-o", tmp_path / "m.npz", code=2).stderr
    answers = write_rows(tmp_path / "a.csv", ["state", "at"], [["x", 0], ["z", 1]])
    error = run(
        "model", "edges", file, "--states-file", names, "--answers", answers, "-o", tmp_path / "m.npz", code=2
    ).stderr
    assert error.startswith("error: --states-file")
    matrix = write_rows(tmp_path / "m.csv", ["x", "y"], [[1, 1], [1, 1]])
    error = run("model", "matrix", matrix, "--answers", answers, "-o", tmp_path / "m.npz", code=2).stderr
    assert error.startswith("error: --answers")


def test_fit_with_a_jump(run, town, site, tmp_path):
    fit = ("fit", town / "people.csv", "--grid", "1km", "--bbox", BBOX, "--step", "5min")
    run(*fit, "-o", tmp_path / "m.npz", "--jump", "0.001")
    plain, jumping = load_model(town / "model.npz"), load_model(tmp_path / "m.npz")
    assert jumping.jump.rate == 0.001 and jumping.without_jump().digest == plain.digest
    run(*fit, "-o", tmp_path / "n.npz", "--jump", "0")
    assert load_model(tmp_path / "n.npz").digest == plain.digest
    run(*fit, "-o", tmp_path / "p.npz", "--epsilon", "1", "--max-length", "24", "--jump", "0.01")
    learned = load_model(tmp_path / "p.npz")
    assert learned.jump.rate == 0.01 and learned.provenance["private"] is True
    for words in (("--jump", "1"), ("--jump", "x")):
        assert run(*fit, "-o", tmp_path / "q.npz", *words, code=2).stderr.startswith("error: --jump")
    hidden = (
        "fit",
        site / "visits.csv",
        "--states",
        "2",
        "--symbols",
        "state",
        "--jump",
        "0.1",
        "-o",
        tmp_path / "h.npz",
    )
    assert run(*hidden, code=2).stderr.startswith("error: --jump")
    assert not (tmp_path / "q.npz").exists()
