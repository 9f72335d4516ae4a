"""dphmm release --no-estimates: files and lines of z alone, and what the other commands make of them.

Fails where the option is not handed on, where a history is not continued in the other form, where a release whose plans
depend on answers is begun, where an audit believes a changed file, or where a command needs estimates and says nothing.
"""

from __future__ import annotations

import itertools
import json

import pytest

from dphmm.storage.ledger import open_ledger

COLUMNS = ["user", "t", "step", "z_0", "z_1", "z_lat", "z_lon", "epsilon", "cost", "plan"]
ESTIMATES = {"estimate_0", "estimate_1", "estimate", "estimate_lat", "estimate_lon"}


def alone(row):
    return {name: value for name, value in row.items() if name not in ESTIMATES}


def held(path):
    with open_ledger(path) as ledger:
        return {key: ledger.entries(*key) for key in ledger.sessions()}


def only_rows(folder, town, last):
    """The first rows of every user, as an owner has them earlier."""
    header, *rows = (town / "walks.csv").read_text().splitlines()
    kept = [row for number, row in enumerate(rows) if number % 12 < last]
    (folder / "walks.csv").write_text("\n".join([header, *kept, ""]))
    return folder / "walks.csv"


@pytest.fixture(scope="module")
def made(town, tmp_path_factory, run, release_of):
    """A folder with released.csv of z alone, its statement and its ledger."""
    folder = tmp_path_factory.mktemp("alone")
    run(*release_of(town, folder), "--no-estimates", "--model-people", "others")
    return folder


@pytest.fixture(scope="module")
def public(town):
    return ("--model", town / "model.npz", "--policy", town / "radius.json")


def test_the_file_has_no_column_of_an_estimate(made, rows_of):
    rows = rows_of(made / "released.csv")
    assert len(rows) == 36 and list(rows[0]) == COLUMNS
    said = json.loads((made / "released.csv.privacy.json").read_text())
    assert said["private"] is True and said["published"]["rows"] == 36
    assert "estimate" not in (made / "released.csv.privacy.json").read_text()


@pytest.mark.parametrize("forms", list(itertools.product([(), ("--no-estimates",)], repeat=2)), ids=str)
def test_a_file_is_continued_and_rewritten_in_either_form(forms, town, tmp_path, run, release_of, rows_of, public):
    """The rewritten file has the columns of the run that writes it; no answer and no entry changes."""
    first, second = forms
    arguments = release_of(town, tmp_path)
    run(arguments[0], only_rows(tmp_path, town, 5), *arguments[2:], *first)
    before, entries = rows_of(tmp_path / "released.csv"), held(tmp_path / "ledger.db")
    assert len(before) == 15 and (before[0].keys() >= ESTIMATES) is not bool(first)
    run(*arguments, "--resume", *second)
    after = rows_of(tmp_path / "released.csv")
    assert len(after) == 36 and (after[0].keys() >= ESTIMATES) is not bool(second)
    assert [alone(row) for row in after if int(row["step"]) <= 5] == [alone(row) for row in before]
    now = held(tmp_path / "ledger.db")
    assert {key: some[:5] for key, some in now.items()} == entries
    checked = run("check-release", tmp_path / "released.csv", *public, "--ledger", tmp_path / "ledger.db")
    assert "nothing is wrong" in checked.stdout


def test_where_plans_depend_on_answers_it_is_refused_before_anything_is_read(town, tmp_path, run, release_of):
    arguments = release_of(town, tmp_path, rows="nowhere.csv")
    refused = "error: --no-estimates: got it with --constraint delta=0.05; expected --constraint support with it: "
    for given in ([*arguments], [*arguments, "--dry-run"], ["release", "-", *arguments[2:]]):
        result = run(*given, "--no-estimates", "--constraint", "delta=0.05", code=2)
        assert result.stderr == refused + "other plans follow from beliefs\n"
        assert result.stdout == "" and list(tmp_path.iterdir()) == []


def test_a_dry_run_is_the_same(town, tmp_path, run, release_of, one_json):
    arguments = [*release_of(town, tmp_path), "--dry-run", "--json"]
    assert one_json(run(*arguments)) == one_json(run(*arguments, "--no-estimates"))
    assert list(tmp_path.iterdir()) == []


def test_lines_of_a_stream_have_no_member_of_an_estimate(town, tmp_path, run, release_of, public):
    """Begun without, continued with: the same answers again, and both files of lines pass an audit."""
    arguments = release_of(town, tmp_path)
    at = arguments.index("-o")
    stream = ["release", "-", *arguments[2:at], *arguments[at + 2 :]]
    places = [(user, clock) for clock in ("08:00", "08:05", "08:20") for user in ("u", "v")]
    lines = [
        json.dumps({"user": user, "t": f"2024-05-06T{clock}:00Z", "lat": 50.01, "lon": 10.01}) for user, clock in places
    ]
    found = []
    for number, (form, text) in enumerate([(["--no-estimates"], lines[:4]), ([], lines), (["--no-estimates"], lines)]):
        statement = tmp_path / f"{number}.jsonl.privacy.json"
        result = run(*stream, "--resume", *form, "--statement", statement, input="\n".join(text) + "\n")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert [list(row) == COLUMNS for row in rows] == [bool(form)] * len(text)
        assert all(row.keys() >= ESTIMATES for row in rows) is not bool(form)
        found.append([alone(row) for row in rows])
        (tmp_path / f"{number}.jsonl").write_text(result.stdout)
        audited = run("check-release", tmp_path / f"{number}.jsonl", *public, "--ledger", tmp_path / "ledger.db")
        assert "nothing is wrong" in audited.stdout
    assert found[0] == found[1][:4] and found[1] == found[2]


def test_it_is_smoothed_like_the_release_with_estimates(made, town, public, tmp_path, run, release_of):
    """The ledger writes the same release with estimates: smoothing needs none of them."""
    for name in ("ledger.db", "released.csv"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    run(*release_of(town, tmp_path), "--resume", "--model-people", "others")
    for folder, out in ((made, "alone.csv"), (tmp_path, "whole.csv")):
        run("smooth", folder / "released.csv", *public, "-o", tmp_path / out)
    assert (tmp_path / "alone.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.slow
def test_a_page_needs_no_estimates(made, town, tmp_path, run):
    """It smooths the answers itself."""
    page = ("report", "--model", town / "model.npz", "-o", tmp_path / "page.html")
    run(*page, made / "released.csv", "--policy", town / "radius.json")
    assert "a reader believes" in (tmp_path / "page.html").read_text()
