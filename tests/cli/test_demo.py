"""The demo from nothing to a page, its files, and the folders it refuses to touch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import dphmm
from dphmm.choose.planning import LONGER
from dphmm.choose.schedule_plan import read_plan
from dphmm.choose.simulated import Guesses
from dphmm.cli.demo import FILES
from dphmm.statement.files import load_statement
from dphmm.statement.parts import document
from dphmm.statement.release import statement_schema
from dphmm.states.maps import ground_distance

pytestmark = pytest.mark.slow
Run = Callable[..., Result]

SMALL = ("--people", 2, "--days", 1)
ROWS = 2 * 144
ASKED = 2 * 6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A small demo, run as a user runs it."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-c", "from dphmm.cli import main; main()", "demo", *map(str, SMALL)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    return folder / "demo-out", done


def test_it_ends_with_the_path_of_the_page(made: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = made
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["demo-out/report.html"]
    labels = re.findall(
        r"^(verdict|published|found|guaranteed|spent|not protected|measured|checked) ", done.stderr, re.MULTILINE
    )
    assert labels == ["verdict", "published", "found", "guaranteed", "spent", "not protected", "measured", "checked"]
    said = " ".join(done.stderr.split())
    for promised in (
        "a model made from the map alone",
        f"{ASKED} noisy positions of 2 people, at fixed public times, at most 6 a day",
        "if two places up to 680 m apart seem equally likely, one answer leaves at least 1 in 9 doubt",
        "all six answers of a day: no useful limit",
        "off on average",
        "of somebody who stays in one place for",
        "who is in the file, and when",
        "at most 12 of 12 a day",
        "nothing is wrong",
    ):
        assert promised in said
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_the_released_file_keeps_the_contract(made: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    table = dphmm.open(made[0] / "out")._table
    assert table.column_names == [
        "user", "t", "step", "z_0", "z_1", "z_lat", "z_lon", "epsilon", "cost", "plan",
    ]  # fmt: skip
    assert len(table) == ROWS
    assert sorted(table.column("epsilon").to_pylist()) == [0.0] * (ROWS - ASKED) + [2.0] * ASKED
    assert table.column("plan").null_count == table.column("z_0").null_count == ROWS - ASKED


def test_it_is_a_real_release_with_a_statement(made: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    statement = document(load_statement(made[0] / "out" / "released.csv"))
    jsonschema.validate(statement, statement_schema())
    assert statement["private"] is True and statement["randomness"] == {"replayable_rows": 0, "words": "system"}
    assert statement["model"]["people"] == "others" and statement["model"]["people_known_by"] == "model"
    assert statement["sequence"]["total"] == "12" and statement["schedule"]["not_asked"] == ROWS - ASKED
    assert statement["published"] == {"rows": ROWS, "subjects": 2, "public_constants": 0}


def test_nobody_s_data_is_in_the_model(made: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    model = dphmm.storage.load_model(made[0] / "out" / "model.npz")
    same = dphmm.MarkovModel.from_geometry(model.space, model.step, "20km/h")
    assert model.provenance["method"] == "geometry" and model.digest == same.digest
    plan = read_plan(
        made[0] / "out" / "plan.json",
        model,
        dphmm.storage.load_policy(made[0] / "out" / "policy.json", model=model),
        model.space,
    )
    statement = load_statement(made[0] / "out" / "released.csv")
    assert (plan.schedule.exact, plan.schedule.releases) == (2, 6) and statement.epsilon == "2"


def test_what_is_measured_is_measured_from_the_true_places(tmp_path: Path, run: Run) -> None:
    """Twice: by the command, and here from files and degrees alone."""
    told = json.loads(run("demo", "--out", tmp_path / "a", "--seed", 5, "--json", *SMALL).stdout)
    truth = pq.read_table(tmp_path / "a" / "people.parquet").to_pylist()
    places = {(row["user"], row["t"]): (row["lat"], row["lon"]) for row in truth}
    model = dphmm.storage.load_model(tmp_path / "a" / "out" / "model.npz")
    policy = dphmm.storage.load_policy(tmp_path / "a" / "out" / "policy.json", model=model)
    rows = dphmm.open(tmp_path / "a" / "out")._table
    decoded = dphmm.reconstruction.smooth(rows, model, policy, model.space, marginals=True, progress=False)
    beliefs = np.array(decoded["marginals"].to_pylist())
    guessed = zip(*model.space.to_latlon(Guesses(model.space).of(beliefs.T)[0]), strict=True)
    keys = zip(decoded["user"].to_pylist(), decoded["t"].to_pylist(), strict=True)
    errors = [ground_distance(*places[key], *place) for key, place in zip(keys, guessed, strict=True)]
    found, measured = told["found"], told["measured"]
    assert found["unit"] == "m" and found["error"] < found["error_without"]
    assert measured["error"] == pytest.approx(float(np.mean(errors)), rel=1e-3)
    assert [stay["after"] for stay in found["stays"]["found"]] == list(LONGER)
    # Whoever knows a seed can take the noise away: nothing else is wrong with such a demo.
    (note,) = told["audit"]["notes"]
    assert "replayable bits" in note and told["audit"]["findings"] == [] and told["published"]["answers"] == ASKED
    assert told["spent"]["most"] == told["spent"]["total"] == "12" and told["not_protected"]["codes"]
    # Nothing bounds what who knows the seed is sure of.
    assert told["guaranteed"]["holds"] is False and told["guaranteed"]["block"] is None


def test_the_page_shows_the_demo(made: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    text = (made[0] / "report.html").read_text()
    assert "Port Markov" in text and "simulated" in text and "NOT PRIVATE" not in text
    assert "OWNER ONLY" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert len(data["people"]) == 2 and data["people"][0]["truth"] and data["people"][0]["levels"]
    for heading in (
        "What a reader can find out",
        "What is guaranteed",
        "Not protected",
        "Spent",
        "One day of one person",
    ):
        assert heading in text


def test_a_second_demo_in_the_same_folder_is_refused(
    made: tuple[Path, subprocess.CompletedProcess[str]], run: Run
) -> None:
    folder, _ = made
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    told = run("demo", "--out", folder, *SMALL, code=2).stderr
    assert len(told.splitlines()) == 1 and "--force" in told
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_seed_gives_the_same_demo_and_is_marked_everywhere(tmp_path: Path, run: Run) -> None:
    first = run("demo", "--out", tmp_path / "a", "--seed", 5, "--json", *SMALL)
    again = run("demo", "--out", tmp_path / "b", "--seed", 5, "--json", *SMALL)
    one, other = (json.loads(result.stdout) for result in (first, again))
    same = set(one) - {"out", "report"}
    assert {key: one[key] for key in same} == {key: other[key] for key in same}
    tables = [(tmp_path / name / "out" / "released.csv").read_bytes() for name in ("a", "b")]
    assert tables[0] == tables[1]
    assert one["private"] is False and one["rows"] == ROWS
    assert "replayable" in first.stderr
    statement = load_statement(tmp_path / "a" / "out" / "released.csv")
    assert "NOT PRIVATE" in statement.randomness.sentence(whole=statement)
    assert "NOT PRIVATE" in (tmp_path / "a" / "report.html").read_text()
    ledger = dphmm.open_ledger(tmp_path / "a" / "ledger.db")
    assert not any(entry.secure for key in ledger.sessions() for entry in ledger.entries(*key))
    ledger.close()


def test_force_replaces_an_earlier_demo_and_nothing_else(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "demo"
    run("demo", "--out", folder, "--quiet", *SMALL)
    (folder / "mine.txt").write_text("kept")
    before = (folder / "out" / "released.csv").read_bytes()
    result = run("demo", "--out", folder, "--quiet", "--force", *SMALL)
    assert result.stderr == "" and result.stdout == f"{folder}/report.html\n"
    assert (folder / "mine.txt").read_text() == "kept"
    assert (folder / "out" / "released.csv").read_bytes() != before


def test_force_never_deletes_a_ledger_that_no_demo_made(tmp_path: Path, run: Run) -> None:
    (tmp_path / "ledger.db").write_bytes(b"precious")
    for options in ((), ("--force",)):
        told = run("demo", "--out", tmp_path, *options, *SMALL, code=2).stderr
        assert len(told.splitlines()) == 1 and "ledger.db" in told
    assert (tmp_path / "ledger.db").read_bytes() == b"precious"
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_file_is_not_a_folder(tmp_path: Path, run: Run) -> None:
    (tmp_path / "taken").write_text("")
    assert "--out" in run("demo", "--out", tmp_path / "taken", *SMALL, code=2).stderr
