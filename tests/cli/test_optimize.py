"""dphmm optimize, and a made table through every command that takes one."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from commands import edited, set_in, write_rows
from dphmm.mechanisms import answer_table
from dphmm.storage.made_tables import load_table
from dphmm.storage.models import load_model, read_arrays, write_arrays

pytestmark = pytest.mark.replayed_words
BOX = "-74,40,-73.9292,40.054"


def walks(users, seed):
    generator = np.random.default_rng(seed)
    rows = []
    for user in users:
        x, y = generator.integers(0, 5, 2)
        for step in range(12):
            x, y = np.clip(np.array([x, y]) + generator.integers(-1, 2, 2), 0, 4)
            rows.append([user, f"2024-05-06T{8 + step // 6:02d}:{10 * (step % 6):02d}:00Z",
                         f"{40 + 0.009 * (y + 0.5):.5f}", f"{-74 + 0.0118 * (x + 0.5):.5f}"])  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def town(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("town")
    write_rows(folder / "others.csv", ["user", "t", "lat", "lon"], walks([f"o{n}" for n in range(30)], 1))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walks([f"v{n}" for n in range(5)], 2))
    fitted = ("--grid", "1km", "--bbox", BOX, "--step", "10min", "--smoothing", "0.1", "--all-cells")
    run("fit", folder / "others.csv", "-o", folder / "m.npz", *fitted)
    run("policy", "radius", folder / "m.npz", "-o", folder / "p.json", "--radius", "1.5km")
    run("optimize", folder / "m.npz", "--policy", folder / "p.json", "--epsilon", "1", "-o", folder / "t.npz")
    return folder


def arguments(folder, *more):
    return ("--model", folder / "m.npz", "--policy", folder / "p.json", *more)


@pytest.fixture(scope="module")
def published(town, run):
    (town / "sub").mkdir()
    made = ("--radius", "1.5km", "--setting", "mechanism", town / "t.npz", "-o", town / "sub" / "p.json")
    run("policy", "radius", town / "m.npz", *made)
    assert json.loads((town / "sub" / "p.json").read_text())["setting"] == {"mechanism": "../t.npz"}
    asked = ("release", town / "walks.csv", "--model", town / "m.npz", "--policy", town / "sub" / "p.json")
    run(*asked, "--epsilon", "1", "-o", town / "out", "--format", "parquet", "--ledger", town / "l.db")
    return town / "out"


def test_it_says_how_good_the_table_is(town, tmp_path, run):
    out = tmp_path / "d.npz"
    asked = ("optimize", town / "m.npz", "--policy", town / "p.json", "--epsilon", "1", "-o", out)
    told = run(*asked, "--loss", "distance")
    assert "proved to be at most 1.0001 times the least of all mechanisms with this promise" in told.stderr
    assert f"use it with: dphmm policy ... --setting mechanism {out}" in told.stderr
    found = json.loads(run(*asked, "--json", "--force").stdout)
    table = load_table(out)
    assert found["table"] == table.digest and found["loss"] == "squared" and found["method"] == "program"
    assert 1 <= found["certified_ratio"] < 1.0001
    assert found["expected_error"] < found["auto"]
    assert found["weighted_by"] == "the model's occupancy"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-o", "t.txt"), r"-o: got t\.txt; expected a name ending in \.npz"),
        (("-o", "new.npz", "--loss", "miles"), r"--loss: got miles; expected squared, distance, label, or a table"),
        (("-o", "new.npz", "--loss", "label"), None),
        (("-o", "new.npz", "--gap", "0.9"), r"gap: got 0\.9; expected a ratio of at least 1"),
        (("-o", "new.npz", "--epsilon", "0"), r"epsilon: got 0; expected"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(town, tmp_path, run, options, told, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("optimize", town / "m.npz", "--policy", town / "p.json", "--epsilon", "1")
    result = run(*asked, *options, code=0 if told is None else 2)
    if told is not None:
        assert re.search(told, result.stderr) and len(result.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "new.npz").exists()


def test_the_statement_and_the_ledger_name_the_table(town, published):
    table = load_table(town / "t.npz")
    statement = json.loads((published / "released.parquet.privacy.json").read_text())
    assert statement["mechanism"]["asked"] == table.reference
    assert set(statement["mechanism"]["chosen"]) == {"made-table"}


@pytest.mark.slow
def test_every_reader_of_the_file_takes_the_table(town, published, tmp_path, run):
    made = set_in(("--policy", town / "p.json"), mechanism=town / "t.npz")
    audited = run("check-release", published)
    assert "nothing is wrong" in audited.stdout
    run("read", published, "--estimates", "-o", tmp_path / "s.parquet")
    run("report", published, "-o", tmp_path / "r.html")
    first = load_model(town / "m.npz").space.names[0]
    run("read", published, "--event", first, "--from", "2", "--to", "3")
    run("plan", "--details", town / "m.npz", *made)
    run("account", town / "l.db", "--temporal", "--model", town / "m.npz", *made)
    assert len(pd.read_parquet(tmp_path / "s.parquet")) == 60


@pytest.mark.parametrize(
    "command",
    [("read", "out", "--estimates", "-o", "s.parquet"), ("report", "out", "-o", "r.html"), ("check-release", "out")],
    ids=lambda command: command[0],
)
def test_the_folder_has_the_table(town, published, tmp_path, run, command, monkeypatch):
    """No reader of it needs the file that the table was made in."""
    monkeypatch.setattr(answer_table, "_known", {})
    monkeypatch.chdir(tmp_path)
    run(*[published if part == "out" else part for part in command])


def test_an_account_without_the_table_asks_for_it(town, published, run, monkeypatch):
    monkeypatch.setattr(answer_table, "_known", {})
    result = run("account", town / "l.db", "--temporal", *arguments(town), code=2)
    assert "which has not been read; expected its file with it: the policy says mechanism table.npz" in result.stderr


def test_another_table_is_not_that_of_the_release(town, published, tmp_path, run, monkeypatch):
    other = tmp_path / "o.npz"
    asked = ("optimize", town / "m.npz", "--policy", town / "p.json", "--epsilon", "1", "-o", other)
    run(*asked, "--loss", "distance")
    shutil.copytree(published, tmp_path / "out")
    edited(tmp_path / "out", "mechanism.npz", other.read_bytes())
    monkeypatch.setattr(answer_table, "_known", {})
    told = run("read", tmp_path / "out", "--estimates", "-o", tmp_path / "s.parquet", code=2).stderr
    assert "which has not been read" in told and not (tmp_path / "s.parquet").exists()
    resumed = ("release", town / "walks.csv", *set_in(arguments(town, "--epsilon", "1"), mechanism=other))
    told = run(*resumed, "-o", tmp_path / "new", "--ledger", town / "l.db", code=2).stderr
    assert "expected the mechanism of the history, the made table" in told


def test_a_file_that_was_changed_is_refused(town, tmp_path, run):
    arrays = read_arrays(town / "t.npz", 1, "save_table", "table")
    meta = json.loads(arrays["meta"].tobytes())
    whole = {name: array.copy() for name, array in arrays.items() if name not in ("meta", "format")}
    asked, cases = ("plan", "--details", town / "m.npz", "--policy", town / "p.json"), []
    weights = whole["weights"].copy()
    weights[0, 0, 2] ^= 1
    cases.append(({**whole, "weights": weights}, meta, "a row of another sum than the others"))
    moved = whole["weights"].copy()
    moved[[0, 7]] = moved[[7, 0]]
    cases.append(({**whole, "weights": moved}, meta, "lose more than epsilon"))
    cases.append(({**whole, "edges": whole["edges"][1:]}, meta, "contents of another table"))
    cases.append(({**whole, "answers": whole["answers"][::-1]}, meta, "lexicographic"))
    cases.append((whole, {**meta, "epsilon": "1/2"}, "a row of another sum than the others"))
    cases.append((whole, {**meta, "epsilon": "20"}, "what is no table"))
    cases.append((whole, {**meta, "space": "0" * 64}, "contents of another table"))
    for number, (changed, told_meta, told) in enumerate(cases):
        path = tmp_path / f"{number}.npz"
        write_arrays(path, told_meta, changed, 1)
        result = run(*set_in(asked, mechanism=path), code=2)
        assert told in result.stderr and str(path) in result.stderr
    missing = run(*set_in(asked, mechanism="no.npz"), code=2)
    assert "no.npz; expected an existing table file" in missing.stderr
    assert "expected a table file" in run(*set_in(asked, mechanism=town / "m.npz"), code=2).stderr


def test_costs_of_ones_own_come_from_a_table(tmp_path, run):
    """Rows and columns in any order, by name."""
    rows = [["u", f"2024-05-06T08:{10 * i:02d}:00Z", page] for i, page in enumerate(["a", "b", "c", "a", "c", "b"])]
    write_rows(tmp_path / "v.csv", ["user", "t", "page"], rows)
    run("fit", tmp_path / "v.csv", "-o", tmp_path / "m.npz", "--state-column", "page", "--step", "10min")
    run("policy", "complete", tmp_path / "m.npz", "-o", tmp_path / "p.json")
    asked = (
        "optimize",
        tmp_path / "m.npz",
        "--policy",
        tmp_path / "p.json",
        "--epsilon",
        "1",
        "-o",
        tmp_path / "t.npz",
    )
    write_rows(tmp_path / "d.csv", ["state", "c", "a", "b"], [["b", 1, 1, 0], ["a", 5, 0, 5], ["c", 0, 5, 5]])
    found = json.loads(run(*asked, "--loss", tmp_path / "d.csv", "--json").stdout)
    assert found["loss"] == "custom"
    write_rows(tmp_path / "e.csv", ["a", "b", "c"], [[0, 5, 5], [1, 0, 1], [5, 5, 0]])
    again = json.loads(run(*asked, "--loss", tmp_path / "e.csv", "--json", "--force").stdout)
    assert again["table"] == found["table"]
    for wrong, told in (
        ([["state", "c", "a"], ["a", 1, 0], ["c", 0, 1]], "a column of costs for each of the 3 states"),
        ([["state", "c", "a", "b"], ["a", 1, 0, -1], ["b", 0, 1, 1], ["c", 0, 1, 1]], "column b"),
        ([["state", "c", "a", "b"], ["a", 1, 0, 1], ["a", 0, 1, 1], ["c", 0, 1, 1]], "without a row for 'b'"),
    ):
        write_rows(tmp_path / "w.csv", wrong[0], wrong[1:])
        result = run(*asked, "--loss", tmp_path / "w.csv", "--force", code=2)
        assert told in result.stderr and "--loss" in result.stderr


@pytest.mark.slow
def test_details_say_what_would_help(town, run):
    """With the figures of the settings that they name."""
    asked = ("plan", "--details", town / "m.npz", "--policy", town / "p.json")
    found = json.loads(run(*asked, "--json").stdout)["remedies"]
    (made,) = [one for one in found if one["remedy"].startswith("dphmm optimize")]
    other = json.loads(run(*set_in(asked, mechanism=town / "t.npz"), "--json").stdout)
    assert made["after"] == pytest.approx(other["release"]["expected_error"])
    assert made["before"] == pytest.approx(json.loads(run(*asked, "--json").stdout)["release"]["expected_error"])
    text = run(*asked).stdout
    assert "what would help, tried on the first step" in text
    assert f"--setting mechanism table.npz: {made['before']:.4g} m -> {made['after']:.4g} m" in text


def test_a_plan_made_with_a_table_asks_for_it(town, tmp_path, run, monkeypatch):
    given = set_in(arguments(town, "--epsilon", "1"), mechanism=town / "t.npz")
    planned = ("--path-epsilon", "3", "--per", "1d", "--people", "5")
    run("plan", town / "m.npz", *given[2:], *planned, "-o", tmp_path / "plan.json")
    monkeypatch.setattr(answer_table, "_known", {})
    asked = ("release", town / "walks.csv", *arguments(town), "--plan", tmp_path / "plan.json")
    outputs = ("-o", tmp_path / "out")
    assert "which has not been read" in run(*asked, *outputs, code=2).stderr
    run(*set_in(asked, mechanism=town / "t.npz"), *outputs, "--no-check", code=3)
    statement = json.loads((tmp_path / "out" / "released.csv.privacy.json").read_text())
    assert statement["mechanism"]["asked"] == load_table(town / "t.npz").reference
