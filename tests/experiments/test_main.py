"""`python -m experiments`: it lists, runs, stops and goes on; bad input is one line, and data left out is warned of."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import experiments
import toy_experiment
from experiments import __main__ as command
from experiments.experiment import Own

ROOT = Path(__file__).parents[2]
OWN_ROWS = ["--trajectories", "a.csv", "--bbox", "0,0,1,1", "--grid", "340m", "--step", "5s", "--radius", "1km"]


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.setattr(experiments, "NAMES", ("toy",))
    monkeypatch.setattr(command, "NAMES", ("toy",))
    monkeypatch.setattr(experiments, "import_module", lambda name: toy_experiment)
    monkeypatch.delenv("DPHMM_DATA", raising=False)


def test_it_runs_resumes_and_lists(tmp_path, monkeypatch, capsys):
    assert command.main([]) == 0 and capsys.readouterr().out == "toy  A toy\n"
    monkeypatch.setattr(toy_experiment, "STOP_AT", [2])
    folder = tmp_path / "out"
    assert command.main(["toy", "-o", str(folder)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    monkeypatch.setattr(toy_experiment, "STOP_AT", [])
    assert command.main(["toy", "-o", str(folder)]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(folder / "results.md") and "24 rows measured in 0 s" in told.err
    assert (folder / "means.svg").exists()


def test_what_is_not_in_the_folder_of_data_is_warned_of(tmp_path, monkeypatch, capsys):
    skipped = pd.DataFrame({"data": ["places", "pages"], "reason": ["no a.csv in the folder of data", "no b.csv"]})

    def tables(rows):
        return {**toy_experiment.tables(rows), "skipped": skipped}

    monkeypatch.setattr(toy_experiment, "EXPERIMENT", replace(toy_experiment.EXPERIMENT, tables=tables))
    (tmp_path / "data").mkdir()
    words, data = ["toy", "--quick"], ["--data", str(tmp_path / "data")]
    assert command.main([*words, *data, "-o", str(tmp_path / "a")]) == 0
    left_out = "warning: left out: places (no a.csv in the folder of data); pages (no b.csv)\n"
    assert left_out in capsys.readouterr().err
    assert command.main([*words, "-o", str(tmp_path / "b")]) == 0
    assert "warning" not in capsys.readouterr().err
    skipped = skipped.head(0)
    assert command.main([*words, *data, "-o", str(tmp_path / "c")]) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "NAME: got 'none'; expected one of toy"),
        (["toy"], "-o: got nothing; expected a folder for the results"),
        (["-o", "x"], "NAME: got nothing; expected one of toy; without -o they are listed"),
        (["toy", "-o", "x", "--jobs", "0"], "--jobs: got 0"),
        (["toy", "-o", "x", "--data", "no such folder"], "--data: got no such folder"),
        (["toy", "-o", "x", "--step", "5s"], "--step: got 5s; expected --trajectories FILE beside it"),
        (["toy", "-o", "x", "--trajectories", "a.csv"], "--bbox: got nothing; expected a value beside --trajectories"),
        (["toy", "-o", "x", *OWN_ROWS, "--data", "."], "--data: got .; expected --data or --trajectories, not both"),
        (["toy", "-o", "x", *OWN_ROWS, "--grid", "340"], "--grid: got 340; expected a unit after the number"),
        (["toy", "-o", "x", *OWN_ROWS, "--length", "0"], "--length: got 0"),
        (
            ["toy", "-o", "x", *OWN_ROWS],
            "--trajectories: got rows for toy; expected dphmm, location-sets, steps, synthesis",
        ),
    ],
)
def test_bad_input_is_one_line(words, message, capsys):
    assert command.main(words) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


def test_rows_of_ones_own_that_are_not_there_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(toy_experiment, "EXPERIMENT", replace(toy_experiment.EXPERIMENT, takes_own=Own))
    assert command.main(["toy", "-o", str(tmp_path / "out"), *OWN_ROWS]) == 2
    assert capsys.readouterr().err == "error: --trajectories: got a.csv; expected an existing file\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_without_the_files_is_one_line_and_no_city(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        toy_experiment, "EXPERIMENT", replace(toy_experiment.EXPERIMENT, files=("places.parquet", "pages.parquet"))
    )
    words = ["toy", "--data", str(tmp_path), "-o", str(tmp_path / "out")]
    assert command.main(words) == 2
    told = capsys.readouterr().err
    assert f"--data: got {tmp_path}, with none of places.parquet, pages.parquet;" in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "pages.parquet").touch()
    assert command.main(words) == 0


@pytest.mark.slow
def test_the_module_runs_in_a_checkout():
    done = subprocess.run([sys.executable, "-m", "experiments"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = "hmm-privacy", "dependence", "dphmm", "location-sets", "optimum", "steps", "synthesis"
    assert tuple(line.partition("  ")[0] for line in done.stdout.splitlines()) == listed
