"""What `fit` says of a model beside its counts, and of a file of names that has no names."""

from __future__ import annotations

import pytest


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("user,state\na,x\na,y\nb,x\nb,y\n")
    return path


def test_notes_of_the_model_are_said_by_name_and_the_warning_once(visits, run, tmp_path):
    said = run("fit", visits, "-o", tmp_path / "m.npz", "--state-column", "state").stderr
    assert "absorbing state" in said and "(y)" in said
    assert said.count("without privacy") == 1
    assert said.splitlines()[-1].startswith("warning: fitted without privacy")


@pytest.mark.parametrize(
    ("option", "column", "more"),
    [
        ("--states-file", "state", ("--state-column", "state")),
        ("--symbols-file", "symbol", ("--states", 2, "--symbols", "state")),
    ],
)
def test_a_file_of_names_needs_its_column(visits, run, tmp_path, option, column, more):
    names = tmp_path / "names.csv"
    names.write_text("page\nx\ny\n")
    private = ("--epsilon", 1, "--max-length", 3)
    result = run("fit", visits, "-o", tmp_path / "m.npz", *more, option, names, *private, code=2)
    assert f"{option}: got columns" in result.stderr and f"a column {column} that lists the names" in result.stderr
    assert result.stderr.count("\n") == 1 and not (tmp_path / "m.npz").exists()
