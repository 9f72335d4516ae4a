"""`dphmm export`: a released table that is not the one of its statement gets no statement, and a warning as points."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.states import Trajectories
from dphmm.states.space import END
from dphmm.storage.importers import import_trajectories

pytestmark = pytest.mark.replayed_words

CHANGED = "released.csv was changed since released.csv.privacy.json was written"


@pytest.fixture
def folder(town, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 1)
    run("release", town / "walks.csv", *public, "-o", "out")
    return tmp_path


def _drop_a_row():
    file = Path("out/released.csv")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def test_a_table_has_the_statement_of_its_rows(folder, run):
    run("export", "out", "-o", "other.parquet")
    first, second = (
        json.loads(Path(f"{name}.privacy.json").read_text()) for name in ("out/released.csv", "other.parquet")
    )
    due = {"name": "other.parquet", "sha256": hashlib.sha256(Path("other.parquet").read_bytes()).hexdigest()}
    assert second == {**first, "file": due}


def test_whole_numbers_of_a_text_file_stay_numbers_with_a_fraction(folder, run, town):
    """A table of the same release has one schema, whichever way it was written."""
    run("export", "out", "-o", "other.parquet")
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 1)
    run("release", town / "walks.csv", *public, "-o", "direct", "--format", "parquet", "--ledger", "other.db")
    one, other = (pq.read_schema(name) for name in ("other.parquet", "direct/released.parquet"))
    assert one.names == other.names and one.types == other.types


@pytest.mark.parametrize("name", ["other.csv", "other.csv.gz", "other.parquet"])
def test_a_changed_file_gets_no_fresh_statement(folder, run, name):
    _drop_a_row()
    said = run("export", "out", "-o", name, code=2).stderr
    assert said == f"error: OUT: got {CHANGED}; expected the released file: dphmm release writes the folder again\n"
    assert not Path(name).exists() and not Path(f"{name}.privacy.json").exists()


def test_rows_without_a_statement_are_exported_without_one(folder, run):
    _drop_a_row()
    Path("out/released.csv.privacy.json").unlink()
    run("export", "out", "-o", "other.parquet")
    assert Path("other.parquet").exists() and not Path("other.parquet.privacy.json").exists()


def test_points_of_a_changed_file_are_warned_of(folder, run):
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    assert "was changed" not in run("export", "out", "-o", "first.geojson", "-q").stderr
    _drop_a_row()
    assert f"warning: {CHANGED}\n" in run("export", "out", "-o", "points.geojson", "-q").stderr


def test_a_cell_that_is_no_number_is_one_line(folder, run):
    file = Path("out/released.csv")
    first = file.read_text().splitlines()[1]
    file.write_text(file.read_text().replace(first.split(",")[3], "north", 1))
    said = run("export", "out", "-o", "other.csv", code=2).stderr
    assert said.startswith("error: z_0: got a cell that is no number;") and said.count("\n") == 1


def test_estimates_are_points_too(folder, run):
    pytest.importorskip("geopandas", reason="geopandas is not installed")
    run("read", "out", "--estimates", "-q")
    said = run("export", "out/estimates.csv", "-o", "where.geojson").stderr
    assert "36 points of smoothed" in said


def test_a_release_is_exported_as_a_log(tmp_path, run):
    rows = Trajectories.from_labels(["bbbb"] * 3 + ["cccc"] * 3, state=["a", "b", END] * 2, order=[1, 2, 3] * 2)
    setup = dphmm.Setup.labels(["a", "b", END], moves=[[1, 8, 1], [1, 1, 8], [0, 0, 1]], first=[1, 0, 0], noun="case")
    chosen = {"case_names": "random", "bits": dphmm.ReplayBits(1), "check": False, "progress": False}
    setup.plan(9, steps=3, schedule="every").release(rows, tmp_path / "out", **chosen)
    said = run("export", tmp_path / "out", "-o", tmp_path / "log.xes").stderr
    assert "4 events: the likeliest path" in said and "their days are invented" in said
    assert import_trajectories(tmp_path / "log.xes", "xes").trajectories.state.tolist() == ["a", "b"] * 2
    assert (
        "--what: got place"
        in run("export", tmp_path / "out", "-o", tmp_path / "l.xes", "--what", "place", code=2).stderr
    )
