"""`dphmm experiment`: it runs the experiments of a checkout, and where there are none one line says how to get them.

It could fail by running a folder that only has the name, by a traceback where nothing is found, by losing what was
measured when it is stopped, or by leaving out data without a warning.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import experiments
import toy_experiment
from dphmm.cli import experiment as command
from dphmm.cli.app import app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(experiments, "NAMES", ("toy",))
    monkeypatch.setattr(experiments, "import_module", lambda name: toy_experiment)


def test_the_command_runs_resumes_and_lists(tmp_path, toys, monkeypatch):
    monkeypatch.delenv("DPHMM_DATA", raising=False)
    assert CliRunner().invoke(app, ["experiment"]).output == "toy  A toy\n"
    monkeypatch.setattr(toy_experiment, "STOP_AT", [2])
    folder = tmp_path / "out"
    stopped = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder)])
    assert stopped.exit_code == 130 and "the same command goes on" in stopped.output
    monkeypatch.setattr(toy_experiment, "STOP_AT", [])
    done = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder)])
    assert done.exit_code == 0 and done.stdout.strip() == str(folder / "results.md")
    assert "note: 24 rows measured in 0 s" in done.stderr
    quiet = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder), "--quiet"])
    assert quiet.stderr == ""
    assert (folder / "means.svg").exists()


def test_what_is_not_in_the_folder_of_data_is_warned_of(tmp_path, toys, monkeypatch):
    import pandas as pd

    skipped = pd.DataFrame({"data": ["places", "pages"], "reason": ["no a.csv in the folder of data", "no b.csv"]})

    def tables(rows):
        return {**toy_experiment.tables(rows), "skipped": skipped}

    monkeypatch.delenv("DPHMM_DATA", raising=False)
    monkeypatch.setattr(toy_experiment, "EXPERIMENT", replace(toy_experiment.EXPERIMENT, tables=tables))
    (tmp_path / "data").mkdir()
    words = ["experiment", "toy", "--quick", "-q", "--data", str(tmp_path / "data")]
    warned = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "a")])
    assert warned.stderr == "warning: left out: places (no a.csv in the folder of data); pages (no b.csv)\n"
    assert warned.stdout.count("\n") == 1
    assert CliRunner().invoke(app, [*words[:-2], "-o", str(tmp_path / "b")]).stderr == ""
    skipped = skipped.head(0)
    assert CliRunner().invoke(app, [*words, "-o", str(tmp_path / "c")]).stderr == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "NAME: got 'none'; expected one of toy"),
        (["toy"], "-o: got nothing; expected a folder for the results"),
        (["-o", "x"], "NAME: got nothing; expected one of toy; without -o they are listed"),
        (["toy", "-o", "x", "--jobs", "0"], "--jobs: got 0"),
        (["toy", "-o", "x", "--data", "no such folder"], "--data: got no such folder"),
    ],
)
def test_bad_input_is_one_line(words, message, toys):
    found = CliRunner().invoke(app, ["experiment", *words])
    assert found.exit_code == 2 and message in found.output and found.output.count("\n") == 1


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as it is installed: nothing lies beside it. The current directory is empty."""
    (tmp_path / "site-packages" / "dphmm").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(command.dphmm, "__file__", str(tmp_path / "site-packages" / "dphmm" / "__init__.py"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


NOT_HERE = (
    "experiments: got no folder experiments/ of dphmm here; expected to be run in a checkout of dphmm's source, as "
    "experiments are not installed with the package"
)


@pytest.mark.parametrize("words", [[], ["optimum"], ["optimum", "-o", "x"]])
def test_without_a_checkout_one_line_says_how_to_get_them(installed, words):
    found = CliRunner().invoke(app, ["experiment", *words])
    assert found.exit_code == 2 and found.output == f"error: {NOT_HERE}\n"


@pytest.mark.parametrize("content", [None, "", "raise SystemExit('another project')\n", b"\xff\xfe"])
def test_a_folder_of_that_name_of_another_project_is_not_run(installed, content):
    (installed / "experiments").mkdir()
    if content is not None:
        own = content if isinstance(content, bytes) else content.encode()
        (installed / "experiments" / "__init__.py").write_bytes(own)
    found = CliRunner().invoke(app, ["experiment"])
    assert found.exit_code == 2 and NOT_HERE in found.output


@pytest.mark.slow
def test_the_folder_of_the_current_directory_is_run_by_an_installed_package(tmp_path):
    """A process of its own: the package without its checkout, and a copy of the folder where the command is run."""
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "experiments" / "__init__.py").write_text(
        (ROOT / "experiments" / "__init__.py").read_text() + "\n\nNAMES = NAMES[-1:]\n"
    )
    code = "import dphmm; dphmm.__file__ = '/nowhere/dphmm/__init__.py'; from dphmm.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "experiment"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("synthesis  ") and done.stdout.count("\n") == 1
