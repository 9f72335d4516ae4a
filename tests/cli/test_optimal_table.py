"""The mechanism optimal-table on the command line: it releases, is checked, planned and read; what it cannot
do is one line.
"""

from __future__ import annotations

import pytest

from commands import set_in
from dphmm.mechanisms import OptimalTable
from dphmm.statement.files import load_statement


@pytest.fixture(scope="module")
def table(town, tmp_path_factory, run, release_of):
    """A folder with a release of the town's walks by tables."""
    folder = tmp_path_factory.mktemp("table")
    run(*set_in(release_of(town, folder), mechanism=OptimalTable.name))
    return folder


def test_what_is_released_are_answers_of_the_map_and_the_statement_says_so(table, rows_of):
    rows = rows_of(table / "released" / "released.csv")
    places = {(float(row["z_0"]) % 1000, float(row["z_1"]) % 1000) for row in rows}
    assert len(rows) == 36 and places == {(500.0, 500.0)}
    statement = load_statement(table / "released" / "released.csv")
    assert statement.mechanism.asked == OptimalTable.name
    assert statement.mechanism.chosen == {OptimalTable.name: 36}
    text = " ".join(sentence for _, sentence in statement.rows())
    assert "nearly for certain in which connected part" in text and "noise is widened" not in text


def test_the_check_of_plan_and_file_finds_nothing(town, table, run):
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 1)
    told = run("verify", *set_in(public, mechanism=OptimalTable.name))
    assert "keeps epsilon for every required pair" in told.stdout + told.stderr
    assert "nothing is wrong" in run("check-release", table / "released").stdout


def test_details_and_smooth_take_it(town, table, tmp_path, run, one_json):
    public = set_in(("--policy", town / "radius.json", "--epsilon", 1), mechanism=OptimalTable.name)
    told = one_json(run("plan", "--details", town / "model.npz", *public, "--json"))
    assert told["release"]["mechanism"] == OptimalTable.name
    errors = told["release"]["expected_errors"]
    assert errors[OptimalTable.name] == told["release"]["expected_error"] < errors["discrete-knorm"]
    run("read", table / "released", "--estimates", "-o", tmp_path / "smoothed.csv")


def page_of(town, table, folder, run):
    run("report", table / "released", "-o", folder / "report.html")
    return folder / "report.html"


@pytest.mark.slow
def test_its_page_smooths_and_tells_its_mechanism(town, table, tmp_path, run):
    run("report", table / "released", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "a reader believes" in page and "optimal-table" in page
    said = run("report", table / "released", "-o", tmp_path / "r.owner.html", "--truth", town / "walks.csv").stderr
    assert "smoother" in said
